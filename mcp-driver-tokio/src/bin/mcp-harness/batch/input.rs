//! Reading ahead, within bounds.

use std::collections::VecDeque;
use std::io::{self, BufRead};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::job::{Job, Malformed, Task, parse};

/// The longest line, in bytes.
const LINE_BYTES_MAX: usize = 64 << 20;
/// So much is read ahead, in bytes of lines, unless the bound is lifted.
const AHEAD_BYTES_MAX: usize = 64 << 20;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// One line that is not empty.
#[derive(Debug)]
pub(super) struct Line {
    /// Its number, from 1; empty lines count.
    pub(super) number: u64,
    pub(super) job: Result<Job, Malformed>,
    bytes: usize,
}

/// Lines that were read and not yet started.
#[derive(Default)]
pub(super) struct Input {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    lines: VecDeque<Line>,
    bytes: usize,
    ended: bool,
    stopped: bool,
    /// The reader has a line in its hands and waits for room.
    in_hand: bool,
    unbounded: bool,
}

impl Input {
    /// The next line; `None` at the end of input, or when it was stopped and all that was read is taken.
    pub(super) fn next(&self) -> Option<Line> {
        let mut queue = self.lock();
        loop {
            if let Some(line) = queue.lines.pop_front() {
                queue.bytes -= line.bytes;
                self.changed.notify_all();
                return Some(line);
            }
            if queue.ended || (queue.stopped && !queue.in_hand) {
                return None;
            }
            queue = self.wait(queue);
        }
    }

    /// No more lines are read.
    pub(super) fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Whether reading ahead goes on without a bound. It must while only the input can end what the next
    /// line waits for: the end would not be seen otherwise.
    pub(super) fn lift_bound(&self, unbounded: bool) {
        self.lock().unbounded = unbounded;
        self.changed.notify_all();
    }

    /// Reads to the end. `on_close` is told of a line that closes, before that is its turn.
    pub(super) fn fill(&self, mut reader: impl BufRead, on_close: impl Fn()) -> io::Result<()> {
        let result = self.read_lines(&mut reader, on_close);
        self.lock().ended = true;
        self.changed.notify_all();
        result
    }

    fn read_lines(&self, reader: &mut impl BufRead, on_close: impl Fn()) -> io::Result<()> {
        let mut number = 0;
        while let Some(line) = read_line(reader)? {
            number += 1;
            let Some(line) = interpret(line, number) else {
                continue;
            };
            let closes = matches!(&line.job, Ok(job) if matches!(job.task, Task::Close));
            if !self.push(line) {
                break;
            }
            if closes {
                on_close();
            }
        }
        Ok(())
    }

    /// Waits for room; `false` when no more lines are wanted.
    fn push(&self, line: Line) -> bool {
        let mut queue = self.lock();
        queue.in_hand = true;
        while !queue.has_room(line.bytes) && !queue.stopped {
            queue = self.wait(queue);
        }
        queue.in_hand = false;
        queue.bytes += line.bytes;
        queue.lines.push_back(line);
        self.changed.notify_all();
        !queue.stopped
    }

    fn wait<'a>(&self, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        self.changed
            .wait(queue)
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    const fn has_room(&self, bytes: usize) -> bool {
        self.unbounded || self.bytes == 0 || self.bytes + bytes <= AHEAD_BYTES_MAX
    }
}

/// A line as it stands in the input, or that it is too long.
enum Raw {
    Bytes(Vec<u8>),
    TooLong,
}

/// The line's operation; `None` for an empty line.
fn interpret(raw: Raw, number: u64) -> Option<Line> {
    let (job, bytes) = match raw {
        Raw::Bytes(line) => {
            let text = match line.strip_prefix(BOM) {
                Some(rest) if number == 1 => rest,
                _ => line.as_slice(),
            };
            if text.trim_ascii().is_empty() {
                return None;
            }
            (parse(text), line.len())
        }
        Raw::TooLong => {
            let message = format!("the line is longer than {LINE_BYTES_MAX} bytes");
            (Err(Malformed { id: None, message }), 0)
        }
    };
    Some(Line { number, job, bytes })
}

/// The next line without its end; `None` at the end of input. A line that is too long is skipped.
fn read_line(reader: &mut impl BufRead) -> io::Result<Option<Raw>> {
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let chunk = match reader.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if chunk.is_empty() {
            let nothing = line.is_empty() && !too_long;
            return Ok((!nothing).then(|| whole(line, too_long)));
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let (part, taken) = match end {
            Some(end) => (chunk.get(..end).unwrap_or_default(), end + 1),
            None => (chunk, chunk.len()),
        };
        too_long |= line.len() + part.len() > LINE_BYTES_MAX;
        if too_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(part);
        }
        reader.consume(taken);
        if end.is_some() {
            return Ok(Some(whole(line, too_long)));
        }
    }
}

fn whole(line: Vec<u8>, too_long: bool) -> Raw {
    if too_long {
        Raw::TooLong
    } else {
        Raw::Bytes(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &[u8]) -> Vec<(u64, bool)> {
        let input = Input::default();
        input.fill(text, || {}).unwrap();
        std::iter::from_fn(|| input.next())
            .map(|line| (line.number, line.job.is_ok()))
            .collect()
    }

    #[test]
    fn lines_end_with_a_line_feed_or_the_input_and_empty_ones_only_count() {
        let text = b"\xef\xbb\xbf{\"id\":1,\"op\":\"report\"}\r\n\n  \r\nnope\n{\"id\":2,\"op\":\"close\"}";
        assert_eq!(numbers(text), [(1, true), (4, false), (5, true)]);
        assert_eq!(numbers(b""), []);
    }

    /// Three lines, of which two are as much as is read ahead.
    fn three_halves() -> Vec<u8> {
        let mut line = vec![b'x'; AHEAD_BYTES_MAX / 2];
        line.push(b'\n');
        line.repeat(3)
    }

    /// What waits for room was read as well, so it is taken too.
    #[test]
    fn all_that_was_read_is_taken_after_a_stop() {
        let (input, text) = (Input::default(), three_halves());
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| input.fill(text.as_slice(), || {}));
            while !input.lock().in_hand {
                std::thread::yield_now();
            }
            input.stop();
            let taken: Vec<u64> = std::iter::from_fn(|| input.next())
                .map(|line| line.number)
                .collect();
            assert_eq!(taken, [1, 2, 3]);
            assert!(reader.join().is_ok_and(|read| read.is_ok()));
        });
    }

    #[test]
    fn without_a_bound_the_end_is_seen() {
        let (input, text) = (Input::default(), three_halves());
        input.lift_bound(true);
        // Nobody takes a line meanwhile.
        input.fill(text.as_slice(), || {}).unwrap();
        assert!(input.lock().ended);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_named() {
        let mut text = vec![b'x'; LINE_BYTES_MAX + 1];
        text.extend_from_slice(b"\n{\"id\":2,\"op\":\"close\"}\n");
        assert_eq!(numbers(&text), [(1, false), (2, true)]);
    }
}
