//! What a server does to the calls it gets, in numbers (R51).
//!
//! [`ServerMetrics`] is told what happens, by whoever runs a peer: calls that ended, violations, the comings
//! and goings of the connection. What a peer counts anyway
//! ([`Counters`]) is not counted again: the two meet in a [`ServerSnapshot`]. All servers together are a
//! [`MetricsSnapshot`], which serde and Prometheus can have.

mod availability;
mod histogram;
mod prometheus;
mod snapshot;

pub use availability::{Availability, DownReason};
pub use histogram::LatencyHistogram;
pub use snapshot::{ErrorCount, LatencySummary, MetricsSnapshot, ServerSnapshot, ViolationCount};

use alloc::collections::BTreeMap;

use crate::error::{Cause, ErrorKind};
use crate::operation::Outcome;
use crate::peer::Counters;
use crate::time::{Duration, Instant};
use crate::violation::Violation;

/// The word for an answer with `isError`, among the words for errors.
const TOOL_ERROR: &str = "toolError";

/// What is counted of one server. Its size is bounded: under 10 KiB, whatever happens.
///
/// A violation or failure of any kind counts as an error, and counts once: a violation when it is
/// [seen](ServerMetrics::violation), whether or not a call fails of it; any other failure when its call
/// [ends](ServerMetrics::call_ended).
///
/// ```
/// use mcp_proto::metrics::{MetricsSnapshot, ServerMetrics};
/// use mcp_proto::operation::Reply;
/// use mcp_proto::peer::Counters;
/// use mcp_proto::{Duration, Instant, Outcome};
///
/// let mut metrics = ServerMetrics::default();
/// metrics.connected(Instant::from_nanos(5));
/// metrics.call_ended(&Outcome::Complete(Reply::Settled), Duration::from_millis(20));
/// let snapshot = MetricsSnapshot::new([metrics.snapshot("git", &Counters::default())]);
/// assert_eq!(snapshot.servers[0].calls, 1);
/// assert!(snapshot.to_prometheus().contains("mcp_client_calls_total{server=\"git\"} 1\n"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ServerMetrics {
    calls: u64,
    errors: BTreeMap<&'static str, u64>,
    violations: BTreeMap<Violation, u64>,
    latency: LatencyHistogram,
    availability: Availability,
    availability_changes: u64,
}

impl ServerMetrics {
    /// A call of a tool ended, so long after it was handed to the server. One that was never sent is no
    /// call of this server and is not to be reported.
    pub fn call_ended(&mut self, outcome: &Outcome, latency: Duration) {
        bump(&mut self.calls, 1);
        self.latency.record(latency);
        if let Some(kind) = error_kind(outcome) {
            bump(self.errors.entry(kind).or_default(), 1);
        }
    }

    /// Something else than a call failed: the connection, a listing.
    pub fn failed(&mut self, kind: ErrorKind) {
        bump(self.errors.entry(kind.as_str()).or_default(), 1);
    }

    /// The server broke the protocol.
    pub fn violation(&mut self, violation: Violation) {
        bump(self.violations.entry(violation).or_default(), 1);
    }

    /// How often the server broke the protocol.
    #[must_use]
    pub fn violations(&self) -> u64 {
        self.violations
            .values()
            .copied()
            .fold(0, u64::saturating_add)
    }

    /// The server is connected, for the first time or again: it is available, until something else is
    /// said. That it was degraded earlier in the task is another matter (R61) and not undone by this.
    pub fn connected(&mut self, now: Instant) {
        self.turn(self.availability.connected(now));
    }

    /// The server is degraded, lost, or could not be connected: it is not available. The first reason
    /// and moment stay until it is connected again.
    pub fn went_down(&mut self, reason: DownReason, now: Instant) {
        self.turn(self.availability.went_down(reason, now));
    }

    /// Whether the server is available, and since when.
    #[must_use]
    pub const fn availability(&self) -> Availability {
        self.availability
    }

    /// All of it, with what the peer of this name counted itself.
    #[must_use]
    pub fn snapshot(&self, server: &str, counters: &Counters) -> ServerSnapshot {
        ServerSnapshot::of(self, server, counters)
    }

    fn turn(&mut self, next: Availability) {
        if next != self.availability {
            self.availability = next;
            bump(&mut self.availability_changes, 1);
        }
    }
}

/// The kind of error that a call ended with, unless the violation behind it was counted already.
fn error_kind(outcome: &Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Complete(reply) if reply.is_tool_error() => Some(TOOL_ERROR),
        Outcome::Complete(_) | Outcome::InputRequired(_) => None,
        Outcome::Failed(error) => match error.cause {
            Cause::SchemaViolation(_) => None,
            _ => Some(error.kind().as_str()),
        },
    }
}

fn bump(counter: &mut u64, by: u64) {
    *counter = counter.saturating_add(by);
}

#[cfg(test)]
mod tests;
