//! The corpus of misbehaving servers: what each does, what the client is told to do meanwhile, and what
//! must come of it.
//!
//! A case is a JSON file; `cases/README.md` of this package says what it may hold. It is played through a
//! [`Front`]: the core in the World ([`InWorld`]), a driver of the [suite](crate::suite)
//! (`WithDriver`), or a program that speaks the `batch` protocol of `mcp-harness` (`WithBatch`).
//! Someone who writes a driver implements [`Driver`](crate::suite::Driver) for it and has the whole
//! corpus:
//!
//! ```ignore
//! let front = WithDriver::new(&MINE, Environment::new(env!("CARGO_BIN_EXE_conformance-server")));
//! cases::assert_holds(&front, 8);
//! ```

mod case;
mod check;
#[cfg(target_os = "linux")]
mod driver;
mod facts;
#[cfg(target_os = "linux")]
mod harness;
mod step;
mod world;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use mcp_proto::{Config, Identity};
use serde_json::{Value, json};

pub use case::Case;
pub use check::judge;
#[cfg(target_os = "linux")]
pub use driver::WithDriver;
pub use facts::Played;
#[cfg(target_os = "linux")]
pub use harness::WithBatch;
pub use world::InWorld;

use case::CasePeer;

/// A way in which a client can be told what to do, and watched.
pub trait Front: Sync {
    /// A name for messages.
    fn name(&self) -> String;

    /// Plays a case from the start of its servers to the end of everything.
    ///
    /// # Errors
    /// It could not be played at all.
    ///
    /// # Panics
    /// It may: that counts as a case that does not hold.
    fn play(&self, case: &Case) -> Result<Played, String>;
}

/// What came of a corpus.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// The name of the front.
    pub front: String,
    /// How many cases hold.
    pub held: usize,
    /// Those that wait for a feature, with its name.
    pub pending: Vec<(String, String)>,
    /// Those that do not hold, with everything that is wrong.
    pub failed: Vec<(String, Vec<String>)>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            front,
            held,
            pending,
            failed,
        } = self;
        let (waiting, broken) = (pending.len(), failed.len());
        writeln!(
            f,
            "{front}: {held} cases hold, {waiting} are pending, {broken} fail"
        )?;
        for (name, feature) in pending {
            writeln!(f, "  pending {name}: {feature}")?;
        }
        for (name, problems) in failed {
            writeln!(f, "  FAILED {name}")?;
            for problem in problems {
                writeln!(f, "    {}", problem.replace('\n', "\n      "))?;
            }
        }
        Ok(())
    }
}

/// Plays cases, so many of them at once, and judges each. A pending case that holds fails: its mark has to
/// go.
pub fn run(front: &dyn Front, cases: &[Case], at_once: usize) -> Outcome {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..at_once.max(1) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(index) else {
                        return;
                    };
                    let problems = attempt(front, case);
                    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    results.push((index, case, problems));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, ..)| *index);
    let mut outcome = Outcome {
        front: front.name(),
        ..Outcome::default()
    };
    for (_, case, problems) in results {
        let name = case.name.clone();
        match (&case.pending, problems.is_empty()) {
            (None, true) => outcome.held += 1,
            (None, false) => outcome.failed.push((name, problems)),
            (Some(feature), false) => outcome.pending.push((name, feature.clone())),
            (Some(feature), true) => {
                let problem = format!("holds now: remove \"pending\": {feature:?}");
                outcome.failed.push((name, vec![problem]));
            }
        }
    }
    outcome
}

/// Plays the whole corpus, so many cases at once.
///
/// # Panics
/// When a case does not hold, with everything about all of them that do not. The variable `CASE` restricts
/// it to the cases whose names contain its value.
pub fn assert_holds(front: &dyn Front, at_once: usize) {
    let mut cases = Case::corpus().unwrap_or_else(|error| panic!("{error}"));
    if let Ok(part) = std::env::var("CASE") {
        cases.retain(|case| case.name.contains(&part));
    }
    let outcome = run(front, &cases, at_once);
    println!("{outcome}");
    assert!(
        outcome.failed.is_empty(),
        "cases fail: {}",
        outcome.failed.len()
    );
}

fn attempt(front: &dyn Front, case: &Case) -> Vec<String> {
    match catch_unwind(AssertUnwindSafe(|| front.play(case))) {
        Ok(Ok(played)) => judge(case, &played),
        Ok(Err(problem)) => vec![problem],
        Err(panic) => vec![crate::panic_text(&*panic)],
    }
}

/// The configuration of a case. A setting that does not exist is an error: it would test nothing.
fn config(case: &Case, start: impl FnMut(&CasePeer) -> Value) -> Result<Config, String> {
    let text = case.config(start);
    let config = Config::parse(&text, "config", &mut |_| None);
    let config = config.map_err(|error| error.to_string())?;
    match config.warnings.first() {
        Some(warning) => Err(warning.to_string()),
        None => Ok(config),
    }
}

/// An application that declares everything a server may ask for, as `mcp-harness` does.
fn identity() -> Identity {
    let info = json!({"name": "conformance", "version": "1"});
    let capabilities = json!({"elicitation": {"form": {}, "url": {}}, "roots": {}, "sampling": {}});
    Identity::new(info.into(), capabilities.into()).unwrap_or_default()
}
