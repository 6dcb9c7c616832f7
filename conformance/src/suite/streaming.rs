//! Streamed calls (R32, R40).

use std::sync::mpsc;
use std::thread;

use mcp_proto::continuation::StreamResult;
use mcp_proto::wire::Json;
use mcp_proto::{Ended, Operation, PeerConfig, Reply};
use serde_json::{Value, json};

use super::expect;
use super::stage::Stage;

const CHECKPOINT: &str = "example.com/checkpoint";

/// A piece of the text, with a checkpoint token where there is one.
fn piece(progress: u32, text: &str, token: Option<&str>) -> Value {
    let meta = token.map_or_else(String::new, |token| {
        format!(r#","_meta":{{"{CHECKPOINT}":"{token}"}}"#)
    });
    json!(format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":$PTOKEN,"progress":{progress},"message":"{text}"{meta}}}}}"#
    ))
}

fn answer(text: &str) -> Value {
    json!(format!(
        r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"resultType":"complete","content":[{{"type":"text","text":"{text}"}}]}}}}"#
    ))
}

/// A peer whose tool may run twice and whose checkpoints are known.
fn resumable(mut peer: PeerConfig) -> PeerConfig {
    peer.idempotent_tools.insert("echo".into());
    peer.checkpoint_meta_key = Some(CHECKPOINT.into());
    peer
}

fn stream(peer: &str) -> Operation {
    let arguments = Json::from(json!({"text": "hi"}));
    Operation::call_streaming("echo", Some(arguments)).on(peer)
}

#[track_caller]
fn streamed(ended: Ended) -> StreamResult {
    match expect::complete(ended) {
        Reply::Stream(result) => result,
        reply => panic!("expected the result of a stream, got {reply:?}"),
    }
}

/// R32: what is told as it comes adds up to the result, and the whole answer is there too.
pub(super) fn a_streamed_text_adds_up(stage: &Stage<'_>) {
    let steps = json!([{"on": "tools/call"}, piece(1, "one ", None), piece(2, "two ", None),
        answer("one two three"), {"hang": true}]);
    let client = stage.connect(vec![stage.steps("a", steps)]);
    let id = client.submit(stream("a"));
    let result = streamed(client.wait(id));
    assert_eq!(result.text, "one two three");
    assert_eq!((result.cancelled, result.attempts), (false, 1));
    assert_eq!(
        result.answer.map(|answer| answer.text()).as_deref(),
        Some("one two three")
    );
    assert_eq!(client.session.text(id), "one two three");
    client.end();
}

/// R32, R90: a server that dies in the middle is resumed, in its next life, from the last checkpoint.
pub(super) fn a_stream_outlives_its_server(stage: &Stage<'_>) {
    let script = json!({
        "options": {"respawn_state": stage.file("lives"), "transcript": stage.file("transcript")},
        "steps": [{"on": "tools/call"}, piece(1, "one ", Some("t1")), piece(2, "lost", None), {"exit": 1}],
        "respawn": [{"on": "tools/call"}, piece(1, "two", None), answer("one two"), {"hang": true}],
    });
    let client = stage.connect(vec![resumable(stage.peer("a", script))]);
    let id = client.submit(stream("a"));
    let result = streamed(client.wait(id));
    assert_eq!((&*result.text, result.attempts), ("one two", 2));
    assert_eq!(client.session.text(id), "one two");
    let diagnosis = client.diagnosis_of("a");
    assert_eq!(
        (diagnosis.counters.starts, diagnosis.counters.retries),
        (2, 1)
    );
    client.end();
    let messages = stage.received("transcript");
    let calls = messages
        .iter()
        .filter(|message| message["method"] == "tools/call");
    let tokens: Vec<&Value> = calls
        .map(|call| &call["params"]["_meta"][CHECKPOINT])
        .collect();
    assert_eq!(tokens.last(), Some(&&json!("t1")), "{messages:?}");
}

/// R40: cancelled from another thread, whoever waits gets the text so far.
pub(super) fn cancelling_a_stream_keeps_its_text(stage: &Stage<'_>) {
    let steps = json!([{"on": "tools/call"}, piece(1, "half", None),
        {"on": "tools/call"}, answer("after it"), {"hang": true}]);
    let client = stage.connect(vec![stage.steps("a", steps)]);
    let id = client.submit(stream("a"));
    // An answer to a later call: the piece has come.
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
        let result = streamed(ended);
        assert_eq!((&*result.text, result.cancelled), ("half", true));
    });
    assert_eq!(client.session.text(id), "half");
    assert!(client.diagnosis_of("a").report.degraded.is_none());
    client.end();
}
