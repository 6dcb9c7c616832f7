//! Notifications that were not taken when their listening operation ended.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::ids::OperationId;
use crate::operation::Notification;

/// Of how many ended listening operations they are kept.
const OPERATIONS_MAX: usize = 16;

/// What can still be taken of operations that have ended; of the latest few.
#[derive(Debug, Default)]
pub(crate) struct Unread(BTreeMap<OperationId, Vec<Notification>>);

impl Unread {
    /// Keeps them until they are taken, or until too many operations have ended since.
    pub(crate) fn keep(&mut self, operation: OperationId, notifications: Vec<Notification>) {
        if !notifications.is_empty() {
            self.0.insert(operation, notifications);
            if self.0.len() > OPERATIONS_MAX {
                self.0.pop_first();
            }
        }
    }

    /// The size of all that is kept.
    pub(crate) fn buffered_bytes(&self) -> usize {
        let kept = self.0.values().flatten();
        kept.map(crate::peer::notification_bytes)
            .fold(0, usize::saturating_add)
    }

    pub(crate) fn take(&mut self, operation: OperationId) -> Vec<Notification> {
        self.0.remove(&operation).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R1: what nobody takes is bounded, and the latest is kept.
    #[test]
    fn the_latest_are_kept() {
        let mut unread = Unread::default();
        let notification = |peer: &str| Notification {
            peer: peer.into(),
            method: "notifications/tools/list_changed".into(),
            params: None,
        };
        for number in 1..=20 {
            unread.keep(OperationId::new(number), alloc::vec![notification("a")]);
        }
        unread.keep(OperationId::new(21), Vec::new());
        let taken: Vec<u64> = (1..=21)
            .filter(|number| !unread.take(OperationId::new(*number)).is_empty())
            .collect();
        assert_eq!(taken, (5..=20).collect::<Vec<u64>>());
        assert!(unread.take(OperationId::new(20)).is_empty());
    }
}
