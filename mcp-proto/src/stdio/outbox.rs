//! Messages on their way out, under write credit.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::mem;

/// As much as one write carries: a Linux pipe holds 64 KiB.
const WRITE_BYTES_MAX: usize = 64 << 10;

/// Whole messages that wait for the one outstanding write to be done.
///
/// What still stands here has provably not been executed: it can be withdrawn.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    queued: Vec<u8>,
    index: VecDeque<Queued>,
    /// The requests among them.
    requests: BTreeSet<u64>,
    spare: Vec<u8>,
    outstanding: bool,
}

/// One message in `queued`, in order.
#[derive(Debug)]
struct Queued {
    request: Option<u64>,
    len: usize,
}

impl Outbox {
    /// Appends one message; `encode` writes exactly one line with its newline. `request` is the id of a
    /// request that may be withdrawn.
    pub(crate) fn push(&mut self, request: Option<u64>, encode: impl FnOnce(&mut Vec<u8>)) {
        let before = self.queued.len();
        encode(&mut self.queued);
        let len = self.queued.len().saturating_sub(before);
        self.index.push_back(Queued { request, len });
        self.requests.extend(request);
    }

    /// Takes a request out again; `false` when it has been handed to a write.
    pub(crate) fn withdraw(&mut self, request: u64) -> bool {
        if !self.requests.remove(&request) {
            return false;
        }
        let mut start = 0_usize;
        for (position, entry) in self.index.iter().enumerate() {
            let end = start.saturating_add(entry.len);
            if entry.request == Some(request) {
                self.queued.drain(start..end);
                self.index.remove(position);
                return true;
            }
            start = end;
        }
        false
    }

    /// Takes out everything that has not been handed to a write.
    pub(crate) fn withdraw_all(&mut self) {
        self.queued.clear();
        self.index.clear();
        self.requests.clear();
    }

    /// Whether a request waits here: it has provably not been written.
    pub(crate) fn holds(&self, request: u64) -> bool {
        self.requests.contains(&request)
    }

    /// The next buffer to write, when there is one and no other write is outstanding.
    pub(crate) fn take_write(&mut self) -> Option<Vec<u8>> {
        if self.outstanding || self.index.is_empty() {
            return None;
        }
        self.outstanding = true;
        if self.queued.len() <= WRITE_BYTES_MAX {
            self.index.clear();
            self.requests.clear();
            return Some(mem::replace(&mut self.queued, mem::take(&mut self.spare)));
        }
        let mut end = 0_usize;
        while let Some(entry) = self.index.front() {
            let next = end.saturating_add(entry.len);
            if end > 0 && next > WRITE_BYTES_MAX {
                break;
            }
            end = next;
            if let Some(request) = entry.request {
                self.requests.remove(&request);
            }
            self.index.pop_front();
        }
        let rest = self.queued.split_off(end.min(self.queued.len()));
        Some(mem::replace(&mut self.queued, rest))
    }

    /// The outstanding write is done; its buffer is used again.
    pub(crate) fn written(&mut self, mut spent: Vec<u8>) {
        self.outstanding = false;
        if spent.capacity() <= 2 * WRITE_BYTES_MAX && spent.capacity() > self.spare.capacity() {
            spent.clear();
            self.spare = spent;
        }
    }

    /// Messages that wait here.
    pub(crate) fn queued_messages(&self) -> usize {
        self.index.len()
    }

    /// Bytes that wait here.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.queued.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(outbox: &mut Outbox, request: u64, text: &str) {
        outbox.push(Some(request), |out| out.extend_from_slice(text.as_bytes()));
    }

    #[test]
    fn at_most_one_write_is_outstanding_and_what_waits_leaves_as_one_buffer() {
        let mut outbox = Outbox::default();
        push(&mut outbox, 1, "a\n");
        assert_eq!(outbox.take_write().as_deref(), Some(&b"a\n"[..]));
        push(&mut outbox, 2, "b\n");
        push(&mut outbox, 3, "c\n");
        assert_eq!(outbox.take_write(), None);
        outbox.written(Vec::new());
        assert_eq!(outbox.take_write().as_deref(), Some(&b"b\nc\n"[..]));
    }

    #[test]
    fn a_request_can_be_withdrawn_until_it_is_handed_to_a_write() {
        let mut outbox = Outbox::default();
        push(&mut outbox, 1, "a\n");
        let _ = outbox.take_write();
        push(&mut outbox, 2, "b\n");
        push(&mut outbox, 3, "cc\n");
        push(&mut outbox, 4, "d\n");
        assert!(!outbox.withdraw(1));
        assert!(outbox.withdraw(3));
        assert!(!outbox.withdraw(3));
        outbox.written(Vec::new());
        assert_eq!(outbox.take_write().as_deref(), Some(&b"b\nd\n"[..]));
    }

    #[test]
    fn large_queues_are_cut_between_messages() {
        let mut outbox = Outbox::default();
        let message = alloc::format!("{}\n", "x".repeat(40_000));
        for id in 1..=3 {
            push(&mut outbox, id, &message);
        }
        for _ in 1..=3 {
            assert_eq!(outbox.take_write().map(|bytes| bytes.len()), Some(40_001));
            outbox.written(Vec::new());
        }
        assert_eq!(outbox.take_write(), None);
    }
}
