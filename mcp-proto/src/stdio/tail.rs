//! The newest bytes of something that may go on for ever.

use alloc::string::String;
use alloc::vec::Vec;

use crate::wire::printable;

/// How much is left out of a single line whose beginning is gone, in bytes: longer than most secrets.
const CUT_LINE_BYTES: usize = 1024;

/// Keeps the last `limit_bytes` bytes. Memory is bounded by twice that.
#[derive(Debug)]
pub(crate) struct Tail {
    bytes: Vec<u8>,
    limit_bytes: usize,
    total: u64,
}

impl Tail {
    pub(crate) const fn new(limit_bytes: usize) -> Self {
        Self {
            bytes: Vec::new(),
            limit_bytes,
            total: 0,
        }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.total = self.total.saturating_add(chunk.len() as u64);
        let newest = chunk
            .split_at(chunk.len().saturating_sub(self.limit_bytes))
            .1;
        if self.bytes.len().saturating_add(newest.len()) > self.limit_bytes.saturating_mul(2) {
            let keep = self.limit_bytes.saturating_sub(newest.len());
            self.bytes.drain(..self.bytes.len().saturating_sub(keep));
        }
        self.bytes.extend_from_slice(newest);
    }

    /// How much is held.
    pub(crate) const fn buffered_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The tail as lines fit for a terminal: control characters are escaped, whole lines preferred.
    pub(crate) fn lines(&self) -> Vec<String> {
        let start = self.bytes.len().saturating_sub(self.limit_bytes);
        let mut tail = self.bytes.split_at(start).1;
        let cut = start > 0 || self.total > self.bytes.len() as u64;
        if cut {
            // Of a line whose beginning is gone nobody can tell what it is the rest of: it may be a secret's.
            let rest = memchr::memchr(b'\n', tail).map_or_else(
                || CUT_LINE_BYTES.min(tail.len() / 2),
                |newline| newline.saturating_add(1),
            );
            tail = tail.split_at(rest).1;
        }
        tail.split(|byte| *byte == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
            .filter(|line| !line.iter().all(u8::is_ascii_whitespace))
            .map(|line| printable(line, 400))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_whole_newest_lines_within_its_bound() {
        let mut tail = Tail::new(16);
        for n in 0..1000 {
            tail.push(alloc::format!("line {n}\r\n").as_bytes());
            assert!(tail.bytes.len() <= 32);
        }
        assert_eq!(tail.lines(), ["line 999"]);
    }

    #[test]
    fn one_chunk_larger_than_the_bound_leaves_its_end() {
        let mut tail = Tail::new(8);
        tail.push(b"0123456789abcdef");
        assert_eq!(tail.lines(), ["cdef"]);
    }

    #[test]
    fn control_characters_do_not_reach_a_terminal() {
        let mut tail = Tail::new(64);
        tail.push(b"\x1b[31mred\n");
        assert!(!tail.lines().concat().contains('\u{1b}'));
    }
}
