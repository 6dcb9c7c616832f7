//! Runs the built binary against itself as the server.

#![allow(dead_code)] // each test file uses a part

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-harness");
pub(crate) const DRIVERS: [&str; 2] = ["tokio", "blocking"];

/// Far longer than anything takes, so that a test that hangs fails with words.
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory of its own, with a configuration.
pub(crate) struct Place {
    directory: PathBuf,
    mark: String,
}

/// How a run of the binary ended.
pub(crate) struct Done {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }
}

impl std::fmt::Display for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "exit {}", self.status)?;
        write!(f, "--- stdout\n{}--- stderr\n{}", self.stdout, self.stderr)
    }
}

/// A server that is this program, with these options.
pub(crate) fn fake<S: AsRef<str>>(options: &[S]) -> Value {
    let mut args = vec!["fake-server".to_owned()];
    args.extend(options.iter().map(|option| option.as_ref().to_owned()));
    json!({"command": PROGRAM, "args": args})
}

/// The same with a script.
pub(crate) fn scripted(script: &Value) -> Value {
    fake(&["--script-json".to_owned(), script.to_string()])
}

/// The same, allow-listed for older revisions.
pub(crate) fn legacy<S: AsRef<str>>(options: &[S]) -> Value {
    let mut server = fake(options);
    server["allowLegacy"] = true.into();
    server["args"]
        .as_array_mut()
        .unwrap()
        .push("--era=legacy".into());
    server
}

impl Place {
    /// `name` is unique among all tests. Every server that is this program can be recognised by it.
    pub(crate) fn new(name: &str, servers: &[(&str, Value)]) -> Self {
        let mark = format!("{name}-{}", std::process::id());
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&mark);
        fs::create_dir_all(&directory).unwrap();
        let place = Self { directory, mark };
        let mut all = serde_json::Map::new();
        for (name, server) in servers {
            let mut server = server.clone();
            if server["command"] == PROGRAM {
                let transcript = place.directory.join(format!("{name}.transcript"));
                let option = format!("--transcript={}", transcript.display());
                server["args"].as_array_mut().unwrap().push(option.into());
            }
            all.insert((*name).to_owned(), server);
        }
        place.write(&json!({"mcpServers": all}).to_string());
        place
    }

    /// Writes the configuration file.
    pub(crate) fn write(&self, text: &str) {
        fs::write(self.directory.join(".mcp.json"), text).unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        &self.directory
    }

    /// What a server was sent: the methods.
    pub(crate) fn methods(&self, server: &str) -> Vec<String> {
        let path = self.directory.join(format!("{server}.transcript"));
        let text = fs::read_to_string(path).unwrap_or_default();
        let method = |line: &str| {
            let line: Value = serde_json::from_str(line).ok()?;
            let message: Value = serde_json::from_str(line["received"].as_str()?).ok()?;
            Some(message["method"].as_str()?.to_owned())
        };
        text.lines().filter_map(method).collect()
    }

    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .args(args)
            .current_dir(&self.directory)
            .env("XDG_CONFIG_HOME", self.directory.join("config"))
            .env("NO_COLOR", "1")
            // Who calls it is not to be seen in what it advises.
            .env_remove("CARGO")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs to the end, and sees to it that no server is left.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Done {
        let child = self.command(args).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        self.assert_nothing_left();
        Done {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs with both drivers, and sees to it that they do the same.
    pub(crate) fn run_both(&self, args: &[&str]) -> Done {
        let with = |driver| self.run(&[&["--driver", driver], args].concat());
        let [one, other] = DRIVERS.map(with);
        assert_eq!(stable(&one.to_string()), stable(&other.to_string()));
        one
    }

    /// No process of this place is there.
    pub(crate) fn assert_nothing_left(&self) {
        assert_eq!(self.processes(), Vec::<String>::new());
    }

    /// The command lines of this place's servers.
    pub(crate) fn processes(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        entries
            .filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok())
            .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
            .filter(|line| line.contains("fake-server") && line.contains(&self.mark))
            .collect()
    }

    pub(crate) fn batch(&self, driver: &str) -> Batch {
        let mut child = self
            .command(&["--driver", driver, "batch"])
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let line = line.unwrap();
                let value: Value = serde_json::from_str(&line).unwrap();
                if sender.send((line, value)).is_err() {
                    return;
                }
            }
        });
        Batch {
            stdin: child.stdin.take(),
            child,
            lines,
        }
    }

    /// Runs a whole batch, and sees to it that both drivers print the same lines for each operation.
    pub(crate) fn batch_both(&self, input: &[u8]) -> (i32, Vec<Value>) {
        let with = |driver| {
            let mut batch = self.batch(driver);
            let mut stdin = batch.stdin.take().unwrap();
            let input = input.to_vec();
            let writer = thread::spawn(move || drop(stdin.write_all(&input)));
            let (status, lines) = batch.finish();
            writer.join().unwrap();
            self.assert_nothing_left();
            (status, lines)
        };
        let [one, other] = DRIVERS.map(with);
        let by_id = |(status, lines): &(i32, Vec<Value>)| {
            let mut lines: Vec<Value> = lines.iter().map(without_ms).collect();
            lines.sort_by_key(|line| line["id"].to_string());
            (*status, lines)
        };
        assert_eq!(by_id(&one), by_id(&other));
        one
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !thread::panicking() {
            drop(fs::remove_dir_all(&self.directory));
        }
    }
}

/// A batch that is talked with.
pub(crate) struct Batch {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<(String, Value)>,
}

impl Batch {
    pub(crate) fn send(&mut self, line: &Value) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
    }

    /// The next line.
    pub(crate) fn line(&self) -> Value {
        self.text().1
    }

    pub(crate) fn text(&self) -> (String, Value) {
        self.lines.recv_timeout(PATIENCE).expect("a line of output")
    }

    /// Sends an operation in the foreground and takes its outcome; no line may come before it.
    pub(crate) fn ask(&mut self, line: &Value) -> Value {
        self.send(line);
        let answer = self.line();
        assert_eq!(answer["id"], line["id"], "{answer}");
        assert_ne!(answer["outcome"], Value::Null, "{answer}");
        answer
    }

    pub(crate) fn end_input(&mut self) {
        self.stdin = None;
    }

    pub(crate) fn end_output(&mut self) {
        // The reading thread ends with its channel.
        self.lines = channel().1;
    }

    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for the end: the exit status, and the lines that were not taken.
    pub(crate) fn finish(mut self) -> (i32, Vec<Value>) {
        self.stdin = None;
        let mut rest = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok((_, line)) => rest.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("no end after {rest:?}"),
            }
        }
        (self.child.wait().unwrap().code().unwrap_or(-1), rest)
    }
}

/// The line without its duration, which is there in every outcome but those of malformed lines.
pub(crate) fn without_ms(line: &Value) -> Value {
    let mut line = line.clone();
    let members = line.as_object_mut().unwrap();
    let ms = members.remove("ms");
    let outcome = members.contains_key("outcome") && !members.contains_key("line");
    assert_eq!(outcome, ms.is_some_and(|ms| ms.is_u64()), "{line}");
    line
}

/// The text without what differs from run to run.
pub(crate) fn stable(text: &str) -> String {
    let text = text.replace(PROGRAM, "mcp-harness");
    let mut out = String::new();
    for line in text.lines() {
        let mut line = line.to_owned();
        for (before, after) in [
            (" after ", " ms"),
            ("\"settledMs\":", ","),
            ("\"availableSinceNanos\":", ","),
        ] {
            line = hide_number(&line, before, after);
        }
        if let Some(start) = line.find("--transcript=") {
            let end = line[start..]
                .find([' ', '"'])
                .map_or(line.len(), |length| start + length);
            line.replace_range(start..end, "--transcript=FILE");
        }
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// Replaces the numbers between two texts.
fn hide_number(line: &str, before: &str, after: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(before) {
        let (head, tail) = rest.split_at(at + before.len());
        out.push_str(head);
        let digits = tail.len() - tail.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        rest = tail;
        if digits > 0 && tail[digits..].starts_with(after) {
            out.push('N');
            rest = &tail[digits..];
        }
    }
    out.push_str(rest);
    out
}

/// Reads everything, for children that are not batches.
pub(crate) fn read_all(mut from: impl Read) -> String {
    let mut text = String::new();
    from.read_to_string(&mut text).unwrap();
    text
}
