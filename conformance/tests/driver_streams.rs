//! What both drivers offer for streamed calls beyond what the suite asks of every driver: sources of the
//! application's, and its decision about retries (R32, R34, R40).

#![cfg(target_os = "linux")]

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll};

use conformance::fake_server::Script;
use mcp_proto::config::{StdioConfig, Transport};
use mcp_proto::continuation::{StreamResult, StreamUpdate};
use mcp_proto::safety::Failure;
use mcp_proto::streaming::SourceRequest;
use mcp_proto::{CallOutcome, Config, ErrorKind, PeerConfig, StreamChunk};
use serde_json::{Value, json};

/// A peer with this script.
fn config(script: &Value) -> Config {
    let text = script.to_string();
    Script::from_json(&text).unwrap_or_else(|error| panic!("{error}"));
    let server = env!("CARGO_BIN_EXE_conformance-server");
    let stdio = StdioConfig::new(server, ["--script-json".to_owned(), text]);
    Config::new(vec![PeerConfig::new("a", Transport::Stdio(stdio))])
}

/// A file that is gone when this is.
struct Lives(PathBuf);

impl Lives {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("mcp-lives-{}-{next}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Lives {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A server whose first life dies of a call, and whose later ones answer it.
fn dies_once(lives: &Lives) -> Value {
    let answer = r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[{"type":"text","text":"ok"}]}}"#;
    json!({
        "options": {"respawn_state": lives.0},
        "steps": [{"on": "tools/call"}, {"exit": 1}],
        "respawn": [{"on": "tools/call"}, answer, {"hang": true}],
    })
}

fn piece(text: &str, token: Option<&str>, is_final: bool) -> StreamChunk {
    StreamChunk {
        text: text.into(),
        checkpoint_token: token.map(Into::into),
        is_final,
        dropped: false,
    }
}

/// A source whose first opening breaks after a checkpoint; it notes what it is opened with.
fn breaks_once(
    opened: Arc<Mutex<Vec<SourceRequest>>>,
) -> impl FnMut(SourceRequest) -> std::vec::IntoIter<Result<StreamChunk, String>> + Send + 'static {
    move |request| {
        let pieces = match request.source {
            1 => vec![
                Ok(piece("one ", Some("t1"), false)),
                Ok(piece("lost", None, false)),
                Err("reset".to_owned()),
            ],
            _ => vec![Ok(piece("two", None, true))],
        };
        opened.lock().unwrap().push(request);
        pieces.into_iter()
    }
}

fn check_source(text: &str, outcome: CallOutcome<StreamResult>, opened: &[SourceRequest]) {
    let CallOutcome::Complete(result) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(
        (&*result.text, result.attempts, result.cancelled),
        ("one two", 2, false)
    );
    assert_eq!(text, "one two");
    let [first, second] = opened else {
        panic!("{opened:?}");
    };
    assert_eq!((&first.token, second.token.as_deref()), (&None, Some("t1")));
    assert_eq!(first.key, second.key);
}

fn apply(text: &mut String, update: StreamUpdate) {
    match update {
        StreamUpdate::Text(more) => text.push_str(&more),
        StreamUpdate::Rewind { length_bytes } => text.truncate(length_bytes),
        other => panic!("{other:?}"),
    }
}

mod blocking {
    use mcp_driver_blocking::Client;

    use super::*;

    /// R32: a source that fails is opened again with the last checkpoint and the same key.
    #[test]
    fn r32_a_source_is_opened_again() {
        let client = Client::connect(config(&json!({}))).unwrap();
        let opened = Arc::default();
        let source = breaks_once(Arc::clone(&opened));
        let mut stream = client
            .call_tool_streaming_from("echo", json!({"text": ""}), source)
            .unwrap();
        let mut text = String::new();
        (&mut stream).for_each(|update| apply(&mut text, update));
        check_source(&text, stream.finish().unwrap(), &opened.lock().unwrap());
        client.close();
    }

    /// R40: cancelling from another thread wakes whoever waits, though the source itself waits for ever.
    #[test]
    fn r40_cancel_wakes_whoever_waits_for_a_source() {
        let client = Client::connect(config(&json!({}))).unwrap();
        let (hold, held) = mpsc::channel::<Result<StreamChunk, String>>();
        let mut held = Some(held);
        hold.send(Ok(piece("half", None, false))).unwrap();
        let source = move |_| held.take().unwrap().into_iter();
        let mut stream = client
            .call_tool_streaming_from("echo", json!({"text": ""}), source)
            .unwrap();
        assert_eq!(stream.next(), Some(StreamUpdate::Text("half".into())));
        let id = stream.id();
        let (began, waits_now) = mpsc::channel();
        let waits = std::thread::spawn(move || {
            began.send(()).unwrap();
            stream.finish()
        });
        waits_now.recv().unwrap();
        client.cancel(id);
        let CallOutcome::Complete(result) = waits.join().unwrap().unwrap() else {
            panic!();
        };
        assert_eq!((&*result.text, result.cancelled), ("half", true));
        drop(hold);
        client.close();
    }

    /// R34: the application decides about plain and streamed calls alike.
    #[test]
    fn r34_the_application_decides() {
        for (streams, retry) in [(false, true), (false, false), (true, true), (true, false)] {
            let lives = Lives::new();
            let builder = Client::builder(config(&dies_once(&lives)));
            let decide = move |asked: &mcp_driver_blocking::RetryQuestion| {
                assert_eq!(asked.failure, Failure::ConnectionLost);
                retry
            };
            let client = builder.on_retry(decide).start().unwrap();
            let arguments = json!({"text": ""});
            let ended = if streams {
                let stream = client.call_tool_streaming("echo", arguments).unwrap();
                stream.finish().map(|outcome| matches!(outcome, CallOutcome::Complete(result) if result.text == "ok"))
            } else {
                let result = client.call_tool("echo", arguments);
                result.map(|outcome| matches!(outcome, CallOutcome::Complete(result) if result.text() == "ok"))
            };
            let kind = if streams {
                ErrorKind::RetryRefused
            } else {
                ErrorKind::Closed
            };
            let expected = if retry { Ok(true) } else { Err(kind) };
            assert_eq!(ended.map_err(|error| error.kind()), expected);
            client.close();
        }
    }
}

mod tokio_driver {
    use mcp_driver_tokio::Client;

    use super::*;

    /// A stream of what an iterator gives, and then the end, or nothing for ever while this is held.
    struct Pieces<I>(I, Option<mpsc::Sender<()>>);

    impl<I: Iterator + Unpin> futures_core::Stream for Pieces<I> {
        type Item = I::Item;

        fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<I::Item>> {
            match self.0.next() {
                None if self.1.is_some() => Poll::Pending,
                next => Poll::Ready(next),
            }
        }
    }

    /// R32: a source that fails is opened again with the last checkpoint and the same key.
    #[tokio::test]
    async fn r32_a_source_is_opened_again() {
        let client = Client::connect(config(&json!({}))).await.unwrap();
        let opened = Arc::default();
        let mut source = breaks_once(Arc::clone(&opened));
        let source = move |request| Pieces(source(request), None);
        let mut stream = client
            .call_tool_streaming_from("echo", json!({"text": ""}), source)
            .unwrap();
        let mut text = String::new();
        while let Some(update) = stream.next().await {
            apply(&mut text, update);
        }
        let outcome = stream.finish().await.unwrap();
        check_source(&text, outcome, &opened.lock().unwrap());
        client.close().await;
    }

    /// R40: cancelling wakes whoever waits, and drops the source.
    #[tokio::test]
    async fn r40_cancel_ends_the_wait_and_the_source() {
        let client = Client::connect(config(&json!({}))).await.unwrap();
        let (alive, gone) = mpsc::channel::<()>();
        let source = move |_| {
            let half = std::iter::once(Ok::<_, String>(piece("half", None, false)));
            Pieces(half, Some(alive.clone()))
        };
        let mut stream = client
            .call_tool_streaming_from("echo", json!({"text": ""}), source)
            .unwrap();
        assert_eq!(stream.next().await, Some(StreamUpdate::Text("half".into())));
        client.cancel(stream.id());
        let CallOutcome::Complete(result) = stream.finish().await.unwrap() else {
            panic!();
        };
        assert_eq!((&*result.text, result.cancelled), ("half", true));
        client.close().await;
        drop(client);
        while gone.try_recv() != Err(mpsc::TryRecvError::Disconnected) {
            tokio::task::yield_now().await;
        }
    }

    /// R34: the application decides about plain and streamed calls alike.
    #[tokio::test]
    async fn r34_the_application_decides() {
        for (streams, retry) in [(false, true), (false, false), (true, true), (true, false)] {
            let lives = Lives::new();
            let builder = Client::builder(config(&dies_once(&lives)));
            let decide = move |asked: Box<mcp_driver_tokio::RetryQuestion>| async move {
                assert_eq!(asked.failure, Failure::ConnectionLost);
                retry
            };
            let client = builder.on_retry(decide).start();
            let arguments = json!({"text": ""});
            let ended = if streams {
                let stream = client.call_tool_streaming("echo", arguments).unwrap();
                let ended = stream.finish().await;
                ended.map(|outcome| matches!(outcome, CallOutcome::Complete(result) if result.text == "ok"))
            } else {
                let result = client.call_tool("echo", arguments).await;
                result.map(|outcome| matches!(outcome, CallOutcome::Complete(result) if result.text() == "ok"))
            };
            let kind = if streams {
                ErrorKind::RetryRefused
            } else {
                ErrorKind::Closed
            };
            let expected = if retry { Ok(true) } else { Err(kind) };
            assert_eq!(ended.map_err(|error| error.kind()), expected);
            client.close().await;
        }
    }
}
