//! Measures this client beside [rmcp](https://docs.rs/rmcp) and beside the least that the work can cost.
//!
//! `cargo run --release -p conformance --features speed --bin speed` prints a table, with `--json` a JSON
//! document; `--quick` takes a few seconds and is no more than a smoke test. Every row is measured in one
//! run, its contenders in turns, and is the median of its rounds. A word beside the flags restricts the run
//! to the rows whose name holds it, and `--ours` to this client, for a profiler.
//!
//! On Linux everything runs on one core, servers included. A call over a pipe is a client and a server that
//! take turns; spread over two cores, most of its time is that of waking up the other core, and whether a
//! contender is spread is the scheduler's choice and differs from run to run.

mod core_rows;
mod driver_rows;
mod floor;
mod host;
mod measure;
mod payload;
mod report;
mod server;
mod theirs;

use std::process::ExitCode;

use measure::Plan;
use report::Row;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--serve") {
        return server::serve();
    }
    pin();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let wanted = arguments
        .iter()
        .find(|argument| !argument.starts_with("--"));
    let plan = Plan::new(has("--quick"), has("--ours"), wanted.cloned());
    let mut rows: Vec<Row> = core_rows::measure(&plan);
    rows.extend(driver_rows::measure(&plan));
    if has("--json") {
        println!("{}", report::json(&rows));
    } else {
        print!("{}", report::table(&rows));
    }
    ExitCode::SUCCESS
}

/// Keeps this thread, and all threads and processes that it starts, on one of the cores it may use.
#[cfg(target_os = "linux")]
fn pin() {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    let pinned = sched_getaffinity(None).and_then(|allowed| {
        let mut one = CpuSet::new();
        let core = (0..CpuSet::MAX_CPU).rfind(|core| allowed.is_set(*core));
        core.into_iter().for_each(|core| one.set(core));
        sched_setaffinity(None, &one)
    });
    if let Err(error) = pinned {
        eprintln!("not pinned to one core ({error}): the rows with pipes depend on the scheduler");
    }
}

#[cfg(not(target_os = "linux"))]
fn pin() {
    eprintln!("not pinned to one core: the rows with pipes depend on the scheduler");
}
