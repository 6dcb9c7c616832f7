//! What people and programs see.

pub(crate) mod json;
mod pretty;
mod progress;
mod table;
mod text;

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use mcp_proto::wire::printable;

use crate::exit::{Exit, Failure};
use crate::program::typed;

pub(crate) use progress::Bar;
pub(crate) use table::table;
pub(crate) use text::{Reader, contents, prompt, text};

/// The longest message that is shown, in bytes.
const MESSAGE_BYTES_MAX: usize = 4_000;

/// What is said of a failed call that the server may have carried out.
const EXECUTED: &str = "; it may have been executed";

/// Why standard output did not take what was written, the first time.
static LOST: OnceLock<String> = OnceLock::new();

/// Writes to standard output. A reader that has gone away (`| head`) is no fault; what else is lost is said
/// at the end.
pub(crate) fn print(text: &str) {
    let mut out = io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

/// Notes that something could not be written.
pub(crate) fn written(result: io::Result<()>) {
    if let Err(error) = result
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        LOST.get_or_init(|| error.to_string());
    }
}

/// Says that a result was lost, if one was.
pub(crate) fn complain_of_loss() -> bool {
    if let Some(why) = LOST.get() {
        note(
            "error",
            &format!("cannot write to standard output: {why}; the result is lost"),
        );
    }
    LOST.get().is_some()
}

/// Writes one JSON document to standard output.
pub(crate) fn print_json(mut document: Vec<u8>) {
    document.push(b'\n');
    let mut out = io::stdout().lock();
    written(out.write_all(&document).and_then(|()| out.flush()));
}

/// One line on standard error: `label: message`.
pub(crate) fn note(label: &str, message: &str) {
    let mut err = io::stderr().lock();
    drop(writeln!(err, "{}: {}", paint(label), one_line(message)));
}

/// A line or more on standard error, as it is.
pub(crate) fn say(text: &str) {
    drop(writeln!(io::stderr().lock(), "{text}"));
}

/// Says what went wrong and what to do about it: to people in one line, and what else there is to see
/// indented below it; to programs as the one document that they get.
pub(crate) fn failure(failure: &Failure, to_program: bool) {
    if to_program {
        return print_json(json::failed(failure));
    }
    let mut line = advised(&failure.message, &failure.remedy);
    if failure.is_call() && failure.may_have_executed() && failure.exit != Exit::Interrupted {
        // However long the message is, this is what decides whether it may be repeated. After a signal it is said
        // already.
        line = printable(line.as_bytes(), MESSAGE_BYTES_MAX - EXECUTED.len());
        line.push_str(EXECUTED);
    }
    note("error", &line);
    for line in &failure.details {
        say(&format!(
            "    {}",
            printable(line.as_bytes(), MESSAGE_BYTES_MAX)
        ));
    }
}

/// `what is wrong; what to do`, as one line.
pub(crate) fn advised(message: &str, remedy: &str) -> String {
    let (message, remedy) = (one_line(message), typed(remedy));
    if message.ends_with(['?', '!']) {
        return format!("{message} {remedy}");
    }
    let mut letters = remedy.chars();
    let first = letters.next().map(|first| first.to_lowercase().to_string());
    let rest = letters.as_str().trim_end_matches('.');
    format!(
        "{}; {}{rest}",
        message.trim_end_matches('.'),
        first.unwrap_or_default()
    )
}

/// Text from outside on one line, fit for a terminal.
pub(crate) fn one_line(text: &str) -> String {
    printable(text.trim().as_bytes(), MESSAGE_BYTES_MAX)
}

/// The label in colour, where there is a terminal and nobody objects.
// spec: no-color.org
fn paint(label: &str) -> String {
    let colour = match label {
        "error" => "31",
        "warning" => "33",
        "help" => "36",
        _ => return label.to_owned(),
    };
    coloured(label, colour, io::stderr().is_terminal())
}

/// The text in bold and in this colour (an ANSI number), if it is to be.
pub(crate) fn coloured(text: impl Display, colour: &str, terminal: bool) -> String {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if terminal && !refused {
        format!("\u{1b}[1;{colour}m{text}\u{1b}[0m")
    } else {
        text.to_string()
    }
}
