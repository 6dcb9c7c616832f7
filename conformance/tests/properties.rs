//! What holds whatever servers, applications and schedules do.
//!
//! Most of it is judged at the World's border with every action; see `conformance::world::Rule`.
//! `PROPERTY_SCALE=10` runs ten times as many cases.

use conformance::fake_server::Script;
use conformance::strategies::{self, LINE_BYTES, perform};
use conformance::world::{Bytes, Choice as _, Splits, World, millis};
use mcp_proto::wire::Json;
use mcp_proto::{
    Client, Config, Duration, Event, Identity, Instant, LinkId, News, Operation, Options,
    PeerConfig, PeerId, Request,
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

const NAMES: [&str; 2] = ["a", "b"];

/// Long enough for every deadline of generated peers, one after the other.
const LONG: Duration = Duration::from_secs(60);

/// Lets everything come to its end: whatever was accepted ends by its deadlines, and close ends all.
fn finish(world: &mut World) -> Result<(), TestCaseError> {
    world.run_for(LONG);
    verdict(world)?;
    let running = world.running();
    prop_assert!(
        running.is_empty(),
        "{running:?} still run\n{}",
        world.transcript()
    );
    world.close();
    verdict(world)?;
    prop_assert!(
        world.client.is_closed(),
        "never closed\n{}",
        world.transcript()
    );
    prop_assert_eq!(world.client.poll_timeout(), None, "a closed client waits");
    Ok(())
}

fn verdict(world: &mut World) -> Result<(), TestCaseError> {
    world
        .verdict()
        .map_err(|breach| TestCaseError::fail(breach.to_string()))
}

/// Two peers, whatever servers, an application that does anything, and a schedule that decides.
fn generated(plan: &[u8], schedule: Vec<u8>, adapt: impl FnOnce(World) -> World) -> World {
    let mut plan = Bytes::new(plan);
    let world = strategies::world(&mut plan, &NAMES, Bytes::new(schedule));
    let mut world = adapt(world);
    world.connect();
    let steps = strategies::steps(&mut plan, &NAMES);
    perform(&mut world, &steps);
    world
}

proptest! {
    #![proptest_config(cases(12_000))]

    /// P1, P3, P4, P6, P7 (R1, R5, R14, R15, R40, R41, R42, R60, R81, R90, R100): the border holds,
    /// every accepted operation ends exactly once and by its deadlines, closing always ends.
    #[test]
    fn the_border_holds(plan in bytes(200), schedule in bytes(300)) {
        let mut world = generated(&plan, schedule, |world| world);
        finish(&mut world)?;
    }
}

proptest! {
    #![proptest_config(cases(4_000))]

    /// P10 (R1, R41): a clock that stands still, goes backwards or jumps by a year breaks nothing.
    #[test]
    fn the_border_holds_under_odd_clocks(plan in bytes(120), schedule in bytes(500)) {
        let mut world = generated(&plan, schedule, World::with_odd_clock);
        // Time is no measure here.
        let mut turns = 0;
        while !world.running().is_empty() && turns < 20_000 && world.turn() {
            turns += 1;
        }
        finish(&mut world)?;
    }

}

proptest! {
    #![proptest_config(cases(2_000))]

    /// P8 (R7): the same inputs give the same actions, byte by byte.
    #[test]
    fn the_same_inputs_give_the_same_actions(plan in bytes(120), schedule in bytes(120)) {
        let run = || {
            let mut world = generated(&plan, schedule.clone(), World::with_fingerprint);
            world.run_for(LONG);
            world.close();
            (world.fingerprint(), world.transcript())
        };
        prop_assert_eq!(run(), run());
    }
}

/// What an application sees of one peer when everything arrives as soon as it can.
#[derive(Debug, PartialEq)]
struct Seen {
    news: Vec<News>,
    report: String,
    counters: mcp_proto::peer::Counters,
    written: String,
}

fn seen(plan: &[u8], cut: impl FnOnce(World) -> World) -> Result<Seen, TestCaseError> {
    let mut plan = Bytes::new(plan);
    let peers = vec![strategies::peer(&mut plan, "a")];
    let scripts = vec![("a".to_owned(), strategies::script(&mut plan))];
    let world = World::new(Config::new(peers), Identity::default(), scripts);
    let mut world = cut(world.with_stamps().with_untrusted_servers());
    world.connect();
    let steps = strategies::steps(&mut plan, &["a"]);
    perform(&mut world, &steps);
    world.run_for(LONG);
    world.close();
    verdict(&mut world)?;
    let mut counters = world.client.diagnoses().remove(0).counters;
    // What arrives on a link that is given up is not counted.
    counters.bytes_received = 0;
    Ok(Seen {
        news: world.take_news(),
        report: world.client.report().to_string(),
        counters,
        written: world.sent_to("a"),
    })
}

proptest! {
    #![proptest_config(cases(600))]

    /// P2 (R100): however the server's output is cut, the application sees the same, and the server too.
    #[test]
    fn cuts_make_no_difference(plan in bytes(160), cuts in bytes(200)) {
        let whole = seen(&plan, |world| world)?;
        let bytewise = seen(&plan, |world| world.with_splits(Splits::OneByte))?;
        prop_assert_eq!(&whole, &bytewise);
        let chosen = seen(&plan, |world| world.with_cuts(Bytes::new(cuts)))?;
        prop_assert_eq!(&whole, &chosen);
    }
}

/// Calls to peer `b` alone, while `a` is whatever it is. Gives what `b` and its callers see.
fn beside(
    plan: &[u8],
    peers: Vec<PeerConfig>,
    a: Option<Script>,
    endless: bool,
) -> (String, Vec<String>) {
    let mut plan = Bytes::new(plan);
    let b = strategies::script(&mut plan);
    let mut scripts = vec![("b".to_owned(), b)];
    scripts.extend(a.map(|script| ("a".to_owned(), script)));
    let world = World::new(Config::new(peers), Identity::default(), scripts);
    let mut world = world.with_untrusted_servers();
    if endless {
        world = world.with_endless_start("a");
    }
    world.connect();
    let mut outcomes = Vec::new();
    for _ in 0..1 + plan.choose(4) {
        let ended = world.submit(strategies::call(&mut plan, &[]).on("b"));
        let ended = ended.map(|id| world.run_until_ended(id));
        outcomes.push(format!("{ended:?}"));
        // The other one is busy as well, or not there at all.
        let _ = world.submit(Operation::call("echo", None).on("a"));
    }
    world.run_for(LONG);
    let transcript = world.transcript_of("b");
    world.close();
    (transcript, outcomes)
}

proptest! {
    #![proptest_config(cases(300))]

    /// P9 (R2): what happens between the client and one peer is the same with a hostile, a hanging, a
    /// dead, a silent or an absent neighbour.
    #[test]
    fn no_peer_harms_another(plan in bytes(100), hostile in bytes(100)) {
        let b = strategies::peer(&mut Bytes::new(&plan), "b");
        let a = strategies::peer(&mut Bytes::new(&hostile), "a");
        let hostile = strategies::script(&mut Bytes::new(&hostile));
        let silent = Script::from_json(r#"{"steps":[{"on":"server/discover"},{"hang":true}]}"#).unwrap();
        let dead = Script::from_json(r#"{"steps":[{"exit":1}]}"#).unwrap();
        let alone = beside(&plan, vec![b.clone()], None, false);
        for (script, endless) in [(Some(hostile), false), (Some(silent), false), (Some(dead), false), (None, false), (None, true)] {
            for peers in [vec![a.clone(), b.clone()], vec![b.clone(), a.clone()]] {
                let together = beside(&plan, peers, script.clone(), endless);
                prop_assert_eq!(&together, &alone);
            }
        }
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
        let pinned = Config::new(vec![peer]).pin(&mut |_| None, &mut |_| Some("/bin/a".into()));
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
    let oldest = waiting[0].params.as_ref().unwrap().as_str();
    assert!(oldest.contains("x:3"), "{oldest}");
}
