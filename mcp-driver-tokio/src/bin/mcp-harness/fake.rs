//! `fake-server`: the other side, for tests and the demo.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use mcp_fake_server::{LegacyVersion, Script, stdio};

use crate::exit::Failure;
use crate::files;

#[derive(Debug, Args)]
pub(crate) struct FakeServer {
    /// Which lifecycle to follow
    #[arg(long, value_enum, conflicts_with_all = ["script", "script_json"])]
    era: Option<Era>,
    /// The legacy revision; implies --era legacy
    #[arg(long, value_name = "REVISION", conflicts_with_all = ["script", "script_json"])]
    protocol_version: Option<String>,
    /// How clients reach it
    #[arg(long, value_enum, default_value_t = Transport::Stdio)]
    transport: Transport,
    /// Run the script in this file
    #[arg(long, value_name = "FILE", conflicts_with = "script_json")]
    script: Option<PathBuf>,
    /// Run this script
    #[arg(long, value_name = "JSON")]
    script_json: Option<String>,
    /// The server's name
    #[arg(long)]
    name: Option<String>,
    /// Usage instructions for models
    #[arg(long, value_name = "TEXT")]
    instructions: Option<String>,
    /// Page every list after so many entries
    #[arg(long, value_name = "N")]
    page_size: Option<std::num::NonZeroUsize>,
    /// Choose the tools
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    tools: Option<Vec<String>>,
    /// Put this before every tool name
    #[arg(long, value_name = "TEXT")]
    tool_prefix: Option<String>,
    /// Count processes here; later ones run the script's respawn steps
    #[arg(long, value_name = "FILE")]
    respawn_state: Option<PathBuf>,
    /// Append what the client sent and what it broke, as JSON Lines
    #[arg(long, value_name = "FILE")]
    transcript: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Era {
    Modern,
    Legacy,
    Dual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Transport {
    Stdio,
}

/// Serves until the script or the client ends it.
pub(crate) fn run(options: FakeServer) -> Result<ExitCode, Failure> {
    let respawn_state = options.respawn_state.clone();
    let script = script(options)?;
    Ok(stdio::run(script, respawn_state.as_deref()))
}

fn script(options: FakeServer) -> Result<Script, Failure> {
    let Transport::Stdio = options.transport;
    let mut script = match (&options.script, options.script_json) {
        (Some(path), _) => {
            let text =
                files::read(path).map_err(|error| wrong(format!("{}: {error}", path.display())))?;
            parse(&text)?
        }
        (None, Some(text)) => parse(&text)?,
        (None, None) => plain(options.era, options.protocol_version.as_deref())?,
    };
    if let Some(name) = options.name {
        script = script.with_name(name);
    }
    if let Some(text) = options.instructions {
        script = script.with_instructions(text);
    }
    if let Some(size) = options.page_size {
        script = script.with_page_size(size.get());
    }
    if let Some(tools) = options.tools {
        script = script.with_tools(tools);
    }
    if let Some(prefix) = options.tool_prefix {
        script = script.with_tool_prefix(prefix);
    }
    if let Some(file) = options.transcript {
        script = script.with_transcript(file);
    }
    Ok(script)
}

fn parse(text: &str) -> Result<Script, Failure> {
    Script::from_json(text).map_err(|error| wrong(error.to_string()))
}

fn plain(era: Option<Era>, version: Option<&str>) -> Result<Script, Failure> {
    let version = version.map(|text| {
        LegacyVersion::parse(text).ok_or_else(|| wrong(format!("{text}: no legacy revision")))
    });
    match (era, version.transpose()?) {
        (None | Some(Era::Legacy), Some(version)) => Ok(Script::legacy(version)),
        (Some(Era::Legacy), None) => Ok(Script::legacy(LegacyVersion::LATEST)),
        (None | Some(Era::Modern), None) => Ok(Script::modern()),
        (Some(Era::Dual), None) => Ok(Script::dual()),
        (Some(_), Some(_)) => Err(wrong(
            "--protocol-version goes with --era legacy only".to_owned(),
        )),
    }
}

fn wrong(message: String) -> Failure {
    Failure::usage(message, "See `mcp-harness fake-server --help`.")
}
