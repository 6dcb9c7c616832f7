//! Sums under names, a bounded number of them.

use alloc::collections::BTreeMap;
use alloc::string::String;

use serde::Serialize;

use super::amount::NanoUsd;

/// The longest name that is kept whole, in bytes.
const NAME_BYTES: usize = 256;

/// How many calls, and what they cost together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Tally {
    /// The calls, those that cost nothing included.
    pub calls: u64,
    /// Their cost.
    pub cost: NanoUsd,
}

impl Tally {
    pub(super) fn add(&mut self, amount: NanoUsd) {
        *self = self.with(Self {
            calls: 1,
            cost: amount,
        });
    }

    pub(super) const fn with(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            cost: self.cost.saturating_add(other.cost),
        }
    }
}

/// Tallies by name. When there are as many names as allowed, further names are counted together.
#[derive(Clone, Debug, Default)]
pub(super) struct Tallies {
    named: BTreeMap<String, Tally>,
    others: Tally,
}

impl Tallies {
    /// Adds one call; `false` when the name found no place of its own.
    pub(super) fn add(&mut self, name: &str, amount: NanoUsd, may_grow: bool) -> bool {
        let name = bounded(name);
        if let Some(tally) = self.named.get_mut(name) {
            tally.add(amount);
            return true;
        }
        if may_grow {
            let mut tally = Tally::default();
            tally.add(amount);
            self.named.insert(name.into(), tally);
        } else {
            self.others.add(amount);
        }
        may_grow
    }

    pub(super) fn get(&self, name: &str) -> Option<Tally> {
        self.named.get(bounded(name)).copied()
    }

    pub(super) const fn others(&self) -> Tally {
        self.others
    }

    pub(super) fn sum(&self) -> Tally {
        self.named
            .values()
            .fold(self.others, |sum, tally| sum.with(*tally))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Tally)> {
        self.named
            .iter()
            .map(|(name, tally)| (name.as_str(), *tally))
    }

    pub(super) fn len(&self) -> usize {
        self.named.len()
    }
}

/// The name, or as much of its beginning as is kept: a server chooses the names of its tools. Longer
/// names that begin alike are counted as one.
pub(super) fn bounded(name: &str) -> &str {
    let mut end = name.len().min(NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).unwrap_or(name)
}
