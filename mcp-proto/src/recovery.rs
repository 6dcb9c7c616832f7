//! Bringing a lost peer back: when to try again, and when to give up (R90).
//!
//! The machine opens nothing. It is told that the peer was lost or is well, and says when the next attempt
//! is due.

use alloc::string::String;

use crate::config::Restart;
use crate::continuation::Backoff;
use crate::time::Instant;

/// The attempts to bring one peer back.
///
/// Attempts are counted in a row. A peer that dies soon after it came back goes on in the row it is in, so
/// that one that dies at every start is given up; the row ends when the peer has been well for as long as
/// the longest wait.
///
/// ```
/// use mcp_proto::{Instant, config::Restart, recovery::Recovery};
/// let mut recovery = Recovery::new(Restart::default(), 7, "git");
/// let due = recovery.lost(Instant::ZERO).unwrap();
/// assert!(recovery.begin(due));
/// assert_eq!((recovery.attempts(), recovery.due()), (1, None));
/// ```
#[derive(Clone, Debug)]
pub struct Recovery {
    attempts_max: u32,
    backoff: Backoff,
    peer: String,
    attempts: u32,
    due: Option<Instant>,
    well_since: Option<Instant>,
}

impl Recovery {
    /// For the peer of this name. `entropy` sets the waits of this client apart from those of others.
    #[must_use]
    pub fn new(policy: Restart, entropy: u64, peer: impl Into<String>) -> Self {
        Self {
            attempts_max: policy.max_attempts,
            backoff: Backoff {
                first: policy.backoff,
                max: policy.backoff_max.max(policy.backoff),
                entropy,
            },
            peer: peer.into(),
            attempts: 0,
            due: None,
            well_since: None,
        }
    }

    /// The peer is well (again).
    pub fn recovered(&mut self, now: Instant) {
        self.due = None;
        self.well_since.get_or_insert(now);
    }

    /// The peer was lost, or an attempt failed. When the next attempt is due; `None` when there is none
    /// any more.
    pub fn lost(&mut self, now: Instant) -> Option<Instant> {
        let well = self.well_since.take();
        if well.is_some_and(|since| now.since(since) >= self.backoff.max) {
            self.attempts = 0;
        }
        self.due = None;
        if self.attempts < self.attempts_max {
            self.attempts += 1;
            self.due = Some(now + self.backoff.wait(&self.peer, self.attempts));
        }
        self.due
    }

    /// Whether an attempt is due at `now`; it is taken as begun then.
    pub fn begin(&mut self, now: Instant) -> bool {
        self.due.take_if(|due| *due <= now).is_some()
    }

    /// When [`Recovery::begin`] says yes.
    #[must_use]
    pub const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Attempts in the present row.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Nothing is due any more: the peer is being closed.
    pub const fn stop(&mut self) {
        self.due = None;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::time::Duration;

    fn policy(max_attempts: u32) -> Restart {
        Restart {
            max_attempts,
            ..Restart::default()
        }
    }

    #[derive(Clone, Copy, Debug)]
    enum Fact {
        Lost,
        Well,
        Begin,
        Pass(u64),
    }

    fn fact() -> impl Strategy<Value = Fact> {
        prop_oneof![
            Just(Fact::Lost),
            Just(Fact::Well),
            Just(Fact::Begin),
            (0..60_000_u64).prop_map(Fact::Pass),
        ]
    }

    proptest! {
        /// R90: whatever happens, no more attempts in a row than allowed, none before its time, and none
        /// later than the longest wait.
        #[test]
        fn r90_attempts_are_bounded(max in 0..5_u32, facts in proptest::collection::vec(fact(), 0..60)) {
            let mut recovery = Recovery::new(policy(max), 1, "p");
            let mut now = Instant::ZERO;
            for fact in facts {
                match fact {
                    Fact::Lost => {
                        let due = recovery.lost(now);
                        prop_assert_eq!(due, recovery.due());
                        let longest = Restart::default().backoff_max;
                        prop_assert!(due.is_none_or(|due| now < due && due <= now + longest));
                    }
                    Fact::Well => recovery.recovered(now),
                    Fact::Begin => {
                        let due = recovery.due();
                        prop_assert_eq!(recovery.begin(now), due.is_some_and(|due| due <= now));
                        prop_assert!(!recovery.begin(now));
                    }
                    Fact::Pass(millis) => now = now + Duration::from_millis(millis),
                }
                prop_assert!(recovery.attempts() <= max);
            }
        }
    }

    /// R90: one that dies at every start is given up; one that stays well for long is not.
    #[test]
    fn r90_a_row_ends_when_the_peer_stays_well() {
        for (well_for, given_up) in [(29_999, true), (30_000, false)] {
            let mut recovery = Recovery::new(policy(3), 1, "p");
            let mut now = Instant::ZERO;
            let mut attempts = 0;
            while attempts < 10
                && let Some(due) = recovery.lost(now)
            {
                now = due;
                assert!(recovery.begin(now));
                recovery.recovered(now);
                now = now + Duration::from_millis(well_for);
                attempts += 1;
            }
            assert_eq!(attempts == 3, given_up, "{well_for}: {attempts}");
        }
    }
}
