//! Several servers under one roof, and operations that have to wait: for peers, for places, for lists.

mod world_support;

use conformance::fake_server::Script;
use conformance::world::{World, millis};
use mcp_proto::error::{Cause, Listable};
use mcp_proto::report::PeerState;
use mcp_proto::{
    Config, Duration, Ended, Era, ErrorKind, Identity, News, Operation, Options, Outcome,
    PeerConfig, Ran, Reply, Request,
};
use world_support::*;

const LIST: &str = r#"{"on_each":"tools/list","emit":"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"resultType\":\"complete\",\"tools\":[{\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\"}}]}}"}"#;

/// A modern server with these steps.
fn steps(steps: &str) -> Script {
    script(&format!(r#"{{"era":"modern","steps":{steps}}}"#))
}

/// A world of several peers, connected.
fn several(peers: Vec<(PeerConfig, Script)>) -> World {
    let scripts = peers
        .iter()
        .map(|(peer, script)| (peer.name.clone(), script.clone()))
        .collect();
    let peers = peers.into_iter().map(|(peer, _)| peer).collect();
    let mut world = World::new(Config::new(peers), Identity::default(), scripts);
    world.connect();
    world
}

fn impatient(name: &str) -> PeerConfig {
    let mut peer = peer(name);
    peer.timeout = millis(1_000);
    peer
}

fn state(world: &World, name: &str) -> PeerState {
    let peers = world.client.report().peers;
    peers
        .into_iter()
        .find(|peer| peer.name == name)
        .unwrap()
        .state
}

fn within(total: u64) -> Options {
    Options {
        total_timeout: Some(millis(total)),
        ..Options::default()
    }
}

fn elapsed(world: &World, from: mcp_proto::Instant) -> Duration {
    world.now().since(from)
}

fn timed_out(ended: &Ended) -> bool {
    matches!(&ended.outcome, Outcome::Failed(error) if error.kind() == ErrorKind::Timeout)
}

/// R18, R20: a listing that failed is tried again by the next operation that needs it, and the peer is
/// well from then on.
#[test]
fn a_failed_listing_is_tried_again() {
    let first_is_ignored = format!(r#"[{{"on":"tools/list"}},{LIST}]"#);
    let again: [fn() -> Operation; 3] = [
        || Operation::new(Request::ListTools).on("srv"),
        || echo(),
        || Operation::call("echo", None),
    ];
    for operation in again {
        let mut world = several(vec![(impatient("srv"), steps(&first_is_ignored))]);
        settle(&mut world);
        assert_eq!(state(&world, "srv"), PeerState::Failed);
        assert_eq!(world.client.report().peers[0].era, Some(Era::Modern));
        let mut operation = operation();
        operation.options = within(30_000);
        let id = world.submit(operation).unwrap();
        world.run_for(millis(10));
        assert_eq!(
            state(&world, "srv"),
            PeerState::Ready,
            "{}",
            world.transcript()
        );
        world.cancel(id);
        close(world);
    }
}

/// R41: an operation that waits for a place in flight has its deadlines, and was not executed.
#[test]
fn waiting_for_a_place_in_flight_is_not_waiting_for_ever() {
    let mut peer = peer("srv");
    peer.limits.in_flight = 1;
    let mut world = world(peer, steps(r#"[{"on":"tools/call"},{"hang":true}]"#));
    settle(&mut world);
    let began = world.now();
    let ids: Vec<_> = (0..3)
        .map(|_| world.submit(echo().with(within(1_000))).unwrap())
        .collect();
    let mut ran = Vec::new();
    for id in ids {
        let ended = world.run_until_ended(id).unwrap();
        assert!(timed_out(&ended), "{ended:?}");
        if let Outcome::Failed(error) = ended.outcome {
            ran.push(error.ran);
        }
    }
    assert_eq!(elapsed(&world, began), millis(1_000));
    assert_eq!(ran, [Ran::Maybe, Ran::No, Ran::No]);
    close(world);
}

/// A list that nobody could give is an error, not an empty list; one of two servers is enough.
#[test]
fn a_list_of_all_is_not_empty_because_nobody_answered() {
    let silent = || {
        steps(&format!(
            r#"[{LIST},{{"on_each":"prompts/list","emit":[]}}]"#
        ))
    };
    let mut world = several(vec![(impatient("a"), silent())]);
    settle(&mut world);
    let error = fails(&mut world, Operation::new(Request::ListPrompts));
    assert_eq!(error.kind(), ErrorKind::Timeout);
    close(world);

    let mut world = several(vec![
        (impatient("a"), silent()),
        (peer("b"), Script::modern()),
    ]);
    settle(&mut world);
    let Outcome::Complete(Reply::Prompts(prompts)) =
        run(&mut world, Operation::new(Request::ListPrompts)).outcome
    else {
        panic!("{}", world.transcript());
    };
    assert!(!prompts.is_empty());
    close(world);
}

/// Finding the owner of a resource and reading it have one deadline together.
#[test]
fn the_cap_covers_all_parts_of_an_operation() {
    let slow = format!(
        r#"[{LIST},{{"on":"resources/list"}},{{"sleep_ms":700}},"{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{{\"resultType\":\"complete\",\"resources\":[{{\"uri\":\"x:y\",\"name\":\"y\"}}]}}}}",{{"on":"resources/read"}},{{"hang":true}}]"#
    );
    // Neither declares resources, so both are asked.
    let mut world = several(vec![
        (peer("a"), steps(&slow)),
        (peer("b"), steps(&format!("[{LIST}]"))),
    ]);
    settle(&mut world);
    let began = world.now();
    let ended = run(&mut world, Operation::read("x:y").with(within(1_000)));
    assert!(timed_out(&ended), "{ended:?}\n{}", world.transcript());
    assert_eq!(elapsed(&world, began), millis(1_000));
    close(world);
}

/// A URI qualified with its peer needs no listing: what a template makes is listed nowhere.
#[test]
fn a_qualified_uri_goes_to_its_peer() {
    let mut world = several(vec![
        (peer("a"), Script::modern()),
        (peer("b"), Script::modern()),
    ]);
    settle(&mut world);
    let error = fails(&mut world, Operation::read("a/nothing://here"));
    assert_eq!(
        (error.kind(), error.peer.as_deref()),
        (ErrorKind::Rpc, Some("a"))
    );
    assert!(!world.sent_to("a").contains("resources/list"));
    let error = fails(&mut world, Operation::read("nothing://here"));
    assert!(
        matches!(
            &error.cause,
            Cause::NotListed {
                what: Listable::Resource,
                ..
            }
        ),
        "{error:?}"
    );
    close(world);
}

/// Listening to all goes on whatever becomes of single servers, until the application or its time ends it.
#[test]
fn listening_to_all_ends_when_it_is_told_to() {
    let mut world = several(vec![(peer("a"), Script::modern())]);
    settle(&mut world);
    let listen = world.submit(Operation::new(Request::Listen)).unwrap();
    world.run_for(millis(10));
    let changed = Operation::call("touch_list", None).on("a");
    run(&mut world, changed);
    // The server ends the subscription, and nobody has taken what came.
    run(&mut world, Operation::call("end_listen", None).on("a"));
    world.run_for(millis(10));
    let is_end = |news: &News| matches!(news, News::Ended(ended) if ended.operation == listen);
    assert!(
        !world.take_news().iter().any(is_end),
        "{}",
        world.transcript()
    );
    world.finish(listen);
    let ended = world.run_until_ended(listen).unwrap();
    assert_eq!(
        ended.outcome,
        Outcome::Complete(Reply::Listened { notifications: 1 })
    );
    let unread = world.client.take_notifications(listen);
    assert_eq!(unread.len(), 1);
    assert_eq!(unread[0].method, "notifications/tools/list_changed");
    assert!(world.client.take_notifications(listen).is_empty());

    let began = world.now();
    let ended = run(
        &mut world,
        Operation::new(Request::Listen).with(within(5_000)),
    );
    assert!(timed_out(&ended), "{ended:?}");
    assert_eq!(elapsed(&world, began), millis(5_000));
    close(world);
}

/// Operations of one peer keep their order while it connects, also those that do not name it; one that
/// names a peer which is there does not wait for another.
#[test]
fn order_is_kept_while_peers_connect_and_nobody_waits_in_vain() {
    let slow = format!(
        r#"[{{"on":"server/discover"}},{{"sleep_ms":2000}},"«GOOD_DISCOVER»",{LIST},{{"on_each":"tools/call","emit":"«OK_RESULT»"}}]"#
    );
    let slow = || script(&format!(r#"{{"era":"probe","steps":{slow}}}"#));
    let mut world = several(vec![(peer("srv"), slow())]);
    let marked = |mark: &str| {
        let arguments = mcp_proto::wire::Json::parse(&format!(r#"{{"text":"{mark}"}}"#)).ok();
        Operation::call("echo", arguments)
    };
    let first = world.submit(marked("first")).unwrap();
    let second = world.submit(marked("second").on("srv")).unwrap();
    for id in [first, second] {
        assert!(world.run_until_ended(id).is_some());
    }
    let sent = world.sent_to("srv");
    assert!(
        sent.find("first").unwrap() < sent.find("second").unwrap(),
        "{sent}"
    );
    close(world);

    let mut world = several(vec![
        (peer("quick"), Script::modern()),
        (peer("slow"), slow()),
    ]);
    let anywhere = world.submit(marked("anywhere")).unwrap();
    world.run_for(millis(10));
    let ended = run(&mut world, marked("now").on("quick"));
    assert!(matches!(ended.outcome, Outcome::Complete(_)), "{ended:?}");
    assert!(
        world.now().as_nanos() < 1_000_000_000,
        "{}",
        world.transcript()
    );
    world.cancel(anywhere);
    close(world);
}

/// A list that was asked for before the first listing was in is answered by it; later ones are asked anew,
/// because this server allows no keeping (R70).
#[test]
fn the_first_listing_answers_those_who_wait_for_it() {
    for operation in [
        Operation::new(Request::ListTools).on("srv"),
        Operation::new(Request::ListTools),
    ] {
        let mut world = several(vec![(peer("srv"), steps(&format!("[{LIST}]")))]);
        let lists = |world: &World| world.sent_to("srv").matches("tools/list\"").count();
        run(&mut world, operation.clone());
        let first = lists(&world);
        run(&mut world, operation);
        assert!(lists(&world) > first);
        assert_eq!(
            world
                .sent_to("srv")
                .matches(r#""method":"tools/list""#)
                .count(),
            2
        );
        close(world);
    }
}

/// R2: looking for a tool that nobody lists reads a failed list again; who does not need that does not
/// wait for it.
#[test]
fn looking_for_an_unknown_tool_delays_nobody_else() {
    let hanging = r#"[{"on":"tools/list"},{"on":"tools/list"},{"hang":true}]"#;
    let mut world = several(vec![
        (peer("a"), Script::modern()),
        (impatient("b"), steps(hanging)),
    ]);
    settle(&mut world);
    assert_eq!(state(&world, "b"), PeerState::Failed);
    let began = world.now();
    let unknown = world.submit(Operation::call("nowhere", None)).unwrap();
    let mut known = echo();
    known.peer = None;
    let known = world.submit(known).unwrap();
    let ended = world.run_until_ended(known).unwrap();
    assert!(matches!(ended.outcome, Outcome::Complete(_)), "{ended:?}");
    assert!(elapsed(&world, began) < millis(1_000));
    assert_eq!(state(&world, "b"), PeerState::Failed);
    let ended = world.run_until_ended(unknown).unwrap();
    assert!(
        matches!(&ended.outcome, Outcome::Failed(error) if error.kind() == ErrorKind::ToolNotFound),
        "{ended:?}"
    );
    assert_eq!(elapsed(&world, began), millis(1_000));
    close(world);
}

/// R41: listening to all has its end also when every server is gone before.
#[test]
fn listening_to_servers_that_die_ends_in_time() {
    let dies = r#"[{"on":"subscriptions/listen"},{"exit":1}]"#;
    let mut world = several(vec![(peer("a"), steps(dies)), (peer("b"), steps(dies))]);
    settle(&mut world);
    let began = world.now();
    let ended = run(
        &mut world,
        Operation::new(Request::Listen).with(within(5_000)),
    );
    assert!(timed_out(&ended), "{ended:?}");
    assert_eq!(elapsed(&world, began), millis(5_000));
    close(world);
}

/// The answer to a list of resources that holds this URI.
fn resource(uri: &str) -> String {
    format!(
        r#""{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{{\"resultType\":\"complete\",\"resources\":[{{\"uri\":\"{uri}\",\"name\":\"y\"}}]}}}}""#
    )
}

const CONTENTS: &str = r#"{"on_each":"resources/read","emit":"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"resultType\":\"complete\",\"contents\":[{\"uri\":\"x:y\",\"text\":\"it\"}]}}"}"#;

/// A server that lists this URI after a while and reads everything, and one whose list never comes.
fn reader(after_ms: u64) -> Script {
    let list = resource("x:y");
    steps(&format!(
        r#"[{LIST},{CONTENTS},{{"on":"resources/list"}},{{"sleep_ms":{after_ms}}},{list}]"#
    ))
}

fn silent() -> Script {
    steps(&format!(
        r#"[{LIST},{CONTENTS},{{"on_each":"resources/list","emit":[]}}]"#
    ))
}

/// R2: a list that does not come holds up reading from another server for a moment only; a server that is
/// merely slow is found all the same, at the moment when its list comes.
#[test]
fn a_hanging_list_delays_reading_from_another_server_by_little() {
    for (after_ms, expected_ms) in [(0, 3_000), (2_000, 3_000), (20_000, 20_000)] {
        let mut world = several(vec![(peer("a"), silent()), (peer("b"), reader(after_ms))]);
        settle(&mut world);
        let began = world.now();
        let ended = run(&mut world, Operation::read("x:y"));
        assert_eq!(ended.peer.as_deref(), Some("b"));
        assert!(matches!(ended.outcome, Outcome::Complete(_)), "{ended:?}");
        assert_eq!(elapsed(&world, began), millis(expected_ms), "{after_ms}");
        let notes = world.client.report().peers[0].notes.join("\n");
        assert!(notes.contains("list of resources did not come"), "{notes}");
        assert!(world.client.poll_timeout().is_none(), "nothing is left");
        close(world);
    }
}

/// R41: an operation in a hurry waits for half of its time, so that it has the other half for itself.
#[test]
fn a_hanging_list_takes_half_of_a_short_operation() {
    let mut world = several(vec![(peer("a"), silent()), (peer("b"), reader(0))]);
    settle(&mut world);
    let began = world.now();
    let ended = run(&mut world, Operation::read("x:y").with(within(1_000)));
    assert!(matches!(ended.outcome, Outcome::Complete(_)), "{ended:?}");
    assert_eq!(elapsed(&world, began), millis(500));
    close(world);
}

/// R41: whoever wakes up late finds the operation routed and out of time at once, and is not due again.
#[test]
fn a_late_wake_up_leaves_nothing_due() {
    let mut world = several(vec![(peer("a"), silent()), (peer("b"), reader(0))]);
    settle(&mut world);
    world
        .submit(Operation::read("x:y").with(within(1_000)))
        .unwrap();
    world.run_for(millis(1));
    let late = world.now() + millis(2_000);
    world.client.handle(mcp_proto::Event::TimePassed, late);
    let due = world.client.poll_timeout();
    assert!(due.is_none_or(|due| due > late), "{due:?}");
}

/// R80, R81: what two servers list stays ambiguous, however late a third one is; and while nobody lists
/// it, the one whose list does not come may be the owner.
#[test]
fn a_hanging_list_makes_no_name_unique() {
    let mut world = several(vec![
        (peer("a"), silent()),
        (peer("b"), reader(0)),
        (peer("c"), reader(100)),
    ]);
    settle(&mut world);
    let began = world.now();
    let error = fails(&mut world, Operation::read("x:y"));
    assert_eq!(error.kind(), ErrorKind::AmbiguousTool, "{error}");
    assert_eq!(elapsed(&world, began), millis(3_000));
    let mut slow = impatient("a");
    slow.timeout = millis(10_000);
    let others = ["b", "c"].map(|name| (peer(name), reader(0)));
    let mut world = several([(slow, silent())].into_iter().chain(others).collect());
    settle(&mut world);
    let began = world.now();
    let error = fails(&mut world, Operation::read("other:z"));
    assert_eq!(
        (error.kind(), error.peer.as_deref()),
        (ErrorKind::Timeout, Some("a"))
    );
    assert_eq!(elapsed(&world, began), millis(10_000));
    close(world);
}

/// A tool that nobody has may be one of a server that failed: the error names it, and why it failed. When
/// nobody is left, that is the error.
#[test]
fn what_is_not_found_may_be_where_nobody_could_be_asked() {
    let dead = || script(r#"{"steps":[{"stderr":"Error: no key\nbye\n"},{"exit":3}]}"#);
    let unknown = || {
        [
            Operation::call("nowhere", None),
            Operation::read("no:where"),
            Operation::new(Request::GetPrompt {
                name: "nowhere".into(),
                arguments: None,
            }),
        ]
    };
    let mut world = several(vec![
        (peer("a"), Script::modern()),
        (peer("b"), Script::modern()),
        (peer("dead"), dead()),
    ]);
    settle(&mut world);
    for operation in unknown() {
        let error = fails(&mut world, operation);
        assert_eq!(error.kind(), ErrorKind::ToolNotFound);
        let failed = error.failed_peers().unwrap();
        assert_eq!((failed.total, failed.configured), (1, 3));
        assert_eq!(failed.named[0].peer, "dead");
        assert_eq!(failed.named[0].kind, ErrorKind::Closed);
        let words = " (1 of 3 servers failed: dead: ";
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.to_string().ends_with("Error: no key)"), "{error}");
    }
    close(world);

    let mut world = several(vec![(peer("dead"), dead()), (peer("dead2"), dead())]);
    settle(&mut world);
    let lists = [Request::ListTools, Request::ListResources].map(Operation::new);
    for operation in unknown().into_iter().chain(lists) {
        let error = fails(&mut world, operation);
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert_eq!(error.failed_peers().unwrap().total, 2);
        assert!(
            error
                .to_string()
                .starts_with("no server is available: dead: "),
            "{error}"
        );
    }
    close(world);
}

/// The most telling line of standard error stands in the message, the last ones beside it.
#[test]
fn a_server_that_dies_is_quoted() {
    let dead = r#"{"steps":[{"stderr":"line 1\n\nError: no key\n    at x\n    at y\nnode v1\n"},{"exit":3}]}"#;
    let mut world = several(vec![(peer("dead"), script(dead))]);
    settle(&mut world);
    let failure = world.client.report().peers[0].failure.clone().unwrap();
    assert!(failure.message.ends_with("its last words: Error: no key"));
    let lines = ["line 1", "Error: no key", "    at x", "    at y", "node v1"];
    assert_eq!(failure.stderr, lines);
    close(world);
}
