//! What calls cost: exact sums in memory, and a ledger of lines (R50).
//!
//! The core does not know prices: the configuration does (`costUsd`, `toolCostsUsd`), or the application says
//! what one call costs ([`Options::cost`](crate::Options::cost)). A [`Client`](crate::Client) keeps the books by
//! itself, see [`Client::costs`](crate::Client::costs); the parts here can be used without one. [`Charge::of`]
//! says whether a call that has ended counts at all.
//!
//! - [`NanoUsd`]: an amount, an integer number of billionths of a dollar. No sum is ever rounded.
//! - [`ServerCostMeter`]: sums by (task, server), in memory.
//! - [`SpendLedger`]: sums by task, server, tool, model label and tag, budgets, and the lines to append
//!   to a file. It reads and writes bytes, never a file: that is the host's.

mod amount;
mod budget;
mod ledger;
mod line;
mod meter;
mod tally;

pub use amount::{CostReading, CostWarning, NanoUsd};
pub use budget::{Budget, BudgetExceeded, BudgetScope, Verdict};
pub use ledger::{Dimension, LedgerHealth, LedgerLine, LedgerSettings, SpendLedger};
pub use line::{MODEL_LABEL, Spend, TAG};
pub use meter::ServerCostMeter;
pub use tally::Tally;

use crate::error::Ran;
use crate::operation::{Ended, Outcome, Reply};

/// Whether a call that ended is charged: one record per logical call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// It ran or may have run, with whatever result: record it, even at a cost of zero.
    Yes,
    /// It provably did not run: refused before it was sent, or by the server before it did anything.
    No,
    /// The server asked for input first. The call goes on with the next round; the round that ends it is
    /// the one that is charged.
    NotYet,
}

impl Charge {
    /// The rule.
    ///
    /// ```
    /// use mcp_proto::cost::Charge;
    /// use mcp_proto::error::Cause;
    /// use mcp_proto::{Error, Outcome, Ran};
    ///
    /// let timeout = Error::new("git", Cause::Cancelled);
    /// assert_eq!(Charge::of(&Outcome::Failed(timeout.clone().ran(Ran::Maybe))), Charge::Yes);
    /// assert_eq!(Charge::of(&Outcome::Failed(timeout.ran(Ran::No))), Charge::No);
    /// ```
    #[must_use]
    pub const fn of(outcome: &Outcome) -> Self {
        match outcome {
            // Cancelled before anything was sent.
            Outcome::Complete(Reply::Stream(stream)) if stream.attempts == 0 => Self::No,
            Outcome::Complete(_) => Self::Yes,
            Outcome::InputRequired(_) => Self::NotYet,
            Outcome::Failed(error) => match error.ran {
                Ran::Maybe => Self::Yes,
                Ran::No => Self::No,
            },
        }
    }
}

impl From<&Ended> for Charge {
    fn from(ended: &Ended) -> Self {
        Self::of(&ended.outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Cause, Error};

    /// R50: failed calls are charged, refused ones are not.
    #[test]
    fn r50_what_may_have_run_is_charged() {
        let failed = |ran| Outcome::Failed(Error::new("a", Cause::Cancelled).ran(ran));
        assert_eq!(Charge::of(&Outcome::Complete(Reply::Settled)), Charge::Yes);
        assert_eq!(Charge::of(&failed(Ran::Maybe)), Charge::Yes);
        assert_eq!(Charge::of(&failed(Ran::No)), Charge::No);
    }
}
