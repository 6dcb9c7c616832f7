//! Operations that several peers work for: lists of all peers, listening to all peers, and the lists that
//! say whose a resource or a prompt is.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::owner::remaining;
use super::waiting::Until;
use super::{Client, Entry, names};
use crate::catalog::Catalog;
use crate::error::{Cause, Error, Listable};
use crate::ids::{OperationId, PeerId};
use crate::operation::{Ended, Listed, Notification, Operation, Options, Outcome, Reply, Request};
use crate::peer::Peer;
use crate::time::Instant;

/// What the parts are for.
#[derive(Debug)]
pub(super) enum Purpose {
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
    pub(super) started: Instant,
    pub(super) outstanding: usize,
    pub(super) replies: Vec<(PeerId, Reply)>,
    notifications: u64,
    /// Why the first of the parts that failed did.
    failure: Option<Error>,
    /// The application has heard enough.
    finished: bool,
    /// Whose list has not come by now is not waited for, once the name is known.
    pub(super) impatient: bool,
    /// What came of parts that have ended and was not taken.
    unread: Vec<Notification>,
}

impl Gathering {
    pub(super) fn take_unread(&mut self) -> Vec<Notification> {
        core::mem::take(&mut self.unread)
    }

    pub(super) fn keep_unread(&mut self, unread: Vec<Notification>) {
        self.unread.extend(unread);
    }

    pub(super) const fn finish(&mut self) {
        self.finished = true;
    }

    /// Listening goes on until the application has heard enough or its time is over
    /// ([`Client::expire_gatherings`]), whatever becomes of single servers.
    const fn is_complete(&self) -> bool {
        self.outstanding == 0 && (self.finished || !self.is_listening())
    }

    /// What it looks for the owner of (what, and its name), if lists are late that it waits for.
    pub(super) fn overdue(&self) -> Option<(Listable, &str)> {
        let Purpose::Route(operation) = &self.purpose else {
            return None;
        };
        let subject: (Listable, &str) = match &operation.request {
            Request::ReadResource { uri } => (Listable::Resource, uri),
            Request::GetPrompt { name, .. } => (Listable::Prompt, name),
            _ => return None,
        };
        (self.impatient && self.outstanding > 0).then_some(subject)
    }

    pub(super) const fn is_listening(&self) -> bool {
        matches!(self.purpose, Purpose::Listen)
    }
}

impl Client {
    /// Finds the peer of an operation under canonical names. All peers have settled. A tool that nobody
    /// has may be one of a peer whose listing failed: that one is asked again first.
    pub(super) fn route(
        &mut self,
        id: OperationId,
        mut operation: Operation,
        call_index: Option<u64>,
        now: Instant,
    ) -> Result<(), Error> {
        let Request::CallTool(call) = &mut operation.request else {
            return self.route_once(id, operation, call_index, now);
        };
        match self.names.resolve(&self.peers, &mut call.tool) {
            Ok(peer) => self.hand_over(id, peer, operation, call_index, now),
            Err(error) if error.is_tool_not_found() && self.retry_listings(now) => {
                let postponed = self.postpone(id, operation, call_index, Until::Listed);
                self.drain_all();
                postponed
            }
            Err(error) => Err(names::with_failed_peers(&self.peers, error)),
        }
    }

    /// Reads the manifests again that could not be read; `false` when there are none.
    fn retry_listings(&mut self, now: Instant) -> bool {
        let mut any = false;
        for peer in &mut self.peers {
            any |= peer.retry_listing(now);
        }
        any
    }

    /// Answers a list of tools that was asked for before the manifests were in with what they say.
    pub(super) fn answer_with_manifests(&mut self, id: OperationId, request: &Request) -> bool {
        if *request != Request::ListTools {
            return false;
        }
        let known = self
            .peers
            .iter()
            .filter(|peer| peer.is_usable() && peer.knows_tools());
        let replies: Vec<_> = known.map(|peer| (peer.id(), peer.tools_reply())).collect();
        let answered = !replies.is_empty();
        if answered {
            let reply = self.merge(request, replies);
            self.end(id, Outcome::Complete(reply));
        }
        answered
    }

    /// The same, with what is known now.
    pub(super) fn route_once(
        &mut self,
        id: OperationId,
        mut operation: Operation,
        call_index: Option<u64>,
        now: Instant,
    ) -> Result<(), Error> {
        match &mut operation.request {
            Request::Settle => self.end(id, Outcome::Complete(Reply::Settled)),
            Request::CallTool(call) => {
                let resolved = self.names.resolve(&self.peers, &mut call.tool);
                let peer =
                    resolved.map_err(|error| names::with_failed_peers(&self.peers, error))?;
                return self.hand_over(id, peer, operation, call_index, now);
            }
            Request::ListTools
            | Request::ListResources
            | Request::ListResourceTemplates
            | Request::ListPrompts => {
                let (request, options) = (operation.request, operation.options);
                let peers = self.usable_peers();
                self.gather(
                    id,
                    Purpose::List(request.clone()),
                    peers,
                    &request,
                    &options,
                    now,
                );
            }
            Request::Listen => {
                // The time is that of the whole, not of its parts: those may have ended long before.
                let mut options = operation.options;
                if let Some(total) = options.total_timeout.take() {
                    self.deadlines.insert((now + total, id));
                }
                let peers = self.usable_peers();
                self.gather(id, Purpose::Listen, peers, &Request::Listen, &options, now);
            }
            Request::ReadResource { uri: name } | Request::GetPrompt { name, .. } => {
                if let Some(peer) = self.owner_by_prefix(name) {
                    return self.hand_over(id, peer, operation, None, now);
                }
                return self.find_owner(id, operation, now);
            }
            Request::Resume { continuation, .. } => {
                let peer = self.peer_id(&continuation.request().pin().peer)?;
                return self.hand_over(id, peer, operation, None, now);
            }
            Request::Complete { .. } => {
                let mut ready = self.peers.iter().filter(|peer| peer.is_ready());
                let (Some(peer), None) = (ready.next(), ready.next()) else {
                    let message =
                        String::from("a completion needs the name of the server it is asked of");
                    return Err(Error::general(Cause::Usage(message)));
                };
                let peer = peer.id();
                return self.hand_over(id, peer, operation, call_index, now);
            }
        }
        Ok(())
    }

    /// Every peer that can be asked.
    fn usable_peers(&self) -> Vec<PeerId> {
        self.peers
            .iter()
            .filter(|peer| peer.is_usable())
            .map(Peer::id)
            .collect()
    }

    /// Starts the same request on these peers.
    pub(super) fn gather(
        &mut self,
        id: OperationId,
        purpose: Purpose,
        peers: Vec<PeerId>,
        request: &Request,
        options: &Options,
        now: Instant,
    ) {
        let gathering = Gathering {
            purpose,
            started: now,
            outstanding: peers.len(),
            failure: None,
            finished: false,
            impatient: false,
            replies: Vec::new(),
            notifications: 0,
            unread: Vec::new(),
        };
        self.entries
            .insert(id, Entry::Gathering(Box::new(gathering)));
        for peer in peers {
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
        self.drain_all();
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
                Outcome::Failed(error) => {
                    gathering.failure.get_or_insert(error);
                }
                Outcome::InputRequired(_) => {}
            }
        }
        self.route_early(of, self.now);
        self.complete_gathering(of);
    }

    pub(super) fn complete_gathering(&mut self, id: OperationId) {
        match self.entries.get(&id) {
            Some(Entry::Gathering(gathering)) if gathering.is_complete() => {}
            _ => return,
        }
        let Some(Entry::Gathering(mut gathering)) = self.entries.remove(&id) else {
            return;
        };
        gathering.replies.sort_by_key(|(peer, _)| *peer);
        match gathering.purpose {
            Purpose::Listen => {
                let notifications = gathering.notifications;
                self.unread.keep(id, gathering.unread);
                self.end(id, Outcome::Complete(Reply::Listened { notifications }));
            }
            // One that failed is left out; when all did, "nothing" would be the wrong answer.
            Purpose::List(list) => match (gathering.replies.is_empty(), gathering.failure) {
                (true, Some(error)) => self.end(id, Outcome::Failed(error)),
                (true, None) if !self.peers.is_empty() => {
                    let cause = Cause::NoPeer(Box::new(names::failed_peers(&self.peers)));
                    self.end(id, Outcome::Failed(Error::general(cause)));
                }
                _ => {
                    let reply = self.merge(&list, gathering.replies);
                    self.end(id, Outcome::Complete(reply));
                }
            },
            Purpose::Route(mut operation) => {
                self.deadlines.retain(|(_, of)| *of != id);
                let elapsed = self.now.since(gathering.started);
                operation.options = remaining(operation.options, elapsed);
                let routed = self.route_by_list(id, operation, &gathering.replies);
                if let Err(error) = routed {
                    // Whoever could not say may be the owner.
                    let cause = gathering.failure.filter(|_| error.is_tool_not_found());
                    let error = names::with_failed_peers(&self.peers, cause.unwrap_or(error));
                    self.end(id, Outcome::Failed(error));
                }
            }
        }
    }

    /// One list under canonical names, sorted by them.
    fn merge(&self, list: &Request, replies: Vec<(PeerId, Reply)>) -> Reply {
        // Tools have the names under which they are called, also while another peer does not answer.
        let catalog = match list {
            Request::ListTools => names::tool_catalog(&self.peers),
            _ => self.catalog_of(&replies),
        };
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

    pub(super) fn catalog_of(&self, replies: &[(PeerId, Reply)]) -> Catalog {
        names::catalog(
            &self.peers,
            replies
                .iter()
                .map(|(peer, reply)| (*peer, own_names(reply))),
        )
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
