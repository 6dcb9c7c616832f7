//! What was spent in memory, by task and server.

use alloc::collections::BTreeMap;
use alloc::string::String;

use super::amount::{CostReading, CostWarning, NanoUsd};
use super::tally::{Tallies, Tally, bounded};

/// How many (task, server) pairs are told apart unless said otherwise.
const PAIRS: usize = 4096;

/// Sums of costs by (task, server): one record per logical call (R50).
///
/// Memory is bounded: beyond the number of pairs that are told apart, a new server of a known task
/// counts in that task's total only, and a new task in [`ServerCostMeter::total`] only; both with a
/// warning. [`ServerCostMeter::forget_task`] makes room.
///
/// ```
/// use mcp_proto::cost::{CostWarning, ServerCostMeter};
///
/// let mut meter = ServerCostMeter::new();
/// assert_eq!(meter.record("task-42", "git", "0.25"), None);
/// assert_eq!(meter.record("task-42", "git", 0.0), None);
/// assert_eq!(meter.record("task-42", "web", f64::NAN), Some(CostWarning::NotANumber));
/// assert_eq!(meter.cost_for("task-42", "git").to_string(), "0.25");
/// assert_eq!(meter.call_count("task-42", "git"), 2);
/// assert_eq!(meter.task_total("task-42").to_string(), "0.25");
/// ```
#[derive(Clone, Debug)]
pub struct ServerCostMeter {
    max_pairs: usize,
    pairs: usize,
    tasks: BTreeMap<String, Tallies>,
    total: Tally,
}

impl ServerCostMeter {
    /// A meter that tells 4,096 pairs apart.
    #[must_use]
    pub const fn new() -> Self {
        Self::bounded(PAIRS)
    }

    /// A meter that tells so many pairs apart.
    #[must_use]
    pub const fn bounded(max_pairs: usize) -> Self {
        Self {
            max_pairs,
            pairs: 0,
            tasks: BTreeMap::new(),
            total: Tally {
                calls: 0,
                cost: NanoUsd::ZERO,
            },
        }
    }

    /// Counts one call. Call it once for each logical call for which [`Charge`](super::Charge) says
    /// yes, whatever it cost. The warning is to be shown or logged; the call counts in any case.
    pub fn record(
        &mut self,
        task: &str,
        server: &str,
        cost: impl Into<CostReading>,
    ) -> Option<CostWarning> {
        let CostReading { amount, warning } = cost.into();
        let task = bounded(task);
        let may_grow = self.pairs < self.max_pairs;
        if !self.tasks.contains_key(task) && may_grow {
            self.tasks.insert(task.into(), Tallies::default());
        }
        let found_place = match self.tasks.get_mut(task) {
            Some(servers) => {
                let before = servers.len();
                let found_place = servers.add(server, amount, may_grow);
                self.pairs += servers.len() - before;
                found_place
            }
            None => false,
        };
        self.total.add(amount);
        let saturated = self.total.cost == NanoUsd::MAX;
        warning
            .or_else(|| (!found_place).then_some(CostWarning::TooManyNames))
            .or_else(|| saturated.then_some(CostWarning::Saturated))
    }

    /// What the calls of one task to one server cost.
    #[must_use]
    pub fn cost_for(&self, task: &str, server: &str) -> NanoUsd {
        self.tally(task, server).cost
    }

    /// How many calls of one task to one server were recorded.
    #[must_use]
    pub fn call_count(&self, task: &str, server: &str) -> u64 {
        self.tally(task, server).calls
    }

    /// What the task cost on all servers.
    #[must_use]
    pub fn task_total(&self, task: &str) -> NanoUsd {
        self.tasks
            .get(bounded(task))
            .map_or(NanoUsd::ZERO, |servers| servers.sum().cost)
    }

    /// The servers of a task, sorted by name.
    pub fn server_breakdown(&self, task: &str) -> impl Iterator<Item = (&str, Tally)> {
        let servers = self.tasks.get(bounded(task));
        servers.into_iter().flat_map(Tallies::iter)
    }

    /// Everything that was ever recorded, under whatever name.
    #[must_use]
    pub const fn total(&self) -> Tally {
        self.total
    }

    /// Lets go of a task that has ended, and says what it cost; it goes on to count in the total.
    pub fn forget_task(&mut self, task: &str) -> Tally {
        let Some(servers) = self.tasks.remove(bounded(task)) else {
            return Tally::default();
        };
        self.pairs = self.pairs.saturating_sub(servers.len());
        servers.sum()
    }

    fn tally(&self, task: &str, server: &str) -> Tally {
        let servers = self.tasks.get(bounded(task));
        servers
            .and_then(|servers| servers.get(server))
            .unwrap_or_default()
    }
}

impl Default for ServerCostMeter {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn usd(nanos: u64) -> NanoUsd {
        NanoUsd::from_nanos(nanos)
    }

    /// R50: by task and server, zero-cost calls counted, what is no cost counted as zero with a warning.
    #[test]
    fn r50_sums_by_task_and_server() {
        let mut meter = ServerCostMeter::new();
        assert_eq!(meter.record("t", "b", usd(5)), None);
        assert_eq!(meter.record("t", "a", usd(0)), None);
        assert_eq!(meter.record("t", "b", -1.0), Some(CostWarning::Negative));
        assert_eq!(meter.record("u", "b", usd(7)), None);
        let breakdown: Vec<_> = meter.server_breakdown("t").collect();
        let tally = |calls, nanos| Tally {
            calls,
            cost: usd(nanos),
        };
        assert_eq!(breakdown, [("a", tally(1, 0)), ("b", tally(2, 5))]);
        assert_eq!(meter.task_total("t"), usd(5));
        assert_eq!(meter.cost_for("u", "b"), usd(7));
        assert_eq!(meter.call_count("t", "a"), 1);
        assert_eq!(meter.total(), tally(4, 12));
        assert_eq!(meter.call_count("t", "nobody"), 0);
        assert_eq!(meter.task_total("v"), NanoUsd::ZERO);
    }

    /// R50, R1: no name makes it grow beyond its bound, and no cost is lost.
    #[test]
    fn r50_names_are_bounded_and_no_cost_is_lost() {
        let mut meter = ServerCostMeter::bounded(2);
        assert_eq!(meter.record("t", "a", usd(1)), None);
        assert_eq!(meter.record("u", "a", usd(2)), None);
        let too_many = Some(CostWarning::TooManyNames);
        assert_eq!(meter.record("t", "b", usd(4)), too_many);
        assert_eq!(meter.record("v", "a", usd(8)), too_many);
        assert_eq!(meter.record("t", "a", usd(16)), None);
        assert_eq!(meter.task_total("t"), usd(21));
        assert_eq!(meter.cost_for("t", "b"), usd(0));
        assert_eq!(meter.task_total("v"), usd(0));
        assert_eq!(meter.total().cost, usd(31));
        assert_eq!(meter.forget_task("t").cost, usd(21));
        assert_eq!(meter.record("v", "a", usd(32)), None);
        assert_eq!(
            (meter.task_total("t"), meter.task_total("v")),
            (usd(0), usd(32))
        );
        assert_eq!(meter.total().cost, usd(63));
    }

    #[test]
    fn r50_sums_saturate_with_a_warning() {
        let mut meter = ServerCostMeter::new();
        assert_eq!(meter.record("t", "a", usd(u64::MAX - 1)), None);
        let saturated = Some(CostWarning::Saturated);
        assert_eq!(meter.record("t", "a", usd(2)), saturated);
        assert_eq!(meter.task_total("t"), NanoUsd::MAX);
    }

    proptest! {
        /// R50: sums are exact, and the order of the calls changes nothing.
        #[test]
        fn r50_sums_are_exact_in_any_order(
            calls in proptest::collection::vec((0_u8..3, 0_u8..3, 0_u64..1 << 50), 0..60),
            seed: u64,
        ) {
            let mut shuffled = calls.clone();
            shuffled.sort_by_key(|(task, server, nanos)| {
                (nanos ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(task ^ server)
            });
            let run = |calls: &[(u8, u8, u64)]| {
                let mut meter = ServerCostMeter::new();
                for (task, server, nanos) in calls {
                    meter.record(&format!("t{task}"), &format!("s{server}"), usd(*nanos));
                }
                meter
            };
            let (meter, other) = (run(&calls), run(&shuffled));
            prop_assert_eq!(format!("{meter:?}"), format!("{other:?}"));
            for task in 0..3 {
                let own = calls.iter().filter(|call| call.0 == task);
                let sum: u64 = own.map(|call| call.2).sum();
                prop_assert_eq!(meter.task_total(&format!("t{task}")), usd(sum));
            }
        }
    }
}
