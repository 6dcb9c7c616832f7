//! Fetching a list page by page.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use sha2::{Digest as _, Sha256};

use crate::limits::Limits;
use crate::time::Instant;
use crate::types::{CacheScope, Entry, ListFault, ListPage};
use crate::wire::Members;

/// A list that is being fetched: pages in, cursors out, and in the end the whole list or one fault.
///
/// Ends within [`Limits::pages`] pages whatever the server answers. The first request carries no
/// cursor. Dropping a listing abandons it; nothing else is affected.
pub struct Listing<T> {
    generation: u64,
    pages_max: usize,
    items_max: usize,
    bytes_max: usize,
    pages: usize,
    bytes: usize,
    items: Vec<T>,
    /// Digests of the cursors seen: a cursor may be as long as a message, a digest is not.
    cursors: BTreeSet<[u8; 32]>,
    fresh_until: Instant,
    scope: CacheScope,
}

/// What to do after a page.
#[derive(Debug)]
pub enum Step<T> {
    /// Ask for the next page.
    Next {
        /// The cursor to ask with, as the server gave it.
        cursor: String,
        /// The listing that awaits the answer.
        listing: Listing<T>,
    },
    /// That was the last page.
    Done(List<T>),
    /// Give up; what was known before stays in force.
    Failed(ListFault),
}

/// A complete list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct List<T> {
    /// The entries, in the server's order.
    pub items: Vec<T>,
    /// The list may be used without asking again while `now` is before this: the earliest expiry of
    /// its pages, each counted from its own arrival (R70).
    pub fresh_until: Instant,
    /// Public when every page was.
    pub scope: CacheScope,
    /// The generation that the listing was started with.
    pub generation: u64,
}

impl<T: Entry> Listing<T> {
    /// Starts a list: ask for it without a cursor.
    ///
    /// `generation` comes back in the [`List`], for whoever counts invalidations.
    #[must_use]
    pub fn start(generation: u64, limits: &Limits) -> Self {
        Self {
            generation,
            pages_max: limits.pages,
            items_max: limits.items,
            bytes_max: limits.line_bytes.saturating_mul(4),
            pages: 0,
            bytes: 0,
            items: Vec::new(),
            cursors: BTreeSet::new(),
            fresh_until: Instant::MAX,
            scope: CacheScope::Public,
        }
    }

    /// Whether no page has come yet.
    pub(crate) const fn is_empty(&self) -> bool {
        self.pages == 0
    }

    /// Takes the result of one page, which arrived at `now`.
    ///
    /// A cursor that comes a second time is an error even where the server may mean the end with it
    /// (`""` on every page): which of the two it means cannot be known, and a manifest that is
    /// silently incomplete is worse than a reported failure.
    #[must_use]
    pub fn on_page(mut self, result: &Members<'_>, now: Instant) -> Step<T> {
        let room = self.items_max.saturating_sub(self.items.len());
        let page = match ListPage::<T>::read(result, room) {
            Ok(page) => page,
            Err(ListFault::TooManyItems { .. }) => {
                let max = self.items_max;
                return Step::Failed(ListFault::TooManyItems { max });
            }
            Err(fault) => return Step::Failed(fault),
        };
        let bytes = page.items.iter().map(|item| item.raw().as_str().len());
        self.bytes = bytes.fold(self.bytes, usize::saturating_add);
        if self.bytes > self.bytes_max {
            let max = self.bytes_max;
            return Step::Failed(ListFault::TooManyBytes { max });
        }
        self.pages += 1;
        self.items.extend(page.items);
        self.fresh_until = self.fresh_until.min(now + page.cache.ttl);
        if page.cache.scope == CacheScope::Private {
            self.scope = CacheScope::Private;
        }
        match page.next_cursor {
            None => Step::Done(List {
                items: self.items,
                fresh_until: self.fresh_until,
                scope: self.scope,
                generation: self.generation,
            }),
            Some(cursor) => self.follow(cursor),
        }
    }

    fn follow(mut self, cursor: String) -> Step<T> {
        if !self.cursors.insert(Sha256::digest(&cursor).into()) {
            return Step::Failed(ListFault::CursorLoop);
        }
        if self.pages >= self.pages_max {
            let max = self.pages_max;
            return Step::Failed(ListFault::TooManyPages { max });
        }
        Step::Next {
            cursor,
            listing: self,
        }
    }
}

impl<T> fmt::Debug for Listing<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listing")
            .field("pages", &self.pages)
            .field("items", &self.items.len())
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}
