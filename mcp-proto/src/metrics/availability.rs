//! Whether a server can be used.

use serde::{Serialize, Serializer};

use crate::time::Instant;

/// Whether a server is available, and since when on the driver's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Availability {
    /// It has not been connected yet, nor failed to be.
    #[default]
    Unknown,
    /// It is connected, and nothing is known against it since then.
    Up {
        /// Since when.
        since: Instant,
    },
    /// It is not to be relied on.
    Down {
        /// Since when.
        since: Instant,
        /// Why.
        reason: DownReason,
    },
}

/// Why a server is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DownReason {
    /// It broke the protocol (R61).
    Degraded,
    /// Its connection ended.
    Lost,
    /// It could not be connected.
    NotConnected,
}

impl DownReason {
    /// The word, in camelCase.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Degraded => "degraded",
            Self::Lost => "lost",
            Self::NotConnected => "notConnected",
        }
    }
}

impl Serialize for DownReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl Availability {
    /// Whether it is [up](Availability::Up).
    #[must_use]
    pub const fn is_up(self) -> bool {
        matches!(self, Self::Up { .. })
    }

    pub(super) const fn connected(self, now: Instant) -> Self {
        match self {
            Self::Up { .. } => self,
            Self::Unknown | Self::Down { .. } => Self::Up { since: now },
        }
    }

    pub(super) const fn went_down(self, reason: DownReason, now: Instant) -> Self {
        match self {
            Self::Down { .. } => self,
            Self::Unknown | Self::Up { .. } => Self::Down { since: now, reason },
        }
    }
}
