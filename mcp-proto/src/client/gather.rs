//! Operations that several peers work for: lists of all peers, listening to all peers, and finding
//! out whose a resource or a prompt is.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Client, Entry, names};
use crate::catalog::Catalog;
use crate::error::{Cause, Error};
use crate::ids::{OperationId, PeerId};
use crate::operation::{Ended, Listed, Operation, Options, Outcome, Reply, Request};
use crate::time::Instant;

/// What the parts are for.
#[derive(Debug)]
enum Purpose {
    /// One list of all.
    List(Request),
    /// Listening to all.
    Listen,
    /// The owner of a resource or prompt.
    Route(Operation),
}

/// An operation whose parts are under way.
#[derive(Debug)]
pub(super) struct Gathering {
    purpose: Purpose,
    outstanding: usize,
    replies: Vec<(PeerId, Reply)>,
    notifications: u64,
}

impl Gathering {
    pub(super) const fn is_listening(&self) -> bool {
        matches!(self.purpose, Purpose::Listen)
    }
}

impl Client {
    /// Finds the peer of an operation under canonical names. All peers have settled.
    pub(super) fn route(
        &mut self,
        id: OperationId,
        mut operation: Operation,
        call_index: Option<u64>,
        now: Instant,
    ) -> Result<(), Error> {
        match &mut operation.request {
            Request::Settle => self.end(id, Outcome::Complete(Reply::Settled)),
            Request::CallTool(call) => {
                let peer = self.names.resolve(&self.peers, &mut call.tool)?;
                return self.hand_over(id, peer, operation, call_index, now);
            }
            Request::ListTools
            | Request::ListResources
            | Request::ListResourceTemplates
            | Request::ListPrompts => {
                let (request, options) = (operation.request, operation.options);
                self.gather(id, Purpose::List(request.clone()), &request, &options, now);
            }
            Request::Listen => {
                let options = operation.options;
                self.gather(id, Purpose::Listen, &Request::Listen, &options, now);
            }
            Request::ReadResource { .. } | Request::GetPrompt { .. } => {
                let list = match operation.request {
                    Request::GetPrompt { .. } => Request::ListPrompts,
                    _ => Request::ListResources,
                };
                // What belongs to the operation itself goes with no other (R30).
                let options = Options {
                    idle_timeout: operation.options.idle_timeout,
                    absolute_timeout: operation.options.absolute_timeout,
                    ..Options::default()
                };
                self.gather(id, Purpose::Route(operation), &list, &options, now);
            }
            Request::Complete { .. } => {
                let mut ready = self.peers.iter().filter(|peer| peer.is_ready());
                let (Some(peer), None) = (ready.next(), ready.next()) else {
                    let message =
                        String::from("a completion needs the name of the peer it is asked of");
                    return Err(Error::general(Cause::Usage(message)));
                };
                let peer = peer.id();
                return self.hand_over(id, peer, operation, call_index, now);
            }
        }
        Ok(())
    }

    /// Starts the same request on every peer that is ready.
    fn gather(
        &mut self,
        id: OperationId,
        purpose: Purpose,
        request: &Request,
        options: &Options,
        now: Instant,
    ) {
        let ready: Vec<PeerId> = self
            .peers
            .iter()
            .filter(|peer| peer.is_ready())
            .map(crate::peer::Peer::id)
            .collect();
        let gathering = Gathering {
            purpose,
            outstanding: ready.len(),
            replies: Vec::new(),
            notifications: 0,
        };
        self.entries
            .insert(id, Entry::Gathering(Box::new(gathering)));
        for peer in ready {
            let part = self.next_operation();
            let submitted = self
                .peer_mut(peer)
                .map(|machine| machine.submit(part, request.clone(), options.clone(), None, now));
            match submitted {
                Some(Ok(())) => {
                    self.entries.insert(part, Entry::Part { of: id, peer });
                }
                Some(Err(_)) | None => self.count_part(id),
            }
        }
        for peer in 0..self.peers.len() {
            self.drain_peer(PeerId::new(u32::try_from(peer).unwrap_or(u32::MAX)));
        }
        self.complete_gathering(id);
    }

    fn count_part(&mut self, id: OperationId) {
        if let Some(Entry::Gathering(gathering)) = self.entries.get_mut(&id) {
            gathering.outstanding = gathering.outstanding.saturating_sub(1);
        }
    }

    /// A part has ended. One that failed is left out: one peer never harms another (R2).
    pub(super) fn on_part_ended(&mut self, of: OperationId, peer: PeerId, ended: Ended) {
        self.count_part(of);
        if let Some(Entry::Gathering(gathering)) = self.entries.get_mut(&of) {
            match ended.outcome {
                Outcome::Complete(Reply::Listened { notifications }) => {
                    gathering.notifications = gathering.notifications.saturating_add(notifications);
                }
                Outcome::Complete(reply) => gathering.replies.push((peer, reply)),
                Outcome::InputRequired(_) | Outcome::Failed(_) => {}
            }
        }
        self.complete_gathering(of);
    }

    fn complete_gathering(&mut self, id: OperationId) {
        match self.entries.get(&id) {
            Some(Entry::Gathering(gathering)) if gathering.outstanding == 0 => {}
            _ => return,
        }
        let Some(Entry::Gathering(mut gathering)) = self.entries.remove(&id) else {
            return;
        };
        gathering.replies.sort_by_key(|(peer, _)| *peer);
        match gathering.purpose {
            Purpose::Listen => {
                let notifications = gathering.notifications;
                self.end(id, Outcome::Complete(Reply::Listened { notifications }));
            }
            Purpose::List(list) => {
                let reply = self.merge(&list, gathering.replies);
                self.end(id, Outcome::Complete(reply));
            }
            Purpose::Route(operation) => {
                if let Err(error) = self.route_by_list(id, operation, &gathering.replies) {
                    self.end(id, Outcome::Failed(error));
                }
            }
        }
    }

    /// One list under canonical names, sorted by them.
    fn merge(&self, list: &Request, replies: Vec<(PeerId, Reply)>) -> Reply {
        let catalog = self.catalog_of(&replies);
        match list {
            Request::ListResources => {
                Reply::Resources(merged(replies, &catalog, |reply| match reply {
                    Reply::Resources(list) => list,
                    _ => Vec::new(),
                }))
            }
            Request::ListResourceTemplates => {
                Reply::ResourceTemplates(merged(replies, &catalog, |reply| match reply {
                    Reply::ResourceTemplates(list) => list,
                    _ => Vec::new(),
                }))
            }
            Request::ListPrompts => {
                Reply::Prompts(merged(replies, &catalog, |reply| match reply {
                    Reply::Prompts(list) => list,
                    _ => Vec::new(),
                }))
            }
            _ => Reply::Tools(merged(replies, &catalog, |reply| match reply {
                Reply::Tools(list) => list,
                _ => Vec::new(),
            })),
        }
    }

    fn catalog_of(&self, replies: &[(PeerId, Reply)]) -> Catalog {
        names::catalog(
            &self.peers,
            replies
                .iter()
                .map(|(peer, reply)| (*peer, own_names(reply))),
        )
    }

    fn route_by_list(
        &mut self,
        id: OperationId,
        mut operation: Operation,
        replies: &[(PeerId, Reply)],
    ) -> Result<(), Error> {
        let catalog = self.catalog_of(replies);
        let name = match &mut operation.request {
            Request::ReadResource { uri } => uri,
            Request::GetPrompt { name, .. } => name,
            _ => return Ok(()),
        };
        let peer = match names::resolve(&catalog, name) {
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

    /// The parts of an operation.
    pub(super) fn parts_of(&self, operation: OperationId) -> Vec<(OperationId, PeerId)> {
        self.entries
            .iter()
            .filter_map(|(part, entry)| match entry {
                Entry::Part { of, peer } if *of == operation => Some((*part, *peer)),
                _ => None,
            })
            .collect()
    }

    /// Stops the parts of an operation whose end nobody awaits any more.
    pub(super) fn drop_parts(&mut self, operation: OperationId, now: Instant) {
        let parts = self.forget_parts(operation);
        for (part, peer) in parts {
            self.with_peer(peer, |peer| peer.cancel(part, now));
        }
    }

    pub(super) fn forget_parts(&mut self, operation: OperationId) -> Vec<(OperationId, PeerId)> {
        let parts = self.parts_of(operation);
        for (part, _) in &parts {
            self.entries.remove(part);
        }
        parts
    }
}

fn own_names(reply: &Reply) -> Vec<&str> {
    match reply {
        Reply::Tools(list) => list.iter().map(|listed| listed.name.as_str()).collect(),
        Reply::Resources(list) => list.iter().map(|listed| listed.name.as_str()).collect(),
        Reply::ResourceTemplates(list) => list.iter().map(|listed| listed.name.as_str()).collect(),
        Reply::Prompts(list) => list.iter().map(|listed| listed.name.as_str()).collect(),
        _ => Vec::new(),
    }
}

/// The lists of all peers as one, under canonical names and sorted by them.
fn merged<T>(
    replies: Vec<(PeerId, Reply)>,
    catalog: &Catalog,
    list: impl Fn(Reply) -> Vec<Listed<T>>,
) -> Vec<Listed<T>> {
    let mut all: Vec<Listed<T>> = replies
        .into_iter()
        .flat_map(|(_, reply)| list(reply))
        .map(
            |listed| match catalog.canonical(listed.peer, &listed.name) {
                Some(name) => Listed {
                    name: name.into(),
                    ..listed
                },
                None => listed,
            },
        )
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}
