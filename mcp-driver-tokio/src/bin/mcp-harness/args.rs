//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use mcp_proto::wire::Json;

use crate::fake::FakeServer;

/// A client for the Model Context Protocol.
///
/// Servers come from a configuration file in the form that every MCP host reads: `.mcp.json` in the
/// current directory, or else the user's own.
#[derive(Debug, Parser)]
#[command(name = "mcp-harness", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// The configuration file [default: .mcp.json, then the user's own]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print one JSON document on standard output and nothing else
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Start this server only
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) peer: Option<String>,
    /// The driver that moves the bytes; results are the same
    #[arg(long, global = true, value_enum, default_value_t = Driver::Tokio)]
    pub(crate) driver: Driver,
    /// Say more on standard error
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
}

/// The drivers in this binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Driver {
    /// Tasks on the tokio runtime
    Tokio,
    /// Threads only
    Blocking,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what this client does, with servers of its own: no network, no set-up
    Demo,
    /// Connect every server and print the startup report
    Report,
    /// List the tools of all servers
    Tools,
    /// List the resources of all servers
    Resources {
        /// List the resource templates instead
        #[arg(long)]
        templates: bool,
    },
    /// List the prompts of all servers
    Prompts,
    /// Call a tool
    Call(Call),
    /// Read a resource
    Read {
        /// The URI, as `resources` lists it
        uri: String,
    },
    /// Get a prompt
    Prompt {
        /// The name, as `prompts` lists it
        name: String,
        /// Its arguments: a JSON object of strings, `@FILE`, or `-` for standard input
        #[arg(value_name = "JSON")]
        arguments: Option<String>,
    },
    /// Run operations from standard input, one JSON object a line
    Batch,
    /// Say per server what was run, what came back, and what to do about it
    Doctor,
    /// Be a scriptable MCP server on standard input and output, for tests
    FakeServer(FakeServer),
}

#[derive(Debug, Args)]
pub(crate) struct Call {
    /// The tool, as `tools` lists it
    pub(crate) tool: String,
    /// Its arguments: a JSON object, `@FILE`, or `-` for standard input
    #[arg(value_name = "JSON")]
    pub(crate) arguments: Option<String>,
    /// Longest duration: milliseconds, or with a unit (500ms, 30s, 2m)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// A key by which the server may recognise a repeated call
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    /// Show progress on standard error
    #[arg(long)]
    pub(crate) progress: bool,
    /// Answer an input request of this key; may be repeated
    #[arg(long, value_name = "KEY=JSON", value_parser = input)]
    pub(crate) input: Vec<(String, Json)>,
}

fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.get(digits.len()..).unwrap_or_default();
    let number: u64 = digits.parse().map_err(|_| {
        "expected a whole number of milliseconds, or one with ms, s or m".to_owned()
    })?;
    match unit {
        "" | "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => number.checked_mul(60).map(Duration::from_secs),
        _ => return Err(format!("unknown unit {unit:?}; known: ms, s, m")),
    }
    .ok_or_else(|| "too long".to_owned())
}

fn input(text: &str) -> Result<(String, Json), String> {
    let (key, json) = text
        .split_once('=')
        .ok_or("expected KEY=JSON, such as name='{\"action\":\"accept\"}'")?;
    let json = Json::parse(json).map_err(|error| error.to_string())?;
    if !json.as_str().starts_with('{') {
        return Err("the answer must be a JSON object".to_owned());
    }
    Ok((key.to_owned(), json))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn durations_are_milliseconds_unless_they_say_otherwise() {
        for (text, millis) in [("250", 250), ("250ms", 250), ("3s", 3_000), ("2m", 120_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "-1", "1.5s", "3h", "18446744073709551615m"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
