//! The operations of one batch, from their lines to their outcomes.

use std::io::{self, BufReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mcp_proto::error::Cause;
use mcp_proto::wire::ObjectWriter;
use mcp_proto::{Ended, Error, ErrorKind, OperationId, Outcome, Reply, Request};

use super::input::Input;
use super::job::{Job, Malformed, PeerTask, Task, Timing};
use super::output::{Broken, Output};
use super::timer::{Alarm, Timer};
use super::tracker::{Due, Tracker};
use crate::exit::Exit;
use crate::output::{self, json};
use crate::session::{self, Deadlines, Pending, Session, Step};

const INPUT_BUFFER_BYTES: usize = 64 << 10;
/// What a thread needs that waits for one operation and writes its lines.
const STACK_BYTES: usize = 256 << 10;

/// What all threads of a batch share.
pub(super) struct Shared {
    pub(super) session: Arc<dyn Session>,
    pub(super) input: Input,
    pub(super) output: Output,
    pub(super) tracker: Tracker,
    pub(super) timer: Timer,
    pub(super) deadlines: Deadlines,
    /// Some line was malformed.
    pub(super) malformed: AtomicBool,
}

/// The batch as the main thread runs it.
pub(super) struct Batch {
    shared: Arc<Shared>,
    closed: bool,
}

/// An operation that was accepted.
struct Running {
    pending: Box<dyn Pending>,
    operation: OperationId,
    label: Label,
    is_listen: bool,
    timeout: Option<Duration>,
    /// What may end it early.
    _alarms: Vec<Alarm>,
}

/// What the lines of an operation say beside its outcome.
struct Label {
    id: String,
    /// The number of its line.
    line: u64,
    started: Instant,
    /// The tool that was asked for, if it is a call.
    tool: Option<String>,
    /// It has `input` and no `requestState`.
    answers_without_state: bool,
}

impl Batch {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            closed: false,
        }
    }

    /// Runs everything; returns when no server is left.
    pub(super) fn run(mut self) -> Exit {
        let shared = Arc::clone(&self.shared);
        let reader = Arc::clone(&self.shared);
        let thread = thread::Builder::new().name("batch-input".into());
        if let Err(error) = thread.spawn(move || reader.read()) {
            output::note("error", &format!("no thread can be started: {error}"));
            shared.input.stop();
        }
        while let Some(line) = shared.input.next() {
            match line.job {
                Ok(job) => self.start(job, line.number),
                Err(malformed) => shared.malformed(line.number, &malformed),
            }
        }
        let listening = shared.tracker.wait_for_background();
        for operation in listening.into_iter().flatten() {
            shared.session.finish(operation);
        }
        shared.tracker.wait_for_all();
        shared.session.close();
        if shared.malformed.load(Ordering::Relaxed) {
            Exit::Usage
        } else {
            Exit::Good
        }
    }

    /// Starts an operation, and waits for it if it is in the foreground.
    fn start(&mut self, job: Job, line: u64) {
        let label = Label {
            id: job.id,
            line,
            started: Instant::now(),
            tool: job.task.tool().map(str::to_owned),
            answers_without_state: job.task.answers_without_state(),
        };
        if self.shared.tracker.is_stopping() {
            // What is pending answers first, as before a `close`.
            self.shared.tracker.wait_for_all();
            return self.shared.failed(&label, unavailable());
        }
        match job.task {
            Task::Close => self.close(&label),
            Task::Report => self.report(&label),
            Task::Sleep(duration) => self.sleep(&label, duration),
            Task::Peers(task) => self.peers(label, *task),
        }
    }

    fn close(&mut self, label: &Label) {
        if self.closed {
            return self.shared.failed(label, unavailable());
        }
        self.closed = true;
        self.shared.session.close();
        self.shared.tracker.wait_for_all();
        self.shared.complete(label, |_| {});
    }

    fn report(&mut self, label: &Label) {
        match session::settle(self.shared.session.as_ref()) {
            Ok(()) => {
                let report = self.shared.session.report();
                self.shared
                    .complete(label, |object| json::report(object, &report));
            }
            Err(error) => self.shared.failed(label, error),
        }
    }

    fn sleep(&self, label: &Label, duration: Duration) {
        if self.closed {
            self.shared.failed(label, unavailable());
        } else if self.shared.tracker.sleep(duration) {
            self.shared.complete(label, |_| {});
        } else {
            self.shared.failed(label, closed());
        }
    }

    fn peers(&self, label: Label, mut task: PeerTask) {
        task.operation.options.total_timeout = task.timing.timeout;
        let is_listen = task.operation.request == Request::Listen;
        let holds_up = is_listen && !task.background && task.timing.listen_for.is_none();
        let running = match self.shared.session.submit(task.operation) {
            Ok(pending) => {
                if is_listen {
                    self.shared.tracker.listen_started(pending.id(), holds_up);
                    self.shared.end_what_is_due();
                }
                self.accepted(pending, label, is_listen, task.timing)
            }
            Err(error) => {
                let refused = session::refused(error);
                return self.shared.ended(&label, &refused);
            }
        };
        if !task.background {
            self.shared.input.lift_bound(holds_up);
            self.shared.follow(running);
            return self.shared.input.lift_bound(false);
        }
        if !is_listen {
            self.shared.tracker.background_started();
        }
        let shared = Arc::clone(&self.shared);
        spawn_or_run(move || {
            shared.follow(running);
            if !is_listen {
                shared.tracker.background_ended();
                shared.end_what_is_due();
            }
        });
    }

    /// An accepted operation with its alarms.
    fn accepted(
        &self,
        pending: Box<dyn Pending>,
        label: Label,
        is_listen: bool,
        timing: Timing,
    ) -> Running {
        let (operation, started) = (pending.id(), label.started);
        let alarm = |after: Duration, due: fn(&Shared, OperationId)| {
            let shared = Arc::clone(&self.shared);
            let due = move || due(&shared, operation);
            self.shared.timer.set(started, after, due)
        };
        let cancel = timing
            .cancel_after
            .and_then(|after| alarm(after, |shared, operation| shared.session.cancel(operation)));
        let finish = timing
            .listen_for
            .and_then(|after| alarm(after, |shared, operation| shared.session.finish(operation)));
        Running {
            pending,
            operation,
            label,
            is_listen,
            timeout: timing.timeout,
            _alarms: [cancel, finish].into_iter().flatten().collect(),
        }
    }
}

impl Shared {
    /// Ends everything early: a signal came, or the reader of the output has gone away.
    pub(super) fn stop(&self) {
        // In this order: nothing is started from here on, then whatever is pending ends, and only then is
        // a sleeper woken, whose next lines come after that.
        self.tracker.stop();
        self.input.stop();
        self.session.close();
        self.tracker.wake();
    }

    /// The life of the reading thread.
    fn read(&self) {
        let stdin = BufReader::with_capacity(INPUT_BUFFER_BYTES, io::stdin());
        let on_close = || {
            self.tracker.close_read();
            self.end_what_is_due();
        };
        if let Err(error) = self.input.fill(stdin, on_close) {
            output::note("error", &format!("standard input: {error}"));
        }
        self.tracker.input_ended();
        self.end_what_is_due();
    }

    /// Ends a listening operation that would hold up the next line for ever.
    fn end_what_is_due(&self) {
        match self.tracker.due() {
            Some(Due::Finish(operation)) => self.session.finish(operation),
            Some(Due::Cancel(operation)) => self.session.cancel(operation),
            None => {}
        }
    }

    /// Waits for an operation and writes its lines.
    fn follow(&self, mut running: Running) {
        let label = &running.label;
        let mut ended = loop {
            match running.pending.next() {
                Step::Progress(update) => self.written(self.output.progress(&label.id, &update)),
                Step::Notification(news) => {
                    self.written(self.output.notification(&label.id, &news));
                }
                Step::Ended(ended) => break ended,
            }
        };
        if running.is_listen {
            self.rename(running.operation, &mut ended);
        }
        session::advise(
            &mut ended,
            running.timeout,
            &self.deadlines,
            "\"timeoutMs\"",
        );
        self.ended(label, &ended);
        if running.is_listen {
            self.tracker.listen_ended(running.operation);
        }
    }

    /// A listening operation that was cancelled for a `close` was closed.
    fn rename(&self, operation: OperationId, ended: &mut Ended) {
        let Outcome::Failed(error) = &mut ended.outcome else {
            return;
        };
        if error.kind() != ErrorKind::Cancelled {
            return;
        }
        if self.tracker.was_closed(operation) {
            error.cause = closed().cause;
        }
    }

    fn ended(&self, label: &Label, ended: &Ended) {
        if let Outcome::Failed(error) = &ended.outcome
            && let Cause::Usage(message) = &error.cause
        {
            // The line was wrong in a way that only the core can know.
            let (id, message) = (Some(label.id.clone()), message.clone());
            return self.malformed(label.line, &Malformed { id, message });
        }
        if let Outcome::InputRequired(pending) = &ended.outcome
            && label.answers_without_state
            && pending.input.state.is_some()
        {
            let message = "the server asks again; give its \"requestState\" back beside \"input\"";
            output::note("warning", &format!("line {}: {message}", label.line));
        }
        let tool = label.tool.as_deref();
        let extra = |object: &mut ObjectWriter<'_>| {
            if let Some(tool) = tool {
                json::members(object, &json::who(ended, ("tool", tool)));
            }
        };
        let (id, outcome) = (&label.id, &ended.outcome);
        let line = self
            .output
            .outcome(id, label.started, outcome, tool.is_some(), extra);
        self.written(line);
    }

    fn complete(&self, label: &Label, extra: impl FnOnce(&mut ObjectWriter<'_>)) {
        let outcome = Outcome::Complete(Reply::Settled);
        let line = self
            .output
            .outcome(&label.id, label.started, &outcome, false, extra);
        self.written(line);
    }

    fn malformed(&self, line: u64, malformed: &Malformed) {
        self.malformed.store(true, Ordering::Relaxed);
        self.written(self.output.malformed(line, malformed));
    }

    fn failed(&self, label: &Label, error: Error) {
        self.ended(label, &session::refused(error));
    }

    /// Nobody reads any more: the first who learns of it ends everything.
    fn written(&self, line: Result<(), Broken>) {
        if line == Err(Broken) && !self.tracker.is_stopping() {
            self.stop();
        }
    }
}

/// Runs this on a thread of its own, or here if there are no more threads.
fn spawn_or_run(work: impl FnOnce() + Send + 'static) {
    // A thread that cannot be started drops its closure, so the work is kept where both can take it.
    let work = Arc::new(std::sync::Mutex::new(Some(work)));
    let other = Arc::clone(&work);
    let take = |work: &std::sync::Mutex<Option<_>>| {
        work.lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take()
    };
    let thread = thread::Builder::new().stack_size(STACK_BYTES);
    let spawned = thread.spawn(move || {
        if let Some(work) = take(&other) {
            work();
        }
    });
    if spawned.is_err()
        && let Some(work) = take(&work)
    {
        work();
    }
}

fn closed() -> Error {
    Error::general(Cause::ClientClosed)
}

fn unavailable() -> Error {
    Error::general(Cause::Unavailable {
        reason: "the client is closed".to_owned(),
    })
}
