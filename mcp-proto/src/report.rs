//! The startup report (R111): who is there, what they offer, and what to do about the rest.
//!
//! A report is deterministic: sorted, and without times, ids and secrets. The text form
//! ([`Display`](fmt::Display)) is safe for a terminal: control characters that a server may have put
//! into names or messages are escaped.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::catalog::{Catalog, Collision};
use crate::config::{MergePolicy, TransportKind};
use crate::error::{Error, ErrorKind};
use crate::types::CacheScope;
use crate::version::{Era, Version};
use crate::wire::{Json, printable};

/// How many characters of a digest the text form shows; JSON has all of them.
const DIGEST_CHARS: usize = 12;

/// The state of all peers at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The peers, sorted by name.
    pub peers: Vec<PeerReport>,
    /// Bare names that are not canonical, sorted.
    pub collisions: Vec<Collision>,
    /// The rules by which names were merged.
    pub merge_policy: MergePolicy,
}

/// One peer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerReport {
    /// The configured name.
    pub name: String,
    /// Where it stands.
    pub state: PeerState,
    /// How it is reached.
    pub transport: TransportKind,
    /// The era, once it is known.
    pub era: Option<Era>,
    /// The revision, once it is known.
    pub version: Option<Version>,
    /// Who may share what the server lets be cached.
    pub cache_scope: Option<CacheScope>,
    /// The canonical names of its tools, sorted.
    pub tools: Vec<String>,
    /// The digest of its manifest, 64 hexadecimal digits.
    pub manifest_digest: Option<String>,
    /// The first violation of the protocol in this task.
    pub degraded: Option<String>,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// What else a person should know, in the order in which it was found.
    pub notes: Vec<String>,
}

/// Where a peer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PeerState {
    /// Closed by the application.
    Closed,
    /// Being started, probed or listed.
    Connecting,
    /// Not usable; see [`PeerReport::failure`].
    Failed,
    /// Taking calls.
    Ready,
}

impl PeerState {
    /// The word in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Connecting => "connecting",
            Self::Failed => "failed",
            Self::Ready => "ready",
        }
    }
}

/// Why a peer failed, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The kind of error.
    pub kind: ErrorKind,
    /// What happened.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
    /// The last lines of standard error, where the server ended by itself.
    pub stderr: Vec<String>,
}

impl From<&Error> for Failure {
    /// The peer's name is left out of the message: the report says it already.
    fn from(error: &Error) -> Self {
        Self {
            kind: error.kind(),
            message: error.cause.to_string(),
            remedy: error.remedy(),
            stderr: error.stderr().to_vec(),
        }
    }
}

impl PeerReport {
    /// A report of a peer of which nothing else is known yet.
    #[must_use]
    pub fn new(name: impl Into<String>, transport: TransportKind, state: PeerState) -> Self {
        Self {
            name: name.into(),
            state,
            transport,
            era: None,
            version: None,
            cache_scope: None,
            tools: Vec::new(),
            manifest_digest: None,
            degraded: None,
            failure: None,
            notes: Vec::new(),
        }
    }
}

impl Report {
    /// A report of these peers, in any order, whose tools were merged into `catalog`.
    #[must_use]
    pub fn new(mut peers: Vec<PeerReport>, catalog: &Catalog) -> Self {
        peers.sort_by(|a, b| a.name.cmp(&b.name));
        for peer in &mut peers {
            peer.tools.sort();
        }
        Self {
            peers,
            collisions: catalog.collisions().to_vec(),
            merge_policy: catalog.merge_policy(),
        }
    }

    /// Whether some peer failed.
    #[must_use]
    pub fn has_failures(&self) -> bool {
        self.peers
            .iter()
            .any(|peer| peer.state == PeerState::Failed)
    }

    /// The report as one JSON document.
    #[must_use]
    pub fn to_json(&self) -> Json {
        // Strings, lists and maps with constant keys always serialize, so the fallback never runs.
        Json::encode(self).unwrap_or_else(|_| Json::from(serde_json::Value::Null))
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("peers", &self.peers)?;
        map.serialize_entry("collisions", &self.collisions)?;
        map.serialize_entry("mergePolicy", self.merge_policy.as_str())?;
        map.end()
    }
}

/// A peer that is ready has every member, `null` where there is nothing to say; another one has what
/// is known.
impl Serialize for PeerReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ready = self.state == PeerState::Ready;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("state", self.state.as_str())?;
        map.serialize_entry("transport", self.transport.as_str())?;
        optional(&mut map, ready, "era", self.era.map(Era::as_str))?;
        optional(
            &mut map,
            ready,
            "version",
            self.version.map(Version::as_str),
        )?;
        optional(
            &mut map,
            ready,
            "cacheScope",
            self.cache_scope.map(CacheScope::as_str),
        )?;
        if ready || !self.tools.is_empty() {
            map.serialize_entry("tools", &self.tools)?;
        }
        optional(
            &mut map,
            ready,
            "manifestDigest",
            self.manifest_digest.as_deref(),
        )?;
        optional(&mut map, ready, "degraded", self.degraded.as_deref())?;
        if let Some(failure) = &self.failure {
            map.serialize_entry("failure", failure)?;
        }
        if !self.notes.is_empty() {
            map.serialize_entry("notes", &self.notes)?;
        }
        map.end()
    }
}

/// A member that stands there with a value, or as `null` if it must.
fn optional<M: SerializeMap>(
    map: &mut M,
    always: bool,
    key: &'static str,
    value: Option<&str>,
) -> Result<(), M::Error> {
    if always || value.is_some() {
        map.serialize_entry(key, &value)?;
    }
    Ok(())
}

impl Serialize for Failure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", self.kind.as_str())?;
        map.serialize_entry("message", &self.message)?;
        map.serialize_entry("remedy", &self.remedy)?;
        if !self.stderr.is_empty() {
            map.serialize_entry("stderr", &self.stderr)?;
        }
        map.end()
    }
}

impl Serialize for Collision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("owners", &self.owners)?;
        map.serialize_entry("canonical", &self.canonical)?;
        map.end()
    }
}

/// A table of the peers, then what is to say about some of them. Every line ends with a newline.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_table(f, &self.peers)?;
        section(
            f,
            "Tools",
            self.peers.iter().filter(|peer| !peer.tools.is_empty()),
            |f, peer| {
                writeln!(
                    f,
                    "  {}: {}",
                    Printable(&peer.name),
                    Printable(&peer.tools.join(", "))
                )
            },
        )?;
        let failed = self
            .peers
            .iter()
            .filter_map(|peer| Some((peer, peer.failure.as_ref()?)));
        section(f, "Failed", failed, |f, (peer, failure)| {
            let message = Printable(&failure.message);
            writeln!(
                f,
                "  {}: {} ({})",
                Printable(&peer.name),
                message,
                failure.kind
            )?;
            writeln!(f, "      {}", Printable(&failure.remedy))?;
            // A single line stands in the message already.
            for line in failure.stderr.iter().filter(|_| failure.stderr.len() > 1) {
                writeln!(f, "      | {}", Printable(line))?;
            }
            Ok(())
        })?;
        let degraded = self
            .peers
            .iter()
            .filter_map(|peer| Some((peer, peer.degraded.as_ref()?)));
        section(f, "Degraded", degraded, |f, (peer, reason)| {
            writeln!(f, "  {}: {}", Printable(&peer.name), Printable(reason))
        })?;
        section(f, "Renamed", self.collisions.iter(), |f, collision| {
            let instead = collision.canonical.join(" or ");
            writeln!(
                f,
                "  {}: use {}",
                Printable(&collision.name),
                Printable(&instead)
            )
        })?;
        let notes = self
            .peers
            .iter()
            .flat_map(|peer| peer.notes.iter().map(move |note| (peer, note)));
        section(f, "Notes", notes, |f, (peer, note)| {
            writeln!(f, "  {}: {}", Printable(&peer.name), Printable(note))
        })
    }
}

const HEADINGS: [&str; 8] = [
    "SERVER",
    "STATE",
    "TRANSPORT",
    "ERA",
    "VERSION",
    "CACHE",
    "TOOLS",
    "MANIFEST",
];

fn write_table(f: &mut fmt::Formatter<'_>, peers: &[PeerReport]) -> fmt::Result {
    let mut rows: Vec<[String; 8]> = Vec::with_capacity(peers.len() + 1);
    rows.push(HEADINGS.map(ToString::to_string));
    rows.extend(peers.iter().map(row));
    let mut widths = [0; 8];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    for row in &rows {
        let mut line = String::new();
        for (width, cell) in widths.iter().zip(row) {
            let width = *width + 2;
            line.push_str(&alloc::format!("{cell:width$}"));
        }
        writeln!(f, "{}", line.trim_end())?;
    }
    Ok(())
}

fn row(peer: &PeerReport) -> [String; 8] {
    let or_dash = |text: Option<&str>| text.unwrap_or("-").to_string();
    let ready = peer.state == PeerState::Ready;
    let state = match &peer.degraded {
        Some(_) if ready => "degraded",
        _ => peer.state.as_str(),
    };
    let digest = peer.manifest_digest.as_deref();
    [
        Printable(&peer.name).to_string(),
        state.to_string(),
        peer.transport.to_string(),
        or_dash(peer.era.map(Era::as_str)),
        or_dash(peer.version.map(Version::as_str)),
        or_dash(peer.cache_scope.map(CacheScope::as_str)),
        if ready {
            peer.tools.len().to_string()
        } else {
            "-".to_string()
        },
        or_dash(digest.map(|digest| digest.get(..DIGEST_CHARS).unwrap_or(digest))),
    ]
}

/// A heading and a line for each item, or nothing without items.
fn section<T>(
    f: &mut fmt::Formatter<'_>,
    heading: &str,
    items: impl Iterator<Item = T>,
    write: impl Fn(&mut fmt::Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    for (index, item) in items.enumerate() {
        if index == 0 {
            writeln!(f, "\n{heading}")?;
        }
        write(f, item)?;
    }
    Ok(())
}

/// Text from outside with its control characters escaped: a newline could forge a line of the report,
/// an escape sequence could rule the terminal.
struct Printable<'a>(&'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(self.0.as_bytes(), usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Source;
    use crate::error::Cause;
    use crate::ids::PeerId;
    use crate::violation::{Fault, Violation};
    use alloc::borrow::ToOwned;
    use alloc::vec;

    fn report() -> Report {
        let git_tools = ["git_diff", "search"];
        let web_tools = ["search", "x\u{1b}[2J"];
        let (git, web) = (PeerId::new(0), PeerId::new(1));
        let catalog = Catalog::build(&[
            Source::new(web, "web", &web_tools[..]),
            Source::new(git, "git", &git_tools[..]),
            Source::unknown(PeerId::new(2), "old"),
        ]);
        let tools = |peer| {
            let own = catalog.routes().filter(move |route| route.peer == peer);
            own.map(|route| route.canonical.to_owned()).collect()
        };
        let mut ready = PeerReport::new("git", TransportKind::Stdio, PeerState::Ready);
        ready.era = Some(Era::Modern);
        ready.version = Some(Version::V2026_07_28);
        ready.cache_scope = Some(CacheScope::Private);
        ready.tools = tools(git);
        ready.manifest_digest =
            Some("0f1ccbd291f203569c5a345bf127a14a76435b4cd916177a8ea1240072a2f7e6".to_owned());
        let mut odd = PeerReport::new("web", TransportKind::Http, PeerState::Ready);
        odd.era = Some(Era::Modern);
        odd.version = Some(Version::V2026_07_28);
        odd.tools = tools(web);
        odd.degraded = Some(Fault::new(Violation::MalformedContent, "content[0]").to_string());
        odd.notes = vec!["tool \"x\" has no inputSchema\nPEER  STATE".to_owned()];
        let mut failed = PeerReport::new("old", TransportKind::Stdio, PeerState::Failed);
        failed.failure = Some(Failure::from(&Error::new(
            "old",
            Cause::LegacyNotAllowed {
                evidence: "it answered with error -32601".to_owned(),
            },
        )));
        let mut later = PeerReport::new("late", TransportKind::Stream, PeerState::Failed);
        later.era = Some(Era::Legacy);
        later.version = Some(Version::V2025_06_18);
        let closed = Cause::Closed {
            detail: "exited with status 1; its last words: Error: no key".to_owned(),
            stderr: vec!["Error: no key".to_owned(), "    at x\u{1b}[2J".to_owned()],
        };
        later.failure = Some(Failure::from(&Error::new("late", closed)));
        let slow = PeerReport::new("slow", TransportKind::Stdio, PeerState::Connecting);
        Report::new(vec![odd, failed, slow, ready, later], &catalog)
    }

    /// R111.
    #[test]
    fn text() {
        insta::assert_snapshot!(report());
    }

    /// R111: every member of the documented shape, one peer a line for the reader of the snapshot.
    #[test]
    fn json() {
        let json = report().to_json().to_string();
        insta::assert_snapshot!(json.replace("},{\"name", "},\n{\"name"));
    }

    /// R111: the order in which peers were added changes nothing.
    #[test]
    fn order_changes_nothing() {
        let report = report();
        let mut peers = report.peers.clone();
        peers.reverse();
        let mut again = Report::new(peers, &Catalog::default());
        again.collisions = report.collisions.clone();
        assert_eq!(again, report);
        assert!(report.has_failures());
    }
}
