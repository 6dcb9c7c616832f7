//! A recording proxy: runs a server and keeps every byte that it is sent.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::process::{Command, ExitCode, Stdio};

/// The first argument that turns this program into the proxy; then the file to record to and the
/// server's command line follow.
pub(crate) const FLAG: &str = "--record";

/// Runs the server between this process's standard input and output.
pub(crate) fn run(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    match copy(&mut args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("proxy: {error}");
            ExitCode::FAILURE
        }
    }
}

fn copy(args: &mut dyn Iterator<Item = OsString>) -> io::Result<()> {
    let usage = || io::Error::other("usage: --record FILE COMMAND ARG…");
    let mut record = File::create(args.next().ok_or_else(usage)?)?;
    let program = args.next().ok_or_else(usage)?;
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .spawn()?;
    let mut server = child.stdin.take().ok_or_else(usage)?;
    let mut input = io::stdin().lock();
    let mut buffer = [0; 8 << 10];
    loop {
        let count = input.read(&mut buffer)?;
        let bytes = buffer.get(..count).unwrap_or_default();
        if bytes.is_empty() {
            break;
        }
        record.write_all(bytes)?;
        server.write_all(bytes)?;
    }
    drop(server);
    child.wait().map(|_| ())
}
