//! Cases through a driver, against real processes.

use std::thread;
use std::time::Instant;

use mcp_proto::{OperationId, Request};
use serde_json::{Map, Value, json};

use super::case::{Case, CasePeer};
use super::facts::{self, Played};
use super::step::{Doing, Task};
use super::{Front, config, identity};
use crate::suite::place::Place;
use crate::suite::process::MARK;
use crate::suite::stage::{Client, PATIENCE, Stage};
use crate::suite::{Driver, Environment, Session, Setup};

/// A driver of the [suite](crate::suite).
#[allow(missing_debug_implementations)] // a driver need not have one
pub struct WithDriver<'a> {
    driver: &'a dyn Driver,
    environment: Environment,
}

impl<'a> WithDriver<'a> {
    /// Plays cases through this driver in that environment.
    pub const fn new(driver: &'a dyn Driver, environment: Environment) -> Self {
        Self {
            driver,
            environment,
        }
    }
}

impl Front for WithDriver<'_> {
    fn name(&self) -> String {
        self.driver.name()
    }

    fn play(&self, case: &Case) -> Result<Played, String> {
        let stage = Stage::new(&place_name(case), self.driver, &self.environment);
        let command = [stage.server()];
        let config = config(case, |peer| start(peer, &stage.place, &command))?;
        let client = stage.start(Setup {
            config,
            identity: identity(),
            streams: Vec::new(),
        });
        let mut played = Played {
            steps: vec![Value::Null; case.client.len()],
            ..Played::default()
        };
        thread::scope(|scope| {
            let session = &*client.session;
            let mut background = Vec::new();
            for (index, step) in case.client.iter().enumerate() {
                let fact = match &step.task {
                    Task::Close => {
                        snapshot(session, &mut played);
                        client.close();
                        json!({"outcome": "complete"})
                    }
                    Task::Report => settled(&client),
                    Task::Sleep(span) => {
                        thread::sleep(*span);
                        json!({"outcome": "complete"})
                    }
                    Task::Operation(doing) => match session.submit(doing.operation.clone()) {
                        Err(error) => facts::refused(&error, doing.is_call()),
                        Ok(id) if doing.background => {
                            background.push((index, scope.spawn(move || wait(session, id, doing))));
                            continue;
                        }
                        Ok(id) => wait(session, id, doing),
                    },
                };
                played.steps[index] = fact;
            }
            for (index, thread) in background {
                played.steps[index] = thread.join().unwrap_or_default();
            }
            snapshot(session, &mut played);
        });
        client.end();
        read_transcripts(case, &stage.place, &mut played);
        Ok(played)
    }
}

/// A name for files and processes.
pub(super) fn place_name(case: &Case) -> String {
    case.name.replace(['/', ' ', '[', ']'], ".")
}

/// What starts a peer's server. `command` is the fake server's program and its arguments before
/// `--script-json`.
pub(super) fn start(peer: &CasePeer, place: &Place, command: &[String]) -> Value {
    let file = |kind: &str| {
        let file = place.file(&format!("{}.{kind}", peer.name));
        Value::from(file.to_string_lossy())
    };
    let script = peer.script_json(|options: &mut Map<String, Value>| {
        options.insert("transcript".into(), file("transcript"));
        if peer.has_second_life() {
            options.insert("respawn_state".into(), file("lives"));
        }
    });
    let (program, arguments) = command.split_first().unzip();
    let arguments = arguments.into_iter().flatten().map(String::as_str);
    // A script has no variables of the configuration.
    let script = script.replace("${", "$${");
    let arguments: Vec<&str> = arguments.chain(["--script-json", &script]).collect();
    json!({"command": program, "args": arguments, "env": {MARK: place.mark()}})
}

/// What the servers were sent, and what they did not like.
pub(super) fn read_transcripts(case: &Case, place: &Place, played: &mut Played) {
    for peer in &case.peers {
        let transcript = place.transcript(&format!("{}.transcript", peer.name));
        played.complaints.extend(transcript.failures);
        played.sent.insert(peer.name.clone(), transcript.received);
    }
}

fn settled(client: &Client<'_>) -> Value {
    let session = &client.session;
    let settled = session
        .submit(mcp_proto::Operation::settle())
        .ok()
        .and_then(|id| session.wait(id, PATIENCE));
    settled.map_or(Value::Null, |_| facts::value(&session.report().to_json()))
}

/// Waits for the end of an operation and for what comes before it.
fn wait(session: &dyn Session, id: OperationId, doing: &Doing) -> Value {
    let mut events = Vec::new();
    let mut ended = None;
    if let Some(span) = doing.listen_for {
        let end = Instant::now() + span;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let more = session.notifications(id, left);
            let is_over = more.is_empty();
            events.extend(more.into_iter().map(|one| Value::from(one.method)));
            if is_over || left.is_zero() {
                break;
            }
        }
        session.finish(id);
    }
    if let Some(after) = doing.cancel_after {
        ended = session.wait(id, after);
        if ended.is_none() {
            session.cancel(id);
        }
    }
    let Some(ended) = ended.or_else(|| session.wait(id, PATIENCE)) else {
        return Value::Null;
    };
    let mut fact = facts::outcome(&ended, doing.is_call());
    if doing.operation.request == Request::Listen {
        fact["events"] = events.into();
    }
    let progress = session.progress(id).into_iter();
    fact["progress"] = progress.map(|update| update.progress).collect();
    fact
}

/// The report and what else is known, before the client is closed.
fn snapshot(session: &dyn Session, played: &mut Played) {
    if !played.report.is_null() {
        return;
    }
    played.report = facts::value(&session.report().to_json());
    for diagnosis in session.diagnoses() {
        let details = facts::details(&diagnosis);
        played.details.insert(diagnosis.report.name, details);
    }
}
