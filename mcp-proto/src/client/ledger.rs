//! The ledger's file: read once, then appended to, one append at a time.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::action::Action;
use crate::cost::LedgerLine;
use crate::secret::Templated;

/// How much may wait to be appended, in bytes.
const QUEUED_BYTES: usize = 1 << 20;

/// How much of a file is read, in bytes: some millions of lines.
pub(super) const READ_BYTES_MAX: u64 = 1 << 30;

/// What is to be done about one file. Lines keep their order: at most one append is outstanding.
#[derive(Debug)]
pub(super) struct LedgerFile {
    path: Templated,
    stage: Stage,
    /// How much of it was read.
    read_bytes: u64,
    /// Lines that wait, and how many they are.
    queued: Vec<u8>,
    lines: u64,
    sync: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Not asked for yet.
    Unread,
    Reading,
    Idle,
    /// So many lines are being appended.
    Appending(u64),
}

impl LedgerFile {
    pub(super) const fn new(path: Templated) -> Self {
        Self {
            path,
            stage: Stage::Unread,
            read_bytes: 0,
            queued: Vec::new(),
            lines: 0,
            sync: false,
        }
    }

    pub(super) fn read(&mut self, actions: &mut VecDeque<Action>) {
        if self.stage == Stage::Unread {
            self.stage = Stage::Reading;
            let path = self.path.clone();
            let max_bytes = READ_BYTES_MAX;
            actions.push_back(Action::ReadLedger { path, max_bytes });
        }
    }

    /// Whether it is still unknown what stands in it.
    pub(super) const fn is_unread(&self) -> bool {
        matches!(self.stage, Stage::Unread | Stage::Reading)
    }

    pub(super) fn is_reading(&self) -> bool {
        self.stage == Stage::Reading
    }

    /// Whether nothing waits and nothing is outstanding.
    pub(super) const fn is_idle(&self) -> bool {
        self.lines == 0 && matches!(self.stage, Stage::Unread | Stage::Idle)
    }

    /// A piece of it was read.
    pub(super) const fn count(&mut self, bytes: &[u8]) {
        self.read_bytes = self.read_bytes.saturating_add(bytes.len() as u64);
    }

    /// Whether there may be more of it than was read.
    pub(super) const fn is_too_long(&self) -> bool {
        self.read_bytes >= READ_BYTES_MAX
    }

    /// Reading has come to its end, one way or the other.
    pub(super) fn was_read(&mut self) {
        if self.stage == Stage::Reading {
            self.stage = Stage::Idle;
        }
    }

    /// Queues a line; `false` when there is no room for it.
    pub(super) fn append(&mut self, line: &LedgerLine) -> bool {
        let fits = self.queued.len().saturating_add(line.bytes.len()) <= QUEUED_BYTES;
        if fits {
            self.queued.extend_from_slice(&line.bytes);
            self.lines = self.lines.saturating_add(1);
            self.sync |= line.sync;
        }
        fits
    }

    /// The outstanding append is done.
    pub(super) fn appended(&mut self) {
        if matches!(self.stage, Stage::Appending(_)) {
            self.stage = Stage::Idle;
        }
    }

    /// The outstanding append failed: how many lines may be missing, or be there in part.
    pub(super) fn append_failed(&mut self) -> u64 {
        let Stage::Appending(lines) = self.stage else {
            return 0;
        };
        self.stage = Stage::Idle;
        if self.lines > 0 {
            // What waits must not be glued to half a line.
            self.queued.insert(0, b'\n');
        }
        lines
    }

    /// Hands out what waits, unless an append is outstanding.
    pub(super) fn flush(&mut self, actions: &mut VecDeque<Action>) {
        if self.stage != Stage::Idle || self.lines == 0 {
            return;
        }
        self.stage = Stage::Appending(core::mem::take(&mut self.lines));
        let line = LedgerLine {
            bytes: core::mem::take(&mut self.queued),
            sync: core::mem::take(&mut self.sync),
        };
        let path = self.path.clone();
        actions.push_back(Action::AppendLedger { path, line });
    }
}
