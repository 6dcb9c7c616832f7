//! Streamed calls whose source is the application's (R20, R32, R33, R34, R40).

mod world_support;

use conformance::world::{Fault, World, millis};
use mcp_proto::continuation::Source;
use mcp_proto::error::Cause;
use mcp_proto::streaming::{SourceRequest, StreamFrom, Streaming};
use mcp_proto::{
    ErrorKind, News, Operation, OperationId, Options, Outcome, PeerConfig, Ran, Reply, StreamChunk,
    Violation,
};
use world_support::*;

fn world_of(adapt: impl FnOnce(&mut PeerConfig)) -> World {
    let mut world = modern_with(adapt, r#"[{"on":"tools/call"},{"hang":true}]"#);
    settle(&mut world);
    world
}

fn start(world: &mut World, change: impl FnOnce(&mut Options)) -> OperationId {
    let streaming = Streaming {
        from: StreamFrom::Application,
        ..Streaming::default()
    };
    let mut operation: Operation = echo();
    operation.options.stream = Some(streaming);
    change(&mut operation.options);
    world.submit(operation).unwrap()
}

fn text(text: &str) -> StreamChunk {
    StreamChunk {
        text: text.into(),
        ..StreamChunk::default()
    }
}

fn checkpoint(text: &str, token: &str) -> StreamChunk {
    StreamChunk {
        text: text.into(),
        checkpoint_token: Some(token.into()),
        ..StreamChunk::default()
    }
}

/// Runs until a source is wished for.
fn opens(world: &mut World) -> SourceRequest {
    loop {
        let news = world.take_news();
        let wish = news.into_iter().find_map(|news| match news {
            News::OpenSource { request, .. } => Some(request),
            _ => None,
        });
        if let Some(request) = wish {
            return request;
        }
        assert!(world.turn(), "{}", world.transcript());
    }
}

fn ended(world: &mut World, id: OperationId) -> Outcome {
    world.run_until_ended(id).unwrap().outcome
}

#[track_caller]
fn result(outcome: Outcome) -> (String, bool, u32) {
    match outcome {
        Outcome::Complete(Reply::Stream(result)) => {
            assert_eq!(result.answer, None);
            (result.text, result.cancelled, result.attempts)
        }
        other => panic!("{other:?}"),
    }
}

/// R32, R33, R34: a source that drops is opened again, from the last checkpoint and with the same key, for
/// any tool; nothing at all is sent to the server, which is not even needed any more.
#[test]
fn r32_a_source_is_opened_again() {
    let mut world = world_of(|peer| peer.restart.max_attempts = 0);
    let sent = world.sent_to("srv");
    let id = start(&mut world, |options| {
        options.idempotency_key = Some("k".into())
    });
    let first = opens(&mut world);
    assert_eq!((first.source, first.token, &*first.key), (1, None, "k"));
    world.chunk(id, 1, checkpoint("one ", "t1"));
    world.chunk(id, 1, text("lost"));
    world.inject("srv", Fault::Kill);
    world.source_ended(id, 1);
    let second = opens(&mut world);
    assert_eq!(
        (second.source, second.token.as_deref(), &*second.key),
        (2, Some("t1"), "k")
    );
    // The first one is not over for everybody.
    world.chunk(id, 1, text("late"));
    world.source_failed(id, 2, "connection reset");
    let third = opens(&mut world);
    world.chunk(
        id,
        third.source,
        StreamChunk {
            is_final: true,
            ..text("two")
        },
    );
    assert_eq!(result(ended(&mut world, id)), ("one two".into(), false, 3));
    assert_eq!(counters(&world).stream_drops, 2);
    assert_eq!(world.sent_to("srv"), sent);
    close(world);
}

/// R32, R33: `dropped` in a piece, and silence once the source is open, are drops; before it is open only the
/// overall deadline counts.
#[test]
fn r32_what_counts_as_a_drop() {
    let mut world = world_of(|peer| peer.timeout = millis(1_000));
    let id = start(&mut world, |_| {});
    assert_eq!(opens(&mut world).source, 1);
    world.run_for(millis(30_000));
    world.chunk(
        id,
        1,
        StreamChunk {
            dropped: true,
            ..checkpoint("one", "t")
        },
    );
    let second = opens(&mut world);
    assert_eq!(second.token.as_deref(), Some("t"));
    world.chunk(id, 2, text(" two"));
    let before = world.now();
    assert_eq!(opens(&mut world).source, 3);
    assert!(world.now().since(before) >= millis(1_000));
    world.cancel(id);
    assert_eq!(result(ended(&mut world, id)), ("one".into(), true, 3));
    close(world);
}

/// R32, R61: a source that fails as often as is allowed degrades the peer, and the error says how it failed.
#[test]
fn r32_a_source_that_always_fails() {
    let mut world = world_of(|peer| peer.max_continuation_retries = 1);
    let id = start(&mut world, |_| {});
    for source in 1..=2 {
        assert_eq!(opens(&mut world).source, source);
        world.source_failed(id, source, "no route");
    }
    let Outcome::Failed(error) = ended(&mut world, id) else {
        panic!()
    };
    assert_eq!(
        (error.kind(), error.ran),
        (ErrorKind::StreamDropped, Ran::Maybe)
    );
    assert!(error.to_string().contains("no route"), "{error}");
    assert_eq!(degraded(&world), Some(Violation::StreamDropped));
    close(world);
}

/// R40: cancelled, it is closed and never opened again, and later pieces change nothing.
#[test]
fn r40_cancelled_sources_are_closed() {
    let mut world = world_of(|_| {});
    let id = start(&mut world, |_| {});
    opens(&mut world);
    world.chunk(id, 1, text("half"));
    world.cancel(id);
    let closes: Vec<Source> = world
        .take_news()
        .iter()
        .filter_map(|news| match news {
            News::CloseSource { source, .. } => Some(*source),
            News::Ended(ended) => {
                assert_eq!(result(ended.outcome.clone()), ("half".into(), true, 1));
                None
            }
            _ => None,
        })
        .collect();
    assert_eq!(closes, [1]);
    world.chunk(id, 1, text("late"));
    world.run_for(millis(600_000));
    assert!(world.take_news().is_empty());
    assert_eq!(degraded(&world), None);
    close(world);
}

/// R2: closing the client closes the source; what there was of the text is in the error.
#[test]
fn closing_closes_sources() {
    let mut world = world_of(|_| {});
    let id = start(&mut world, |_| {});
    opens(&mut world);
    world.chunk(id, 1, text("half"));
    world.close();
    let Outcome::Failed(error) = ended(&mut world, id) else {
        panic!()
    };
    assert_eq!(error.partial_text(), Some("half"));
    let Cause::StreamDropped(dropped) = &error.cause else {
        panic!()
    };
    assert_eq!(
        dropped.last.as_ref().map(|last| last.kind()),
        Some(ErrorKind::Closed)
    );
    assert!(world.transcript().contains("close source 1"));
    close(world);
}
