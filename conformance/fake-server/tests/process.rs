//! The binary: real pipes, signals and processes.

#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    stderr: BufReader<ChildStderr>,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fake-server"))
            .args(arguments)
            .env("FAKE_TEST_VARIABLE", "seen")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().expect("stdout")),
            stderr: BufReader::new(child.stderr.take().expect("stderr")),
            child,
        }
    }

    fn script(document: Value) -> Self {
        Self::start(&["--script-json", &document.to_string()])
    }

    fn send(&mut self, line: &str) -> std::io::Result<()> {
        let stdin = self.stdin.as_mut().expect("open stdin");
        stdin.write_all(format!("{line}\n").as_bytes())
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("stdout");
        line.trim_end().to_owned()
    }

    fn error_line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).expect("stderr");
        line.trim_end().to_owned()
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn code(&mut self) -> Option<i32> {
        self.child.wait().expect("a status").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn r100_the_end_of_stdin_ends_the_process() {
    let mut server = Server::start(&["--era", "legacy", "--name", "n", "--tools", "env"]);
    server.send(PING).expect("stdin");
    let answer: Value = serde_json::from_str(&server.line()).expect("JSON");
    assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    server.stdin = None;
    assert_eq!(server.code(), Some(0));
}

#[test]
fn the_tool_env_sees_the_process() {
    let mut server = Server::start(&["--tools", "env"]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": "env", "arguments": {"name": "FAKE_TEST_VARIABLE"}, "_meta": meta});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    server.send(&call.to_string()).expect("stdin");
    assert!(server.line().contains(r#""text":"seen""#));
}

#[test]
fn r100_sigterm_ends_it_unless_ignored_and_sigkill_always_does() {
    let mut server = Server::script(json!({"era": "probe", "steps": ["ready"]}));
    assert_eq!(server.line(), "ready");
    kill_process(server.pid(), Signal::TERM).expect("a signal");
    assert_eq!(server.child.wait().expect("a status").signal(), Some(15));

    let steps = json!([{"ignore_sigterm": true}, {"ignore_stdin_eof": true}, "ready", {"on_each": "ping", "emit": "pong"}]);
    let mut server = Server::script(json!({"era": "probe", "steps": steps}));
    assert_eq!(server.line(), "ready");
    kill_process(server.pid(), Signal::TERM).expect("a signal");
    server.send(PING).expect("stdin");
    assert_eq!(server.line(), "pong", "it lives on");
    server.stdin = None;
    server.child.kill().expect("a signal");
    assert_eq!(server.child.wait().expect("a status").signal(), Some(9));
}

#[test]
fn r90_stdin_can_be_left_unread_or_closed() {
    let mut server = Server::script(
        json!({"era": "probe", "steps": [{"close_stdin_read": true}, {"sleep_ms": 1}, "ready"]}),
    );
    assert_eq!(server.line(), "ready");
    // The reading thread closes the pipe in its own time, so the first writes may still succeed.
    let refused = (0..1_000_000).find_map(|_| server.send(PING).err());
    assert_eq!(
        refused.map(|error| error.kind()),
        Some(std::io::ErrorKind::BrokenPipe)
    );

    let mut server = Server::script(
        json!({"era": "probe", "steps": [{"stop_reading": true}, {"sleep_ms": 20}, "ready", {"loop": {"every_ms": 1, "emit": "alive $N", "count": 20}}]}),
    );
    assert_eq!(server.line(), "ready");
    server.send(PING).expect("the pipe takes it");
    server.stdin = None;
    let lines: Vec<String> = (0..20).map(|_| server.line()).collect();
    assert_eq!(
        lines.last().map(String::as_str),
        Some("alive 20"),
        "no answer, no exit"
    );
}

#[test]
fn r90_stdout_can_be_closed_while_the_process_lives_on() {
    let steps =
        json!(["last", {"close_stdout": true}, {"on": "ping"}, "unheard", {"stderr": "alive\n"}]);
    let mut server = Server::script(json!({"era": "probe", "steps": steps}));
    assert_eq!(
        (server.line(), server.line()),
        ("last".into(), String::new())
    );
    server.send(PING).expect("stdin");
    assert_eq!(server.error_line(), "alive");
}

#[test]
fn r90_it_can_die_of_a_signal() {
    let mut server =
        Server::script(json!({"era": "probe", "steps": ["last", {"kill": true}, "never"]}));
    assert_eq!(
        (server.line(), server.line()),
        ("last".into(), String::new())
    );
    assert_eq!(server.child.wait().expect("a status").signal(), Some(9));
}

#[test]
fn r100_children_outlive_the_server_and_hold_its_pipes() {
    for kind in ["holds_pipes", "own_session"] {
        let mut server =
            Server::script(json!({"era": "probe", "steps": [{"spawn_child": kind}, {"exit": 0}]}));
        assert_eq!(server.code(), Some(0));
        let line = server.error_line();
        let pid = line
            .strip_prefix("fake-server: child ")
            .and_then(|rest| rest.strip_suffix(kind))
            .and_then(|pid| pid.trim().parse().ok())
            .and_then(Pid::from_raw)
            .unwrap_or_else(|| panic!("no process id in {line:?}"));
        test_kill_process(pid).expect("the child lives");
        kill_process(pid, Signal::KILL).expect("a signal");
        // Only now nobody holds the other end.
        assert_eq!(server.stdout.read_to_end(&mut Vec::new()).ok(), Some(0));
    }
}

#[test]
fn r15_the_second_process_runs_the_respawn_steps() {
    let directory = Scratch::new("respawn");
    let state = directory.file("count");
    let transcript = directory.file("transcript");
    let script = json!({
        "era": "probe",
        "options": {"respawn_state": state, "transcript": transcript},
        "steps": [{"on": "ping"}, {"exit": 1}],
        "respawn": [{"forbid": "ping"}, "again"],
    });
    let mut first = Server::script(script.clone());
    first.send(PING).expect("stdin");
    assert_eq!(first.code(), Some(1));
    let mut second = Server::script(script);
    assert_eq!(second.line(), "again");
    second.send(PING).expect("stdin");
    second.stdin = None;
    assert_eq!(second.code(), Some(99), "a broken assertion");
    assert_eq!(
        second.error_line(),
        "fake-server: assertion failed: the client sent ping, which is forbidden"
    );
    let lines = fs::read_to_string(transcript).expect("a transcript");
    let received = json!({"received": PING}).to_string();
    let failure = r#"{"failure":"the client sent ping, which is forbidden"}"#;
    assert_eq!(
        lines.lines().collect::<Vec<_>>(),
        [&received, &received, failure]
    );
}

#[test]
fn r110_what_cannot_start_says_why() {
    for (arguments, expected) in [
        (
            vec!["--era", "old"],
            "fake-server: --era old: expected modern, legacy or dual (try --help)",
        ),
        (
            vec!["--protocol-version", "1"],
            "fake-server: --protocol-version 1: no legacy revision (try --help)",
        ),
        (
            vec!["--page-size", "0"],
            "fake-server: --page-size 0: expected a number from 1 (try --help)",
        ),
        (
            vec!["--nonsense", "x"],
            "fake-server: unknown option --nonsense (try --help)",
        ),
        (
            vec!["--name"],
            "fake-server: --name needs a value (try --help)",
        ),
        (
            vec!["--script-json", "{}", "--era", "modern"],
            "fake-server: a script says its own era: leave --era and --protocol-version out (try --help)",
        ),
        (
            vec!["--script-json", "{\"steps\":[1]}"],
            "fake-server: script: steps[0]: expected a string or an object (try --help)",
        ),
        (
            vec!["--script-json", "{\"respawn\":[]}"],
            "fake-server: the script has `respawn` steps, but no state file counts its processes: set `options.respawn_state` or --respawn-state",
        ),
    ] {
        let mut server = Server::start(&arguments);
        assert_eq!(server.error_line(), expected);
        assert_eq!(server.code(), Some(2), "{arguments:?}");
    }
}

/// A directory that is gone after the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}
