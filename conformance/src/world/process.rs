//! One simulated process: a fake server between pipes that behave as the operating system's do.

use std::collections::VecDeque;

use mcp_fake_server::{ChildKind, FakeServer, Input, Output, Script};
use mcp_proto::{Exit, Instant, IoFailure, IoKind};

/// What a pipe holds before a write to it blocks.
const PIPE_BYTES: usize = 16 << 10;

/// What happens to a process from outside, or what it does beside its script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It is killed: output and process end.
    Kill,
    /// It closes its output and lives on.
    CloseOutput,
    /// It exits, but a child of it keeps the output open.
    ExitOnly,
    /// It closes its input: writes fail from now on.
    CloseInput,
    /// It reads no more: the pipe fills up and a write is never done.
    StopReading,
    /// It writes this many bytes to standard error.
    StderrFlood(usize),
}

/// Facts wait in lanes; those of one lane stay in order, lanes overtake each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Opened, failed, written, write failed.
    Control,
    /// The server takes what stands in its input.
    Input,
    Stdout,
    Stderr,
    Exit,
}

pub(super) const LANES: [Lane; 5] = [
    Lane::Control,
    Lane::Input,
    Lane::Stdout,
    Lane::Stderr,
    Lane::Exit,
];

#[derive(Debug)]
pub(super) enum Control {
    Opened,
    Failed(IoFailure),
    Written(Vec<u8>),
    WriteFailed(IoFailure),
}

/// The server's output, or what it says on standard error, on its way to the client.
#[derive(Debug)]
pub(super) enum Chunk {
    Bytes(Vec<u8>),
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Reads,
    Stopped,
    Closed,
}

#[derive(Debug)]
pub(super) struct Process {
    server: Option<FakeServer>,
    born: Instant,
    reading: Reading,
    /// In the pipe, not read by the server yet.
    input: VecDeque<u8>,
    /// The client's write that is not wholly in the pipe yet, and how much of it is.
    outstanding: Option<(Vec<u8>, usize)>,
    input_closed: bool,
    eof_read: bool,
    pub(super) control: VecDeque<Control>,
    pub(super) stdout: VecDeque<Chunk>,
    output_open: bool,
    pub(super) stderr: VecDeque<Chunk>,
    stderr_open: bool,
    pub(super) exit: Option<Exit>,
    exited: bool,
    ignores_terminate: bool,
    /// Children that hold the output open.
    holders: Vec<ChildKind>,
}

impl Process {
    /// A process that runs a script.
    pub(super) fn spawn(script: Script, now: Instant) -> Self {
        let mut process = Self::nothing(now);
        process.server = Some(FakeServer::new(script));
        process.control.push_back(Control::Opened);
        process.collect();
        process
    }

    /// A process that cannot be started.
    pub(super) fn refused(now: Instant) -> Self {
        let mut process = Self::nothing(now);
        let failure = IoFailure {
            kind: IoKind::NotFound,
            detail: "No such file or directory (os error 2)".into(),
        };
        process.control.push_back(Control::Failed(failure));
        process
    }

    /// A start that never comes to an end.
    pub(super) fn nothing(now: Instant) -> Self {
        Self {
            server: None,
            born: now,
            reading: Reading::Reads,
            input: VecDeque::new(),
            outstanding: None,
            input_closed: false,
            eof_read: false,
            control: VecDeque::new(),
            stdout: VecDeque::new(),
            output_open: true,
            stderr: VecDeque::new(),
            stderr_open: true,
            exit: None,
            exited: false,
            ignores_terminate: false,
            holders: Vec::new(),
        }
    }

    /// Whether something waits in a lane.
    pub(super) fn is_ready(&self, lane: Lane) -> bool {
        match lane {
            Lane::Control => !self.control.is_empty(),
            Lane::Input => self.can_read(),
            Lane::Stdout => !self.stdout.is_empty(),
            Lane::Stderr => !self.stderr.is_empty(),
            Lane::Exit => self.exit.is_some(),
        }
    }

    fn can_read(&self) -> bool {
        let wants = !self.input.is_empty() || (self.input_closed && !self.eof_read);
        wants && !self.exited && self.reading == Reading::Reads && self.server.is_some()
    }

    /// When the server wants to act by itself.
    pub(super) fn due(&self) -> Option<Instant> {
        let server = self.server.as_ref().filter(|_| !self.exited)?;
        server.poll_timeout().map(|due| self.born + due)
    }

    /// Lets the server do what is due.
    pub(super) fn tick(&mut self, now: Instant) {
        self.give(Input::Tick, now);
    }

    /// The server reads at most this many bytes of its input, or notices its end.
    pub(super) fn read(&mut self, most: usize, now: Instant) {
        if self.input.is_empty() {
            self.eof_read = true;
            self.give(Input::Eof, now);
            return;
        }
        let count = most.min(self.input.len());
        let bytes: Vec<u8> = self.input.drain(..count).collect();
        self.fill_pipe();
        self.give(Input::Bytes(&bytes), now);
    }

    pub(super) fn input_len(&self) -> usize {
        self.input.len()
    }

    /// The client writes.
    pub(super) fn write(&mut self, bytes: Vec<u8>) {
        self.outstanding = Some((bytes, 0));
        self.fill_pipe();
    }

    fn fill_pipe(&mut self) {
        let Some((bytes, done)) = &mut self.outstanding else {
            return;
        };
        if self.reading == Reading::Closed || self.exited {
            self.outstanding = None;
            self.control.push_back(Control::WriteFailed(IoFailure {
                kind: IoKind::BrokenPipe,
                detail: "Broken pipe (os error 32)".into(),
            }));
            return;
        }
        let room = PIPE_BYTES.saturating_sub(self.input.len());
        let end = bytes.len().min(*done + room);
        self.input.extend(&bytes[*done..end]);
        *done = end;
        if end == bytes.len()
            && let Some((mut spent, _)) = self.outstanding.take()
        {
            spent.clear();
            self.control.push_back(Control::Written(spent));
        }
    }

    /// The client closes the server's input; what is not in the pipe yet is dropped.
    pub(super) fn close_input(&mut self) {
        self.outstanding = None;
        self.input_closed = true;
    }

    /// A signal to the process group.
    pub(super) fn signal(&mut self, force: bool) {
        if force || !self.ignores_terminate {
            self.holders.retain(|kind| *kind == ChildKind::OwnSession);
            self.end(Exit::Signal(if force { 9 } else { 15 }));
        }
    }

    pub(super) fn inject(&mut self, fault: Fault) {
        match fault {
            Fault::Kill => self.end(Exit::Signal(9)),
            Fault::CloseOutput => self.end_output(),
            Fault::ExitOnly => {
                self.holders.push(ChildKind::OwnSession);
                self.end(Exit::Code(0));
            }
            Fault::CloseInput => self.stop_reading(Reading::Closed),
            Fault::StopReading => self.stop_reading(Reading::Stopped),
            Fault::StderrFlood(bytes) => {
                let line = b"warning: something is deprecated\n";
                let flood = line.iter().copied().cycle().take(bytes).collect();
                self.stderr.push_back(Chunk::Bytes(flood));
            }
        }
    }

    fn stop_reading(&mut self, how: Reading) {
        if self.reading != Reading::Closed {
            self.reading = how;
        }
        self.fill_pipe();
    }

    fn end(&mut self, exit: Exit) {
        if !self.exited && self.server.is_some() {
            self.exited = true;
            self.exit = Some(exit);
            self.fill_pipe();
        }
        if self.exited && self.holders.is_empty() {
            self.end_output();
            self.end_stderr();
        }
    }

    fn end_output(&mut self) {
        if std::mem::replace(&mut self.output_open, false) {
            self.stdout.push_back(Chunk::End);
        }
    }

    fn end_stderr(&mut self) {
        if std::mem::replace(&mut self.stderr_open, false) {
            self.stderr.push_back(Chunk::End);
        }
    }

    fn give(&mut self, input: Input<'_>, now: Instant) {
        if let Some(server) = self.server.as_mut().filter(|_| !self.exited) {
            server.handle(input, now.since(self.born));
            self.collect();
        }
    }

    /// Takes what the server wants. What it writes in one go comes as one.
    fn collect(&mut self) {
        let mut joins = false;
        while let Some(output) = self.server.as_mut().and_then(FakeServer::poll_output) {
            match output {
                Output::Stdout(mut bytes) if self.output_open => match self.stdout.back_mut() {
                    Some(Chunk::Bytes(waiting)) if joins => waiting.append(&mut bytes),
                    _ => {
                        self.stdout.push_back(Chunk::Bytes(bytes));
                        joins = true;
                    }
                },
                Output::Stderr(bytes) => self.stderr.push_back(Chunk::Bytes(bytes)),
                Output::Exit(code) => self.end(Exit::Code(code)),
                Output::StopReading => self.stop_reading(Reading::Stopped),
                Output::CloseStdout => self.end_output(),
                Output::Kill => self.end(Exit::Signal(9)),
                Output::CloseStdin => self.stop_reading(Reading::Closed),
                Output::IgnoreSigterm => self.ignores_terminate = true,
                Output::SpawnChild { kind } => self.holders.push(kind),
                _ => {}
            }
        }
    }

    /// What the script asserted about the client and did not find.
    pub(super) fn complaint(&self) -> Option<&str> {
        let failures = self.server.as_ref()?.failures();
        failures.first().map(String::as_str)
    }
}
