//! Streamed calls over real conversations: drops, resumption, replay and the retry gate (R32, R33, R34).

mod stream_support;
mod world_support;

use conformance::world::{Fault, millis};
use mcp_proto::continuation::{DropReason, StreamTextPolicy};
use mcp_proto::error::Cause;
use mcp_proto::safety::RefusalReason;
use mcp_proto::streaming::Streaming;
use mcp_proto::{Error, ErrorKind, Outcome, PeerConfig, Ran, Violation};
use serde_json::Value;
use stream_support::*;
use world_support::*;

/// R32, R7: the pieces are told as they come, the answer adds what they left out; one request, one answer.
#[test]
fn r32_a_stream_that_nobody_drops() {
    let script = steps(&[
        &piece(1, "one ", None),
        &piece(2, "two ", None),
        &answer(&["one two ", "three"]),
        HANGS,
    ]);
    let mut world = lives(|_| {}, &script, "[]");
    let id = world.submit(stream()).unwrap();
    let result = completes(&mut world, id);
    assert_eq!(result.text, "one two three");
    assert_eq!((result.cancelled, result.attempts), (false, 1));
    assert_eq!(result.answer.unwrap().content.len(), 2);
    insta::assert_snapshot!(close(world).transcript());
}

/// R32: what the answer says is what counts: text that it does not begin with is taken back.
#[test]
fn r32_the_answer_has_the_last_word() {
    let script = steps(&[&piece(1, "draft", None), &answer(&["final"]), HANGS]);
    let mut world = lives(|_| {}, &script, "[]");
    let id = world.submit(stream()).unwrap();
    assert_eq!(completes(&mut world, id).text, "final");
    assert!(close(world).transcript().contains("rewind 0"));
}

/// R32, R7: after a checkpoint the stream is resumed from it, in the next life of the server: what the
/// checkpoint covers stays, what came after it is taken back, and but for the token and the id the request
/// is the same.
#[test]
fn r32_a_drop_after_a_checkpoint_is_resumed() {
    let first = steps(&[&piece(1, "one ", Some("t1")), &piece(2, "lost", None), DIES]);
    let later = steps(&[&piece(1, "two", Some("t2")), &answer(&["one two"]), HANGS]);
    let mut world = lives(|_| {}, &first, &later);
    let id = world.submit(stream()).unwrap();
    let result = completes(&mut world, id);
    assert_eq!((&*result.text, result.attempts), ("one two", 2));
    let sent = calls(&world);
    let [(meta_1, token_1), (meta_2, token_2)] = [meta(&sent[0]), meta(&sent[1])];
    assert_eq!((token_1, token_2.as_deref()), (None, Some("t1")));
    assert_eq!(meta_1, meta_2);
    assert_eq!(
        sent[0]["params"]["arguments"],
        sent[1]["params"]["arguments"]
    );
    assert_ne!(sent[0]["id"], sent[1]["id"]);
    assert!(
        !world
            .sent_to("srv")
            .to_lowercase()
            .contains("last-event-id")
    );
    assert_eq!((counters(&world).retries, degraded(&world)), (1, None));
    insta::assert_snapshot!(close(world).transcript());
}

/// R32: without a checkpoint, or where the configuration knows of none, the whole call runs again; the key
/// that travels is the same.
#[test]
fn r32_a_drop_without_a_checkpoint_is_replayed() {
    for (known, token) in [(true, None), (false, Some("t1"))] {
        let first = steps(&[&piece(1, "one ", token), DIES]);
        let later = steps(&[&piece(1, "uno ", None), &answer(&["uno dos"]), HANGS]);
        let adapt = |peer: &mut PeerConfig| {
            peer.idempotent_tools.clear();
            peer.idempotency_meta_key = Some(KEY.into());
            peer.checkpoint_meta_key = known.then(|| CHECKPOINT.into());
        };
        let mut world = lives(adapt, &first, &later);
        let id = world.submit(stream()).unwrap();
        assert_eq!(completes(&mut world, id).text, "uno dos");
        let sent = calls(&world);
        assert_eq!(sent[0]["params"], sent[1]["params"]);
        let key = sent[0]["params"]["_meta"][KEY].as_str().unwrap();
        assert_eq!(key.len(), 32, "{key}");
        close(world);
    }
}

/// R32: with `Append` nothing is ever taken back, and the rest of the answer is added.
#[test]
fn r32_append_takes_nothing_back() {
    for (last, expected) in [("a b c", "a b a b c"), ("other", "a b a ")] {
        let first = steps(&[&piece(1, "a b ", None), DIES]);
        let later = steps(&[&piece(1, "a ", None), &answer(&[last]), HANGS]);
        let mut world = lives(|_| {}, &first, &later);
        let append = Streaming {
            text: StreamTextPolicy::Append,
            ..Streaming::default()
        };
        let id = world
            .submit(with(|options| options.stream = Some(append)))
            .unwrap();
        assert_eq!(completes(&mut world, id).text, expected);
        assert!(!close(world).transcript().contains("rewind"));
    }
}

/// R32, R61: dropped as often as is allowed, it ends with everything that is needed to go on by hand, and the
/// peer is degraded. The waits between attempts double.
#[test]
fn r32_exhausted() {
    let dies = steps(&[&piece(1, "one ", Some("t1")), &piece(2, "more", None), DIES]);
    let adapt = |peer: &mut PeerConfig| {
        peer.max_continuation_retries = 2;
        peer.restart.backoff = millis(1);
    };
    let mut world = lives(adapt, &dies, &dies);
    let before = world.now();
    let error = assert_fails(&mut world, stream(), ErrorKind::StreamDropped, Ran::Maybe);
    let Cause::StreamDropped(dropped) = &error.cause else {
        panic!()
    };
    assert_eq!(
        (dropped.stream.attempts, dropped.stream.reason),
        (3, DropReason::Exhausted)
    );
    assert_eq!(error.checkpoint_token(), Some("t1"));
    assert_eq!(error.partial_text(), Some("one one one more"));
    assert_eq!(error.idempotency_key().map(str::len), Some(32));
    assert_eq!(
        dropped.last.as_ref().map(Error::kind),
        Some(ErrorKind::Closed)
    );
    let waited = world.now().since(before);
    assert!(
        millis(750) <= waited && waited <= millis(1_600),
        "{waited:?}"
    );
    assert_eq!(degraded(&world), Some(Violation::StreamDropped));
    assert_eq!(calls(&world).len(), 3);
    close(world);
}

/// R32, R34: where no attempt is left nobody is asked about one.
#[test]
fn r32_the_last_attempt_raises_no_question() {
    let adapt = |peer: &mut PeerConfig| {
        peer.idempotent_tools.clear();
        peer.max_continuation_retries = 0;
    };
    let mut world = lives(adapt, &steps(&[DIES]), "[]");
    let operation = with(|options| options.ask_retry = true);
    let error = assert_fails(&mut world, operation, ErrorKind::StreamDropped, Ran::Maybe);
    assert_eq!(reason(&error), DropReason::Exhausted);
    assert!(
        !world
            .take_news()
            .iter()
            .any(|news| question(news).is_some())
    );
    close(world);
}

/// R34: what may have been executed and may not run twice is not sent again; the error has the text, the key
/// and the checkpoint. Nothing is degraded.
#[test]
fn r34_a_replay_that_is_not_safe_is_refused() {
    let first = steps(&[&piece(1, "one ", Some("t1")), DIES]);
    let later = steps(&[&answer(&["never"]), HANGS]);
    let mut world = lives(|peer| peer.idempotent_tools.clear(), &first, &later);
    let error = assert_fails(&mut world, stream(), ErrorKind::RetryRefused, Ran::Maybe);
    let Cause::RetryRefused(refusal) = &error.cause else {
        panic!()
    };
    assert_eq!(refusal.refused.reason, RefusalReason::MayRunTwice);
    assert_eq!(
        (error.partial_text(), error.checkpoint_token()),
        (Some("one "), Some("t1"))
    );
    assert!(error.idempotency_key().is_some());
    assert!(
        error.remedy().contains("idempotencyMetaKey"),
        "{}",
        error.remedy()
    );
    assert_eq!(refusal.error.kind(), ErrorKind::Closed);
    world.run_for(millis(5_000));
    assert_eq!((calls(&world).len(), degraded(&world)), (1, None));
    close(world);
}

/// R34: a call that provably was not sent goes on with any tool, and no attempt is counted for it.
#[test]
fn r34_what_was_not_sent_is_sent_later() {
    let first = r#"[{"on":"tools/call"},{"exit":1}]"#;
    let later = steps(&[&answer(&["ok"]), HANGS]);
    let adapt = |peer: &mut PeerConfig| {
        peer.idempotent_tools.clear();
        peer.limits.in_flight = 1;
    };
    let mut world = lives(adapt, first, &later);
    let other = world.submit(echo()).unwrap();
    let id = world.submit(stream()).unwrap();
    let lost = world.run_until_ended(other).unwrap();
    assert!(matches!(lost.outcome, Outcome::Failed(error) if error.ran == Ran::Maybe));
    assert_eq!(completes(&mut world, id).attempts, 1);
    close(world);
}

/// R32, R34, R42: silence is a drop as well. The request is cancelled, and the next attempt in the same life
/// has a progress token of its own, so that what is still said of the old one is not taken for the new.
#[test]
fn r32_silence_is_a_drop() {
    let script = format!(
        r#"[{{"on":"tools/call"}},{},{{"on":"notifications/cancelled"}},{},{{"on":"tools/call"}},{},{},{HANGS}]"#,
        piece(1, "one ", None),
        piece(2, "late", None),
        piece(1, "uno ", None),
        answer(&["uno dos"]),
    );
    let mut world = lives(|peer| peer.timeout = millis(300), &script, "[]");
    let id = world.submit(stream()).unwrap();
    let result = completes(&mut world, id);
    assert_eq!((&*result.text, result.attempts), ("uno dos", 2));
    let sent = calls(&world);
    let tokens = |call: &Value| call["params"]["_meta"]["progressToken"].clone();
    assert_ne!(tokens(&sent[0]), tokens(&sent[1]));
    assert_eq!(counters(&world).dropped_notifications, 1);
    assert!(!close(world).transcript().contains("text late"));

    let script = steps(&[&piece(1, "one ", None), HANGS]);
    let adapt = |peer: &mut PeerConfig| {
        peer.timeout = millis(300);
        peer.idempotent_tools.clear();
    };
    let mut world = lives(adapt, &script, "[]");
    let error = assert_fails(&mut world, stream(), ErrorKind::RetryRefused, Ran::Maybe);
    assert_eq!(error.partial_text(), Some("one "));
    close(world);
}

/// R32, R41: all attempts together have one deadline, and waiting for a server that does not come back counts.
#[test]
fn r32_the_overall_deadline() {
    let first = steps(&[&piece(1, "one ", Some("t1")), DIES]);
    let adapt = |peer: &mut PeerConfig| peer.restart.backoff = millis(20_000);
    let mut world = lives(adapt, &first, "[]");
    let before = world.now();
    let operation = with(|options| options.absolute_timeout = Some(millis(5_000)));
    let error = assert_fails(&mut world, operation, ErrorKind::StreamDropped, Ran::Maybe);
    assert_eq!(reason(&error), DropReason::Deadline);
    assert_eq!(
        (error.partial_text(), error.checkpoint_token()),
        (Some("one "), Some("t1"))
    );
    assert_eq!(
        (world.now().since(before), degraded(&world)),
        (millis(5_000), None)
    );
    close(world);
}

/// R32: a server that is given up ends the stream with what there was of it.
#[test]
fn r32_a_server_that_does_not_come_back() {
    for max_attempts in [0, 2] {
        let first = steps(&[&piece(1, "one ", None), DIES]);
        let adapt = |peer: &mut PeerConfig| peer.restart.max_attempts = max_attempts;
        let mut world = lives(adapt, &first, r#"[{"exit":7}]"#);
        let error = fails(&mut world, stream());
        assert_eq!(error.partial_text(), Some("one "), "{error}");
        assert_eq!(error.kind(), ErrorKind::StreamDropped);
        assert_eq!(error.ran, Ran::Maybe);
        close(world);
    }
}

/// R32: whatever else ends a stream, the error knows the text so far: an error answer, and one that is malformed.
#[test]
fn r32_any_error_knows_the_text() {
    let ends = [
        (
            r#"\"error\":{\"code\":-32603,\"message\":\"no\"}"#,
            ErrorKind::Rpc,
        ),
        (
            r#"\"result\":{\"resultType\":\"complete\"}"#,
            ErrorKind::SchemaViolation,
        ),
    ];
    for (end, kind) in ends {
        let answer = format!(r#""{{\"jsonrpc\":\"2.0\",\"id\":$ID,{end}}}""#);
        let first = steps(&[&piece(1, "one ", None), &answer, HANGS]);
        let mut world = lives(|_| {}, &first, "[]");
        let error = fails(&mut world, stream());
        assert_eq!((error.kind(), error.partial_text()), (kind, Some("one ")));
        assert_eq!(error.ran, Ran::Maybe);
        close(world);
    }
}

/// R1, R32: text and tokens are bounded.
#[test]
fn r32_text_and_tokens_are_bounded() {
    let text = "x".repeat(700);
    let pieces = [piece(1, &text, None), piece(2, &text, None)];
    let script = steps(&[&pieces[0], &pieces[1], HANGS]);
    let mut world = lives(|peer| peer.limits.line_bytes = 1_000, &script, "[]");
    let error = assert_fails(&mut world, stream(), ErrorKind::StreamDropped, Ran::Maybe);
    assert_eq!(reason(&error), DropReason::TextLimit);
    assert_eq!(error.partial_text().map(str::len), Some(700));
    assert_eq!(degraded(&world), None);
    close(world);

    let token = "t".repeat((64 << 10) + 1);
    let script = steps(&[&piece(1, "one ", Some(&token)), HANGS]);
    let mut world = lives(|_| {}, &script, "[]");
    let error = assert_fails(&mut world, stream(), ErrorKind::StreamDropped, Ran::Maybe);
    assert_eq!(reason(&error), DropReason::TokenLimit);
    close(world);
}

/// R90: a kill in the middle is a drop like any other.
#[test]
fn r90_a_killed_server_is_resumed() {
    let first = steps(&[&piece(1, "one ", Some("t1")), HANGS]);
    let later = steps(&[&answer(&["one two"]), HANGS]);
    let mut world = lives(|_| {}, &first, &later);
    let id = world.submit(stream()).unwrap();
    world.run_for(millis(50));
    world.inject("srv", Fault::Kill);
    assert_eq!(completes(&mut world, id).text, "one two");
    close(world);
}
