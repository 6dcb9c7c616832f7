//! The ledger's file: costs that outlive the client (R50).

use std::fs;
use std::path::Path;
use std::process::Command;

use mcp_proto::config::Templated;
use mcp_proto::{ErrorKind, NanoUsd};
use serde_json::json;

use super::Setup;
use super::stage::{Stage, call, refused};

/// R50: each call is a line when the client has closed; the next client reads it, and a budget that is used
/// up stops its calls before anything is sent.
pub(super) fn what_calls_cost_is_written_and_read_again(stage: &Stage<'_>) {
    let file = stage.file("spend.jsonl");
    let setup = || {
        let mut peer = stage.modern("a");
        peer.cost = Some(NanoUsd::from_nanos(250_000_000));
        let mut setup = Setup::of(vec![peer]);
        setup.config.harness.ledger = Some(Templated::literal(file.to_string_lossy()));
        setup.config.harness.budget = Some(NanoUsd::from_nanos(500_000_000));
        setup
    };
    for lines in 1..=2 {
        let client = stage.start(setup());
        client.echo("a", "hi");
        client.end();
        let written = fs::read_to_string(&file).unwrap_or_default();
        assert!(written.ends_with('\n'), "{written:?}");
        assert_eq!(written.lines().count(), lines);
        for line in written.lines() {
            assert!(line.contains(r#""server":"a""#) && line.contains(r#""usd":0.25"#));
        }
    }
    let client = stage.start(setup());
    // At once, or when the ledger has been read.
    let error = refused(&client, call("a", "echo", json!({"text": "too much"})));
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    assert!(!error.may_have_executed());
    client.end();
}

/// R50: a ledger that cannot be had changes no outcome, and holds up nothing: one that cannot be written, and one
/// that is no regular file, which may never end or not even be opened.
pub(super) fn a_ledger_that_cannot_be_had_fails_no_call(stage: &Stage<'_>) {
    let missing = stage.file("no/such/directory/spend.jsonl");
    let pipe = stage.file("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|made| made.success()));
    for ledger in [
        missing.as_path(),
        &pipe,
        Path::new("/dev/zero"),
        Path::new("/"),
    ] {
        let mut setup = Setup::of(vec![stage.modern("a")]);
        setup.config.harness.ledger = Some(Templated::literal(ledger.to_string_lossy()));
        setup.config.harness.budget = Some(NanoUsd::from_nanos(1));
        let client = stage.start(setup);
        for _ in 0..3 {
            client.echo("a", "hi");
        }
        client.end();
    }
    assert!(!missing.exists());
}
