//! Leading, following, waiting, cancelling.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use mcp_proto::error::Cause;
use mcp_proto::{Options, Outcome};

use super::{LONG, alone, among_others, answered, call, cat, client, eventually, facts, shell};
use crate::PendingEvent;

/// A server that answers `hold` never, and everything else at once.
const HOLDS: &str = "while read id text; do [ \"$text\" = hold ] || echo \"$id $text\"; done";

fn cancelled(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed(error) if error.cause == Cause::Cancelled)
}

#[test]
fn calls_in_a_row_are_answered() {
    let _process = among_others();
    let client = client([cat()]);
    for number in 0..2_000 {
        let text = format!("call {number}");
        assert_eq!(answered(&client.run(call(&text)).unwrap()), text);
    }
}

/// Every thread leads, follows and is handed the lead many times; nobody hangs (R1), nobody gets
/// another's answer.
#[test]
fn sixty_four_threads_call_three_servers() {
    let _process = among_others();
    let client = client([cat(), cat(), cat()]);
    let start = Barrier::new(64);
    thread::scope(|scope| {
        for number in 0..64_u32 {
            let (client, start) = (&client, &start);
            scope.spawn(move || {
                start.wait();
                for round in 0..100 {
                    let text = format!("{number}-{round}");
                    let operation = call(&text).on((number % 3).to_string());
                    assert_eq!(answered(&client.run(operation).unwrap()), text);
                }
            });
        }
    });
    client.close();
}

/// The pauses are around the keeper's patience, so that the lead goes to and fro.
#[test]
fn calls_at_all_paces_are_answered() {
    let _process = among_others();
    let client = client([cat()]);
    for pause in (0..120).map(|step| Duration::from_millis(step % 40)) {
        thread::sleep(pause);
        assert_eq!(answered(&client.run(call("hello")).unwrap()), "hello");
    }
}

/// One message larger than all pipes on the way, with others behind and before it.
#[test]
fn a_large_message_does_not_deadlock() {
    let _process = among_others();
    let client = client([cat()]);
    let large = "x".repeat(3_000_000);
    let first = client.submit(call(&large)).unwrap();
    let second = client.submit(call("small")).unwrap();
    assert_eq!(answered(&second.wait()), "small");
    assert!(answered(&first.wait()) == large);
}

#[test]
fn any_thread_can_cancel_what_leader_and_follower_wait_for() {
    let _process = among_others();
    let client = client([shell(HOLDS)]);
    let held: Vec<_> = (0..8)
        .map(|_| client.submit(call("hold")).unwrap())
        .collect();
    let ids: Vec<_> = held.iter().map(crate::Pending::id).collect();
    thread::scope(|scope| {
        let waits: Vec<_> = held
            .into_iter()
            .map(|held| scope.spawn(|| held.wait()))
            .collect();
        thread::sleep(Duration::from_millis(60));
        for id in ids {
            client.cancel(id);
            client.cancel(id);
        }
        for wait in waits {
            assert!(cancelled(&wait.join().unwrap().outcome));
        }
    });
    assert_eq!(answered(&client.run(call("alive")).unwrap()), "alive");
}

#[test]
fn a_dropped_operation_is_cancelled_and_its_answer_ignored() {
    let _process = among_others();
    let client = client([shell(
        "read a; read b; echo \"$a\"; echo \"$b\"; exec sleep 60",
    )]);
    let dropped = client.submit(call("first")).unwrap();
    let id = dropped.id();
    drop(dropped);
    assert!(client.shared().with(|state| !state.slots.contains_key(&id)));
    assert_eq!(answered(&client.run(call("second")).unwrap()), "second");
}

#[test]
fn a_wait_can_end_early_and_go_on() {
    let _process = among_others();
    let client = client([shell("read a; sleep 0.1; echo \"$a\"; exec sleep 60")]);
    let pending = client.submit(call("slow")).unwrap();
    assert_eq!(pending.wait_timeout(Duration::ZERO), None);
    assert_eq!(pending.wait_timeout(Duration::from_millis(5)), None);
    let ended = pending.wait_timeout(LONG).unwrap();
    assert_eq!(answered(&ended), "slow");
    assert_eq!(pending.next_event(), None);
    assert!(
        matches!(pending.wait().outcome, Outcome::Failed(error) if matches!(error.cause, Cause::Usage(_)))
    );
}

/// A deadline passes whether its caller leads, follows or does not wait at all (R40).
#[test]
fn deadlines_pass_for_leader_follower_and_idle() {
    let _process = among_others();
    let client = client([shell(HOLDS)]);
    let options = Options {
        absolute_timeout: Some(Duration::from_millis(50)),
        ..Options::default()
    };
    let late = || call("hold").with(options.clone());
    thread::scope(|scope| {
        let waits: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| client.run(late()).unwrap()))
            .collect();
        for wait in waits {
            let ended = wait.join().unwrap();
            assert!(matches!(ended.outcome, Outcome::Failed(error) if error.may_have_executed()));
        }
    });
    // The keeper leads by now and sleeps for ever, but for the next deadline.
    thread::sleep(Duration::from_millis(60));
    let pending = client.submit(late()).unwrap();
    let over = || {
        client
            .shared()
            .with(|state| state.slots[&pending.id()].over)
    };
    eventually("the deadline of an operation that nobody waits for", over);
}

#[test]
fn progress_comes_before_the_end() {
    let _process = among_others();
    let client = client([shell(
        "read id text; echo \"% $id\"; echo \"% $id\"; echo \"$id $text\"; read x",
    )]);
    let pending = client.submit(call("work")).unwrap();
    let events: Vec<_> = std::iter::from_fn(|| pending.next_event()).collect();
    let names = events.iter().map(|event| match event {
        PendingEvent::Progress(progress) => progress.progress.to_string(),
        PendingEvent::Ended(ended) => answered(ended).to_owned(),
    });
    assert_eq!(names.collect::<Vec<_>>(), ["1", "1", "work"]);
}

#[test]
fn a_listener_hears_and_ends() {
    let _process = among_others();
    let client = client([shell(
        "read id text; echo '* one'; echo '* two'; echo \"$id $text\"; read x",
    )]);
    let mut listener = client.listen(None).unwrap();
    assert_eq!(listener.next_timeout(Duration::ZERO), None);
    let heard = thread::scope(|scope| {
        let heard = scope.spawn(|| [listener.next().unwrap(), listener.next().unwrap()]);
        client.run(call("go")).unwrap();
        heard.join().unwrap()
    });
    assert_eq!(
        heard.map(|notification| notification.method),
        ["one", "two"]
    );
    assert_eq!(listener.finish().unwrap(), 7);
    let mut cut = client.listen(None).unwrap();
    client.cancel(cut.id());
    assert_eq!(cut.next(), None);
    assert!(cut.finish().is_err());
}

/// Output waits in the pipe while the core does not want it, and comes when it does (back-pressure).
#[test]
fn a_link_is_read_only_while_the_core_wants_to() {
    let _process = among_others();
    let client = client([shell(
        "echo note early; read id text; echo \"$id $text\"; read x",
    )]);
    client.shared().with(|state| state.core.muted = true);
    let pending = client.submit(call("hello")).unwrap();
    let already = facts(&client);
    assert_eq!(pending.wait_timeout(Duration::from_millis(100)), None);
    assert_eq!(facts(&client), already);
    thread::scope(|scope| {
        let wait = scope.spawn(|| pending.wait());
        thread::sleep(Duration::from_millis(20));
        client.shared().with(|state| state.core.muted = false);
        assert_eq!(answered(&wait.join().unwrap()), "hello");
    });
    assert_eq!(facts(&client), ["note early"]);
}

/// Closing ends every wait, on every thread, with exactly one outcome each.
#[test]
fn close_ends_the_waits_of_all_threads() {
    let _process = among_others();
    let client = client([shell(HOLDS), cat()]);
    thread::scope(|scope| {
        let wait = || client.run(call("hold")).unwrap();
        let waits: Vec<_> = (0..16).map(|_| scope.spawn(wait)).collect();
        eventually("all wait", || {
            client.shared().with(|state| state.slots.len() == 16)
        });
        let closes: Vec<_> = (0..3).map(|_| scope.spawn(|| client.close())).collect();
        closes.into_iter().for_each(|close| close.join().unwrap());
        let ended: Vec<_> = waits.into_iter().map(|wait| wait.join().unwrap()).collect();
        assert!(ended.iter().all(|ended| cancelled(&ended.outcome)));
        let ids: BTreeSet<_> = ended.iter().map(|ended| ended.operation).collect();
        assert_eq!(ids.len(), 16);
    });
}

/// The leader's answer comes first, and nobody else calls: the follower has to lead to get its own. The
/// keeper is no help, for it waits until told.
#[test]
fn the_lead_is_handed_to_a_waiting_follower() {
    let _process = among_others();
    let script = "read a; read b; sleep 0.1; echo \"$a\"; sleep 0.1; echo \"$b\"; read x";
    let client = client([shell(script)]);
    thread::scope(|scope| {
        let first = scope.spawn(|| client.run(call("first")).unwrap());
        let asleep = || client.shared().with(|state| state.leader_sleeps_for_ever());
        eventually("the first leads", asleep);
        thread::sleep(Duration::from_millis(50));
        assert_eq!(answered(&client.run(call("second")).unwrap()), "second");
        assert_eq!(answered(&first.join().unwrap()), "first");
    });
}

/// Nothing to do and no deadline: no thread of ours runs, not even now and then, whatever it was
/// woken for before.
#[test]
fn an_idle_client_does_not_wake_up() {
    let _process = alone();
    let client = client([cat(), shell("exec sleep 60"), shell("exit 0")]);
    let asleep = || client.shared().with(|state| state.leader_sleeps_for_ever());
    for _ in 0..3 {
        client.run(call("hello")).unwrap();
        eventually("the keeper leads", asleep);
    }
    eventually("the exit", || {
        facts(&client).iter().any(|fact| fact.contains("exited"))
    });
    eventually("the keeper leads", asleep);
    let before = eventually_steady();
    assert!(
        before.len() >= 3,
        "the keeper and a thread for each child: {before:?}"
    );
    thread::sleep(Duration::from_millis(150));
    assert_eq!(time_on_processor(), before);
}

/// What the driver's threads have used once they are all asleep.
fn eventually_steady() -> Vec<String> {
    let mut last = Vec::new();
    eventually("all threads sleep", || {
        thread::sleep(Duration::from_millis(20));
        let now = time_on_processor();
        let steady = now == last;
        last = now;
        steady
    });
    last
}

/// How long each of the driver's threads has run, and how often.
fn time_on_processor() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let file = |path: &std::path::Path, name| std::fs::read_to_string(path.join(name)).ok();
    let ours = tasks
        .map(|task| task.path())
        .filter(|path| file(path, "comm").is_some_and(|name| name.starts_with("mcp-")));
    ours.filter_map(|path| file(&path, "schedstat")).collect()
}

#[test]
fn handles_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<crate::Client>();
    shared::<crate::Pending>();
    shared::<crate::Listener>();
}
