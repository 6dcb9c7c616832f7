//! The command line.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use mcp_proto::wire::Json;

use crate::exit::Failure;
use crate::fake::FakeServer;
use crate::program;

/// A client for the Model Context Protocol.
///
/// Servers come from a configuration file in the form that every MCP host reads: the one that --config
/// names, or .mcp.json in the current directory, or else ~/.config/mcp-harness/mcp.json.
///
/// Exit status: 0 all is well; 1 the call failed, or the tool says so; 2 the command line or the
/// configuration is wrong; 3 a server failed (report, doctor); 4 the server needs input that was not given;
/// 130 interrupted.
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
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The configuration file [default: .mcp.json, then the user's own]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print one JSON document on standard output and nothing else
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Start this server only
    #[arg(long, global = true, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
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
        /// The URI, as `resources` lists it; NAME/URI asks that server, whatever it lists
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        uri: String,
    },
    /// Get a prompt
    Prompt {
        /// The name, as `prompts` lists it; NAME/PROMPT asks that server
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        name: String,
        /// Its arguments: a JSON object of strings, `@FILE`, or `-` for standard input
        #[arg(value_name = "JSON")]
        arguments: Option<String>,
    },
    /// Run operations from standard input, one JSON object a line
    ///
    /// Each line is an operation with an "id" (a string or number of yours) and an "op". Each is answered by
    /// exactly one line with that "id" and an "outcome": complete, input_required, cancelled or error. All
    /// servers are started once, at the beginning.
    #[command(after_long_help = BATCH)]
    Batch,
    /// Say per server what was run, what came back, and what to do about it
    Doctor,
    /// Be a scriptable MCP server on standard input and output, for tests
    FakeServer(FakeServer),
}

#[derive(Debug, Args)]
pub(crate) struct Call {
    /// The tool, as `tools` lists it
    #[arg(required_unless_present = "resume", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) tool: Option<String>,
    /// Its arguments: a JSON object, `@FILE`, or `-` for standard input
    #[arg(value_name = "JSON")]
    pub(crate) arguments: Option<String>,
    /// Longest duration, the start of servers aside: milliseconds, or with a unit (500ms, 30s, 2m). What follows the
    /// first question has so long again, all in all
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// A key by which the server may recognise a repeated call
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    /// Check a structured result against the tool's output schema
    #[arg(long)]
    pub(crate) validate: bool,
    /// Show progress on standard error
    #[arg(long)]
    pub(crate) progress: bool,
    /// Answer what the server asks for under this key, as {"action":"accept","content":{…}}; may be repeated
    #[arg(long, value_name = "KEY=JSON", value_parser = input)]
    pub(crate) input: Vec<(String, Json)>,
    /// If the server asks for input that is not given, keep the call in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) save_continuation: Option<PathBuf>,
    /// Go on with the call in this file, answering with --input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tool", "arguments", "idempotency_key"])]
    pub(crate) resume: Option<PathBuf>,
}

const CALL: &str = "\
Examples:
  mcp-harness call get_current_time '{\"timezone\": \"Asia/Tokyo\"}'
  mcp-harness call files/search @arguments.json --timeout 30s
  mcp-harness call ask --input name='{\"action\": \"accept\", \"content\": {\"name\": \"Ada\"}}'
  mcp-harness call ask --save-continuation ask.json
  mcp-harness call --resume ask.json --input name='{\"action\": \"decline\"}'";

const BATCH: &str = r#"Operations:
  {"id":1,"op":"call","tool":"search","arguments":{"q":"x"}}    also: progress, input, requestState,
                                                                idempotencyKey
  {"id":2,"op":"read","uri":"file:///x"}
  {"id":3,"op":"prompt","name":"review","arguments":{"code":"x"}}
  {"id":4,"op":"list_tools"}           also list_resources, list_resource_templates, list_prompts
  {"id":5,"op":"listen","ms":1000}     change notifications; without "ms" until the end
  {"id":6,"op":"report"}               waits for all servers, then what `report --json` prints
  {"id":7,"op":"sleep","ms":100}
  {"id":8,"op":"close"}                ends what is pending, closes all servers

On 1 to 5:
  "peer":"NAME"        names and URIs are then that server's own
  "timeoutMs":N        the longest duration, more than 0
  "cancelAfterMs":N    cancel it then
  "background":true    go on with the next line; otherwise it waits for the outcome of this one

Answers:
  {"id":1,"outcome":"complete","ms":12,"peer":"web","tool":"search","isError":false,"content":[…]}
  {"id":2,"outcome":"error","ms":3,"error":{"kind":"toolNotFound","message":"…","remedy":"…"}}
  {"id":1,"event":"progress","progress":1,"total":2}                      before its outcome
  {"id":5,"event":"notification","peer":"web","method":"notifications/…"}

A line that is no operation is answered with "line", its number, and an error of the kind
"usage"; the exit status is then 2, and otherwise 0, whatever the outcomes are. Fields that an
operation does not have are ignored."#;

/// What --json means to `batch`, whose lines are JSON without it.
const BATCH_JSON: &str =
    "Print an error that keeps it from starting as a line of JSON, too; the other lines always are";

/// Global options that mean nothing to a command: they are not shown with it, and refused.
const IRRELEVANT: [(&str, &[&str]); 2] = [
    ("demo", &["config", "peer"]),
    (
        "fake-server",
        &["config", "driver", "json", "peer", "verbose"],
    ),
];

fn command() -> clap::Command {
    let mut command = Cli::command().bin_name(program::short_name());
    let examples = CALL.replace("mcp-harness", program::short_name());
    command = command.mut_subcommand("call", |command| command.after_help(examples));
    let globals: Vec<clap::Arg> = command.get_arguments().cloned().collect();
    let with = |ids: &[&str], change: fn(clap::Arg) -> clap::Arg| -> Vec<clap::Arg> {
        let globals = globals.iter();
        globals
            .filter(|arg| ids.contains(&arg.get_id().as_str()))
            .map(|arg| change(arg.clone()))
            .collect()
    };
    for (name, hidden) in IRRELEVANT {
        let hidden = with(hidden, |arg| arg.hide(true));
        command = command.mut_subcommand(name, |command| command.args(hidden));
    }
    let json = with(&["json"], |arg| arg.help(BATCH_JSON));
    command.mut_subcommand("batch", |command| command.args(json))
}

/// An option that was given and would be ignored.
fn check_relevant(matches: &ArgMatches) -> Result<(), Failure> {
    let Some((command, given)) = matches.subcommand() else {
        return Ok(());
    };
    let irrelevant = IRRELEVANT.iter().filter(|(name, _)| *name == command);
    let mut ids = irrelevant.flat_map(|(_, ids)| *ids);
    match ids.find(|id| given.value_source(id) == Some(ValueSource::CommandLine)) {
        Some(id) => Err(Failure::usage(
            format!("--{id} means nothing to {command}"),
            "Leave it out.",
        )),
        None => Ok(()),
    }
}

/// The command line. Whoever asks for help or for the version is shown it, and nothing else happens.
pub(crate) fn parse() -> Result<Cli, Failure> {
    let parsed = command().try_get_matches();
    let parsed = parsed.and_then(|matches| {
        let cli = Cli::from_arg_matches(&matches)?;
        Ok((cli, matches))
    });
    let parsed = parsed.map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => error.exit(),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand if !asks_for_json() => error.exit(),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            Failure::usage("no command was given", "See `mcp-harness --help`.")
        }
        _ => wrong(&error.render().to_string()),
    });
    let (cli, matches) = parsed?;
    check_relevant(&matches)?;
    Ok(cli)
}

/// Whether one JSON document is wanted, though the command line is wrong.
pub(crate) fn asks_for_json() -> bool {
    let options = env::args_os().take_while(|argument| argument != "--");
    options.skip(1).any(|argument| argument == "--json")
}

/// What is wrong with the command line, from what clap has to say in several paragraphs: what is wrong, tips,
/// the usage.
fn wrong(rendered: &str) -> Failure {
    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut paragraphs = rendered.split("\n\n");
    let what = joined(paragraphs.next().unwrap_or_default());
    let lines = paragraphs.flat_map(str::lines).map(str::trim);
    let mut advice: Vec<String> = lines
        .filter_map(|line| line.strip_prefix("tip: "))
        .map(str::to_owned)
        .collect();
    let known = command();
    let of = env::args().find(|argument| known.find_subcommand(argument).is_some());
    let of = of.map_or_else(String::new, |command| format!("{command} "));
    advice.push(format!("see `mcp-harness {of}--help`"));
    let what = what.strip_prefix("error: ").unwrap_or(&what);
    Failure::usage(what, advice.join("; "))
}

fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.get(digits.len()..).unwrap_or_default();
    let number: u64 = digits.parse().map_err(|_| {
        "expected a whole number of milliseconds, or one with ms, s or m".to_owned()
    })?;
    if number == 0 {
        return Err("expected more than nothing".to_owned());
    }
    match unit {
        "" | "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => number.checked_mul(60).map(Duration::from_secs),
        _ => return Err(format!("unknown unit {unit:?}; known: ms, s, m")),
    }
    .ok_or_else(|| "too long".to_owned())
}

/// A key may hold `=` itself, so it ends before the first one that an answer follows.
fn input(text: &str) -> Result<(String, Json), String> {
    let mut parts = text.match_indices('=').map(|(at, _)| {
        let (key, json) = text.split_at(at);
        (key, json.strip_prefix('=').unwrap_or(json))
    });
    let (key, json) = parts.next().ok_or(
        "expected KEY=JSON, such as name='{\"action\":\"accept\",\"content\":{\"name\":\"Ada\"}}'",
    )?;
    match answer(json) {
        Ok(answer) => Ok((key.to_owned(), answer)),
        // What is said is about the first one, which is what is mostly meant.
        Err(wrong) => parts
            .find_map(|(key, json)| Some((key.to_owned(), answer(json).ok()?)))
            .ok_or(wrong),
    }
}

fn answer(json: &str) -> Result<Json, String> {
    let json = Json::parse(json).map_err(|error| error.to_string())?;
    if !json.as_str().starts_with('{') {
        return Err("the answer must be a JSON object".to_owned());
    }
    Ok(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn durations_are_milliseconds_unless_they_say_otherwise() {
        for (text, millis) in [("250", 250), ("250ms", 250), ("3s", 3_000), ("2m", 120_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "",
            "s",
            "0",
            "0s",
            "-1",
            "1.5s",
            "3h",
            "18446744073709551615m",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_key_ends_where_an_answer_begins() {
        for (text, key, json) in [
            ("a={}", "a", "{}"),
            (r#"a=b={"x":"="}"#, "a=b", r#"{"x":"="}"#),
            ("a=={}", "a=", "{}"),
            ("a=1={}", "a=1", "{}"),
            (r#"a={"x":"={}"}"#, "a", r#"{"x":"={}"}"#),
            ("={}", "", "{}"),
        ] {
            let (found, answer) = input(text).unwrap();
            assert_eq!((found.as_str(), answer.as_str()), (key, json), "{text}");
        }
        for (text, words) in [
            ("a", "expected KEY=JSON"),
            ("a=[]", "must be a JSON object"),
            ("a=1=[]", "not valid JSON"),
            ("a={}=b", "not valid JSON"),
        ] {
            let wrong = input(text).unwrap_err();
            assert!(wrong.contains(words), "{text}: {wrong}");
        }
    }
}
