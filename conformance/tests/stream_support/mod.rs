//! What the scenarios of streamed calls share: a server that says its pieces step by step, and short ways to look.
#![allow(dead_code, unreachable_pub)] // each test binary uses its own part

use conformance::world::World;
use mcp_proto::asking::RetryQuestion;
use mcp_proto::continuation::{DropReason, StreamResult};
use mcp_proto::error::Cause;
use mcp_proto::wire::Json;
use mcp_proto::{
    Config, Error, Identity, News, Operation, OperationId, Options, Outcome, PeerConfig, Reply,
};
use serde_json::Value;

use crate::world_support::*;

pub const CHECKPOINT: &str = "example.com/checkpoint";
pub const KEY: &str = "example.com/key";

/// A piece of a stream, with a checkpoint token where there is one.
pub fn piece(progress: u32, text: &str, token: Option<&str>) -> String {
    let meta = token.map_or_else(String::new, |token| {
        format!(r#",\"_meta\":{{\"{CHECKPOINT}\":\"{token}\"}}"#)
    });
    format!(
        r#""{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":$PTOKEN,\"progress\":{progress},\"message\":\"{text}\"{meta}}}}}""#
    )
}

/// The answer, of these text blocks.
pub fn answer(blocks: &[&str]) -> String {
    let blocks: Vec<_> = blocks
        .iter()
        .map(|text| format!(r#"{{\"type\":\"text\",\"text\":\"{text}\"}}"#))
        .collect();
    format!(
        r#""{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{{\"resultType\":\"complete\",\"content\":[{}]}}}}""#,
        blocks.join(",")
    )
}

pub fn steps(parts: &[&str]) -> String {
    format!(r#"[{{"on":"tools/call"}},{}]"#, parts.join(","))
}

pub const DIES: &str = r#"{"exit":1}"#;
pub const HANGS: &str = r#"{"hang":true}"#;

/// A peer whose tool may run twice and whose tokens are known; the steps are of its first life and of
/// every later one.
pub fn lives(adapt: impl FnOnce(&mut PeerConfig), first: &str, later: &str) -> World {
    lives_of(Identity::default(), adapt, first, later)
}

/// The same for a client that can answer questions.
pub fn answering(adapt: impl FnOnce(&mut PeerConfig), first: &str, later: &str) -> World {
    let info = serde_json::json!({"name": "world", "version": "1"});
    let accepts = serde_json::json!({"elicitation": {"form": {}}});
    let identity = Identity::new(info.into(), accepts.into()).unwrap();
    lives_of(identity, adapt, first, later)
}

fn lives_of(
    identity: Identity,
    adapt: impl FnOnce(&mut PeerConfig),
    first: &str,
    later: &str,
) -> World {
    let mut peer = peer("srv");
    peer.idempotent_tools.insert("echo".into());
    peer.checkpoint_meta_key = Some(CHECKPOINT.into());
    adapt(&mut peer);
    let text = format!(r#"{{"era":"modern","steps":{first},"respawn":{later}}}"#);
    let scripts = vec![(peer.name.clone(), script(&text))];
    let mut world = World::new(Config::new(vec![peer]), identity, scripts);
    world.connect();
    settle(&mut world);
    world
}

pub fn stream() -> Operation {
    Operation::call_streaming("echo", Json::parse(r#"{"text":"hi"}"#).ok()).on("srv")
}

pub fn with(change: impl FnOnce(&mut Options)) -> Operation {
    let mut operation = stream();
    change(&mut operation.options);
    operation
}

/// Runs until something is said of the operation that `wanted` finds.
pub fn until<T>(world: &mut World, wanted: impl Fn(&News) -> Option<T>) -> T {
    loop {
        if let Some(found) = world.take_news().iter().find_map(&wanted) {
            return found;
        }
        assert!(world.turn(), "{}", world.transcript());
    }
}

pub fn question(news: &News) -> Option<RetryQuestion> {
    match news {
        News::RetryQuestion(question) => Some((**question).clone()),
        _ => None,
    }
}

#[track_caller]
pub fn streamed(world: &World, outcome: Outcome) -> StreamResult {
    match outcome {
        Outcome::Complete(Reply::Stream(result)) => result,
        other => panic!("{other:?}\n{}", world.transcript()),
    }
}

#[track_caller]
pub fn completes(world: &mut World, operation: OperationId) -> StreamResult {
    let ended = world.run_until_ended(operation).unwrap();
    streamed(world, ended.outcome)
}

#[track_caller]
pub fn reason(error: &Error) -> DropReason {
    match &error.cause {
        Cause::StreamDropped(dropped) => dropped.stream.reason,
        _ => panic!("{error}"),
    }
}

/// The `tools/call` requests that were written, in all lives.
pub fn calls(world: &World) -> Vec<Value> {
    let sent = world.sent_to("srv");
    let messages = sent.lines().map(|line| serde_json::from_str(line).unwrap());
    messages
        .filter(|message: &Value| message["method"] == "tools/call")
        .collect()
}

/// `_meta` of a request without the checkpoint, and the checkpoint.
pub fn meta(call: &Value) -> (Value, Option<String>) {
    let mut meta = call["params"]["_meta"].clone();
    let token = meta.as_object_mut().unwrap().remove(CHECKPOINT);
    (meta, token.map(|token| token.as_str().unwrap().to_owned()))
}
