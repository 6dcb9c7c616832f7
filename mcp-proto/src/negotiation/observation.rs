//! What was seen while negotiating, in order, for `doctor` and for the texts of failures.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::wire;

/// The most observations that are kept; the first ones decide, later ones only repeat them.
const MAX_OBSERVATIONS: usize = 32;
/// The most bytes of a server's words in one observation.
const MAX_EXCERPT_BYTES: usize = 300;
/// The most entries of a server's list in one observation.
const MAX_LISTED: usize = 8;

/// One thing that was seen. Holds neither times nor ids, so that two runs of the same exchange show
/// the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// What it is about.
    pub subject: Subject,
    /// What was seen: bounded, printable, without control characters.
    pub finding: String,
    /// How often it was seen in a row.
    pub times: u32,
}

/// What an observation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The link itself.
    Link,
    /// The probe of this number.
    Probe(u32),
    /// The handshake.
    Handshake,
    /// No request of ours.
    Stray,
}

impl fmt::Display for Observation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.subject {
            Subject::Link => f.write_str("link: ")?,
            Subject::Probe(attempt) => write!(f, "probe {attempt}: ")?,
            Subject::Handshake => f.write_str("handshake: ")?,
            Subject::Stray => f.write_str("uncorrelated: ")?,
        }
        f.write_str(&self.finding)?;
        match self.times {
            0 | 1 => Ok(()),
            times => write!(f, " ({times} times)"),
        }
    }
}

/// The observations so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Log(Vec<Observation>);

impl Log {
    pub(super) fn add(&mut self, subject: Subject, finding: &str) {
        let finding = printable(finding);
        if let Some(last) = self.0.last_mut()
            && last.subject == subject
            && last.finding == finding
        {
            last.times = last.times.saturating_add(1);
            return;
        }
        if self.0.len() < MAX_OBSERVATIONS {
            self.0.push(Observation {
                subject,
                finding,
                times: 1,
            });
        }
    }

    pub(super) fn as_slice(&self) -> &[Observation] {
        &self.0
    }

    /// All of them in one line.
    pub(super) fn summary(&self) -> String {
        let lines: Vec<String> = self.0.iter().map(|line| format!("{line}")).collect();
        lines.join("; ")
    }
}

/// A server's words, fit for one line of a terminal.
pub(crate) fn printable(text: &str) -> String {
    wire::printable(text.trim().as_bytes(), MAX_EXCERPT_BYTES)
}

/// A server's list, bounded.
pub(super) fn bounded(entries: &[String]) -> Vec<String> {
    entries
        .iter()
        .take(MAX_LISTED)
        .map(|entry| printable(entry))
        .collect()
}

/// The same in one line.
pub(super) fn list_excerpt(entries: &[String]) -> String {
    let shown = bounded(entries);
    let more = entries.len().saturating_sub(MAX_LISTED);
    match (shown.is_empty(), more) {
        (true, _) => String::from("nothing"),
        (false, 0) => shown.join(", "),
        (false, more) => format!("{} and {more} more", shown.join(", ")),
    }
}
