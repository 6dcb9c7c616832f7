//! Cases through a program that speaks the `batch` protocol of `mcp-harness`.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::{Value, json};

use super::case::Case;
use super::driver::{place_name, read_transcripts, start};
use super::facts::{self, Played};
use super::step::Task;
use super::{Front, config};
use crate::suite::place::Place;
use crate::suite::process;
use crate::suite::stage::{CLOSE_LIMIT, PATIENCE};

/// The id of the report that ends a case.
const LAST: &str = "last";

/// A program with the subcommands `batch` and `fake-server`.
#[derive(Clone, Debug)]
pub struct WithBatch {
    program: PathBuf,
    arguments: Vec<String>,
}

impl WithBatch {
    /// The program, and what it is given before `batch` besides `--config FILE`.
    pub fn new<A: Into<String>>(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
        }
    }

    fn spawn(&self, config: &PathBuf) -> Result<Batch, String> {
        let mut child = Command::new(&self.program)
            .arg("--config")
            .arg(config)
            .args(&self.arguments)
            .arg("batch")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{}: {error}", self.program.display()))?;
        let (sender, lines) = channel();
        let stdout = child.stdout.take().ok_or("no standard output")?;
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let line = facts::line(&line).map_err(|error| format!("{error}: {line}"));
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Batch {
            stdin: child.stdin.take(),
            child,
            lines,
            events: Vec::new(),
        })
    }
}

impl Front for WithBatch {
    fn name(&self) -> String {
        let program = self.program.file_name().unwrap_or_default();
        format!("{} {}", program.display(), self.arguments.join(" "))
    }

    fn play(&self, case: &Case) -> Result<Played, String> {
        let place = Place::new(&place_name(case), &std::env::temp_dir());
        let server = [
            self.program.to_string_lossy().into_owned(),
            "fake-server".into(),
        ];
        // Parsed only to find settings that do not exist.
        config(case, |peer| start(peer, &place, &server))?;
        let file = place.file("config.json");
        let text = case.config(|peer| start(peer, &place, &server));
        fs::write(&file, text).map_err(|error| error.to_string())?;
        let mut batch = self.spawn(&file)?;
        let mut played = Played {
            steps: vec![Value::Null; case.client.len()],
            ..Played::default()
        };
        if let Err(problem) = batch.converse(case, &mut played) {
            played.complaints.push(problem);
        }
        let before = place.processes();
        batch.stdin = None;
        let ended = process::until(CLOSE_LIMIT, || {
            matches!(batch.child.try_wait(), Ok(Some(_)))
        });
        if !ended {
            played
                .complaints
                .push(format!("it has not ended within {CLOSE_LIMIT:?}"));
        }
        place.nothing_is_left(before);
        read_transcripts(case, &place, &mut played);
        Ok(played)
    }
}

/// One run of the program.
struct Batch {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Result<Value, String>>,
    /// What came before outcomes: the index of the step, and the line.
    events: Vec<(u64, Value)>,
}

impl Batch {
    /// Sends every step, and takes what comes back.
    fn converse(&mut self, case: &Case, played: &mut Played) -> Result<(), String> {
        let mut has_settled = false;
        for (index, step) in case.client.iter().enumerate() {
            // A report waits until every peer has settled: before that, a close would not be one.
            if matches!(step.task, Task::Close) && has_settled {
                self.take_report(played)?;
            }
            has_settled |= matches!(step.task, Task::Report);
            let mut line = step.line.clone();
            line.insert("id".into(), index.into());
            self.send(&line.into())?;
            let waits = !matches!(&step.task, Task::Operation(doing) if doing.background);
            while waits && played.steps[index].is_null() {
                self.take_line(played)?;
            }
        }
        while played.steps.iter().any(Value::is_null) {
            self.take_line(played)?;
        }
        let is_closed = case
            .client
            .iter()
            .any(|step| matches!(step.task, Task::Close));
        if is_closed {
            return Ok(());
        }
        self.take_report(played)
    }

    /// Asks for the report before the client is closed.
    fn take_report(&mut self, played: &mut Played) -> Result<(), String> {
        if played.report.is_null() {
            self.send(&json!({"id": LAST, "op": "report"}))?;
        }
        while played.report.is_null() {
            self.take_line(played)?;
        }
        Ok(())
    }

    fn send(&mut self, line: &Value) -> Result<(), String> {
        let stdin = self.stdin.as_mut().ok_or("its input is closed")?;
        writeln!(stdin, "{line}").map_err(|error| format!("it does not read: {error}"))
    }

    fn take_line(&mut self, played: &mut Played) -> Result<(), String> {
        let line = self.lines.recv_timeout(PATIENCE);
        let mut line = line.map_err(|error| format!("no more lines: {error}"))??;
        if line["id"] == LAST {
            played.report = line;
            return Ok(());
        }
        let id = line["id"].as_u64().ok_or("a line without its id")?;
        if line.get("event").is_some() {
            self.events.push((id, line));
            return Ok(());
        }
        let events = || self.events.iter().filter(|(of, _)| *of == id);
        let part = |event: &str, member: &str| -> Value {
            let of_kind = events().filter(|(_, line)| line["event"] == event);
            of_kind.map(|(_, line)| line[member].clone()).collect()
        };
        line["progress"] = part("progress", "progress");
        line["events"] = part("notification", "method");
        let step = usize::try_from(id)
            .ok()
            .and_then(|index| played.steps.get_mut(index));
        *step.ok_or("a line of no step")? = line;
        Ok(())
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
