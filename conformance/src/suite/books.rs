//! The ledger's file: costs that outlive the client (R50).

use std::fs;

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

/// R50: a ledger failure changes no outcome.
pub(super) fn a_ledger_that_cannot_be_written_fails_no_call(stage: &Stage<'_>) {
    let mut setup = Setup::of(vec![stage.modern("a")]);
    let directory = stage.file("no/such/directory/spend.jsonl");
    setup.config.harness.ledger = Some(Templated::literal(directory.to_string_lossy()));
    setup.config.harness.budget = Some(NanoUsd::from_nanos(1));
    let client = stage.start(setup);
    for _ in 0..3 {
        client.echo("a", "hi");
    }
    client.end();
    assert!(!directory.exists());
}
