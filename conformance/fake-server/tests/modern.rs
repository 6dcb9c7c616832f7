//! The built-in behaviour of revision 2026-07-28.

mod common;

use common::{MODERN_KEY, Peer, text};
use mcp_fake_server::{CacheScope, Script};
use serde_json::{Value, json};

fn peer() -> Peer {
    Peer::new(Script::modern())
}

fn state_of(response: &Value) -> Value {
    response["result"]["requestState"].clone()
}

#[test]
fn r11_discover_names_version_capabilities_and_server() {
    let script = Script::modern()
        .with_name("time")
        .with_version("2.1")
        .with_instructions("Ask me.")
        .with_cache(60_000, CacheScope::Public);
    let response = Peer::new(script).modern(1, "server/discover", json!({}));
    let expected = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "result": {
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {
                "completions": {}, "logging": {}, "prompts": {},
                "resources": {"subscribe": true}, "tools": {"listChanged": true},
            },
            "instructions": "Ask me.",
            "ttlMs": 60_000,
            "cacheScope": "public",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "time", "version": "2.1"}},
        },
    });
    assert_eq!(response, expected);
}

#[test]
fn r5_requests_without_the_required_meta_are_refused() {
    let mut peer = peer();
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    for (id, meta, missing) in [
        (1, json!(null), MODERN_KEY),
        (2, json!({MODERN_KEY: 7, capabilities: {}}), MODERN_KEY),
        (3, json!({MODERN_KEY: "2026-07-28"}), capabilities),
        (
            4,
            json!({MODERN_KEY: "2026-07-28", capabilities: []}),
            capabilities,
        ),
    ] {
        let error = peer.request(id, "tools/list", json!({"_meta": meta}));
        assert_eq!(error["error"]["code"], -32602, "{error}");
        let message = error["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(missing), "{message}");
    }
}

#[test]
fn r12_another_version_gets_the_supported_ones() {
    let params = json!({"_meta": {MODERN_KEY: "2027-01-01"}});
    let error = peer().modern(1, "tools/list", params);
    assert_eq!(
        error["error"],
        json!({
            "code": -32022,
            "message": "Unsupported protocol version",
            "data": {"supported": ["2026-07-28"], "requested": "2027-01-01"},
        })
    );
}

#[test]
fn methods_of_the_legacy_era_are_unknown() {
    let mut peer = peer();
    // Even without `_meta`: a legacy client cannot know it.
    assert_eq!(
        peer.initialize("2025-11-25", json!({}))["error"]["code"],
        -32601
    );
    for (id, method) in ["ping", "logging/setLevel", "resources/subscribe"]
        .into_iter()
        .enumerate()
    {
        assert_eq!(
            peer.modern(id, method, json!({}))["error"]["code"],
            -32601,
            "{method}"
        );
    }
}

#[test]
fn every_result_has_a_type_and_lists_say_how_long_they_keep() {
    let mut peer = peer();
    let cases = [
        ("tools/list", json!({}), true),
        ("resources/list", json!({}), true),
        ("resources/templates/list", json!({}), true),
        ("resources/read", json!({"uri": "fake://text/readme"}), true),
        ("prompts/list", json!({}), true),
        ("prompts/get", json!({"name": "greeting"}), false),
        ("tools/call", json!({"name": "fail"}), false),
    ];
    for (id, (method, params, cacheable)) in cases.into_iter().enumerate() {
        let result = peer.modern(id, method, params)["result"].take();
        assert_eq!(result["resultType"], "complete", "{method}");
        assert_eq!(result["ttlMs"].as_u64(), cacheable.then_some(0), "{method}");
        assert_eq!(
            result["cacheScope"].as_str(),
            cacheable.then_some("private"),
            "{method}"
        );
        assert_eq!(
            result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
            "fake"
        );
    }
}

#[test]
fn tools_answer_at_once() {
    let mut peer = peer();
    assert_eq!(
        text(&peer.call(1, "echo", json!({"text": "h\u{e9}"}))),
        "h\u{e9}"
    );
    let sum = peer.call(2, "add", json!({"a": 2, "b": 3}));
    assert_eq!(sum["result"]["structuredContent"], json!({"sum": 5}));
    assert_eq!(text(&sum), r#"{"sum":5}"#);
    let sum = peer.call(3, "add", json!({"a": 0.5, "b": 3}));
    assert_eq!(sum["result"]["structuredContent"], json!({"sum": 3.5}));
    assert_eq!(peer.call(4, "fail", json!({}))["result"]["isError"], true);
    let error = peer.call(5, "rpc_error", json!({"code": -32050}));
    assert_eq!(
        (error["error"]["code"].as_i64(), error.get("result")),
        (Some(-32050), None)
    );
    assert_eq!(
        text(&peer.call(6, "big", json!({"bytes": 70_000}))).len(),
        70_000
    );
    assert_eq!(text(&peer.call(7, "env", json!({"name": "HOME"}))), "/home");
    assert_eq!(text(&peer.call(8, "env", json!({"name": "NOPE"}))), "unset");
    let wrong = peer.call(9, "add", json!({"a": "x", "b": 1}));
    assert_eq!(
        (text(&wrong), &wrong["result"]["isError"]),
        ("`a` must be a number", &json!(true))
    );
    assert_eq!(peer.call(10, "nothing", json!({}))["error"]["code"], -32602);
}

#[test]
fn content_has_one_block_of_every_type() {
    let response = peer().call(1, "content", json!({}));
    let blocks = response["result"]["content"]
        .as_array()
        .expect("blocks")
        .iter();
    let types: Vec<&str> = blocks.filter_map(|block| block["type"].as_str()).collect();
    assert_eq!(
        types,
        ["text", "image", "audio", "resource", "resource_link"]
    );
}

#[test]
fn r40_slow_answers_on_time_and_never_after_a_cancel() {
    let mut peer = peer();
    for (id, ms) in [(1, 300), (2, 100), (3, 200)] {
        peer.post_modern(
            id,
            "tools/call",
            json!({"name": "slow", "arguments": {"ms": ms}}),
        );
    }
    assert_eq!(
        peer.server.poll_timeout().map(|due| due.as_millis()),
        Some(100)
    );
    peer.wait(99);
    assert_eq!(peer.messages(), [] as [Value; 0]);
    peer.send(
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}}),
    );
    peer.wait(1_000);
    let ids: Vec<Value> = peer
        .messages()
        .iter()
        .map(|answer| answer["id"].clone())
        .collect();
    assert_eq!(ids, [2, 1]);
    assert_eq!(peer.server.poll_timeout(), None);
}

#[test]
fn r42_progress_is_reported_only_to_those_who_ask() {
    let mut peer = peer();
    let call = json!({"name": "progress", "arguments": {"steps": 3, "everyMs": 10}});
    peer.post_modern(1, "tools/call", call.clone());
    peer.wait(30);
    assert_eq!(text(&peer.messages().pop().expect("an answer")), "3 steps");

    let mut call = call;
    call["_meta"] = json!({"progressToken": "t"});
    peer.post_modern(2, "tools/call", call);
    peer.wait(25);
    let progress = |n| json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "t", "progress": n, "total": 3}});
    assert_eq!(peer.messages(), [progress(1), progress(2)]);
    peer.wait(5);
    let last = peer.messages();
    assert_eq!(
        (&last[0], &last[1]["id"], last.len()),
        (&progress(3), &json!(2), 2)
    );
}

#[test]
fn r42_log_messages_come_only_at_the_level_asked_for() {
    let mut peer = peer();
    let level_key = "io.modelcontextprotocol/logLevel";
    for (id, level, count) in [
        (1, json!("debug"), 2),
        (2, json!("info"), 2),
        (3, json!("notice"), 1),
    ] {
        let params =
            json!({"name": "echo", "arguments": {"text": "x"}, "_meta": {level_key: level}});
        peer.post_modern(id, "tools/call", params);
        let messages = peer.messages();
        assert_eq!(messages.len(), count);
        if count == 2 {
            assert_eq!(
                messages[0]["params"],
                json!({"level": "info", "logger": "echo", "data": "x"})
            );
        }
    }
    let error = peer.modern(4, "tools/list", json!({"_meta": {level_key: "loud"}}));
    assert_eq!(error["error"]["code"], -32602);
}

#[test]
fn r30_ask_completes_with_the_answer_and_the_exact_state() {
    let mut peer = peer();
    let first = peer.call(1, "ask", json!({}));
    assert_eq!(first["result"]["resultType"], "input_required");
    assert_eq!(
        first["result"]["inputRequests"]["name"]["method"],
        "elicitation/create"
    );
    let state = state_of(&first);
    let encoded = state.to_string();
    assert!(
        encoded.contains(r#"\""#) && encoded.contains(r"\u0001"),
        "needs escapes: {encoded}"
    );

    let answer = json!({"name": {"action": "accept", "content": {"name": "Ada"}}});
    let retry = |state: Value, answers: Value| json!({"name": "ask", "requestState": state, "inputResponses": answers});
    let done = peer.modern(2, "tools/call", retry(state.clone(), answer.clone()));
    assert_eq!(
        (text(&done), &done["result"]["resultType"]),
        ("Hello, Ada", &json!("complete"))
    );

    let changed = format!("{} ", state.as_str().expect("a string"));
    let error = peer.modern(3, "tools/call", retry(changed.into(), answer));
    assert_eq!(error["error"]["code"], -32602);
    let again = peer.modern(4, "tools/call", retry(state.clone(), json!({})));
    assert_eq!(state_of(&again), state);
    let declined = peer.modern(
        5,
        "tools/call",
        retry(state, json!({"name": {"action": "decline"}})),
    );
    assert_eq!(text(&declined), "declined");
}

#[test]
fn r13_ask_needs_the_capability() {
    let capabilities =
        json!({"_meta": {"io.modelcontextprotocol/clientCapabilities": {}}, "name": "ask"});
    let error = peer().modern(1, "tools/call", capabilities);
    assert_eq!(error["error"]["code"], -32021);
    assert_eq!(
        error["error"]["data"],
        json!({"requiredCapabilities": {"elicitation": {}}})
    );
}

#[test]
fn r91_only_listeners_hear_of_changes_and_learn_of_the_end() {
    let mut peer = peer();
    peer.call(1, "touch_list", json!({}));
    assert_eq!(peer.messages(), [] as [Value; 0], "nobody listened");

    let wanted = json!({"toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["fake://text/readme"]});
    let subscription = "io.modelcontextprotocol/subscriptionId";
    let acknowledged = peer.modern(
        "sub",
        "subscriptions/listen",
        json!({"notifications": wanted}),
    );
    assert_eq!(
        acknowledged,
        json!({
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {
                "notifications": {"toolsListChanged": true, "resourceSubscriptions": ["fake://text/readme"]},
                "_meta": {subscription: "sub"},
            },
        })
    );
    peer.post_modern(
        "other",
        "subscriptions/listen",
        json!({"notifications": {"resourceSubscriptions": ["fake://x"]}}),
    );
    peer.outputs();

    peer.post_modern(2, "tools/call", json!({"name": "touch_list"}));
    let messages = peer.messages();
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0]["method"], "notifications/tools/list_changed");
    assert_eq!(messages[0]["params"]["_meta"][subscription], "sub");
    assert_eq!(text(&peer.call(3, "added_2", json!({}))), "ok");

    peer.post_modern(
        4,
        "tools/call",
        json!({"name": "touch_resource", "arguments": {"uri": "fake://text/readme"}}),
    );
    let messages = peer.messages();
    assert_eq!(
        messages[0]["params"],
        json!({"uri": "fake://text/readme", "_meta": {subscription: "sub"}})
    );

    peer.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "other"}}));
    peer.post_modern(5, "tools/call", json!({"name": "end_listen"}));
    let messages = peer.messages();
    assert_eq!(
        (
            &messages[0]["id"],
            &messages[0]["result"]["_meta"][subscription]
        ),
        (&json!("sub"), &json!("sub"))
    );
    assert_eq!(text(&messages[1]), "ended 1");
    assert_eq!(
        peer.modern(6, "subscriptions/listen", json!({}))["error"]["code"],
        -32602
    );
}

#[test]
fn r20_lists_are_paged_with_opaque_cursors() {
    let mut peer = Peer::new(
        Script::modern()
            .with_page_size(2)
            .with_tools(["a", "echo", "b", "c", "add"]),
    );
    let (mut names, mut cursor, mut pages) = (Vec::new(), Value::Null, 0);
    loop {
        let params = if cursor.is_null() {
            json!({})
        } else {
            json!({"cursor": cursor})
        };
        let result = peer.modern(pages, "tools/list", params)["result"].take();
        let tools = result["tools"].as_array().expect("tools");
        names.extend(
            tools
                .iter()
                .map(|tool| tool["name"].as_str().unwrap_or_default().to_owned()),
        );
        pages += 1;
        cursor = result["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!((pages, names.join(" ")), (3, "a echo b c add".into()));
    let error = peer.modern(9, "tools/list", json!({"cursor": ""}));
    assert_eq!(error["error"]["code"], -32602);
}

#[test]
fn tools_can_be_chosen_and_prefixed() {
    let mut peer = Peer::new(
        Script::modern()
            .with_tools(["echo", "own"])
            .with_tool_prefix("x."),
    );
    let list = peer.modern(1, "tools/list", json!({}));
    let names: Vec<&Value> = list["result"]["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(names, ["x.echo", "x.own"]);
    assert_eq!(text(&peer.call(2, "x.echo", json!({"text": "a"}))), "a");
    assert_eq!(text(&peer.call(3, "x.own", json!({}))), "ok");
    assert_eq!(
        peer.call(4, "echo", json!({"text": "a"}))["error"]["code"],
        -32602
    );
}

#[test]
fn resources_prompts_and_completion_are_served() {
    let mut peer = peer();
    let contents = |peer: &mut Peer, id: i32, uri: &str| {
        peer.modern(id, "resources/read", json!({"uri": uri}))["result"]["contents"][0].take()
    };
    assert_eq!(
        contents(&mut peer, 1, "fake://text/readme")["text"],
        "Read me.\n"
    );
    assert!(contents(&mut peer, 2, "fake://blob/pixel")["blob"].is_string());
    assert_eq!(contents(&mut peer, 3, "fake://notes/7")["text"], "Note 7");
    let error = peer.modern(4, "resources/read", json!({"uri": "fake://none"}));
    assert_eq!(
        (
            error["error"]["code"].as_i64(),
            &error["error"]["data"]["uri"]
        ),
        (Some(-32602), &json!("fake://none"))
    );

    let params = json!({"name": "review", "arguments": {"code": "f()", "style": "terse"}});
    let prompt = peer.modern(5, "prompts/get", params);
    assert_eq!(
        prompt["result"]["messages"][0]["content"]["text"],
        "Review this code in a terse way:\nf()"
    );
    assert_eq!(
        peer.modern(6, "prompts/get", json!({"name": "review"}))["error"]["code"],
        -32602
    );

    let complete = |reference: Value, argument: &str, value: &str| json!({"ref": reference, "argument": {"name": argument, "value": value}});
    let prompt = json!({"type": "ref/prompt", "name": "review"});
    let response = peer.modern(7, "completion/complete", complete(prompt, "style", "s"));
    assert_eq!(
        response["result"]["completion"],
        json!({"values": ["strict"], "total": 1, "hasMore": false})
    );
    let template = json!({"type": "ref/resource", "uri": "fake://notes/{id}"});
    let response = peer.modern(8, "completion/complete", complete(template, "id", "1"));
    assert_eq!(
        response["result"]["completion"]["values"],
        json!(["1", "10"])
    );
    let unknown = json!({"type": "ref/prompt", "name": "nope"});
    assert_eq!(
        peer.modern(9, "completion/complete", complete(unknown, "x", ""))["error"]["code"],
        -32602
    );
}

#[test]
fn breaches_of_the_client_are_noted_without_a_script() {
    let mut peer = peer();
    peer.bytes(b"{\"jsonrpc\"\n[]\n{\"id\":0,\"method\":\"ping\"}\n");
    peer.send(json!({"jsonrpc": "2.0", "id": null, "method": "ping"}));
    peer.send(json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    peer.call(2, "fail", json!({}));
    peer.call(2, "fail", json!({}));
    assert_eq!(
        peer.server.failures(),
        [
            "the client sent a line that is not JSON: EOF while parsing an object at line 1 column 10",
            "the client sent something that is no JSON-RPC message",
            "the client sent something that is no JSON-RPC message",
            "the client sent something that is no JSON-RPC message",
            "the client sent a response (id 1), which the modern era does not have",
            "the client used id 2 again, for tools/call",
        ]
    );
}
