//! A scenario's files and processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::process::{self, Process};

/// How long processes that were killed may take to disappear.
const REAP_LIMIT: Duration = Duration::from_secs(5);

/// A directory that is gone after the scenario, and the processes that carry its mark.
pub(crate) struct Place {
    mark: String,
    directory: PathBuf,
}

/// What a server wrote into its transcript.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    /// The lines that it was sent.
    pub(crate) received: Vec<String>,
    /// The assertions about the client that did not hold.
    pub(crate) failures: Vec<String>,
}

impl Place {
    /// A directory in `scratch`.
    pub(crate) fn new(name: &str, scratch: &Path) -> Self {
        /// Makes marks unique within this process.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{name}-{}-{next}", std::process::id());
        let directory = scratch.join(&mark);
        if let Err(error) = fs::create_dir_all(&directory) {
            panic!("{}: {error}", directory.display());
        }
        Self { mark, directory }
    }

    /// The value of [`MARK`](process::MARK) for the processes of this place.
    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    /// A file of this place.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The transcript that servers wrote into this file.
    pub(crate) fn transcript(&self, name: &str) -> Transcript {
        let text = fs::read_to_string(self.file(name)).unwrap_or_default();
        let mut transcript = Transcript::default();
        for line in text.lines() {
            let Ok(entry) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            for (key, list) in [
                ("received", &mut transcript.received),
                ("failure", &mut transcript.failures),
            ] {
                list.extend(entry[key].as_str().map(str::to_owned));
            }
        }
        transcript
    }

    /// The living processes of this place.
    pub(crate) fn processes(&self) -> Vec<Process> {
        Process::marked(&self.mark)
    }

    /// None of these processes, and no other one of this place, may be left.
    #[track_caller]
    pub(crate) fn nothing_is_left(&self, before: Vec<Process>) {
        let left = || before.iter().any(Process::is_left) || !self.processes().is_empty();
        if !process::until(REAP_LIMIT, || !left()) {
            let left: Vec<&Process> = before.iter().filter(|process| process.is_left()).collect();
            let alive = self.processes();
            alive.iter().for_each(Process::kill);
            panic!("processes are left: {left:?}, alive: {alive:?}");
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}
