//! What a server said on standard error before it ended: it usually says why.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// How many lines of standard error an error quotes.
const LINES_MAX: usize = 8;

/// The last lines, and the one among them that says most.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LastWords {
    /// Lines that are not blank, in their order.
    pub(super) lines: Vec<String>,
    /// One line for the message.
    pub(super) telling: Option<String>,
}

impl LastWords {
    /// Of all the lines that were kept. The last few are quoted; where the line that names the error stands
    /// before those, as above a long stack trace, it is quoted with those that follow it.
    pub(super) fn of(all: &[String]) -> Self {
        let last = all.len().saturating_sub(LINES_MAX);
        let names_error = all.iter().rposition(|line| names_error(line));
        let start = names_error.map_or(last, |at| at.min(last));
        let lines: Vec<String> = all.iter().skip(start).take(LINES_MAX).cloned().collect();
        let telling = match names_error {
            Some(at) => all
                .get(at)
                .map(|line| joined(line, all.get(at.saturating_add(1)))),
            None => all.last().map(|line| line.trim().into()),
        };
        Self { lines, telling }
    }
}

/// A line that ends with a colon says what follows: `panicked at src/main.rs:1:1:`.
fn joined(line: &str, next: Option<&String>) -> String {
    match next {
        Some(next) if line.trim_end().ends_with(':') => format!("{} {}", line.trim(), next.trim()),
        _ => line.trim().into(),
    }
}

/// Whether a line says what went wrong, as most languages print it: `Error: …`, `pkg.SomeError: …`,
/// `Uncaught TypeError: …`, `java.lang.SomeException: …`, `panic: …`, `thread 'main' panicked at …`.
fn names_error(line: &str) -> bool {
    let Some((label, _)) = line.split_once(':') else {
        return line.contains(" panicked at ");
    };
    let word = label.rsplit([' ', '\t', '.']).next().unwrap_or_default();
    let word = word.trim_matches(['[', ']', '(', ')']).to_ascii_lowercase();
    word.ends_with("error")
        || word.ends_with("exception")
        || word == "panic"
        || word == "fatal"
        || line.contains(" panicked at ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> LastWords {
        let lines: Vec<String> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(Into::into)
            .collect();
        LastWords::of(&lines)
    }

    const NODE: &str = "node:internal/modules/cjs/loader:1228
  throw err;
  ^

Error: Cannot find module '/srv/server.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1225:15)
    at Module._load (node:internal/modules/cjs/loader:1051:27)
    at a (x:1)
    at b (x:1)
    at c (x:1)
    at node:internal/main/run_main_module:28:49 {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v20.19.0";

    /// The line that says most, in the words of several languages.
    #[test]
    fn the_line_that_names_the_error_is_told() {
        for (text, telling) in [
            (NODE, "Error: Cannot find module '/srv/server.js'"),
            (
                "Traceback (most recent call last):\n  File \"x.py\", line 1, in <module>\n    \
                 import nope\nModuleNotFoundError: No module named 'nope'",
                "ModuleNotFoundError: No module named 'nope'",
            ),
            (
                "thread 'main' panicked at src/main.rs:2:5:\nno key\nnote: run with RUST_BACKTRACE=1",
                "thread 'main' panicked at src/main.rs:2:5: no key",
            ),
            (
                "panic: runtime error: index out of range\n\ngoroutine 1 [running]:\nmain.main()",
                "panic: runtime error: index out of range",
            ),
            ("[ERROR]: no key\nbye", "[ERROR]: no key"),
            (
                "starting\ncannot open the database",
                "cannot open the database",
            ),
            ("see https://example.com/error\nlast", "last"),
        ] {
            assert_eq!(of(text).telling.as_deref(), Some(telling), "{text}");
        }
        assert_eq!(of(""), LastWords::default());
    }

    /// R1: the quotation is bounded, holds the line that names the error, and keeps the order.
    #[test]
    fn at_most_eight_lines_are_quoted() {
        let node = of(NODE);
        assert_eq!(node.lines.len(), LINES_MAX);
        assert_eq!(
            node.lines.first().map(String::as_str),
            node.telling.as_deref()
        );
        let many: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let many = of(&many);
        assert_eq!(many.lines.len(), LINES_MAX);
        assert_eq!(many.lines.first().map(String::as_str), Some("line 92"));
        assert_eq!(many.telling.as_deref(), Some("line 99"));
    }
}
