//! `call`, `read` and `prompt`.

use std::io;
use std::path::Path;

use mcp_proto::continuation::Continuation;
use mcp_proto::types::{InputRequired, InputResponse, InputResponses};
use mcp_proto::wire::Json;
use mcp_proto::{Ended, Operation, Outcome, Reply, Request};

use crate::args::{Call, Global};
use crate::exit::{Exit, Failure};
use crate::files::{self, Draft};
use crate::output::{self, Bar, Reader, json};
use crate::session::{self, Deadlines, Session};

/// A call before anything is started for it.
pub(crate) struct Prepared {
    operation: Operation,
    /// The tool that is asked for.
    tool: String,
    /// Where it is kept if it needs input.
    draft: Option<Draft>,
}

/// Calls a tool, and goes on with it as long as all that the server asks for is given.
pub(crate) fn tool(
    session: &dyn Session,
    global: &Global,
    options: &Call,
    call: Prepared,
) -> Result<Exit, Failure> {
    let ended = rounds(session, options, call.operation);
    let unsaved = match (&ended.outcome, call.draft) {
        (Outcome::InputRequired(pending), Some(draft)) => {
            let kept = draft.keep(&pending.continuation.to_json());
            kept.err().map(|error| {
                let file = options.save_continuation.as_deref();
                Failure::system(unwritable(file.unwrap_or(Path::new("")), &error), WRITABLE)
            })
        }
        _ => None,
    };
    let asked = ("tool", call.tool.as_str());
    let exit = finish(
        &ended,
        asked,
        global,
        unsaved.as_ref(),
        |reply| match reply {
            Reply::Call(result) => {
                if result.is_error {
                    let text = output::text(result, Reader::of(&io::stderr()));
                    output::say(text.trim_end());
                    return Exit::CallFailed;
                }
                output::print(&output::text(result, Reader::of(&io::stdout())));
                match &result.schema_mismatch {
                    Some(fault) => {
                        output::note("error", &format!("the tool ran, but its {fault}"));
                        Exit::CallFailed
                    }
                    None => Exit::Good,
                }
            }
            _ => Exit::Good,
        },
    )?;
    match unsaved {
        // It stands in the document.
        Some(failure) if global.json => Ok(failure.exit),
        Some(failure) => Err(failure),
        None => Ok(exit),
    }
}

pub(crate) fn read(session: &dyn Session, global: &Global, uri: String) -> Result<Exit, Failure> {
    let request = Request::ReadResource { uri: uri.clone() };
    let ended = session::run(session, Operation::new(request));
    finish(&ended, ("uri", &uri), global, None, |reply| {
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
    let request = Request::GetPrompt {
        name: name.clone(),
        arguments,
    };
    let ended = session::run(session, Operation::new(request));
    finish(&ended, ("name", &name), global, None, |reply| {
        if let Reply::Prompt(result) = reply {
            output::print(&output::prompt(result, Reader::of(&io::stdout())));
        }
        Exit::Good
    })
}

/// Shows an outcome: to programs as one document, to people by `complete` where it is an answer. `asked` is
/// what the operation was about, and `beside` what went wrong beside it.
fn finish(
    ended: &Ended,
    asked: (&'static str, &str),
    global: &Global,
    beside: Option<&Failure>,
    complete: impl FnOnce(&Reply) -> Exit,
) -> Result<Exit, Failure> {
    if let Outcome::Failed(error) = &ended.outcome {
        return Err(Failure {
            about: json::who(ended, asked),
            ..error.clone().into()
        });
    }
    if global.json {
        output::print_json(json::operation(ended, asked, beside));
    }
    Ok(match &ended.outcome {
        Outcome::Complete(Reply::Call(result))
            if global.json && (result.is_error || result.schema_mismatch.is_some()) =>
        {
            Exit::CallFailed
        }
        Outcome::Complete(reply) if !global.json => complete(reply),
        Outcome::InputRequired(pending) => {
            if !global.json {
                ask(ended.peer.as_deref(), &pending.input);
            }
            Exit::InputNeeded
        }
        _ => Exit::Good,
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

/// The call, and what follows while all that the server asks for is given. The client counts the rounds.
fn rounds(session: &dyn Session, options: &Call, mut operation: Operation) -> Ended {
    let bar = options.progress.then(Bar::new);
    operation.options.total_timeout = options.timeout;
    operation.options.progress = options.progress;
    operation.options.validate_output = options.validate;
    loop {
        let mut ended = session::run_with(session, operation, |update| {
            bar.iter().for_each(|bar| bar.show(&update));
        });
        // A call has one part, so that its timeout is the limit.
        let none = Deadlines::default();
        session::advise(&mut ended, options.timeout, &none, "--timeout");
        let Outcome::InputRequired(pending) = &ended.outcome else {
            return ended;
        };
        let Some(answers) = answers(&pending.input, &options.input) else {
            return ended;
        };
        operation = Operation::resume(pending.continuation.clone(), answers);
        operation.options.total_timeout = options.timeout;
        operation.options.validate_output = options.validate;
    }
}

/// The answers to all that is asked for; `None` when one is not given.
fn answers(input: &InputRequired, given: &[(String, Json)]) -> Option<InputResponses> {
    let mut answers = InputResponses::new();
    for request in &input.requests {
        let (_, json) = given.iter().rfind(|(key, _)| *key == request.key)?;
        answers = answers.with(&*request.key, InputResponse::raw(json.clone()));
    }
    Some(answers)
}

/// What is called: a tool, or the request that was kept in a file, with the answers that are given. Whether it
/// can be kept is found out before it is made, not when there is something to lose.
pub(crate) fn prepare(options: &Call, arguments: Option<Json>) -> Result<Prepared, Failure> {
    let (operation, tool) = operation(options, arguments)?;
    let draft = match &options.save_continuation {
        Some(file) => Some(
            Draft::of(file).map_err(|error| Failure::usage(unwritable(file, &error), WRITABLE))?,
        ),
        None => None,
    };
    Ok(Prepared {
        operation,
        tool,
        draft,
    })
}

/// The operation, and the tool that it is about.
fn operation(options: &Call, arguments: Option<Json>) -> Result<(Operation, String), Failure> {
    let Some(file) = &options.resume else {
        let tool = options.tool.clone().unwrap_or_default();
        let mut operation = Operation::call(tool.clone(), arguments);
        operation.options.idempotency_key = options.idempotency_key.clone();
        return Ok((operation, tool));
    };
    let unusable = |error: &dyn std::fmt::Display| {
        let message = format!("cannot go on from {}: {error}", file.display());
        Failure::usage(message, "Give the file that --save-continuation wrote.")
    };
    let text = files::read_regular(file).map_err(|error| unusable(&error))?;
    let continuation = Continuation::from_json(&text).map_err(|error| unusable(&error))?;
    let Some(answers) = answers(continuation.input(), &options.input) else {
        let asked = continuation.input().requests.iter();
        let keys: Vec<&str> = asked.map(|request| request.key.as_str()).collect();
        let message = format!("the server asks for {}", keys.join(", "));
        return Err(Failure::usage(message, "Give one --input KEY=JSON each."));
    };
    let tool = match continuation.request().request() {
        Some(Request::CallTool(call)) => call.tool,
        _ => String::new(),
    };
    Ok((Operation::resume(continuation, answers), tool))
}

const WRITABLE: &str = "Give --save-continuation a file that can be written.";

fn unwritable(file: &Path, error: &io::Error) -> String {
    format!("cannot write {}: {error}", file.display())
}
