//! The file that costs are written to, and the thread that reads and writes it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use mcp_proto::config::Templated;
use mcp_proto::cost::LedgerLine;
use mcp_proto::{Event, IoFailure};

use crate::sys::Waker;

/// Room for one piece.
const PIECE_BYTES: usize = 64 * 1024;

/// What is to be done with the file.
#[derive(Debug)]
pub(crate) enum Job {
    Read(Templated),
    Append(Templated, LedgerLine),
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Fact {
    Piece(Vec<u8>),
    Ended,
    Appended,
    Failed(IoFailure),
}

/// The thread's two ends; it is started with the first job and ends with this.
#[derive(Debug)]
pub(crate) struct Ledger {
    jobs: Option<Sender<Job>>,
    facts: (Sender<Fact>, Receiver<Fact>),
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self {
            jobs: None,
            facts: mpsc::channel(),
        }
    }

    /// Lets the thread do something; the waker is raised for whatever comes of it.
    pub(crate) fn perform(&mut self, job: Job, waker: &Arc<Waker>) {
        let started = match &self.jobs {
            Some(jobs) => Ok(jobs.clone()),
            None => start(self.facts.0.clone(), Arc::clone(waker)),
        };
        match started {
            Ok(jobs) => {
                let _ = jobs.send(job);
                self.jobs = Some(jobs);
            }
            Err(error) => {
                let _ = self.facts.0.send(Fact::Failed(error.into()));
                waker.raise();
            }
        }
    }

    /// The next fact, if there is one.
    pub(crate) fn take(&self) -> Option<Fact> {
        self.facts.1.try_recv().ok()
    }
}

impl Fact {
    pub(crate) fn event(&self) -> Event<'_> {
        match self {
            Self::Piece(bytes) => Event::LedgerRead { bytes },
            Self::Ended => Event::LedgerEnded,
            Self::Appended => Event::LedgerAppended,
            Self::Failed(failure) => Event::LedgerFailed {
                failure: failure.clone(),
            },
        }
    }
}

fn start(facts: Sender<Fact>, waker: Arc<Waker>) -> io::Result<Sender<Job>> {
    let (jobs, todo) = mpsc::channel();
    let thread = thread::Builder::new().name("mcp-ledger".to_owned());
    thread.spawn(move || {
        let report = |fact| {
            let _ = facts.send(fact);
            waker.raise();
        };
        while let Ok(job) = todo.recv() {
            let done = match job {
                Job::Read(path) => read(&path, report).map(|()| Fact::Ended),
                Job::Append(path, line) => append(&path, &line).map(|()| Fact::Appended),
            };
            report(done.unwrap_or_else(|error| Fact::Failed(error.into())));
        }
    })?;
    Ok(jobs)
}

fn read(path: &Templated, report: impl Fn(Fact)) -> io::Result<()> {
    let mut file = File::open(path.value())?;
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => report(Fact::Piece(buffer[..count].to_vec())),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn append(path: &Templated, line: &LedgerLine) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path.value())?;
    file.write_all(&line.bytes)?;
    if line.sync { file.sync_data() } else { Ok(()) }
}
