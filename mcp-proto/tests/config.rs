//! Configuration files as people write them (R110, R100, R17, R18).

use mcp_proto::config::{
    Config, DEFAULT_ENV_ALLOW, HttpKind, MergePolicy, NameError, PeerConfig, Secret, StdioConfig,
    StdoutNoise, Templated, TransportKind,
};
use mcp_proto::cost::NanoUsd;
use mcp_proto::negotiation::EraSetting;
use mcp_proto::{Duration, Error, ErrorKind, Version};
use proptest::prelude::*;

mod config_support;
use config_support::*;

/// R110: the example of the documentation, field by field.
#[test]
fn a_file_becomes_peers_in_its_order() {
    let config = parse(
        r#"{"mcpServers":{
             "time":{"command":"mcp-server-time","args":["--local-timezone","UTC"]},
             "files":{"command":"node","args":["server.js","/data"],"allowLegacy":true,
                      "envAllow":["PATH","HOME"],"cwd":"${HOME}/x","env":{"A":"${TOKEN}"}},
             "api":{"type":"http","url":"https://example.com/mcp",
                    "headers":{"Authorization":"Bearer ${TOKEN}"},
                    "authContext":"alice","idempotentTools":["search"],"timeoutMs":30000}},
            "harness":{"mergePolicy":"prefix-on-collision","taskId":"task-42","ledger":"spend.jsonl",
                       "budgetUsd":0.25,"sharePublicCache":true,
                       "runRootHash":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}}"#,
    );
    let names: Vec<&str> = config.peers.iter().map(|peer| peer.name.as_str()).collect();
    assert_eq!(names, ["time", "files", "api"]);
    let [time, files, api] = &config.peers[..] else {
        panic!("three peers");
    };
    assert_eq!(
        time,
        &PeerConfig::stdio("time", "mcp-server-time", ["--local-timezone", "UTC"])
    );
    assert!(files.allow_legacy);
    let child = stdio(files);
    assert_eq!(
        child.cwd.as_ref().map(Templated::value),
        Some("/home/ada/x")
    );
    assert_eq!(child.env["A"].expose(), SECRET);
    assert_eq!(child.env_allow.iter().collect::<Vec<_>>(), ["HOME", "PATH"]);
    assert_eq!(api.timeout, Duration::from_secs(30));
    assert_eq!(api.auth_context.as_deref(), Some("alice"));
    assert!(api.idempotent_tools.contains("search"));
    let bearer = Secret::new(format!("Bearer {SECRET}"));
    assert_eq!(http(api).headers, [("Authorization".to_owned(), bearer)]);
    assert_eq!(config.harness.merge_policy, MergePolicy::PrefixOnCollision);
    assert_eq!(config.harness.task_id.as_deref(), Some("task-42"));
    assert_eq!(config.harness.run_root_hash, Some("a".repeat(64)));
    assert_eq!(
        config.harness.budget,
        Some(NanoUsd::from_nanos(250_000_000))
    );
    assert!(config.harness.share_public_cache && !config.harness.staleness_on_error);
    assert_eq!(config.warnings, []);
}

/// Every field beside the ecosystem's own reaches its place.
#[test]
fn every_setting_is_read() {
    let found = peer(
        r#""command":"x","allowLegacy":true,"era":"legacy",
           "legacyVersions":["2024-11-05","2025-11-25"],"legacy":{"sessionHeader":false},
           "probeTimeoutMs":1,"timeoutMs":2,"absoluteTimeoutMs":3,"maxContinuationRetries":0,
           "validateCapabilities":false,"validateOutput":true,"pinTools":true,"refuseDegraded":true,"stdoutNoise":"degrade",
           "envAllow":[],"idempotencyMetaKey":"k","checkpointMetaKey":"c","sendClientInfo":false,
           "compatCapabilitiesAlias":false,"maxLineBytes":11,"maxBodyBytes":12,"maxDepth":13,
           "maxPages":14,"maxTools":15,"maxInFlight":16,"maxInputRounds":17,
           "costUsd":0.1,"toolCostsUsd":{"a":3e-9,"b":0},
           "restart":{"maxAttempts":0,"backoffMs":5,"backoffMaxMs":6}"#,
    );
    let mut expected = PeerConfig::new(
        "p",
        StdioConfig::new("x", [] as [&str; 0]).env_allow([""; 0]),
    );
    expected.allow_legacy = true;
    expected.era = EraSetting::Legacy;
    expected.legacy_versions = vec![Version::V2025_11_25, Version::V2024_11_05];
    expected.legacy_session = Some(false);
    expected.probe_timeout = Duration::from_millis(1);
    expected.timeout = Duration::from_millis(2);
    expected.absolute_timeout = Duration::from_millis(3);
    expected.max_continuation_retries = 0;
    expected.validate_capabilities = false;
    expected.validate_output = true;
    expected.pin_tools = true;
    expected.refuse_degraded = true;
    expected.stdout_noise = StdoutNoise::Degrade;
    expected.idempotency_meta_key = Some("k".to_owned());
    expected.checkpoint_meta_key = Some("c".to_owned());
    expected.send_client_info = false;
    expected.compat_capabilities_alias = false;
    expected.limits.line_bytes = 11;
    expected.limits.body_bytes = 12;
    expected.limits.depth = 13;
    expected.limits.pages = 14;
    expected.limits.items = 15;
    expected.limits.in_flight = 16;
    expected.limits.input_rounds = 17;
    let usd = NanoUsd::from_nanos;
    expected.cost = Some(usd(100_000_000));
    expected.tool_costs = [("b".to_owned(), usd(0)), ("a".to_owned(), usd(3))].into();
    expected.restart.max_attempts = 0;
    expected.restart.backoff = Duration::from_millis(5);
    expected.restart.backoff_max = Duration::from_millis(6);
    assert_eq!(found, expected);

    let found = peer(r#""url":"https://x/","allowInsecureHttp":true,"caFile":"${HOME}/ca.pem""#);
    assert!(http(&found).allow_insecure);
    assert_eq!(
        http(&found).ca_file.as_ref().map(Templated::value),
        Some("/home/ada/ca.pem")
    );
}

/// R50: prices are exact; one that makes no sense is an error with its place, and nothing is rounded.
#[test]
fn r50_prices_are_exact() {
    let found = peer(r#""command":"x","costUsd":1e-5,"toolCostsUsd":{"b":0}"#);
    assert_eq!(found.cost_of("a"), Some(NanoUsd::from_nanos(10_000)));
    assert_eq!(found.cost_of("b"), Some(NanoUsd::ZERO));
    assert_eq!(peer(r#""command":"x""#).cost_of("a"), None);
    for wrong in ["-1", "0.0000000001", "1e11", "\"0.5\"", "[]"] {
        let error = peer_error(&format!(r#""command":"x","toolCostsUsd":{{"a":{wrong}}}"#));
        assert!(
            error.contains("mcpServers.p.toolCostsUsd.a: expected"),
            "{error}"
        );
    }
}

/// R1, R14, R18: what nobody set is safe.
#[test]
fn the_defaults_are_safe() {
    let found = peer(r#""command":"x","env":null"#);
    assert!(!found.allow_legacy && found.validate_capabilities && !found.pin_tools);
    assert_eq!(found.era, EraSetting::Auto);
    assert_eq!(found.legacy_versions.len(), 4);
    assert_eq!(found.probe_timeout, Duration::from_secs(10));
    assert_eq!(found.timeout, Duration::from_secs(60));
    assert_eq!(found.absolute_timeout, Duration::from_secs(600));
    assert_eq!(found.limits, mcp_proto::Limits::default());
    assert!(stdio(&found).env_allow.iter().eq(DEFAULT_ENV_ALLOW.iter()));
    // A longer idle deadline is not cut short by a default that nobody wrote.
    let found = peer(r#""command":"x","timeoutMs":900000"#);
    assert_eq!(found.absolute_timeout, Duration::from_secs(900));
}

/// R110: the shapes that other hosts write.
#[test]
fn other_hosts_files_are_read() {
    for (members, kind) in [
        (r#""type":"stdio","command":"x""#, TransportKind::Stdio),
        (
            r#""type":"local","command":"x","tools":null"#,
            TransportKind::Stdio,
        ),
        (r#""url":"HTTP://x""#, TransportKind::Http),
        (
            r#""type":"streamable-http","url":"http://x""#,
            TransportKind::Http,
        ),
        (
            r#""type":"streamableHttp","url":"http://x","autoApprove":[],"disabled":false"#,
            TransportKind::Http,
        ),
        (
            r#""serverUrl":"http://x","alwaysAllow":["a"],"_comment":"c""#,
            TransportKind::Http,
        ),
        (
            r#""type":"sse","url":"http://x","allowLegacy":true"#,
            TransportKind::Http,
        ),
    ] {
        assert_eq!(peer(members).transport.kind(), kind, "{members}");
    }
    assert_eq!(
        http(&peer(r#""type":"sse","url":"http://x","allowLegacy":true"#)).kind,
        HttpKind::Sse
    );
    let config = parse(
        "\u{feff}{\"$schema\":\"s\",\"inputs\":[],\"servers\":{
            \"off\":{\"command\":\"${NOT_SET}\",\"disabled\":true},
            \"out\":{\"enabled\":false},
            \"on\":{\"command\":\"x\"}}}",
    );
    assert_eq!(config.disabled, ["off", "out"]);
    assert_eq!(
        config.peers,
        [PeerConfig::stdio("on", "x", [] as [&str; 0])]
    );
    assert_eq!(config.warnings, []);
}

/// R110: file, line, column and path; everything at once; no value that may be secret.
#[test]
fn everything_wrong_is_reported_with_its_place() {
    let text = r#"{"mcpServers": {
  "git": {"command": ["git"], "args": ["a", 1, {"b": 2}], "env": {"A=": "x", "B": 7}},
  "git": {"command": "git"},
  "é both": {"command": "x", "url": "http://x"},
  "none": {"timeoutMs": 0, "maxDepth": -1, "maxPages": 1.5, "probeTimeoutMs": "1s"},
  "a/b": {"command": "${MISSING}", "era": "moderm", "stdoutNoise": "loud"},
  "old": {"command": "x", "era": "legacy", "legacyVersions": ["2025-06-81", "2026-07-28"]},
  "web": {"url": "ftp://hunter2-s3cret@x", "headers": {"X Y": "a", "T": "${BROKEN_TOKEN}"}},
  "ws": {"type": "ws", "url": "ws://x"}, "kind": {"type": "http", "command": "x"},
  "list": []},
 "harness": {"mergePolicy": "reject", "runRootHash": "ABC", "budgetUsd": -1,
   "allowSpawn": ["", {"args": []}, 3], "stalenessOnError": "yes"}}"#;
    let errors = errors(text);
    assert!(!errors.contains(SECRET));
    insta::assert_snapshot!(errors);
}

/// R110: syntax errors say where, too.
#[test]
fn a_syntax_error_has_its_place() {
    let cases = [
        "",
        "{\"mcpServers\": {\"é\": {\"command\": \"x\",}}}",
        "{\n  // servers\n  \"mcpServers\": {}}",
        "{\"mcpServers\": {}",
        "[]",
        "{}",
        "{\"_comment\":1,\"mcpServer\":{\"a\":{\"command\":\"x\"}}}",
        "{\"mcp_servers\":{}}",
        "{\"server\":{}}",
        "{\"a\":{\"type\":\"stdio\",\"command\":\"x\"}}",
        "{\"a\":{\"url\":\"https://x\"},\"b\":[]}",
        "{\"unrelated\":{\"key\":\"url\"}}",
        "{\"mcpServers\":{},\"servers\":{}}",
        "{\"mcpServers\":{\"\\ud800\":{}}}",
    ];
    insta::assert_snapshot!(cases.map(errors).join("\n"));
}

/// R110: unknown keys warn and suggest; settings of other hosts that are not obeyed warn, too.
#[test]
fn what_is_odd_warns() {
    let config = parse(
        r#"{"mcpServers": {
  "git": {"command": "x", "arg": ["a"], "allowlegacy": true, "timeout": 5, "zzz": 1,
          "headers": {}, "restart": {"maxAttempt": 1}},
  "web": {"type": "sse", "url": "http://x", "env": {}, "disabledTools": ["rm"], "timeoutMs": 9,
          "absoluteTimeoutMs": 5}},
 "harnes": {}}"#,
    );
    assert_eq!(config.peers.len(), 2);
    let warnings: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(warnings.join("\n"));
}

#[test]
fn a_name_can_stand_before_a_slash() {
    for (name, expected) in [
        ("", Err(NameError::Empty)),
        ("a/b", Err(NameError::Slash)),
        ("a\u{1b}[2J", Err(NameError::Control)),
        (&"é".repeat(65), Err(NameError::TooLong)),
        (&"é".repeat(64), Ok(())),
        ("My server.2", Ok(())),
    ] {
        assert_eq!(PeerConfig::stream(name).validate(), expected, "{name:?}");
    }
}

/// R17, R18: a handshake is never configured by accident.
#[test]
fn legacy_needs_the_word() {
    let error = peer_error(r#""command":"x","era":"legacy""#);
    assert!(
        error.contains("mcpServers.p.era: ") && error.contains("allowLegacy"),
        "{error}"
    );
    let error = peer_error(r#""command":"x","legacyVersions":["2026-07-28"]"#);
    assert!(error.contains("is no legacy revision"), "{error}");
    assert!(peer_error(r#""command":"x","legacyVersions":[]"#).contains("names no revision"));
}

/// R110: nothing that shows a configuration shows a secret.
#[test]
fn secrets_show_nowhere() {
    let config = parse(
        r#"{"mcpServers":{
            "a":{"command":"${TOKEN}","args":["--token=${TOKEN}"],"env":{"A":"${TOKEN}","B":"hunter2-s3cret"},
                 "cwd":"/${TOKEN}"},
            "b":{"url":"https://me:hunter2-s3cret@x.org/p?key=hunter2-s3cret#hunter2-s3cret",
                 "headers":{"A":"hunter2-s3cret"}},
            "c":{"url":"https://x.org/${TOKEN}?q"}}}"#,
    );
    let shown: Vec<String> = config.peers.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "a: ${TOKEN} --token=${TOKEN}",
            "b: https://***@x.org/p?***",
            "c: https://x.org/${TOKEN}?***",
        ]
    );
    let plan = plan(stdio(&config.peers[0]), None).unwrap();
    assert_eq!(plan.args, [format!("--token={SECRET}")]);
    for text in [
        format!("{config:?}"),
        format!("{config:#?}"),
        format!("{plan:?}"),
        shown.join(""),
    ] {
        assert!(!text.contains(SECRET), "{text}");
    }
}

#[test]
fn a_config_error_is_an_error() {
    let error = Config::parse("[]", "x.json", &mut env).unwrap_err();
    let error = Error::from(error);
    assert_eq!(error.kind(), ErrorKind::Config);
    assert_eq!(
        error.to_string(),
        "x.json:1:1: expected an object, found an array"
    );
}

/// JSON-like text of any shape below the servers, with the keys that matter in it.
fn any_json() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        Just("command"),
        Just("args"),
        Just("env"),
        Just("url"),
        Just("type"),
        Just("headers"),
        Just("restart"),
        Just("legacy"),
        Just("timeoutMs"),
        Just("legacyVersions"),
        Just("zzz"),
    ];
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("1e400".to_owned()),
        Just("-7".to_owned()),
        Just(r#""\ud800""#.to_owned()),
        Just(r#""${TOKEN}""#.to_owned()),
        Just(r#""${BROKEN_TOKEN}""#.to_owned()),
        Just(r#""http""#.to_owned()),
        Just(r#""http://${TOKEN}@h""#.to_owned()),
    ];
    leaf.prop_recursive(3, 24, 4, move |inner| {
        let member = (key.clone(), inner.clone());
        prop_oneof![
            proptest::collection::vec(inner, 0..4)
                .prop_map(|items| format!("[{}]", items.join(","))),
            proptest::collection::vec(member, 0..4).prop_map(|members| {
                let members: Vec<String> = members
                    .iter()
                    .map(|(key, value)| format!("\"{key}\":{value}"))
                    .collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

proptest! {
    /// R110: whatever a file holds, it is read or refused with a place, and shows no secret.
    #[test]
    fn any_file_is_read_or_refused(servers in any_json(), harness in any_json(), cut in 0_usize..400) {
        let whole = format!("{{\"mcpServers\":{{\"p\":{servers}}},\"harness\":{harness}}}");
        for text in [whole.as_str(), whole.get(..cut).unwrap_or(&whole)] {
            let shown = match Config::parse(text, "f", &mut env) {
                Ok(config) => format!("{config:?}"),
                Err(error) => {
                    prop_assert!(!error.findings.is_empty());
                    prop_assert!(error.findings.iter().all(|at| at.line == 1 && at.column >= 1));
                    error.to_string()
                }
            };
            prop_assert!(!shown.contains(SECRET), "{}", shown);
        }
    }
}
