//! Runs a [`FakeServer`] as a process: real stdin, stdout and stderr, threads only.

#[cfg_attr(unix, path = "stdio/unix.rs")]
#[cfg_attr(not(unix), path = "stdio/other.rs")]
mod platform;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::{ChildKind, FakeServer, Input, Output, Script};
use platform::StdinReader;

/// Tells a re-executed process that it is the child of a `spawn_child` step, and of which kind.
const CHILD_VARIABLE: &str = "MCP_FAKE_SERVER_CHILD";

/// How long a spawned child lives. It must outlast the patience of clients, and no more.
const CHILD_LIFETIME: Duration = Duration::from_secs(60);

/// How long a process that ignores the end of its input lives, should nobody kill it.
const LEASH: Duration = Duration::from_secs(120);

/// The exit code of a process that nobody killed within its leash.
const EXIT_LEASH: u8 = 98;

/// The exit code of a runner that cannot start.
const EXIT_USAGE: u8 = 2;

/// What the reading thread reports.
pub(crate) enum Event {
    Bytes(Vec<u8>),
    Eof,
}

/// Runs the script on this process's standard streams until it exits or is killed.
///
/// `respawn_state` names the file that counts the processes of a script with `respawn` steps; it
/// goes before the file that the script itself names. Call this early in `main` and end the
/// process with the code: a `spawn_child` step starts the same program with the same arguments
/// again, and in that process this function only holds the pipes.
///
/// Write errors are ignored (the client may be gone, and the script decides whether that ends the
/// server). A server that outlives its input ends after two minutes with code 98.
pub fn run(script: Script, respawn_state: Option<&Path>) -> ExitCode {
    if let Some(kind) = std::env::var_os(CHILD_VARIABLE) {
        return be_child(kind == "own_session");
    }
    let script = match choose_life(script, respawn_state) {
        Ok(script) => script,
        Err(problem) => {
            drop(writeln!(io::stderr(), "fake-server: {problem}"));
            return ExitCode::from(EXIT_USAGE);
        }
    };
    let transcript = script.transcript().map(Path::to_owned);
    let server = FakeServer::new(script).with_env(|name| std::env::var(name).ok());
    let server = match transcript {
        Some(_) => server,
        None => server.without_recording(),
    };
    Runner::new(server, transcript.map(Transcript::new)).run()
}

/// Which steps this process runs: the first process those of `steps`, later ones `respawn`.
fn choose_life(script: Script, respawn_state: Option<&Path>) -> Result<Script, String> {
    let Some(file) = respawn_state.or_else(|| script.respawn_state()) else {
        if script.has_respawn() {
            return Err(
                "the script has `respawn` steps, but no state file counts its processes: \
                 set `options.respawn_state` or --respawn-state"
                    .into(),
            );
        }
        return Ok(script);
    };
    let lives: u64 = match fs::read_to_string(file) {
        Ok(text) => text
            .trim()
            .parse()
            .map_err(|_| format!("{}: not a process count", file.display()))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(format!("{}: {error}", file.display())),
    };
    fs::write(file, format!("{}\n", lives + 1))
        .map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(if lives == 0 {
        script
    } else {
        script.respawned()
    })
}

fn be_child(own_session: bool) -> ExitCode {
    if own_session {
        platform::leave_session();
    }
    std::thread::sleep(CHILD_LIFETIME);
    ExitCode::SUCCESS
}

struct Runner {
    server: FakeServer,
    transcript: Option<Transcript>,
    start: Instant,
    /// When a process without input has lived long enough.
    leash: Option<Instant>,
}

impl Runner {
    fn new(server: FakeServer, transcript: Option<Transcript>) -> Self {
        Self {
            server,
            transcript,
            start: Instant::now(),
            leash: None,
        }
    }

    fn run(mut self) -> ExitCode {
        // One chunk at a time: a server that is busy writing does not read on.
        let (sender, events) = sync_channel(1);
        let mut reader = match StdinReader::spawn(sender) {
            Ok(reader) => reader,
            Err(error) => {
                drop(writeln!(io::stderr(), "fake-server: stdin: {error}"));
                return ExitCode::from(EXIT_USAGE);
            }
        };
        loop {
            while let Some(output) = self.server.poll_output() {
                if let Some(code) = self.perform(output, &mut reader) {
                    self.write_transcript();
                    return code;
                }
            }
            self.write_transcript();
            if self.leash.is_some_and(|leash| leash <= Instant::now()) {
                return ExitCode::from(EXIT_LEASH);
            }
            match events.recv_timeout(self.patience()) {
                Ok(Event::Bytes(bytes)) => self.handle(Input::Bytes(&bytes)),
                Ok(Event::Eof) => {
                    self.shorten_leash();
                    self.handle(Input::Eof);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    self.handle(Input::Tick);
                }
            }
        }
    }

    fn handle(&mut self, input: Input<'_>) {
        self.server.handle(input, self.start.elapsed());
    }

    /// Does what the server wants; the exit code if that is to end.
    fn perform(&mut self, output: Output, reader: &mut StdinReader) -> Option<ExitCode> {
        match output {
            Output::Stdout(bytes) => {
                let mut stdout = io::stdout().lock();
                drop(stdout.write_all(&bytes).and_then(|()| stdout.flush()));
            }
            Output::Stderr(bytes) => drop(io::stderr().lock().write_all(&bytes)),
            Output::Exit(code) => return Some(ExitCode::from(u8::try_from(code).unwrap_or(1))),
            Output::CloseStdin => {
                self.shorten_leash();
                reader.close();
            }
            Output::CloseStdout => platform::close_stdout(),
            Output::Kill => {
                self.write_transcript();
                platform::kill_self();
                return Some(ExitCode::FAILURE);
            }
            Output::StopReading => {
                self.shorten_leash();
                reader.stop();
            }
            Output::IgnoreSigterm => {
                if let Err(error) = platform::ignore_sigterm() {
                    drop(writeln!(io::stderr(), "fake-server: SIGTERM: {error}"));
                }
            }
            Output::SpawnChild { kind } => spawn_child(kind),
        }
        None
    }

    fn shorten_leash(&mut self) {
        self.leash.get_or_insert_with(|| Instant::now() + LEASH);
    }

    /// How long to wait for input: until the server's next timer or the end of the leash.
    fn patience(&self) -> Duration {
        let timer = self
            .server
            .poll_timeout()
            .map(|due| due.saturating_sub(self.start.elapsed()));
        let leash = self
            .leash
            .map(|leash| leash.saturating_duration_since(Instant::now()));
        timer.into_iter().chain(leash).min().unwrap_or(LEASH)
    }

    fn write_transcript(&mut self) {
        if let Some(transcript) = &mut self.transcript
            && let Err(error) = transcript.catch_up(&self.server)
        {
            drop(writeln!(io::stderr(), "fake-server: transcript: {error}"));
        }
    }
}

/// Re-executes this program as a child that inherits all three standard streams.
fn spawn_child(kind: ChildKind) {
    let kind = match kind {
        ChildKind::HoldsPipes => "holds_pipes",
        ChildKind::OwnSession => "own_session",
    };
    let spawned = std::env::current_exe().and_then(|program| {
        Command::new(program)
            .args(std::env::args_os().skip(1))
            .env(CHILD_VARIABLE, kind)
            .spawn()
    });
    let mut stderr = io::stderr();
    drop(match spawned {
        Ok(child) => writeln!(stderr, "fake-server: child {} {kind}", child.id()),
        Err(error) => writeln!(stderr, "fake-server: child: {error}"),
    });
}

/// JSON Lines: `{"received": line}` for what the client sent, `{"failure": text}` for what it broke.
struct Transcript {
    file: std::path::PathBuf,
    lines: usize,
    failures: usize,
}

impl Transcript {
    fn new(file: std::path::PathBuf) -> Self {
        Self {
            file,
            lines: 0,
            failures: 0,
        }
    }

    fn catch_up(&mut self, server: &FakeServer) -> io::Result<()> {
        let lines = server.raw_lines().iter().skip(self.lines);
        let failures = server.failures().iter().skip(self.failures);
        let mut text = String::new();
        for line in lines {
            let line = json!({"received": String::from_utf8_lossy(line)});
            text.push_str(&format!("{line}\n"));
        }
        for failure in failures {
            text.push_str(&format!("{}\n", json!({"failure": failure})));
        }
        if text.is_empty() {
            return Ok(());
        }
        self.lines = server.raw_lines().len();
        self.failures = server.failures().len();
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.file)?
            .write_all(text.as_bytes())
    }
}
