//! The least that a call over a pipe can cost: a loop written by hand that writes a ready request and
//! reads past the answer.

use std::io::{self, Read, Write};

use serde::de::IgnoredAny;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::payload;

/// As much as a full pipe holds.
const CHUNK_BYTES: usize = 64 << 10;

/// The two ends of a pipe, and what to say.
pub(crate) struct Loop<R, W> {
    reader: R,
    writer: W,
    requests: Vec<u8>,
    awaited: usize,
    lines: Lines,
}

impl<R, W> Loop<R, W> {
    /// A loop with so many requests in flight.
    pub(crate) fn new(reader: R, writer: W, in_flight: usize) -> Self {
        Self {
            reader,
            writer,
            requests: payload::request().repeat(in_flight).into_bytes(),
            awaited: in_flight,
            lines: Lines::default(),
        }
    }
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Loop<R, W> {
    /// Asks for all at once and awaits the answers.
    pub(crate) async fn turn(&mut self) -> io::Result<()> {
        self.writer.write_all(&self.requests).await?;
        let mut answered = 0;
        while answered < self.awaited {
            let count = self.reader.read(self.lines.room()).await?;
            answered += self.lines.skip(count)?;
        }
        Ok(())
    }
}

impl<R: Read, W: Write> Loop<R, W> {
    /// The same, blocking.
    pub(crate) fn turn_blocking(&mut self) -> io::Result<()> {
        self.writer.write_all(&self.requests)?;
        let mut answered = 0;
        while answered < self.awaited {
            let count = self.reader.read(self.lines.room())?;
            answered += self.lines.skip(count)?;
        }
        Ok(())
    }
}

/// Lines that are read past.
struct Lines {
    buffer: Vec<u8>,
    held: usize,
}

impl Default for Lines {
    fn default() -> Self {
        Self {
            buffer: vec![0; 2 * CHUNK_BYTES],
            held: 0,
        }
    }
}

impl Lines {
    fn room(&mut self) -> &mut [u8] {
        &mut self.buffer[self.held..]
    }

    /// Reads past the lines that are complete with so many new bytes; says how many they are.
    fn skip(&mut self, count: usize) -> io::Result<usize> {
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.held += count;
        let (mut start, mut lines) = (0, 0);
        while let Some(length) = memchr::memchr(b'\n', &self.buffer[start..self.held]) {
            let _: IgnoredAny = serde_json::from_slice(&self.buffer[start..start + length])?;
            start += length + 1;
            lines += 1;
        }
        self.buffer.copy_within(start..self.held, 0);
        self.held -= start;
        Ok(lines)
    }
}
