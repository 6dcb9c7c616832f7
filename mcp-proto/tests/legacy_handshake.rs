//! The handshake of the older revisions (R14, R17, R18).

#[path = "legacy_support/mod.rs"]
mod support;

use mcp_proto::error::{Cause, RpcError};
use mcp_proto::legacy::{
    Handshake, HandshakeFault, InvalidHandshake, LegacySession, last_words_ask_for_handshake,
};
use mcp_proto::negotiation::{HandshakeAnswer, ModernError};
use mcp_proto::version::Version;
use mcp_proto::wire::Json;
use proptest::prelude::*;
use serde_json::{Value, json};

use support::members;

const LEGACY: [Version; 4] = [
    Version::V2025_11_25,
    Version::V2025_06_18,
    Version::V2025_03_26,
    Version::V2024_11_05,
];

fn handshake(allowed: &[Version]) -> Handshake {
    let capabilities = Json::parse(r#"{"roots":{"listChanged":true}}"#).unwrap();
    let client_info = Json::parse(r#"{"name":"client","version":"1.0"}"#).unwrap();
    Handshake::new(allowed, &capabilities, &client_info).unwrap()
}

fn good(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": {"tools": {"listChanged": true}},
        "serverInfo": {"name": "files", "version": "0.1"},
    })
}

fn read(allowed: &[Version], answer: &Value) -> Result<LegacySession, HandshakeFault> {
    let text = answer.to_string();
    handshake(allowed).read_result(&members(&text))
}

fn rpc(code: i64, data: Option<Value>) -> RpcError {
    RpcError {
        code,
        message: "refused".into(),
        data: data.map(Json::from),
    }
}

#[test]
fn r18_the_request_offers_the_newest_configured_revision() {
    for (at, offered) in LEGACY.iter().enumerate() {
        let handshake = handshake(&LEGACY[at..]);
        assert_eq!(handshake.offered(), *offered);
        let request = handshake.request();
        assert_eq!(request.method, "initialize");
        assert_eq!(
            request.params.unwrap().as_str(),
            format!(
                r#"{{"protocolVersion":"{offered}","capabilities":{{"roots":{{"listChanged":true}}}},"clientInfo":{{"name":"client","version":"1.0"}}}}"#
            )
        );
    }
    // In whatever order they are configured.
    let unordered = [Version::V2024_11_05, Version::V2025_06_18];
    assert_eq!(handshake(&unordered).offered(), Version::V2025_06_18);
}

#[test]
fn r5_the_request_carries_no_modern_key() {
    let text = handshake(&LEGACY).request().params.unwrap().to_string();
    assert!(!text.contains("_meta") && !text.contains("io.modelcontextprotocol"));
}

#[test]
fn r18_a_modern_revision_has_no_handshake() {
    let empty = Json::parse("{}").unwrap();
    for allowed in [&[][..], &[Version::V2026_07_28]] {
        assert_eq!(
            Handshake::new(allowed, &empty, &empty),
            Err(InvalidHandshake::NoRevision)
        );
    }
    let mixed = [Version::V2026_07_28, Version::V2025_03_26];
    assert_eq!(handshake(&mixed).offered(), Version::V2025_03_26);
}

#[test]
fn r14_a_correct_answer_selects_the_revision_of_the_server() {
    for version in LEGACY {
        let session = read(&LEGACY, &good(version.as_str())).unwrap();
        assert_eq!(session.version, version);
        assert_eq!(session.dialect().version, version);
        assert_eq!(session.server_name, "files");
        assert_eq!(session.server_version, "0.1");
        assert_eq!(session.instructions, None);
        assert_eq!(
            session.capabilities.as_str(),
            r#"{"tools":{"listChanged":true}}"#
        );
        assert_eq!(
            session.server_info.as_str(),
            r#"{"name":"files","version":"0.1"}"#
        );
    }
    assert_eq!(Handshake::initialized().method, "notifications/initialized");
    assert_eq!(Handshake::initialized().params, None);
}

#[test]
fn r18_another_configured_revision_is_accepted_and_no_other() {
    let configured = [Version::V2025_06_18, Version::V2025_03_26];
    assert_eq!(
        read(&configured, &good("2025-03-26")).unwrap().version,
        Version::V2025_03_26
    );
    // Known to this client, but not configured; unknown; modern; nonsense; not exactly a revision.
    for text in [
        "2025-11-25",
        "2024-11-05",
        "2031-01-01",
        "2026-07-28",
        "%params/protocolVersion%",
        "2025-06-18 ",
        "",
    ] {
        let fault = read(&configured, &good(text)).unwrap_err();
        let offered = vec![text.trim().to_string()];
        assert_eq!(
            fault,
            HandshakeFault::Version {
                offered: offered.clone()
            }
        );
        assert_eq!(
            fault.into_answer(),
            HandshakeAnswer::Refused(Cause::Version { offered })
        );
    }
}

#[test]
fn r14_nothing_is_defaulted() {
    let with = |name: &str, value: Option<Value>| {
        let mut answer = good("2025-11-25");
        let object = answer.as_object_mut().unwrap();
        match value {
            Some(value) => object.insert(name.into(), value),
            None => object.remove(name),
        };
        answer
    };
    let info = |value: Value| with("serverInfo", Some(value));
    for (answer, detail) in [
        (json!({}), "protocolVersion is missing"),
        (with("protocolVersion", None), "protocolVersion is missing"),
        (
            with("protocolVersion", Some(json!(null))),
            "protocolVersion is not a string",
        ),
        (
            with("protocolVersion", Some(json!(20251125))),
            "protocolVersion is not a string",
        ),
        (with("capabilities", None), "capabilities is missing"),
        (
            with("capabilities", Some(json!(null))),
            "capabilities is not an object",
        ),
        (
            with("capabilities", Some(json!([]))),
            "capabilities is not an object",
        ),
        (
            with("capabilities", Some(json!(true))),
            "capabilities is not an object",
        ),
        (with("serverInfo", None), "serverInfo is missing"),
        (info(json!("files 0.1")), "serverInfo is not an object"),
        (info(json!(["files", "0.1"])), "serverInfo is not an object"),
        (info(json!({"version": "1"})), "serverInfo.name is missing"),
        (
            info(json!({"name": "", "version": "1"})),
            "serverInfo.name is empty",
        ),
        (
            info(json!({"name": 7, "version": "1"})),
            "serverInfo.name is not a string",
        ),
        (info(json!({"name": "x"})), "serverInfo.version is missing"),
        (
            info(json!({"name": "x", "version": ""})),
            "serverInfo.version is empty",
        ),
        (
            info(json!({"name": "x", "version": 1.0})),
            "serverInfo.version is not a string",
        ),
    ] {
        let HandshakeFault::Violation(fault) = read(&LEGACY, &answer).unwrap_err() else {
            panic!("{answer}");
        };
        assert_eq!(fault.detail, detail, "{answer}");
        assert_eq!(
            HandshakeFault::Violation(fault.clone()).into_answer(),
            HandshakeAnswer::Refused(Cause::SchemaViolation(fault))
        );
    }
}

#[test]
fn instructions_are_optional_and_never_a_reason_to_refuse() {
    for (value, expected) in [
        (json!("be kind"), Some("be kind".to_string())),
        (json!(null), None),
        (json!({"text": "be kind"}), None),
    ] {
        let mut answer = good("2025-11-25");
        answer["instructions"] = value;
        assert_eq!(read(&LEGACY, &answer).unwrap().instructions, expected);
    }
}

#[test]
fn r15_modern_errors_prove_a_modern_server() {
    let supported = json!({"supported": ["2026-07-28"], "requested": "2025-11-25"});
    let fault = Handshake::read_error(rpc(-32022, Some(supported)));
    let HandshakeAnswer::Modern(ModernError::UnsupportedVersion { supported, .. }) =
        fault.into_answer()
    else {
        panic!("not modern");
    };
    assert_eq!(supported.unwrap(), ["2026-07-28"]);
    for code in [-32020, -32021] {
        assert!(matches!(
            Handshake::read_error(rpc(code, None)),
            HandshakeFault::Modern(_)
        ));
    }
}

#[test]
fn r14_other_errors_refuse_the_handshake_as_they_are() {
    for error in [
        rpc(-32601, None),
        rpc(0, Some(json!({"supported": ["2024-11-05"]}))),
        rpc(-32602, Some(json!("supported"))),
        rpc(-32602, Some(json!({"supported": []}))),
    ] {
        assert_eq!(
            Handshake::read_error(error.clone()).into_answer(),
            HandshakeAnswer::Refused(Cause::Rpc(error))
        );
    }
    // The form that the lifecycle pages show for a refused revision.
    let error = rpc(
        -32602,
        Some(json!({"supported": ["2024-11-05"], "requested": "1.0.0"})),
    );
    assert_eq!(
        Handshake::read_error(error),
        HandshakeFault::Version {
            offered: vec!["2024-11-05".into()]
        }
    );
}

#[test]
fn declared_capabilities_are_read_by_path() {
    let mut answer = good("2025-11-25");
    answer["capabilities"] = json!({
        "tools": {"listChanged": true},
        "resources": {"subscribe": false, "listChanged": {}},
        "logging": {},
        "prompts": null,
        "completions": true,
    });
    let session = read(&LEGACY, &answer).unwrap();
    for (path, declared) in [
        ("tools", true),
        ("tools.listChanged", true),
        ("resources", true),
        ("resources.subscribe", false),
        ("resources.listChanged", true),
        ("logging", true),
        ("logging.level", false),
        ("prompts", false),
        ("completions", true),
        ("completions.x", false),
        ("tasks", false),
        ("", false),
    ] {
        assert_eq!(session.declares(path), declared, "{path}");
    }
}

#[test]
fn r14_last_words_tell_a_missing_handshake_from_any_other_death() {
    for asking in [
        "Error: expected initialize request\n",
        "Error: ExpectedInitializeRequest(Some(Request(JsonRpcRequest {",
        "panicked: method \"server/discover\" came first",
        "Received request before initialization was complete",
    ] {
        assert!(last_words_ask_for_handshake(asking), "{asking}");
    }
    for other in [
        "",
        "Error: API_KEY environment variable is required\n",
        "failed to initialize database: connection refused",
        "ModuleNotFoundError: No module named 'mcp'",
    ] {
        assert!(!last_words_ask_for_handshake(other), "{other}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// R1, R14: whatever object a server answers with, it is judged without a panic, and accepted
    /// only with everything that the rule asks for.
    #[test]
    fn only_complete_answers_are_accepted(
        version in prop_oneof![Just(json!("2025-11-25")), Just(json!("2024-11-05")), ".{0,12}".prop_map(Value::from), Just(json!(7))],
        capabilities in prop_oneof![Just(json!({})), Just(json!({"tools": {}})), Just(json!([])), Just(json!(null))],
        name in prop_oneof![Just(json!("x")), Just(json!("")), Just(json!(null)), Just(json!("\u{0}"))],
        info in prop_oneof![3 => Just(true), 1 => Just(false)],
        extra in ".{0,8}",
    ) {
        let mut answer = json!({
            "protocolVersion": version,
            "capabilities": capabilities,
            "serverInfo": {"name": name, "version": "1"},
        });
        answer[format!("x-{extra}")] = json!(extra);
        if !info {
            answer["serverInfo"] = json!(extra);
        }
        let allowed = [Version::V2025_11_25];
        let complete = version == json!("2025-11-25")
            && capabilities.is_object()
            && info
            && name.as_str().is_some_and(|name| !name.is_empty());
        let session = read(&allowed, &answer);
        prop_assert_eq!(session.is_ok(), complete, "{:?}", session);
    }
}
