//! Listening to one server or to all of them: what came, when it ends, what was not taken by then.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Client, Entry};
use crate::error::{Cause, Error, Ran};
use crate::ids::{OperationId, PeerId};
use crate::operation::{Notification, Outcome, Reply, Request};
use crate::time::Instant;

impl Client {
    /// Ends a [`Request::Listen`] with its count, and an operation about which
    /// [`News::InputNeeded`](crate::News::InputNeeded) asked with
    /// [`Outcome::InputRequired`]. Other operations are left alone.
    pub fn finish(&mut self, operation: OperationId, now: Instant) {
        let now = self.clamp(now);
        match self.entries.get_mut(&operation) {
            Some(Entry::Direct(peer)) => {
                let peer = *peer;
                self.with_peer(peer, |peer| peer.finish(operation, now));
            }
            Some(Entry::Gathering(gathering)) if gathering.is_listening() => {
                gathering.finish();
                for (part, peer) in self.parts_of(operation) {
                    self.with_peer(peer, |peer| peer.finish(part, now));
                }
                self.complete_gathering(operation);
            }
            Some(Entry::Unsettled {
                operation: waiting, ..
            }) if waiting.request == Request::Listen => {
                self.end(
                    operation,
                    Outcome::Complete(Reply::Listened { notifications: 0 }),
                );
            }
            _ => {}
        }
        self.drain();
    }

    /// The change notifications that wait for a listening operation, oldest first per peer; after its end,
    /// those that came before it (of the latest few operations, until they are taken). Taking them
    /// lets links be read again: ask [`Client::wants_read`].
    pub fn take_notifications(&mut self, operation: OperationId) -> Vec<Notification> {
        match self.entries.get_mut(&operation) {
            Some(Entry::Direct(peer)) => {
                let peer = *peer;
                self.peer_mut(peer)
                    .map_or_else(Vec::new, |peer| peer.take_notifications(operation))
            }
            Some(Entry::Gathering(gathering)) => {
                let mut all = gathering.take_unread();
                for (part, peer) in self.parts_of(operation) {
                    if let Some(peer) = self.peer_mut(peer) {
                        all.append(&mut peer.take_notifications(part));
                    }
                }
                all
            }
            _ => self.unread.take(operation),
        }
    }

    /// Takes from a peer what was not taken when its operation ended, for the operation of the
    /// application that it is (a part of).
    pub(super) fn take_over_unread(
        &mut self,
        of: OperationId,
        operation: OperationId,
        peer: PeerId,
    ) {
        let unread = self
            .peer_mut(peer)
            .map_or_else(Vec::new, |peer| peer.take_unread(operation));
        match self.entries.get_mut(&of) {
            Some(Entry::Gathering(gathering)) => gathering.keep_unread(unread),
            _ => self.unread.keep(of, unread),
        }
    }

    /// Ends listening whose time is over, and waiting for lists that hold up others.
    pub(super) fn expire_gatherings(&mut self, now: Instant) {
        while let Some((deadline, id)) = self.deadlines.first().copied()
            && deadline <= now
        {
            self.deadlines.pop_first();
            let Some(Entry::Gathering(gathering)) = self.entries.get_mut(&id) else {
                continue;
            };
            if !gathering.is_listening() {
                gathering.impatient = true;
                self.route_early(id, now);
                continue;
            }
            let limit = deadline.since(gathering.started);
            let unread = self.take_notifications(id);
            self.drop_parts(id, now);
            self.unread.keep(id, unread);
            let cause = Cause::Timeout {
                awaited: String::from("end of subscriptions/listen"),
                setting: "absoluteTimeoutMs",
                limit,
            };
            self.end(id, Outcome::Failed(Error::general(cause).ran(Ran::Maybe)));
        }
    }
}
