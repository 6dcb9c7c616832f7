//! How a world is set up before it begins.

use std::collections::hash_map::DefaultHasher;

use super::{Choice, LedgerFault, Splits, World};

impl World {
    /// Lets a schedule decide what arrives next, how much the server reads at once and when timers
    /// fire. Without one everything arrives as soon as it can, in the order of peers.
    #[must_use]
    pub fn with_schedule(mut self, schedule: impl Choice + 'static) -> Self {
        self.schedule = Some(Box::new(schedule));
        self
    }

    /// Cuts the servers' output in this way.
    #[must_use]
    pub const fn with_splits(mut self, splits: Splits) -> Self {
        self.splits = splits;
        self
    }

    /// Cuts the servers' output where this chooses, and changes nothing else.
    #[must_use]
    pub fn with_cuts(mut self, cuts: impl Choice + 'static) -> Self {
        self.splits = Splits::Chosen;
        self.cuts = Some(Box::new(cuts));
        self
    }

    /// Marks every operation with a `_meta` key of its own, so that the border knows which request is
    /// whose.
    #[must_use]
    pub fn with_stamps(mut self) -> Self {
        self.stamped = true;
        self.border.use_stamps();
        self
    }

    /// Lets the client's clock stand still, go backwards, run late and jump, as the schedule chooses.
    #[must_use]
    pub const fn with_odd_clock(mut self) -> Self {
        self.odd_clock = true;
        self
    }

    /// What a server says about the client does not count: a generated one may be of several eras at
    /// once and complain about good answers.
    #[must_use]
    pub const fn with_untrusted_servers(mut self) -> Self {
        self.trusts_servers = false;
        self
    }

    /// Keeps a digest of every action: [`World::fingerprint`].
    #[must_use]
    pub fn with_fingerprint(mut self) -> Self {
        self.fingerprint = Some(DefaultHasher::new());
        self
    }

    /// The start of this peer's process never comes to an end.
    #[must_use]
    pub fn with_endless_start(mut self, peer: &str) -> Self {
        self.unopened.insert(peer.into());
        self
    }

    /// The program of this peer does not exist.
    #[must_use]
    pub fn with_spawn_failure(mut self, peer: &str) -> Self {
        self.unspawnable.insert(peer.into());
        self
    }

    /// What stands in the ledger's file when it is read; without this there is none.
    #[must_use]
    pub fn with_ledger(mut self, contents: impl Into<Vec<u8>>) -> Self {
        self.ledger.contents = Some(contents.into());
        self
    }

    /// The ledger's file fails so.
    #[must_use]
    pub const fn with_ledger_fault(mut self, fault: LedgerFault) -> Self {
        self.ledger.fault = Some(fault);
        self
    }
}
