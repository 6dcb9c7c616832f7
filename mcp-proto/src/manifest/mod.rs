//! What tools a peer has: all pages, replaced as a whole, with digests (R20–R22).
//!
//! [`Listing`] fetches a list of any kind page by page; [`Manifest`] holds the tools that came of it.
//! Neither sends anything: the caller sends what [`Step`] says and brings back the answer.
//!
//! ```
//! use mcp_proto::manifest::{Listing, Manifest, Step};
//! use mcp_proto::{Instant, Limits, wire::{Json, Members}};
//!
//! let mut manifest = Manifest::new();
//! let listing = manifest.begin(&Limits::default()); // send tools/list without a cursor
//! let tools = Json::parse(r#"[{"name":"echo","inputSchema":{}}]"#)?;
//! let mut result = Members::default();
//! result.insert("tools".into(), tools.as_raw());
//! match listing.on_page(&result, Instant::ZERO) {
//!     Step::Next { .. } => unreachable!("there was no nextCursor"),
//!     Step::Done(list) => _ = manifest.install(list, |_| None),
//!     Step::Failed(fault) => panic!("{fault}"),
//! }
//! assert!(manifest.contains("echo"));
//! # Ok::<(), mcp_proto::wire::InvalidJson>(())
//! ```

mod digest;
mod listing;
mod references;

pub use listing::{List, Listing, Step};

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;

use crate::limits::Limits;
use crate::time::Instant;
use crate::types::object::Quoted;
use crate::types::{CacheScope, Entry, Tool};
use crate::violation::{Fault, Violation};
use references::References;

/// The tools of one peer.
///
/// Unknown until the first list is [installed](Self::install). A refresh that fails is simply not
/// installed, so that the last good list stays in force.
#[derive(Clone, Debug, Default)]
pub struct Manifest {
    /// Counts invalidations, so that a list says whether it was asked for before or after one.
    generation: u64,
    contents: Option<Contents>,
}

#[derive(Clone, Debug)]
struct Contents {
    generation: u64,
    /// The callable ones, by name.
    tools: Vec<Tool>,
    rejected: Vec<Rejected>,
    digest: String,
    fresh_until: Instant,
    scope: CacheScope,
}

/// A tool that stands in the server's list and was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rejected {
    /// The server's name of it.
    pub name: String,
    /// Why: a fault of the server where it broke the protocol, else one sentence.
    pub reason: Rejection,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tool {} is left out: ", Quoted(&self.name))?;
        match &self.reason {
            Rejection::Duplicate(fault) => fault.fmt(f),
            Rejection::ExternalReference(words) | Rejection::Refused(words) => f.write_str(words),
        }
    }
}

/// Why a tool was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejection {
    /// Several tools have the name; none of them can be called (R22).
    Duplicate(Fault),
    /// A schema refers to something outside of itself, which this client never fetches.
    ExternalReference(String),
    /// The caller of [`Manifest::install`] said so.
    Refused(String),
}

/// What an installed list changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Installed {
    /// Nothing: a list that was asked for later is installed already.
    Superseded,
    /// The list is in force.
    Replaced(Changes),
}

/// How the callable tools differ from those before, by name, each list sorted (R21).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changes {
    /// New ones; all of them the first time.
    pub added: Vec<String>,
    /// Those that are gone.
    pub removed: Vec<String>,
    /// Those whose descriptor is another one, in whatever member. Writing the same value differently
    /// (order of members, white space) is no change.
    pub changed: Vec<String>,
}

impl Changes {
    /// Whether the tools are the same as before.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

impl Manifest {
    /// The manifest of a peer that was not asked yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            generation: 0,
            contents: None,
        }
    }

    /// Starts to fetch the list. May be called again at any time; each fetch is independent.
    #[must_use]
    pub fn begin(&self, limits: &Limits) -> Listing<Tool> {
        Listing::start(self.generation, limits)
    }

    /// Puts a complete list in force, all of it at once.
    ///
    /// A list that was asked for before the last [invalidation](Self::invalidate) is no older than
    /// what it replaces, so it is installed, but it is never fresh (R70). `refuse` may leave out more
    /// tools and says why; it is asked for each tool that is otherwise callable.
    pub fn install(
        &mut self,
        list: List<Tool>,
        refuse: impl FnMut(&Tool) -> Option<String>,
    ) -> Installed {
        let newer = |contents: &Contents| contents.generation > list.generation;
        if self.contents.as_ref().is_some_and(newer) {
            return Installed::Superseded;
        }
        let contents = Contents::new(list, refuse);
        let changes = changes(self.tools(), &contents.tools);
        self.contents = Some(contents);
        Installed::Replaced(changes)
    }

    /// Makes a tool callable that was [refused](Rejection::Refused) when the list was installed. Another one
    /// is ignored.
    pub fn admit(&mut self, tool: Tool) {
        let Some(contents) = &mut self.contents else {
            return;
        };
        let is_it = |rejected: &Rejected| {
            rejected.name == tool.name() && matches!(rejected.reason, Rejection::Refused(_))
        };
        let (rejected, tools) = (&mut contents.rejected, &mut contents.tools);
        if let Some(position) = rejected.iter().position(is_it)
            && let Err(place) = tools.binary_search_by(|other| other.name().cmp(tool.name()))
        {
            rejected.remove(position);
            tools.insert(place, tool);
        }
    }

    /// Says that the list changed: what is known stays in force and is no longer fresh.
    pub const fn invalidate(&mut self) {
        self.generation += 1;
    }

    /// Forgets the list, as when the peer is another one now.
    pub fn clear(&mut self) {
        self.invalidate();
        self.contents = None;
    }

    /// Whether a list was ever installed; an empty one counts.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        self.contents.is_some()
    }

    /// Whether the list was said to have changed since the one in force was asked for.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        let contents = self.contents.as_ref();
        contents.is_some_and(|contents| contents.generation != self.generation)
    }

    /// Whether the list may be used without asking again.
    #[must_use]
    pub fn fresh_at(&self, now: Instant) -> bool {
        self.contents.as_ref().is_some_and(|contents| {
            contents.generation == self.generation && now < contents.fresh_until
        })
    }

    /// The callable tools, sorted by name. Empty while nothing is known.
    #[must_use]
    pub fn tools(&self) -> &[Tool] {
        match &self.contents {
            Some(contents) => &contents.tools,
            None => &[],
        }
    }

    /// The callable tool of this name; takes logarithmic time.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        let tools = self.tools();
        let at = tools.binary_search_by(|tool| tool.name().cmp(name)).ok()?;
        tools.get(at)
    }

    /// Whether a callable tool has this name.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.tool(name).is_some()
    }

    /// The digest of everything that the server listed, tools that were left out included: SHA-256 in
    /// lower-case hex over the canonical JSON of the entries sorted by name (R21). `None` while
    /// nothing is known.
    #[must_use]
    pub fn digest(&self) -> Option<&str> {
        self.contents.as_ref().map(|contents| &*contents.digest)
    }

    /// The digest of one callable tool, made in the same way from its entry alone.
    #[must_use]
    pub fn tool_digest(&self, name: &str) -> Option<String> {
        self.tool(name).map(entry_digest)
    }

    /// The tools that were left out, sorted by name. Those with a [`Rejection::Duplicate`] are
    /// violations to report.
    #[must_use]
    pub fn rejected(&self) -> &[Rejected] {
        match &self.contents {
            Some(contents) => &contents.rejected,
            None => &[],
        }
    }

    /// Who may be shown the list. Private while nothing is known.
    #[must_use]
    pub fn scope(&self) -> CacheScope {
        self.contents
            .as_ref()
            .map_or(CacheScope::Private, |contents| contents.scope)
    }
}

impl Contents {
    fn new(list: List<Tool>, mut refuse: impl FnMut(&Tool) -> Option<String>) -> Self {
        let mut items = list.items;
        // Stable, so that entries of one name keep the server's order in the digest.
        items.sort_by(|a, b| a.name().cmp(b.name()));
        let digest = digest::of_array(items.iter().map(|tool| tool.raw().as_raw()));
        let references = References::new();
        let mut rejected = Vec::new();
        let mut tools: Vec<Tool> = Vec::with_capacity(items.len());
        let mut items = items.into_iter().peekable();
        while let Some(tool) = items.next() {
            let mut twins = 0;
            while items.next_if(|next| next.name() == tool.name()).is_some() {
                twins += 1;
            }
            let reason = if twins > 0 {
                Some(Rejection::Duplicate(duplicate(tool.name(), twins + 1)))
            } else if let Some(words) = references.external(&tool) {
                Some(Rejection::ExternalReference(words))
            } else {
                refuse(&tool).map(Rejection::Refused)
            };
            match reason {
                None => tools.push(tool),
                Some(reason) => rejected.push(Rejected {
                    name: tool.name().to_string(),
                    reason,
                }),
            }
        }
        Self {
            generation: list.generation,
            tools,
            rejected,
            digest,
            fresh_until: list.fresh_until,
            scope: list.scope,
        }
    }
}

/// The digest of one entry of a list: SHA-256 in lower-case hex over its canonical JSON (R21).
#[must_use]
pub fn entry_digest<T: Entry>(entry: &T) -> String {
    digest::of(entry.raw().as_raw())
}

fn duplicate(name: &str, count: usize) -> Fault {
    let detail = format!("{count} tools have the name {}", Quoted(name));
    Fault::new(Violation::DuplicateTool, detail)
}

/// Compares two lists that are sorted by name and have each name once.
fn changes(before: &[Tool], after: &[Tool]) -> Changes {
    let mut changes = Changes::default();
    let (mut before, mut after) = (before.iter().peekable(), after.iter().peekable());
    loop {
        let order = match (before.peek(), after.peek()) {
            (None, None) => return changes,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => old.name().cmp(new.name()),
        };
        let old = before.next_if(|_| order.is_le());
        let new = after.next_if(|_| order.is_ge());
        match (old, new) {
            (Some(old), Some(new)) if differ(old, new) => {
                changes.changed.push(new.name().to_string());
            }
            (Some(old), None) => changes.removed.push(old.name().to_string()),
            (None, Some(new)) => changes.added.push(new.name().to_string()),
            _ => {}
        }
    }
}

/// Whether two descriptors are different values; canonical JSON is made only where the texts differ.
fn differ(old: &Tool, new: &Tool) -> bool {
    old.raw() != new.raw() && digest::of(old.raw().as_raw()) != digest::of(new.raw().as_raw())
}

#[cfg(test)]
mod tests;
