//! What peers say, put under the application's own operations, and what follows from it.

use alloc::boxed::Box;

use super::{Client, Entry, Phase};
use crate::action::Action;
use crate::ids::{OperationId, PeerId};
use crate::operation::{Ended, News, Outcome};
use crate::peer::Peer;

impl Client {
    pub(super) fn drain(&mut self) {
        self.drain_all();
        self.after_news();
    }

    /// Takes the actions of all peers over, and leaves what follows from them to the caller.
    pub(super) fn drain_all(&mut self) {
        for index in 0..self.peers.len() {
            self.drain_peer(PeerId::new(u32::try_from(index).unwrap_or(u32::MAX)));
        }
    }

    /// Takes a peer's actions over; news are put under the application's own operations.
    pub(super) fn drain_peer(&mut self, peer: PeerId) {
        while let Some(action) = self.peers.get_mut(peer.index()).and_then(Peer::poll_action) {
            match action {
                Action::Deliver(news) => self.on_news(news),
                other => self.actions.push_back(other),
            }
        }
    }

    fn on_news(&mut self, news: News) {
        match news {
            News::Ended(ended) => match self.entries.remove(&ended.operation) {
                Some(Entry::Direct(peer)) => {
                    let operation = ended.operation;
                    self.take_over_unread(operation, operation, peer);
                    self.accounts.ended(&ended);
                    self.actions.push_back(Action::Deliver(News::Ended(ended)));
                    self.accounts.flush(&mut self.actions);
                }
                Some(Entry::Part { of, peer }) => {
                    self.take_over_unread(of, ended.operation, peer);
                    self.on_part_ended(of, peer, *ended);
                }
                Some(Entry::Unsettled { .. } | Entry::Gathering(_)) | None => {}
            },
            News::Notified { operation } => {
                let operation = match self.entries.get(&operation) {
                    Some(Entry::Part { of, .. }) => *of,
                    _ => operation,
                };
                self.actions
                    .push_back(Action::Deliver(News::Notified { operation }));
            }
            News::PeerChanged { .. } => {
                self.names.invalidate();
                self.actions.push_back(Action::Deliver(news));
            }
            News::Progress { .. }
            | News::InputNeeded { .. }
            | News::InputWithdrawn { .. }
            | News::RetryQuestion(_)
            | News::StreamUpdate { .. }
            | News::OpenSource { .. }
            | News::CloseSource { .. }
            | News::Log(_)
            | News::Closed => self.actions.push_back(Action::Deliver(news)),
        }
    }

    /// What follows from news once a peer is drained: settled peers let operations be routed, closed
    /// ones let the client end.
    pub(super) fn after_news(&mut self) {
        if self.phase == Phase::Open && !self.unsettled.is_empty() {
            self.route_unsettled();
        }
        if self.phase == Phase::Closing
            && self.peers.iter().all(Peer::is_closed)
            && self.accounts.may_close(self.now)
        {
            self.phase = Phase::Closed;
            self.actions.push_back(Action::Deliver(News::Closed));
        }
    }

    /// The end of an operation that no single peer served.
    pub(super) fn end(&mut self, operation: OperationId, outcome: Outcome) {
        self.entries.remove(&operation);
        self.deadlines.retain(|(_, ends)| *ends != operation);
        let ended = Ended {
            operation,
            peer: None,
            tool: None,
            outcome,
        };
        self.actions
            .push_back(Action::Deliver(News::Ended(Box::new(ended))));
    }
}
