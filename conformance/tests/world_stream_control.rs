//! What an application does to streamed calls: cancelling, deciding about retries, keys, closing (R20, R33, R34, R40).

mod stream_support;
mod world_support;

use conformance::world::{World, millis};
use mcp_proto::streaming::Streaming;
use mcp_proto::wire::Json;
use mcp_proto::{ErrorKind, News, Operation, Options, Outcome, PeerConfig, Ran, Reply};
use stream_support::*;
use world_support::*;

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
