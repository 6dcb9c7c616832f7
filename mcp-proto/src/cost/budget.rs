//! How much may be spent.

use alloc::format;
use alloc::string::String;

use super::amount::NanoUsd;
use crate::error::{Cause, Error};

/// At which part of a budget the warnings begin unless said otherwise, in percent.
const SOFT_PERCENT: u8 = 80;

/// A bound on what is spent (`budgetUsd`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Budget {
    /// Whose spending is bounded.
    pub scope: BudgetScope,
    /// The bound. Zero: nothing may be spent, and only calls that are known to be free are made.
    pub limit: NanoUsd,
    /// From which part of the bound on there are warnings, in percent. Default 80.
    pub soft_percent: u8,
}

/// Whose spending a [`Budget`] bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BudgetScope {
    /// That of each task by itself.
    Task,
    /// All that stands in the ledger.
    Ledger,
}

/// Whether a call may be made, as far as money is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Ok,
    /// It may, but a budget is nearly used up.
    SoftWarning {
        /// Which budget.
        scope: BudgetScope,
        /// What was spent of it.
        spent: NanoUsd,
        /// The bound.
        limit: NanoUsd,
    },
    /// It must not.
    HardStop(BudgetExceeded),
}

/// A budget is used up, or would be; the call was not made. What calls under way will cost counts as
/// spent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} has spent {spent} of {limit} USD", Spender(.task))]
pub struct BudgetExceeded {
    /// The task, where its own budget is used up; `None` for that of the whole ledger.
    pub task: Option<String>,
    /// What was spent.
    pub spent: NanoUsd,
    /// The bound.
    pub limit: NanoUsd,
}

struct Spender<'a>(&'a Option<String>);

impl core::fmt::Display for Spender<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0 {
            Some(task) => write!(f, "task {task:?}"),
            None => f.write_str("the ledger"),
        }
    }
}

impl From<BudgetExceeded> for Error {
    /// A limit that was reached before anything was sent.
    fn from(exceeded: BudgetExceeded) -> Self {
        let BudgetExceeded { spent, limit, .. } = exceeded;
        let cause = Cause::Limit {
            what: format!(
                "a call beyond the budget ({exceeded}; counted in billionths of a dollar)"
            ),
            setting: "budgetUsd",
            max: limit.as_nanos(),
        };
        Self::general(cause).advise(&format!(
            "raise \"budgetUsd\" above {spent}, or start a new ledger"
        ))
    }
}

impl Budget {
    /// A bound with warnings from 80 % on.
    #[must_use]
    pub const fn new(scope: BudgetScope, limit: NanoUsd) -> Self {
        Self {
            scope,
            limit,
            soft_percent: SOFT_PERCENT,
        }
    }

    /// Judges one more call by what was spent before it. `expected` is its price, if that is known:
    /// without, it is stopped when nothing is left; with, when too little is left.
    pub(super) fn judge(&self, task: &str, spent: NanoUsd, expected: Option<NanoUsd>) -> Verdict {
        let Self { scope, limit, .. } = *self;
        let stop = match expected {
            Some(price) => price > NanoUsd::ZERO && spent.saturating_add(price) > limit,
            None => spent >= limit,
        };
        if stop {
            return Verdict::HardStop(BudgetExceeded {
                task: (scope == BudgetScope::Task).then(|| task.into()),
                spent,
                limit,
            });
        }
        if spent >= limit.percent(self.soft_percent) && spent > NanoUsd::ZERO {
            return Verdict::SoftWarning {
                scope,
                spent,
                limit,
            };
        }
        Verdict::Ok
    }
}

impl Verdict {
    /// The graver one of two; the first of equals.
    pub(super) fn or_graver(self, other: Self) -> Self {
        if other.gravity() > self.gravity() {
            other
        } else {
            self
        }
    }

    const fn gravity(&self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::SoftWarning { .. } => 1,
            Self::HardStop(_) => 2,
        }
    }
}
