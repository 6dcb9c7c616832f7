//! The numbers of all servers at one moment.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Serialize, Serializer};

use super::{Availability, DownReason, LatencyHistogram, ServerMetrics};
use crate::error::ErrorKind;
use crate::peer::Counters;
use crate::time::Duration;
use crate::violation::Violation;

/// All servers, sorted by name. The same facts give the same snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MetricsSnapshot {
    /// One for each server.
    pub servers: Vec<ServerSnapshot>,
}

/// One server. Counts are since the client began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ServerSnapshot {
    /// Its configured name.
    pub server: String,
    /// Calls of tools that were handed to it and have ended.
    pub calls: u64,
    /// Everything that went wrong: all of `errors_by_kind`.
    pub errors: u64,
    /// What went wrong, by kind, sorted: the words of [`ErrorKind`], `schemaViolation`
    /// being all violations, and `toolError` for answers with `isError`. Kinds that did not occur are
    /// left out.
    pub errors_by_kind: Vec<ErrorCount>,
    /// What it did wrong, by kind, in the order of [`Violation`].
    pub violations: Vec<ViolationCount>,
    /// How long calls took.
    pub latency: LatencySummary,
    /// Whether it is available; `None` before that is known.
    pub available: Option<bool>,
    /// Since when, in nanoseconds since the driver's epoch.
    pub available_since_nanos: Option<u64>,
    /// Why it is not available.
    pub down_reason: Option<DownReason>,
    /// How often it became available or ceased to be.
    pub availability_changes: u64,
    /// Requests that were sent again.
    pub retries: u64,
    /// Attempts of streamed calls that were dropped before the text was complete.
    pub stream_drops: u64,
    /// Messages of the server that were dropped, by [`Counters`]: late and unknown answers,
    /// notifications and requests that concern nobody.
    pub drops: u64,
    /// Of these: answers that came late.
    pub late_answers: u64,
    /// Of these: answers to nothing.
    pub unknown_answers: u64,
    /// Of these: notifications.
    pub dropped_notifications: u64,
    /// Of these: requests.
    pub dropped_requests: u64,
    /// Lines on standard output that were no message.
    pub noise_lines: u64,
    /// Processes started or streams taken.
    pub starts: u64,
    /// Bytes read from it.
    pub bytes_received: u64,
    /// Bytes written to it.
    pub bytes_sent: u64,
}

/// How often one kind of error occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ErrorCount {
    /// The kind in one word.
    pub kind: &'static str,
    /// How often.
    pub count: u64,
}

/// How often one kind of violation occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ViolationCount {
    /// Which, by its name.
    #[serde(serialize_with = "as_name")]
    pub violation: Violation,
    /// How often.
    pub count: u64,
}

/// How long calls took, in microseconds; see [`LatencyHistogram`] for how exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LatencySummary {
    /// How many.
    pub count: u64,
    /// All of them together.
    pub sum_micros: u64,
    /// Half of them took no longer.
    pub p50_micros: u64,
    /// 95 % took no longer.
    pub p95_micros: u64,
    /// 99 % took no longer.
    pub p99_micros: u64,
    /// The longest.
    pub max_micros: u64,
}

impl MetricsSnapshot {
    /// The snapshots of servers in any order.
    #[must_use]
    pub fn new(servers: impl IntoIterator<Item = ServerSnapshot>) -> Self {
        let mut servers: Vec<_> = servers.into_iter().collect();
        servers.sort_by(|one, other| one.server.cmp(&other.server));
        Self { servers }
    }
}

impl ServerSnapshot {
    pub(super) fn of(metrics: &ServerMetrics, server: &str, counters: &Counters) -> Self {
        let violations: Vec<_> = metrics
            .violations
            .iter()
            .map(|(&violation, &count)| ViolationCount { violation, count })
            .collect();
        let errors_by_kind = errors(metrics, &violations);
        let (available, since, down_reason) = match metrics.availability {
            Availability::Unknown => (None, None, None),
            Availability::Up { since } => (Some(true), Some(since), None),
            Availability::Down { since, reason } => (Some(false), Some(since), Some(reason)),
        };
        let drops = [
            counters.late_answers,
            counters.unknown_answers,
            counters.dropped_notifications,
            counters.dropped_requests,
        ];
        Self {
            server: server.into(),
            calls: metrics.calls,
            errors: sum(errors_by_kind.iter().map(|error| error.count)),
            errors_by_kind,
            violations,
            latency: LatencySummary::of(&metrics.latency),
            available,
            available_since_nanos: since.map(|since| since.as_nanos()),
            down_reason,
            availability_changes: metrics.availability_changes,
            retries: counters.retries,
            stream_drops: counters.stream_drops,
            drops: sum(drops.into_iter()),
            late_answers: counters.late_answers,
            unknown_answers: counters.unknown_answers,
            dropped_notifications: counters.dropped_notifications,
            dropped_requests: counters.dropped_requests,
            noise_lines: counters.noise_lines,
            starts: counters.starts,
            bytes_received: counters.bytes_received,
            bytes_sent: counters.bytes_sent,
        }
    }
}

/// All errors by kind, the violations among them, sorted.
fn errors(metrics: &ServerMetrics, violations: &[ViolationCount]) -> Vec<ErrorCount> {
    let mut by_kind = metrics.errors.clone();
    let violated = sum(violations.iter().map(|violation| violation.count));
    if violated > 0 {
        let kind = ErrorKind::SchemaViolation.as_str();
        super::bump(by_kind.entry(kind).or_default(), violated);
    }
    let counts = by_kind.into_iter();
    counts
        .map(|(kind, count)| ErrorCount { kind, count })
        .collect()
}

fn sum(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

impl LatencySummary {
    fn of(histogram: &LatencyHistogram) -> Self {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Self {
            count: histogram.count(),
            sum_micros: micros(histogram.sum()),
            p50_micros: micros(histogram.quantile(500)),
            p95_micros: micros(histogram.quantile(950)),
            p99_micros: micros(histogram.quantile(990)),
            max_micros: micros(histogram.max()),
        }
    }
}

fn as_name<S: Serializer>(violation: &Violation, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{violation:?}"))
}
