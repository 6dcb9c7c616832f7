//! How long a result may be kept, and by whom (R70).

use crate::time::Duration;
use crate::wire::Members;

use super::object::{number, text};

/// The longest time for which any result is taken as fresh: 24 hours.
pub const TTL_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Who may be given a kept result.
///
/// spec: 2026-07-28 server/utilities/caching#cache-scope-field
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheScope {
    /// Only whoever has the same authorization as the one who asked.
    #[default]
    Private,
    /// Anyone.
    Public,
}

impl CacheScope {
    /// The word on the wire: `private` or `public`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Public => "public",
        }
    }
}

/// The server's hint about keeping one result. Never malformed: what makes no sense is read as the
/// cautious value, because a hint is no reason to refuse a good answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheHint {
    /// For how long the result is fresh, counted from its arrival; at most [`TTL_MAX`]. Zero when
    /// `ttlMs` is absent, negative or no number.
    pub ttl: Duration,
    /// Private unless the server says exactly `public`.
    pub scope: CacheScope,
}

impl CacheHint {
    /// Reads `ttlMs` and `cacheScope`.
    ///
    /// spec: 2026-07-28 server/utilities/caching#cacheable-model
    #[must_use]
    pub fn read(members: &Members<'_>) -> Self {
        let ttl_ms = members.get("ttlMs").and_then(number).unwrap_or(0.0);
        let scope = members.get("cacheScope").and_then(|raw| text(raw).ok());
        Self {
            ttl: ttl_from_ms(ttl_ms),
            scope: match scope.as_deref() {
                Some("public") => CacheScope::Public,
                _ => CacheScope::Private,
            },
        }
    }

    /// The hint for results that were put together from two: the shorter time, the narrower scope.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            ttl: self.ttl.min(other.ttl),
            scope: match (self.scope, other.scope) {
                (CacheScope::Public, CacheScope::Public) => CacheScope::Public,
                _ => CacheScope::Private,
            },
        }
    }
}

/// Whole milliseconds between zero and the maximum; `as` saturates and turns NaN into zero.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn ttl_from_ms(ms: f64) -> Duration {
    Duration::from_millis(ms as u64).min(TTL_MAX)
}
