//! The file that costs are written to.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::thread;

use mcp_proto::config::Templated;
use mcp_proto::cost::LedgerLine;
use mcp_proto::{Action, Event};

/// Room for one piece.
const PIECE_BYTES: usize = 64 * 1024;

/// Reads the file, or appends to it, on a thread of its own: a runtime waits for its blocking tasks when it ends, and
/// a disk may never answer. Each fact is handed to `tell`,
/// which says whether anybody still wants to know.
pub(crate) fn start(
    action: Action,
    mut tell: impl FnMut(Event<'_>) -> bool + Send + 'static,
) -> Result<(), Event<'static>> {
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

fn read(
    path: &Templated,
    max_bytes: u64,
    tell: &mut impl FnMut(Event<'_>) -> bool,
) -> io::Result<()> {
    regular(path)?;
    let mut file = File::open(path.value())?.take(max_bytes);
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        let count = match file.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            count => count?,
        };
        let bytes = buffer.get(..count).unwrap_or_default();
        if bytes.is_empty() || !tell(Event::LedgerRead { bytes }) {
            return Ok(());
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
