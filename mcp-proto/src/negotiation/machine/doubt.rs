//! What to do about answers that prove nothing, or that say what was wrong with the question.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Ambiguity, HANDSHAKE, Negotiation, PROBE, START};
use crate::negotiation::failure::Failure;
use crate::negotiation::state::{Corrections, First, State};
use crate::negotiation::{Command, EraSetting, ModernError};
use crate::version::Version;

impl Negotiation {
    /// Nothing is proved: the handshake where it is allowed, otherwise the end (R14, R15).
    pub(super) fn ambiguous(&mut self, why: Ambiguity) {
        let may_fall_back = self.policy.era == EraSetting::Auto
            && self.policy.allow_legacy
            && !self.policy.proved_modern
            && self.policy.legacy_available;
        if may_fall_back {
            return self.fall_back(&why);
        }
        let evidence = self.log.summary();
        self.fail(match why {
            Ambiguity::Answer => Failure::not_allowed(evidence, &self.policy, false),
            // With `era: "modern"`, or one that was modern before, a silent server is late, not in doubt.
            Ambiguity::Timeout(expired)
                if self.policy.proved_modern || self.policy.era == EraSetting::Modern =>
            {
                Failure::timeout(expired)
            }
            Ambiguity::Timeout(_) => Failure::not_allowed(evidence, &self.policy, true),
            Ambiguity::Closed {
                asks_for_handshake: true,
                ..
            } => Failure::not_allowed(evidence, &self.policy, false),
            // Most servers that exit at once lack a setting and say so; that, and not the era, is
            // what has to change.
            Ambiguity::Closed { description, .. } => {
                Failure::closed_on_probe(&description, &self.policy)
            }
        });
    }

    pub(super) fn fall_back(&mut self, why: &Ambiguity) {
        let unanswered = match why {
            Ambiguity::Closed { .. } if self.policy.respawnable => {
                self.state = State::Opening {
                    first: First::Handshake,
                };
                self.commands.push_back(Command::Respawn);
                return self.wait(START, First::Handshake);
            }
            Ambiguity::Closed { description, .. } => {
                let failure = Failure::closed_on_probe(description, &self.policy);
                return self.fail(failure);
            }
            Ambiguity::Answer => None,
            Ambiguity::Timeout(_) => Some(self.attempts),
        };
        self.state = self.handshake(unanswered);
        self.wait(HANDSHAKE, First::Handshake);
    }

    /// A modern error in answer to a probe: each kind is corrected once (R12, R13).
    pub(super) fn correct(&mut self, error: ModernError, spent: Corrections) {
        match spent.spend(&error) {
            Some(spent) => self.probe_again(error, spent),
            None => self.fail(match error {
                ModernError::UnsupportedVersion {
                    supported: Ok(offered),
                    ..
                } => {
                    let listed = Version::newest_mutual_modern(&offered).is_some();
                    Failure::version(&offered, listed)
                }
                ModernError::UnsupportedVersion {
                    supported: Err(fault),
                    ..
                } => Failure::violation(fault),
                other => Failure::uncorrected(other),
            }),
        }
    }

    /// Sends the probe that `error` calls for, if it can be made.
    pub(super) fn probe_again(&mut self, error: ModernError, spent: Corrections) {
        let current = match self.state {
            State::Probing { version, .. } => version,
            _ => Version::LATEST,
        };
        let version = match error {
            ModernError::HeaderMismatch(_) => current,
            ModernError::MissingCapability {
                required: Ok(required),
                ..
            } if self.can_declare(&required) => {
                self.commands.push_back(Command::Declare(required));
                current
            }
            ModernError::MissingCapability { .. } => {
                return self.fail(Failure::uncorrected(error));
            }
            ModernError::UnsupportedVersion {
                supported: Err(fault),
                ..
            } => return self.fail(Failure::violation(fault)),
            ModernError::UnsupportedVersion {
                supported: Ok(offered),
                ..
            } => match Version::newest_mutual_modern(&offered) {
                Some(version) => version,
                None => return self.fail(Failure::version(&offered, false)),
            },
        };
        self.state = self.probe(version, spent);
        self.wait(PROBE, First::Probe);
    }

    pub(super) fn can_declare(&self, required: &[String]) -> bool {
        let declarable: &Vec<String> = &self.policy.declarable;
        required.iter().all(|path| {
            let top = path.split('.').next().unwrap_or(path);
            declarable.iter().any(|known| known == path || known == top)
        })
    }
}
