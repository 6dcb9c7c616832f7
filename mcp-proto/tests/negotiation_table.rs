//! Every state × every event of the negotiation, in one table (R10–R18).

#[path = "negotiation_support/mod.rs"]
mod support;

use std::fmt::Write as _;

use mcp_proto::negotiation::{EraSetting, Event, Negotiation, Policy, State};
use mcp_proto::{Duration, Instant};

use support::*;

/// The ways into each state, by the facts that lead there.
fn states() -> Vec<(&'static str, Policy, Vec<Event>)> {
    let probing = vec![Event::Started, Event::LinkUp];
    let with = |more: &[Event]| {
        let mut facts = probing.clone();
        facts.extend_from_slice(more);
        facts
    };
    let legacy_only = Policy {
        era: EraSetting::Legacy,
        ..allowed()
    };
    let modern_only = Policy {
        era: EraSetting::Modern,
        ..allowed()
    };
    let fixed_stream = Policy {
        respawnable: false,
        ..allowed()
    };
    vec![
        ("idle", allowed(), vec![]),
        ("starting", allowed(), vec![Event::Started]),
        ("probing", allowed(), probing.clone()),
        (
            "probing, not allow-listed",
            Policy::default(),
            probing.clone(),
        ),
        ("probing, era modern", modern_only, probing.clone()),
        ("probing, fixed stream", fixed_stream, probing.clone()),
        (
            "probing after -32022",
            allowed(),
            with(&[answered(1, unsupported(&["2026-07-28"]))]),
        ),
        ("restarting", allowed(), with(&[lost()])),
        (
            "handshake after an error",
            allowed(),
            with(&[answered(1, rpc_error(-32601, "Method not found"))]),
        ),
        (
            "handshake after a timeout",
            allowed(),
            with(&[Event::DeadlinePassed]),
        ),
        (
            "handshake, era legacy",
            legacy_only,
            vec![Event::Started, Event::LinkUp],
        ),
        (
            "modern",
            allowed(),
            with(&[answered(1, discovered(&["2026-07-28"]))]),
        ),
        (
            "legacy",
            allowed(),
            with(&[
                answered(1, rpc_error(-32601, "Method not found")),
                accepted(),
            ]),
        ),
        ("failed", allowed(), with(&[answered(1, malformed())])),
    ]
}

fn events(attempt: u32) -> Vec<(&'static str, Event)> {
    let probe = |answer| answered(attempt, answer);
    vec![
        ("Started", Event::Started),
        ("LinkUp", Event::LinkUp),
        (
            "discovered 2026-07-28",
            probe(discovered(&["2025-11-25", "2026-07-28"])),
        ),
        (
            "discovered legacy only",
            probe(discovered(&["2025-11-25", "2024-10-07"])),
        ),
        (
            "discovered unknown only",
            probe(discovered(&["2027-03-01"])),
        ),
        ("discovered nothing", probe(discovered(&[]))),
        ("empty", probe(empty())),
        ("malformed", probe(malformed())),
        (
            "-32022 mutual",
            probe(unsupported(&["2025-11-25", "2026-07-28"])),
        ),
        ("-32022 none mutual", probe(unsupported(&["2025-11-25"]))),
        ("-32022 without list", probe(bad_unsupported())),
        ("-32020", probe(header_mismatch())),
        (
            "-32021 declarable",
            probe(missing(r#"{"elicitation":{"url":{}}}"#)),
        ),
        ("-32021 impossible", probe(missing(r#"{"sampling":{}}"#))),
        ("-32601", probe(rpc_error(-32601, "Method not found"))),
        ("HTTP 400", probe(rejected())),
        ("handshake accepted", accepted()),
        (
            "handshake -32022",
            handshake_modern(unsupported(&["2026-07-28"])),
        ),
        ("handshake refused", refused()),
        ("foreign error", foreign()),
        ("link lost", lost()),
        ("link lost, asks", lost_asking()),
        ("deadline", Event::DeadlinePassed),
        ("unreachable", unreachable()),
    ]
}

/// What `event` changes: the new state and the commands, or why it changes nothing.
fn row(before: &Negotiation, event: Event, now: Instant) -> String {
    let mut after = before.clone();
    let at = match (&event, after.deadline()) {
        (Event::DeadlinePassed, Some(deadline)) => deadline,
        _ => now + Duration::from_millis(1),
    };
    after.handle(event, at);
    let commands = drain(&mut after);
    if after.dropped_late() > before.dropped_late() {
        assert!(commands.is_empty());
        return "dropped as late".to_string();
    }
    if after.state() == before.state() {
        assert!(commands.is_empty());
        let noted = after.evidence() != before.evidence();
        return if noted { "noted" } else { "no change" }.to_string();
    }
    // The last command of a finished negotiation says the same in more words.
    let state = if after.is_finished() {
        after
            .state()
            .to_string()
            .split([' ', ':'])
            .next()
            .unwrap()
            .to_string()
    } else {
        after.state().to_string()
    };
    format!("{state} [{}]", commands.join(", "))
}

#[test]
fn every_state_and_every_event() {
    let mut table = String::new();
    let mut probing: Vec<String> = Vec::new();
    for (name, policy, facts) in states() {
        let mut before = Negotiation::new(policy);
        let mut now = Instant::ZERO;
        for fact in facts {
            if fact == Event::DeadlinePassed {
                now = before.deadline().unwrap();
            }
            before.handle(fact, now);
            drain(&mut before);
        }
        let attempt = match before.state() {
            State::Probing { attempt, .. } => *attempt,
            _ => 1,
        };
        let rows: Vec<(&str, String)> = events(attempt)
            .into_iter()
            .map(|(label, event)| (label, row(&before, event, now)))
            .collect();
        let outcomes: Vec<String> = rows.iter().map(|(_, outcome)| outcome.clone()).collect();
        let variant = name.starts_with("probing, ");
        let note = if variant { " (else as probing)" } else { "" };
        writeln!(table, "{name}{note}").unwrap();
        for (at, (label, outcome)) in rows.iter().enumerate() {
            let same = variant && probing[at] == *outcome;
            let quiet = ["no change", "dropped as late"].contains(&outcome.as_str());
            if !same && !quiet {
                writeln!(table, "  {label:<23} → {outcome}").unwrap();
            }
        }
        for quiet in ["dropped as late", "no change"] {
            let labels: Vec<&str> = rows
                .iter()
                .filter(|(_, outcome)| outcome == quiet)
                .map(|(label, _)| *label)
                .collect();
            if !variant && !labels.is_empty() {
                writeln!(table, "  {quiet}: {}", labels.join(" · ")).unwrap();
            }
        }
        if name == "probing" {
            probing = outcomes;
        }
    }
    insta::assert_snapshot!(table);
}
