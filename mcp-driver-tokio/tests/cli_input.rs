//! Calls that need input: where they are kept, and what the answers are for.
#![cfg(all(feature = "cli", unix))]

mod cli_support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use cli_support::{PROGRAM, Place, fake, scripted, stable};
use serde_json::{Value, json};

fn place(name: &str) -> Place {
    Place::new(name, &[("git", fake(&["--tools=ask,echo,fail"]))])
}

/// Whether a draft was left behind.
fn is_littered(place: &Place) -> bool {
    fs::read_dir(place.path()).unwrap().any(|entry| {
        entry
            .unwrap()
            .path()
            .extension()
            .is_some_and(|of| of == "tmp")
    })
}

fn fifo(place: &Place) -> String {
    let path = place.path().join("fifo").display().to_string();
    assert!(
        Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    path
}

/// R31: a place that cannot be written to is found out while there is nothing to lose.
#[test]
fn where_a_call_is_kept_is_known_before_it_is_made() {
    let place = place("kept_nowhere");
    let directory = place.path().display().to_string();
    let fifo = fifo(&place);
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(to, place.path().join(name)).unwrap();
    };
    link("round", "round");
    link("nowhere/ask.json", "into_nowhere");
    for (file, words) in [
        (directory.as_str(), "not a regular file"),
        (&fifo, "not a regular file"),
        ("/dev/null", "not a regular file"),
        ("nowhere/ask.json", "No such file"),
        ("..", "not a regular file"),
        ("-", "- is no file here; a file of that name is ./-"),
        ("round", "links"),
        ("into_nowhere", "No such file"),
        (".mcp.json/ask.json", "Not a directory"),
    ] {
        let done = place.run_both(&["call", "ask", "--save-continuation", file]);
        assert_eq!((done.status, done.stdout.as_str()), (2, ""), "{done}");
        assert_eq!(done.stderr.lines().count(), 1, "{done}");
        assert!(done.stderr.starts_with("error: cannot write "), "{done}");
        assert!(done.stderr.contains(words), "{file:?}: {done}");
    }
    assert_eq!(place.methods("git"), Vec::<String>::new());
}

/// What the call was given is for its owner only, also where another file stood; that one stays until there is
/// something better.
#[test]
fn what_is_kept_replaces_what_stood_there_at_the_end() {
    let place = place("kept_over");
    let file = place.path().join("ask.json");
    let name = file.display().to_string();
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    for (tool, status) in [("echo", 1), ("fail", 1)] {
        let done = place.run_both(&["call", tool, "--save-continuation", &name]);
        assert_eq!(done.status, status, "{done}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        assert!(!is_littered(&place));
    }
    let link = place.path().join("link.json");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let link_name = link.display().to_string();
    for name in [name, link_name] {
        fs::write(&file, "old").unwrap();
        let done = place.run_both(&["call", "ask", "--save-continuation", &name]);
        assert_eq!(done.status, 4, "{done}");
        let kept: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(kept["format"], "mcp-continuation");
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(!is_littered(&place));
    }
}

/// A link may be there before the file: it is the file that is written.
#[test]
fn a_link_to_a_file_that_is_not_there_yet_stays_a_link() {
    let place = place("kept_by_link");
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(to, place.path().join(name)).unwrap();
    };
    fs::create_dir(place.path().join("kept")).unwrap();
    link("kept/next", "link");
    link("../ask.json", "kept/next");
    let file = place.path().join("ask.json");
    for driver in cli_support::DRIVERS {
        let save = ["call", "ask", "--save-continuation", "link"];
        let done = place.run(&[&["--driver", driver][..], &save].concat());
        assert_eq!(done.status, 4, "{done}");
        for link in ["link", "kept/next"] {
            let link = fs::symlink_metadata(place.path().join(link)).unwrap();
            assert!(link.is_symlink());
        }
        let file_type = fs::symlink_metadata(&file).unwrap().file_type();
        assert!(file_type.is_file());
        assert!(!is_littered(&place));
        fs::remove_file(&file).unwrap();
    }
    let plain = place.run(&["call", "ask", "--save-continuation", "./-"]);
    assert_eq!(plain.status, 4, "{plain}");
    assert!(place.path().join("-").is_file());
}

/// A question is not lost with the file that was to keep it.
#[test]
fn a_question_that_cannot_be_kept_is_shown_all_the_same() {
    let place = place("kept_no_more");
    // The directory goes away while the call is made.
    let script = format!("rm -r kept; exec {PROGRAM} fake-server --tools=ask");
    let server = json!({"command": "/bin/sh", "args": ["-c", script], "envAllow": ["PATH"]});
    place.write(&json!({"mcpServers": {"git": server}}).to_string());
    let run = |driver: &str, json: &[&str]| {
        fs::create_dir_all(place.path().join("kept")).unwrap();
        let args = [
            "--driver",
            driver,
            "call",
            "ask",
            "--save-continuation",
            "kept/ask.json",
        ];
        place.run(&[&args, json].concat())
    };
    for driver in cli_support::DRIVERS {
        let people = run(driver, &[]);
        assert_eq!(people.status, 1, "{people}");
        assert!(
            people
                .stderr
                .contains("input: git: name: What is your name?"),
            "{people}"
        );
        assert!(
            people.stderr.contains("error: cannot write kept/ask.json"),
            "{people}"
        );
        assert!(!people.stderr.contains("--resume"), "{people}");
        let program = run(driver, &["--json"]);
        assert_eq!(program.status, 1, "{program}");
        let document = program.json();
        assert_eq!(document["outcome"], "input_required");
        assert!(document["inputRequests"]["name"].is_object(), "{document}");
        let message = document["error"]["message"].as_str().unwrap();
        assert!(
            message.starts_with("cannot write kept/ask.json"),
            "{document}"
        );
    }
}

/// A pipe would be waited for, and a device has no end.
#[test]
fn only_a_regular_file_is_gone_on_with() {
    let place = place("resumed_from");
    let fifo = fifo(&place);
    for file in [&fifo, "/dev/zero", "."] {
        let done = place.run_both(&["call", "--resume", file, "--input", "name={}"]);
        assert_eq!((done.status, done.stdout.as_str()), (2, ""), "{done}");
        assert_eq!(done.stderr.lines().count(), 1, "{done}");
        assert!(done.stderr.contains("not a regular file"), "{done}");
    }
    // Nothing that never ends is read to its end.
    for args in [
        &["call", "echo", "@/dev/zero"][..],
        &["tools", "--config", "/dev/zero"],
    ] {
        let done = place.run(args);
        assert_eq!((done.status, done.stdout.as_str()), (2, ""), "{done}");
        assert!(done.stderr.contains("longer than 67108864 bytes"), "{done}");
    }
}

/// What is advised is an answer, and goes on where the call was kept.
#[test]
fn the_advice_can_be_followed() {
    let place = place("advised");
    let answer = |advice: &str| {
        let start = advice.find("name={").unwrap();
        let end = advice[start..].find('\'').unwrap() + start;
        advice[start..end].replace('…', "Ada")
    };
    let asked = place.run_both(&["call", "ask"]);
    let input = answer(&asked.stderr);
    let done = place.run_both(&["call", "ask", "--input", &input]);
    assert_eq!(
        (done.status, done.stdout.as_str()),
        (0, "Hello, Ada\n"),
        "{done}"
    );

    let kept = place.run_both(&["call", "ask", "--save-continuation", "it's.json"]);
    let command = "`mcp-harness call --resume 'it'\\''s.json' --input 'name=";
    assert!(stable(&kept.stderr).contains(command), "{kept}");
    let resume = ["call", "--resume", "it's.json"];
    let done = place.run_both(&[&resume[..], &["--input", "name={}"]].concat());
    assert_eq!(done.status, 2, "{done}");
    let words = "action must be accept, decline or cancel; give --input 'name=";
    assert!(done.stderr.contains(words), "{done}");
    let done = place.run_both(&[&resume[..], &["--input", &input]].concat());
    assert_eq!(
        (done.status, done.stdout.as_str()),
        (0, "Hello, Ada\n"),
        "{done}"
    );
}

/// An answer that nobody asked for is probably one under a wrong key.
#[test]
fn an_answer_that_nobody_asked_for_is_named() {
    let place = place("unasked");
    let echo = ["call", "echo", r#"{"text":"x"}"#];
    let ada = r#"name={"action":"accept","content":{"name":"Ada"}}"#;
    let unused = |rest: &str| format!("warning: --input {rest}");
    for (args, status, warnings) in [
        (
            &["call", "ask", "--input", "nome={}"][..],
            4,
            vec![unused("nome was not used: the server asked for \"name\"")],
        ),
        (
            &["call", "ask", "--input", "other={}", "--input", ada],
            0,
            vec![unused("other was not used: the server asked for name")],
        ),
        (
            &[&echo[..], &["--input", "k={}", "--input", "k={}"]].concat(),
            0,
            vec![unused("k was not used: the server asked for nothing")],
        ),
        (&["call", "nowhere", "--input", "k={}"], 1, vec![]),
        (&["call", "ask", "--input", ada], 0, vec![]),
    ] {
        for json in [false, true] {
            let args = [args, if json { &["--json"] } else { &[] }].concat();
            let done = place.run_both(&args);
            assert_eq!(done.status, status, "{done}");
            let said: Vec<&str> = done
                .stderr
                .lines()
                .filter(|line| line.starts_with("warning"))
                .collect();
            assert_eq!(said, warnings, "{done}");
        }
    }
}

/// Where no answer can be given, none is asked for.
#[test]
fn reading_takes_no_answers() {
    let asks = r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","requestState":"s","inputRequests":{"k":{"method":"roots/list"}}}}"#;
    let script = json!({"steps": [{"on_each": "resources/read", "emit": asks}]});
    let place = Place::new("asked_read", &[("s", scripted(&script))]);
    let done = place.run_both(&["read", "s/x:y"]);
    assert_eq!(done.status, 4, "{done}");
    assert!(!done.stderr.contains("Repeat"), "{done}");
    assert!(done.stderr.contains("Only `call` takes answers"), "{done}");
}

/// However much a server asks, a person gets a page to read; a program gets it all.
#[test]
fn of_many_questions_the_first_are_shown() {
    let many = |count: usize| {
        let asked = (0..count).map(|n| (format!("k{n:05}"), json!({"method": "roots/list"})));
        let asked: serde_json::Map<String, Value> = asked.collect();
        let result =
            json!({"resultType": "input_required", "requestState": "s", "inputRequests": asked});
        let answer = format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{result}}}"#);
        scripted(&json!({"steps": [{"on_each": "tools/call", "emit": answer}]}))
    };
    let servers = [("few", many(20)), ("many", many(1_000))];
    let place = Place::new("many_questions", &servers);
    let lines = |done: &cli_support::Done| {
        let lines = done.stderr.lines();
        lines.filter(|line| line.starts_with("input: ")).count()
    };
    let few = place.run_both(&["call", "few/echo"]);
    assert_eq!((few.status, lines(&few)), (4, 20), "{few}");
    assert!(!few.stderr.contains(" more"), "{few}");
    let many = place.run_both(&["call", "many/echo", "--input", "zzz={}"]);
    assert_eq!((many.status, lines(&many)), (4, 21), "{many}");
    let more = "input: many: and 980 more; --json shows them all\n";
    assert!(many.stderr.contains(more), "{many}");
    assert!(many.stderr.contains("k00019 and 980 more\n"), "{many}");
    assert!(!many.stderr.contains("k00020"), "{many}");
    let json = place.run_both(&["call", "many/echo", "--json"]).json();
    assert_eq!(json["inputRequests"].as_object().unwrap().len(), 1_000);
}

/// A kept question is asked again as it was the first time, as long as it is not answered; no server is started.
#[test]
fn a_kept_question_is_asked_again() {
    let place = place("asked_again");
    let save = |file| ["call", "ask", "--save-continuation", file];
    let first = place.run_both(&save("it's.json"));
    let first_json = place.run_both(&[&save("b.json")[..], &["--json"]].concat());
    let transcript = place.path().join("git.transcript");
    fs::remove_file(&transcript).unwrap();

    let again = place.run_both(&["call", "--resume", "it's.json"]);
    assert_eq!(again.status, 4, "{again}");
    assert_eq!(stable(&again.to_string()), stable(&first.to_string()));
    let json = place.run_both(&["call", "--resume", "b.json", "--json"]);
    assert_eq!(json.status, 4, "{json}");
    let mut expected = first_json.json();
    // What the server said beside the question is not kept.
    expected.as_object_mut().unwrap().remove("meta");
    assert_eq!(json.json(), expected);

    let other = ["--input", "nome={}", "--save-continuation", "c.json"];
    let other = place.run_both(&[&["call", "--resume", "b.json"][..], &other].concat());
    assert_eq!(other.status, 4, "{other}");
    let unused = "warning: --input nome was not used: the server asked for \"name\"";
    assert!(other.stderr.starts_with(unused), "{other}");
    assert!(other.stderr.contains("call --resume c.json"), "{other}");
    let text = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
    assert_eq!(text("c.json"), text("b.json"));
    assert!(!transcript.exists(), "nothing was sent");
}

/// All that follows a question has the time of the call, not each round anew.
#[test]
fn rounds_share_the_time() {
    let asks = r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","requestState":"s","inputRequests":{"k":{"method":"roots/list"}}}}"#;
    let round = |answer: &str| {
        vec![
            json!({"on": "tools/call"}),
            json!({"sleep_ms": 100}),
            json!(answer),
        ]
    };
    let steps = [vec![round(asks); 6], vec![round("«OK_RESULT»")]]
        .concat()
        .concat();
    let place = Place::new(
        "time_of_rounds",
        &[("s", scripted(&json!({"steps": steps})))],
    );
    let call = |timeout| {
        let args = [
            "call",
            "echo",
            "--input",
            r#"k={"roots":[]}"#,
            "--timeout",
            timeout,
            "--json",
        ];
        // Limits differ by what was left.
        cli_support::DRIVERS.map(|driver| place.run(&[&["--driver", driver][..], &args].concat()))
    };
    for done in call("60s") {
        assert_eq!(done.status, 0, "{done}");
    }
    for done in call("300ms") {
        assert_eq!(done.status, 1, "{done}");
        let error = &done.json()["error"];
        assert_eq!(error["kind"], "timeout", "{done}");
        let remedy = error["remedy"].as_str().unwrap();
        assert!(remedy.contains("--timeout"), "{done}");
    }
}
