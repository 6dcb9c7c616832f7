//! Requests that await their response.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::ids::OperationId;

/// Who gets the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    /// The era negotiation; the number tells probes apart.
    Probe(u32),
    /// The handshake of an older revision.
    Handshake,
    /// An operation.
    Operation(OperationId),
    /// Nobody: the request is made for its effect.
    Nobody,
}

/// A request on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pending {
    pub(super) owner: Owner,
    pub(super) method: &'static str,
}

impl Pending {
    /// Whether it may stay unanswered for ever without anybody waiting: it takes no place in flight.
    fn stands(self) -> bool {
        self.owner == Owner::Nobody || self.method == "subscriptions/listen"
    }
}

/// The pending table of one peer. Ids count from 1 and are never used twice in a peer's life, so they
/// neither collide with servers that answer 0 by default nor, below 2^53, lose digits in JavaScript.
#[derive(Debug, Default)]
pub(super) struct Requests {
    last: u64,
    pending: BTreeMap<u64, Pending>,
    /// How many of them stand.
    standing: usize,
    /// Control messages sent so far: the ordinal of their trace spans.
    controls: u64,
}

impl Requests {
    /// A new id for a new pending request.
    pub(super) fn insert(&mut self, owner: Owner, method: &'static str) -> u64 {
        self.last = self.last.saturating_add(1);
        let pending = Pending { owner, method };
        self.standing += usize::from(pending.stands());
        self.pending.insert(self.last, pending);
        self.last
    }

    /// The ordinal of the next control message (R6).
    pub(super) const fn next_control(&mut self) -> u64 {
        let ordinal = self.controls;
        self.controls = ordinal.saturating_add(1);
        ordinal
    }

    /// Takes the request that a response answers.
    pub(super) fn take(&mut self, id: u64) -> Option<Pending> {
        let pending = self.pending.remove(&id)?;
        self.standing -= usize::from(pending.stands());
        Some(pending)
    }

    pub(super) fn get(&self, id: u64) -> Option<Pending> {
        self.pending.get(&id).copied()
    }

    /// Whether an id of this number has ever been sent: its late answer is no surprise.
    pub(super) const fn was_sent(&self, id: u64) -> bool {
        id != 0 && id <= self.last
    }

    /// The only pending request of such an owner, when there is exactly one.
    pub(super) fn only(&self, wanted: impl Fn(Owner) -> bool) -> Option<u64> {
        let mut ids = self
            .pending
            .iter()
            .filter(|(_, pending)| wanted(pending.owner));
        ids.next()
            .map(|(id, _)| *id)
            .filter(|_| ids.next().is_none())
    }

    /// How many places in flight are taken. An open subscription takes none, or calls would wait for
    /// it for ever.
    pub(super) fn in_flight(&self) -> usize {
        self.pending.len() - self.standing
    }

    /// The requests of the negotiation that are pending.
    pub(super) fn of_negotiation(&self) -> Vec<(u64, Owner)> {
        self.pending
            .iter()
            .filter(|(_, pending)| matches!(pending.owner, Owner::Probe(_) | Owner::Handshake))
            .map(|(id, pending)| (*id, pending.owner))
            .collect()
    }

    /// Forgets everything: the link is lost.
    pub(super) fn clear(&mut self) {
        self.pending.clear();
        self.standing = 0;
    }
}
