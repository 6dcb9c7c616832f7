//! From a configuration to a report (R2, R14, R100, R111).

use mcp_proto::config::StdioConfig;
use mcp_proto::report::PeerState;
use mcp_proto::{ErrorKind, Operation, PeerConfig, Reply, Request, Version};
use serde_json::json;

use super::process::{descriptors, threads, until};
use super::stage::{PATIENCE, Stage, call, refused};
use super::{Setup, expect};

/// The tools of a fake server in the modern era.
const MODERN_TOOLS: usize = 14;

/// R111: each peer with its era, revision and canonical names; names that several have are qualified.
pub(super) fn peers_of_every_revision_settle_and_the_report_says_how(stage: &Stage<'_>) {
    let mut peers = vec![
        stage.modern("modern"),
        stage.peer("dual", json!({"era": "dual"})),
        stage.peer("single", json!({"options": {"tools": ["only"]}})),
    ];
    let mut expected = vec![
        ("modern", Version::V2026_07_28, MODERN_TOOLS),
        ("dual", Version::V2026_07_28, MODERN_TOOLS),
        ("single", Version::V2026_07_28, 1),
    ];
    // `ask` came with elicitation; `end_listen` is modern.
    for (version, tools) in [
        (Version::V2024_11_05, MODERN_TOOLS - 2),
        (Version::V2025_03_26, MODERN_TOOLS - 2),
        (Version::V2025_06_18, MODERN_TOOLS - 1),
        (Version::V2025_11_25, MODERN_TOOLS - 1),
    ] {
        let script = json!({"era": "legacy", "protocol_version": version.as_str()});
        let mut peer = stage.peer(version.as_str(), script);
        peer.allow_legacy = true;
        peers.push(peer);
        expected.push((version.as_str(), version, tools));
    }
    let client = stage.connect(peers);
    let report = client.session.report();
    expected.sort_by_key(|(name, ..)| *name);
    let found: Vec<_> = report
        .peers
        .iter()
        .map(|peer| {
            assert_eq!(peer.state, PeerState::Ready, "{peer:?}");
            assert_eq!(peer.era, peer.version.map(Version::era));
            assert_eq!(peer.manifest_digest.as_ref().map(String::len), Some(64));
            (peer.name.as_str(), peer.version, peer.tools.len())
        })
        .collect();
    let expected: Vec<_> = expected
        .into_iter()
        .map(|(name, version, tools)| (name, Some(version), tools))
        .collect();
    assert_eq!(found, expected);
    assert_eq!(client.report_of("single").tools, ["only"]);
    let is_qualified = |tool: &String| tool.starts_with("dual/");
    assert!(client.report_of("dual").tools.iter().all(is_qualified));
    let echo = report.collisions.iter().find(|found| found.name == "echo");
    let owners = [
        "2024-11-05",
        "2025-03-26",
        "2025-06-18",
        "2025-11-25",
        "dual",
        "modern",
    ];
    assert_eq!(
        echo.map(|echo| echo.owners.as_slice()),
        Some(&owners.map(str::to_owned)[..])
    );
    client.end();
}

/// R14: without consent not one byte of a handshake reaches a server that may be a legacy one.
pub(super) fn a_legacy_server_is_not_greeted_unless_it_is_allowed(stage: &Stage<'_>) {
    let legacy = |name: &str| {
        let options = json!({"transcript": stage.file(name)});
        stage.peer(name, json!({"era": "legacy", "options": options}))
    };
    let mut allowed = legacy("allowed");
    allowed.allow_legacy = true;
    let client = stage.connect(vec![allowed, legacy("refused")]);
    let refused = client.report_of("refused");
    let failure = refused.failure.as_ref();
    assert_eq!(refused.state, PeerState::Failed);
    assert_eq!(
        failure.map(|failure| failure.kind),
        Some(ErrorKind::LegacyNotAllowed)
    );
    assert!(failure.is_some_and(|failure| failure.remedy.contains("allowLegacy")));
    client.echo("allowed", "ready");
    client.end();
    assert_eq!(stage.received_methods("refused"), ["server/discover"]);
    let allowed = stage.received_methods("allowed");
    assert_eq!(
        allowed.get(..3).unwrap_or_default(),
        ["server/discover", "initialize", "notifications/initialized"]
    );
}

/// R2, R100: a program or directory that is not there, or cannot be executed, is that peer's failure.
pub(super) fn what_cannot_be_started_fails_alone(stage: &Stage<'_>) {
    let no_arguments: [&str; 0] = [];
    let absent = stage.file("absent").display().to_string();
    let text = stage.file("text");
    if let Err(error) = std::fs::write(&text, "no program") {
        panic!("{}: {error}", text.display());
    }
    let elsewhere = stage.stdio_peer("elsewhere", json!({}), |stdio| stdio.cwd(absent.as_str()));
    let client = stage.connect(vec![
        PeerConfig::stdio("command", "conformance-no-such-program", no_arguments),
        elsewhere,
        stage.modern("good"),
        PeerConfig::stdio("path", absent.as_str(), no_arguments),
        PeerConfig::stdio("text", text.display().to_string(), no_arguments),
    ]);
    for name in ["command", "elsewhere", "path", "text"] {
        let report = client.report_of(name);
        let kind = report.failure.as_ref().map(|failure| failure.kind);
        assert_eq!(
            (report.state, kind),
            (PeerState::Failed, Some(ErrorKind::SpawnRefused))
        );
        let error = refused(&client, call(name, "echo", json!({"text": "?"})));
        assert_eq!(
            (error.kind(), error.may_have_executed()),
            (ErrorKind::SpawnRefused, false)
        );
    }
    client.echo("good", "all the same");
    client.end();
}

/// R14: what a server says before it dies is in the failure; usually it is the reason.
pub(super) fn a_server_that_exits_at_once_is_quoted(stage: &Stage<'_>) {
    let complaint = "fatal: no database at /nowhere";
    let dying = json!({"era": "probe", "steps": [{"stderr": format!("starting\n{complaint}\n")}, {"exit": 7}]});
    let client = stage.connect(vec![stage.peer("dying", dying), stage.modern("good")]);
    let report = client.report_of("dying");
    assert_eq!(report.state, PeerState::Failed);
    let message = report
        .failure
        .map(|failure| failure.message)
        .unwrap_or_default();
    assert!(message.contains(complaint), "{message}");
    assert!(message.contains("status 7"), "{message}");
    let stderr = client.diagnosis_of("dying").stderr;
    assert_eq!(stderr, ["starting", complaint]);
    client.echo("good", "all the same");
    client.end();
}

/// R2: what is submitted early waits for its peer, and an operation for all peers waits for all.
pub(super) fn operations_may_be_submitted_before_anything_is_settled(stage: &Stage<'_>) {
    let late = json!({"steps": [{"on": "server/discover"}, {"sleep_ms": 300}, "«GOOD_DISCOVER»"]});
    let quick = stage.peer(
        "quick",
        json!({"options": {"tools": ["echo"], "tool_prefix": "q_"}}),
    );
    let client = stage.start(Setup::of(vec![quick, stage.peer("late", late)]));
    let early = client.submit(call("late", "echo", json!({"text": "early"})));
    let tools = client.submit(Operation::new(Request::ListTools));
    assert_eq!(expect::called(client.wait(early)).text(), "early");
    let Reply::Tools(tools) = expect::complete(client.wait(tools)) else {
        panic!("expected tools");
    };
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["echo", "q_echo"]);
    client.end();
}

/// R100: neither closing nor dropping leaks what a process has few of.
pub(super) fn twenty_lives_leak_neither_descriptors_nor_threads(stage: &Stage<'_>) {
    let live = |number: usize| {
        let missing = PeerConfig::new("missing", StdioConfig::new("/nowhere", ["x"]));
        let client = stage.connect(vec![stage.modern("good"), missing]);
        client.echo("good", "hello");
        if number.is_multiple_of(2) {
            client.end();
        } else {
            client.abandon();
        }
    };
    // What is made once for all clients (an executor, a reactor) is made now. What goes away a little
    // later than its client is counted, and hides no leak that happens in each of twenty lives.
    (0..4).for_each(live);
    let before = (descriptors(), threads());
    (0..20).for_each(live);
    let is_back = || descriptors() <= before.0 && threads() <= before.1;
    assert!(
        until(PATIENCE, is_back),
        "(descriptors, threads) before: {before:?}, after: {:?}",
        (descriptors(), threads())
    );
}
