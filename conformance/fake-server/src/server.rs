//! The sans-IO server: bytes and time in, outputs out.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::builtin::Builtin;
use crate::engine::Engine;
use crate::message::{self, Kind, RpcError};
use crate::script::Script;
use crate::{Era, LegacyVersion};

/// What reaches the server.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// Bytes of the client, split anywhere.
    Bytes(&'a [u8]),
    /// The client closed its end.
    Eof,
    /// Only time has passed.
    Tick,
}

/// What the server wants done, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// Close the read end of stdin; no input is expected any more.
    CloseStdin,
    /// Close stdout; nothing more is written to it.
    CloseStdout,
    /// End the process with this code. Nothing follows.
    Exit(i32),
    /// Ignore the polite termination signal from now on.
    IgnoreSigterm,
    /// End the process as if the system had killed it. Nothing follows.
    Kill,
    /// Start a child process.
    SpawnChild {
        /// What the child is like.
        kind: ChildKind,
    },
    /// Write to stderr.
    Stderr(Vec<u8>),
    /// Write to stdout.
    Stdout(Vec<u8>),
    /// Leave stdin open but read no more of it.
    StopReading,
}

/// A child process that outlives careless clients. Both kinds inherit stdin, stdout and stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChildKind {
    /// Stays in the server's process group and only holds its pipes open.
    HoldsPipes,
    /// Moves to a session of its own, out of reach of a signal to the group.
    OwnSession,
}

/// The exit code at the end of input if an assertion about the client failed.
pub const EXIT_ASSERTION: i32 = 99;

/// A scriptable MCP server without any I/O.
///
/// Feed it with [`handle`](Self::handle), then drain [`poll_output`](Self::poll_output) and ask
/// [`poll_timeout`](Self::poll_timeout) when it wants to be called again. It has no clock and no
/// random source: the same inputs at the same times give the same outputs, and a split of the
/// client's bytes changes nothing.
///
/// ```
/// use std::time::Duration;
/// use mcp_fake_server::{FakeServer, Input, LegacyVersion, Output, Script};
///
/// let mut server = FakeServer::new(Script::legacy(LegacyVersion::LATEST));
/// server.handle(Input::Bytes(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"), Duration::ZERO);
/// let Some(Output::Stdout(line)) = server.poll_output() else { panic!("no answer") };
/// let answer: serde_json::Value = serde_json::from_slice(&line)?;
/// assert_eq!(answer, serde_json::json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub struct FakeServer {
    builtin: Builtin,
    engine: Engine,
    sink: Sink,
    now: Duration,
    /// The client's line that is not complete yet.
    partial: Vec<u8>,
    recording: bool,
    received: Vec<Value>,
    raw_lines: Vec<Vec<u8>>,
    used_ids: BTreeSet<String>,
    ended: bool,
    malformed_id_is_null: bool,
    modern_only: bool,
}

// A test may run it in another thread than the client.
const _: fn() = || {
    fn is_send<T: Send>() {}
    is_send::<FakeServer>();
};

impl FakeServer {
    /// A server at time zero. Steps that wait for nothing have run: there may be output already.
    pub fn new(script: Script) -> Self {
        let mut server = Self {
            engine: Engine::new(&script),
            sink: Sink::default(),
            now: Duration::ZERO,
            partial: Vec::new(),
            recording: true,
            received: Vec::new(),
            raw_lines: Vec::new(),
            used_ids: BTreeSet::new(),
            ended: false,
            // The two newest schemas let an error go without an id; before, only null was left.
            malformed_id_is_null: matches!(script.era, Era::Legacy(version) if version < LegacyVersion::V2025_11_25),
            modern_only: script.era == Era::Modern,
            builtin: Builtin::new(script),
        };
        server.pump();
        server
    }

    /// Gives the tool `env` something to look into; without it every variable is unset.
    #[must_use]
    pub fn with_env(mut self, lookup: impl Fn(&str) -> Option<String> + Send + 'static) -> Self {
        self.builtin.set_env(Box::new(lookup));
        self
    }

    /// Turns [`received`](Self::received), [`raw_lines`](Self::raw_lines) and the check for reused
    /// ids off, which otherwise grow with every message.
    #[must_use]
    pub fn without_recording(mut self) -> Self {
        self.recording = false;
        self
    }

    /// Takes one input that happened at `now`, counted from the server's start. A time before
    /// the last one is taken as the last one. Timers that are due run first, each at its own time.
    pub fn handle(&mut self, input: Input<'_>, now: Duration) {
        self.run_timers(now);
        self.now = self.now.max(now);
        match input {
            Input::Bytes(bytes) => self.receive(bytes),
            Input::Eof => self.end_of_input(),
            Input::Tick => {}
        }
    }

    /// The next thing to do. Drain it after [`new`](Self::new) and every [`handle`](Self::handle).
    pub fn poll_output(&mut self) -> Option<Output> {
        self.sink.outputs.pop_front()
    }

    /// When to call [`handle`](Self::handle) with [`Input::Tick`], if nothing arrives earlier.
    /// May change with every call of `handle`.
    pub fn poll_timeout(&self) -> Option<Duration> {
        if self.sink.exited {
            return None;
        }
        let builtin = self.builtin.deadline().filter(|_| !self.engine.hung());
        [self.engine.deadline(), builtin]
            .into_iter()
            .flatten()
            .min()
    }

    /// What the client did wrong: broken assertions of the script, and breaches no script has to
    /// ask for (lines that are not one JSON object, reused ids, responses in the modern era).
    pub fn failures(&self) -> &[String] {
        &self.sink.failures
    }

    /// Every client message that was JSON, in order.
    pub fn received(&self) -> &[Value] {
        &self.received
    }

    /// Every complete client line as it came, without the line feed.
    pub fn raw_lines(&self) -> &[Vec<u8>] {
        &self.raw_lines
    }

    /// Fires everything that is due, in the order of time.
    fn run_timers(&mut self, until: Duration) {
        while let Some(due) = self.poll_timeout().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            if !self.engine.hung() {
                self.builtin.run_due(self.now, &mut self.sink);
            }
            self.pump();
        }
    }

    fn receive(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
            if !self.sink.reading() {
                return;
            }
            let (head, tail) = rest.split_at(at);
            self.partial.extend_from_slice(head);
            rest = tail.get(1..).unwrap_or_default();
            let line = std::mem::take(&mut self.partial);
            self.line(&line);
        }
        if self.sink.reading() {
            self.partial.extend_from_slice(rest);
        }
    }

    fn line(&mut self, line: &[u8]) {
        if self.recording {
            self.raw_lines.push(line.to_vec());
        }
        let message = match serde_json::from_slice::<Value>(line) {
            Ok(message) => message,
            Err(error) => {
                self.sink
                    .fail(format!("the client sent a line that is not JSON: {error}"));
                return self.refuse(RpcError::new(-32700, "Parse error"));
            }
        };
        if self.recording {
            self.received.push(message.clone());
        }
        if matches!(Kind::of(&message), Kind::Malformed) {
            self.sink
                .fail("the client sent something that is no JSON-RPC message".into());
            return self.refuse(RpcError::new(-32600, "Invalid Request"));
        }
        self.message(message);
    }

    fn message(&mut self, message: Value) {
        self.check(&message);
        self.builtin.observe(&message);
        self.engine.note(&message, &mut self.sink);
        self.pump();
        if let Some(message) = self.engine.offer(message, &mut self.sink) {
            self.builtin.handle(&message, self.now, &mut self.sink);
        }
        self.pump();
    }

    /// Breaches that no script has to ask for.
    fn check(&mut self, message: &Value) {
        let breach = match Kind::of(message) {
            Kind::Request { id, method } => (self.recording
                && !self.used_ids.insert(id.to_string()))
            .then(|| format!("the client used id {id} again, for {method}")),
            Kind::Response { id } => self.modern_only.then(|| {
                format!("the client sent a response (id {id}), which the modern era does not have")
            }),
            Kind::Notification | Kind::Malformed => None,
        };
        if let Some(breach) = breach {
            self.sink.fail(breach);
        }
    }

    fn refuse(&mut self, error: RpcError) {
        let id = self.malformed_id_is_null.then_some(&Value::Null);
        self.sink.send(&message::error(id, error));
    }

    fn end_of_input(&mut self) {
        if self.ended || !self.sink.reading() {
            return;
        }
        self.ended = true;
        if !self.engine.ignores_eof() {
            let clean = self.sink.failures.is_empty();
            self.sink
                .push(Output::Exit(if clean { 0 } else { EXIT_ASSERTION }));
        }
    }

    fn pump(&mut self) {
        while let Some(message) = self.engine.run(self.now, &mut self.sink) {
            self.builtin.handle(&message, self.now, &mut self.sink);
        }
    }
}

impl fmt::Debug for FakeServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeServer")
            .field("now", &self.now)
            .field("engine", &self.engine)
            .field("failures", &self.sink.failures)
            .finish_non_exhaustive()
    }
}

/// Where outputs and failed assertions are put; after an exit it takes no more.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    outputs: VecDeque<Output>,
    failures: Vec<String>,
    deaf: bool,
    exited: bool,
}

impl Sink {
    pub(crate) fn push(&mut self, output: Output) {
        if self.exited {
            return;
        }
        self.exited = matches!(output, Output::Exit(_) | Output::Kill);
        self.outputs.push_back(output);
    }

    /// Puts one message on stdout.
    pub(crate) fn send(&mut self, message: &Value) {
        self.push(Output::Stdout(format!("{message}\n").into_bytes()));
    }

    /// Notes what the client did wrong, and says so on stderr for people who watch.
    pub(crate) fn fail(&mut self, what: String) {
        self.push(Output::Stderr(
            format!("fake-server: assertion failed: {what}\n").into_bytes(),
        ));
        self.failures.push(what);
    }

    pub(crate) fn stop_reading(&mut self, how: Output) {
        self.deaf = true;
        self.push(how);
    }

    pub(crate) fn exited(&self) -> bool {
        self.exited
    }

    fn reading(&self) -> bool {
        !self.deaf && !self.exited
    }
}
