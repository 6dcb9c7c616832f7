//! Drives real MCP servers with both drivers and with the `mcp-harness` binary, and asserts on what
//! comes back.
//!
//! ```sh
//! cargo run --release -p conformance --features interop --bin interop
//! ```
//!
//! The servers are installed by `conformance/interop/install.sh`, pinned, on the first run. Where no
//! registry can be reached and they are not there yet, the run is skipped by name (exit status 75).

mod fronts;
mod proxy;
mod servers;
mod site;

use std::process::ExitCode;

use fronts::{Front, Harness};
use servers::Check;
use site::Site;

/// The exit status of `install.sh`, and of this program, when there is nothing to run against.
const UNAVAILABLE: u8 = 75;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|first| first == proxy::FLAG) {
        return proxy::run(args);
    }
    match run() {
        Ok(checks) => {
            println!("interop: {checks} passed, 0 failed");
            ExitCode::SUCCESS
        }
        Err(Failure::Unavailable) => {
            println!(
                "interop: skipped: the real servers are not installed and no registry answers"
            );
            ExitCode::from(UNAVAILABLE)
        }
        Err(Failure::Broken(what)) => {
            eprintln!("interop: {what}");
            ExitCode::FAILURE
        }
    }
}

/// Why the run is not a success.
enum Failure {
    /// There are no servers to run against.
    Unavailable,
    /// Something is not as it must be.
    Broken(String),
}

impl From<String> for Failure {
    fn from(what: String) -> Self {
        Self::Broken(what)
    }
}

fn run() -> Result<usize, Failure> {
    if !site::install()? {
        return Err(Failure::Unavailable);
    }
    let mut checks = 0;
    for connect in fronts::ALL {
        let site = Site::prepare()?;
        let mut front = connect(&site.config()?)?;
        checks += drive(front.as_mut(), &site)?;
        front.close()?;
        site.nothing_is_left()?;
        let recorded = site.refused_server_input()?;
        expect(!recorded.contains("initialize"), || {
            format!(
                "{}: a server that is not allow-listed was sent: {recorded}",
                front.name()
            )
        })?;
        expect(recorded.contains("server/discover"), || {
            "the proxy recorded no probe".into()
        })?;
        checks += 2;
        println!("interop: {}: all servers are as they must be", front.name());
    }
    let site = Site::prepare()?;
    Harness::report_command(&site.config()?, &servers::reports(&site))?;
    site.nothing_is_left()?;
    Ok(checks + 1)
}

/// The report and the calls of every server through one front.
fn drive(front: &mut dyn Front, site: &Site) -> Result<usize, String> {
    let report = front.report()?;
    let expected = servers::reports(site);
    for peer in &expected {
        peer.check(&report)
            .map_err(|what| format!("{}: report: {what}\n{report:#}", front.name()))?;
    }
    let calls: Vec<Check> = servers::calls(site);
    for call in &calls {
        let answer = front.call(call.peer, call.tool, &call.arguments)?;
        call.expect.check(&answer).map_err(|what| {
            format!(
                "{}: {}/{}: {what}\n{answer:#}",
                front.name(),
                call.peer,
                call.tool
            )
        })?;
    }
    Ok(expected.len() + calls.len())
}

fn expect(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}
