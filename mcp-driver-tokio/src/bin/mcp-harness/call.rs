//! `call`, `read` and `prompt`.

use std::collections::BTreeMap;
use std::io;
use std::thread;
use std::time::Duration;

use mcp_proto::error::Cause;
use mcp_proto::types::InputRequired;
use mcp_proto::wire::Json;
use mcp_proto::{Ended, Error, Operation, Options, Outcome, Ran, Reply, Request, ToolCall};

use crate::args::{Call, Global};
use crate::exit::{Exit, Failure};
use crate::output::{self, Bar, Reader, json};
use crate::session::{self, Deadlines, Session};

/// How often one call may be continued.
const ROUNDS_MAX: u32 = 10;
/// The first pause before a call that the server wants to see again, without anything new.
const PAUSE: Duration = Duration::from_millis(100);

/// Calls a tool, and goes on with it as long as all that the server asks for is given.
pub(crate) fn tool(
    session: &dyn Session,
    global: &Global,
    options: Call,
    arguments: Option<Json>,
) -> Result<Exit, Failure> {
    let asked = options.tool.clone();
    let ended = rounds(session, options, arguments);
    if global.json {
        output::print_json(json::call(&ended, &asked));
    }
    exit(&ended, global, |reply| match reply {
        Reply::Call(result) => {
            if result.is_error {
                let text = output::text(result, Reader::of(&io::stderr()));
                output::say(text.trim_end());
                return Exit::CallFailed;
            }
            output::print(&output::text(result, Reader::of(&io::stdout())));
            Exit::Good
        }
        _ => Exit::Good,
    })
}

pub(crate) fn read(session: &dyn Session, global: &Global, uri: String) -> Result<Exit, Failure> {
    let ended = session::run(session, Operation::new(Request::ReadResource { uri }));
    if global.json {
        output::print_json(json::other(&ended));
    }
    exit(&ended, global, |reply| {
        if let Reply::Read(result) = reply {
            output::print(&output::contents(result, Reader::of(&io::stdout())));
        }
        Exit::Good
    })
}

pub(crate) fn prompt(
    session: &dyn Session,
    global: &Global,
    name: String,
    arguments: Option<Json>,
) -> Result<Exit, Failure> {
    let request = Request::GetPrompt { name, arguments };
    let ended = session::run(session, Operation::new(request));
    if global.json {
        output::print_json(json::other(&ended));
    }
    exit(&ended, global, |reply| {
        if let Reply::Prompt(result) = reply {
            output::print(&output::prompt(result, Reader::of(&io::stdout())));
        }
        Exit::Good
    })
}

/// The exit status of an outcome. People are shown it, and `complete` shows them an answer; with `--json`
/// it was printed before.
fn exit(
    ended: &Ended,
    global: &Global,
    complete: impl FnOnce(&Reply) -> Exit,
) -> Result<Exit, Failure> {
    Ok(match &ended.outcome {
        Outcome::Complete(Reply::Call(result)) if global.json && result.is_error => {
            Exit::CallFailed
        }
        Outcome::Complete(_) if global.json => Exit::Good,
        Outcome::Complete(reply) => complete(reply),
        Outcome::InputRequired(_) if global.json => Exit::InputNeeded,
        Outcome::InputRequired(input) => {
            ask(ended.peer.as_deref(), input);
            Exit::InputNeeded
        }
        Outcome::Failed(error) if global.json => error.into(),
        Outcome::Failed(error) => return Err(error.clone().into()),
    })
}

/// Shows what the server wants to know, and how to say it.
fn ask(peer: Option<&str>, input: &InputRequired) {
    let peer = peer.map_or_else(String::new, |peer| format!("{peer}: "));
    for request in &input.requests {
        let prompt = request.prompt();
        output::note("input", &format!("{peer}{}: {prompt}", request.key));
    }
    let keys: Vec<&str> = input
        .requests
        .iter()
        .map(|request| request.key.as_str())
        .collect();
    let message = match keys.as_slice() {
        [] => "The server wants to be asked again later: repeat the call.".to_owned(),
        [key, ..] => format!(
            "Answer {} with one --input each, such as \
             --input {key}='{{\"action\":\"accept\",\"content\":{{}}}}'.",
            keys.join(", ")
        ),
    };
    output::note("help", &message);
}

/// The call, and its continuations.
fn rounds(session: &dyn Session, options: Call, arguments: Option<Json>) -> Ended {
    let given: BTreeMap<String, Json> = options.input.into_iter().collect();
    let bar = options.progress.then(Bar::new);
    let call = ToolCall {
        tool: options.tool,
        arguments,
    };
    let mut options = Options {
        total_timeout: options.timeout,
        progress: options.progress,
        idempotency_key: options.idempotency_key,
        ..Options::default()
    };
    for round in 0..=ROUNDS_MAX {
        let operation = Operation::new(Request::CallTool(call.clone())).with(options.clone());
        let mut ended = session::run_with(session, operation, |update| {
            bar.iter().for_each(|bar| bar.show(&update));
        });
        // A call has one part, so that its timeout is the limit.
        let none = Deadlines::default();
        session::advise(&mut ended, options.total_timeout, &none, "--timeout");
        let Outcome::InputRequired(input) = &ended.outcome else {
            return ended;
        };
        let Some(answers) = answers(input, &given) else {
            return ended;
        };
        if round == ROUNDS_MAX {
            return too_many(ended);
        }
        if input.requests.is_empty() {
            thread::sleep(PAUSE * (1 << round.min(4)));
        }
        options.input_responses = answers;
        options.request_state = input.state.as_ref().map(|state| state.as_json().clone());
    }
    // The last round has returned.
    session::refused(Error::general(Cause::Cancelled))
}

/// The answers to all that is asked for, `Some(None)` when nothing is, `None` when one is not given.
fn answers(input: &InputRequired, given: &BTreeMap<String, Json>) -> Option<Option<Json>> {
    let mut answers: BTreeMap<&str, &Json> = BTreeMap::new();
    for request in &input.requests {
        answers.insert(&request.key, given.get(&request.key)?);
    }
    // A map with string keys always serializes.
    Some(
        (!answers.is_empty())
            .then(|| Json::encode(&answers).ok())
            .flatten(),
    )
}

fn too_many(ended: Ended) -> Ended {
    let cause = Cause::Limit {
        what: "the number of rounds in which the server asked for input".to_owned(),
        setting: "maxInputRounds",
        max: u64::from(ROUNDS_MAX),
    };
    let mut error = Error::general(cause).ran(Ran::Maybe);
    error.peer = ended.peer.clone();
    Ended {
        outcome: Outcome::Failed(error),
        ..ended
    }
}
