//! Much at once, and in both directions (R1, R42, R100).

use std::time::Duration;

use mcp_proto::{ErrorKind, Operation, Reply, Request};
use serde_json::json;

use super::expect;
use super::process::until;
use super::stage::{PATIENCE, Stage, call, with_idle_timeout};

const MEGABYTE: usize = 1 << 20;

/// R81: every answer finds its call, in whatever order the answers come.
pub(super) fn sixty_four_calls_are_answered_out_of_order(stage: &Stage<'_>) {
    let client = stage.connect(vec![stage.modern("a")]);
    let calls: Vec<_> = (0..64)
        .map(|number| {
            let wait = (64 - number) * 5;
            (wait, client.submit(call("a", "slow", json!({"ms": wait}))))
        })
        .collect();
    for (wait, id) in calls {
        let text = expect::called(client.wait(id)).text();
        assert_eq!(text, format!("done after {wait} ms"));
    }
    client.end();
}

pub(super) fn a_result_of_four_megabytes_arrives(stage: &Stage<'_>) {
    let client = stage.connect(vec![stage.modern("a")]);
    let text = client
        .call("a", "big", json!({"bytes": 4 * MEGABYTE}))
        .text();
    assert_eq!(text.len(), 4 * MEGABYTE);
    assert!(text.bytes().all(|byte| byte == b'x'));
    client.end();
}

pub(super) fn an_argument_of_four_megabytes_arrives(stage: &Stage<'_>) {
    let client = stage.connect(vec![stage.modern("a")]);
    let text = pattern(4 * MEGABYTE);
    let answer = client.call("a", "echo", json!({"text": text})).text();
    assert!(
        answer == text,
        "{} bytes came back, not the same ones",
        answer.len()
    );
    client.end();
}

/// The server does not read while it writes: a client that writes without reading would wait for ever.
pub(super) fn both_pipes_may_be_full_at_once(stage: &Stage<'_>) {
    let client = stage.connect(vec![stage.modern("a")]);
    let texts: Vec<String> = (1..=16).map(|number| pattern(number * 50_000)).collect();
    let calls: Vec<_> = texts
        .iter()
        .map(|text| client.submit(call("a", "echo", json!({"text": text}))))
        .collect();
    for (text, id) in texts.iter().zip(calls) {
        let answer = expect::called(client.wait(id)).text();
        assert!(answer == *text, "{} bytes of {}", answer.len(), text.len());
    }
    client.end();
}

/// R41: a write that never completes is a deadline, the flood is read, and nobody else notices.
pub(super) fn a_server_that_stops_reading_while_it_writes_blocks_nobody(stage: &Stage<'_>) {
    let padding = "x".repeat(400);
    let line = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"{padding}"}}}}"#
    );
    let steps = json!([
        {"on": "tools/call"},
        {"stop_reading": true},
        {"repeat_line": {"text": line, "count": 10_000}},
        {"hang": true},
    ]);
    let client = stage.connect(vec![stage.steps("deaf", steps), stage.modern("good")]);
    let limit = with_idle_timeout(Duration::from_secs(1));
    let small = client.submit(call("deaf", "echo", json!({"text": "?"})).with(limit.clone()));
    let large = json!({"text": pattern(MEGABYTE)});
    let large = client.submit(call("deaf", "echo", large).with(limit));
    client.echo("good", "meanwhile");
    for id in [small, large] {
        expect::failed_with(client.wait(id), ErrorKind::Timeout, true);
    }
    let is_read = || client.diagnosis_of("deaf").counters.bytes_received > 4_000_000;
    assert!(until(PATIENCE, is_read), "the flood was not read");
    client.echo("good", "afterwards");
    client.end();
}

/// R100: standard error is always drained; its end is kept.
pub(super) fn a_flood_on_standard_error_blocks_no_call(stage: &Stage<'_>) {
    let steps = json!([
        {"on": "tools/call"},
        {"stderr_bytes": 2 * MEGABYTE},
        {"stderr": "\nthe last line\n"},
        "«OK_RESULT»",
    ]);
    let client = stage.connect(vec![stage.steps("loud", steps)]);
    assert_eq!(client.call("loud", "echo", json!({})).text(), "ok");
    let has_the_end = || {
        client
            .diagnosis_of("loud")
            .stderr
            .last()
            .is_some_and(|line| line == "the last line")
    };
    assert!(
        until(PATIENCE, has_the_end),
        "{:?}",
        client.diagnosis_of("loud").stderr
    );
    let kept: usize = client
        .diagnosis_of("loud")
        .stderr
        .iter()
        .map(String::len)
        .sum();
    assert!(kept <= 16 << 10, "{kept} bytes are kept");
    client.end();
}

/// R1: a server whose notifications nobody takes is not read on; the others are, and it is again once
/// they are taken.
pub(super) fn notifications_that_nobody_takes_block_no_other_peer(stage: &Stage<'_>) {
    const ROUNDS: usize = 30;
    const EACH: usize = 100;
    const LIMIT: usize = 100;
    /// Far more than the limit and one read, far less than everything.
    const SOME_BYTES: u64 = 300_000;
    let meta = r#""_meta":{"io.modelcontextprotocol/subscriptionId":$SUBID}"#;
    let acknowledged = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{{}},{meta}}}}}"#
    );
    let round: Vec<String> = (0..EACH)
        .map(|number| format!(r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"fake://notes/$N/{number}",{meta}}}}}"#))
        .collect();
    let steps = json!([
        {"on": "subscriptions/listen"},
        acknowledged,
        {"loop": {"every_ms": 1, "emit": round, "count": ROUNDS}},
    ]);
    let mut loud = stage.steps("loud", steps);
    loud.limits.notifications = LIMIT;
    let client = stage.connect(vec![stage.modern("good"), loud]);
    let listening = client.submit(Operation::new(Request::Listen).on("loud"));
    let received = || client.diagnosis_of("loud").counters.bytes_received;
    assert!(until(PATIENCE, || received() > LIMIT as u64 * 100));
    for _ in 0..20 {
        client.echo("good", "meanwhile");
    }
    assert!(!until(Duration::from_millis(300), || received() > SOME_BYTES));
    let mut heard = Vec::new();
    while heard.len() < ROUNDS * EACH {
        let more = client.session.notifications(listening, PATIENCE);
        assert!(!more.is_empty(), "only {} came", heard.len());
        heard.extend(more);
    }
    let uris: std::collections::BTreeSet<String> = heard
        .iter()
        .filter_map(|heard| heard.params.as_ref())
        .filter_map(|params| Some(expect::value(params)["uri"].as_str()?.to_owned()))
        .collect();
    assert_eq!(uris.len(), ROUNDS * EACH);
    assert!(received() > SOME_BYTES);
    client.session.finish(listening);
    let notifications = (ROUNDS * EACH) as u64;
    assert_eq!(
        expect::complete(client.wait(listening)),
        Reply::Listened { notifications }
    );
    client.end();
}

/// A text of so many bytes whose parts differ.
fn pattern(bytes: usize) -> String {
    let letters = (0..bytes).map(|at| char::from(b'a' + (at / 7 % 26) as u8));
    letters.collect()
}
