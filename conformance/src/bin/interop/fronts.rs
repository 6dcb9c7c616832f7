//! The ways in which the client can be used: either driver as a library, and the binary with either.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use mcp_proto::wire::Json;
use mcp_proto::{Config, Ended, Error, Operation, Outcome, Reply};
use serde_json::{Value, json};

use crate::servers::Expected;

/// One way. Answers have the shape of the binary's JSON.
pub(crate) trait Front {
    fn name(&self) -> String;
    fn report(&mut self) -> Result<Value, String>;
    /// A call by the server's own name, or by the canonical one when `peer` is empty.
    fn call(&mut self, peer: &str, tool: &str, arguments: &Value) -> Result<Value, String>;
    fn close(&mut self) -> Result<(), String>;
}

type Connect = fn(&Path) -> Result<Box<dyn Front>, String>;

/// All ways.
pub(crate) const ALL: [Connect; 4] = [
    |config| Ok(Box::new(Tokio::connect(config)?)),
    |config| Ok(Box::new(Blocking::connect(config)?)),
    |config| Ok(Box::new(Harness::start(config, "tokio")?)),
    |config| Ok(Box::new(Harness::start(config, "blocking")?)),
];

fn read(config: &Path) -> Result<Config, String> {
    let text = std::fs::read_to_string(config).map_err(|error| error.to_string())?;
    let name = config.to_string_lossy();
    Config::parse(&text, &name, &mut |name| std::env::var(name).ok())
        .map_err(|error| error.to_string())
}

fn operation(peer: &str, tool: &str, arguments: &Value) -> Operation {
    let call = Operation::call(tool, Some(Json::from(arguments.clone())));
    if peer.is_empty() { call } else { call.on(peer) }
}

fn answer(ended: Result<Ended, Error>) -> Result<Value, String> {
    let outcome = ended.map_or_else(Outcome::Failed, |ended| ended.outcome);
    match outcome {
        Outcome::Complete(Reply::Call(result)) => Ok(json!({
            "outcome": "complete",
            "content": result.content,
            "structuredContent": result.structured_content,
            "isError": result.is_error,
        })),
        Outcome::Failed(error) => Ok(json!({
            "outcome": "error",
            "error": {"kind": error.kind().as_str(), "message": error.to_string()},
        })),
        other => Err(format!("unexpected outcome: {other:?}")),
    }
}

fn value(json: &Json) -> Result<Value, String> {
    json.decode().map_err(|error| error.to_string())
}

struct Tokio {
    runtime: tokio::runtime::Runtime,
    client: mcp_driver_tokio::Client,
}

impl Tokio {
    fn connect(config: &Path) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let config = read(config)?;
        let client = runtime.block_on(mcp_driver_tokio::Client::connect(config));
        Ok(Self {
            client: client.map_err(|error| error.to_string())?,
            runtime,
        })
    }
}

impl Front for Tokio {
    fn name(&self) -> String {
        "tokio driver".into()
    }

    fn report(&mut self) -> Result<Value, String> {
        value(&self.client.report().to_json())
    }

    fn call(&mut self, peer: &str, tool: &str, arguments: &Value) -> Result<Value, String> {
        let ended = self
            .runtime
            .block_on(self.client.run(operation(peer, tool, arguments)));
        answer(ended)
    }

    fn close(&mut self) -> Result<(), String> {
        self.runtime.block_on(self.client.close());
        Ok(())
    }
}

struct Blocking(mcp_driver_blocking::Client);

impl Blocking {
    fn connect(config: &Path) -> Result<Self, String> {
        mcp_driver_blocking::Client::connect(read(config)?)
            .map(Self)
            .map_err(|error| error.to_string())
    }
}

impl Front for Blocking {
    fn name(&self) -> String {
        "blocking driver".into()
    }

    fn report(&mut self) -> Result<Value, String> {
        value(&self.0.report().to_json())
    }

    fn call(&mut self, peer: &str, tool: &str, arguments: &Value) -> Result<Value, String> {
        let ended = self.0.run(operation(peer, tool, arguments));
        answer(ended)
    }

    fn close(&mut self) -> Result<(), String> {
        self.0.close();
        Ok(())
    }
}

/// A `batch` session of the binary.
pub(crate) struct Harness {
    driver: &'static str,
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Harness {
    fn start(config: &Path, driver: &'static str) -> Result<Self, String> {
        let mut child = Command::new(harness()?)
            .arg("--config")
            .arg(config)
            .args(["--driver", driver, "batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("mcp-harness: {error}"))?;
        let input = child.stdin.take();
        let output = child
            .stdout
            .take()
            .map(BufReader::new)
            .ok_or("no standard output")?;
        Ok(Self {
            driver,
            child,
            input,
            output,
        })
    }

    /// Sends one operation and reads its outcome line.
    fn ask(&mut self, operation: &Value) -> Result<Value, String> {
        let input = self.input.as_mut().ok_or("closed")?;
        writeln!(input, "{operation}").map_err(|error| format!("mcp-harness: {error}"))?;
        let mut line = String::new();
        self.output
            .read_line(&mut line)
            .map_err(|error| format!("mcp-harness: {error}"))?;
        serde_json::from_str(&line)
            .map_err(|error| format!("mcp-harness printed {line:?}: {error}"))
    }

    /// `mcp-harness --json report`: its document, and status 3 because one server is refused.
    pub(crate) fn report_command(config: &Path, expected: &[Expected]) -> Result<(), String> {
        let output = Command::new(harness()?)
            .arg("--config")
            .arg(config)
            .args(["--json", "report"])
            .output()
            .map_err(|error| format!("mcp-harness: {error}"))?;
        if output.status.code() != Some(3) {
            return Err(format!(
                "mcp-harness report: {} instead of status 3",
                output.status
            ));
        }
        let report: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("mcp-harness report printed no JSON document: {error}"))?;
        expected.iter().try_for_each(|peer| peer.check(&report))
    }
}

impl Front for Harness {
    fn name(&self) -> String {
        format!("mcp-harness --driver {}", self.driver)
    }

    fn report(&mut self) -> Result<Value, String> {
        self.ask(&json!({"id": 1, "op": "report"}))
    }

    fn call(&mut self, peer: &str, tool: &str, arguments: &Value) -> Result<Value, String> {
        let mut operation =
            json!({"id": "call", "op": "call", "tool": tool, "arguments": arguments});
        if let Some(members) = operation.as_object_mut().filter(|_| !peer.is_empty()) {
            members.insert("peer".into(), peer.into());
        }
        self.ask(&operation)
    }

    fn close(&mut self) -> Result<(), String> {
        self.input = None;
        let status = self
            .child
            .wait()
            .map_err(|error| format!("mcp-harness: {error}"))?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("mcp-harness: {status}"))
        }
    }
}

/// The binary, built if it is not there: this package cannot depend on it.
fn harness() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let path = own.with_file_name("mcp-harness");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let profile = if own
        .parent()
        .is_some_and(|folder| folder.ends_with("release"))
    {
        "release"
    } else {
        "dev"
    };
    let status = Command::new(cargo)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args([
            "build",
            "--quiet",
            "--profile",
            profile,
            "--package",
            "mcp-driver-tokio",
        ])
        .args(["--features", "cli", "--bin", "mcp-harness"])
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if status.success() && path.exists() {
        Ok(path)
    } else {
        Err("mcp-harness cannot be built".into())
    }
}
