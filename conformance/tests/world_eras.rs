//! Finding out the era, as whole exchanges (R10–R18).

mod world_support;

use conformance::fake_server::{LegacyVersion, Script};
use conformance::world::World;
use mcp_proto::negotiation::EraSetting;
use mcp_proto::{Config, Duration, Era, ErrorKind, Identity, Ran};
use world_support::*;

fn era(world: &World) -> Option<Era> {
    world.client.peers().next().unwrap().report().era
}

fn failure(world: &World) -> ErrorKind {
    let report = world.client.peers().next().unwrap().report();
    let failure = report
        .failure
        .unwrap_or_else(|| panic!("{}", world.transcript()));
    failure.kind
}

/// R10, R11, R20, R100: the whole exchange with a modern server, to the last signal.
#[test]
fn a_modern_server_from_start_to_end() {
    let mut world = world(peer("srv"), Script::modern().with_tools(["echo"]));
    assert_eq!(call(&mut world).text(), "hi");
    assert_eq!(era(&world), Some(Era::Modern));
    let world = close(world);
    insta::assert_snapshot!(world.transcript());
}

/// R14: the same with an older one.
#[test]
fn an_older_server_from_start_to_end() {
    let script = Script::legacy(LegacyVersion::V2025_06_18).with_tools(["echo"]);
    let mut world = world(allowed("srv"), script);
    assert_eq!(call(&mut world).text(), "hi");
    assert_eq!(era(&world), Some(Era::Legacy));
    let world = close(world);
    insta::assert_snapshot!(world.transcript());
}

/// What servers without the modern era answer to a probe, and how the handshake then goes.
const AMBIGUOUS: [(&str, &str); 7] = [
    (
        "method not found",
        r#"{"on":"server/discover"}, "«METHOD_NOT_FOUND»""#,
    ),
    (
        "code 0",
        r#"{"on":"server/discover"}, "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{\"code\":0,\"message\":\"invalid during session initialization\"}}""#,
    ),
    (
        "empty result",
        r#"{"on":"server/discover"}, "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{}}""#,
    ),
    (
        "only older versions",
        r#"{"on":"server/discover"}, "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"resultType\":\"complete\",\"supportedVersions\":[\"2025-06-18\"],\"capabilities\":{}}}""#,
    ),
    ("silence", r#"{"on":"server/discover"}"#),
    (
        "an error for no id",
        r#"{"on":"server/discover"}, "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600,\"message\":\"x\"}}""#,
    ),
    (
        "an error for a foreign id",
        r#"{"on":"server/discover"}, "{\"jsonrpc\":\"2.0\",\"id\":\"9f\",\"error\":{\"code\":-32600,\"message\":\"x\"}}""#,
    ),
];

/// R14: every ambiguous answer leads an allow-listed server to one handshake and a working session.
#[test]
fn ambiguity_leads_to_one_handshake_where_that_is_allowed() {
    for (what, answer) in AMBIGUOUS {
        let steps = format!(
            r#"[{answer}, {{"on":"initialize"}}, "«GOOD_INIT»", {{"expect_next":"notifications/initialized"}}, {{"forbid":"server/discover"}}]"#
        );
        let mut world = probe(allowed("srv"), &steps);
        assert_eq!(call(&mut world).text(), "hi", "{what}");
        assert_eq!(era(&world), Some(Era::Legacy), "{what}");
        assert_eq!(
            world.sent_to("srv").matches(r#""initialize""#).count(),
            1,
            "{what}"
        );
        assert_eq!(degraded(&world), None, "{what}");
        close(world);
    }
}

/// R14, R17: without the permission not one byte of a handshake is sent, and the error says so.
#[test]
fn without_permission_there_is_no_byte_of_a_handshake() {
    for (what, answer) in AMBIGUOUS {
        let mut world = probe(
            peer("srv"),
            &format!(r#"[{answer}, {{"on":"initialize"}}, "«GOOD_INIT»"]"#),
        );
        settle(&mut world);
        assert_eq!(failure(&world), ErrorKind::LegacyNotAllowed, "{what}");
        assert!(!world.sent_to("srv").contains("initialize"), "{what}");
        assert_fails(&mut world, echo(), ErrorKind::LegacyNotAllowed, Ran::No);
        let world = close(world);
        assert!(!world.sent_to("srv").contains("initialize"), "{what}");
    }
}

/// R18: `era: "modern"` forbids the handshake to allow-listed servers as well.
#[test]
fn the_modern_setting_forbids_the_handshake() {
    for (what, answer) in AMBIGUOUS {
        let mut peer = allowed("srv");
        peer.era = EraSetting::Modern;
        let mut world = probe(peer, &format!(r#"[{answer}]"#));
        settle(&mut world);
        assert_eq!(era(&world), None, "{what}");
        assert!(
            !close(world).sent_to("srv").contains("initialize"),
            "{what}"
        );
    }
}

/// R18: `era: "legacy"` begins with the handshake, for servers that a probe would kill.
#[test]
fn the_legacy_setting_sends_no_probe() {
    let mut peer = allowed("srv");
    peer.era = EraSetting::Legacy;
    let mut world = world(
        peer,
        script(r#"{"era":"legacy","steps":[{"forbid":"server/discover"}]}"#),
    );
    assert_eq!(call(&mut world).text(), "hi");
    assert!(!close(world).sent_to("srv").contains("server/discover"));
}

/// R15: a server that the probe kills is started once more, and then greeted in the old way.
#[test]
fn a_server_that_dies_of_the_probe_is_started_again() {
    let script = script(
        r#"{"era":"probe","steps":[{"on":"server/discover"},{"exit":1}],
            "respawn":[{"forbid":"server/discover"},{"on":"initialize"},"«GOOD_INIT»"]}"#,
    );
    let mut world = world(allowed("srv"), script);
    assert_eq!(call(&mut world).text(), "hi");
    assert_eq!(counters(&world).starts, 2);
    let world = close(world);
    insta::assert_snapshot!(world.transcript());
}

/// R15: without the permission it is not started again.
#[test]
fn a_server_that_dies_of_the_probe_is_not_started_again_without_permission() {
    let mut world = probe(
        peer("srv"),
        r#"[{"on":"server/discover"},{"stderr":"API_KEY is not set\n"},{"exit":1}]"#,
    );
    settle(&mut world);
    assert_eq!(counters(&world).starts, 1);
    let error = assert_fails(&mut world, echo(), ErrorKind::Closed, Ran::No);
    assert!(error.to_string().contains("API_KEY is not set"), "{error}");
    assert!(error.to_string().contains("status 1"), "{error}");
    close(world);
}

/// R15: a discover answer that comes during the handshake wins.
#[test]
fn a_late_discovery_wins() {
    let steps = r#"[{"on":"server/discover","as":"probe"},{"on":"initialize"},
        "{\"jsonrpc\":\"2.0\",\"id\":$ID(probe),\"result\":{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"tools\":{}}}}",
        "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{\"code\":-32601,\"message\":\"Method not found\"}}",
        {"forbid":"notifications/initialized"}]"#;
    let mut world = probe(allowed("srv"), steps);
    assert_eq!(call(&mut world).text(), "hi");
    assert_eq!(era(&world), Some(Era::Modern));
    let world = close(world);
    insta::assert_snapshot!(world.transcript());
}

/// R15: -32022 in answer to the handshake proves modern as well: one more probe, no second handshake.
#[test]
fn a_version_error_to_the_handshake_proves_modern() {
    let steps = r#"[{"on":"server/discover"},"«METHOD_NOT_FOUND»",{"on":"initialize"},
        "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{\"code\":-32022,\"message\":\"v\",\"data\":{\"supported\":[\"2026-07-28\"]}}}",
        {"forbid":"initialize"},{"on":"server/discover"},"«GOOD_DISCOVER»"]"#;
    let mut world = probe(allowed("srv"), steps);
    assert_eq!(call(&mut world).text(), "hi");
    assert_eq!(era(&world), Some(Era::Modern));
    close(world);
}

/// R12: -32022 that lists the very version that was used is answered by one more probe with it.
#[test]
fn a_version_error_is_retried_once_with_the_same_version() {
    let refuse = r#"{"on":"server/discover"},"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{\"code\":-32022,\"message\":\"v\",\"data\":{\"supported\":[\"2026-07-28\"]}}}""#;
    let mut world = probe(
        allowed("srv"),
        &format!(r#"[{refuse},{{"on":"server/discover"}},"«GOOD_DISCOVER»"]"#),
    );
    assert_eq!(call(&mut world).text(), "hi");
    assert_eq!(
        world
            .sent_to("srv")
            .matches(r#""method":"server/discover""#)
            .count(),
        2
    );
    close(world);

    let mut world = probe(allowed("srv"), &format!("[{refuse},{refuse}]"));
    settle(&mut world);
    assert_eq!(failure(&world), ErrorKind::Version);
    assert!(!close(world).sent_to("srv").contains("initialize"));
}

/// R13, R17: no recognised modern error is ever followed by a handshake.
#[test]
fn a_modern_error_is_never_followed_by_a_handshake() {
    for (code, data) in [
        (-32020, "null"),
        (-32021, r#"{\"requiredCapabilities\":{\"sampling\":{}}}"#),
        (-32022, r#"{\"supported\":[\"2030-01-01\"]}"#),
    ] {
        let line = format!(
            r#""{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{{\"code\":{code},\"message\":\"m\",\"data\":{data}}}}}""#
        );
        let mut world = probe(
            allowed("srv"),
            &format!(r#"[{{"on_each":"server/discover","emit":{line}}}]"#),
        );
        settle(&mut world);
        assert_eq!(era(&world), None, "{code}");
        assert!(
            !close(world).sent_to("srv").contains("initialize"),
            "{code}"
        );
    }
}

/// R14: malformed answers are hard failures, at once and without a handshake.
#[test]
fn a_malformed_answer_fails_at_once() {
    for line in [
        r#"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"hello\":1}}"#,
        r#"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"resultType\":\"complete\",\"supportedVersions\":\"2026-07-28\",\"capabilities\":{}}}"#,
        r#"[{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{}}]"#,
        r#"{\"jsonrpc\":\"2.0\",\"id\":$ID}"#,
        r#"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":\"no\"}"#,
    ] {
        let mut world = probe(
            allowed("srv"),
            &format!(r#"[{{"on":"server/discover"}},"{line}"]"#),
        );
        settle(&mut world);
        assert_eq!(failure(&world), ErrorKind::SchemaViolation, "{line}");
        assert_eq!(world.now().as_nanos(), 0, "{line}");
        assert!(
            !close(world).sent_to("srv").contains("initialize"),
            "{line}"
        );
    }
}

/// R14: a handshake is believed only with a known version, capabilities and a name.
#[test]
fn a_bad_handshake_fails_closed() {
    for result in [
        r#"{\"protocolVersion\":\"2031-01-01\",\"capabilities\":{},\"serverInfo\":{\"name\":\"x\",\"version\":\"1\"}}"#,
        r#"{\"protocolVersion\":\"${VERSION}\",\"capabilities\":{},\"serverInfo\":{\"name\":\"x\",\"version\":\"1\"}}"#,
        r#"{\"protocolVersion\":\"2025-06-18\",\"capabilities\":[],\"serverInfo\":{\"name\":\"x\",\"version\":\"1\"}}"#,
        r#"{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"serverInfo\":{\"name\":\"\",\"version\":\"1\"}}"#,
        r#"{\"capabilities\":{}}"#,
    ] {
        let steps = format!(
            r#"[{{"on":"server/discover"}},"«METHOD_NOT_FOUND»",{{"on":"initialize"}},"{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{result}}}"]"#
        );
        let mut world = probe(allowed("srv"), &steps);
        settle(&mut world);
        assert!(
            matches!(
                failure(&world),
                ErrorKind::Version | ErrorKind::SchemaViolation
            ),
            "{result}"
        );
        assert!(
            !close(world)
                .sent_to("srv")
                .contains("notifications/initialized"),
            "{result}"
        );
    }
}

/// R14: what a server says before it answers the handshake neither answers it nor harms it.
#[test]
fn a_notification_before_the_handshake_is_answered_is_ignored() {
    let steps = r#"[{"on":"server/discover"},"«METHOD_NOT_FOUND»",{"on":"initialize"},
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"hi\"}}",
        "«GOOD_INIT»"]"#;
    let mut world = probe(allowed("srv"), steps);
    assert_eq!(call(&mut world).text(), "hi");
    assert_eq!(counters(&world).dropped_notifications, 1);
    close(world);
}

/// R10, R18: a server that never answers fails at its deadlines, and the error names the field.
#[test]
fn a_hanging_server_fails_at_its_deadlines() {
    let mut world = probe(
        allowed("srv"),
        r#"[{"on":"server/discover"},{"hang":true}]"#,
    );
    settle(&mut world);
    assert_eq!(failure(&world), ErrorKind::Timeout);
    assert_eq!(world.now().to_string(), "20.000000s");
    assert_eq!(world.sent_to("srv").lines().count(), 2);
    close(world);
}

/// R10: a start that never ends counts against the same deadline; nothing was written.
#[test]
fn an_endless_start_fails_at_its_deadline() {
    let mut quick = peer("srv");
    quick.probe_timeout = Duration::from_secs(3);
    let scripts = vec![("srv".into(), Script::modern())];
    let mut world = World::new(Config::new(vec![quick]), Identity::default(), scripts)
        .with_endless_start("srv");
    world.connect();
    settle(&mut world);
    let report = world.client.peers().next().unwrap().report();
    assert_eq!(failure(&world), ErrorKind::Timeout);
    assert!(report.failure.unwrap().remedy.contains("probeTimeoutMs"));
    assert_eq!(close(world).sent_to("srv"), "");
}

/// R2, R110: a program that does not exist fails its peer alone.
#[test]
fn a_missing_program_fails_its_peer_alone() {
    let scripts = vec![
        ("srv".into(), Script::modern()),
        ("other".into(), Script::modern()),
    ];
    let config = Config::new(vec![peer("other"), peer("srv")]);
    let mut world = World::new(config, Identity::default(), scripts).with_spawn_failure("other");
    world.connect();
    assert_eq!(call(&mut world).text(), "hi");
    assert_eq!(failure(&world), ErrorKind::SpawnRefused);
    close(world);
}

/// R15: a late answer that proves nothing disturbs nothing, and is counted.
#[test]
fn late_nonsense_during_the_handshake_is_counted() {
    let steps = r#"[{"on":"server/discover","as":"p"},{"on":"initialize"},
        "{\"jsonrpc\":\"2.0\",\"id\":$ID(p),\"error\":{\"code\":-32601,\"message\":\"late\"}}",
        "«GOOD_INIT»"]"#;
    let mut world = probe(allowed("srv"), steps);
    settle(&mut world);
    assert_eq!(era(&world), Some(Era::Legacy));
    assert_eq!(counters(&world).late_answers, 1);
    close(world);
}

/// R12, R61: a version error without a list of versions is a violation, and degrades.
#[test]
fn a_version_error_without_versions_degrades() {
    let steps = r#"[{"on":"server/discover"},
        "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{\"code\":-32022,\"message\":\"no\"}}"]"#;
    let mut world = probe(allowed("srv"), steps);
    settle(&mut world);
    assert_eq!(failure(&world), ErrorKind::SchemaViolation);
    let malformed = mcp_proto::Violation::MalformedError;
    assert_eq!(degraded(&world), Some(malformed));
    assert_eq!(counters(&world).violations, 1);
    assert!(!close(world).sent_to("srv").contains("initialize"));
}

/// R18: what is to be raised is the field that holds the deadline that has passed.
#[test]
fn the_advice_about_a_late_handshake_names_the_field_that_cuts_it_short() {
    for (timeout, field) in [
        (Duration::from_secs(2), "\"timeoutMs\" (2000 ms)"),
        (Duration::from_secs(60), "\"probeTimeoutMs\" (10000 ms)"),
    ] {
        let mut peer = allowed("srv");
        peer.timeout = timeout;
        let mut world = probe(peer, r#"[{"on":"server/discover"},{"hang":true}]"#);
        settle(&mut world);
        let report = world.client.peers().next().unwrap().report();
        let remedy = report.failure.unwrap().remedy;
        assert!(remedy.contains(&format!("aise {field}")), "{remedy}");
        close(world);
    }
}
