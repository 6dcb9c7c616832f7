//! From the command line to the configuration.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

use mcp_proto::Config;
use mcp_proto::nearest::nearest;
use mcp_proto::wire::{Json, Members};

use crate::args::Global;
use crate::exit::Failure;
use crate::files;
use crate::output::{advised, note};

/// The file in the current directory.
const PROJECT_FILE: &str = ".mcp.json";

/// Reads the configuration, says what is odd in it, and leaves the peers that are wanted.
pub(crate) fn config(global: &Global) -> Result<Config, Failure> {
    let path = path(global)?;
    let source = path.display().to_string();
    let text = files::read(&path).map_err(|error| {
        Failure::config(
            format!("{source}: {error}"),
            "Name a configuration file that can be read with --config.",
        )
    })?;
    let mut variable = |name: &str| env::var(name).ok();
    let mut config = Config::parse(&text, &source, &mut variable).map_err(|error| {
        let mut findings = error.findings.iter().map(ToString::to_string);
        let first = findings.next().unwrap_or_else(|| source.clone());
        let details: Vec<String> = findings.collect();
        let (more, places) = match details.len() {
            0 => (String::new(), "at that place"),
            more => (format!(" (and {more} more)"), "at these places"),
        };
        let remedy = format!("Correct the file {places}; nothing was started.");
        Failure {
            details,
            ..Failure::config(first + &more, remedy)
        }
    })?;
    for warning in &config.warnings {
        note("warning", &warning.to_string());
    }
    if global.verbose {
        note("config", &source);
    }
    if let Some(name) = &global.peer {
        restrict(&mut config, name)?;
    }
    Ok(config)
}

/// Says that no server is configured, if none is.
pub(crate) fn warn_of_nothing(global: &Global, config: &Config) {
    if !config.peers.is_empty() {
        return;
    }
    let file = path(global).unwrap_or_default().display().to_string();
    let (what, remedy) = match config.disabled.as_slice() {
        [] => (
            format!("no server is configured in {file}"),
            "add one to its \"mcpServers\": {\"NAME\": {\"command\": \"PROGRAM\", \"args\": []}}"
                .into(),
        ),
        disabled => (
            format!("every server in {file} is switched off"),
            format!("remove the \"disabled\": true of {}", disabled.join(" or ")),
        ),
    };
    note("warning", &advised(&what, &remedy));
}

/// The file that is read.
fn path(global: &Global) -> Result<PathBuf, Failure> {
    match &global.config {
        Some(path) => Ok(path.clone()),
        None => default_path(),
    }
}

/// A JSON object from an argument: the text itself, `@FILE`, or `-` for standard input.
pub(crate) fn object(argument: Option<&str>) -> Result<Option<Json>, Failure> {
    let Some(argument) = argument else {
        return Ok(None);
    };
    let (source, text) = match argument.strip_prefix('@') {
        Some(path) => (path, files::read(Path::new(path))),
        None if argument == "-" => ("standard input", files::read_all(io::stdin().lock())),
        None => ("the arguments", Ok(argument.to_owned())),
    };
    let wrong = |problem: String| {
        Failure::usage(
            format!("{source}: {problem}"),
            "Give the arguments as one JSON object, such as '{\"text\": \"hi\"}'.",
        )
    };
    let text = text.map_err(|error| {
        Failure::usage(
            format!("{source}: {error}"),
            "Name a file that can be read, as @FILE, or give the arguments themselves.",
        )
    })?;
    let json = Json::parse(&text).map_err(|error| wrong(error.to_string()))?;
    if !json.as_str().starts_with('{') {
        return Err(wrong("expected a JSON object".to_owned()));
    }
    Ok(Some(json))
}

/// The same, of strings only, as prompts take them.
// spec: 2026-07-28 schema, GetPromptRequestParams
pub(crate) fn texts(argument: Option<&str>) -> Result<Option<Json>, Failure> {
    let Some(json) = object(argument)? else {
        return Ok(None);
    };
    let members = json.view::<Members<'_>>().ok();
    let wrong = members.as_ref().and_then(|members| {
        let mut members = members.iter();
        members.find(|(_, value)| !value.get().starts_with('"'))
    });
    match wrong {
        Some((name, _)) => Err(Failure::usage(
            format!("the argument {name:?} is not a string"),
            "Give a prompt strings only, such as '{\"count\": \"2\"}'.",
        )),
        None => Ok(Some(json)),
    }
}

/// The project's file if there is one, else the user's own.
fn default_path() -> Result<PathBuf, Failure> {
    let user = user_path();
    let candidates = [Some(PathBuf::from(PROJECT_FILE)), user.clone()];
    let found = candidates.into_iter().flatten().find(|path| path.exists());
    found.ok_or_else(|| {
        let missing = match user {
            Some(path) => format!("neither {PROJECT_FILE} nor {} exists", path.display()),
            None => format!("{PROJECT_FILE} does not exist"),
        };
        Failure::config(
            format!("no configuration: {missing}, and no --config was given"),
            format!(
                "Write {PROJECT_FILE}: {{\"mcpServers\": {{\"NAME\": {{\"command\": \"PROGRAM\", \
                 \"args\": []}}}}}}; or try `mcp-harness demo`, which needs none."
            ),
        )
    })
}

// spec: XDG Base Directory Specification, a relative path in the variable is ignored
fn user_path() -> Option<PathBuf> {
    let directory = |name: &str| env::var_os(name).map(PathBuf::from);
    let base = directory("XDG_CONFIG_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| directory("HOME").map(|home| home.join(".config")))
        .or_else(|| directory("APPDATA"))?;
    Some(base.join(Path::new("mcp-harness/mcp.json")))
}

/// Leaves one peer.
fn restrict(config: &mut Config, name: &str) -> Result<(), Failure> {
    if config.disabled.iter().any(|disabled| disabled == name) {
        return Err(Failure::usage(
            format!("the configuration switches {name:?} off"),
            "Remove its \"disabled\": true.",
        ));
    }
    let names: Vec<String> = config.peers.iter().map(|peer| peer.name.clone()).collect();
    config.peers.retain(|peer| peer.name == name);
    if !config.peers.is_empty() {
        return Ok(());
    }
    let remedy = match nearest(name, names.iter().map(String::as_str)) {
        Some(near) => format!("Write --peer {near} if that was meant."),
        None if names.is_empty() => "The configuration names no server.".to_owned(),
        None => format!("Write one of: {}.", names.join(", ")),
    };
    Err(Failure::usage(
        format!("no server is named {name:?}"),
        remedy,
    ))
}
