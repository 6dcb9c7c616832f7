//! `batch`: how it ends, and that nothing is left then.
#![cfg(all(feature = "cli", unix))]

mod cli_support;

use std::time::{Duration, Instant};

use cli_support::{Batch, DRIVERS, Place, fake, scripted};
use serde_json::{Value, json};

/// The contract's bound for everything to be gone.
const BOUND: Duration = Duration::from_secs(10);

fn place(name: &str, driver: &str) -> Place {
    let servers = [("git", fake(&["--tools=add,slow,touch_list"]))];
    Place::new(&format!("{name}-{driver}"), &servers)
}

/// With a second server, which ignores the end of its input and SIGTERM.
fn stubborn_place(name: &str, driver: &str) -> Place {
    let stubborn = scripted(&json!({"steps": [
        {"ignore_stdin_eof": true}, {"ignore_sigterm": true}, {"on": "tools/call"}]}));
    let tools = fake(&["--tools=add,slow,touch_list"]);
    let servers = [("git", tools), ("stubborn", stubborn)];
    Place::new(&format!("{name}-{driver}"), &servers)
}

fn slow(id: u32) -> Value {
    json!({"id": id, "op": "call", "tool": "slow", "arguments": {"ms": 60_000}, "background": true})
}

fn add(id: u32) -> Value {
    json!({"id": id, "op": "call", "tool": "add", "arguments": {"a": 1, "b": 2}})
}

/// How many calls the server was sent, by all runs in this place.
fn calls(place: &Place) -> usize {
    let methods = place.methods("git");
    methods
        .iter()
        .filter(|method| *method == "tools/call")
        .count()
}

/// A batch with a call that stays pending.
fn pending(place: &Place, driver: &str) -> Batch {
    let mut batch = place.batch(driver);
    batch.send(&slow(1));
    batch.send(&json!({"id": 2, "op": "listen", "background": true}));
    let report = batch.ask(&json!({"id": 3, "op": "report"}));
    assert_eq!(report["outcome"], "complete");
    assert!(!place.processes().is_empty());
    batch
}

/// The lines by id, and each id once.
fn kinds(lines: &[Value]) -> Vec<(u64, String)> {
    let kind = |line: &Value| {
        let word = line["error"]
            .get("kind")
            .unwrap_or_else(|| &line["outcome"]);
        (
            line["id"].as_u64().unwrap(),
            word.as_str().unwrap().to_owned(),
        )
    };
    let mut kinds: Vec<_> = lines.iter().map(kind).collect();
    kinds.sort();
    kinds
}

fn closed(id: u64) -> (u64, String) {
    (id, "closed".to_owned())
}

/// What is pending answers `closed` first, then the servers end, then `close` is answered.
#[test]
fn close() {
    for driver in DRIVERS {
        let place = stubborn_place("end_close", driver);
        let mut batch = pending(&place, driver);
        let start = Instant::now();
        batch.send(&json!({"id": 4, "op": "close"}));
        let before = [batch.line(), batch.line()];
        assert_eq!(kinds(&before), [closed(1), closed(2)]);
        let answer = batch.line();
        assert_eq!(
            (&answer["id"], &answer["outcome"]),
            (&json!(4), &json!("complete"))
        );
        place.assert_nothing_left();
        assert!(start.elapsed() < BOUND);
        let later = batch.ask(&json!({"id": 5, "op": "list_tools"}));
        assert_eq!(later["error"]["kind"], "unavailable");
        assert_eq!(batch.finish(), (0, vec![]));
    }
}

/// The process waits for what is in the background, then ends every `listen`.
#[test]
fn end_of_input() {
    for driver in DRIVERS {
        let place = place("end_input", driver);
        let mut batch = place.batch(driver);
        batch.send(&json!({"id": 1, "op": "listen", "background": true, "ms": 600_000}));
        batch.send(
            &json!({"id": 2, "op": "call", "tool": "slow", "arguments": {"ms": 300},
            "background": true}),
        );
        batch.end_input();
        let (status, out) = batch.finish();
        let ids: Vec<&Value> = out.iter().map(|line| &line["id"]).collect();
        assert_eq!((status, ids), (0, vec![&json!(2), &json!(1)]));
        assert!(
            out.iter().all(|line| line["outcome"] == "complete"),
            "{out:?}"
        );
        place.assert_nothing_left();
    }
}

#[test]
fn signals_act_like_close() {
    for driver in DRIVERS {
        for signal in ["-INT", "-TERM"] {
            let place = match signal {
                "-INT" => place("end_int", driver),
                _ => stubborn_place("end_term", driver),
            };
            let mut batch = pending(&place, driver);
            // One in the foreground is ended too, and the lines behind it are answered, not started.
            batch.send(&json!({"id": 4, "op": "sleep", "ms": 600_000}));
            batch.send(&json!({"id": 5, "op": "report"}));
            batch.send(&add(6));
            batch.send(&json!({"id": 7, "op": "nothing"}));
            batch.send(&json!({"id": 8, "op": "close"}));
            std::thread::sleep(Duration::from_millis(100));
            let start = Instant::now();
            batch.signal(signal);
            let lines = [batch.line(), batch.line(), batch.line()];
            assert_eq!(kinds(&lines), [closed(1), closed(2), closed(4)]);
            let (status, rest) = batch.finish();
            let unavailable = |id| (id, "unavailable".to_owned());
            let (usage, rest) = (rest.get(2).cloned(), kinds(&rest));
            assert_eq!(
                (status, rest),
                (
                    130,
                    vec![
                        unavailable(5),
                        unavailable(6),
                        (7, "usage".to_owned()),
                        unavailable(8)
                    ]
                )
            );
            assert_eq!(usage.unwrap()["line"], 7);
            place.assert_nothing_left();
            assert_eq!(calls(&place), 1);
            assert!(start.elapsed() < BOUND);
        }
    }
}

/// Nobody reads any more: that is noticed with the next line, and ends everything.
#[test]
fn a_reader_that_goes_away_acts_like_close() {
    for driver in DRIVERS {
        let place = place("end_pipe", driver);
        let mut command = place.command(&["--driver", driver, "batch"]);
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        drop(child.stdout.take());
        let report = json!({"id": 2, "op": "report"});
        for line in [slow(1), report, add(3), add(4)] {
            std::io::Write::write_all(&mut stdin, format!("{line}\n").as_bytes()).unwrap();
        }
        let start = Instant::now();
        // Its input is still open.
        assert_eq!(child.wait().unwrap().code(), Some(0));
        place.assert_nothing_left();
        assert!(calls(&place) <= 1, "nothing starts after the report");
        assert!(start.elapsed() < BOUND);
        drop(stdin);
    }
}

/// A reader that stays and does not read cannot keep the servers alive.
#[test]
fn a_reader_that_does_not_read_holds_nothing_up() {
    for driver in DRIVERS {
        let place = place("end_stuck", driver);
        let mut child = place
            .command(&["--driver", driver, "batch"])
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        for id in 0..2_000 {
            let line = json!({"id": id, "op": "list_tools", "peer": "git", "background": true});
            if std::io::Write::write_all(&mut stdin, format!("{line}\n").as_bytes()).is_err() {
                break;
            }
        }
        std::thread::sleep(Duration::from_millis(300));
        let start = Instant::now();
        let pid = child.id().to_string();
        let kill = std::process::Command::new("kill").arg(&pid).status();
        assert!(kill.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(130));
        place.assert_nothing_left();
        assert!(start.elapsed() < BOUND);
    }
}

/// A server that ends in the middle fails its own operations; the process goes on.
#[test]
fn a_server_that_dies_ends_nothing_else() {
    for driver in DRIVERS {
        let dies = scripted(&json!({"steps": [{"on": "tools/call"}, {"exit": 7}]}));
        let servers = [("dies", dies), ("git", fake(&["--tools=add"]))];
        let place = Place::new(&format!("end_dies-{driver}"), &servers);
        let mut batch = place.batch(driver);
        let failed = batch.ask(&json!({"id": 1, "op": "call", "tool": "echo"}));
        assert_eq!(failed["error"]["kind"], "closed", "{failed}");
        assert_eq!(failed["error"]["mayHaveExecuted"], true);
        let sum = json!({"id": 2, "op": "call", "tool": "add", "arguments": {"a": 1, "b": 2}});
        assert_eq!(batch.ask(&sum)["structuredContent"]["sum"], 3);
        assert_eq!(batch.finish(), (0, vec![]));
        place.assert_nothing_left();
    }
}
