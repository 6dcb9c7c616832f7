//! What needs Unix: a reader that can be stopped, signals, sessions.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::SyncSender;
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};
use rustix::stdio::{dup2_stdin, dup2_stdout, stdin};

use super::Event;

const CHUNK_BYTES: usize = 64 * 1024;
const STOP: u8 = b's';
const CLOSE: u8 = b'c';

/// The thread that reads stdin, and the pipe that wakes it.
///
/// The thread waits in `poll` and never in `read`: a descriptor that some thread is reading stays
/// open, whatever is closed meanwhile, and could still swallow a chunk.
pub(super) struct StdinReader {
    wake: PipeWriter,
    /// Keeps the channel open after the thread has ended.
    _events: SyncSender<Event>,
}

impl StdinReader {
    pub(super) fn spawn(events: SyncSender<Event>) -> io::Result<Self> {
        let sender = events.clone();
        let (orders, wake) = io::pipe()?;
        thread::Builder::new()
            .name("stdin".into())
            .spawn(move || read(&sender, orders))?;
        Ok(Self {
            wake,
            _events: events,
        })
    }

    /// Reads no more and leaves stdin open.
    pub(super) fn stop(&mut self) {
        // An error means that the thread has ended, and then it reads no more either.
        drop(self.wake.write_all(&[STOP]));
    }

    /// Reads no more and closes the read end.
    pub(super) fn close(&mut self) {
        if self.wake.write_all(&[CLOSE]).is_err() {
            close_stdin();
        }
    }
}

pub(super) fn ignore_sigterm() -> io::Result<()> {
    // A handler that only sets a flag nobody reads.
    let flag = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, flag).map(drop)
}

/// Puts the null device in the place of stdout.
pub(super) fn close_stdout() {
    if let Ok(null) = File::options().write(true).open("/dev/null") {
        let _ = dup2_stdout(null);
    }
}

/// Does not return where the signal is delivered.
pub(super) fn kill_self() {
    let _ = kill_process(getpid(), Signal::KILL);
}

pub(super) fn leave_session() {
    // Fails only for a group leader, which a child that was just spawned is not.
    let _ = rustix::process::setsid();
}

fn read(events: &SyncSender<Event>, mut orders: PipeReader) {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let (input_ready, order_ready) = {
            let stdin = stdin();
            let mut fds = [
                PollFd::new(&stdin, PollFlags::IN),
                PollFd::new(&orders, PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Ok(_) => {
                    let [input, order] = fds.map(|fd| !fd.revents().is_empty());
                    (input, order)
                }
                Err(Errno::INTR) => continue,
                Err(_) => return,
            }
        };
        if order_ready {
            let mut order = [0];
            if orders.read_exact(&mut order).is_ok() && order == [CLOSE] {
                close_stdin();
            }
            return;
        }
        if !input_ready {
            continue;
        }
        let event = match rustix::io::read(stdin(), &mut buffer) {
            Ok(0) => Event::Eof,
            Ok(count) => Event::Bytes(buffer.get(..count).unwrap_or_default().to_vec()),
            Err(Errno::INTR | Errno::AGAIN) => continue,
            Err(_) => Event::Eof,
        };
        let last = matches!(event, Event::Eof);
        if events.send(event).is_err() || last {
            return;
        }
    }
}

/// Puts the null device in the place of stdin, so that its number cannot come to mean something else.
fn close_stdin() {
    if let Ok(null) = File::open("/dev/null") {
        let _ = dup2_stdin(null);
    }
}
