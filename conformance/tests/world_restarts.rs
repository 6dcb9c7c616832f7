//! Servers that are lost and come back (R34, R90, R91).

mod world_support;

use conformance::fake_server::Script;
use conformance::world::{Fault, World, millis};
use mcp_proto::report::PeerState;
use mcp_proto::wire::Json;
use mcp_proto::{
    Config, ErrorKind, Identity, Instant, Operation, Options, Outcome, PeerConfig, Ran, Reply,
    Request,
};
use serde_json::Value;
use world_support::*;

/// A peer whose first life does these steps, and whose later ones do those.
fn lives(adapt: impl FnOnce(&mut PeerConfig), first: &str, later: &str) -> World {
    let mut peer = peer("srv");
    adapt(&mut peer);
    let text = format!(r#"{{"era":"modern","steps":{first},"respawn":{later}}}"#);
    world(peer, script(&text))
}

fn state(world: &World) -> PeerState {
    world.client.report().peers[0].state
}

fn starts(world: &World) -> u64 {
    world.client.diagnoses()[0].counters.starts
}

/// The requests of a method that were written, in all lives.
fn requests(world: &World, method: &str) -> Vec<Value> {
    let sent = world.sent_to("srv");
    let messages = sent
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    messages
        .filter(|message| message["method"] == method)
        .collect()
}

const ANSWERS: &str = r#"[{"on":"tools/call"},"«OK_RESULT»",{"hang":true}]"#;

/// R90, R34: what may have been executed fails at once and is not repeated; the server is started again
/// after a while, and the next call reaches its new life.
#[test]
fn a_lost_server_comes_back() {
    let mut world = lives(|_| {}, r#"[{"on":"tools/call"},{"exit":1}]"#, ANSWERS);
    settle(&mut world);
    let lost = assert_fails(&mut world, echo(), ErrorKind::Closed, Ran::Maybe);
    assert!(lost.to_string().contains("status 1"), "{lost}");
    assert_eq!(state(&world), PeerState::Failed);
    let died = world.now();
    assert_eq!(call(&mut world).text(), "ok");
    let waited = world.now().since(died);
    assert!(
        millis(250) <= waited && waited <= millis(600),
        "{waited:?}, of a backoff of 500 ms less at most a half"
    );
    assert_eq!((state(&world), starts(&world)), (PeerState::Ready, 2));
    assert_eq!(requests(&world, "tools/call").len(), 2);
    insta::assert_snapshot!(close(world).transcript());
}

/// R34, R7: a tool that the operator calls idempotent is called again under a new id, with the same
/// `_meta`; so is one whose key travels to a server that honours it.
#[test]
fn what_may_run_twice_is_repeated() {
    let idempotent = |peer: &mut PeerConfig| {
        peer.idempotent_tools.insert("echo".into());
    };
    let honours = |peer: &mut PeerConfig| {
        peer.idempotency_meta_key = Some("example.com/key".into());
    };
    let keyed = echo().with(Options {
        idempotency_key: Some("k-1".into()),
        ..Options::default()
    });
    let plain = |_: &mut PeerConfig| {};
    let cases = [
        (&idempotent as &dyn Fn(&mut PeerConfig), echo(), true),
        (&honours, keyed.clone(), true),
        (&honours, echo(), false),
        (&plain, keyed, false),
    ];
    for (adapt, operation, repeated) in cases {
        let mut world = lives(adapt, r#"[{"on":"tools/call"},{"exit":1}]"#, ANSWERS);
        settle(&mut world);
        let ended = run(&mut world, operation);
        let calls = requests(&world, "tools/call");
        if repeated {
            assert!(matches!(ended.outcome, Outcome::Complete(Reply::Call(_))));
            let [first, second] = &calls[..] else {
                panic!("{calls:?}")
            };
            assert_eq!(first["params"], second["params"]);
            assert_ne!(first["id"], second["id"]);
            assert_eq!(world.client.diagnoses()[0].counters.retries, 1);
        } else {
            assert!(matches!(ended.outcome, Outcome::Failed(error) if error.ran == Ran::Maybe));
            assert_eq!(calls.len(), 1);
        }
        close(world);
    }
}

/// R34: reading changes nothing and is done again; calls that were not written go on in their order.
#[test]
fn reads_and_unwritten_calls_go_on() {
    let mut world = lives(
        |peer| peer.limits.in_flight = 1,
        r#"[{"on":"prompts/list"},{"exit":1}]"#,
        r#"[{"on":"prompts/list"},"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"resultType\":\"complete\",\"prompts\":[]}}",
            {"on":"tools/call"},"«OK_RESULT»",{"on":"tools/call"},"«OK_RESULT»",{"hang":true}]"#,
    );
    settle(&mut world);
    let read = world.submit(Operation::list_prompts().on("srv")).unwrap();
    let waiting: Vec<_> = (0..2).map(|_| world.submit(echo()).unwrap()).collect();
    for operation in [read, waiting[0], waiting[1]] {
        let ended = world.run_until_ended(operation).unwrap();
        assert!(matches!(ended.outcome, Outcome::Complete(_)), "{ended:?}");
    }
    close(world);
}

/// R90: one that dies at every start is started as often as allowed, less and less often, and then given
/// up; what waited for it ends as not executed.
#[test]
fn a_server_that_dies_at_every_start_is_given_up() {
    let mut world = lives(
        |_| {},
        r#"[{"on":"tools/call"},{"exit":1}]"#,
        r#"[{"exit":7}]"#,
    );
    settle(&mut world);
    assert_fails(&mut world, echo(), ErrorKind::Closed, Ran::Maybe);
    let error = assert_fails(&mut world, echo(), ErrorKind::Closed, Ran::No);
    assert!(error.to_string().contains("status 7"), "{error}");
    assert_eq!(starts(&world), 1 + 5);
    let least = millis((500 + 1_000 + 2_000 + 4_000 + 8_000) / 2);
    assert!(world.now().since(Instant::ZERO) >= least, "{}", world.now());
    assert_fails(&mut world, echo(), ErrorKind::Closed, Ran::No);
    world.run_for(millis(600_000));
    assert_eq!((state(&world), starts(&world)), (PeerState::Failed, 6));
    close(world);
}

/// R2, R90: while one peer is being brought back, no operation on another one waits, under whatever name.
#[test]
fn nobody_waits_for_one_that_comes_back() {
    let good = Script::modern();
    let bad = script(
        r#"{"era":"modern","options":{"tools":["frail"]},"steps":[{"on":"tools/call"},{"exit":1}],"respawn":[{"hang":true}]}"#,
    );
    let mut world = World::new(
        Config::new(vec![peer("good"), peer("bad")]),
        Identity::default(),
        vec![("good".into(), good), ("bad".into(), bad)],
    );
    world.connect();
    settle(&mut world);
    let frail = Operation::call("frail", None);
    assert_fails(&mut world, frail, ErrorKind::Closed, Ran::Maybe);
    // Long enough for the second life to be in the middle of its probe, which it never answers.
    world.run_for(millis(2_000));
    let before = world.now();
    let add = Operation::call("add", Json::parse(r#"{"a":1,"b":2}"#).ok());
    for operation in [add, Operation::list_tools(), Operation::list_resources()] {
        let ended = run(&mut world, operation);
        assert!(matches!(ended.outcome, Outcome::Complete(_)), "{ended:?}");
    }
    assert_eq!(world.now(), before);
    close(world);
}

/// R91: a subscription is opened again, is acknowledged anew and goes on collecting.
#[test]
fn a_subscription_outlives_its_server() {
    let listens = r#"{"on":"subscriptions/listen"},"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":$SUBID},\"notifications\":{\"toolsListChanged\":true}}}","{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":$SUBID}}}""#;
    let mut world = lives(
        |_| {},
        &format!(r#"[{listens},{{"exit":1}}]"#),
        &format!(r#"[{listens},{{"hang":true}}]"#),
    );
    settle(&mut world);
    let listen = world
        .submit(Operation::new(Request::Listen).on("srv"))
        .unwrap();
    world.run_for(millis(3_000));
    assert_eq!(requests(&world, "subscriptions/listen").len(), 2);
    assert_eq!(world.client.take_notifications(listen).len(), 2);
    world.finish(listen);
    let Outcome::Complete(Reply::Listened { notifications }) =
        world.run_until_ended(listen).unwrap().outcome
    else {
        panic!()
    };
    assert_eq!(notifications, 2);
    close(world);
}

/// R13, R16, R17: a server that was modern is not talked down when its next life says nothing, although it
/// is allow-listed; the violation of its first life is kept (R61).
#[test]
fn a_later_life_is_not_talked_down_and_stays_degraded() {
    let mut world = lives(
        |peer| peer.allow_legacy = true,
        r#"[{"on":"tools/call"},"{\"jsonrpc\":\"2.0\",\"id\":$ID}",{"exit":1}]"#,
        r#"[{"on":"server/discover"},{"hang":true}]"#,
    );
    settle(&mut world);
    assert_fails(&mut world, echo(), ErrorKind::SchemaViolation, Ran::Maybe);
    world.run_for(millis(200_000));
    assert!(starts(&world) > 2);
    assert!(!world.sent_to("srv").contains("initialize"));
    let report = world.client.report();
    assert_eq!(report.peers[0].state, PeerState::Failed);
    assert!(report.peers[0].degraded.is_some());
    close(world);
}

/// R21, R20: what changed in the meantime is reported, and the new list is in force.
#[test]
fn a_changed_list_is_noticed() {
    let tools = |names: &str| {
        format!(
            r#"[{{"on":"tools/list"}},"{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{{\"resultType\":\"complete\",\"tools\":{names}}}}}",{{"on":"tools/call"}},{{"exit":1}}]"#
        )
    };
    let mut world = lives(
        |_| {},
        &tools(r#"[{\"name\":\"echo\",\"inputSchema\":{}}]"#),
        &tools(r#"[{\"name\":\"other\",\"inputSchema\":{}}]"#),
    );
    settle(&mut world);
    assert_fails(&mut world, echo(), ErrorKind::Closed, Ran::Maybe);
    assert_fails(&mut world, echo(), ErrorKind::CapabilityMissing, Ran::No);
    let report = world.client.report();
    assert_eq!(report.peers[0].tools, ["other"]);
    assert!(
        report.peers[0]
            .notes
            .iter()
            .any(|note| note.contains("added other")),
        "{:?}",
        report.peers[0].notes
    );
    close(world);
}

/// R41: what waits for a server to come back waits no longer than it may.
#[test]
fn waiting_for_a_restart_has_a_deadline() {
    let mut world = lives(
        |peer| peer.restart.backoff = millis(20_000),
        r#"[{"on":"tools/call"},{"exit":1}]"#,
        ANSWERS,
    );
    settle(&mut world);
    assert_fails(&mut world, echo(), ErrorKind::Closed, Ran::Maybe);
    let brief = echo().with(Options {
        idle_timeout: Some(millis(100)),
        ..Options::default()
    });
    assert_fails(&mut world, brief, ErrorKind::Timeout, Ran::No);
    // Closing does not wait for the next attempt either.
    let before = world.now();
    world.inject("srv", Fault::Kill);
    let closed = close(world);
    assert!(closed.now().since(before) < millis(1_000));
}

/// R34: a call that was written once may have been executed, whatever it waits for when it fails: a place in
/// another round, or a server that comes back without the tool.
#[test]
fn what_was_written_in_an_earlier_round_or_life_may_have_run() {
    let asks = r#"[{"on_each":"tools/call","emit":["{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"resultType\":\"input_required\",\"requestState\":\"s\"}}"]}]"#;
    let mut world = lives(|_| {}, asks, asks);
    settle(&mut world);
    let brief = echo().with(Options {
        absolute_timeout: Some(millis(10)),
        ..Options::default()
    });
    assert_fails(&mut world, brief, ErrorKind::Timeout, Ran::Maybe);
    let waits = world.submit(echo()).unwrap();
    world.run_for(millis(1));
    world.cancel(waits);
    let Outcome::Failed(error) = world.run_until_ended(waits).unwrap().outcome else {
        panic!("it is cancelled")
    };
    assert_eq!(
        (error.kind(), error.ran),
        (ErrorKind::Cancelled, Ran::Maybe)
    );
    close(world);

    let idempotent = |peer: &mut PeerConfig| {
        peer.idempotent_tools.insert("echo".into());
    };
    let other = r#"[{"on_each":"tools/list","emit":["{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"resultType\":\"complete\",\"tools\":[{\"name\":\"other\",\"inputSchema\":{}}]}}"]}]"#;
    let dies = r#"[{"on":"tools/call"},{"exit":1}]"#;
    let mut world = lives(idempotent, dies, other);
    settle(&mut world);
    assert_fails(&mut world, echo(), ErrorKind::CapabilityMissing, Ran::Maybe);
    // Nothing of this one was ever written.
    assert_fails(&mut world, echo(), ErrorKind::CapabilityMissing, Ran::No);
    close(world);
}

/// R2, R80: a qualified name is its prefix's, so it waits for that peer alone, at the start as well.
#[test]
fn a_qualified_name_waits_for_its_own_peer_alone() {
    let scripts = vec![
        ("good".into(), Script::modern()),
        ("mute".into(), script(r#"{"steps":[{"hang":true}]}"#)),
    ];
    let mut world = World::new(
        Config::new(vec![peer("good"), peer("mute")]),
        Identity::default(),
        scripts,
    );
    world.connect();
    let echo = |tool: &str| Operation::call(tool, Json::parse(r#"{"text":"x"}"#).ok());
    let ended = run(&mut world, echo("good/echo"));
    assert!(matches!(ended.outcome, Outcome::Complete(_)), "{ended:?}");
    assert_eq!(world.now(), Instant::ZERO);
    // The bare name may be the other one's as well.
    run(&mut world, echo("echo"));
    assert!(world.now() >= Instant::after_epoch(millis(10_000)));
    close(world);
}
