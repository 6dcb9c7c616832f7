//! One list of names over many peers, and the way back from a name to its owner (R80, R81).
//!
//! A [`Catalog`] is a pure function of the peers and the names of their items; tools and prompts (by
//! name) and resources (by URI) each have one. It is rebuilt whenever a list changes.
//!
//! The rules of [`MergePolicy::PrefixOnCollision`]:
//!
//! - A name that one peer has is canonical as it is.
//! - A name that several peers have is qualified for each of them, as `<peer>/<name>`, and leads
//!   nowhere by itself.
//! - A name that begins with the name of a peer and `/` is qualified too, whoever has it. So
//!   `<peer>/<name>` always means that peer and nobody else: a server cannot take over another one's
//!   calls by calling its own tool `bank/transfer`, not even while `bank` is down.
//! - `<peer>/<name>` is accepted for every item, canonical or not.
//!
//! No peer's name holds a `/`, hence a qualified name has one reading, and no bare name that is
//! canonical looks like one: canonical names are unique by construction.
//!
//! ```
//! use mcp_proto::PeerId;
//! use mcp_proto::catalog::{Catalog, ResolveError, Source};
//!
//! let (git, web) = (PeerId::new(0), PeerId::new(1));
//! let catalog = Catalog::build(&[
//!     Source::new(git, "git", &["diff", "search"]),
//!     Source::new(web, "web", &["search"]),
//! ]);
//! assert_eq!(catalog.names().collect::<Vec<_>>(), ["diff", "git/search", "web/search"]);
//! assert_eq!(catalog.resolve("web/search").unwrap().peer, web);
//! assert_eq!(catalog.resolve("git/diff").unwrap().item, "diff");
//! assert!(matches!(catalog.resolve("search"), Err(ResolveError::Ambiguous { .. })));
//! ```

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::config::MergePolicy;
use crate::error::Cause;
use crate::ids::PeerId;
use crate::nearest::nearest;

/// What one peer brings into a catalog.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a, S> {
    /// The peer.
    pub peer: PeerId,
    /// Its configured name: unique, and without `/`.
    pub name: &'a str,
    /// The names of its items, in any order, or `None` while its list is not known.
    pub items: Option<&'a [S]>,
}

impl<'a, S> Source<'a, S> {
    /// A peer whose list is known.
    #[must_use]
    pub const fn new(peer: PeerId, name: &'a str, items: &'a [S]) -> Self {
        Self {
            peer,
            name,
            items: Some(items),
        }
    }

    /// A peer whose list is not known (yet): its name is reserved all the same.
    #[must_use]
    pub const fn unknown(peer: PeerId, name: &'a str) -> Self {
        Self {
            peer,
            name,
            items: None,
        }
    }
}

/// Canonical names and their owners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    /// Sorted by canonical name.
    entries: Vec<Entry>,
    /// Sorted by name.
    peers: Vec<Peer>,
    /// Sorted by name.
    collisions: Vec<Collision>,
    policy: MergePolicy,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    canonical: String,
    /// How many bytes of `canonical` come before the peer's own name of the item.
    prefix: usize,
    peer: PeerId,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Peer {
    name: String,
    id: PeerId,
    listed: bool,
}

/// A bare name that is not canonical, because several peers have it or because it belongs to another
/// peer's qualified names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collision {
    /// The bare name.
    pub name: String,
    /// The names of the peers that have an item of this name, sorted.
    pub owners: Vec<String>,
    /// The canonical names of these items, in the order of `owners`.
    pub canonical: Vec<String>,
}

/// Where a name leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Route<'a> {
    /// The peer that has the item.
    pub peer: PeerId,
    /// The peer's own name of it.
    pub item: &'a str,
    /// The item's canonical name.
    pub canonical: &'a str,
}

/// Why a name leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// Several peers have an item of this name.
    #[error("ambiguous: {}", .canonical.join(", "))]
    Ambiguous {
        /// The names to use instead, sorted.
        canonical: Vec<String>,
    },
    /// The name is qualified with a peer whose list is not known (yet).
    #[error("the peer's list is not known")]
    NotListed {
        /// The peer.
        peer: PeerId,
        /// The peer's own name of the item, if it has it.
        item: String,
    },
    /// Nobody has an item of this name.
    #[error("unknown")]
    Unknown {
        /// The nearest name that exists.
        suggestion: Option<String>,
    },
}

impl ResolveError {
    /// The error of a call to a tool of this name; `None` for [`ResolveError::NotListed`], whose
    /// meaning depends on the state of the peer.
    #[must_use]
    pub fn into_tool_cause(self, tool: &str) -> Option<Cause> {
        let tool = tool.to_owned();
        match self {
            Self::Ambiguous { canonical } => Some(Cause::AmbiguousTool { tool, canonical }),
            Self::NotListed { .. } => None,
            Self::Unknown { suggestion } => Some(Cause::ToolNotFound {
                tool,
                suggestion,
                failed: Box::default(),
            }),
        }
    }
}

impl Catalog {
    /// Builds the catalog. The order of the peers and of their items changes nothing.
    ///
    /// Costs a sort of all names. Names that one peer has twice count once; the manifest drops them.
    #[must_use]
    pub fn build<S: AsRef<str>>(sources: &[Source<'_, S>]) -> Self {
        let mut sorted: Vec<&Source<'_, S>> = sources.iter().collect();
        sorted.sort_by(|a, b| (a.name, a.peer).cmp(&(b.name, b.peer)));
        let mut items: Vec<(&str, &Source<'_, S>)> = Vec::new();
        for source in &sorted {
            let names = source.items.unwrap_or_default().iter();
            items.extend(names.map(|item| (item.as_ref(), *source)));
        }
        items.sort_by(|a, b| (a.0, a.1.name, a.1.peer).cmp(&(b.0, b.1.name, b.1.peer)));
        items.dedup_by(|a, b| a.0 == b.0 && a.1.peer == b.1.peer);

        let mut catalog = Self {
            entries: Vec::with_capacity(items.len()),
            peers: sorted.iter().map(|source| Peer::of(source)).collect(),
            collisions: Vec::new(),
            policy: MergePolicy::PrefixOnCollision,
        };
        for owners in items.chunk_by(|a, b| a.0 == b.0) {
            catalog.add(owners);
        }
        catalog
            .entries
            .sort_by(|a, b| a.canonical.cmp(&b.canonical));
        catalog
    }

    /// Where a canonical name, or any `<peer>/<name>`, leads.
    ///
    /// # Errors
    /// [`ResolveError`], which tells ambiguous, not listed and unknown apart.
    pub fn resolve(&self, name: &str) -> Result<Route<'_>, ResolveError> {
        if let Some(entry) = self.entry(name) {
            return Ok(entry.route());
        }
        let qualified = name
            .split_once('/')
            .and_then(|(peer, item)| Some((self.peer(peer)?, item)));
        if let Some((peer, item)) = qualified {
            // Not canonical, so the bare name is, if the peer has the item at all.
            if let Some(entry) = self.entry(item).filter(|entry| entry.is(peer.id, item)) {
                return Ok(entry.route());
            }
            if !peer.listed {
                let (peer, item) = (peer.id, item.to_owned());
                return Err(ResolveError::NotListed { peer, item });
            }
        }
        match self.collision(name) {
            Some(collision) if collision.canonical.len() > 1 => Err(ResolveError::Ambiguous {
                canonical: collision.canonical.clone(),
            }),
            Some(collision) => Err(ResolveError::Unknown {
                suggestion: collision.canonical.first().cloned(),
            }),
            None => Err(ResolveError::Unknown {
                suggestion: self.suggestion(name, qualified),
            }),
        }
    }

    /// Every canonical name, sorted.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.entries.iter().map(|entry| entry.canonical.as_str())
    }

    /// Every item, sorted by canonical name.
    pub fn routes(&self) -> impl ExactSizeIterator<Item = Route<'_>> {
        self.entries.iter().map(Entry::route)
    }

    /// The canonical name of a peer's item.
    #[must_use]
    pub fn canonical(&self, peer: PeerId, item: &str) -> Option<&str> {
        let bare = self.entry(item).filter(|entry| entry.is(peer, item));
        let entry = bare.or_else(|| {
            let name = &self.peers.iter().find(|known| known.id == peer)?.name;
            self.entry(&format!("{name}/{item}"))
        })?;
        Some(&entry.canonical)
    }

    /// The bare names that are not canonical, sorted.
    #[must_use]
    pub fn collisions(&self) -> &[Collision] {
        &self.collisions
    }

    /// The rules by which names were merged.
    #[must_use]
    pub const fn merge_policy(&self) -> MergePolicy {
        self.policy
    }

    /// Adds the items of one bare name.
    fn add<S>(&mut self, owners: &[(&str, &Source<'_, S>)]) {
        let Some((name, first)) = owners.first() else {
            return;
        };
        let reserved = name
            .split_once('/')
            .is_some_and(|(peer, _)| self.peer(peer).is_some());
        if owners.len() == 1 && !reserved {
            self.entries.push(Entry {
                canonical: (*name).to_owned(),
                prefix: 0,
                peer: first.peer,
            });
            return;
        }
        let mut collision = Collision {
            name: (*name).to_owned(),
            owners: Vec::with_capacity(owners.len()),
            canonical: Vec::with_capacity(owners.len()),
        };
        for (_, owner) in owners {
            let canonical = format!("{}/{name}", owner.name);
            collision.owners.push(owner.name.to_owned());
            collision.canonical.push(canonical.clone());
            self.entries.push(Entry {
                canonical,
                prefix: owner.name.len() + 1,
                peer: owner.peer,
            });
        }
        // The names come sorted, so the collisions are sorted too.
        self.collisions.push(collision);
    }

    fn entry(&self, canonical: &str) -> Option<&Entry> {
        let found = self
            .entries
            .binary_search_by(|entry| entry.canonical.as_str().cmp(canonical));
        self.entries.get(found.ok()?)
    }

    fn peer(&self, name: &str) -> Option<&Peer> {
        let found = self
            .peers
            .binary_search_by(|peer| peer.name.as_str().cmp(name));
        self.peers.get(found.ok()?)
    }

    fn collision(&self, name: &str) -> Option<&Collision> {
        let found = self
            .collisions
            .binary_search_by(|collision| collision.name.as_str().cmp(name));
        self.collisions.get(found.ok()?)
    }

    /// The nearest name: among the items of the peer that the name is qualified with, else among all.
    fn suggestion(&self, name: &str, qualified: Option<(&Peer, &str)>) -> Option<String> {
        let Some((peer, item)) = qualified else {
            let bare = self
                .collisions
                .iter()
                .map(|collision| collision.name.as_str());
            return nearest(name, self.names().chain(bare)).map(ToOwned::to_owned);
        };
        let own = self.entries.iter().filter(|entry| entry.peer == peer.id);
        let near = nearest(item, own.map(|entry| entry.route().item))?;
        Some(format!("{}/{near}", peer.name))
    }
}

impl Entry {
    fn route(&self) -> Route<'_> {
        Route {
            peer: self.peer,
            item: self.canonical.get(self.prefix..).unwrap_or_default(),
            canonical: &self.canonical,
        }
    }

    fn is(&self, peer: PeerId, item: &str) -> bool {
        self.peer == peer && self.route().item == item
    }
}

impl Peer {
    fn of<S>(source: &Source<'_, S>) -> Self {
        Self {
            name: source.name.to_owned(),
            id: source.peer,
            listed: source.items.is_some(),
        }
    }
}

#[cfg(test)]
mod tests;
