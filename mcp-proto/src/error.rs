//! One typed error hierarchy (R3).
//!
//! Every error says which peer, what went wrong, what to do ([`Error::remedy`]), whether the request
//! may have been executed ([`Error::may_have_executed`]) and, in one word, of which kind it is
//! ([`Error::kind`]: the same words as in the binary's JSON).

mod failed;
mod stream;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::time::Duration;
use crate::violation::Fault;
use crate::wire::{ErrorObject, Json};

pub use failed::{FailedPeer, FailedPeers};
pub use stream::{DroppedStream, RefusedRetry};

/// Whether a request that failed may have taken effect on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ran {
    /// Provably not: no byte of it was written, or the server said so. Safe to retry.
    No,
    /// It was, or may have been, handed to the server.
    Maybe,
}

/// The kind of an error in one word, as in `error.kind` of the binary's JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[allow(missing_docs)] // the words are documented where they are raised
pub enum ErrorKind {
    AmbiguousTool,
    Auth,
    Cancelled,
    CapabilityMissing,
    Closed,
    Config,
    Degraded,
    Http,
    LegacyNotAllowed,
    Limit,
    RetryRefused,
    Rpc,
    SchemaViolation,
    SpawnRefused,
    StreamDropped,
    Timeout,
    ToolNotFound,
    Unavailable,
    Usage,
    Version,
}

impl ErrorKind {
    /// The word, in camelCase.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AmbiguousTool => "ambiguousTool",
            Self::Auth => "auth",
            Self::Cancelled => "cancelled",
            Self::CapabilityMissing => "capabilityMissing",
            Self::Closed => "closed",
            Self::Config => "config",
            Self::Degraded => "degraded",
            Self::Http => "http",
            Self::LegacyNotAllowed => "legacyNotAllowed",
            Self::Limit => "limit",
            Self::RetryRefused => "retryRefused",
            Self::Rpc => "rpc",
            Self::SchemaViolation => "schemaViolation",
            Self::SpawnRefused => "spawnRefused",
            Self::StreamDropped => "streamDropped",
            Self::Timeout => "timeout",
            Self::ToolNotFound => "toolNotFound",
            Self::Unavailable => "unavailable",
            Self::Usage => "usage",
            Self::Version => "version",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A JSON-RPC error object as the server sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcError {
    /// The error code.
    pub code: i64,
    /// The server's message, with secrets of the configuration struck out.
    pub message: String,
    /// `data`, unchanged but for secrets of the configuration.
    pub data: Option<Json>,
}

impl From<&ErrorObject<'_>> for RpcError {
    fn from(error: &ErrorObject<'_>) -> Self {
        Self {
            code: error.code,
            message: error.message.as_ref().into(),
            data: error.data.map(Json::from),
        }
    }
}

/// What went wrong with one peer or one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The configured name of the peer, where one is concerned.
    pub peer: Option<String>,
    /// What happened.
    pub cause: Cause,
    /// Whether the request may have been executed.
    pub ran: Ran,
    /// What to do, where more is known than [`Cause::remedy`] can say; see [`Error::remedy`].
    pub advice: Option<Box<str>>,
    /// See [`Error::partial_text`].
    pub(crate) text: Option<Box<StreamText>>,
}

/// The text of a stream that an error ended. Behind one thin pointer: errors are returned by value everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamText(pub(crate) Box<str>);

/// What servers list beside tools, and what is found by that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Listable {
    /// A resource, by its URI.
    Resource,
    /// A prompt, by its name.
    Prompt,
}

impl fmt::Display for Listable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resource => "resource",
            Self::Prompt => "prompt",
        })
    }
}

/// What ended whatever was pending when the application closed the client.
pub(crate) const CLIENT_CLOSED: &str = "the client was closed";

/// What happened, with what the caller needs to act.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The server broke the protocol.
    #[error("the server broke the protocol: {0}")]
    SchemaViolation(Fault),
    /// The server answered with a JSON-RPC error.
    #[error("the server answered with error {}: {}", .0.code, .0.message)]
    Rpc(RpcError),
    /// The connection ended.
    #[error("{detail}")]
    Closed {
        /// How it ended, in one line: exit status, end of output, write error, and the most telling line
        /// of standard error.
        detail: String,
        /// The last lines of standard error, at most eight, with secrets of the configuration struck out;
        /// none where the server said nothing or did not end by itself.
        stderr: Vec<String>,
    },
    /// A deadline passed.
    #[error("no {awaited} within {} ms", limit.as_millis())]
    Timeout {
        /// What was awaited: `answer to tools/call`, `answer to server/discover`, …
        awaited: String,
        /// The configuration field that holds the deadline, to raise it.
        setting: &'static str,
        /// The deadline.
        limit: Duration,
    },
    /// A bound of [`Limits`](crate::Limits) was exceeded.
    #[error("{what} exceeds the limit of {max}")]
    Limit {
        /// What was too large or too many.
        what: String,
        /// The configuration field that holds the bound.
        setting: &'static str,
        /// The bound.
        max: u64,
    },
    /// No protocol revision in common.
    #[error("no protocol revision in common: the server offers {}", Listed(.offered))]
    Version {
        /// What the server offers (or answered).
        offered: Vec<String>,
    },
    /// The server showed no sign of the modern era and is not allow-listed for an older one.
    #[error(
        "not proved to be a modern server ({evidence}) and not allow-listed for older revisions"
    )]
    LegacyNotAllowed {
        /// What the server did instead of a valid discover answer.
        evidence: String,
    },
    /// No peer has a tool of this name.
    #[error("no tool named {tool:?}{}{}", Unasked(.failed), Suggestion(.suggestion))]
    ToolNotFound {
        /// The name that was asked for.
        tool: String,
        /// The nearest existing name.
        suggestion: Option<String>,
        /// The peers that may have it, but failed.
        failed: Box<FailedPeers>,
    },
    /// No peer lists a resource or prompt of this name; a kind of "tool not found".
    #[error("no server lists a {what} named {name:?}{}{}", Unasked(.failed), Suggestion(.suggestion))]
    NotListed {
        /// What was asked for.
        what: Listable,
        /// The URI or name that was asked for.
        name: String,
        /// The nearest existing one.
        suggestion: Option<String>,
        /// The peers that may have it, but failed.
        failed: Box<FailedPeers>,
    },
    /// The peer's manifest does not hold the tool (R20); a kind of "tool not found".
    #[error("tool {tool:?} is not in the manifest {manifest_digest}")]
    CapabilityMissing {
        /// The peer's own name of the tool.
        tool: String,
        /// The digest of the manifest that was consulted.
        manifest_digest: String,
    },
    /// The tool is new or another one since the application accepted the peer's tools, and was not accepted
    /// yet (`pinTools`, R21); a kind of "capability missing".
    #[error(
        "tool {tool:?} is quarantined: its descriptor was never accepted (manifest {manifest_digest})"
    )]
    Quarantined {
        /// The peer's own name of the tool.
        tool: String,
        /// The digest of the manifest that it stands in.
        manifest_digest: String,
    },
    /// More than one peer has a tool of this name.
    #[error("tool name {tool:?} is ambiguous: {}", Listed(.canonical))]
    AmbiguousTool {
        /// The bare name.
        tool: String,
        /// The names that are unique, sorted.
        canonical: Vec<String>,
    },
    /// More than one peer lists a resource or prompt of this name; a kind of "ambiguous tool".
    #[error("the {what} {name:?} is ambiguous: {}", Listed(.canonical))]
    Ambiguous {
        /// What was asked for.
        what: Listable,
        /// The URI or name that was asked for.
        name: String,
        /// Those that are unique, sorted.
        canonical: Vec<String>,
    },
    /// Operations cannot be taken: the client is closed, or the machine has no room for it.
    #[error("not available: {reason}")]
    Unavailable {
        /// Why.
        reason: String,
    },
    /// No peer can be asked: every one of them failed, or none is configured; a kind of "unavailable".
    #[error("{}", NoPeer(.0))]
    NoPeer(Box<FailedPeers>),
    /// The peer needs what this version does not have yet; a kind of "unavailable".
    #[error("{feature} is not supported yet in this version")]
    Unsupported {
        /// What it is: `HTTP`.
        feature: &'static str,
        /// What can be done without it, in one sentence.
        remedy: &'static str,
    },
    /// The command is not on the allow-list, or could not be started.
    #[error("cannot start {command:?}: {reason}")]
    SpawnRefused {
        /// The program.
        command: String,
        /// Why not.
        reason: String,
    },
    /// The peer is degraded and the configuration refuses calls to degraded peers.
    #[error("degraded earlier in this task: {0}")]
    Degraded(Fault),
    /// The application cancelled.
    #[error("cancelled")]
    Cancelled,
    /// An automatic retry was needed and is not safe (R34).
    #[error("{0}")]
    RetryRefused(Box<RefusedRetry>),
    /// A stream could not be brought to its end (R32).
    #[error("{0}")]
    StreamDropped(Box<DroppedStream>),
    /// The configuration is wrong.
    #[error("{0}")]
    Config(String),
    /// The caller's request is wrong; nothing was sent.
    #[error("{0}")]
    Usage(String),
}

/// `a`, `b` and `c`, or `nothing`.
struct Listed<'a>(&'a [String]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("nothing");
        }
        f.write_str(&self.0.join(", "))
    }
}

/// `; did you mean "x"?`, or nothing.
struct Suggestion<'a>(&'a Option<String>);

impl fmt::Display for Suggestion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(name) => write!(f, "; did you mean {name:?}?"),
            None => Ok(()),
        }
    }
}

/// ` (1 of 3 servers failed: a: why)`, or nothing.
struct Unasked<'a>(&'a FailedPeers);

impl fmt::Display for Unasked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.is_empty() {
            true => Ok(()),
            false => write!(
                f,
                " ({} of {} servers failed: {})",
                self.0.total, self.0.configured, self.0
            ),
        }
    }
}

struct NoPeer<'a>(&'a FailedPeers);

impl fmt::Display for NoPeer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.is_empty() {
            true => f.write_str("no server is configured"),
            false => write!(f, "no server is available: {}", self.0),
        }
    }
}

impl Error {
    /// An error of `peer` about a request that was not sent.
    #[must_use]
    pub fn new(peer: impl Into<String>, cause: Cause) -> Self {
        Self {
            peer: Some(peer.into()),
            cause,
            ran: Ran::No,
            advice: None,
            text: None,
        }
    }

    /// An error that concerns no single peer.
    #[must_use]
    pub const fn general(cause: Cause) -> Self {
        Self {
            peer: None,
            cause,
            ran: Ran::No,
            advice: None,
            text: None,
        }
    }

    /// The same error with another verdict on execution.
    #[must_use]
    pub fn ran(mut self, ran: Ran) -> Self {
        self.ran = ran;
        self
    }

    /// The same error with advice of its own: a sentence, or the beginning of one. Nothing changes when
    /// it is empty.
    #[must_use]
    pub fn advise(mut self, advice: &str) -> Self {
        let mut letters = advice.chars();
        if let Some(first) = letters.next() {
            let stop = if advice.ends_with('.') { "" } else { "." };
            let sentence = format!("{}{}{stop}", first.to_uppercase(), letters.as_str());
            self.advice = Some(sentence.into());
        }
        self
    }

    /// Its kind in one word.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self.cause {
            Cause::SchemaViolation(_) => ErrorKind::SchemaViolation,
            Cause::Rpc(_) => ErrorKind::Rpc,
            Cause::Closed { .. } => ErrorKind::Closed,
            Cause::Timeout { .. } => ErrorKind::Timeout,
            Cause::Limit { .. } => ErrorKind::Limit,
            Cause::Version { .. } => ErrorKind::Version,
            Cause::LegacyNotAllowed { .. } => ErrorKind::LegacyNotAllowed,
            Cause::NotListed { .. } | Cause::ToolNotFound { .. } => ErrorKind::ToolNotFound,
            Cause::CapabilityMissing { .. } | Cause::Quarantined { .. } => {
                ErrorKind::CapabilityMissing
            }
            Cause::Ambiguous { .. } | Cause::AmbiguousTool { .. } => ErrorKind::AmbiguousTool,
            Cause::Unavailable { .. } | Cause::NoPeer(_) | Cause::Unsupported { .. } => {
                ErrorKind::Unavailable
            }
            Cause::SpawnRefused { .. } => ErrorKind::SpawnRefused,
            Cause::Degraded(_) => ErrorKind::Degraded,
            Cause::Cancelled => ErrorKind::Cancelled,
            Cause::RetryRefused(_) => ErrorKind::RetryRefused,
            Cause::StreamDropped(_) => ErrorKind::StreamDropped,
            Cause::Config(_) => ErrorKind::Config,
            Cause::Usage(_) => ErrorKind::Usage,
        }
    }

    /// The peers that could not be asked because they failed, where that is why it went wrong.
    #[must_use]
    pub const fn failed_peers(&self) -> Option<&FailedPeers> {
        match &self.cause {
            Cause::NoPeer(failed)
            | Cause::ToolNotFound { failed, .. }
            | Cause::NotListed { failed, .. }
                if !failed.is_empty() =>
            {
                Some(failed)
            }
            _ => None,
        }
    }

    /// The last lines that the server wrote to standard error before it ended, where one server did and that
    /// is what went wrong; usually none.
    #[must_use]
    pub fn stderr(&self) -> &[String] {
        match &self.cause {
            Cause::Closed { stderr, .. } => stderr,
            Cause::RetryRefused(_) | Cause::StreamDropped(_) => self.stderr_of_attempt(),
            Cause::NoPeer(failed) => match failed.named.as_slice() {
                [only] => &only.stderr,
                _ => &[],
            },
            _ => &[],
        }
    }

    /// Whether the request may have taken effect on the server.
    #[must_use]
    pub const fn may_have_executed(&self) -> bool {
        matches!(self.ran, Ran::Maybe)
    }

    /// Whether the tool does not exist, or not yet: [`Cause::ToolNotFound`] and
    /// [`Cause::CapabilityMissing`] with their kinds.
    #[must_use]
    pub const fn is_tool_not_found(&self) -> bool {
        matches!(
            self.cause,
            Cause::ToolNotFound { .. }
                | Cause::CapabilityMissing { .. }
                | Cause::Quarantined { .. }
                | Cause::NotListed { .. }
        )
    }
}

/// `{}`: what went wrong, and with whom. `{:#}`: and what to do about it.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(peer) = &self.peer {
            write!(f, "{peer}: ")?;
        }
        write!(f, "{}", self.cause)?;
        match f.alternate() {
            true => write!(f, "; to do: {}", self.remedy()),
            false => Ok(()),
        }
    }
}

impl core::error::Error for Error {}
