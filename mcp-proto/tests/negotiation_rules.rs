//! The rules of era negotiation, one by one (R10–R18), as scripts of facts and wishes.

#[path = "negotiation_support/mod.rs"]
mod support;

use mcp_proto::ErrorKind;
use mcp_proto::error::Cause;
use mcp_proto::negotiation::{Command, EraSetting, Event, Policy, ProbeAnswer, State};
use mcp_proto::{Duration, Instant};

use support::*;

#[test]
fn r10_the_first_deadline_covers_spawn_write_and_read() {
    let mut script = Script::new(Policy::default());
    script.give(Event::Started, &[]);
    assert_eq!(
        script.negotiation.deadline_reason(),
        Some("start of the server")
    );
    script.now = Instant::ZERO + Duration::from_secs(6);
    script.give(Event::LinkUp, &[probe(1)]);
    assert_eq!(
        script.negotiation.deadline(),
        Some(Instant::ZERO + Duration::from_secs(10))
    );
    assert_eq!(
        script.negotiation.deadline_reason(),
        Some("answer to server/discover")
    );
    // A slow cold start that answers in time is modern (R18).
    script.now = Instant::ZERO + Duration::from_millis(9_999);
    script.give(Event::DeadlinePassed, &[]);
    script.give(
        answered(1, discovered(&["2026-07-28"])),
        &[Command::Established(MODERN)],
    );
    assert_eq!(script.negotiation.deadline(), None);
}

#[test]
fn r11_the_newest_mutual_modern_revision_is_chosen() {
    for list in [
        &["2026-07-28"][..],
        &["2024-11-05", "2026-07-28", "2099-01-01"],
    ] {
        Script::probing(allowed()).give(
            answered(1, discovered(list)),
            &[Command::Established(MODERN)],
        );
    }
}

#[test]
fn r11_a_list_without_a_known_revision_is_a_version_failure_not_ambiguous() {
    for list in [
        &["2027-03-01"][..],
        &["2027-03-01", "2025-11-25"],
        &["draft"],
        &["1.0"],
        &["2025"],
    ] {
        let failure = Script::probing(allowed()).fails(answered(1, discovered(list)));
        let Cause::Version { offered } = &failure.cause else {
            panic!("{list:?}: {failure}");
        };
        assert_eq!(offered, list);
    }
}

#[test]
fn r12_unsupported_version_is_retried_once_even_at_the_same_revision() {
    let mut script = Script::probing(allowed());
    script.give(answered(1, unsupported(&["2026-07-28"])), &[probe(2)]);
    script.give(
        answered(2, discovered(&["2026-07-28"])),
        &[Command::Established(MODERN)],
    );

    let mut script = Script::probing(allowed());
    script.give(answered(1, unsupported(&["2026-07-28"])), &[probe(2)]);
    let failure = script.fails(answered(2, unsupported(&["2026-07-28"])));
    assert_eq!(kind(&failure), ErrorKind::Version);
    assert!(failure.remedy.contains("refuses a revision that it lists"));
}

#[test]
fn r12_the_supported_list_is_validated() {
    for (data, detail) in [
        (None, "error.data is missing"),
        (Some("[[\"2026-07-28\"]]"), "error.data is not an object"),
        (Some("{}"), "error.data.supported is missing"),
        (
            Some(r#"{"supported":"2026-07-28"}"#),
            "error.data.supported is not a list of strings",
        ),
        (
            Some(r#"{"supported":["2026-07-28",7]}"#),
            "error.data.supported is not a list of strings",
        ),
        (Some(r#"{"supported":[]}"#), "error.data.supported is empty"),
    ] {
        let answer = ProbeAnswer::classify_error(rpc(-32022, "no", data));
        let failure = Script::probing(allowed()).fails(answered(1, answer));
        let Cause::SchemaViolation(fault) = &failure.cause else {
            panic!("{data:?}: {failure}");
        };
        assert_eq!(fault.detail, detail);
    }
}

#[test]
fn r12_none_mutual_is_a_version_failure() {
    let failure =
        Script::probing(allowed()).fails(answered(1, unsupported(&["2025-11-25", "2099-01-01"])));
    assert_eq!(
        failure.to_string(),
        "no protocol revision in common: the server offers 2025-11-25, 2099-01-01; \
         set \"era\": \"legacy\" and \"allowLegacy\": true to use an older revision"
    );
}

#[test]
fn r13_a_header_mismatch_is_retried_once() {
    let mut script = Script::probing(allowed());
    script.give(answered(1, header_mismatch()), &[probe(2)]);
    let failure = script.fails(answered(2, header_mismatch()));
    assert_eq!(kind(&failure), ErrorKind::Rpc);
    assert_eq!(
        failure.to_string(),
        "the server answered with error -32020: Header mismatch; \
         the server, or a proxy before it, changes or refuses the request headers"
    );
}

#[test]
fn r13_a_missing_capability_is_declared_once_if_it_is_implemented() {
    let mut script = Script::probing(Policy {
        declarable: vec!["elicitation.url".into(), "roots".into()],
        ..allowed()
    });
    let both = r#"{"roots":{"listChanged":true},"elicitation":{"url":{}}}"#;
    let declared = vec![
        "elicitation.url".to_string(),
        "roots.listChanged".to_string(),
    ];
    script.give(
        answered(1, missing(both)),
        &[Command::Declare(declared), probe(2)],
    );
    let failure = script.fails(answered(2, missing(both)));
    assert_eq!(kind(&failure), ErrorKind::Rpc);
    assert!(
        failure
            .remedy
            .ends_with("elicitation.url, roots.listChanged")
    );
}

#[test]
fn r13_a_capability_that_is_not_implemented_is_named_in_the_failure() {
    let failure = Script::probing(allowed()).fails(answered(
        1,
        missing(r#"{"elicitation":{},"sampling":{"tools":{}}}"#),
    ));
    let Cause::Rpc(error) = &failure.cause else {
        panic!("{failure}");
    };
    assert_eq!(error.code, -32021);
    assert!(error.data.as_ref().unwrap().as_str().contains("sampling"));
    assert!(failure.remedy.ends_with("elicitation, sampling.tools"));
}

#[test]
fn r13_each_kind_of_correction_is_made_once_and_then_it_ends() {
    let mut script = Script::probing(allowed());
    script.give(answered(1, header_mismatch()), &[probe(2)]);
    script.give(answered(2, unsupported(&["2026-07-28"])), &[probe(3)]);
    script.give(
        answered(3, missing(r#"{"elicitation":{}}"#)),
        &[Command::Declare(vec!["elicitation".into()]), probe(4)],
    );
    assert_eq!(
        kind(&script.fails(answered(4, header_mismatch()))),
        ErrorKind::Rpc
    );
}

#[test]
fn r14_everything_ambiguous_leads_to_one_handshake_where_that_is_allowed() {
    for (name, event) in ambiguous() {
        let mut script = Script::probing(allowed());
        if name == "timeout" {
            script.expire(&[Command::BeginHandshake]);
        } else if name == "close" {
            script.give(event, &[Command::Respawn]);
            script.give(Event::LinkUp, &[Command::BeginHandshake]);
        } else {
            script.give(event, &[Command::BeginHandshake]);
        }
        script.give(accepted(), &[Command::Established(LEGACY)]);
    }
}

#[test]
fn r14_a_foreign_error_decides_nothing_until_the_deadline_or_the_close() {
    let mut script = Script::probing(allowed());
    script.give(foreign(), &[]).give(foreign(), &[]);
    script.expire(&[Command::BeginHandshake]);

    let mut script = Script::probing(Policy::default());
    script.give(foreign(), &[]).give(foreign(), &[]);
    let failure = script.fails(Event::DeadlinePassed);
    assert_eq!(
        failure.to_string(),
        "not proved to be a modern server (uncorrelated: error -32000: Server not initialized \
         (2 times); probe 1: nothing within 10000 ms) and not allow-listed for older revisions; \
         set \"allowLegacy\": true if this is an older server; \
         if it only starts slowly, raise \"probeTimeoutMs\" (10000 ms)"
    );

    let mut script = Script::probing(allowed());
    script
        .give(foreign(), &[])
        .give(lost(), &[Command::Respawn]);
}

#[test]
fn r14_what_says_nothing_about_an_era_ends_with_its_own_cause() {
    let cause = Cause::Rpc(rpc(401, "HTTP 401", None));
    for facts in [0, 1, 2] {
        let mut script = Script::new(allowed());
        for event in [Event::Started, Event::LinkUp].into_iter().take(facts) {
            script.commands(event);
        }
        let failure = script.fails(Event::Unreachable(cause.clone()));
        assert_eq!(failure.cause, cause);
    }
}

#[test]
fn r14_a_server_that_exits_at_once_is_reported_as_closed_with_its_last_words() {
    let failure = Script::probing(Policy::default()).fails(lost());
    assert_eq!(kind(&failure), ErrorKind::Closed);
    assert_eq!(
        failure.to_string(),
        "the server closed the connection during server/discover: exit status 1; \
         stderr: Error: API_KEY is required; \
         correct what makes the server end (run its command by hand to see more); \
         or, if it closes on every probe, set \"allowLegacy\": true if this is an older server"
    );

    // Allow-listed: one more life, and no restart loop.
    let mut script = Script::probing(allowed());
    script.give(lost(), &[Command::Respawn]);
    script.give(Event::LinkUp, &[Command::BeginHandshake]);
    let failure = script.fails(lost());
    assert_eq!(kind(&failure), ErrorKind::Closed);
    assert_eq!(
        failure.to_string(),
        "the server closed the connection during the handshake: exit status 1; \
         stderr: Error: API_KEY is required; correct what makes the server end (run its command by hand to see more)"
    );
}

#[test]
fn r14_a_server_that_dies_asking_for_a_handshake_is_refused_as_not_allow_listed() {
    let failure = Script::probing(Policy::default()).fails(lost_asking());
    assert_eq!(kind(&failure), ErrorKind::LegacyNotAllowed);
    assert_eq!(
        failure.to_string(),
        "not proved to be a modern server (link: exit status 1; \
         stderr: Error: expected a handshake) and not allow-listed for older revisions; \
         set \"allowLegacy\": true if this is an older server"
    );
}

#[test]
fn r14_a_refused_handshake_is_the_end() {
    let mut script = Script::probing(allowed());
    script.give(
        answered(1, rpc_error(-32601, "Method not found")),
        &[Command::BeginHandshake],
    );
    assert_eq!(kind(&script.fails(refused())), ErrorKind::Rpc);
}

#[test]
fn r14_a_silent_handshake_names_the_deadline_and_how_to_raise_it() {
    let mut script = Script::probing(allowed());
    script.expire(&[Command::BeginHandshake]);
    let failure = script.fails(Event::DeadlinePassed);
    assert_eq!(script.now, Instant::ZERO + Duration::from_secs(20));
    assert_eq!(
        failure.to_string(),
        "no answer to the handshake within 10000 ms; \
         raise \"probeTimeoutMs\" (10000 ms) if the server starts slowly"
    );
}

#[test]
fn r15_a_closed_stream_that_cannot_be_reopened_is_not_respawned() {
    let policy = Policy {
        respawnable: false,
        ..allowed()
    };
    assert_eq!(
        kind(&Script::probing(policy).fails(lost_asking())),
        ErrorKind::Closed
    );
}

#[test]
fn r15_a_late_discover_answer_wins_over_the_handshake() {
    let mut script = Script::probing(allowed());
    script.expire(&[Command::BeginHandshake]);
    script.give(
        answered(1, discovered(&["2026-07-28"])),
        &[Command::Established(MODERN)],
    );
    // Whatever the handshake still brings is dropped: it is not completed.
    script.give(handshake_modern(unsupported(&["2026-07-28"])), &[]);
    script.give(accepted(), &[]);
    assert_eq!(script.negotiation.dropped_late(), 2);
    assert_eq!(*script.negotiation.state(), State::Established(MODERN));
}

#[test]
fn r15_a_modern_error_in_answer_to_the_handshake_leads_to_one_more_probe() {
    let modern_errors = [unsupported(&["2026-07-28"]), header_mismatch()];
    for error in modern_errors {
        let mut script = Script::probing(allowed());
        script.expire(&[Command::BeginHandshake]);
        script.give(handshake_modern(error.clone()), &[probe(2)]);
        // The first probe is superseded now.
        script.give(answered(1, rpc_error(-32601, "late")), &[]);
        assert_eq!(script.negotiation.dropped_late(), 1);
        script.give(
            answered(2, discovered(&["2026-07-28"])),
            &[Command::Established(MODERN)],
        );

        // And no third one.
        let mut script = Script::probing(allowed());
        script.expire(&[Command::BeginHandshake]);
        script.give(handshake_modern(error.clone()), &[probe(2)]);
        script.fails(answered(2, error));
    }
}

#[test]
fn r15_a_late_modern_error_leads_to_one_more_probe() {
    let mut script = Script::probing(allowed());
    script.expire(&[Command::BeginHandshake]);
    script.give(answered(1, unsupported(&["2026-07-28"])), &[probe(2)]);
    script.give(accepted(), &[]);
    let failure = script.fails(Event::DeadlinePassed);
    assert_eq!(kind(&failure), ErrorKind::Timeout);
}

#[test]
fn r15_late_answers_that_prove_nothing_do_not_disturb_the_handshake() {
    for late in [
        empty(),
        rpc_error(-32601, "Method not found"),
        discovered(&["2025-11-25"]),
    ] {
        let mut script = Script::probing(allowed());
        script.expire(&[Command::BeginHandshake]);
        let deadline = script.negotiation.deadline();
        script.give(answered(1, late), &[]);
        assert_eq!(script.negotiation.dropped_late(), 1);
        assert_eq!(script.negotiation.deadline(), deadline);
        script.give(accepted(), &[Command::Established(LEGACY)]);
        script.give(answered(1, discovered(&["2026-07-28"])), &[]);
        assert_eq!(script.negotiation.dropped_late(), 2);
        assert_eq!(*script.negotiation.state(), State::Established(LEGACY));
    }
}

#[test]
fn r18_era_modern_never_falls_back_even_when_allow_listed() {
    for (name, event) in ambiguous() {
        let failure = Script::probing(Policy {
            era: EraSetting::Modern,
            ..allowed()
        })
        .fails(event);
        let expected = match name {
            "timeout" => ErrorKind::Timeout,
            _ => ErrorKind::LegacyNotAllowed,
        };
        assert_eq!(kind(&failure), expected, "{name}");
    }
}

#[test]
fn r18_era_legacy_goes_straight_to_the_handshake() {
    let policy = Policy {
        era: EraSetting::Legacy,
        ..allowed()
    };
    let mut script = Script::new(policy);
    script.give(Event::Started, &[]);
    script.give(Event::LinkUp, &[Command::BeginHandshake]);
    script.give(accepted(), &[Command::Established(LEGACY)]);
}

#[test]
fn r18_era_legacy_needs_the_allow_list_before_anything_is_spawned() {
    for (policy, text) in [
        (
            Policy {
                era: EraSetting::Legacy,
                ..Policy::default()
            },
            "era \"legacy\" needs allowLegacy: true; set it, or set \"era\": \"auto\" or \"modern\"",
        ),
        (
            Policy {
                era: EraSetting::Legacy,
                legacy_available: false,
                ..allowed()
            },
            "era \"legacy\" needs an older revision; list one in legacyVersions",
        ),
    ] {
        let failure = Script::new(policy).fails(Event::Started);
        assert_eq!(kind(&failure), ErrorKind::Config);
        assert_eq!(failure.to_string(), text);
    }
}

#[test]
fn a_servers_words_are_bounded_and_printable_in_the_evidence() {
    let mut script = Script::probing(allowed());
    let words = format!("\u{1b}[2J\n{}", "x".repeat(1 << 20));
    script.commands(answered(1, rpc_error(-1, &words)));
    for _ in 0..100 {
        script.give(foreign(), &[]);
        script.commands(Event::ForeignError(rpc(-1, "other", None)));
    }
    let evidence = script.negotiation.evidence();
    assert_eq!(evidence.len(), 32);
    for line in evidence {
        let line = line.to_string();
        assert!(line.chars().count() < 400);
        assert!(!line.chars().any(char::is_control), "{line}");
    }
}

#[test]
fn r15_a_second_answer_to_one_probe_is_dropped_whatever_it_says() {
    let mut script = Script::probing(allowed());
    script.expire(&[Command::BeginHandshake]);
    script.give(answered(1, rpc_error(-32601, "Method not found")), &[]);
    script.give(answered(1, discovered(&["2026-07-28"])), &[]);
    script.give(answered(1, malformed()), &[]);
    assert_eq!(script.negotiation.dropped_late(), 3);
    script.give(accepted(), &[Command::Established(LEGACY)]);
}

#[test]
fn a_clock_that_goes_backwards_stands_still() {
    let mut script = Script::new(allowed());
    script.now = Instant::ZERO + Duration::from_secs(100);
    script.give(Event::Started, &[]);
    script.give(Event::LinkUp, &[probe(1)]);
    script.now = Instant::ZERO;
    script.give(
        answered(1, rpc_error(-32601, "Method not found")),
        &[Command::BeginHandshake],
    );
    assert_eq!(
        script.negotiation.deadline(),
        Some(Instant::ZERO + Duration::from_secs(110))
    );
}

/// R14, R90: a server that proved to be modern is never sent a handshake in a later life, whatever is allowed; and
/// nobody is told to allow what is allowed already.
#[test]
fn r14_a_server_that_was_modern_is_no_older_one() {
    let policy = Policy {
        proved_modern: true,
        ..allowed()
    };
    let answer = ProbeAnswer::classify_error(rpc(-32601, "no such method", None));
    let failure = Script::probing(policy).fails(answered(1, answer));
    assert_eq!(kind(&failure), ErrorKind::Unavailable);
    assert!(
        failure.to_string().contains("a modern server before"),
        "{failure}"
    );
    assert!(!failure.to_string().contains("allow"), "{failure}");
}
