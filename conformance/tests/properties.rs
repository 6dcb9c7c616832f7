//! What holds whatever servers, applications and schedules do.
//!
//! Most of it is judged at the World's border with every action; see `conformance::world::Rule`.
//! `cargo run --profile checked -p conformance --bin schedules` runs a hundred thousand of the same runs;
//! `PROPERTY_SCALE=10` runs ten times as many cases.

use conformance::fake_server::Script;
use conformance::schedules::{self, Failure, LONG};
use conformance::strategies::{self, LINE_BYTES};
use conformance::world::{Bytes, World, millis};
use mcp_proto::wire::Json;
use mcp_proto::{
    Client, Config, Event, Identity, Instant, LinkId, Operation, Options, Outcome, PeerConfig,
    PeerId, Request,
};
use proptest::prelude::*;
use proptest::test_runner::Config as Runner;

fn cases(count: u32) -> Runner {
    let scale = std::env::var("PROPERTY_SCALE").ok();
    let scale: u32 = scale.and_then(|scale| scale.parse().ok()).unwrap_or(1);
    Runner {
        cases: count * scale,
        max_shrink_iters: 4_096,
        failure_persistence: None,
        ..Runner::default()
    }
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..most)
}

fn check(held: Result<(), Failure>) -> Result<(), TestCaseError> {
    held.map_err(|failure| TestCaseError::fail(failure.to_string()))
}

// The properties of whole runs, with bytes that shrink when one fails. The binary `schedules` runs many more.
proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn the_border_holds(plan in bytes(480), schedule in bytes(480)) {
        check(schedules::border_holds(&plan, &schedule))?;
    }
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn the_border_holds_under_odd_clocks(plan in bytes(360), schedule in bytes(500)) {
        check(schedules::border_holds_under_odd_clocks(&plan, &schedule))?;
    }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn the_same_inputs_give_the_same_actions(plan in bytes(360), schedule in bytes(200)) {
        check(schedules::same_inputs_same_actions(&plan, &schedule))?;
    }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn cuts_make_no_difference(plan in bytes(360), cuts in bytes(200)) {
        check(schedules::cuts_make_no_difference(&plan, &cuts))?;
    }

    #[test]
    fn no_peer_harms_another(plan in bytes(160), hostile in bytes(160)) {
        check(schedules::no_peer_harms_another(&plan, &hostile))?;
    }

    /// P8, R80: the order in which peers are configured changes no canonical name.
    #[test]
    fn the_order_of_peers_changes_no_name(plan in bytes(60)) {
        let mut plan = Bytes::new(plan);
        let mut peers = Vec::new();
        let mut scripts = Vec::new();
        for name in ["a", "b", "c"] {
            peers.push(strategies::peer(&mut plan, name));
            scripts.push((name.to_owned(), strategies::script(&mut plan)));
        }
        let report = |peers: Vec<PeerConfig>| {
            let world = World::new(Config::new(peers), Identity::default(), scripts.clone());
            let mut world = world.with_untrusted_servers();
            world.connect();
            world.run_for(LONG);
            world.client.report().to_string()
        };
        let forwards = report(peers.clone());
        peers.rotate_left(1);
        prop_assert_eq!(&report(peers.clone()), &forwards);
        peers.swap(0, 1);
        prop_assert_eq!(&report(peers), &forwards);
    }
}

/// More than the state of a client with one small peer ever takes when printed.
const STATE_BYTES_MAX: usize = 96 << 10;

proptest! {
    #![proptest_config(cases(20))]

    /// P5 (R1): a client's state stays bounded while megabytes of anything arrive. `Debug` prints every
    /// byte that is kept, so its length is an upper bound.
    #[test]
    fn state_is_bounded(plan in bytes(600), allow_legacy in any::<bool>()) {
        let mut plan = Bytes::new(plan);
        let mut peer = PeerConfig::stdio("a", "a", Vec::<String>::new());
        peer.allow_legacy = allow_legacy;
        peer.limits.line_bytes = 1 << 10;
        peer.limits.items = 20;
        peer.limits.notifications = 4;
        peer.limits.stderr_tail_bytes = 256;
        peer.limits.noise_tail_bytes = 256;
        let pinned = Config::new(vec![peer]).pin(&mut |name| (name == "PATH").then(|| "/bin".into()), &mut |_| Some("/bin/a".into()));
        let (mut client, now) = (Client::new(pinned, Identity::default(), Instant::ZERO), Instant::ZERO);
        let link = LinkId { peer: PeerId::new(0), serial: 1 };
        client.connect(now);
        client.handle(Event::LinkOpened { link }, now);
        // The era is found out; what is written is never acknowledged: nothing else leaves.
        let answer: &[u8] = if allow_legacy {
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,\"message\":\"\"}}\n"
        } else {
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{}}}\n"
        };
        client.handle(Event::LinkData { link, bytes: answer }, now);
        client.handle(Event::LinkWritten { link, spent: Vec::new() }, now);
        client.handle(Event::LinkData { link, bytes: b"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"serverInfo\":{\"name\":\"x\",\"version\":\"1\"}}}\n" }, now);
        let _ = client.submit(Operation::new(Request::Listen).on("a"), now);
        let call = Operation::call("echo", Json::parse("{}").ok()).on("a");
        let _ = client.submit(call.with(Options { progress: true, ..Options::default() }), now);
        for _ in 0..60 {
            let line = strategies::hostile_text(&mut plan);
            for _ in 0..200 {
                if client.wants_read(link) {
                    client.handle(Event::LinkData { link, bytes: line.as_bytes() }, now);
                }
                client.handle(Event::LinkStderr { link, bytes: line.as_bytes() }, now);
                while client.poll_action().is_some() {}
            }
            let state = format!("{client:?}").len();
            prop_assert!(state < STATE_BYTES_MAX, "{state} bytes after {line}");
        }
    }
}

/// R42, R91: what waits for the application is bounded by reading no more.
#[test]
fn reading_stops_while_notifications_wait() {
    let mut peer = PeerConfig::stdio("a", "a", Vec::<String>::new());
    peer.limits.notifications = 2;
    peer.limits.line_bytes = LINE_BYTES;
    let script = Script::from_json(
        r#"{"steps":[{"on":"subscriptions/listen"},
          {"loop":{"every_ms":10,"emit":"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":{\"uri\":\"x:$N\",\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":$SUBID}}}"}}]}"#,
    )
    .unwrap();
    let scripts = vec![("a".into(), script)];
    let mut world = World::new(Config::new(vec![peer]), Identity::default(), scripts);
    world.connect();
    let listen = world
        .submit(Operation::new(Request::Listen).on("a"))
        .unwrap();
    world.run_for(millis(1_000));
    assert_eq!(world.client.take_notifications(listen).len(), 2);
    world.run_for(millis(1_000));
    let waiting = world.client.take_notifications(listen);
    assert_eq!(waiting.len(), 2);
    assert!(waiting[0].params.as_ref().unwrap().as_str().contains("x:3"));
}

/// R2, R42: a peer whose notifications nobody takes holds up nobody but itself.
#[test]
fn a_flooded_peer_holds_up_only_itself() {
    let flood = r#"{"steps":[{"on":"subscriptions/listen"},
      {"loop":{"every_ms":10,"emit":"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":{\"uri\":\"x:$N\",\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":$SUBID}}}"}}]}"#;
    let peers = ["a", "b"].map(|name| {
        let mut peer = PeerConfig::stdio(name, name, Vec::<String>::new());
        peer.limits.notifications = 2;
        peer
    });
    let scripts = vec![
        ("a".into(), Script::from_json(flood).unwrap()),
        ("b".into(), Script::modern()),
    ];
    let mut world = World::new(Config::new(peers.into()), Identity::default(), scripts);
    world.connect();
    let listen = world.submit(Operation::listen(Some("a"))).unwrap();
    world.run_for(millis(1_000));
    let echo = Operation::call("echo", Json::parse(r#"{"text":"x"}"#).ok()).on("b");
    let ended = world.run(echo).unwrap();
    assert!(matches!(ended.outcome, Outcome::Complete(_)), "{ended:?}");
    assert_eq!(world.now(), Instant::ZERO + millis(1_000));
    assert_eq!(world.client.take_notifications(listen).len(), 2);
}
