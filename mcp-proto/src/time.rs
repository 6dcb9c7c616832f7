//! The core's own monotonic time.
//!
//! `std::time::Instant` can be neither constructed nor printed, so it can appear neither in a
//! snapshot nor in a journal. [`Instant`] is a plain count of nanoseconds since an epoch that the
//! driver picks (usually the moment it was created).

use core::fmt;
use core::ops::Add;

pub use core::time::Duration;

/// A point on the driver's monotonic clock: nanoseconds since the driver's epoch.
///
/// ```
/// use mcp_proto::{Duration, Instant};
/// let later = Instant::ZERO + Duration::from_millis(1500);
/// assert_eq!(later.to_string(), "1.500000s");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The driver's epoch.
    pub const ZERO: Self = Self(0);
    /// The end of time, about 584 years after the epoch.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant this many nanoseconds after the epoch.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The instant this long after the epoch; saturates at [`Instant::MAX`].
    #[must_use]
    pub fn after_epoch(elapsed: Duration) -> Self {
        Self::ZERO + elapsed
    }

    /// Nanoseconds since the epoch.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to `self`; zero when `earlier` is the later one.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (secs, micros) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000 / 1_000);
        write!(f, "{secs}.{micros:06}s")
    }
}
