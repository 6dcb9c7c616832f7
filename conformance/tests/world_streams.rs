//! Streamed calls over real conversations: drops, resumption, replay, the retry gate, cancellation and the
//! decision hook (R20, R32, R33, R34, R40).

mod world_support;

use conformance::world::{Fault, World, millis};
use mcp_proto::continuation::{DropReason, StreamResult, StreamTextPolicy};
use mcp_proto::error::Cause;
use mcp_proto::safety::RefusalReason;
use mcp_proto::streaming::{RetryQuestion, Streaming};
use mcp_proto::wire::Json;
use mcp_proto::{
    Error, ErrorKind, News, Operation, OperationId, Options, Outcome, PeerConfig, Ran, Reply,
    Violation,
};
use serde_json::Value;
use world_support::*;

const CHECKPOINT: &str = "example.com/checkpoint";
const KEY: &str = "example.com/key";

/// A piece of a stream, with a checkpoint token where there is one.
fn piece(progress: u32, text: &str, token: Option<&str>) -> String {
    let meta = token.map_or_else(String::new, |token| {
        format!(r#",\"_meta\":{{\"{CHECKPOINT}\":\"{token}\"}}"#)
    });
    format!(
        r#""{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":$PTOKEN,\"progress\":{progress},\"message\":\"{text}\"{meta}}}}}""#
    )
}

/// The answer, of these text blocks.
fn answer(blocks: &[&str]) -> String {
    let blocks: Vec<_> = blocks
        .iter()
        .map(|text| format!(r#"{{\"type\":\"text\",\"text\":\"{text}\"}}"#))
        .collect();
    format!(
        r#""{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{{\"resultType\":\"complete\",\"content\":[{}]}}}}""#,
        blocks.join(",")
    )
}

fn steps(parts: &[&str]) -> String {
    format!(r#"[{{"on":"tools/call"}},{}]"#, parts.join(","))
}

const DIES: &str = r#"{"exit":1}"#;
const HANGS: &str = r#"{"hang":true}"#;

/// A peer whose tool may run twice and whose tokens are known; the steps are of its first life and of
/// every later one.
fn lives(adapt: impl FnOnce(&mut PeerConfig), first: &str, later: &str) -> World {
    let mut peer = peer("srv");
    peer.idempotent_tools.insert("echo".into());
    peer.checkpoint_meta_key = Some(CHECKPOINT.into());
    adapt(&mut peer);
    let text = format!(r#"{{"era":"modern","steps":{first},"respawn":{later}}}"#);
    let mut world = world(peer, script(&text));
    settle(&mut world);
    world
}

fn stream() -> Operation {
    Operation::call_streaming("echo", Json::parse(r#"{"text":"hi"}"#).ok()).on("srv")
}

fn with(change: impl FnOnce(&mut Options)) -> Operation {
    let mut operation = stream();
    change(&mut operation.options);
    operation
}

/// Runs until something is said of the operation that `wanted` finds.
fn until<T>(world: &mut World, wanted: impl Fn(&News) -> Option<T>) -> T {
    loop {
        if let Some(found) = world.take_news().iter().find_map(&wanted) {
            return found;
        }
        assert!(world.turn(), "{}", world.transcript());
    }
}

fn question(news: &News) -> Option<RetryQuestion> {
    match news {
        News::RetryQuestion(question) => Some((**question).clone()),
        _ => None,
    }
}

#[track_caller]
fn streamed(world: &World, outcome: Outcome) -> StreamResult {
    match outcome {
        Outcome::Complete(Reply::Stream(result)) => result,
        other => panic!("{other:?}\n{}", world.transcript()),
    }
}

#[track_caller]
fn completes(world: &mut World, operation: OperationId) -> StreamResult {
    let ended = world.run_until_ended(operation).unwrap();
    streamed(world, ended.outcome)
}

#[track_caller]
fn reason(error: &Error) -> DropReason {
    match &error.cause {
        Cause::StreamDropped(dropped) => dropped.stream.reason,
        _ => panic!("{error}"),
    }
}

/// The `tools/call` requests that were written, in all lives.
fn calls(world: &World) -> Vec<Value> {
    let sent = world.sent_to("srv");
    let messages = sent.lines().map(|line| serde_json::from_str(line).unwrap());
    messages
        .filter(|message: &Value| message["method"] == "tools/call")
        .collect()
}

/// `_meta` of a request without the checkpoint, and the checkpoint.
fn meta(call: &Value) -> (Value, Option<String>) {
    let mut meta = call["params"]["_meta"].clone();
    let token = meta.as_object_mut().unwrap().remove(CHECKPOINT);
    (meta, token.map(|token| token.as_str().unwrap().to_owned()))
}

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

/// R20: a streamed call of a tool that is not in the manifest is not sent, whoever opens the stream.
#[test]
fn r20_an_unlisted_tool_is_not_streamed() {
    let mut world = lives(|_| {}, "[]", "[]");
    for from in [
        Default::default(),
        mcp_proto::streaming::StreamFrom::Application,
    ] {
        let streaming = Streaming {
            from,
            ..Streaming::default()
        };
        let options = Options {
            stream: Some(streaming),
            ..Options::default()
        };
        let operation = Operation::call("nope", None).on("srv").with(options);
        assert_fails(&mut world, operation, ErrorKind::CapabilityMissing, Ran::No);
    }
    assert!(calls(&world).is_empty());
    close(world);
}

/// R40: cancelled while it streams, while it waits for the next attempt, while the application decides, before
/// anything is sent: the text so far, `cancelled`, and nothing follows. It degrades nothing.
#[test]
fn r40_cancel_in_every_state() {
    let dies = steps(&[&piece(1, "one ", None), DIES]);
    let streams = steps(&[&piece(1, "one ", None), HANGS]);
    let told = |news: &News| matches!(news, News::StreamUpdate { .. }).then_some(());
    type Reach<'a> = &'a dyn Fn(&mut World);
    let cases: [(&str, bool, u32, &str, Reach<'_>); 4] = [
        (&streams, true, 1, "one ", &|world| until(world, told)),
        (&dies, true, 1, "one ", &|world| {
            until(world, told);
            world.run_for(millis(100));
        }),
        (&dies, false, 1, "one ", &|world| {
            drop(until(world, question))
        }),
        (&streams, true, 0, "", &|_| {}),
    ];
    for (script, idempotent, attempts, text, reach) in cases {
        let adapt = |peer: &mut PeerConfig| {
            if !idempotent {
                peer.idempotent_tools.clear();
            }
            if attempts == 0 {
                peer.limits.in_flight = 1;
            }
        };
        let mut world = lives(adapt, script, "[]");
        let busy = (attempts == 0).then(|| world.submit(echo()).unwrap());
        let id = world
            .submit(with(|options| options.ask_retry = true))
            .unwrap();
        reach(&mut world);
        world.cancel(id);
        let result = completes(&mut world, id);
        assert_eq!(
            (&*result.text, result.cancelled, result.attempts),
            (text, true, attempts)
        );
        if let Some(busy) = busy {
            world.cancel(busy);
        }
        let sent = calls(&world).len();
        world.run_for(millis(100_000));
        assert_eq!((calls(&world).len(), degraded(&world)), (sent, None));
        // A second time it changes nothing.
        world.cancel(id);
        close(world);
    }
}

/// R40: one that is complete stays complete.
#[test]
fn r40_a_complete_stream_is_not_cancelled() {
    let mut world = lives(|_| {}, &steps(&[&answer(&["done"]), HANGS]), "[]");
    let id = world.submit(stream()).unwrap();
    let ended = world.run_until_ended(id).unwrap();
    world.cancel(id);
    assert!(!streamed(&world, ended.outcome).cancelled);
    assert!(
        !close(world)
            .sent_to("srv")
            .contains("notifications/cancelled")
    );
}

/// R33: a key of the application's belongs to one tool and one set of arguments, plain and streamed alike;
/// one that cannot be a key is refused.
#[test]
fn r33_a_key_is_not_used_for_another_call() {
    let script = format!(
        r#"[{{"on":"tools/call"}},{},{{"on":"tools/call"}},{},{HANGS}]"#,
        answer(&["1"]),
        answer(&["2"]),
    );
    let mut world = lives(|_| {}, &script, "[]");
    let keyed = |key: &str| with(|options| options.idempotency_key = Some(key.into()));
    for _ in 0..2 {
        let id = world.submit(keyed("k")).unwrap();
        completes(&mut world, id);
    }
    let options = Options {
        idempotency_key: Some("k".into()),
        ..Options::default()
    };
    let other = Operation::call("echo", Json::parse(r#"{"text":"other"}"#).ok())
        .on("srv")
        .with(options);
    assert_fails(&mut world, other, ErrorKind::Usage, Ran::No);
    assert_fails(&mut world, keyed(""), ErrorKind::Usage, Ran::No);
    assert_eq!(calls(&world).len(), 2);
    close(world);
}

/// R34: the application decides, about streamed calls and plain ones; without an answer the deadline does.
#[test]
fn r34_the_application_decides() {
    let first = steps(&[&piece(1, "one ", Some("t1")), DIES]);
    let later = steps(&[&answer(&["one two"]), HANGS]);
    for (streams, retry) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut world = lives(|peer| peer.idempotent_tools.clear(), &first, &later);
        let mut operation = if streams { stream() } else { echo() };
        operation.options.ask_retry = true;
        let id = world.submit(operation).unwrap();
        let asked = until(&mut world, question);
        assert_eq!(
            (asked.operation, asked.error.kind()),
            (id, ErrorKind::Closed)
        );
        assert_eq!(asked.partial_text.as_deref(), streams.then_some("one "));
        assert_eq!(asked.key.is_some(), streams);
        world.run_for(millis(5_000));
        assert_eq!(calls(&world).len(), 1);
        world.decide(id, asked.question, retry);
        world.decide(id, asked.question, !retry);
        let outcome = world.run_until_ended(id).unwrap().outcome;
        match (outcome, streams, retry) {
            (Outcome::Complete(Reply::Stream(result)), true, true) => {
                assert_eq!(result.text, "one two");
            }
            (Outcome::Complete(Reply::Call(result)), false, true) => {
                assert_eq!(result.text(), "one two");
            }
            (Outcome::Failed(error), true, false) => {
                assert_eq!(error.kind(), ErrorKind::RetryRefused);
                assert_eq!(error.partial_text(), Some("one "));
            }
            (Outcome::Failed(error), false, false) => {
                assert_eq!((error.kind(), error.ran), (ErrorKind::Closed, Ran::Maybe));
            }
            (other, ..) => panic!("{other:?}"),
        }
        assert_eq!(calls(&world).len(), 1 + usize::from(retry));
        close(world);
    }
}

/// R34, R41: while nobody decides the deadlines run; what may have been executed is said to.
#[test]
fn r34_a_decision_has_a_deadline() {
    let first = steps(&[DIES]);
    for (streams, kind) in [
        (true, ErrorKind::StreamDropped),
        (false, ErrorKind::Timeout),
    ] {
        let mut world = lives(|peer| peer.idempotent_tools.clear(), &first, "[]");
        let mut operation = if streams { stream() } else { echo() };
        operation.options.ask_retry = true;
        operation.options.absolute_timeout = Some(millis(3_000));
        assert_fails(&mut world, operation, kind, Ran::Maybe);
        close(world);
    }
}

/// R2: closing the client ends a stream at once, whatever it waits for.
#[test]
fn closing_ends_streams() {
    for script in [
        steps(&[&piece(1, "one ", None), HANGS]),
        steps(&[&piece(1, "one ", None), DIES]),
    ] {
        let mut world = lives(|_| {}, &script, "[]");
        let id = world.submit(stream()).unwrap();
        world.run_for(millis(50));
        world.close();
        let error = match world.run_until_ended(id).unwrap().outcome {
            Outcome::Failed(error) => error,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            (error.partial_text(), error.ran),
            (Some("one "), Ran::Maybe)
        );
        close(world);
    }
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
