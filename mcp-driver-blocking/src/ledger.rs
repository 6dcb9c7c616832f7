//! The file that costs are written to.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::sync::Weak;
use std::thread;

use mcp_proto::config::Templated;
use mcp_proto::cost::LedgerLine;
use mcp_proto::{Action, Event};

use crate::engine::Shared;

/// Room for one piece.
const PIECE_BYTES: usize = 64 * 1024;

/// Reads the file, or appends to it, on a thread of its own, for a disk may be slow; tells what comes of it. An
/// action of a kind that this driver does not know is left alone.
pub(crate) fn start(action: Action, shared: Weak<Shared>) -> Result<(), Event<'static>> {
    let mut tell = move |fact: Event<'_>| {
        if let Some(shared) = shared.upgrade() {
            shared.with(|state| state.report(fact));
        }
    };
    let job = move || {
        let done = match &action {
            Action::ReadLedger { path, max_bytes } => {
                read(path, *max_bytes, &mut tell).map(|()| Event::LedgerEnded)
            }
            Action::AppendLedger { path, line } => {
                append(path, line).map(|()| Event::LedgerAppended)
            }
            _ => return,
        };
        tell(done.unwrap_or_else(failed));
    };
    let thread = thread::Builder::new().name("mcp-ledger".to_owned());
    thread.spawn(job).map(drop).map_err(failed)
}

fn failed(error: io::Error) -> Event<'static> {
    let failure = error.into();
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
