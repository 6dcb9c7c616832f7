//! The `_meta` of requests (R5, R7).

use mcp_proto::Version;
use mcp_proto::identity::{
    CallerMeta, MetaError, MetaTemplate, ModernRequest, Params, ProgressToken, Sha256Hex,
    TraceContext, control_span_id, encode_legacy, encode_notification, keys, span_id, trace_id,
};
use mcp_proto::types::LogLevel;
use mcp_proto::wire::{Json, Message, envelope};
use proptest::prelude::*;
use serde_json::{Value, json};

fn raw(value: &Value) -> Json {
    Json::parse(&serde_json::to_string_pretty(value).unwrap()).unwrap()
}

fn text(json: &str) -> Json {
    Json::parse(json).unwrap()
}

fn params(value: &Value) -> Params {
    let (params, meta) = Params::parse(&raw(value)).unwrap();
    assert_eq!(meta, None);
    params
}

fn trace() -> TraceContext {
    TraceContext::for_call(trace_id("root"), span_id(&Sha256Hex::of(b""), 4), 4)
}

fn template(alias: bool) -> MetaTemplate {
    let info = json!({"name": "c", "version": "1"});
    let capabilities = json!({"elicitation": {}});
    MetaTemplate::new(
        Version::LATEST,
        Some(&raw(&info)),
        &raw(&capabilities),
        alias,
        Some(LogLevel::Notice),
    )
    .unwrap()
}

/// The one line that was written, as a value.
fn parse(out: &[u8]) -> Value {
    let line = out.strip_suffix(b"\n").unwrap();
    assert!(!line.contains(&b'\n') && !line.contains(&b'\r'));
    assert!(matches!(
        envelope::read(line),
        Ok(Message::Request(_) | Message::Notification(_))
    ));
    serde_json::from_slice(line).unwrap()
}

/// R5: everything at once, in the order in which it is always written.
#[test]
fn r5_a_full_request() {
    let params = params(&json!({"name": "echo"}));
    let caller_meta = CallerMeta::parse(&text("{ \"com.example/a\":\n1 }")).unwrap();
    let request = ModernRequest {
        params: Some(&params),
        caller_meta: Some(&caller_meta),
        trace: Some(trace()),
        progress_token: Some(ProgressToken::Text("p\"1")),
        ..ModernRequest::new(7, "tools/call")
    };
    let mut out = b"earlier\n".to_vec();
    template(true).encode(&mut out, &request);
    let expected = [
        "earlier\n",
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name": "echo","_meta":{"#,
        r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
        r#""io.modelcontextprotocol/clientInfo":{  "name": "c",  "version": "1"},"#,
        r#""io.modelcontextprotocol/clientCapabilities":{  "elicitation": {}},"#,
        r#""io.modelcontextprotocol/logLevel":"notice","#,
        r#""client":{"capabilities":{  "elicitation": {}}},"#,
        r#""progressToken":"p\"1","#,
        &format!(r#""traceparent":"{}","#, trace().traceparent()),
        r#""baggage":"mcp.method=tools/call,mcp.call_index=4","#,
        r#""com.example/a":1}}}"#,
        "\n",
    ];
    assert_eq!(String::from_utf8(out).unwrap(), expected.concat());
}

/// R5: what is switched off is not there, and what is required always is.
#[test]
fn r5_a_bare_request() {
    let template = MetaTemplate::new(Version::LATEST, None, &text("{}"), false, None).unwrap();
    for params in [None, Some(Params::default())] {
        let mut out = Vec::new();
        let request = ModernRequest {
            params: params.as_ref(),
            ..ModernRequest::new(1, "server/discover")
        };
        template.encode(&mut out, &request);
        let expected = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": {
            keys::PROTOCOL_VERSION: "2026-07-28",
            keys::CLIENT_CAPABILITIES: {},
        }}});
        assert_eq!(parse(&out), expected);
    }
}

/// R7: a retry has the same `_meta`, byte for byte, and only another id.
#[test]
fn r7_a_retry_changes_the_id_only() {
    let encode = |id| {
        let mut out = Vec::new();
        let request = ModernRequest {
            trace: Some(trace()),
            ..ModernRequest::new(id, "tools/call")
        };
        template(true).encode(&mut out, &request);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(encode(1), encode(1));
    assert_eq!(encode(2), encode(1).replacen(r#""id":1"#, r#""id":2"#, 1));
}

/// R5: no reserved key comes from the application, however it is spelled.
#[test]
fn r5_reserved_keys_are_refused() {
    let reserved = [
        "progressToken",
        "traceparent",
        "tracestate",
        "baggage",
        "client",
        keys::PROTOCOL_VERSION,
        keys::CLIENT_INFO,
        keys::CLIENT_CAPABILITIES,
        keys::LOG_LEVEL,
        keys::SUBSCRIPTION_ID,
        keys::SERVER_INFO,
        "io.modelcontextprotocol/",
        "dev.mcp/x",
        "org.modelcontextprotocol.api/x",
        "com.mcp.tools/x",
    ];
    for key in reserved {
        let refusal = Err(MetaError::Reserved {
            key: key.to_owned(),
        });
        assert_eq!(CallerMeta::parse(&raw(&json!({"a": 1, key: 1}))), refusal);
        let hidden = format!(r#"{{"\u{:04x}{}":1}}"#, key.as_bytes()[0], &key[1..]);
        assert_eq!(CallerMeta::parse(&text(&hidden)), refusal);
        let in_params = raw(&json!({"_meta": {key: 1}}));
        assert_eq!(Params::parse(&in_params).map(|_| ()), refusal.map(|_| ()));
    }
    for key in [
        "com.example.mcp/x",
        "mcp/x",
        "mcp",
        "x.mcpp/y",
        "Client",
        "a",
        "",
        "io.modelcontextprotocol",
    ] {
        assert!(CallerMeta::parse(&raw(&json!({key: 1}))).is_ok(), "{key}");
    }
}

#[test]
fn r5_what_is_no_object_is_refused() {
    let not_object = |what| Err(MetaError::NotObject { what });
    let duplicate = |what| Err(MetaError::DuplicateMember { what });
    for json in ["null", "[]", "1", "\"a\""] {
        assert_eq!(
            CallerMeta::parse(&text(json)).map(|_| ()),
            not_object("_meta")
        );
        assert_eq!(Params::parse(&text(json)).map(|_| ()), not_object("params"));
        let template = MetaTemplate::new(Version::LATEST, None, &text(json), false, None);
        assert_eq!(template.map(|_| ()), not_object("capabilities"));
        let template =
            MetaTemplate::new(Version::LATEST, Some(&text(json)), &text("{}"), false, None);
        assert_eq!(template.map(|_| ()), not_object("clientInfo"));
        let in_params = Params::parse(&text(&format!(r#"{{"_meta":{json}}}"#)));
        assert_eq!(in_params.map(|_| ()), not_object("_meta"));
    }
    assert_eq!(
        CallerMeta::parse(&text(r#"{"a":1,"\u0061":1}"#)).map(|_| ()),
        duplicate("_meta")
    );
    assert_eq!(
        Params::parse(&text(r#"{"_meta":{},"_meta":{}}"#)).map(|_| ()),
        duplicate("params")
    );
}

/// R5: `_meta` in the params of the application is merged, not doubled.
#[test]
fn r5_meta_in_params_is_taken_out() {
    let json = text("{\"_meta\": {\"a\":\n1}, \"name\":\"x\",\n\"n\":1.50}");
    let (params, meta) = Params::parse(&json).unwrap();
    assert_eq!(params.as_str(), r#"{"name":"x","n":1.50}"#);
    let mut out = Vec::new();
    let request = ModernRequest {
        params: Some(&params),
        caller_meta: meta.as_ref(),
        ..ModernRequest::new(1, "tools/call")
    };
    template(false).encode(&mut out, &request);
    assert_eq!(parse(&out)["params"]["_meta"]["a"], 1);
    assert_eq!(String::from_utf8(out).unwrap().matches("_meta").count(), 1);
}

#[test]
fn params_with_members() {
    let one = params(&json!({"name": "x"}))
        .with("requestState", &text("\"s\""))
        .with("name", &text("[\n1]"));
    assert_eq!(one.as_str(), r#"{"requestState":"s","name":[1]}"#);
    assert_eq!(
        Params::default().with("_meta", &text("{}")),
        Params::default()
    );
}

/// R5: legacy messages carry no modern key; notifications carry trace keys only.
#[test]
fn r5_messages_without_modern_keys() {
    let params = params(&json!({"name": "x"}));
    let legacy = |params, meta: Option<&CallerMeta>, token| {
        let mut out = Vec::new();
        encode_legacy(&mut out, 3, "tools/call", params, meta, token);
        parse(&out)
    };
    assert_eq!(
        legacy(None, None, None),
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call"})
    );
    assert_eq!(
        legacy(Some(&params), None, None)["params"],
        json!({"name": "x"})
    );
    let meta = CallerMeta::parse(&text(r#"{"a":1}"#)).unwrap();
    let both = legacy(Some(&params), Some(&meta), Some(ProgressToken::Number(9)));
    assert_eq!(
        both["params"],
        json!({"name": "x", "_meta": {"progressToken": 9, "a": 1}})
    );
    let empty = CallerMeta::parse(&text("{ }")).unwrap();
    assert_eq!(legacy(None, Some(&empty), None).get("params"), None);

    let mut out = Vec::new();
    let trace = TraceContext::for_control(
        trace_id("r"),
        control_span_id("s", "notifications/cancelled", 0),
    );
    encode_notification(
        &mut out,
        "notifications/cancelled",
        Some(&params),
        Some(trace),
    );
    let meta = json!({"traceparent": trace.traceparent(), "baggage": "mcp.method=notifications/cancelled"});
    assert_eq!(parse(&out)["params"], json!({"name": "x", "_meta": meta}));
    out.clear();
    encode_notification(&mut out, "n", None, None);
    assert_eq!(out, b"{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n");
}

fn object() -> impl Strategy<Value = serde_json::Map<String, Value>> {
    let leaf = prop_oneof![
        any::<String>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from)
    ];
    let value = leaf.prop_recursive(3, 12, 3, |inner| {
        proptest::collection::btree_map(any::<String>(), inner, 0..3)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    });
    proptest::collection::btree_map("[a-z\n\"]{1,6}", value, 0..4)
        .prop_map(|map| map.into_iter().collect())
}

proptest! {
    /// R5: whatever the application gives, the request has its own `_meta`, and all else unchanged.
    #[test]
    fn r5_requests_read_back(params_object in object(), meta in object(), id in any::<u64>(), method in any::<String>()) {
        prop_assume!(!meta.keys().any(|key| keys::is_reserved(key)));
        let params = params(&Value::Object(params_object.clone()));
        let caller_meta = CallerMeta::parse(&raw(&Value::Object(meta.clone()))).unwrap();
        let mut out = Vec::new();
        template(true).encode(&mut out, &ModernRequest {
            params: Some(&params),
            caller_meta: Some(&caller_meta),
            trace: Some(trace()),
            ..ModernRequest::new(id, &method)
        });
        let mut expected_meta = meta;
        expected_meta.insert(keys::PROTOCOL_VERSION.into(), "2026-07-28".into());
        expected_meta.insert(keys::CLIENT_INFO.into(), json!({"name": "c", "version": "1"}));
        expected_meta.insert(keys::CLIENT_CAPABILITIES.into(), json!({"elicitation": {}}));
        expected_meta.insert(keys::LOG_LEVEL.into(), "notice".into());
        expected_meta.insert(keys::CLIENT.into(), json!({"capabilities": {"elicitation": {}}}));
        expected_meta.insert(keys::TRACEPARENT.into(), trace().traceparent().into());
        expected_meta.insert(keys::BAGGAGE.into(), trace().baggage(&method).into());
        let mut expected_params = params_object;
        expected_params.insert("_meta".into(), expected_meta.into());
        let expected = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": expected_params});
        prop_assert_eq!(parse(&out), expected);
    }
}
