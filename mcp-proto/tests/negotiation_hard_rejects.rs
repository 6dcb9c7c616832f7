//! What must never be taken for proof of an era, and what must never be sent (R17).

#[path = "negotiation_support/mod.rs"]
mod support;

use mcp_proto::ErrorKind;
use mcp_proto::negotiation::{Command, Event, Policy, State};

use support::*;

#[test]
fn r17_no_handshake_after_a_recognised_modern_error() {
    let modern_errors = [
        unsupported(&["2026-07-28"]),
        header_mismatch(),
        missing(r#"{"elicitation":{}}"#),
    ];
    for error in modern_errors {
        for then in [
            Event::DeadlinePassed,
            lost(),
            lost_asking(),
            answered(2, empty()),
            answered(2, rpc_error(-32601, "Method not found")),
            answered(2, rejected()),
            answered(2, discovered(&["2025-11-25"])),
        ] {
            let mut script = Script::probing(allowed());
            let commands = script.commands(answered(1, error.clone()));
            assert_eq!(commands.last(), Some(&probe(2)));
            script.fails(then);
        }
    }
}

#[test]
fn r17_no_handshake_to_a_peer_that_is_not_allow_listed() {
    for (name, event) in ambiguous() {
        let failure = Script::probing(Policy::default()).fails(event);
        assert_eq!(kind(&failure), ErrorKind::LegacyNotAllowed, "{name}");
        assert!(
            failure.remedy.starts_with("set \"allowLegacy\": true"),
            "{name}"
        );
    }
}

/// The event leads to the handshake and to nothing more: a refused one is still the end.
#[track_caller]
fn is_no_proof(event: Event) {
    let mut script = Script::probing(allowed());
    if event == Event::DeadlinePassed {
        script.now = script.negotiation.deadline().unwrap();
    }
    let mut commands = script.commands(event);
    commands.extend(script.commands(Event::LinkUp));
    assert_eq!(commands.pop(), Some(Command::BeginHandshake));
    assert!(commands.is_empty() || commands == [Command::Respawn]);
    assert!(matches!(
        script.negotiation.state(),
        State::Handshaking { .. }
    ));
    assert_eq!(kind(&script.fails(refused())), ErrorKind::Rpc);
}

#[test]
fn r17_a_timeout_is_no_proof_of_an_older_server() {
    is_no_proof(Event::DeadlinePassed);
}

#[test]
fn r17_a_close_is_no_proof_of_an_older_server() {
    is_no_proof(lost());
    is_no_proof(lost_asking());
}

#[test]
fn r17_an_empty_answer_is_no_proof_of_an_older_server() {
    is_no_proof(answered(1, empty()));
}

#[test]
fn r17_an_unrecognised_error_is_no_proof_of_an_older_server() {
    for code in [
        0,
        1,
        -1,
        -32000,
        -32019,
        -32023,
        -32600,
        -32601,
        -32602,
        i64::MIN,
    ] {
        is_no_proof(answered(1, rpc_error(code, "no")));
    }
    is_no_proof(answered(1, rejected()));
}

#[test]
fn r17_a_list_of_older_revisions_is_no_proof_of_an_older_server() {
    is_no_proof(answered(1, discovered(&["2025-11-25", "2024-11-05"])));
}

#[test]
fn r17_a_malformed_answer_is_a_prompt_failure_without_a_handshake() {
    let failure = Script::probing(allowed()).fails(answered(1, malformed()));
    assert_eq!(kind(&failure), ErrorKind::SchemaViolation);
    // In time or late makes no difference.
    let mut script = Script::probing(allowed());
    script.expire(&[Command::BeginHandshake]);
    let failure = script.fails(answered(1, malformed()));
    assert_eq!(kind(&failure), ErrorKind::SchemaViolation);
}

#[test]
fn r17_an_unsupported_revision_is_no_proof_of_an_older_server() {
    for answer in [unsupported(&["2025-11-25"]), discovered(&["2099-01-01"])] {
        let failure = Script::probing(allowed()).fails(answered(1, answer));
        assert_eq!(kind(&failure), ErrorKind::Version);
    }
}
