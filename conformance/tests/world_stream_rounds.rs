//! Streamed calls that are asked about: between two rounds of questions there is no stream, and what befalls the
//! server meanwhile is made up for afterwards (R30, R32, R33, R34, R41).

mod stream_support;
mod world_support;

use conformance::world::{Fault, World, millis};
use mcp_proto::types::{InputResponse, InputResponses};
use mcp_proto::{ErrorKind, News, Operation, OperationId, Outcome, PeerConfig, Ran};
use serde_json::Value;
use stream_support::*;
use world_support::*;

/// A question in answer to the call.
const ASKS: &str = r#""{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"resultType\":\"input_required\",\"inputRequests\":{\"name\":{\"method\":\"elicitation/create\",\"params\":{\"message\":\"Who?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}}},\"requestState\":\"s\"}}""#;

/// Asks nothing, and wants to be asked again.
const WAITS: &str = r#""{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"resultType\":\"input_required\",\"requestState\":\"s\"}}""#;

fn interactive() -> Operation {
    with(|options| options.interactive = true)
}

/// A peer whose key travels and that is not said to be idempotent.
fn keyed(peer: &mut PeerConfig) {
    peer.idempotent_tools.clear();
    peer.idempotency_meta_key = Some(KEY.into());
}

/// Runs until the application is asked.
fn asked(world: &mut World) {
    until(world, |news| {
        matches!(news, News::InputNeeded { .. }).then_some(())
    });
}

fn decline(world: &mut World, id: OperationId) {
    let answer = InputResponses::new().with("name", InputResponse::decline());
    world.answer(id, &answer).unwrap();
}

fn keys(sent: &[Value]) -> Vec<&str> {
    sent.iter()
        .map(|call| call["params"]["_meta"][KEY].as_str().unwrap())
        .collect()
}

/// Nothing happens for a long time, neither to the stream nor on the wire.
#[track_caller]
fn assert_still(world: &mut World) {
    let (sent, news) = (calls(world).len(), world.take_news());
    world.run_for(millis(3_600_000));
    assert_eq!(calls(world).len(), sent, "after {news:?}");
    assert!(
        world
            .take_news()
            .iter()
            .all(|news| matches!(news, News::PeerChanged { .. }))
    );
}

/// R30, R32: a question is not a drop: however long the answer takes, nothing is sent and no text is told. The
/// next round goes on in the same stream, with the answers, under the same key.
#[test]
fn r30_a_round_goes_on_in_the_same_stream() {
    let script = format!(
        r#"[{{"on":"tools/call"}},{},{ASKS},{{"on":"tools/call"}},{},{},{HANGS}]"#,
        piece(1, "one ", None),
        piece(1, "two", None),
        answer(&["one two"]),
    );
    let mut world = answering(keyed, &script, "[]");
    let id = world.submit(interactive()).unwrap();
    asked(&mut world);
    assert_still(&mut world);
    decline(&mut world, id);
    let result = completes(&mut world, id);
    assert_eq!((&*result.text, result.attempts), ("one two", 1));
    let sent = calls(&world);
    let [first, second] = &sent[..] else {
        panic!("{sent:?}")
    };
    assert_eq!(
        second["params"]["inputResponses"]["name"]["action"],
        "decline"
    );
    assert_eq!(second["params"]["requestState"], "s");
    assert_eq!(keys(&sent)[0], keys(&sent)[1]);
    assert_eq!(first["params"]["arguments"], second["params"]["arguments"]);
    assert_eq!((counters(&world).retries, degraded(&world)), (0, None));
    assert!(!close(world).transcript().contains("rewind"));
}

/// R30, R32, R34: the server dies between two rounds. Nothing was under way, so that no attempt is lost; the
/// answered round is sent to its next life, under the same key, and its stream goes on from there.
#[test]
fn r30_a_server_that_dies_between_rounds_is_answered_in_its_next_life() {
    let first = steps(&[&piece(1, "one ", Some("t1")), ASKS, HANGS]);
    let later = steps(&[&piece(1, "two", None), &answer(&["one two"]), HANGS]);
    for answered_first in [true, false] {
        let mut world = answering(keyed, &first, &later);
        let id = world.submit(interactive()).unwrap();
        asked(&mut world);
        world.inject("srv", Fault::Kill);
        if answered_first {
            world.run_for(millis(10));
        } else {
            assert_still(&mut world);
        }
        decline(&mut world, id);
        let result = completes(&mut world, id);
        assert_eq!((&*result.text, result.attempts), ("one two", 1));
        let sent = calls(&world);
        assert_eq!(sent.len(), 2);
        assert_eq!(keys(&sent)[0], keys(&sent)[1]);
        assert_eq!(sent[1]["params"]["requestState"], "s");
        assert_eq!(degraded(&world), None);
        close(world);
    }
}

/// R32, R33, R34: the stream of a later round drops. It is resumed under the same key where the tool may run
/// twice, with the answers of its round and from its checkpoint; else it is not.
#[test]
fn r32_a_drop_in_a_later_round_is_resumed_under_the_same_key() {
    let first = format!(
        r#"[{{"on":"tools/call"}},{},{ASKS},{{"on":"tools/call"}},{},{},{DIES}]"#,
        piece(1, "one ", None),
        piece(1, "two ", Some("t2")),
        piece(2, "lost", None),
    );
    let later = steps(&[&piece(1, "three", None), &answer(&["one two three"]), HANGS]);
    type Adapt = fn(&mut PeerConfig);
    let cases: [(Adapt, bool); 3] = [
        (keyed, true),
        (|peer| peer.idempotency_meta_key = Some(KEY.into()), true),
        (|peer| peer.idempotent_tools.clear(), false),
    ];
    for (adapt, resumes) in cases {
        let mut world = answering(adapt, &first, &later);
        let id = world.submit(interactive()).unwrap();
        asked(&mut world);
        decline(&mut world, id);
        let outcome = world.run_until_ended(id).unwrap().outcome;
        let sent = calls(&world);
        if !resumes {
            let Outcome::Failed(error) = outcome else {
                panic!("{outcome:?}")
            };
            assert_eq!(
                (error.kind(), error.ran),
                (ErrorKind::RetryRefused, Ran::Maybe)
            );
            assert_eq!(error.partial_text(), Some("one two lost"));
            assert_eq!((error.checkpoint_token(), sent.len()), (Some("t2"), 2));
            close(world);
            continue;
        }
        let result = streamed(&world, outcome);
        assert_eq!((&*result.text, result.attempts), ("one two three", 2));
        let [_, (round, none), (again, token)] = [0, 1, 2].map(|at| meta(&sent[at]));
        assert_eq!((none, token.as_deref()), (None, Some("t2")));
        assert_eq!(round, again);
        assert_eq!(
            sent[1]["params"]["inputResponses"],
            sent[2]["params"]["inputResponses"]
        );
        let keys = keys(&sent);
        assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
        close(world);
    }
}

/// R30, R32: a server that only wants to be asked again is, once for each answer and not again and again.
#[test]
fn r30_a_silent_round_is_sent_once() {
    let script = format!(
        r#"[{{"on":"tools/call"}},{},{WAITS},{{"on":"tools/call"}},{},{HANGS}]"#,
        piece(1, "one ", None),
        answer(&["one two"]),
    );
    let mut world = answering(keyed, &script, "[]");
    let id = world.submit(stream()).unwrap();
    let result = completes(&mut world, id);
    assert_eq!((&*result.text, result.attempts), ("one two", 1));
    assert_eq!(calls(&world).len(), 2);
    close(world);
}

/// R32, R40, R41: between two rounds a stream is cancelled at once, and its deadline stands still.
#[test]
fn r40_a_stream_is_cancelled_between_rounds() {
    let script = steps(&[&piece(1, "one ", None), ASKS, HANGS]);
    let mut world = answering(|peer| peer.absolute_timeout = millis(2_000), &script, "[]");
    let id = world.submit(interactive()).unwrap();
    asked(&mut world);
    assert_still(&mut world);
    world.cancel(id);
    let result = completes(&mut world, id);
    assert_eq!((&*result.text, result.cancelled), ("one ", true));
    assert!(
        !close(world)
            .sent_to("srv")
            .contains("notifications/cancelled")
    );
}

/// R21, R30: a tool that has become another one between two rounds is not called in the next one.
#[test]
fn r21_a_later_round_of_a_quarantined_tool_is_not_sent() {
    let list = |description: &str| {
        let tool = format!(
            r#"{{\"name\":\"echo\",\"inputSchema\":{{}},\"description\":\"{description}\"}}"#
        );
        format!(
            r#"{{"on":"tools/list"}},"{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{{\"resultType\":\"complete\",\"tools\":[{tool}]}}}}""#
        )
    };
    for (later, sent) in [("first", 2), ("second", 1)] {
        let script = format!(
            r#"[{},{{"on":"tools/call"}},{},{ASKS},{},{{"on":"tools/call"}},{},{HANGS}]"#,
            list("first"),
            piece(1, "one ", None),
            list(later),
            answer(&["one two"]),
        );
        let mut world = answering(|peer| peer.pin_tools = true, &script, "[]");
        let id = world.submit(interactive()).unwrap();
        asked(&mut world);
        run(&mut world, Operation::list_tools().on("srv"));
        decline(&mut world, id);
        let outcome = world.run_until_ended(id).unwrap().outcome;
        let refused = matches!(&outcome, Outcome::Failed(error)
            if (error.kind(), error.ran) == (ErrorKind::CapabilityMissing, Ran::Maybe));
        assert_eq!(refused, sent == 1, "{outcome:?}");
        assert_eq!(calls(&world).len(), sent);
        close(world);
    }
}
