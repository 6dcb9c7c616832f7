//! How calls end before they are answered (R40, R41, R90).

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use mcp_proto::error::Cause;
use mcp_proto::{ErrorKind, Options};
use serde_json::json;

use super::expect;
use super::process::Process;
use super::stage::{Stage, call, with_idle_timeout, with_progress};

/// A duration that no scenario lives to see, in milliseconds.
const FOR_EVER_MS: u64 = 600_000;

/// R40: the waiting thread returns at once, and the server is told.
pub(super) fn cancelling_from_another_thread_wakes_whoever_waits(stage: &Stage<'_>) {
    let options = json!({"transcript": stage.file("transcript")});
    let client = stage.connect(vec![stage.peer("a", json!({"options": options}))]);
    let id = client.submit(call("a", "slow", json!({"ms": FOR_EVER_MS})));
    // An answer to a later call: the server has the first one.
    client.echo("a", "after it");
    let (began, waits) = mpsc::channel();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let _ = began.send(());
            client.wait(id)
        });
        let _ = waits.recv();
        client.session.cancel(id);
        let Ok(ended) = waiting.join() else {
            panic!("the wait did not end");
        };
        expect::failed_with(ended, ErrorKind::Cancelled, true);
    });
    client.session.cancel(id);
    client.echo("a", "all the same");
    client.end();
    let messages = stage.received("transcript");
    let called = messages
        .iter()
        .find(|message| message["params"]["name"] == "slow");
    let cancelled: Vec<_> = messages
        .iter()
        .filter(|message| message["method"] == "notifications/cancelled")
        .collect();
    assert_eq!(cancelled.len(), 1, "{messages:?}");
    let ids = (
        called.map(|call| &call["id"]),
        cancelled.first().map(|it| &it["params"]["requestId"]),
    );
    assert_eq!(ids.0, ids.1);
}

/// R41: the error names the setting, and the server is told.
pub(super) fn silence_ends_at_the_idle_timeout(stage: &Stage<'_>) {
    let options = json!({"transcript": stage.file("transcript")});
    let client = stage.connect(vec![stage.peer("a", json!({"options": options}))]);
    let limit = Duration::from_millis(300);
    let slow = call("a", "slow", json!({"ms": FOR_EVER_MS})).with(with_idle_timeout(limit));
    let error = expect::failed_with(client.run(slow), ErrorKind::Timeout, true);
    let awaited = "answer to tools/call".to_owned();
    assert_eq!(
        error.cause,
        Cause::Timeout {
            awaited,
            setting: "timeoutMs",
            limit
        }
    );
    client.echo("a", "all the same");
    assert_eq!(
        client.report_of("a").degraded,
        None,
        "slowness breaks no protocol"
    );
    client.end();
    let methods = stage.received_methods("transcript");
    assert!(
        methods
            .iter()
            .any(|method| method == "notifications/cancelled"),
        "{methods:?}"
    );
}

/// R41: a server that reports progress is not silent, but may not go on for ever either.
pub(super) fn progress_extends_the_idle_timeout_only(stage: &Stage<'_>) {
    let client = stage.connect(vec![stage.modern("a")]);
    let options = Options {
        idle_timeout: Some(Duration::from_millis(1500)),
        ..with_progress()
    };
    let longer_than_idle = json!({"steps": 10, "everyMs": 200});
    let id = client.submit(call("a", "progress", longer_than_idle).with(options.clone()));
    assert_eq!(expect::called(client.wait(id)).text(), "10 steps");

    let limit = Duration::from_millis(600);
    let options = Options {
        absolute_timeout: Some(limit),
        ..options
    };
    let id = client
        .submit(call("a", "progress", json!({"steps": 100_000, "everyMs": 20})).with(options));
    let error = expect::failed_with(client.wait(id), ErrorKind::Timeout, true);
    let awaited = "answer to tools/call".to_owned();
    assert_eq!(
        error.cause,
        Cause::Timeout {
            awaited,
            setting: "absoluteTimeoutMs",
            limit
        }
    );
    let reports = client.session.progress(id);
    assert!(!reports.is_empty());
    assert!(
        reports.is_sorted_by(|a, b| a.progress < b.progress),
        "{reports:?}"
    );
    client.end();
}

/// R90: all in-flight work of that peer fails, and may have been executed; other peers go on.
pub(super) fn a_server_killed_during_a_call_ends_the_call_at_once(stage: &Stage<'_>) {
    let client = stage.connect(vec![stage.modern("doomed")]);
    let doomed = stage.processes();
    let calls: Vec<_> = (0..3)
        .map(|_| client.submit(call("doomed", "slow", json!({"ms": FOR_EVER_MS}))))
        .collect();
    client.echo("doomed", "after them");
    doomed.iter().for_each(Process::kill);
    for id in calls {
        let error = expect::failed_with(client.wait(id), ErrorKind::Closed, true);
        assert!(error.to_string().contains("signal 9"), "{error}");
    }
    client.end();
}

/// R90: the exit status and the last words tell why.
pub(super) fn a_server_that_exits_during_a_call_says_how(stage: &Stage<'_>) {
    // As much as a pipe holds: it is all there when the process is gone, and takes a while to be read.
    let steps = json!([
        {"on": "tools/call"},
        {"stderr_bytes": 60_000},
        {"stderr": "\nout of disk\n"},
        {"exit": 3},
    ]);
    let client = stage.connect(vec![stage.steps("dying", steps), stage.modern("good")]);
    let ended = client.run(call("dying", "echo", json!({})));
    let error = expect::failed_with(ended, ErrorKind::Closed, true).to_string();
    assert!(
        error.contains("status 3") && error.contains("out of disk"),
        "{error}"
    );
    client.echo("good", "all the same");
    client.end();
}
