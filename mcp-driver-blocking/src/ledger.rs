//! The file that costs are written to: read and appended to by threads, because a disk may be slow.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use mcp_proto::config::Templated;
use mcp_proto::cost::LedgerLine;
use mcp_proto::{Action, Client, Event, Instant, IoFailure};

use crate::sys::Waker;

/// What came of it: the bytes that were read, or that something was appended.
type Booked = io::Result<Option<Vec<u8>>>;

/// What came of what was to be done, and was not reported yet.
#[derive(Debug)]
pub(crate) struct Ledger(Sender<Booked>, Receiver<Booked>);

impl Default for Ledger {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel();
        Self(sender, receiver)
    }
}

impl Ledger {
    /// Reads the file or appends to it, and raises the waker then. An action of a kind that this driver does
    /// not know is left alone; the core gives up waiting for it in time.
    pub(crate) fn perform(&self, action: Action, waker: &Arc<Waker>) {
        let (told, waker) = (self.0.clone(), Arc::clone(waker));
        let job = move || {
            let _ = told.send(match action {
                Action::ReadLedger { path } => fs::read(path.value()).map(Some),
                Action::AppendLedger { path, line } => append(&path, &line).map(|()| None),
                _ => return,
            });
            waker.raise();
        };
        // Without a thread nothing is told: the core goes on without the ledger in time.
        let thread = thread::Builder::new().name("mcp-ledger".to_owned());
        drop(thread.spawn(job));
    }

    /// Tells the core.
    pub(crate) fn report(&self, core: &mut Client, now: Instant) {
        while let Ok(booked) = self.1.try_recv() {
            let fact = match &booked {
                Ok(Some(bytes)) => {
                    core.handle(Event::LedgerRead { bytes }, now);
                    Event::LedgerEnded
                }
                Ok(None) => Event::LedgerAppended,
                Err(error) => Event::LedgerFailed {
                    failure: IoFailure::from(error),
                },
            };
            core.handle(fact, now);
        }
    }
}

fn append(path: &Templated, line: &LedgerLine) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.append(true).create(true).open(path.value())?;
    file.write_all(&line.bytes)?;
    if line.sync { file.sync_data() } else { Ok(()) }
}
