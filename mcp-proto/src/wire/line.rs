//! Splitting a byte stream into lines (R100).

use alloc::vec::Vec;

/// How much of an over-long line is kept to recognise it by.
const PREFIX_BYTES: usize = 1 << 10;
/// A buffer that has grown larger than this is given back once it is empty.
const KEEP_BYTES: usize = 1 << 20;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// One line of a byte stream, without its line end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A whole line that is not blank.
    Complete(&'a [u8]),
    /// A line longer than the limit. It is reported once, as soon as that is known; the rest of it
    /// is skipped.
    TooLong {
        /// The beginning of the line, at most 1 KiB.
        prefix: &'a [u8],
        /// How long the line is as far as it has arrived, in bytes. Depends on how the stream was cut.
        length_bytes: usize,
    },
}

/// Reassembles lines from chunks of any size.
///
/// A line ends with LF or CRLF. One byte order mark at the start of the stream is dropped, and so are
/// lines of nothing but white space. No byte is searched twice, and a chunk of whole lines is not
/// copied. Memory is bounded by the limit plus what the caller left unread.
///
/// ```
/// use mcp_proto::wire::{Line, LineBuffer};
/// let mut buffer = LineBuffer::new(1024);
/// let mut lines = buffer.feed(b"{\"a\":1}\r\n{\"b\"");
/// assert_eq!(lines.next(), Some(Line::Complete(b"{\"a\":1}")));
/// assert_eq!(lines.next(), None);
/// drop(lines);
/// assert_eq!(buffer.buffered_bytes(), 4);
/// ```
#[derive(Clone, Debug)]
pub struct LineBuffer {
    limit_bytes: usize,
    buffer: Vec<u8>,
    /// Everything before this has been handed out.
    start: usize,
    /// Everything before this holds no line end. Never before `start`.
    scanned: usize,
    /// Inside an over-long line that was reported already.
    skipping: bool,
    /// How many bytes of a byte order mark the stream has begun with; `None` once that is settled.
    bom_bytes: Option<usize>,
}

impl LineBuffer {
    /// An empty buffer at the start of a stream.
    ///
    /// `limit_bytes` is the length of the longest line to accept, without its line end.
    #[must_use]
    pub const fn new(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            skipping: false,
            bom_bytes: Some(0),
        }
    }

    /// Takes the next chunk of the stream and gives its lines.
    ///
    /// What is unread when [`Lines`] is dropped is kept for the next call.
    pub fn feed<'b>(&'b mut self, chunk: &'b [u8]) -> Lines<'b> {
        let chunk = self.strip_bom(chunk);
        Lines {
            buffer: self,
            chunk,
        }
    }

    /// The lines that are left at the end of the stream, the last one without a line end. Call it
    /// until it returns `None`.
    pub fn finish(&mut self) -> Option<Line<'_>> {
        if let Some(matched @ 1..) = self.bom_bytes.take() {
            self.append(BOM.get(..matched).unwrap_or_default());
        }
        loop {
            let span = match self.next_buffered() {
                Some(span) => span,
                None if self.skipping || self.start == self.buffer.len() => return None,
                None => {
                    let span = (self.start, self.buffer.len());
                    self.consume_to(span.1);
                    span
                }
            };
            if self.is_line(span) {
                return Some(judge(self.slice(span), self.limit_bytes));
            }
        }
    }

    /// How many bytes are held that have not been handed out.
    #[must_use]
    pub const fn buffered_bytes(&self) -> usize {
        let bom_bytes = match self.bom_bytes {
            Some(matched) => matched,
            None => 0,
        };
        self.buffer.len() - self.start + bom_bytes
    }

    /// The next whole line of the buffer as a range without its LF.
    fn next_buffered(&mut self) -> Option<(usize, usize)> {
        let fresh = self.buffer.get(self.scanned..).unwrap_or_default();
        let Some(offset) = memchr::memchr(b'\n', fresh) else {
            self.scanned = self.buffer.len();
            return None;
        };
        let span = (self.start, self.scanned + offset);
        self.consume_to(span.1 + 1);
        Some(span)
    }

    fn consume_to(&mut self, end: usize) {
        self.start = end;
        self.scanned = end;
    }

    fn slice(&self, (from, to): (usize, usize)) -> &[u8] {
        self.buffer.get(from..to).unwrap_or_default()
    }

    fn is_line(&self, span: (usize, usize)) -> bool {
        is_line(self.slice(span), self.limit_bytes)
    }

    fn pending(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    fn append(&mut self, bytes: &[u8]) {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            if self.buffer.capacity() > KEEP_BYTES {
                self.buffer = Vec::new();
            }
            self.consume_to(0);
        } else if self.start > 0 && self.buffer.len() + bytes.len() > self.buffer.capacity() {
            self.buffer.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Drops a byte order mark at the start of the stream, however it was cut.
    fn strip_bom<'b>(&mut self, mut chunk: &'b [u8]) -> &'b [u8] {
        while let Some(matched) = self.bom_bytes {
            match chunk.split_first() {
                None => break,
                Some((byte, rest)) if Some(byte) == BOM.get(matched) => {
                    self.bom_bytes = Some(matched + 1).filter(|&bytes| bytes < BOM.len());
                    chunk = rest;
                }
                Some(_) => {
                    self.bom_bytes = None;
                    self.append(BOM.get(..matched).unwrap_or_default());
                }
            }
        }
        chunk
    }
}

/// The lines of one chunk. Lends each line until the next call.
#[derive(Debug)]
pub struct Lines<'b> {
    buffer: &'b mut LineBuffer,
    chunk: &'b [u8],
}

impl Lines<'_> {
    /// The next line, or `None` when the rest of the stream is needed to tell.
    // Not `Iterator`: a line borrows from the buffer that the next call changes.
    #[expect(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<Line<'_>> {
        let limit_bytes = self.buffer.limit_bytes;
        loop {
            if self.buffer.skipping && !self.skip() {
                return None;
            }
            if let Some(span) = self.buffer.next_buffered() {
                if self.buffer.is_line(span) {
                    return Some(judge(self.buffer.slice(span), limit_bytes));
                }
                continue;
            }
            let chunk = self.chunk;
            let Some(end) = memchr::memchr(b'\n', chunk) else {
                return self.keep_rest();
            };
            let (line, rest) = (chunk.get(..end)?, chunk.get(end + 1..)?);
            self.chunk = rest;
            if self.buffer.pending().is_empty() {
                if is_line(line, limit_bytes) {
                    return Some(judge(line, limit_bytes));
                }
            } else {
                let length_bytes = self.joined_len(line);
                let span = self.join(line);
                if self.buffer.is_line(span) {
                    let line = self.buffer.slice(span);
                    return Some(judge_joined(line, length_bytes, limit_bytes));
                }
            }
        }
    }

    /// Skips the rest of an over-long line; whether its end was found.
    fn skip(&mut self) -> bool {
        let (found, rest) = match memchr::memchr(b'\n', self.chunk) {
            Some(end) => (true, self.chunk.get(end + 1..).unwrap_or_default()),
            None => (false, Default::default()),
        };
        self.chunk = rest;
        self.buffer.skipping = !found;
        found
    }

    /// The length of the line in the buffer once this is joined to it. A final CR does not count: it
    /// is part of the line end, or may turn out to be.
    fn joined_len(&self, line: &[u8]) -> usize {
        let pending = self.buffer.pending();
        let last = line.last().or_else(|| pending.last());
        pending.len() + line.len() - usize::from(last == Some(&b'\r'))
    }

    /// Joins the end of a line to the beginning in the buffer, which is taken out of it. Of an
    /// over-long line only as much is copied as is needed to report it.
    fn join(&mut self, line: &[u8]) -> (usize, usize) {
        let room = self
            .buffer
            .limit_bytes
            .max(PREFIX_BYTES)
            .saturating_add(2)
            .saturating_sub(self.buffer.pending().len());
        self.buffer.append(line.get(..room).unwrap_or(line));
        let span = (self.buffer.start, self.buffer.buffer.len());
        self.buffer.consume_to(span.1);
        span
    }

    /// Keeps a chunk without a line end, unless that makes the line too long.
    fn keep_rest(&mut self) -> Option<Line<'_>> {
        let chunk = core::mem::take(&mut self.chunk);
        let length_bytes = self.joined_len(chunk);
        if length_bytes <= self.buffer.limit_bytes {
            self.buffer.append(chunk);
            self.buffer.scanned = self.buffer.buffer.len();
            return None;
        }
        let span = self.join(chunk);
        self.buffer.skipping = true;
        let line = self.buffer.slice(span);
        Some(too_long(line, length_bytes, self.buffer.limit_bytes))
    }
}

impl Drop for Lines<'_> {
    fn drop(&mut self) {
        if self.buffer.skipping && !self.skip() {
            return;
        }
        if !self.chunk.is_empty() {
            self.buffer.append(self.chunk);
        }
    }
}

fn judge(line: &[u8], limit_bytes: usize) -> Line<'_> {
    judge_joined(line, without_cr_len(line), limit_bytes)
}

fn judge_joined(line: &[u8], length_bytes: usize, limit_bytes: usize) -> Line<'_> {
    if length_bytes > limit_bytes {
        too_long(line, length_bytes, limit_bytes)
    } else {
        Line::Complete(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

/// The prefix never depends on how the stream was cut, so that replays agree.
fn too_long(line: &[u8], length_bytes: usize, limit_bytes: usize) -> Line<'_> {
    let prefix = line.get(..limit_bytes.min(PREFIX_BYTES)).unwrap_or(line);
    Line::TooLong {
        prefix,
        length_bytes,
    }
}

fn without_cr_len(line: &[u8]) -> usize {
    line.len() - usize::from(line.last() == Some(&b'\r'))
}

/// Whether there is something to report. A blank line is reported all the same when it is too long,
/// because that is known before its end is.
fn is_line(line: &[u8], limit_bytes: usize) -> bool {
    let blank = line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
    !blank || without_cr_len(line) > limit_bytes
}
