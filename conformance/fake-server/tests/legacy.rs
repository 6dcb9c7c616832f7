//! The built-in behaviour of the four legacy revisions, and of a server of both eras.

mod common;

use common::{MODERN_KEY, Peer, text};
use mcp_fake_server::{LegacyVersion, Output, Script};
use serde_json::{Value, json};

fn call(tool: &str, arguments: Value) -> Value {
    json!({"name": tool, "arguments": arguments})
}

#[test]
fn every_revision_has_its_own_features() {
    let mut table = String::new();
    for version in LegacyVersion::ALL {
        let mut peer = Peer::legacy(version);
        let list = peer.request(1, "tools/list", json!({}));
        let tools = list["result"]["tools"].as_array().expect("tools");
        let add = tools
            .iter()
            .find(|tool| tool["name"] == "add")
            .expect("add");
        let content = peer.request(2, "tools/call", call("content", json!({})));
        let blocks = content["result"]["content"]
            .as_array()
            .expect("blocks")
            .iter();
        let types: Vec<&str> = blocks.filter_map(|block| block["type"].as_str()).collect();
        let sum = peer.request(3, "tools/call", call("add", json!({"a": 1, "b": 2})));
        table.push_str(&format!(
            "{}: {} tools, ask {}, annotations {}, title {}, outputSchema {}, sum {} {}\n  {}\n",
            version.as_str(),
            tools.len(),
            tools.iter().any(|tool| tool["name"] == "ask"),
            add.get("annotations").is_some(),
            add.get("title").is_some(),
            add.get("outputSchema").is_some(),
            text(&sum),
            sum["result"]["structuredContent"],
            types.join(" "),
        ));
        assert!(!list.to_string().contains("resultType") && !list.to_string().contains("ttlMs"));
    }
    insta::assert_snapshot!(table, @r#"
    2024-11-05: 12 tools, ask false, annotations false, title false, outputSchema false, sum 3 null
      text image resource
    2025-03-26: 12 tools, ask false, annotations true, title false, outputSchema false, sum 3 null
      text image audio resource
    2025-06-18: 13 tools, ask true, annotations true, title true, outputSchema true, sum {"sum":3} {"sum":3}
      text image audio resource resource_link
    2025-11-25: 13 tools, ask true, annotations true, title true, outputSchema true, sum {"sum":3} {"sum":3}
      text image audio resource resource_link
    "#);
}

#[test]
fn r14_the_handshake_comes_first() {
    let mut peer = Peer::new(Script::legacy(LegacyVersion::V2025_06_18).with_instructions("Hi."));
    let error = peer.request(1, "server/discover", json!({}));
    assert_eq!(error["error"]["code"], -32601);
    assert_eq!(
        peer.request(2, "tools/list", json!({}))["error"]["code"],
        -32600
    );
    assert_eq!(peer.request(3, "ping", json!({}))["result"], json!({}));
    // A version it does not have: it offers its own (basic/lifecycle, version negotiation).
    let answer = peer.initialize("1999-01-01", json!({}));
    assert_eq!(
        answer["result"],
        json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {
                "completions": {}, "logging": {}, "prompts": {},
                "resources": {"subscribe": true}, "tools": {"listChanged": true},
            },
            "serverInfo": {"name": "fake", "version": "1"},
            "instructions": "Hi.",
        })
    );
    assert_eq!(
        peer.request(4, "tools/list", json!({}))["error"]["code"],
        -32600
    );
    peer.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert!(peer.request(5, "tools/list", json!({}))["result"]["tools"].is_array());
    assert_eq!(
        peer.request(6, "server/discover", json!({}))["error"]["code"],
        -32601
    );
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {}});
    assert_eq!(
        peer.request(7, "initialize", params)["error"]["code"],
        -32600
    );
}

#[test]
fn r14_a_malformed_initialize_is_refused() {
    let mut peer = Peer::new(Script::legacy(LegacyVersion::LATEST));
    assert_eq!(
        peer.request(1, "initialize", json!({}))["error"]["code"],
        -32602
    );
    let no_client = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    assert_eq!(
        peer.request(2, "initialize", no_client)["error"]["code"],
        -32602
    );
}

#[test]
fn r60_ask_sends_a_request_and_waits_for_the_client() {
    let mut peer = Peer::legacy(LegacyVersion::LATEST);
    let question = peer.request(1, "tools/call", call("ask", json!({})));
    assert_eq!(
        (&question["id"], &question["method"]),
        (&json!("fake-1"), &json!("elicitation/create"))
    );
    assert_eq!(question["params"]["message"], "What is your name?");
    peer.send(json!({"jsonrpc": "2.0", "id": "fake-1", "result": {"action": "accept", "content": {"name": "Bo"}}}));
    let answer = peer.messages().pop().expect("an answer");
    assert_eq!((&answer["id"], text(&answer)), (&json!(1), "Hello, Bo"));

    let question = peer.request(2, "tools/call", call("ask", json!({})));
    peer.send(
        json!({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32601, "message": "no"}}),
    );
    let answer = peer.messages().pop().expect("an answer");
    assert_eq!(
        (text(&answer), &answer["result"]["isError"]),
        ("the client refused to ask", &json!(true))
    );

    let mut plain = Peer::new(Script::legacy(LegacyVersion::LATEST));
    plain.initialize("2025-11-25", json!({}));
    plain.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let refused = plain.request(1, "tools/call", call("ask", json!({})));
    assert_eq!(text(&refused), "the client did not declare elicitation");
}

#[test]
fn r91_changes_are_told_without_a_subscription_stream() {
    let mut peer = Peer::legacy(LegacyVersion::V2024_11_05);
    peer.post(1, "tools/call", call("touch_list", json!({})));
    let messages = peer.messages();
    assert_eq!(
        messages[0],
        json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    );
    assert_eq!(text(&messages[1]), "added_1");

    let uri = json!({"uri": "fake://text/readme"});
    let touch = call("touch_resource", uri.clone());
    let count = |peer: &mut Peer, id: i32| {
        peer.post(id, "tools/call", touch.clone());
        peer.messages().len()
    };
    assert_eq!(count(&mut peer, 2), 1);
    assert_eq!(
        peer.request(3, "resources/subscribe", uri.clone())["result"],
        json!({})
    );
    assert_eq!(count(&mut peer, 4), 2);
    assert_eq!(
        peer.request(5, "resources/unsubscribe", uri)["result"],
        json!({})
    );
    assert_eq!(count(&mut peer, 6), 1);
}

#[test]
fn r42_log_levels_hold_for_the_session() {
    let mut peer = Peer::legacy(LegacyVersion::V2025_03_26);
    let echo = call("echo", json!({"text": "x"}));
    peer.post(1, "tools/call", echo.clone());
    assert_eq!(peer.messages().len(), 1);
    assert_eq!(
        peer.request(2, "logging/setLevel", json!({"level": "info"}))["result"],
        json!({})
    );
    peer.post(3, "tools/call", echo);
    let messages = peer.messages();
    assert_eq!(
        (messages.len(), &messages[0]["method"]),
        (2, &json!("notifications/message"))
    );
    assert_eq!(
        peer.request(4, "logging/setLevel", json!({"level": "all"}))["error"]["code"],
        -32602
    );
}

#[test]
fn unknown_resources_have_the_old_code() {
    let mut peer = Peer::legacy(LegacyVersion::LATEST);
    let error = peer.request(1, "resources/read", json!({"uri": "fake://none"}));
    assert_eq!(error["error"]["code"], -32002);
    assert_eq!(
        peer.request(2, "subscriptions/listen", json!({}))["error"]["code"],
        -32601
    );
}

#[test]
fn exit_ends_the_process_without_an_answer() {
    let mut peer = Peer::legacy(LegacyVersion::LATEST);
    peer.post(1, "tools/call", call("exit", json!({"code": 3})));
    assert_eq!(peer.outputs(), [Output::Exit(3)]);
    peer.post(2, "ping", json!({}));
    peer.eof();
    assert_eq!(peer.outputs(), []);
    assert_eq!(peer.server.poll_timeout(), None);
}

#[test]
fn r15_a_dual_server_follows_how_the_client_opens() {
    let mut peer = Peer::new(Script::dual());
    let discovered = peer.modern(1, "server/discover", json!({}));
    assert_eq!(
        discovered["result"]["supportedVersions"],
        json!(["2026-07-28"])
    );
    assert_eq!(text(&peer.call(2, "echo", json!({"text": "new"}))), "new");
    let wrong = peer.modern(
        3,
        "server/discover",
        json!({"_meta": {MODERN_KEY: "2030-01-01"}}),
    );
    assert_eq!(wrong["error"]["code"], -32022);

    for (requested, answered) in [("2024-11-05", "2024-11-05"), ("2001-01-01", "2025-11-25")] {
        let mut peer = Peer::new(Script::dual());
        let answer = peer.initialize(requested, json!({}));
        assert_eq!(answer["result"]["protocolVersion"], answered);
        peer.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let echoed = peer.request(4, "tools/call", call("echo", json!({"text": "old"})));
        assert_eq!(
            (text(&echoed), echoed["result"].get("resultType")),
            ("old", None)
        );
    }
}

#[test]
fn r81_broken_lines_get_an_error_with_the_id_the_revision_allows() {
    for (script, expected) in [
        (
            Script::legacy(LegacyVersion::V2025_03_26),
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "Parse error"}}),
        ),
        (
            Script::modern(),
            json!({"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}}),
        ),
    ] {
        let mut peer = Peer::new(script);
        peer.bytes(b"nonsense\n");
        assert_eq!(peer.messages(), [expected]);
    }
}
