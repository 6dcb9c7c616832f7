//! What tests have to see of who leads.

use super::{Leader, State};

impl State {
    /// A caller leads, and sleeps.
    pub(crate) fn a_caller_sleeps(&self) -> bool {
        self.lead.by == Leader::Caller && self.lead.asleep.is_some()
    }

    /// The keeper leads, and sleeps without a limit.
    pub(crate) fn the_keeper_sleeps_for_ever(&self) -> bool {
        self.lead.by == Leader::Keeper && self.lead.asleep == Some(None)
    }

    pub(crate) fn followers(&self) -> usize {
        self.inbox.open().map(|(_, waiter)| waiter.waiting).sum()
    }
}
