//! The process table, as `/proc` shows it.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The variable by which a scenario knows the processes that it caused, and their children.
pub(crate) const MARK: &str = "CONFORMANCE_MARK";

/// How often the process table is looked at, where there is no event to wait for.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// One process: its number and, because numbers are used again, when it began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(super) id: i32,
    began: String,
}

impl Process {
    /// Every living process with this mark in its environment.
    pub(super) fn marked(mark: &str) -> Vec<Self> {
        let entry = format!("{MARK}={mark}");
        numbers("/proc")
            .filter(|id| {
                let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
                environment
                    .split(|byte| *byte == 0)
                    .any(|variable| variable == entry.as_bytes())
            })
            .filter_map(|id| {
                Some(Self {
                    id,
                    began: stat(id)?.began,
                })
            })
            .collect()
    }

    /// Whether it lives, or was left as a zombie of this process.
    pub(super) fn is_left(&self) -> bool {
        stat(self.id).is_some_and(|stat| {
            let own = u32::try_from(stat.parent) == Ok(std::process::id());
            stat.began == self.began && (stat.state != 'Z' || own)
        })
    }

    /// Its arguments, the program first.
    pub(super) fn arguments(&self) -> Vec<String> {
        let line = fs::read(format!("/proc/{}/cmdline", self.id)).unwrap_or_default();
        let line = line.strip_suffix(&[0]).unwrap_or(&line);
        line.split(|byte| *byte == 0)
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect()
    }

    /// Its working directory.
    pub(super) fn directory(&self) -> Option<PathBuf> {
        fs::read_link(format!("/proc/{}/cwd", self.id)).ok()
    }

    /// Whether it leads a session.
    pub(super) fn leads_a_session(&self) -> bool {
        stat(self.id).is_some_and(|stat| stat.session == self.id)
    }

    /// Whether it leads a process group.
    pub(super) fn leads_a_group(&self) -> bool {
        stat(self.id).is_some_and(|stat| stat.group == self.id)
    }

    /// Kills it, and nobody else.
    pub(super) fn kill(&self) {
        if let Some(pid) = Pid::from_raw(self.id).filter(|_| self.is_left()) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// How many descriptors this process has open.
pub(super) fn descriptors() -> usize {
    numbers("/proc/self/fd").count()
}

/// How many threads this process has.
pub(super) fn threads() -> usize {
    numbers("/proc/self/task").count()
}

/// Waits until the condition holds, but no longer than `max`; whether it does.
pub(crate) fn until(max: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + max;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(LOOK_AGAIN);
    }
}

struct Stat {
    state: char,
    parent: i32,
    group: i32,
    session: i32,
    began: String,
}

/// What `/proc/PID/stat` says. The name of the program comes second, in brackets, and may hold anything.
fn stat(id: i32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        began: (*fields.get(19)?).to_owned(),
    })
}

/// The entries of a directory that are numbers.
fn numbers(directory: &str) -> impl Iterator<Item = i32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
