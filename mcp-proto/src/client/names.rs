//! Canonical names of tools (R80, R81).

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::catalog::{Catalog, ResolveError, Source};
use crate::error::{Cause, Error, FailedPeers};
use crate::ids::PeerId;
use crate::nearest::nearest;
use crate::peer::Peer;
use crate::types::Tool;

/// The catalog of all tools, built when it is asked for and kept until a manifest changes.
#[derive(Debug, Default)]
pub(super) struct ToolNames {
    catalog: Option<Catalog>,
}

impl ToolNames {
    pub(super) fn invalidate(&mut self) {
        self.catalog = None;
    }

    /// The peer that has a tool. The name becomes the peer's own.
    pub(super) fn resolve(&mut self, peers: &[Peer], name: &mut String) -> Result<PeerId, Error> {
        resolve(
            self.catalog.get_or_insert_with(|| tool_catalog(peers)),
            name,
        )
    }
}

/// The catalog of the tools of all peers.
pub(super) fn tool_catalog(peers: &[Peer]) -> Catalog {
    let known = peers.iter().filter(|peer| peer.knows_tools());
    let lists = known.map(|peer| (peer.id(), taken(peer)));
    catalog::<&str>(peers, lists)
}

/// The names that a peer's tools take up, those of quarantined ones included: nobody slips into their place.
fn taken(peer: &Peer) -> Vec<&str> {
    let callable = peer.tools().iter().map(Tool::name);
    callable.chain(peer.quarantined_names()).collect()
}

/// A catalog of what some of the peers have; the names of the others are reserved.
pub(super) fn catalog<S: AsRef<str>>(
    peers: &[Peer],
    lists: impl Iterator<Item = (PeerId, Vec<S>)>,
) -> Catalog {
    let lists: Vec<(PeerId, Vec<S>)> = lists.collect();
    let sources: Vec<Source<'_, S>> = peers
        .iter()
        .map(|peer| match lists.iter().find(|(id, _)| *id == peer.id()) {
            Some((id, names)) => Source::new(*id, peer.name(), names),
            None => Source::unknown(peer.id(), peer.name()),
        })
        .collect();
    Catalog::build(&sources)
}

/// Where a name leads. A name that is qualified with a peer whose list is not known leads to that peer,
/// which then says why.
///
/// The name becomes the peer's own.
pub(super) fn resolve(catalog: &Catalog, name: &mut String) -> Result<PeerId, Error> {
    let (peer, own) = match catalog.resolve(name) {
        Ok(route) if route.item == *name => return Ok(route.peer),
        Ok(route) => (route.peer, route.item.into()),
        Err(ResolveError::NotListed { peer, item }) => (peer, item),
        Err(error) => {
            let cause = error.into_tool_cause(name);
            let unknown = || Cause::ToolNotFound {
                tool: name.clone(),
                suggestion: None,
                failed: Box::default(),
            };
            return Err(Error::general(cause.unwrap_or_else(unknown)));
        }
    };
    *name = own;
    Ok(peer)
}

/// The error with the peers that may have what was not found, but could not be asked: they failed. When no
/// peer is left, that is the error. What is qualified concerns one peer alone, which was asked, or is none.
pub(super) fn with_failed_peers(peers: &[Peer], mut error: Error) -> Error {
    let (Cause::ToolNotFound {
        tool: name,
        suggestion,
        failed,
    }
    | Cause::NotListed {
        name,
        suggestion,
        failed,
        ..
    }) = &mut error.cause
    else {
        return error;
    };
    if let Some((prefix, own)) = qualified(name).filter(|_| !peers.is_empty()) {
        let known = || peers.iter().map(Peer::name);
        if suggestion.is_some() || known().any(|peer| peer == prefix) {
            return error;
        }
        let mut advice = match nearest(prefix, known()) {
            Some(near) => {
                format!("no server is named {prefix:?}; write \"{near}/{own}\" if that was meant")
            }
            None => {
                let known: Vec<&str> = known().collect();
                let known = known.join(", ");
                format!("no server is named {prefix:?}; configured: {known}")
            }
        };
        // Names may have slashes themselves.
        let down = peers.iter().filter(|peer| peer.failure().is_some());
        let down: Vec<&str> = down.map(Peer::name).collect();
        if !down.is_empty() {
            let down = down.join(", ");
            advice.push_str(&format!("; it may also be of a server that failed: {down}"));
        }
        return error.advise(&advice);
    }
    **failed = failed_peers(peers);
    if failed.is_all() {
        error.cause = Cause::NoPeer(core::mem::take(failed));
    }
    error
}

/// The prefix of a name that has one, and the rest. What a URI begins with is its scheme.
fn qualified(name: &str) -> Option<(&str, &str)> {
    name.split_once('/')
        .filter(|(prefix, _)| !prefix.is_empty() && !prefix.contains(':'))
}

/// The peers that failed. The listing alone may have; then the peer is asked, but what it has is unknown.
pub(super) fn failed_peers(peers: &[Peer]) -> FailedPeers {
    FailedPeers::new(peers.iter().filter_map(Peer::failure), peers.len())
}
