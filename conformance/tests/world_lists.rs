//! Lists, the manifest and what follows from their changes (R20–R22, R70, R80, R91).

mod world_support;

use conformance::fake_server::Script;
use conformance::world::{World, millis};
use mcp_proto::wire::Json;
use mcp_proto::{
    Config, Ended, ErrorKind, Identity, Operation, Outcome, Ran, Reply, Request, Violation,
};
use world_support::*;

fn page(rest: &str) -> String {
    format!(
        r#""{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{{\"resultType\":\"complete\",{rest}}}}}""#
    )
}

fn tool_names(world: &mut World) -> Vec<String> {
    match run(world, Operation::new(Request::ListTools).on("srv")).outcome {
        Outcome::Complete(Reply::Tools(tools)) => tools.into_iter().map(|tool| tool.name).collect(),
        other => panic!("{other:?}\n{}", world.transcript()),
    }
}

fn report(world: &World) -> mcp_proto::report::PeerReport {
    world.client.peers().next().unwrap().report()
}

/// R20: the empty string is a cursor like any other.
#[test]
fn an_empty_cursor_is_followed() {
    let first = page(r#"\"tools\":[{\"name\":\"one\",\"inputSchema\":{}}],\"nextCursor\":\"\""#);
    let last = page(r#"\"tools\":[{\"name\":\"two\",\"inputSchema\":{}}],\"nextCursor\":null"#);
    let steps = format!(
        r#"[{{"on_each":"tools/list","where":{{"params.cursor":""}},"emit":{last}}},{{"on_each":"tools/list","where":{{"params.cursor":null}},"emit":{first}}}]"#
    );
    let mut world = modern(&steps);
    assert_eq!(tool_names(&mut world), ["one", "two"]);
    close(world);
}

/// R20: a cursor that comes again, and pages without end, stop with an error; the host goes on.
#[test]
fn endless_pages_stop() {
    for (cursor, lists) in [("", 2), ("c$N", 20)] {
        let each = page(&format!(
            r#"\"tools\":[{{\"name\":\"t$N\",\"inputSchema\":{{}}}}],\"nextCursor\":\"{cursor}\""#
        ));
        let mut world = modern_with(
            |peer| peer.limits.pages = 20,
            &format!(r#"[{{"on_each":"tools/list","emit":{each}}}]"#),
        );
        settle(&mut world);
        let failure = report(&world).failure.unwrap();
        assert_eq!(failure.kind, ErrorKind::Limit, "{failure:?}");
        assert_eq!(
            world
                .sent_to("srv")
                .matches(r#""method":"tools/list""#)
                .count(),
            lists
        );
        assert_eq!(world.now().as_nanos(), 0);
        close(world);
    }
}

/// R22: a tool without a schema stays, two of one name go, a reference out of the schema goes; each is
/// reported and the others stay.
#[test]
fn odd_tools_are_dropped_or_flagged_alone() {
    let list = page(
        r##"\"tools\":[{\"name\":\"bare\"},{\"name\":\"twice\",\"inputSchema\":{}},{\"name\":\"twice\",\"inputSchema\":{}},{\"name\":\"net\",\"inputSchema\":{\"$ref\":\"https://example.com/s.json\"}},{\"name\":\"odd\",\"inputSchema\":{},\"annotations\":{\"readOnlyHint\":null},\"title\":null},{\"name\":\"loop\",\"inputSchema\":{},\"outputSchema\":{\"$ref\":\"#/$defs/n\",\"$defs\":{\"n\":{\"properties\":{\"n\":{\"$ref\":\"#/$defs/n\"}}}}}}]"##,
    );
    let mut world = modern(&format!(r#"[{{"on_each":"tools/list","emit":{list}}}]"#));
    settle(&mut world);
    assert_eq!(report(&world).tools, ["bare", "loop", "odd"]);
    assert_eq!(degraded(&world), Some(Violation::DuplicateTool));
    let notes = report(&world).notes.join("\n");
    assert!(notes.contains("twice") && notes.contains("net"), "{notes}");
    for tool in ["twice", "net"] {
        let operation = Operation::call(tool, None).on("srv");
        assert_fails(&mut world, operation, ErrorKind::CapabilityMissing, Ran::No);
    }
    assert!(!close(world).sent_to("srv").contains("tools/call"));
}

/// R60: `tools` that is no list, and an entry without a name, fail the peer, typed.
#[test]
fn a_list_that_is_none_is_a_violation() {
    for (violation, rest) in [
        (Violation::MalformedResult, r#"\"tools\":{}"#),
        (
            Violation::EntryWithoutName,
            r#"\"tools\":[{\"title\":\"x\"}]"#,
        ),
    ] {
        let list = page(rest);
        let mut world = modern(&format!(r#"[{{"on_each":"tools/list","emit":{list}}}]"#));
        settle(&mut world);
        assert_eq!(
            report(&world).failure.unwrap().kind,
            ErrorKind::SchemaViolation
        );
        assert_eq!(degraded(&world), Some(violation), "{rest}");
        close(world);
    }
}

/// R18: a list method that does not exist is an empty list and a note, never a failed peer.
#[test]
fn an_unknown_list_method_is_an_empty_list() {
    let mut world = modern(r#"[{"on_each":"tools/list","emit":"«METHOD_NOT_FOUND»"}]"#);
    assert_eq!(tool_names(&mut world), Vec::<String>::new());
    assert!(report(&world).failure.is_none());
    assert_eq!(report(&world).notes.len(), 1);
    assert_fails(&mut world, echo(), ErrorKind::CapabilityMissing, Ran::No);
    close(world);
}

/// R20: a refresh that fails keeps the last good manifest.
#[test]
fn a_failed_refresh_keeps_the_manifest() {
    let bad = page(r#"\"tools\":7"#);
    let good = page(r#"\"tools\":[{\"name\":\"echo\",\"inputSchema\":{}}]"#);
    let mut world = modern(&format!(
        r#"[{{"on":"tools/list"}},{good},{{"on":"tools/list"}},{bad}]"#
    ));
    settle(&mut world);
    let digest = report(&world).manifest_digest;
    let list = Operation::new(Request::ListTools).on("srv");
    assert_fails(&mut world, list, ErrorKind::SchemaViolation, Ran::No);
    assert_eq!(report(&world).manifest_digest, digest);
    assert_eq!(call(&mut world).text(), "hi");
    close(world);
}

/// R80, R91: a tool that appears in a list can be called by its canonical name at once.
#[test]
fn a_new_tool_is_routed_however_the_list_was_read() {
    let scripts = vec![
        ("srv".into(), Script::modern()),
        ("other".into(), Script::modern().with_tools(["elsewhere"])),
    ];
    let config = Config::new(vec![peer("srv"), peer("other")]);
    let mut world = World::new(config, Identity::default(), scripts);
    world.connect();
    settle(&mut world);
    assert_fails(
        &mut world,
        Operation::call("added_1", None),
        ErrorKind::ToolNotFound,
        Ran::No,
    );
    run(&mut world, Operation::call("touch_list", None));
    assert!(tool_names(&mut world).contains(&"added_1".to_owned()));
    let ended: Ended = run(&mut world, Operation::call("added_1", None));
    assert_eq!(ended.peer.as_deref(), Some("srv"));
    assert!(
        matches!(ended.outcome, Outcome::Complete(Reply::Call(_))),
        "{ended:?}"
    );
    close(world);
}

const CHANGED: &str = r#"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}"#;

/// R20, R91: after a change an unknown tool is looked for once more, and then found.
#[test]
fn an_unknown_tool_is_looked_for_after_a_change() {
    let before = page(r#"\"tools\":[{\"name\":\"old\",\"inputSchema\":{}}]"#);
    let after = page(r#"\"tools\":[{\"name\":\"echo\",\"inputSchema\":{}}]"#);
    let mut world = modern(&format!(
        r#"[{{"on":"tools/list"}},{before},"{CHANGED}",{{"on":"tools/list"}},{after}]"#
    ));
    settle(&mut world);
    world.run_for(millis(1));
    assert_eq!(call(&mut world).text(), "hi");
    close(world);
}

/// R91: a server that announces a change with every list is not asked for ever.
#[test]
fn a_storm_of_changes_causes_no_storm_of_lists() {
    let list = page(r#"\"tools\":[{\"name\":\"old\",\"inputSchema\":{}}]"#);
    for order in [
        format!(r#"["{CHANGED}",{list}]"#),
        format!(r#"[{list},"{CHANGED}"]"#),
    ] {
        let mut world = modern(&format!(
            r#"[{{"on_each":"tools/list","emit":{order}}},{{"loop":{{"every_ms":10,"count":100,"emit":"{CHANGED}"}}}}]"#
        ));
        for _ in 0..3 {
            assert_fails(&mut world, echo(), ErrorKind::CapabilityMissing, Ran::No);
        }
        world.run_for(millis(2_000));
        let lists = world.sent_to("srv").matches("tools/list").count() / 2;
        assert!(lists <= 1 + 3 * 2, "{lists} lists\n{}", world.transcript());
        close(world);
    }
}

/// R91: a change during a call neither blocks nor ends it.
#[test]
fn a_change_during_a_call_is_no_obstacle() {
    let mut world = modern(&format!(
        r#"[{{"on":"tools/call"}},"{CHANGED}","{CHANGED}",{{"sleep_ms":500}},"«OK_RESULT»"]"#
    ));
    assert_eq!(call(&mut world).text(), "ok");
    assert_eq!(degraded(&world), None);
    close(world);
}

/// R60: a notification with an array for its params is dropped and counted.
#[test]
fn a_notification_with_an_array_is_dropped() {
    let mut world = modern(
        r#"[{"on":"tools/call"},"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\",\"params\":[]}","«OK_RESULT»"]"#,
    );
    assert_eq!(call(&mut world).text(), "ok");
    assert_eq!(counters(&world).dropped_notifications, 1);
    close(world);
}

/// R70: within its time to live a list is served from memory; after a change it is asked for again.
#[test]
fn a_fresh_list_is_not_asked_for_again() {
    use conformance::fake_server::CacheScope;
    let script = Script::modern().with_cache(60_000, CacheScope::Private);
    let mut world = world(peer("srv"), script);
    settle(&mut world);
    let asked = |world: &World| world.sent_to("srv").matches("\"tools/list\"").count();
    let before = asked(&world);
    tool_names(&mut world);
    assert_eq!(asked(&world), before);
    run(
        &mut world,
        Operation::new(Request::CallTool(mcp_proto::ToolCall {
            tool: "echo".into(),
            arguments: Json::parse(r#"{"text":"x"}"#).ok(),
        }))
        .on("srv"),
    );
    world.run_for(millis(60_000));
    tool_names(&mut world);
    assert_eq!(asked(&world), before + 1);
    close(world);
}

/// R18, R20: "method not found" in answer to a cursor is a failed page, not the end of the list: half a
/// manifest is worse than none.
#[test]
fn a_list_that_stops_half_way_is_no_list() {
    let first = page(r#"\"tools\":[{\"name\":\"one\",\"inputSchema\":{}}],\"nextCursor\":\"c\""#);
    let steps = format!(
        r#"[{{"on_each":"tools/list","where":{{"params.cursor":"c"}},"emit":"{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{{\"code\":-32601,\"message\":\"gone\"}}}}"}},{{"on_each":"tools/list","where":{{"params.cursor":null}},"emit":{first}}}]"#
    );
    let mut world = modern(&steps);
    settle(&mut world);
    let report = report(&world);
    assert_eq!(
        report.failure.map(|failure| failure.kind),
        Some(ErrorKind::Rpc)
    );
    assert!(report.tools.is_empty(), "{:?}", report.tools);
    close(world);
}

/// R70: where a revision has no cache hints, what looks like one allows nothing.
#[test]
fn an_older_server_gives_no_cache_hints() {
    let list = r#"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"ttlMs\":60000,\"cacheScope\":\"public\",\"tools\":[]}}"#;
    let mut world = legacy(&format!(r#"[{{"on_each":"tools/list","emit":"{list}"}}]"#));
    settle(&mut world);
    let asked = |world: &World| world.sent_to("srv").matches("\"tools/list\"").count();
    let before = asked(&world);
    tool_names(&mut world);
    assert_eq!(asked(&world), before + 1);
    close(world);
}
