//! Peers that could not be asked.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::{Error, ErrorKind};
use crate::wire::printable;

/// How many failed peers an error names; the others are only counted.
const NAMED_MAX: usize = 4;
/// How much of each peer's own message an error repeats, in bytes.
const MESSAGE_BYTES_MAX: usize = 300;

/// The peers that could not be asked because they failed, of all that are configured.
///
/// Bounded: it names the first four, sorted, and counts the others. Free of secrets, as the failures are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedPeers {
    /// The first of them, sorted by name.
    pub named: Vec<FailedPeer>,
    /// How many there are, the named ones included.
    pub total: usize,
    /// How many peers are configured, whatever their state.
    pub configured: usize,
}

/// A peer that failed, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedPeer {
    /// The configured name.
    pub peer: String,
    /// The kind of the error that made it fail.
    pub kind: ErrorKind,
    /// What happened: one line, cut where it is long.
    pub message: String,
    /// What to do about it, in one sentence.
    pub remedy: String,
    /// The last lines of its standard error, where it ended by itself.
    pub stderr: Vec<String>,
}

impl From<&Error> for FailedPeer {
    fn from(error: &Error) -> Self {
        let bounded = |text: &str| printable(text.as_bytes(), MESSAGE_BYTES_MAX);
        Self {
            peer: error.peer.clone().unwrap_or_default(),
            kind: error.kind(),
            message: bounded(&error.cause.to_string()),
            remedy: bounded(&error.remedy()),
            stderr: error.stderr().to_vec(),
        }
    }
}

impl FailedPeers {
    /// Those whose failures these are, in any order, of `configured` peers.
    pub(crate) fn new<'a>(failures: impl Iterator<Item = &'a Error>, configured: usize) -> Self {
        let mut failures: Vec<&Error> = failures.collect();
        failures.sort_by(|a, b| a.peer.cmp(&b.peer));
        Self {
            named: failures
                .iter()
                .take(NAMED_MAX)
                .map(|error| FailedPeer::from(*error))
                .collect(),
            total: failures.len(),
            configured,
        }
    }

    /// Whether no peer failed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Whether nobody is left who could be asked.
    #[must_use]
    pub const fn is_all(&self) -> bool {
        self.total == self.configured
    }

    /// What to do about them, in one sentence; `None` when there are none.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        match (self.named.as_slice(), self.total) {
            ([], _) => None,
            ([only], 1) => Some(only.remedy.clone()),
            _ => Some("See `mcp-harness doctor` for what to do about each of them.".to_string()),
        }
    }
}

/// `a: why; b: why; and 3 more`
impl fmt::Display for FailedPeers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, peer) in self.named.iter().enumerate() {
            let gap = if index == 0 { "" } else { "; " };
            write!(f, "{gap}{}: {}", peer.peer, peer.message)?;
        }
        match self.total.saturating_sub(self.named.len()) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Cause;
    use alloc::format;

    /// R1: however many peers fail, and however much each of them has to say.
    #[test]
    fn many_failures_are_counted_and_few_are_named() {
        let failure = |index: usize| {
            let reason = "x".repeat(100_000);
            Error::new(format!("p{index:03}"), Cause::Unavailable { reason })
        };
        let failures: Vec<Error> = (0..500).rev().map(failure).collect();
        let failed = FailedPeers::new(failures.iter(), 600);
        let names: Vec<&str> = failed.named.iter().map(|peer| peer.peer.as_str()).collect();
        assert_eq!(names, ["p000", "p001", "p002", "p003"]);
        let shown = failed.to_string();
        assert!(shown.ends_with("…; and 496 more"), "{shown}");
        assert!(shown.len() < 2_000, "{}", shown.len());
        assert!(!failed.is_all());
    }
}
