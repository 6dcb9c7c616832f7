//! How long to wait before trying again.

use alloc::string::String;

use crate::identity::{Field, derive_id};
use crate::time::Duration;

/// Waits that double up to a bound, each shortened by up to a half of itself, so that many clients that
/// failed together do not come back together (R90).
///
/// Nothing is drawn: the same entropy and purpose give the same waits on every run.
///
/// ```
/// use mcp_proto::{Duration, continuation::Backoff};
/// let backoff = Backoff { first: Duration::from_millis(100), max: Duration::from_secs(1), entropy: 7 };
/// let wait = backoff.wait("stream", 3);
/// assert!(Duration::from_millis(200) <= wait && wait <= Duration::from_millis(400));
/// assert_eq!(wait, backoff.wait("stream", 3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The longest first wait.
    pub first: Duration,
    /// The longest wait of all.
    pub max: Duration,
    /// What sets this client apart from others, handed in by the application.
    pub entropy: u64,
}

impl Backoff {
    /// The wait before the `retry`th retry, from 1. `purpose` sets apart what waits at the same time.
    #[must_use]
    pub fn wait(&self, purpose: &str, retry: u32) -> Duration {
        let doublings = retry.saturating_sub(1).min(64);
        let factor = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
        let longest = nanos(self.first).saturating_mul(factor);
        let longest = longest.min(nanos(self.max));
        let half = longest / 2;
        let fields = [
            ("entropy", Field::Number(self.entropy)),
            ("purpose", Field::Text(purpose)),
            ("retry", Field::Number(retry.into())),
        ];
        let digits: String = derive_id("mcp.backoff", &fields, 8);
        let spread = u64::from_str_radix(&digits, 16).unwrap_or_default();
        Duration::from_nanos(longest - spread % half.saturating_add(1))
    }
}

impl Default for Backoff {
    /// From half a second to 30 seconds, as in `restart` of the configuration.
    fn default() -> Self {
        Self {
            first: Duration::from_millis(500),
            max: Duration::from_secs(30),
            entropy: 0,
        }
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// R90: between a half and the whole of the doubled wait, never above the bound.
        #[test]
        fn r90_waits_are_capped_and_spread(
            first in 0..10_000_u64, max in 0..100_000_u64, entropy: u64, retry: u32,
        ) {
            let backoff = Backoff {
                first: Duration::from_millis(first),
                max: Duration::from_millis(max),
                entropy,
            };
            let wait = backoff.wait("p", retry);
            let factor = 1_u128 << retry.saturating_sub(1).min(64);
            let longest = (u128::from(first) * factor).min(u128::from(max)) * 1_000_000;
            prop_assert!(wait.as_nanos() <= longest);
            prop_assert!(wait.as_nanos() >= longest / 2);
        }
    }

    /// R90: what differs in entropy or purpose waits differently; what does not, alike.
    #[test]
    fn r90_jitter_is_deterministic() {
        let of = |entropy, purpose| {
            let backoff = Backoff {
                entropy,
                ..Backoff::default()
            };
            (1..6)
                .map(|retry| backoff.wait(purpose, retry))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(1, "a"), of(1, "a"));
        assert_ne!(of(1, "a"), of(2, "a"));
        assert_ne!(of(1, "a"), of(1, "b"));
    }
}
