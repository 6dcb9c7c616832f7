//! The engine over the toy core, real processes and real pipes.

mod calls;
mod links;
mod processes;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use mcp_proto::config::SpawnPlan;
use mcp_proto::{Ended, LinkTarget, Operation};

use crate::Client;
use crate::toy::Toy;

/// Long enough for a loaded machine; a test that waits this long has failed.
const LONG: Duration = Duration::from_secs(20);

/// Some tests count what the whole process has open. `cargo nextest` gives each test its own process;
/// under `cargo test` this keeps the others out.
static PROCESS: RwLock<()> = RwLock::new(());

fn alone() -> RwLockWriteGuard<'static, ()> {
    let process = PROCESS.write().unwrap_or_else(PoisonError::into_inner);
    eventually("earlier tests leave nothing", || {
        children().is_empty() && threads().is_empty()
    });
    process
}

fn among_others() -> RwLockReadGuard<'static, ()> {
    PROCESS.read().unwrap_or_else(PoisonError::into_inner)
}

fn plan(program: &str, args: &[&str]) -> SpawnPlan {
    SpawnPlan::new(program, args.iter().copied())
}

fn shell(script: &str) -> LinkTarget {
    LinkTarget::Process(plan("/bin/sh", &["-c", script]))
}

fn cat() -> LinkTarget {
    LinkTarget::Process(plan("/bin/cat", &[]))
}

fn client(targets: impl IntoIterator<Item = LinkTarget>) -> Client {
    let toy = Toy::of(targets);
    Client::over(|_| toy, BTreeMap::new()).unwrap()
}

fn call(text: &str) -> Operation {
    Operation::call(text, None)
}

fn answered(ended: &Ended) -> &str {
    ended
        .tool
        .as_deref()
        .unwrap_or_else(|| panic!("no answer: {ended:?}"))
}

fn facts(client: &Client) -> Vec<String> {
    client.shared().with(|state| state.core.facts.clone())
}

/// Asks until it is so; panics after [`LONG`].
fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < LONG, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Processes whose command line holds this text, zombies (which have none) left out.
fn processes_with(mark: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries
        .map(|entry| entry.path())
        .filter(|path| path.join("cmdline").exists());
    let lines = pids.filter_map(|path| Some((std::fs::read(path.join("cmdline")).ok()?, path)));
    lines
        .filter(|(line, path)| {
            String::from_utf8_lossy(line).contains(mark) && *path != Path::new("/proc/self")
        })
        .map(|(_, path)| path.display().to_string())
        .collect()
}

/// Children of this process in any state, zombies included, with the state.
fn children() -> Vec<String> {
    let own = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    let tail = |stat: &String| {
        stat.rsplit_once(')')
            .map(|(_, tail)| tail.trim().to_owned())
    };
    let fields = stats.filter_map(|stat| tail(&stat));
    fields
        .filter(|tail| tail.split(' ').nth(1) == Some(&own))
        .collect()
}

/// Open descriptors of this process.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// The names of the driver's threads in this process.
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with("mcp-")).collect()
}
