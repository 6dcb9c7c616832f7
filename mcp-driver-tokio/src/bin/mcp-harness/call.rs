//! `call`, `read` and `prompt`.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use mcp_proto::continuation::Continuation;
use mcp_proto::types::OutputCheck;
use mcp_proto::wire::Json;
use mcp_proto::{Ended, ErrorKind, Operation, Outcome, Reply, Request};

use crate::args::{Call, Global};
use crate::exit::{Exit, Failure};
use crate::files::{self, Draft};
use crate::output::{self, Bar, Reader, json};
use crate::questions::{self, Answers};
use crate::session::{self, Deadlines, Session};

/// What is to be done about a call.
pub(crate) enum Next {
    /// Something is sent.
    Make(Box<Operation>),
    /// The question that was kept is asked again: an answer to it is not given, so there is nothing to be sent.
    Ask(Box<Ended>),
}

/// A call before anything is started for it.
pub(crate) struct Prepared {
    /// The tool that is asked for.
    tool: String,
    /// Where it is kept if it needs input.
    draft: Option<Draft>,
    answers: Answers,
}

/// Calls a tool, and goes on with it as long as all that the server asks for is given.
pub(crate) fn tool(
    session: &dyn Session,
    global: &Global,
    options: &Call,
    operation: Operation,
    mut call: Prepared,
) -> Result<Exit, Failure> {
    let ended = rounds(session, options, operation, &mut call.answers);
    told(global, options, &ended, call, None)
}

/// Asks again what was asked before.
pub(crate) fn ask_again(
    global: &Global,
    options: &Call,
    asked: &Ended,
    call: Prepared,
) -> Result<Exit, Failure> {
    told(global, options, asked, call, options.resume.as_deref())
}

/// Shows what came of a call, and keeps it if it needs input and is not in this file already.
fn told(
    global: &Global,
    options: &Call,
    ended: &Ended,
    call: Prepared,
    kept: Option<&Path>,
) -> Result<Exit, Failure> {
    call.answers.warn_of_unused(ended);
    let (kept, unkept) = match (&ended.outcome, call.draft, &options.save_continuation) {
        (Outcome::InputRequired(pending), Some(draft), Some(file)) => {
            match draft.keep(&pending.continuation.to_json()) {
                Ok(()) => (Some(file.as_path()), None),
                Err(error) => (
                    None,
                    Some(Failure::system(unwritable(file, &error), WRITABLE)),
                ),
            }
        }
        _ => (kept, None),
    };
    let show = Show {
        global,
        asked: ("tool", &call.tool),
        kept,
        beside: unkept.as_ref(),
    };
    let exit = finish(ended, &show, show_result)?;
    match unkept {
        // It stands in the document.
        Some(failure) if global.json => Ok(failure.exit),
        Some(failure) => Err(failure),
        None => Ok(exit),
    }
}

fn show_result(reply: &Reply) -> Exit {
    let Reply::Call(result) = reply else {
        return Exit::Good;
    };
    if result.is_error {
        let text = output::text(result, Reader::of(&io::stderr()));
        output::say(text.trim_end());
        return Exit::CallFailed;
    }
    output::print(&output::text(result, Reader::of(&io::stdout())));
    match &result.output_check {
        OutputCheck::Mismatch(fault) => {
            output::note("error", &format!("the tool ran, but its {fault}"));
            Exit::CallFailed
        }
        OutputCheck::Impossible(reason) => {
            output::note(
                "warning",
                &format!("the result was not validated: {reason}"),
            );
            Exit::Good
        }
        _ => Exit::Good,
    }
}

pub(crate) fn read(session: &dyn Session, global: &Global, uri: String) -> Result<Exit, Failure> {
    let request = Request::ReadResource { uri: uri.clone() };
    let ended = session::run(session, Operation::new(request));
    finish(&ended, &Show::of(global, ("uri", &uri)), |reply| {
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
    finish(&ended, &Show::of(global, ("name", &name)), |reply| {
        if let Reply::Prompt(result) = reply {
            output::print(&output::prompt(result, Reader::of(&io::stdout())));
        }
        Exit::Good
    })
}

/// How an outcome is shown.
struct Show<'a> {
    global: &'a Global,
    /// What the operation was about: a member of the document, and its value.
    asked: (&'static str, &'a str),
    /// The file that the call was kept in.
    kept: Option<&'a Path>,
    /// What went wrong beside it.
    beside: Option<&'a Failure>,
}

impl<'a> Show<'a> {
    const fn of(global: &'a Global, asked: (&'static str, &'a str)) -> Self {
        Self {
            global,
            asked,
            kept: None,
            beside: None,
        }
    }
}

/// Shows an outcome: to programs as one document, to people by `complete` where it is an answer.
fn finish(
    ended: &Ended,
    show: &Show<'_>,
    complete: impl FnOnce(&Reply) -> Exit,
) -> Result<Exit, Failure> {
    if let Outcome::Failed(error) = &ended.outcome {
        return Err(Failure {
            about: json::who(ended, show.asked),
            ..error.clone().into()
        });
    }
    let to_program = show.global.json;
    if to_program {
        output::print_json(json::operation(ended, show.asked, show.beside));
    }
    Ok(match &ended.outcome {
        Outcome::Complete(Reply::Call(result))
            if to_program && (result.is_error || result.output_check.mismatch().is_some()) =>
        {
            Exit::CallFailed
        }
        Outcome::Complete(reply) if !to_program => complete(reply),
        Outcome::InputRequired(pending) => {
            if !to_program {
                let is_call = show.asked.0 == "tool";
                questions::ask(ended.peer.as_deref(), &pending.input, is_call, show.kept);
            }
            Exit::InputNeeded
        }
        _ => Exit::Good,
    })
}

/// The call, and what follows while all that the server asks for is given. The client counts the rounds.
fn rounds(
    session: &dyn Session,
    options: &Call,
    mut operation: Operation,
    answers: &mut Answers,
) -> Ended {
    let bar = options.progress.then(Bar::new);
    operation.options.progress = options.progress;
    let mut timeout = options.timeout;
    // The first round may have to wait for its server to start, which does not count; from there on the time runs.
    let mut deadline = None;
    loop {
        operation.options.total_timeout = timeout;
        operation.options.validate_output = options.validate;
        let mut ended = session::run_with(session, operation, |update| {
            bar.iter().for_each(|bar| bar.show(&update));
        });
        // A call has one part, so that its timeout is the limit.
        let none = Deadlines::default();
        session::advise(&mut ended, timeout, &none, "--timeout");
        answers.advise(&mut ended);
        if options.resume.is_some() {
            advise_resumed(&mut ended);
        }
        let Outcome::InputRequired(pending) = &ended.outcome else {
            return ended;
        };
        let Some(given) = answers.to(&pending.input) else {
            return ended;
        };
        operation = Operation::resume(pending.continuation.clone(), given);
        let now = Instant::now();
        let deadline =
            *deadline.get_or_insert_with(|| options.timeout.and_then(|all| now.checked_add(all)));
        timeout = deadline.map(|deadline| deadline.saturating_duration_since(now).max(SHORTEST));
    }
}

/// What to do about a call that its server or configuration does not know any more.
fn advise_resumed(ended: &mut Ended) {
    if let Outcome::Failed(error) = &mut ended.outcome
        && error.kind() == ErrorKind::Usage
        && error.advice.is_none()
    {
        let advice = "go on with the configuration that the call was made with, or make it anew";
        *error = error.clone().advise(advice);
    }
}

/// What is called: a tool, or the request that was kept in a file, with the answers that are given. Whether it
/// can be kept is found out before it is made, not when there is something to lose.
pub(crate) fn prepare(
    options: &Call,
    arguments: Option<Json>,
) -> Result<(Next, Prepared), Failure> {
    let mut answers = Answers::new(&options.input);
    let (next, tool) = next(options, arguments, &mut answers)?;
    let draft = match &options.save_continuation {
        Some(file) => Some(
            Draft::of(file).map_err(|error| Failure::usage(unwritable(file, &error), WRITABLE))?,
        ),
        None => None,
    };
    let call = Prepared {
        tool,
        draft,
        answers,
    };
    Ok((next, call))
}

/// What comes next, and the tool that it is about.
fn next(
    options: &Call,
    arguments: Option<Json>,
    answers: &mut Answers,
) -> Result<(Next, String), Failure> {
    let Some(file) = &options.resume else {
        let tool = options.tool.clone().unwrap_or_default();
        let mut operation = Operation::call(tool.clone(), arguments);
        operation.options.idempotency_key = options.idempotency_key.clone();
        return Ok((Next::Make(Box::new(operation)), tool));
    };
    let unusable = |error: &dyn std::fmt::Display| {
        let message = format!("cannot go on from {}: {error}", file.display());
        Failure::usage(message, "Give the file that --save-continuation wrote.")
    };
    let text = files::read_regular(file).map_err(|error| unusable(&error))?;
    let continuation = Continuation::from_json(&text).map_err(|error| unusable(&error))?;
    let tool = match continuation.request().request() {
        Some(Request::CallTool(call)) => call.tool,
        _ => String::new(),
    };
    let next = match answers.to(continuation.input()) {
        Some(given) => Next::Make(Box::new(Operation::resume(continuation, given))),
        None => Next::Ask(Box::new(session::asked(continuation))),
    };
    Ok((next, tool))
}

/// What a round has left that has nothing left: it fails, as a deadline does.
const SHORTEST: Duration = Duration::from_millis(1);

const WRITABLE: &str = "Give --save-continuation a file that can be written.";

fn unwritable(file: &Path, error: &io::Error) -> String {
    format!("cannot write {}: {error}", file.display())
}
