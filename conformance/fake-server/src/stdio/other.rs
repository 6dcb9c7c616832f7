//! Elsewhere stdin can only be left alone: stopping and closing both mean reading no more, there
//! is no SIGTERM to ignore and no session to leave.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread;

use super::Event;

const CHUNK_BYTES: usize = 64 * 1024;

/// The thread that reads stdin.
pub(super) struct StdinReader {
    stopped: Arc<AtomicBool>,
    /// Keeps the channel open after the thread has ended.
    _events: SyncSender<Event>,
}

impl StdinReader {
    pub(super) fn spawn(events: SyncSender<Event>) -> io::Result<Self> {
        let sender = events.clone();
        let stopped = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stopped);
        thread::Builder::new()
            .name("stdin".into())
            .spawn(move || read(&sender, &flag))?;
        Ok(Self {
            stopped,
            _events: events,
        })
    }

    /// Reads no more.
    pub(super) fn stop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Reads no more.
    pub(super) fn close(&mut self) {
        self.stop();
    }
}

pub(super) fn ignore_sigterm() -> io::Result<()> {
    Ok(())
}

pub(super) fn close_stdout() {}

pub(super) fn kill_self() {}

pub(super) fn leave_session() {}

fn read(events: &SyncSender<Event>, stopped: &AtomicBool) {
    let mut buffer = vec![0; CHUNK_BYTES];
    while !stopped.load(Ordering::Relaxed) {
        let event = match io::stdin().lock().read(&mut buffer) {
            Ok(0) => Event::Eof,
            Ok(count) => Event::Bytes(buffer.get(..count).unwrap_or_default().to_vec()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => Event::Eof,
        };
        let last = matches!(event, Event::Eof);
        if events.send(event).is_err() || last {
            return;
        }
    }
}
