//! How this program was called, so that what it advises can be typed as it stands.

use std::borrow::Cow;
use std::env;
use std::path::Path;
use std::sync::OnceLock;

/// The name that advice uses.
const NAME: &str = "mcp-harness";

/// Commands that advice names, and what they are in `batch`. The report says per server why it failed.
const OPERATIONS: [(&str, &str); 4] = [
    ("tools", "list_tools"),
    ("resources", "list_resources"),
    ("prompts", "list_prompts"),
    ("doctor", "report"),
];

static CALLED: OnceLock<Called> = OnceLock::new();

#[derive(Debug, PartialEq, Eq)]
struct Called {
    /// `mcp-harness`, a path to it, or `cargo harness`.
    name: String,
    /// `--config FILE`, if a file was named.
    config: Option<String>,
    /// Whether what it advises is to be written as an operation.
    is_batch: bool,
}

/// The name of this program, for reading.
pub(crate) fn short_name() -> &'static str {
    // `cargo run` and `cargo test` say so to what they start.
    let by_cargo = env::var_os("CARGO").is_some()
        && env::var_os("CARGO_PKG_NAME").is_some_and(|name| name == env!("CARGO_PKG_NAME"));
    if by_cargo { "cargo harness" } else { NAME }
}

/// The name that this program was called by, for typing.
pub(crate) fn name() -> String {
    let called = env::args_os().next();
    match (
        short_name(),
        called.and_then(|name| name.into_string().ok()),
    ) {
        (NAME, Some(name)) => quoted(&name),
        (name, _) => name.to_owned(),
    }
}

/// Keeps what the command line says: the configuration, and whether operations are read.
pub(crate) fn remember(config: Option<&Path>, is_batch: bool) {
    let config = config.map(|path| format!("--config {}", quoted(&path.display().to_string())));
    // Once is enough: there is one command line.
    let _ = CALLED.set(Called {
        name: name(),
        config,
        is_batch,
    });
}

/// This program with these arguments, as it would be typed. `configured` tells whether the command reads the
/// configuration.
pub(crate) fn command(arguments: &str, configured: bool) -> String {
    let called = CALLED.get();
    let name = called.map_or_else(name, |called| called.name.clone());
    let config = called
        .and_then(|called| called.config.as_deref())
        .filter(|_| configured)
        .map_or_else(String::new, |config| format!("{config} "));
    format!("{name} {config}{arguments}")
}

/// The text with its commands as they would be typed: `` `mcp-harness tools` `` becomes
/// `` `cargo harness --config servers.json tools` ``; in a batch as operations, where there are such.
pub(crate) fn typed(text: &str) -> String {
    let text = match CALLED.get() {
        Some(called) if called.is_batch => Cow::Owned(as_operations(text)),
        _ => Cow::Borrowed(text),
    };
    let start = format!("`{NAME} ");
    let mut pieces = text.split(start.as_str());
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        out.push_str(&format!("`{}", command(piece, true)));
    }
    out
}

/// `` `mcp-harness tools` `` becomes `` `{"op":"list_tools"}` ``. A command that is no operation stays.
fn as_operations(text: &str) -> String {
    let mut text = text.to_owned();
    for (command, op) in OPERATIONS {
        let command = format!("`{NAME} {command}`");
        text = text.replace(&command, &format!("`{{\"op\":\"{op}\"}}`"));
    }
    text
}

/// For a shell, if it needs that.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+,:@%=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_names_in_a_batch() {
        for (text, said) in [
            (
                "List with `mcp-harness tools`.",
                "List with `{\"op\":\"list_tools\"}`.",
            ),
            (
                "See `mcp-harness doctor` for it.",
                "See `{\"op\":\"report\"}` for it.",
            ),
            ("Try `mcp-harness demo`.", "Try `mcp-harness demo`."),
            (
                "The tools of mcp-harness tools",
                "The tools of mcp-harness tools",
            ),
        ] {
            assert_eq!(as_operations(text), said);
        }
    }

    #[test]
    fn only_what_a_shell_would_take_apart_is_quoted() {
        for (word, shown) in [
            ("a/b-c.json", "a/b-c.json"),
            ("my file", "'my file'"),
            ("it's", "'it'\\''s'"),
            ("$(x)", "'$(x)'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), shown);
        }
    }
}
