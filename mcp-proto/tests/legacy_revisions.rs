//! What each older revision has and has not (R60, R91, R42), and the one room it lives in.

#[path = "legacy_support/mod.rs"]
mod support;

use std::fmt::Write as _;
use std::path::Path;

use mcp_proto::legacy::{
    Change, Declared, Deferred, ServerRequestReply, answer_request, dialect, roots_changed,
    set_level, subscribe, unsubscribe,
};
use mcp_proto::negotiation::Dialect;
use mcp_proto::version::{Era, Version};
use mcp_proto::wire::Json;

use support::members;

#[test]
fn the_facts_about_every_revision() {
    let mut table = String::new();
    let facts: Vec<Dialect> = Version::ALL.into_iter().rev().map(dialect).collect();
    let mut row = |name: &str, value: &dyn Fn(&Dialect) -> String| {
        write!(table, "{name:<22}").unwrap();
        for dialect in &facts {
            write!(table, " {:<12}", value(dialect)).unwrap();
        }
        table.truncate(table.trim_end().len());
        table.push('\n');
    };
    let yes = |value: bool| String::from(if value { "yes" } else { "-" });
    let content = |kind: &'static str| move |d: &Dialect| d.content_types.contains(&kind);
    row("version", &|d| d.version.to_string());
    row("request_meta", &|d| yes(d.request_meta));
    row("result_type_required", &|d| yes(d.result_type_required));
    row("server_requests", &|d| yes(d.server_requests));
    row("input_required", &|d| yes(d.input_required));
    row("listen", &|d| yes(d.listen));
    row("cache_hints", &|d| yes(d.cache_hints));
    row("log_level", &|d| format!("{:?}", d.log_level));
    for kind in ["audio", "image", "resource", "resource_link", "text"] {
        row(&format!("content {kind}"), &|d| yes(content(kind)(d)));
    }
    row("structured_content", &|d| {
        format!("{:?}", d.structured_content)
    });
    row("completion_context", &|d| yes(d.completion_context));
    row("completions_declared", &|d| yes(d.completions_declared));
    row("resource_not_found", &|d| d.resource_not_found.to_string());
    insta::assert_snapshot!(table);
}

#[test]
fn r17_an_absent_result_type_is_a_violation_in_modern_revisions_only() {
    for version in Version::ALL {
        let required = dialect(version).result_type_required;
        assert_eq!(required, version.era() == Era::Modern);
    }
    assert_eq!(dialect(Version::LATEST), Dialect::MODERN);
}

fn everything() -> Declared {
    Declared::read(
        &Json::parse(r#"{"roots":{},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}}}"#)
            .unwrap(),
    )
}

fn code(reply: ServerRequestReply) -> i64 {
    match reply {
        ServerRequestReply::Error { code, .. } => code,
        other => panic!("no error: {other:?}"),
    }
}

#[test]
fn r60_ping_is_answered_with_an_empty_object_in_every_older_revision() {
    for version in Version::ALL {
        for declared in [Declared::default(), everything()] {
            assert_eq!(
                answer_request(version, &declared, "ping", None),
                ServerRequestReply::Result(Json::parse("{}").unwrap())
            );
        }
    }
}

#[test]
fn r60_what_was_declared_is_the_applications_and_nothing_else_exists() {
    let requests = [
        ("roots/list", Deferred::Roots, Version::V2024_11_05),
        (
            "sampling/createMessage",
            Deferred::Sampling,
            Version::V2024_11_05,
        ),
        (
            "elicitation/create",
            Deferred::Elicitation,
            Version::V2025_06_18,
        ),
    ];
    let legacy = Version::ALL.into_iter().filter(|v| v.era() == Era::Legacy);
    for version in legacy {
        for (method, deferred, since) in requests {
            let reply = answer_request(version, &everything(), method, None);
            if version >= since {
                assert_eq!(
                    reply,
                    ServerRequestReply::Defer(deferred),
                    "{version} {method}"
                );
            } else {
                assert_eq!(code(reply), -32601, "{version} {method}");
            }
            let undeclared = answer_request(version, &Declared::default(), method, None);
            assert_eq!(code(undeclared), -32601, "{version} {method}");
        }
        for method in ["tasks/list", "tools/list", "initialize", "Ping", ""] {
            let reply = answer_request(version, &everything(), method, None);
            assert_eq!(code(reply), -32601, "{version} {method}");
        }
    }
}

#[test]
fn elicitation_is_served_in_the_declared_modes_only() {
    let form = members(r#"{"mode":"form","message":"?"}"#);
    let url = members(r#"{"mode":"url","message":"?","url":"https://example.com"}"#);
    let odd = members(r#"{"mode":7}"#);
    let served = |version, capabilities: &str, params| {
        let declared = Declared::read(&Json::parse(capabilities).unwrap());
        match answer_request(version, &declared, "elicitation/create", params) {
            ServerRequestReply::Defer(Deferred::Elicitation) => true,
            reply => {
                assert_eq!(code(reply), -32602);
                false
            }
        }
    };
    let newest = Version::V2025_11_25;
    let both = r#"{"elicitation":{"form":{},"url":{}}}"#;
    assert!(served(newest, both, None));
    assert!(served(newest, both, Some(&form)));
    assert!(served(newest, both, Some(&url)));
    assert!(!served(newest, both, Some(&odd)));
    // An empty object means form mode.
    assert!(served(newest, r#"{"elicitation":{}}"#, Some(&form)));
    assert!(!served(newest, r#"{"elicitation":{}}"#, Some(&url)));
    assert!(!served(newest, r#"{"elicitation":{"url":{}}}"#, None));
    assert!(served(newest, r#"{"elicitation":{"url":{}}}"#, Some(&url)));
    // The revision before knows no modes.
    assert!(!served(Version::V2025_06_18, both, Some(&url)));
    assert!(served(Version::V2025_06_18, both, Some(&form)));
}

#[test]
fn sampling_with_tools_needs_its_own_declaration() {
    let plain = members(r#"{"messages":[],"tools":null}"#);
    let tools = members(r#"{"messages":[],"tools":[]}"#);
    let choice = members(r#"{"messages":[],"toolChoice":{"mode":"auto"}}"#);
    let declared = Declared::read(&Json::parse(r#"{"sampling":{}}"#).unwrap());
    let ask = |declared: &Declared, params| {
        answer_request(
            Version::V2025_11_25,
            declared,
            "sampling/createMessage",
            Some(params),
        )
    };
    let deferred = ServerRequestReply::Defer(Deferred::Sampling);
    assert_eq!(ask(&declared, &plain), deferred);
    assert_eq!(code(ask(&declared, &tools)), -32602);
    assert_eq!(code(ask(&declared, &choice)), -32602);
    assert_eq!(ask(&everything(), &tools), deferred);
}

#[test]
fn only_objects_declare_a_capability() {
    for capabilities in [
        "{}",
        "[]",
        r#"{"roots":null,"sampling":true,"elicitation":[]}"#,
    ] {
        let declared = Declared::read(&Json::parse(capabilities).unwrap());
        assert_eq!(declared, Declared::default(), "{capabilities}");
    }
}

#[test]
fn messages_that_only_older_revisions_have() {
    for (message, method, params) in [
        (
            set_level("warning"),
            "logging/setLevel",
            r#"{"level":"warning"}"#,
        ),
        (
            subscribe("file:///a\n\"b\""),
            "resources/subscribe",
            r#"{"uri":"file:///a\n\"b\""}"#,
        ),
        (
            unsubscribe("file:///a"),
            "resources/unsubscribe",
            r#"{"uri":"file:///a"}"#,
        ),
    ] {
        assert_eq!(message.method, method);
        assert_eq!(message.params.unwrap().as_str(), params);
    }
    assert_eq!(roots_changed().method, "notifications/roots/list_changed");
    assert_eq!(roots_changed().params, None);
}

#[test]
fn r91_change_notifications_map_to_the_same_events() {
    let uri = members(r#"{"uri":"file:///a","title":"A"}"#);
    let wrong = members(r#"{"uri":7}"#);
    let change = Change::from_notification;
    assert_eq!(
        change("notifications/tools/list_changed", None),
        Some(Change::Tools)
    );
    assert_eq!(
        change("notifications/prompts/list_changed", Some(&uri)),
        Some(Change::Prompts)
    );
    assert_eq!(
        change("notifications/resources/list_changed", None),
        Some(Change::Resources)
    );
    assert_eq!(
        change("notifications/resources/updated", Some(&uri)),
        Some(Change::Resource {
            uri: "file:///a".into()
        })
    );
    assert_eq!(
        change("notifications/resources/updated", Some(&wrong)),
        None
    );
    assert_eq!(change("notifications/resources/updated", None), None);
    assert_eq!(change("notifications/message", Some(&uri)), None);
    assert_eq!(change("tools/list_changed", None), None);
}

/// Law 3: outside its folder nobody knows the older revisions' words.
#[test]
fn r4_older_words_stay_in_one_room() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut folders = vec![src.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if path != src.join("legacy") {
                    folders.push(path);
                }
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap().to_lowercase();
            for word in [
                "\"initialize\"",
                "`initialize`",
                "mcp-session-id",
                "last-event-id",
            ] {
                if text.contains(word) {
                    found.push(format!("{}: {word}", path.display()));
                }
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
    assert!(src.join("legacy/handshake.rs").is_file());
}
