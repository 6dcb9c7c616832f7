//! The file that costs are written to. Everything here blocks, and belongs onto a thread where that is fine.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};

use mcp_proto::config::Templated;
use mcp_proto::cost::LedgerLine;
use mcp_proto::{Event, IoFailure};

/// Room for one piece.
const PIECE_BYTES: usize = 64 * 1024;

/// Reads the file to its end, and reports what stands in it.
pub(crate) fn read(path: &Templated, mut report: impl FnMut(Event<'_>)) {
    let mut pieces = || -> io::Result<()> {
        let mut file = File::open(path.value())?;
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => report(Event::LedgerRead {
                    bytes: &buffer[..count],
                }),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    };
    match pieces() {
        Ok(()) => report(Event::LedgerEnded),
        Err(error) => report(failed(&error)),
    }
}

/// Appends to the file: the fact that came of it.
pub(crate) fn append(path: &Templated, line: &LedgerLine) -> Event<'static> {
    let append = || -> io::Result<()> {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path.value())?;
        file.write_all(&line.bytes)?;
        if line.sync { file.sync_data() } else { Ok(()) }
    };
    match append() {
        Ok(()) => Event::LedgerAppended,
        Err(error) => failed(&error),
    }
}

fn failed(error: &io::Error) -> Event<'static> {
    let failure = IoFailure::from(error);
    Event::LedgerFailed { failure }
}
