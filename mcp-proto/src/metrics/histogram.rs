//! Latencies in bounded memory.

use alloc::vec::Vec;

use crate::time::Duration;

/// Each power of two is divided into so many buckets, as a power of two itself.
const FINENESS: u32 = 5;
/// How many buckets that is.
const PER_OCTAVE: u64 = 1 << FINENESS;
/// The longest time that is told apart from longer ones: 2^36 µs, about 19 hours.
const MAX_MICROS: u64 = (1 << 36) - 1;

/// How long things took: a histogram of microseconds with buckets that grow with what they hold.
///
/// Up to 32 µs a bucket is 1 µs wide, beyond that at most 1/32 of what it holds. A quantile is the upper
/// end of its bucket: never less than the exact one, and more by 1/32 (3.2 %) at most. Times of 19 hours
/// and more are one bucket. At most 1,024 buckets exist (8 KiB). Recording takes constant time and no
/// floating point.
///
/// ```
/// use mcp_proto::{Duration, metrics::LatencyHistogram};
///
/// let mut histogram = LatencyHistogram::default();
/// for millis in 1..=100 {
///     histogram.record(Duration::from_millis(millis));
/// }
/// let p95 = histogram.quantile(950);
/// assert!(p95 >= Duration::from_millis(95) && p95 <= Duration::from_millis(95) * 33 / 32);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyHistogram {
    /// Grows to the largest bucket that was needed.
    buckets: Vec<u64>,
    count: u64,
    sum_micros: u64,
    max_micros: u64,
}

impl LatencyHistogram {
    /// Counts one. What is less than a microsecond counts as none.
    pub fn record(&mut self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let index = bucket_of(micros.min(MAX_MICROS));
        if index >= self.buckets.len() {
            self.buckets.resize(index + 1, 0);
        }
        if let Some(bucket) = self.buckets.get_mut(index) {
            *bucket = bucket.saturating_add(1);
        }
        self.count = self.count.saturating_add(1);
        self.sum_micros = self.sum_micros.saturating_add(micros);
        self.max_micros = self.max_micros.max(micros);
    }

    /// How many were counted.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Their sum, in whole microseconds each.
    #[must_use]
    pub const fn sum(&self) -> Duration {
        Duration::from_micros(self.sum_micros)
    }

    /// The longest one.
    #[must_use]
    pub const fn max(&self) -> Duration {
        Duration::from_micros(self.max_micros)
    }

    /// The time within which so many of a thousand were done: 500 for the median. Zero when there is
    /// none.
    #[must_use]
    pub fn quantile(&self, per_mille: u16) -> Duration {
        let per_mille = u128::from(per_mille.min(1000));
        // At most `count`, which is a u64.
        let rank = (u128::from(self.count) * per_mille).div_ceil(1000).max(1);
        let mut seen = 0_u128;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += u128::from(*count);
            if seen >= rank {
                let end = if index + 1 == self.buckets.len() {
                    u64::MAX
                } else {
                    last_of(index)
                };
                return Duration::from_micros(end.min(self.max_micros));
            }
        }
        Duration::ZERO
    }
}

/// The bucket that holds a time.
const fn bucket_of(micros: u64) -> usize {
    if micros < PER_OCTAVE {
        return micros as usize;
    }
    // The leading bits: one that is set, and as many as tell the buckets of an octave apart.
    let octave = micros.ilog2() - FINENESS;
    let leading = micros >> octave;
    (octave as u64 * PER_OCTAVE + leading) as usize
}

/// The longest time that a bucket holds.
const fn last_of(index: usize) -> u64 {
    let index = index as u64;
    if index < PER_OCTAVE {
        return index;
    }
    let octave = index / PER_OCTAVE - 1;
    let leading = index - octave * PER_OCTAVE;
    ((leading + 1) << octave) - 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every time has one bucket, the buckets are in order and have no gaps.
    #[test]
    fn r51_buckets_are_contiguous() {
        let last = bucket_of(MAX_MICROS);
        assert_eq!(last, 1023);
        assert_eq!(last_of(last), MAX_MICROS);
        for index in 0..last {
            assert_eq!(bucket_of(last_of(index)), index);
            assert_eq!(bucket_of(last_of(index) + 1), index + 1);
        }
    }

    #[test]
    fn r51_extremes() {
        let mut histogram = LatencyHistogram::default();
        assert_eq!(histogram.quantile(500), Duration::ZERO);
        histogram.record(Duration::MAX);
        histogram.record(Duration::from_nanos(999));
        assert_eq!(histogram.quantile(0), Duration::ZERO);
        assert_eq!(histogram.quantile(500), Duration::ZERO);
        assert_eq!(histogram.quantile(501), Duration::from_micros(u64::MAX));
        assert_eq!(histogram.buckets.len(), 1024);
        assert_eq!(histogram.sum(), Duration::from_micros(u64::MAX));
    }

    proptest! {
        /// R51: a quantile is never too low and at most 1/32 too high; the order changes nothing.
        #[test]
        fn r51_quantiles_are_within_their_error(
            mut micros in proptest::collection::vec((0_u32..36, any::<u64>()), 1..80),
            per_mille in 1_u16..=1000,
        ) {
            let histogram = |micros: &[(u32, u64)]| {
                let mut histogram = LatencyHistogram::default();
                for (bits, random) in micros {
                    histogram.record(Duration::from_micros(random & ((1 << bits) - 1)));
                }
                histogram
            };
            let before = histogram(&micros);
            micros.sort_by_key(|(bits, random)| random & ((1 << bits) - 1));
            prop_assert_eq!(&histogram(&micros), &before);
            let rank = (micros.len() * usize::from(per_mille)).div_ceil(1000);
            let (bits, random) = micros[rank - 1];
            let exact = Duration::from_micros(random & ((1 << bits) - 1));
            let quantile = before.quantile(per_mille);
            prop_assert!(quantile >= exact, "{:?} < {:?}", quantile, exact);
            prop_assert!(quantile <= exact + exact / 32, "{:?} > {:?}", quantile, exact);
        }
    }
}
