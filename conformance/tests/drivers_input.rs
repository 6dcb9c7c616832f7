//! Both drivers ask the application when a server needs input (R30, R41).

#![cfg(target_os = "linux")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use mcp_proto::continuation::Continuation;
use mcp_proto::types::{InputRequired, InputResponse, InputResponses};
use mcp_proto::wire::Json;
use mcp_proto::{CallOutcome, Config, ErrorKind, Identity, PeerConfig};

/// One server with the tool `ask`, which asks for a name.
fn config() -> Config {
    server("{}")
}

fn server(script: &str) -> Config {
    let server = env!("CARGO_BIN_EXE_conformance-server");
    let mut peer = PeerConfig::stdio("a", server, ["--script-json", script]);
    peer.allow_legacy = true;
    Config::new(vec![peer])
}

/// One of an older revision, which asks in the middle of the call.
fn older() -> Config {
    server(r#"{"era":"legacy"}"#)
}

/// An answer to the only question that an older server has at a time.
fn answer_older(input: &InputRequired) -> Option<InputResponses> {
    let response = named("Joan").get("name")?.clone();
    let key = input.requests[0].key.clone();
    Some(InputResponses::new().with(key, response))
}

fn identity() -> Identity {
    let json = |text: &str| Json::parse(text).unwrap();
    let info = json(r#"{"name":"t","version":"1"}"#);
    Identity::new(info, json(r#"{"elicitation":{}}"#)).unwrap()
}

fn named(name: &str) -> InputResponses {
    let json = format!(r#"{{"action":"accept","content":{{"name":"{name}"}}}}"#);
    InputResponses::new().with("name", InputResponse::raw(Json::parse(&json).unwrap()))
}

/// Answers the first time, fits nothing the second time, and says nothing later.
fn answer(times: &AtomicU32, input: &InputRequired) -> Option<InputResponses> {
    assert_eq!(input.requests[0].key, "name");
    match times.fetch_add(1, Ordering::Relaxed) {
        0 => Some(named("Ada")),
        1 => Some(InputResponses::new()),
        _ => None,
    }
}

/// The question that a call ended with, moved as text.
fn moved<T>(outcome: CallOutcome<T>) -> Continuation {
    match outcome {
        CallOutcome::InputRequired(pending) => {
            Continuation::from_json(&pending.continuation.to_json()).unwrap()
        }
        CallOutcome::Complete(_) => panic!("it was to ask"),
    }
}

fn text(outcome: CallOutcome) -> String {
    match outcome {
        CallOutcome::Complete(result) => result.text(),
        CallOutcome::InputRequired(pending) => panic!("{pending:?}"),
    }
}

#[tokio::test]
async fn the_tokio_driver_asks() {
    let times = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&times);
    let client = mcp_driver_tokio::Client::builder(config())
        .identity(identity())
        .on_input(move |input| {
            let seen = Arc::clone(&seen);
            async move { answer(&seen, &input) }
        })
        .start();
    assert_eq!(
        text(client.call_tool("ask", ()).await.unwrap()),
        "Hello, Ada"
    );
    let unfit = client.call_tool("ask", ()).await.unwrap_err();
    assert_eq!(unfit.kind(), ErrorKind::Usage);
    let unanswered = moved(client.call_tool("ask", ()).await.unwrap());
    assert_eq!(times.load(Ordering::Relaxed), 3);
    client.close().await;

    let other = mcp_driver_tokio::Client::builder(config())
        .identity(identity())
        .start();
    let resumed = other.resume(unanswered, named("Grace")).await.unwrap();
    assert_eq!(text(resumed), "Hello, Grace");
    other.close().await;
}

#[test]
fn the_blocking_driver_asks() {
    let times = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&times);
    let client = mcp_driver_blocking::Client::builder(config())
        .identity(identity())
        .on_input(move |input| answer(&seen, input))
        .start()
        .unwrap();
    assert_eq!(text(client.call_tool("ask", ()).unwrap()), "Hello, Ada");
    let unfit = client.call_tool("ask", ()).unwrap_err();
    assert_eq!(unfit.kind(), ErrorKind::Usage);
    let unanswered = moved(client.call_tool("ask", ()).unwrap());
    assert_eq!(times.load(Ordering::Relaxed), 3);
    client.close();

    let other = mcp_driver_blocking::Client::builder(config())
        .identity(identity())
        .start()
        .unwrap();
    let resumed = other.resume(unanswered, named("Grace")).unwrap();
    assert_eq!(text(resumed), "Hello, Grace");
    other.close();
}

#[tokio::test]
async fn the_tokio_driver_answers_older_servers() {
    let client = mcp_driver_tokio::Client::builder(older())
        .identity(identity())
        .on_input(|input| async move { answer_older(&input) })
        .start();
    assert_eq!(
        text(client.call_tool("ask", ()).await.unwrap()),
        "Hello, Joan"
    );
    client.close().await;
}

#[test]
fn the_blocking_driver_answers_older_servers() {
    let client = mcp_driver_blocking::Client::builder(older())
        .identity(identity())
        .on_input(answer_older)
        .start()
        .unwrap();
    assert_eq!(text(client.call_tool("ask", ()).unwrap()), "Hello, Joan");
    client.close();
}
