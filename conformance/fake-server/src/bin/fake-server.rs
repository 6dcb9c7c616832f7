//! The scriptable fake MCP server on stdin and stdout.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use mcp_fake_server::{LegacyVersion, Script, stdio};

const USAGE: &str = "\
usage: fake-server [options]
  --era modern|legacy|dual   which lifecycle to follow (default modern)
  --protocol-version V       the legacy revision (default 2025-11-25); implies --era legacy
  --script FILE              run this script
  --script-json JSON         run this script
  --name NAME                the server's name (default fake)
  --instructions TEXT        usage instructions for models
  --page-size N              page every list after N entries
  --tools a,b,c              choose the tools
  --tool-prefix TEXT         put this before every tool name
  --respawn-state FILE       count processes here; later ones run the script's respawn steps
  --transcript FILE          append what the client sent and what it broke, as JSON Lines
  --help                     print this
--era and --protocol-version are for servers without a script; the other options go before the
script's own.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    if arguments.iter().any(|argument| argument == "--help") {
        drop(std::io::stdout().write_all(USAGE.as_bytes()));
        return ExitCode::SUCCESS;
    }
    match parse(arguments) {
        Ok((script, respawn_state)) => stdio::run(script, respawn_state.as_deref()),
        Err(problem) => {
            drop(writeln!(
                std::io::stderr(),
                "fake-server: {problem} (try --help)"
            ));
            ExitCode::from(2)
        }
    }
}

fn parse(arguments: Vec<String>) -> Result<(Script, Option<PathBuf>), String> {
    let (mut era, mut version, mut script) = (None, None, None);
    let mut respawn_state = None;
    let mut settings: Vec<(String, String)> = Vec::new();
    let mut rest = arguments.into_iter();
    while let Some(option) = rest.next() {
        let (option, inline) = match option.split_once('=') {
            Some((option, value)) => (option.to_owned(), Some(value.to_owned())),
            None => (option, None),
        };
        let value = inline
            .or_else(|| rest.next())
            .ok_or_else(|| format!("{option} needs a value"))?;
        match option.as_str() {
            "--era" => era = Some(value),
            "--protocol-version" => version = Some(value),
            "--script" => {
                script = Some(
                    std::fs::read_to_string(&value)
                        .map_err(|error| format!("--script {value}: {error}"))?,
                );
            }
            "--script-json" => script = Some(value),
            "--respawn-state" => respawn_state = Some(PathBuf::from(value)),
            _ => settings.push((option, value)),
        }
    }
    let mut script = match script {
        Some(_) if era.is_some() || version.is_some() => {
            return Err("a script says its own era: leave --era and --protocol-version out".into());
        }
        Some(text) => Script::from_json(&text).map_err(|error| error.to_string())?,
        None => without_script(era.as_deref(), version.as_deref())?,
    };
    for (option, value) in settings {
        script = apply(script, &option, value)?;
    }
    Ok((script, respawn_state))
}

fn without_script(era: Option<&str>, version: Option<&str>) -> Result<Script, String> {
    let version = version
        .map(|text| {
            LegacyVersion::parse(text)
                .ok_or_else(|| format!("--protocol-version {text}: no legacy revision"))
        })
        .transpose()?;
    match (era, version) {
        (None | Some("legacy"), Some(version)) => Ok(Script::legacy(version)),
        (Some("legacy"), None) => Ok(Script::legacy(LegacyVersion::LATEST)),
        (None | Some("modern"), None) => Ok(Script::modern()),
        (Some("dual"), None) => Ok(Script::dual()),
        (Some(_), Some(_)) => Err("--protocol-version is for --era legacy only".into()),
        (Some(other), None) => Err(format!("--era {other}: expected modern, legacy or dual")),
    }
}

fn apply(script: Script, option: &str, value: String) -> Result<Script, String> {
    Ok(match option {
        "--name" => script.with_name(value),
        "--instructions" => script.with_instructions(value),
        "--page-size" => {
            let size = value.parse().ok().filter(|size| *size > 0);
            script.with_page_size(
                size.ok_or_else(|| format!("--page-size {value}: expected a number from 1"))?,
            )
        }
        "--tools" => script.with_tools(value.split(',')),
        "--tool-prefix" => script.with_tool_prefix(value),
        "--transcript" => script.with_transcript(value),
        other => return Err(format!("unknown option {other}")),
    })
}
