//! The door in: facts, in the past tense.
//!
//! A driver reports what happened and decides nothing. Facts about a link that was released, or whose
//! process has been replaced, change nothing.

use alloc::string::String;
use alloc::vec::Vec;

use crate::ids::LinkId;

/// Something that happened in the world.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Nothing but time: the instant named by [`poll_timeout`](crate::Client::poll_timeout) was reached.
    TimePassed,
    /// The process runs (or the stream stands); bytes can be written now.
    LinkOpened {
        /// The link of the [`OpenLink`](crate::Action::OpenLink) that is answered.
        link: LinkId,
    },
    /// The process could not be started (or the stream is not there). Nothing else follows for this link.
    LinkFailed {
        /// The link of the [`OpenLink`](crate::Action::OpenLink) that is answered.
        link: LinkId,
        /// Why.
        failure: IoFailure,
    },
    /// Bytes arrived from the server, split anywhere.
    LinkData {
        /// Where from.
        link: LinkId,
        /// The bytes; the core copies what it keeps.
        bytes: &'a [u8],
    },
    /// Bytes arrived on standard error. Always read it: a full pipe blocks the server.
    LinkStderr {
        /// Where from.
        link: LinkId,
        /// The bytes; the core keeps a bounded tail.
        bytes: &'a [u8],
    },
    /// Standard error ended, or reading it failed; no [`LinkStderr`](Event::LinkStderr) follows. A host that
    /// cannot tell leaves this out: the core then waits a moment longer for a dead server's last words.
    LinkStderrEnded {
        /// Which link.
        link: LinkId,
    },
    /// All bytes of the one outstanding [`Write`](crate::Action::Write) are with the operating system.
    LinkWritten {
        /// Which link has its write credit back.
        link: LinkId,
        /// The written buffer, handed back to be filled again. An empty one is fine.
        spent: Vec<u8>,
    },
    /// Nothing can be written any more: the server closed its input or a write failed.
    LinkWriteFailed {
        /// Which link.
        link: LinkId,
        /// Why.
        failure: IoFailure,
    },
    /// The server's output ended, or reading it failed; no [`LinkData`](Event::LinkData) follows.
    LinkEnded {
        /// Which link.
        link: LinkId,
    },
    /// The process is gone. For a stream without a process the driver never reports this.
    ///
    /// What it still has in its pipes is reported as usual, before or after: the core waits for the ends of
    /// both, but not for long, because a grandchild may hold them open.
    LinkExited {
        /// Which link.
        link: LinkId,
        /// How it went.
        exit: Exit,
    },
    /// A piece of what stands in the ledger's file.
    LedgerRead {
        /// The bytes, as they follow each other.
        bytes: &'a [u8],
    },
    /// The ledger's file is read to its end.
    LedgerEnded,
    /// The outstanding [`AppendLedger`](crate::Action::AppendLedger) is done.
    LedgerAppended,
    /// Reading the ledger or the outstanding append failed. A file that is not there has nothing in it.
    LedgerFailed {
        /// Why.
        failure: IoFailure,
    },
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this status.
    Code(i32),
    /// It was ended by this signal (POSIX).
    Signal(i32),
    /// The operating system did not say.
    Unknown,
}

impl Exit {
    /// What POSIX says of an ended process: its status, or the signal that ended it.
    #[must_use]
    pub const fn of(code: Option<i32>, signal: Option<i32>) -> Self {
        match (code, signal) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Unknown,
        }
    }
}

impl core::fmt::Display for Exit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with status {code}"),
            Self::Signal(signal) => write!(f, "was ended by signal {signal}"),
            Self::Unknown => f.write_str("exited"),
        }
    }
}

/// A failure of the machine that the driver runs on, as plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoFailure {
    /// What kind of failure.
    pub kind: IoKind,
    /// The operating system's words, without secrets.
    pub detail: String,
}

impl IoFailure {
    /// There is no stream of the name that a [`LinkTarget::Stream`](crate::LinkTarget::Stream) has.
    #[must_use]
    pub fn no_stream() -> Self {
        Self {
            kind: IoKind::NotFound,
            detail: "no stream was supplied under this name, or it was used before".into(),
        }
    }
}

/// The kind and the operating system's words. What a stream of the application's says itself is left
/// out, because it may hold anything.
#[cfg(feature = "std")]
impl From<&std::io::Error> for IoFailure {
    fn from(error: &std::io::Error) -> Self {
        use alloc::string::ToString;
        Self {
            kind: error.kind().into(),
            detail: match error.raw_os_error() {
                Some(_) => error.to_string(),
                None => error.kind().to_string(),
            },
        }
    }
}

#[cfg(feature = "std")]
impl From<std::io::Error> for IoFailure {
    fn from(error: std::io::Error) -> Self {
        Self::from(&error)
    }
}

/// Kinds of I/O failure that make a difference to what a person should do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IoKind {
    /// The program or directory does not exist.
    NotFound,
    /// The program may not be executed.
    PermissionDenied,
    /// The other side closed the stream.
    BrokenPipe,
    /// Anything else.
    Other,
}

#[cfg(feature = "std")]
impl From<std::io::ErrorKind> for IoKind {
    fn from(kind: std::io::ErrorKind) -> Self {
        use std::io::ErrorKind;
        match kind {
            ErrorKind::NotFound => Self::NotFound,
            ErrorKind::PermissionDenied => Self::PermissionDenied,
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::WriteZero => {
                Self::BrokenPipe
            }
            _ => Self::Other,
        }
    }
}
