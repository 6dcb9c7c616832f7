//! The server that the suites start: the fake server, told what to be by `--script-json` alone.
//!
//! `fake-server` of `mcp-fake-server` understands the same and more; this one exists because a test can
//! only rely on the binaries of its own package.

use std::io::Write;
use std::process::ExitCode;

use conformance::fake_server::{Script, stdio};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let script = match (arguments.next().as_deref(), arguments.next()) {
        (Some("--script-json"), Some(text)) => {
            Script::from_json(&text).map_err(|error| error.to_string())
        }
        _ => Err("usage: conformance-server --script-json SCRIPT".to_owned()),
    };
    match script {
        Ok(script) => stdio::run(script, None),
        Err(problem) => {
            drop(writeln!(std::io::stderr(), "conformance-server: {problem}"));
            ExitCode::from(2)
        }
    }
}
