//! What is counted of a peer (R51), and what a violation does to it (R61).

use super::active::Active;
use super::{Counters, Peer, Phase};
use crate::error::{Cause, Error, ErrorKind, Ran};
use crate::metrics::{DownReason, ServerSnapshot};
use crate::operation::{Outcome, Request};
use crate::time::Instant;
use crate::violation::Fault;

impl Peer {
    /// Something happens here now.
    pub(super) fn reach(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    /// Notes a violation: the first one sticks (R61).
    pub(super) fn degrade(&mut self, fault: &Fault) {
        self.metrics.violation(fault.violation);
        self.metrics.went_down(DownReason::Degraded, self.now);
        self.degraded_life = true;
        if self.degraded.is_none() {
            self.degraded = Some(self.redact_fault(fault));
        }
    }

    /// The first violation of this task, if there was one. Neither later success nor another life of the
    /// server clears it (R61).
    #[must_use]
    pub const fn degraded(&self) -> Option<&Fault> {
        self.degraded.as_ref()
    }

    /// Refuses what would use an answer of a degraded peer, where the configuration wants that. What is
    /// there may still be listed.
    pub(super) fn refuse_degraded(&self, request: &Request) -> Result<(), Error> {
        let uses_answer = matches!(
            request,
            Request::CallTool(_)
                | Request::ReadResource { .. }
                | Request::GetPrompt { .. }
                | Request::Complete { .. }
        );
        match &self.degraded {
            Some(fault) if self.config.refuse_degraded && uses_answer => {
                Err(self.error(Cause::Degraded(fault.clone())))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn count_retry(&mut self) {
        self.counters.retries = self.counters.retries.saturating_add(1);
    }

    /// An operation ends. What never reached the server says nothing about it.
    pub(super) fn meter_end(&mut self, active: &Active, outcome: &Outcome) {
        let Some(handed_over) = active.handed_over else {
            return;
        };
        match (&active.request, outcome) {
            (Request::CallTool(_), Outcome::Failed(error))
                if error.ran == Ran::No && error.kind() != ErrorKind::Rpc => {}
            // It goes on with its next round.
            (Request::CallTool(_), Outcome::InputRequired(_)) => {}
            (Request::CallTool(_), outcome) => {
                let latency = self.now.since(handed_over);
                self.metrics.call_ended(outcome, latency);
            }
            (_, Outcome::Failed(error)) => self.meter_failure(error),
            _ => {}
        }
    }

    /// The connection or something else than a call failed, and not because the application wanted it to.
    pub(super) fn meter_failure(&mut self, error: &Error) {
        let counted = matches!(error.cause, Cause::SchemaViolation(_));
        let wanted =
            matches!(error.cause, Cause::Cancelled) || matches!(self.phase, Phase::Closing);
        if !counted && !wanted {
            self.metrics.failed(error.kind());
        }
    }

    /// The peer has settled, and is available or not. A server that broke the protocol in its present life
    /// stays unavailable until its next one (R51).
    pub(super) fn meter_phase(&mut self) {
        let now = self.now;
        match &self.phase {
            Phase::Ready if !self.degraded_life => self.metrics.connected(now),
            Phase::Failed(_) | Phase::Restarting(_) if self.was_ready => {
                self.metrics.went_down(DownReason::Lost, now);
            }
            Phase::Failed(_) | Phase::Restarting(_) => {
                self.metrics.went_down(DownReason::NotConnected, now);
            }
            _ => {}
        }
    }

    /// What was counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            violations: self.metrics.violations(),
            ..self.counters
        }
    }

    /// What was counted and measured (R51).
    #[must_use]
    pub fn metrics(&self) -> ServerSnapshot {
        self.metrics.snapshot(self.name(), &self.counters())
    }
}
