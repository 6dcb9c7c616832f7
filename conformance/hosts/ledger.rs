//! The ledger's file, on threads of its own: disks may be slow.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};

use mcp_proto::config::Templated;
use mcp_proto::cost::LedgerLine;
use mcp_proto::{Action, Client, Event, Instant, IoFailure};

/// What came of jobs, and was not reported yet.
#[derive(Default)]
pub(crate) struct Ledger(Arc<Mutex<Books>>);

impl Ledger {
    /// Reads the file or appends to it, and wakes the driver then. Other actions are left alone.
    pub(crate) fn perform(&self, action: Action) {
        let books = Arc::clone(&self.0);
        std::thread::spawn(move || {
            let done = match action {
                Action::ReadLedger { path, max_bytes } => read(&path, max_bytes),
                Action::AppendLedger { path, line } => append(&path, &line),
                _ => return,
            };
            let mut books = books.lock().unwrap_or_else(PoisonError::into_inner);
            books.0.push(done);
            books.1.take().into_iter().for_each(Waker::wake);
        });
    }

    /// Reports what came of it; whether anything did.
    pub(crate) fn report(&self, core: &mut Client, now: Instant, cx: &Context<'_>) -> bool {
        let mut books = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        books.1 = Some(cx.waker().clone());
        let facts = std::mem::take(&mut books.0);
        drop(books);
        for fact in &facts {
            match fact {
                Ok(Booked::Read(bytes)) => {
                    core.handle(Event::LedgerRead { bytes }, now);
                    core.handle(Event::LedgerEnded, now);
                }
                Ok(Booked::Appended) => core.handle(Event::LedgerAppended, now),
                Err(error) => {
                    let failure = IoFailure::from(error);
                    core.handle(Event::LedgerFailed { failure }, now);
                }
            }
        }
        !facts.is_empty()
    }
}

/// What came of jobs with the ledger's file, and whom to wake for that.
type Books = (Vec<io::Result<Booked>>, Option<Waker>);

/// What was done with the ledger's file.
enum Booked {
    Read(Vec<u8>),
    Appended,
}

fn read(path: &Templated, max_bytes: u64) -> io::Result<Booked> {
    if !std::fs::metadata(path.value())?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path.value())?;
    file.take(max_bytes).read_to_end(&mut bytes)?;
    Ok(Booked::Read(bytes))
}

fn append(path: &Templated, line: &LedgerLine) -> io::Result<Booked> {
    if std::fs::metadata(path.value()).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.append(true).create(true).open(path.value())?;
    file.write_all(&line.bytes)?;
    if line.sync {
        file.sync_data()?;
    }
    Ok(Booked::Appended)
}
