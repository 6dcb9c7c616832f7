//! Idempotency keys, and which call each was used for (R33).

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::identity::{CanonicalError, Field, Sha256Hex, canonical, derive_id};

/// The longest key that an application may give, in bytes.
pub const KEY_BYTES_MAX: usize = 256;

/// What tells a server that two requests are one call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey(String);

/// A text that cannot be an idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// It is empty.
    #[error("an idempotency key must not be empty")]
    Empty,
    /// It is longer than [`KEY_BYTES_MAX`].
    #[error("an idempotency key must not be longer than {KEY_BYTES_MAX} bytes")]
    TooLong,
}

/// One call as the application means it, however often it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogicalCall<'a> {
    /// The root of the run.
    pub run_root: &'a str,
    /// The configured name of the peer.
    pub peer: &'a str,
    /// The peer's own name of the tool.
    pub tool: &'a str,
    /// The digest of the arguments; see [`arguments_hash`].
    pub arguments_hash: &'a Sha256Hex,
    /// Which call of the run it is, from 0.
    pub call_index: u64,
}

/// The digest of a call's arguments: SHA-256 over their canonical JSON, `{}` where there are none.
///
/// # Errors
/// [`CanonicalError`] when they have no canonical form.
pub fn arguments_hash(arguments: Option<&str>) -> Result<Sha256Hex, CanonicalError> {
    let mut text = Vec::new();
    let arguments = arguments.unwrap_or("{}");
    canonical::write(arguments, &mut text, canonical::DEPTH_CEILING)?;
    Ok(Sha256Hex::of(&text))
}

impl IdempotencyKey {
    /// The key of a call for which the application gives none: 32 hexadecimal digits that depend on the
    /// call alone, so that another process that runs the same run derives the same.
    #[must_use]
    pub fn derived(call: &LogicalCall<'_>) -> Self {
        let fields = [
            ("arguments_hash", Field::Text(call.arguments_hash.as_str())),
            ("call_index", Field::Number(call.call_index)),
            ("run_root_hash", Field::Text(call.run_root)),
            ("server", Field::Text(call.peer)),
            ("tool", Field::Text(call.tool)),
        ];
        Self(derive_id("mcp.idempotency", &fields, 16))
    }

    /// A key of the application's.
    ///
    /// # Errors
    /// [`KeyError`] when it is empty or too long.
    pub fn given(text: impl Into<String>) -> Result<Self, KeyError> {
        let text = text.into();
        match text.len() {
            0 => Err(KeyError::Empty),
            1..=KEY_BYTES_MAX => Ok(Self(text)),
            _ => Err(KeyError::TooLong),
        }
    }

    /// The text that travels.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Remembers which key was used for which call, so that one is not used for two (R33).
///
/// Bounded: what was used longest ago is forgotten first, and may then be used anew.
#[derive(Clone, Debug)]
pub struct KeyLedger {
    keys_max: usize,
    /// Counts uses, to find what was used longest ago.
    clock: u64,
    keys: BTreeMap<Owner, Used>,
    by_use: BTreeMap<u64, Owner>,
}

/// A key belongs to the peer that it is sent to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Owner {
    key: IdempotencyKey,
    peer: String,
}

#[derive(Clone, Debug)]
struct Used {
    /// Of tool and arguments.
    digest: String,
    at: u64,
}

/// What the ledger knew of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It was used for the same tool and arguments before: the server is to take this as that call.
    Again,
    /// It was not used, as far as is remembered.
    New,
}

/// The key was used for another call; nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the idempotency key {key:?} was used for another tool or other arguments; choose another one"
)]
pub struct KeyReused {
    /// The key.
    pub key: IdempotencyKey,
}

impl KeyLedger {
    /// A ledger that remembers so many keys.
    #[must_use]
    pub const fn new(keys_max: usize) -> Self {
        Self {
            keys_max,
            clock: 0,
            keys: BTreeMap::new(),
            by_use: BTreeMap::new(),
        }
    }

    /// Takes a key for a call to a peer, and remembers it.
    ///
    /// # Errors
    /// [`KeyReused`] when it was taken for another tool or other arguments of that peer. The ledger does
    /// not change then.
    pub fn claim(
        &mut self,
        key: &IdempotencyKey,
        peer: &str,
        tool: &str,
        arguments_hash: &Sha256Hex,
    ) -> Result<Claim, KeyReused> {
        let fields = [
            ("arguments_hash", Field::Text(arguments_hash.as_str())),
            ("tool", Field::Text(tool)),
        ];
        let digest = derive_id("mcp.call", &fields, 32);
        let owner = Owner {
            key: key.clone(),
            peer: peer.to_string(),
        };
        let claim = match self.keys.get(&owner) {
            Some(used) if used.digest != digest => return Err(KeyReused { key: key.clone() }),
            Some(used) => {
                self.by_use.remove(&used.at);
                Claim::Again
            }
            None => Claim::New,
        };
        self.clock += 1;
        let at = self.clock;
        self.by_use.insert(at, owner.clone());
        self.keys.insert(owner, Used { digest, at });
        while self.keys.len() > self.keys_max {
            let Some((_, oldest)) = self.by_use.pop_first() else {
                break;
            };
            self.keys.remove(&oldest);
        }
        Ok(claim)
    }

    /// How many keys are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}
