//! The door out: wishes, in the imperative.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::config::SpawnPlan;
use crate::cost::LedgerLine;
use crate::ids::LinkId;
use crate::operation::News;
use crate::secret::Templated;

/// Something that the client wants done. Perform actions in the order in which they come.
#[derive(Debug)]
#[non_exhaustive]
pub enum Action {
    /// Start the process (or take the stream). Answer with [`LinkOpened`](crate::Event::LinkOpened) or
    /// [`LinkFailed`](crate::Event::LinkFailed).
    OpenLink {
        /// The name that the link has from now on.
        link: LinkId,
        /// What to open.
        target: Arc<LinkTarget>,
    },
    /// Write all of these bytes. Never more than one is outstanding per link; answer with
    /// [`LinkWritten`](crate::Event::LinkWritten) or [`LinkWriteFailed`](crate::Event::LinkWriteFailed).
    Write {
        /// Where to.
        link: LinkId,
        /// Whole messages, each ended by a newline.
        bytes: Vec<u8>,
    },
    /// Close the server's standard input (or the writing half of the stream), dropping what is not
    /// written yet.
    CloseInput {
        /// Whose.
        link: LinkId,
    },
    /// Ask the process group to end (`SIGTERM`), or end it (`SIGKILL`). On a stream: nothing.
    Terminate {
        /// Whose.
        link: LinkId,
        /// `false`: ask; `true`: kill.
        force: bool,
    },
    /// Let go of everything that belongs to the link: close its pipes, kill what is left of its process
    /// group, reap the process. Facts about it are ignored from now on.
    Release {
        /// Which.
        link: LinkId,
    },
    /// Read the ledger's file, whatever else is done meanwhile. Report what stands in it as
    /// [`LedgerRead`](crate::Event::LedgerRead), in pieces of any size, and then
    /// [`LedgerEnded`](crate::Event::LedgerEnded); or [`LedgerFailed`](crate::Event::LedgerFailed).
    ReadLedger {
        /// Its path; relative to the host's working directory. Anything but a regular file is a failure: a pipe
        /// may never end, and may not even be opened.
        path: Templated,
        /// Stop after so many bytes, as if that were the end.
        max_bytes: u64,
    },
    /// Append to the ledger's file, which is made if it is not there: all bytes in one write, flushed to
    /// the disk where the line says so. Nothing waits for it, and never more than one is outstanding. Answer
    /// with [`LedgerAppended`](crate::Event::LedgerAppended) or
    /// [`LedgerFailed`](crate::Event::LedgerFailed).
    AppendLedger {
        /// Its path, as before.
        path: Templated,
        /// What to append.
        line: LedgerLine,
    },
    /// Hand this to the application.
    Deliver(News),
}

/// What a link leads to.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkTarget {
    /// A child process, its standard input and output being the link.
    Process(SpawnPlan),
    /// A byte stream that the host supplies under the peer's name: a socket, an in-memory duplex, a
    /// container's exec pipe.
    Stream {
        /// The peer's configured name.
        name: String,
    },
}
