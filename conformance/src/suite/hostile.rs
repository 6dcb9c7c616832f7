//! Servers that break the protocol (R1, R2, R60, R61, R62).

use mcp_proto::report::PeerState;
use serde_json::{Value, json};

use super::stage::{Stage, call};

/// R62: what a launcher prints before the server speaks is kept for diagnosis, and forgiven.
pub(super) fn noise_before_the_first_message_is_tolerated(stage: &Stage<'_>) {
    let banner = json!({"era": "probe", "steps": [
        "Welcome to the server!", "", "[info] listening",
        {"on": "server/discover"}, "«GOOD_DISCOVER»",
    ]});
    let client = stage.connect(vec![stage.peer("chatty", banner)]);
    assert_eq!(client.call("chatty", "echo", json!({})).text(), "ok");
    let diagnosis = client.diagnosis_of("chatty");
    assert_eq!(diagnosis.report.degraded, None);
    assert_eq!(
        diagnosis.noise,
        ["Welcome to the server!", "[info] listening"]
    );
    client.end();
}

/// R61, R62: after it has spoken, text on its output breaks the protocol; calls still work.
pub(super) fn noise_after_the_first_message_degrades(stage: &Stage<'_>) {
    let steps = json!([{"on": "tools/call"}, "debug: called", "«OK_RESULT»"]);
    let client = stage.connect(vec![stage.steps("chatty", steps)]);
    assert_eq!(client.call("chatty", "echo", json!({})).text(), "ok");
    let diagnosis = client.diagnosis_of("chatty");
    assert!(diagnosis.report.degraded.is_some());
    assert_eq!(diagnosis.noise, ["debug: called"]);
    assert_eq!(diagnosis.report.state, PeerState::Ready);
    client.end();
}

/// R2: whatever a server sends or does, the good one beside it does not notice.
pub(super) fn hostile_peers_do_not_touch_a_good_one(stage: &Stage<'_>) {
    let ever = |emit: Value| json!({"loop": {"every_ms": 1, "emit": emit, "count": 2000}});
    let nested = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let hostile: [(&str, Value); 8] = [
        (
            "binary",
            json!([{"on": "tools/call"}, ever(json!({"raw_b64": "AAH//gAKgICACv8K"}))]),
        ),
        (
            "endless",
            json!([{"on": "tools/call"}, {"repeat": {"text": "no newline ", "count": 400_000}}, {"hang": true}]),
        ),
        (
            "long",
            json!([{"on": "tools/call"}, {"repeat": {"text": "{\"jsonrpc\":", "count": 200_000}}, "", {"hang": true}]),
        ),
        (
            "deep",
            json!([{"on": "tools/call"}, format!("{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{nested}}}"), {"hang": true}]),
        ),
        (
            "foreign",
            json!([{"on": "tools/call"}, ever(json!("{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,\"result\":{}}"))]),
        ),
        (
            "asking",
            json!([{"on": "tools/call"}, ever(json!("{\"jsonrpc\":\"2.0\",\"id\":$N,\"method\":\"sampling/createMessage\",\"params\":{}}"))]),
        ),
        (
            "mute",
            json!([{"on": "tools/call"}, {"stop_reading": true}, {"hang": true}]),
        ),
        (
            "gone",
            json!([{"on": "tools/call"}, {"close_stdin_read": true}, {"exit": 1}]),
        ),
    ];
    let mut peers = vec![stage.modern("good")];
    for (name, steps) in hostile.clone() {
        let mut peer = stage.steps(name, steps);
        peer.limits.line_bytes = 64 << 10;
        peers.push(peer);
    }
    let client = stage.connect(peers);
    let attacks: Vec<_> = hostile
        .iter()
        .map(|(name, _)| client.submit(call(name, "echo", json!({"text": "?"}))))
        .collect();
    for number in 0..200 {
        client.echo("good", &format!("call {number}"));
    }
    let good = client.diagnosis_of("good");
    assert_eq!(good.report.state, PeerState::Ready);
    assert_eq!(good.report.degraded, None);
    assert_eq!((good.counters.errors, good.counters.noise_lines), (0, 0));
    attacks.iter().for_each(|id| client.session.cancel(*id));
    for id in attacks {
        // An answer, an error or a cancellation: but an end.
        let _ = client.wait(id);
    }
    client.echo("good", "to the last");
    client.end();
}
