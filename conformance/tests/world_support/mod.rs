//! What the scenarios share: one peer called `srv`, and short ways to ask and to look.
#![allow(dead_code, unreachable_pub)] // each test binary uses its own part

use conformance::fake_server::Script;
use conformance::world::World;
use mcp_proto::types::CallToolResult;
use mcp_proto::wire::Json;
use mcp_proto::{
    Config, Ended, Error, ErrorKind, Identity, Operation, Outcome, PeerConfig, Ran, Reply, Request,
};

/// A stdio peer.
pub fn peer(name: &str) -> PeerConfig {
    PeerConfig::stdio(name, name, Vec::<String>::new())
}

/// The same, allow-listed for older revisions.
pub fn allowed(name: &str) -> PeerConfig {
    let mut peer = peer(name);
    peer.allow_legacy = true;
    peer
}

/// A script in JSON form.
pub fn script(text: &str) -> Script {
    Script::from_json(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A world of one peer with this script, connected.
pub fn world(peer: PeerConfig, script: Script) -> World {
    let scripts = vec![(peer.name.clone(), script)];
    let mut world = World::new(Config::new(vec![peer]), Identity::default(), scripts);
    world.connect();
    world
}

/// A modern server that does these steps after a good discovery.
pub fn modern(steps: &str) -> World {
    world(
        peer("srv"),
        script(&format!(r#"{{"era":"modern","steps":{steps}}}"#)),
    )
}

/// The same with a changed peer.
pub fn modern_with(adapt: impl FnOnce(&mut PeerConfig), steps: &str) -> World {
    let mut peer = peer("srv");
    adapt(&mut peer);
    world(
        peer,
        script(&format!(r#"{{"era":"modern","steps":{steps}}}"#)),
    )
}

/// An older server, allow-listed, that does these steps after a good handshake.
pub fn legacy(steps: &str) -> World {
    world(
        allowed("srv"),
        script(&format!(r#"{{"era":"legacy","steps":{steps}}}"#)),
    )
}

/// A server whose handshake is in the steps.
pub fn probe(peer: PeerConfig, steps: &str) -> World {
    world(
        peer,
        script(&format!(r#"{{"era":"probe","steps":{steps}}}"#)),
    )
}

/// A call of `echo`.
pub fn echo() -> Operation {
    Operation::call("echo", Json::parse(r#"{"text":"hi"}"#).ok()).on("srv")
}

pub fn run(world: &mut World, operation: Operation) -> Ended {
    world
        .run(operation)
        .unwrap_or_else(|error| panic!("{error}\n{}", world.transcript()))
}

/// The result of a call of `echo` that completes.
pub fn call(world: &mut World) -> CallToolResult {
    match run(world, echo()).outcome {
        Outcome::Complete(Reply::Call(result)) => result,
        other => panic!("{other:?}\n{}", world.transcript()),
    }
}

/// The error of an operation that fails.
pub fn fails(world: &mut World, operation: Operation) -> Error {
    match world.run(operation) {
        Ok(Ended {
            outcome: Outcome::Failed(error),
            ..
        })
        | Err(error) => error,
        Ok(other) => panic!("{other:?}\n{}", world.transcript()),
    }
}

/// Asserts how an operation fails: its kind, and whether it may have been executed.
#[track_caller]
pub fn assert_fails(world: &mut World, operation: Operation, kind: ErrorKind, ran: Ran) -> Error {
    let error = fails(world, operation);
    assert_eq!(
        (error.kind(), error.ran),
        (kind, ran),
        "{error}\n{}",
        world.transcript()
    );
    error
}

/// Waits until every peer is settled.
pub fn settle(world: &mut World) {
    run(world, Operation::new(Request::Settle));
}

/// What was counted about the first peer.
pub fn counters(world: &World) -> mcp_proto::peer::Counters {
    world.client.diagnoses()[0].counters
}

/// The first violation of the first peer, if any.
pub fn degraded(world: &World) -> Option<mcp_proto::Violation> {
    let peer = world.client.peers().next()?;
    peer.degraded().map(|fault| fault.violation)
}

/// Closes and asserts that no rule was broken.
pub fn close(mut world: World) -> World {
    world.close();
    assert!(world.client.is_closed(), "{}", world.transcript());
    if let Err(breach) = world.verdict() {
        panic!("{breach}");
    }
    world
}
