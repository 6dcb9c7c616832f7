//! The state machine.

mod doubt;

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};

use super::failure::{Expired, Failure};
use super::observation::{Log, Observation, Subject};
use super::state::{Corrections, First, State};
use super::{
    Command, EraSetting, Event, HandshakeAnswer, PROBE_SETTING, Policy, ProbeAnswer, Verdict,
};
use crate::error::Cause;
use crate::time::Instant;
use crate::version::Version;
use crate::violation::{Fault, Violation};

const START: &str = "start of the server";
const PROBE: &str = "answer to server/discover";
const HANDSHAKE: &str = "answer to the handshake";

/// Finds out which era one process or endpoint speaks.
///
/// ```
/// use mcp_proto::negotiation::{Command, Event, Negotiation, Policy, ProbeAnswer, Verdict};
/// use mcp_proto::{Instant, Version};
///
/// let mut negotiation = Negotiation::new(Policy::default());
/// negotiation.handle(Event::Started, Instant::ZERO);
/// negotiation.handle(Event::LinkUp, Instant::ZERO);
/// let version = Version::LATEST;
/// assert_eq!(negotiation.poll_command(), Some(Command::SendProbe { attempt: 1, version }));
///
/// let answer = ProbeAnswer::Discovered { supported_versions: vec!["2026-07-28".into()] };
/// negotiation.handle(Event::ProbeAnswered { attempt: 1, answer }, Instant::ZERO);
/// let verdict = Verdict::Modern { version };
/// assert_eq!(negotiation.poll_command(), Some(Command::Established(verdict)));
/// ```
#[derive(Clone, Debug)]
pub struct Negotiation {
    policy: Policy,
    state: State,
    deadline: Option<Deadline>,
    commands: VecDeque<Command>,
    /// The number of the newest probe.
    attempts: u32,
    log: Log,
    dropped_late: u64,
    /// Whether [`Command::BeginHandshake`] was given; it is given once.
    handshake_begun: bool,
    now: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Deadline {
    at: Instant,
    expired: Expired,
}

/// Why nothing is proved.
enum Ambiguity {
    /// An answer that older servers give as well.
    Answer,
    /// No answer in time.
    Timeout(Expired),
    /// The link ended.
    Closed {
        description: String,
        asks_for_handshake: bool,
    },
}

impl Negotiation {
    /// A negotiation that waits for [`Event::Started`].
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            state: State::Idle,
            deadline: None,
            commands: VecDeque::new(),
            attempts: 0,
            log: Log::default(),
            dropped_late: 0,
            handshake_begun: false,
            now: Instant::ZERO,
        }
    }

    /// Takes in a fact. Facts that mean nothing in the present state are no-ops, and after
    /// [`Command::Established`] or [`Command::Fail`] all of them are. A `now` before an earlier one
    /// counts as that one.
    ///
    /// Afterwards, drain [`Negotiation::poll_command`] and ask [`Negotiation::deadline`] again.
    pub fn handle(&mut self, event: Event, now: Instant) {
        self.now = self.now.max(now);
        match event {
            Event::Started => self.on_started(),
            Event::LinkUp => self.on_link_up(),
            Event::ProbeAnswered { attempt, answer } => self.on_probe_answer(attempt, answer),
            Event::HandshakeAnswered(answer) => self.on_handshake_answer(answer),
            Event::ForeignError(error) => {
                if matches!(
                    self.state,
                    State::Probing { .. } | State::Handshaking { .. }
                ) {
                    let finding = ProbeAnswer::Error(error).to_string();
                    self.log.add(Subject::Stray, &finding);
                }
            }
            Event::LinkLost {
                description,
                asks_for_handshake,
            } => self.on_link_lost(description, asks_for_handshake),
            Event::DeadlinePassed => self.on_deadline(),
            Event::Unreachable(cause) => {
                if !self.is_finished() {
                    self.log.add(Subject::Link, &cause.to_string());
                    self.fail(Failure::plain(cause));
                }
            }
        }
    }

    /// The next wish, in order. Changes only in [`Negotiation::handle`]; there are never more than a
    /// few.
    pub fn poll_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// When to report [`Event::DeadlinePassed`]. `None` exactly before the start and after the end.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline.map(|deadline| deadline.at)
    }

    /// What is awaited until the deadline, for people.
    #[must_use]
    pub fn deadline_reason(&self) -> Option<&'static str> {
        self.deadline.map(|deadline| deadline.expired.awaited)
    }

    /// How far it is.
    #[must_use]
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// Whether the era is known or the peer has failed.
    #[must_use]
    pub const fn is_finished(&self) -> bool {
        matches!(self.state, State::Established(_) | State::Failed(_))
    }

    /// What was seen, in order: bounded, and the same for the same exchange.
    #[must_use]
    pub fn evidence(&self) -> &[Observation] {
        self.log.as_slice()
    }

    /// How many answers came too late to matter, and were dropped.
    #[must_use]
    pub const fn dropped_late(&self) -> u64 {
        self.dropped_late
    }

    fn on_started(&mut self) {
        if self.state != State::Idle {
            return;
        }
        let first = match self.policy.era {
            EraSetting::Auto | EraSetting::Modern => First::Probe,
            EraSetting::Legacy if self.policy.allow_legacy && self.policy.legacy_available => {
                First::Handshake
            }
            EraSetting::Legacy => return self.fail(Failure::legacy_setting(&self.policy)),
        };
        self.state = State::Opening { first };
        self.wait(START, first);
    }

    fn on_link_up(&mut self) {
        let State::Opening { first } = self.state else {
            return;
        };
        // The deadline that covers opening the link goes on: it is the one for the first answer.
        match first {
            First::Probe => {
                self.state = self.probe(Version::LATEST, Corrections::default());
                self.await_now(PROBE);
            }
            First::Handshake => {
                self.state = self.handshake(None);
                self.await_now(HANDSHAKE);
            }
        }
    }

    fn on_probe_answer(&mut self, attempt: u32, answer: ProbeAnswer) {
        match self.state {
            State::Probing {
                attempt: current,
                spent,
                ..
            } if current == attempt => {
                self.log.add(Subject::Probe(attempt), &answer.to_string());
                self.judge(answer, spent);
            }
            State::Handshaking {
                unanswered: Some(late),
            } if late == attempt => {
                self.log
                    .add(Subject::Probe(attempt), &format!("late: {answer}"));
                self.state = State::Handshaking { unanswered: None };
                self.judge_late(answer);
            }
            // The answer to a superseded probe, or a second one.
            _ if (1..=self.attempts).contains(&attempt) => self.drop_late(),
            _ => {}
        }
    }

    /// The answer that was awaited (R11–R14).
    fn judge(&mut self, answer: ProbeAnswer, spent: Corrections) {
        match answer {
            ProbeAnswer::Discovered { supported_versions } => {
                if let Some(version) = Version::newest_mutual_modern(&supported_versions) {
                    self.establish(Verdict::Modern { version });
                } else if supported_versions.is_empty() {
                    self.fail(Failure::violation(no_versions()));
                } else if !spent.any() && supported_versions.iter().all(|text| is_older(text)) {
                    self.ambiguous(Ambiguity::Answer);
                } else {
                    self.fail(Failure::version(&supported_versions, false));
                }
            }
            ProbeAnswer::Modern(error) => self.correct(error, spent),
            ProbeAnswer::Malformed(fault) => self.fail(Failure::violation(fault)),
            // Already proved modern: these are failures of a modern server now.
            ProbeAnswer::Error(error) if spent.any() => {
                self.fail(Failure::plain(Cause::Rpc(error)));
            }
            ProbeAnswer::Empty | ProbeAnswer::Rejected(_) if spent.any() => {
                let detail = answer.to_string();
                self.fail(Failure::violation(Fault::new(
                    Violation::MalformedResult,
                    detail,
                )));
            }
            ProbeAnswer::Empty | ProbeAnswer::Error(_) | ProbeAnswer::Rejected(_) => {
                self.ambiguous(Ambiguity::Answer);
            }
        }
    }

    /// An answer to the probe while the handshake is under way: modern wins, everything that proves
    /// nothing changes nothing, and what would have been a hard failure in time is one now (R15).
    fn judge_late(&mut self, answer: ProbeAnswer) {
        match answer {
            ProbeAnswer::Discovered { supported_versions } => {
                if let Some(version) = Version::newest_mutual_modern(&supported_versions) {
                    self.establish(Verdict::Modern { version });
                } else if supported_versions.is_empty() {
                    self.fail(Failure::violation(no_versions()));
                } else if supported_versions.iter().all(|text| is_older(text)) {
                    self.drop_late();
                } else {
                    self.fail(Failure::version(&supported_versions, false));
                }
            }
            ProbeAnswer::Modern(error) => self.probe_again(error, Corrections::ALL),
            ProbeAnswer::Malformed(fault) => self.fail(Failure::violation(fault)),
            ProbeAnswer::Empty | ProbeAnswer::Error(_) | ProbeAnswer::Rejected(_) => {
                self.drop_late();
            }
        }
    }

    fn on_handshake_answer(&mut self, answer: HandshakeAnswer) {
        if !matches!(self.state, State::Handshaking { .. }) {
            // Modern has won meanwhile.
            if self.handshake_begun {
                self.drop_late();
            }
            return;
        }
        self.log.add(Subject::Handshake, &answer.to_string());
        match answer {
            HandshakeAnswer::Accepted { version } => self.establish(Verdict::Legacy { version }),
            HandshakeAnswer::Modern(error) if self.policy.era == EraSetting::Legacy => {
                self.fail(Failure::modern_despite_setting(error));
            }
            HandshakeAnswer::Modern(error) => self.probe_again(error, Corrections::ALL),
            HandshakeAnswer::Refused(cause) => self.fail(Failure::refused(cause)),
        }
    }

    fn on_link_lost(&mut self, description: String, asks_for_handshake: bool) {
        let during = match self.state {
            State::Idle | State::Established(_) | State::Failed(_) => return,
            State::Opening { .. } => "its start",
            State::Probing { spent, .. } => {
                self.log.add(Subject::Link, &description);
                if !spent.any() {
                    self.ambiguous(Ambiguity::Closed {
                        description,
                        asks_for_handshake,
                    });
                    return;
                }
                "server/discover"
            }
            State::Handshaking { .. } => "the handshake",
        };
        self.log.add(Subject::Link, &description);
        self.fail(Failure::closed(during, &description));
    }

    fn on_deadline(&mut self) {
        let Some(deadline) = self.deadline else {
            return;
        };
        if deadline.at > self.now {
            return;
        }
        let expired = deadline.expired;
        let finding = format!("nothing within {} ms", expired.limit.as_millis());
        match self.state {
            State::Opening { .. } => {
                self.log.add(Subject::Link, &finding);
                self.fail(Failure::timeout(expired));
            }
            State::Probing { attempt, spent, .. } => {
                self.log.add(Subject::Probe(attempt), &finding);
                if spent.any() {
                    self.fail(Failure::timeout(expired));
                } else {
                    self.ambiguous(Ambiguity::Timeout(expired));
                }
            }
            State::Handshaking { .. } => {
                self.log.add(Subject::Handshake, &finding);
                self.fail(Failure::timeout(expired));
            }
            State::Idle | State::Established(_) | State::Failed(_) => {}
        }
    }

    fn probe(&mut self, version: Version, spent: Corrections) -> State {
        self.attempts = self.attempts.saturating_add(1);
        let attempt = self.attempts;
        self.commands
            .push_back(Command::SendProbe { attempt, version });
        State::Probing {
            attempt,
            version,
            spent,
        }
    }

    fn handshake(&mut self, unanswered: Option<u32>) -> State {
        self.handshake_begun = true;
        self.commands.push_back(Command::BeginHandshake);
        State::Handshaking { unanswered }
    }

    fn establish(&mut self, verdict: Verdict) {
        self.state = State::Established(verdict);
        self.deadline = None;
        self.commands.push_back(Command::Established(verdict));
    }

    fn fail(&mut self, failure: Failure) {
        self.state = State::Failed(failure.clone());
        self.deadline = None;
        self.commands.push_back(Command::Fail(failure));
    }

    const fn drop_late(&mut self) {
        self.dropped_late = self.dropped_late.saturating_add(1);
    }

    /// Begins the deadline of a probe or of a handshake.
    fn wait(&mut self, awaited: &'static str, of: First) {
        let (limit, setting) = match of {
            First::Probe => (self.policy.probe_timeout, PROBE_SETTING),
            First::Handshake => (self.policy.handshake_timeout, self.policy.handshake_setting),
        };
        self.deadline = Some(Deadline {
            at: self.now + limit,
            expired: Expired {
                awaited,
                limit,
                setting,
            },
        });
    }

    /// The running deadline now stands for something else.
    const fn await_now(&mut self, awaited: &'static str) {
        if let Some(deadline) = &mut self.deadline {
            deadline.expired.awaited = awaited;
        }
    }
}

/// Whether the text is the date of a revision before the first modern one. A revision that is newer
/// than this client, or no date at all, is no sign of an older server.
fn is_older(text: &str) -> bool {
    let is_date = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    is_date && text < Version::V2026_07_28.as_str()
}

fn no_versions() -> Fault {
    Fault::new(Violation::MalformedResult, "supportedVersions is empty")
}
