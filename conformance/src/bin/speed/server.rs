//! A server that costs next to nothing: it looks for the id and the method in the bytes of a line and
//! answers with a text that is ready. It serves every contender.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::ExitCode;

use memchr::memmem::Finder;

use crate::payload;

/// The server: chunks in, answers out.
pub(crate) struct Server {
    pending: Vec<u8>,
    id: Finder<'static>,
    method: Finder<'static>,
    answers: [(&'static [u8], String); 4],
}

impl Server {
    /// A server with ten tools.
    pub(crate) fn new() -> Self {
        Self {
            pending: Vec::new(),
            id: Finder::new("\"id\":"),
            method: Finder::new("\"method\":\""),
            answers: [
                (b"tools/call\"", payload::small_result()),
                (b"tools/list\"", payload::tools_result(10, 6_000)),
                (b"server/discover\"", payload::DISCOVERED.to_owned()),
                (b"initialize\"", payload::INITIALIZED.to_owned()),
            ],
        }
    }

    /// Takes bytes and appends the answers to what is asked in them.
    pub(crate) fn answer(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        let mut rest = chunk;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            rest = after;
            if self.pending.is_empty() {
                self.answer_line(line, out);
            } else {
                let mut joined = std::mem::take(&mut self.pending);
                joined.extend_from_slice(line);
                self.answer_line(&joined, out);
                joined.clear();
                self.pending = joined;
            }
        }
        self.pending.extend_from_slice(rest);
    }

    fn answer_line(&self, line: &[u8], out: &mut Vec<u8>) {
        // What has no id is a notification.
        let (Some(id), Some(method)) = (self.id.find(line), self.method.find(line)) else {
            return;
        };
        let id = &line[id + 5..];
        let digits = id.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let method = &line[method + 10..];
        let answer = self
            .answers
            .iter()
            .find(|(name, _)| method.starts_with(name));
        if let Some((_, result)) = answer {
            out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
            out.extend_from_slice(&id[..digits]);
            out.extend_from_slice(b",\"result\":");
            out.extend_from_slice(result.as_bytes());
            out.extend_from_slice(b"}\n");
        }
    }
}

/// Serves standard input until it ends, without the buffers of the standard library.
pub(crate) fn serve() -> ExitCode {
    match serve_descriptors() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("speed --serve: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve_descriptors() -> std::io::Result<()> {
    use std::os::fd::AsFd as _;
    let mut input = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let mut output = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    let mut server = Server::new();
    let mut chunk = vec![0; 64 << 10];
    let mut out = Vec::new();
    loop {
        let count = input.read(&mut chunk)?;
        if count == 0 {
            return Ok(());
        }
        server.answer(&chunk[..count], &mut out);
        output.write_all(&out)?;
        out.clear();
    }
}
