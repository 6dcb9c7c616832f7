//! Measures this client beside [rmcp](https://docs.rs/rmcp) and beside the least that the work can cost.
//!
//! `cargo run --release -p conformance --features speed --bin speed` prints a table, with `--json` a JSON
//! document; `--quick` takes a few seconds and is no more than a smoke test. Every row is measured in one
//! run, its contenders in turns, and is the median of its rounds. A word beside the flags restricts the run
//! to the rows whose name holds it, and `--ours` to this client, for a profiler.

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
