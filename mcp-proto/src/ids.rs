//! Handles: small copyable names for peers, links and operations.
//!
//! Every handle to something outside carries a generation, so that a fact about a dead process can
//! never be mistaken for one about its successor.

use core::fmt;

/// One configured server, for the life of the client. Assigned in the order of addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(u32);

impl PeerId {
    /// The peer with this index.
    #[must_use]
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// The position of this peer in order of addition, from 0.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.0)
    }
}

/// One life of one byte stream: a process, or a stream handed over by the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId {
    /// The peer that the link belongs to.
    pub peer: PeerId,
    /// Which life it is, from 1; a respawned process has the next serial.
    pub serial: u32,
}

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.peer, self.serial)
    }
}

/// One operation of the application (a call, a list, a read, …), from submission to its one outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(u64);

impl OperationId {
    /// The operation with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number, unique within one client, from 1.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "o{}", self.0)
    }
}

/// One question to the application about one operation: for input (R30), or whether a request may be sent
/// again (R34); the two are counted apart, and answered apart. An answer names its question, so that one that
/// comes too late is never taken for that to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Question(u32);

impl Question {
    /// The question with this number, from 1 for each operation and kind.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "q{}", self.0)
    }
}
