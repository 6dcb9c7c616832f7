//! How far a negotiation is.

use core::fmt;

use super::{Failure, ModernError, Verdict};
use crate::version::Version;

/// How far a negotiation is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// Before [`Event::Started`](super::Event::Started).
    Idle,
    /// The link is being opened.
    Opening {
        /// What is sent first on it.
        first: First,
    },
    /// A probe awaits its answer.
    Probing {
        /// Its number.
        attempt: u32,
        /// The revision it declares.
        version: Version,
        /// What was corrected so far. Any correction means that the server proved to be modern.
        spent: Corrections,
    },
    /// The handshake awaits its answer.
    Handshaking {
        /// The probe that got none on this link, and may still get one.
        unanswered: Option<u32>,
    },
    /// The era is known.
    Established(Verdict),
    /// The peer cannot be used.
    Failed(Failure),
}

/// What is sent first on a new link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// A probe.
    Probe,
    /// The handshake.
    Handshake,
}

/// Which corrections of the probe were made: each is made once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Corrections {
    /// The request was repeated after a header mismatch.
    pub header: bool,
    /// More capabilities were declared.
    pub capability: bool,
    /// Another (or the same) revision was declared.
    pub version: bool,
}

impl Corrections {
    pub(super) const ALL: Self = Self {
        header: true,
        capability: true,
        version: true,
    };

    pub(super) const fn any(self) -> bool {
        self.header || self.capability || self.version
    }

    /// Marks the correction that `error` calls for; `None` when it was made already.
    pub(super) const fn spend(mut self, error: &ModernError) -> Option<Self> {
        let spent = match error {
            ModernError::HeaderMismatch(_) => &mut self.header,
            ModernError::MissingCapability { .. } => &mut self.capability,
            ModernError::UnsupportedVersion { .. } => &mut self.version,
        };
        if *spent {
            return None;
        }
        *spent = true;
        Some(self)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle => f.write_str("not started"),
            Self::Opening {
                first: First::Probe,
            } => f.write_str("starting"),
            Self::Opening {
                first: First::Handshake,
            } => f.write_str("starting for the handshake"),
            Self::Probing {
                attempt, version, ..
            } => write!(f, "probe {attempt} at {version}"),
            Self::Handshaking { unanswered: None } => f.write_str("handshake"),
            Self::Handshaking {
                unanswered: Some(attempt),
            } => write!(f, "handshake, probe {attempt} unanswered"),
            Self::Established(Verdict::Modern { version }) => write!(f, "modern at {version}"),
            Self::Established(Verdict::Legacy { version }) => write!(f, "legacy at {version}"),
            Self::Failed(failure) => write!(f, "failed: {failure}"),
        }
    }
}
