//! Operations that wait until it is known where they go.

use alloc::boxed::Box;

use super::{Client, Entry};
use crate::error::{Cause, Error};
use crate::ids::{OperationId, PeerId};
use crate::limits::Limits;
use crate::operation::{Operation, Outcome, Request};
use crate::peer::{Context, Peer};

/// What an operation waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// That its peer has settled, or every peer.
    Settled,
    /// That no peer reads its manifest any more.
    Listed,
}

impl Client {
    /// Keeps an operation until it is known where it goes.
    ///
    /// # Errors
    /// [`Cause::Limit`]: as many wait as the peers together would take.
    pub(super) fn postpone(
        &mut self,
        id: OperationId,
        operation: Operation,
        call_index: Option<u64>,
        until: Until,
    ) -> Result<(), Error> {
        let limits = self.peers.iter().map(|peer| &peer.config().limits);
        let room = |limits: &Limits| limits.queued.saturating_add(limits.in_flight);
        let max = limits.map(room).fold(0_usize, usize::saturating_add);
        if self.unsettled.len() >= max {
            return Err(Error::general(Cause::Limit {
                what: "the number of operations that wait for servers to be ready".into(),
                setting: "maxInFlight",
                max: max as u64,
            }));
        }
        self.unsettled.push(id);
        let operation = Box::new(operation);
        self.entries.insert(
            id,
            Entry::Unsettled {
                operation,
                call_index,
                until,
                context: Context::current(),
            },
        );
        Ok(())
    }

    /// Whether it can be known where an operation under a canonical name goes: when all peers have settled, or
    /// the one whose name stands before it. That prefix is its own, whatever others turn out to have.
    pub(super) fn may_route(&self, request: &Request) -> bool {
        let name = match request {
            Request::CallTool(call) => call.tool.as_str(),
            Request::ReadResource { uri: name } | Request::GetPrompt { name, .. } => name.as_str(),
            _ => "",
        };
        let prefix = name.split_once('/').map(|(prefix, _)| prefix);
        let peer = prefix.and_then(|prefix| self.by_name.get(prefix));
        self.is_settled() || peer.is_some_and(|peer| self.peer_is_settled(*peer))
    }

    pub(super) fn peer_is_settled(&self, peer: PeerId) -> bool {
        self.peers.get(peer.index()).is_none_or(Peer::is_settled)
    }

    /// Hands out, in their order, the operations that wait and need not any longer: those of one peer
    /// when it has settled, the others when all have.
    pub(super) fn route_unsettled(&mut self) {
        for id in core::mem::take(&mut self.unsettled) {
            // It was cancelled meanwhile.
            let Some(Entry::Unsettled {
                operation, until, ..
            }) = self.entries.get(&id)
            else {
                continue;
            };
            let named = operation.peer.as_ref();
            let peer = named.and_then(|name| self.by_name.get(name).copied());
            let held = self.accounts.holds(&operation.request);
            let is_due = match (*until, peer) {
                _ if held => false,
                (Until::Settled, Some(peer)) => self.peer_is_settled(peer),
                (Until::Settled, None) => self.may_route(&operation.request),
                (Until::Listed, _) => !self.peers.iter().any(Peer::is_listing),
            };
            if !is_due {
                self.unsettled.push(id);
                continue;
            }
            let Some(Entry::Unsettled {
                operation,
                call_index,
                context,
                ..
            }) = self.entries.remove(&id)
            else {
                continue;
            };
            let routed = context.within(|| match peer {
                Some(peer) => self.hand_over(id, peer, *operation, call_index, self.now),
                None if self.answer_with_manifests(id, &operation.request) => Ok(()),
                None => self.route_once(id, *operation, call_index, self.now),
            });
            if let Err(error) = routed {
                self.end(id, Outcome::Failed(error));
            }
        }
    }
}
