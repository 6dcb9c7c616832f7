//! The file that costs are written to. Everything here blocks, and belongs onto a thread where that is fine.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};

use mcp_proto::config::Templated;
use mcp_proto::cost::LedgerLine;
use mcp_proto::{Action, Event, IoFailure};

/// Room for one piece.
const PIECE_BYTES: usize = 64 * 1024;

/// Reads the file, or appends to it, and tells what comes of it.
pub(crate) fn perform(action: &Action, mut tell: impl FnMut(Event<'_>)) {
    let done = match action {
        Action::ReadLedger { path, max_bytes } => {
            read(path, *max_bytes, &mut tell).map(|()| Event::LedgerEnded)
        }
        Action::AppendLedger { path, line } => append(path, line).map(|()| Event::LedgerAppended),
        _ => return,
    };
    tell(done.unwrap_or_else(|error| failed(&error)));
}

/// The ledger cannot be had.
pub(crate) fn failed(error: &io::Error) -> Event<'static> {
    let failure = IoFailure::from(error);
    Event::LedgerFailed { failure }
}

fn read(path: &Templated, max: u64, tell: &mut impl FnMut(Event<'_>)) -> io::Result<()> {
    regular(path)?;
    let mut file = File::open(path.value())?.take(max);
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => tell(Event::LedgerRead {
                bytes: &buffer[..count],
            }),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn append(path: &Templated, line: &LedgerLine) -> io::Result<()> {
    match regular(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options.append(true).create(true).open(path.value())?;
    file.write_all(&line.bytes)?;
    if line.sync { file.sync_data() } else { Ok(()) }
}

/// Nothing else can be relied on to end, or even to be opened without waiting.
fn regular(path: &Templated) -> io::Result<()> {
    match fs::metadata(path.value())?.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        )),
    }
}
