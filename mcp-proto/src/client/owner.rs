//! Finding out whose a resource or a prompt is.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::gather::Purpose;
use super::{Client, Entry, names};
use crate::catalog::ResolveError;
use crate::error::{Cause, Error, Listable};
use crate::ids::{OperationId, PeerId};
use crate::operation::{Operation, Options, Reply, Request};
use crate::peer::Peer;
use crate::time::{Duration, Instant};

/// How long the lists of other peers are waited for before one that says whose a name is settles it. A peer
/// that hangs delays reading from another one by so much; one that is only slow is not left out.
const PATIENCE: Duration = Duration::from_secs(3);

impl Client {
    /// The peer that a qualified name names; the prefix is taken off.
    pub(super) fn owner_by_prefix(&self, name: &mut String) -> Option<PeerId> {
        let (peer, own) = name.split_once('/')?;
        let peer = *self.by_name.get(peer)?;
        *name = own.into();
        Some(peer)
    }

    /// Finds the owner of a resource or prompt by the lists of those that may have it.
    pub(super) fn find_owner(
        &mut self,
        id: OperationId,
        operation: Operation,
        now: Instant,
    ) -> Result<(), Error> {
        let list = match operation.request {
            Request::GetPrompt { .. } => Request::ListPrompts,
            _ => Request::ListResources,
        };
        let usable = || self.peers.iter().filter(|peer| peer.is_usable());
        let declaring: Vec<PeerId> = usable()
            .filter(|peer| peer.declares(&list))
            .map(Peer::id)
            .collect();
        let peers = if declaring.is_empty() {
            usable().map(Peer::id).collect()
        } else {
            declaring
        };
        if let [peer] = *peers {
            return self.hand_over(id, peer, operation, None, now);
        }
        // What belongs to the operation itself goes with no other (R30).
        let options = Options {
            idle_timeout: operation.options.idle_timeout,
            absolute_timeout: operation.options.absolute_timeout,
            total_timeout: operation.options.total_timeout,
            ..Options::default()
        };
        let patience = patience(&options);
        self.gather(id, Purpose::Route(operation), peers, &list, &options, now);
        if let Some(Entry::Gathering(_)) = self.entries.get(&id) {
            self.deadlines.insert((now + patience, id));
        }
        Ok(())
    }

    /// Goes on without the lists that have not come, when they have been waited for long enough and the
    /// others say whose the name is, or that it is ambiguous. As long as they do not, whoever is late may
    /// be the owner.
    pub(super) fn route_early(&mut self, id: OperationId, now: Instant) {
        let Some(Entry::Gathering(gathering)) = self.entries.get(&id) else {
            return;
        };
        let Some((what, name)) = gathering.overdue() else {
            return;
        };
        let catalog = self.catalog_of(&gathering.replies);
        let found = catalog.resolve(name);
        if !matches!(found, Ok(_) | Err(ResolveError::Ambiguous { .. })) {
            return;
        }
        for (_, peer) in self.parts_of(id) {
            let note = format!(
                "its list of {what}s did not come in time; what others list was taken for theirs alone"
            );
            self.with_peer(peer, |peer| peer.note(note));
        }
        self.drop_parts(id, now);
        if let Some(Entry::Gathering(gathering)) = self.entries.get_mut(&id) {
            gathering.outstanding = 0;
        }
        self.complete_gathering(id);
    }

    /// Hands an operation to the peer that lists what it is about.
    pub(super) fn route_by_list(
        &mut self,
        id: OperationId,
        mut operation: Operation,
        replies: &[(PeerId, Reply)],
    ) -> Result<(), Error> {
        let catalog = self.catalog_of(replies);
        let (what, name) = match &mut operation.request {
            Request::ReadResource { uri } => (Listable::Resource, uri),
            Request::GetPrompt { name, .. } => (Listable::Prompt, name),
            _ => return Ok(()),
        };
        let peer = match names::resolve(&catalog, name).map_err(|error| of_kind(error, what)) {
            Ok(peer) => peer,
            // A server may serve what it does not list (R20 is about tools only): if there is but one
            // that could, it is asked.
            Err(error) => match (replies, error.is_tool_not_found()) {
                ([(peer, _)], true) => *peer,
                _ => return Err(error),
            },
        };
        self.hand_over(id, peer, operation, None, self.now)
    }
}

/// The time for waiting: of an operation that is in a hurry, half of what it has.
fn patience(options: &Options) -> Duration {
    [options.absolute_timeout, options.total_timeout]
        .into_iter()
        .flatten()
        .fold(PATIENCE, |patience, limit| patience.min(limit / 2))
}

/// The error about a tool as one about a resource or prompt.
fn of_kind(mut error: Error, what: Listable) -> Error {
    error.cause = match error.cause {
        Cause::ToolNotFound {
            tool: name,
            suggestion,
            failed,
        } => Cause::NotListed {
            what,
            name,
            suggestion,
            failed,
        },
        Cause::AmbiguousTool {
            tool: name,
            canonical,
        } => Cause::Ambiguous {
            what,
            name,
            canonical,
        },
        other => other,
    };
    error
}

/// What is left of an operation's time after its first part took this long.
pub(super) fn remaining(options: Options, elapsed: Duration) -> Options {
    let less = |limit: Option<Duration>| limit.map(|limit| limit.saturating_sub(elapsed));
    Options {
        absolute_timeout: less(options.absolute_timeout),
        total_timeout: less(options.total_timeout),
        ..options
    }
}
