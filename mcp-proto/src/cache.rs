//! Answers that may be given again without asking (R70), for one peer.
//!
//! Tools are not here: see [`manifest`](crate::manifest). What is not stored is a matter of
//! construction: a request that carries input answers gets no [`Ticket`], and an `input_required`
//! result has no [`CacheHint`] to store it with.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::Arc;

use serde_json::value::RawValue;

use crate::time::Instant;
use crate::types::object::{member, pick, text};
use crate::types::{CacheHint, CacheScope};
use crate::wire::Json;

/// What a change notification makes invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CacheKind {
    /// `server/discover`.
    Discover,
    /// `prompts/list`.
    Prompts,
    /// `resources/read`.
    Reads,
    /// `resources/list` and `resources/templates/list`, which change together.
    Resources,
    /// `tools/list`.
    Tools,
}

impl CacheKind {
    const COUNT: usize = 5;

    /// The kind of what a method answers; `None` for methods whose answers are never kept.
    #[must_use]
    pub fn of_method(method: &str) -> Option<Self> {
        Some(match method {
            "prompts/list" => Self::Prompts,
            "resources/list" | "resources/templates/list" => Self::Resources,
            "resources/read" => Self::Reads,
            "server/discover" => Self::Discover,
            "tools/list" => Self::Tools,
            _ => return None,
        })
    }

    const fn index(self) -> usize {
        self as usize
    }
}

/// A bounded store of answers. Evicts what was used longest ago.
#[derive(Clone, Debug)]
pub struct ResponseCache {
    entries_max: usize,
    bytes_max: usize,
    bytes: usize,
    /// Counts uses, to find what was used longest ago.
    clock: u64,
    slots: BTreeMap<Arc<Key>, Slot>,
    by_use: BTreeMap<u64, Arc<Key>>,
    generations: [u64; CacheKind::COUNT],
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    kind: CacheKind,
    method: String,
    params: String,
}

#[derive(Clone, Debug)]
struct Slot {
    value: Json,
    fresh_until: Instant,
    scope: CacheScope,
    used: u64,
}

/// The right to store the answer to one request, taken when the request is made: if what it asks for
/// is invalidated meanwhile, the answer is not stored.
#[derive(Clone, Debug)]
pub struct Ticket {
    key: Arc<Key>,
    generation: u64,
}

impl ResponseCache {
    /// An empty cache for at most so many answers and bytes (texts of requests and answers together).
    #[must_use]
    pub const fn new(entries_max: usize, bytes_max: usize) -> Self {
        Self {
            entries_max,
            bytes_max,
            bytes: 0,
            clock: 0,
            slots: BTreeMap::new(),
            by_use: BTreeMap::new(),
            generations: [0; CacheKind::COUNT],
        }
    }

    /// The right to look up and store the answer to a request.
    ///
    /// `params` is the canonical text of the parameters without `_meta`. `None` when such an answer
    /// is never kept: another method, or a request that carries `inputResponses` or `requestState`.
    ///
    /// spec: 2026-07-28 server/utilities/caching#cache-key
    #[must_use]
    pub fn ticket(&self, method: &str, params: &str) -> Option<Ticket> {
        let kind = CacheKind::of_method(method)?;
        let raw: &RawValue = serde_json::from_str(params).ok()?;
        let [responses, state] = pick(raw, ["inputResponses", "requestState"]).ok()?;
        if responses.is_some() || state.is_some() {
            return None;
        }
        Some(Ticket {
            key: Arc::new(Key {
                kind,
                method: method.to_string(),
                params: params.to_string(),
            }),
            generation: self.generation(kind),
        })
    }

    /// The answer to the ticket's request, if there is one that is fresh.
    pub fn get(&mut self, ticket: &Ticket, now: Instant) -> Option<&Json> {
        let slot = self.slots.get_mut(&ticket.key)?;
        if now >= slot.fresh_until {
            return None;
        }
        let key = self.by_use.remove(&slot.used)?;
        self.clock += 1;
        slot.used = self.clock;
        self.by_use.insert(self.clock, key);
        Some(&slot.value)
    }

    /// The answer to the ticket's request even if its time is over, for an application that prefers
    /// an old answer to an error. Never one that was invalidated.
    #[must_use]
    pub fn stale(&self, ticket: &Ticket) -> Option<&Json> {
        self.slots.get(&ticket.key).map(|slot| &slot.value)
    }

    /// Stores the complete answer to the ticket's request, which arrived at `now`.
    ///
    /// `false`, and any earlier answer gone, when it was not stored: what was asked for has been
    /// invalidated since the ticket was taken, the server wants it kept for no time at all, or it is
    /// larger than the whole cache.
    pub fn store(&mut self, ticket: &Ticket, value: Json, hint: CacheHint, now: Instant) -> bool {
        if ticket.generation != self.generation(ticket.key.kind) {
            return false;
        }
        self.remove(&ticket.key);
        let size = size(&ticket.key, &value);
        if hint.ttl.is_zero() || size > self.bytes_max || self.entries_max == 0 {
            return false;
        }
        self.clock += 1;
        self.bytes += size;
        self.by_use.insert(self.clock, ticket.key.clone());
        self.slots.insert(
            ticket.key.clone(),
            Slot {
                value,
                fresh_until: now + hint.ttl,
                scope: hint.scope,
                used: self.clock,
            },
        );
        self.evict();
        true
    }

    /// Drops every answer of a kind, and those that are still under way.
    pub fn invalidate(&mut self, kind: CacheKind) {
        self.advance(kind);
        self.retain(|key, _| key.kind != kind);
    }

    /// Drops the answers to `resources/read` of one resource and of those that contain it (whose
    /// address its own begins with), and all reads that are still under way: which of these ask for it
    /// is not known without keeping count of every address.
    pub fn invalidate_resource(&mut self, uri: &str) {
        self.advance(CacheKind::Reads);
        self.retain(|key, _| key.kind != CacheKind::Reads || !concerns(&key.params, uri));
    }

    /// Drops what only the present authorization may see, and all that is still under way: to be
    /// called when the authorization changes.
    pub fn drop_private(&mut self) {
        self.generations
            .iter_mut()
            .for_each(|generation| *generation += 1);
        self.retain(|_, slot| slot.scope == CacheScope::Public);
    }

    /// Drops everything, and all that is still under way: the peer is another one now.
    pub fn clear(&mut self) {
        self.generations
            .iter_mut()
            .for_each(|generation| *generation += 1);
        self.retain(|_, _| false);
    }

    /// How many answers are stored, fresh or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether nothing is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// How many bytes the stored requests and answers have.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    fn generation(&self, kind: CacheKind) -> u64 {
        self.generations.get(kind.index()).copied().unwrap_or(0)
    }

    fn advance(&mut self, kind: CacheKind) {
        if let Some(generation) = self.generations.get_mut(kind.index()) {
            *generation += 1;
        }
    }

    fn retain(&mut self, mut keep: impl FnMut(&Key, &Slot) -> bool) {
        let (bytes, by_use) = (&mut self.bytes, &mut self.by_use);
        self.slots.retain(|key, slot| {
            let keep = keep(key, slot);
            if !keep {
                *bytes = bytes.saturating_sub(size(key, &slot.value));
                by_use.remove(&slot.used);
            }
            keep
        });
    }

    fn remove(&mut self, key: &Arc<Key>) {
        if let Some(slot) = self.slots.remove(key) {
            self.by_use.remove(&slot.used);
            self.bytes = self.bytes.saturating_sub(size(key, &slot.value));
        }
    }

    fn evict(&mut self) {
        while self.slots.len() > self.entries_max || self.bytes > self.bytes_max {
            let Some((_, key)) = self.by_use.pop_first() else {
                return;
            };
            self.remove(&key);
        }
    }
}

fn size(key: &Key, value: &Json) -> usize {
    key.method.len() + key.params.len() + value.as_str().len()
}

/// Whether a change of the resource `uri` changes the answer to a read with these parameters.
fn concerns(params: &str, uri: &str) -> bool {
    let raw = serde_json::from_str::<&RawValue>(params).ok();
    let asked = raw.and_then(|raw| member(raw, "uri"));
    asked
        .and_then(|raw| text(raw).ok())
        .is_some_and(|asked| uri.starts_with(&*asked))
}

#[cfg(test)]
mod tests;
