//! What holds for every sequence of facts whatsoever (R10–R18).

#[path = "negotiation_support/mod.rs"]
mod support;

use mcp_proto::error::Cause;
use mcp_proto::negotiation::{
    Command, EraSetting, Event, Negotiation, Policy, ProbeAnswer, State, Verdict,
};
use mcp_proto::{Duration, Instant};
use proptest::prelude::*;

use support::*;

fn policies() -> impl Strategy<Value = Policy> {
    let era = prop_oneof![
        3 => Just(EraSetting::Auto),
        1 => Just(EraSetting::Modern),
        1 => Just(EraSetting::Legacy),
    ];
    (era, any::<bool>(), any::<bool>(), prop::bool::weighted(0.9)).prop_map(
        |(era, allow_legacy, respawnable, legacy_available)| Policy {
            era,
            allow_legacy,
            legacy_available,
            respawnable,
            declarable: vec!["elicitation".into()],
            ..Policy::default()
        },
    )
}

fn answers() -> impl Strategy<Value = ProbeAnswer> {
    prop_oneof![
        Just(discovered(&["2026-07-28"])),
        Just(discovered(&["2025-11-25"])),
        Just(discovered(&["2099-01-01"])),
        Just(empty()),
        Just(malformed()),
        Just(unsupported(&["2026-07-28"])),
        Just(unsupported(&["2025-11-25"])),
        Just(bad_unsupported()),
        Just(header_mismatch()),
        Just(missing(r#"{"elicitation":{}}"#)),
        Just(missing(r#"{"sampling":{}}"#)),
        Just(rpc_error(-32601, "Method not found")),
        Just(rejected()),
    ]
}

fn facts() -> impl Strategy<Value = Event> {
    let modern = prop_oneof![
        Just(handshake_modern(unsupported(&["2026-07-28"]))),
        Just(handshake_modern(unsupported(&["2025-11-25"]))),
        Just(handshake_modern(header_mismatch())),
    ];
    prop_oneof![
        2 => Just(Event::Started),
        4 => Just(Event::LinkUp),
        6 => (1..6_u32, answers()).prop_map(|(attempt, answer)| answered(attempt, answer)),
        1 => Just(accepted()),
        1 => modern,
        1 => Just(refused()),
        1 => Just(foreign()),
        1 => prop_oneof![Just(lost()), Just(lost_asking())],
        2 => Just(Event::DeadlinePassed),
        1 => Just(unreachable()),
    ]
}

/// What the wishes so far imply, kept by an observer that knows nothing of the machine's states.
#[derive(Default)]
struct Observer {
    probes: u32,
    handshakes: u32,
    respawns: u32,
    ends: u32,
    /// A modern error was the (first) answer to the newest probe.
    modern_proved: bool,
    /// The probe that got no answer yet.
    outstanding: Option<u32>,
    /// The link is up, by our own facts.
    link: bool,
}

impl Observer {
    fn fact(&mut self, event: &Event, state: &State) {
        match event {
            Event::LinkUp if matches!(state, State::Opening { .. }) => self.link = true,
            Event::ProbeAnswered { attempt, answer } if self.outstanding == Some(*attempt) => {
                self.outstanding = None;
                self.modern_proved |= matches!(answer, ProbeAnswer::Modern(_));
            }
            Event::LinkLost { .. } if self.link => self.outstanding = None,
            _ => {}
        }
    }

    fn command(&mut self, command: &Command, policy: &Policy) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.ends, 0, "nothing follows the end: {:?}", command);
        match command {
            Command::SendProbe { attempt, .. } => {
                prop_assert!(self.link);
                prop_assert_ne!(policy.era, EraSetting::Legacy);
                self.probes += 1;
                prop_assert_eq!(*attempt, self.probes, "probes are numbered in order");
                prop_assert!(self.probes <= 4, "each correction once");
                // Only the handshake's proof of a modern server supersedes a silent probe.
                prop_assert!(self.outstanding.is_none() || self.handshakes == 1);
                self.outstanding = Some(*attempt);
            }
            Command::BeginHandshake => {
                prop_assert!(self.link, "not before the (new) link is up");
                prop_assert!(policy.allow_legacy && policy.legacy_available);
                prop_assert_ne!(policy.era, EraSetting::Modern);
                prop_assert!(!self.modern_proved, "never after a modern error");
                self.handshakes += 1;
                prop_assert_eq!(self.handshakes, 1);
            }
            Command::Respawn => {
                prop_assert!(policy.respawnable && policy.allow_legacy);
                self.respawns += 1;
                prop_assert_eq!(self.respawns, 1);
                self.link = false;
            }
            Command::Declare(paths) => prop_assert_eq!(paths, &["elicitation".to_string()]),
            Command::Established(verdict) => {
                self.ends += 1;
                if matches!(verdict, Verdict::Legacy { .. }) {
                    prop_assert_eq!(self.handshakes, 1);
                    prop_assert!(!self.modern_proved);
                }
            }
            Command::Fail(failure) => {
                self.ends += 1;
                let needless = matches!(failure.cause, Cause::LegacyNotAllowed { .. })
                    && policy.era == EraSetting::Auto
                    && policy.allow_legacy
                    && policy.legacy_available;
                prop_assert!(!needless, "allow-listed peers are not refused");
                prop_assert_eq!(failure.to_string().lines().count(), 1);
            }
        }
        Ok(())
    }
}

fn run(policy: &Policy, steps: &[(Event, u64)]) -> Result<Vec<String>, TestCaseError> {
    let mut negotiation = Negotiation::new(policy.clone());
    let mut observer = Observer::default();
    let mut transcript = Vec::new();
    let mut now = Instant::ZERO;
    let finale = (Event::Started, 0);
    // Whatever came before, deadlines alone bring it to its end.
    let deadlines = [(Event::DeadlinePassed, u64::MAX), (Event::LinkUp, 0)];
    let tail = std::iter::once(&finale).chain(deadlines.iter().cycle().take(12));
    for (event, wait_ms) in steps.iter().chain(tail) {
        now = match (wait_ms, negotiation.deadline()) {
            (&u64::MAX, Some(deadline)) => now.max(deadline),
            (&u64::MAX, None) => now,
            (millis, _) => now + Duration::from_millis(*millis),
        };
        let before = negotiation.clone();
        observer.fact(event, before.state());
        negotiation.handle(event.clone(), now);
        let commands: Vec<Command> = std::iter::from_fn(|| negotiation.poll_command()).collect();
        for command in &commands {
            observer.command(command, policy)?;
            transcript.push(format!("{command:?}"));
        }
        let awaiting = !matches!(negotiation.state(), State::Idle) && !negotiation.is_finished();
        prop_assert_eq!(negotiation.deadline().is_some(), awaiting);
        prop_assert_eq!(negotiation.deadline_reason().is_some(), awaiting);
        prop_assert_eq!(negotiation.is_finished(), observer.ends == 1);
        if before.is_finished() {
            prop_assert!(commands.is_empty());
            prop_assert_eq!(before.state(), negotiation.state());
            prop_assert_eq!(before.evidence(), negotiation.evidence());
        }
        // Progress at every deadline: it moves or it goes.
        let due = before.deadline().is_some_and(|deadline| deadline <= now);
        if due && *event == Event::DeadlinePassed {
            prop_assert!(negotiation.deadline() > before.deadline() || observer.ends == 1);
        }
    }
    prop_assert_eq!(observer.ends, 1, "it ends");
    Ok(transcript)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_sequence_of_facts_keeps_the_rules(
        policy in policies(),
        steps in prop::collection::vec((facts(), prop_oneof![0..4_000_u64, Just(u64::MAX)]), 0..24),
    ) {
        let first = run(&policy, &steps)?;
        prop_assert_eq!(first, run(&policy, &steps)?, "and is reproducible");
    }

    /// The same, but past the boring beginning.
    #[test]
    fn every_sequence_after_the_first_probe_keeps_the_rules(
        policy in policies(),
        steps in prop::collection::vec((facts(), prop_oneof![0..4_000_u64, Just(u64::MAX)]), 0..16),
    ) {
        let mut all = vec![(Event::Started, 0), (Event::LinkUp, 0)];
        all.extend(steps);
        run(&policy, &all)?;
    }
}
