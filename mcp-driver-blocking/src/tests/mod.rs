//! What is this driver's own: who leads and who follows, and links without a core. What every driver must
//! do is proved by the driver suite.

mod calls;
mod links;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::{Duration, Instant};

use mcp_proto::{Answer, Config, Ended, Operation, PeerConfig, types::CallToolResult};
use serde_json::{Value, json};

use crate::Client;

/// Long enough for a loaded machine; a test that waits this long has failed.
const LONG: Duration = Duration::from_secs(20);

/// Some tests count what the whole process has open. `cargo nextest` gives each test its own process;
/// under `cargo test` this keeps the others out.
static PROCESS: RwLock<()> = RwLock::new(());

fn alone() -> RwLockWriteGuard<'static, ()> {
    let process = PROCESS.write().unwrap_or_else(PoisonError::into_inner);
    eventually("earlier tests leave nothing", || {
        children().is_empty() && threads().is_empty()
    });
    process
}

fn among_others() -> RwLockReadGuard<'static, ()> {
    PROCESS.read().unwrap_or_else(PoisonError::into_inner)
}

/// The far end of a stream: says what calls come, and answers them when it is told to. A call of `echo`
/// is answered at once.
struct Server {
    calls: Receiver<(Value, String)>,
    writer: UnixStream,
}

impl Server {
    /// A server, and the stream to it.
    fn start() -> (Self, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (sender, calls) = mpsc::channel();
        let writer = theirs.try_clone().unwrap();
        thread::spawn(move || {
            let out = theirs.try_clone().unwrap();
            for line in BufReader::new(theirs).lines() {
                let Ok(line) = line else { return };
                let message: Value = serde_json::from_str(&line).unwrap();
                let (id, params) = (&message["id"], &message["params"]);
                let text = params["arguments"]["text"].as_str().unwrap_or_default();
                match message["method"].as_str() {
                    Some("server/discover") => {
                        let capabilities = json!({"tools": {}});
                        let versions = json!(["2026-07-28"]);
                        let result =
                            json!({"supportedVersions": versions, "capabilities": capabilities});
                        respond(&out, id, result);
                    }
                    Some("tools/list") => {
                        let tool = |name| json!({"name": name, "inputSchema": {"type": "object"}});
                        respond(&out, id, json!({"tools": [tool("echo"), tool("hold")]}));
                    }
                    Some("tools/call") if params["name"] == "echo" => respond_text(&out, id, text),
                    Some("tools/call") => drop(sender.send((id.clone(), text.to_owned()))),
                    _ => {}
                }
            }
        });
        (Self { calls, writer }, ours)
    }

    /// The next call of `hold`, which is not answered yet.
    fn called(&self) -> (Value, String) {
        self.calls.recv_timeout(LONG).unwrap()
    }

    fn answer(&self, (id, text): (Value, String)) {
        respond_text(&self.writer, &id, &text);
    }
}

fn respond_text(out: &UnixStream, id: &Value, text: &str) {
    respond(
        out,
        id,
        json!({"content": [{"type": "text", "text": text}]}),
    );
}

/// Nobody reads it when the client is gone.
fn respond(mut out: &UnixStream, id: &Value, mut result: Value) {
    result["resultType"] = "complete".into();
    let line = format!(
        "{}\n",
        json!({"jsonrpc": "2.0", "id": id, "result": result})
    );
    let _ = out.write_all(line.as_bytes());
}

/// A client of so many servers, named by number, that are ready.
fn client_of(count: usize) -> (Client, Vec<Server>) {
    let names: Vec<String> = (0..count).map(|number| number.to_string()).collect();
    let peers = names.iter().map(PeerConfig::stream).collect();
    let mut builder = Client::builder(Config::new(peers));
    let mut servers = Vec::new();
    for name in names {
        let (server, stream) = Server::start();
        builder = builder.stream(name, stream.try_clone().unwrap(), stream);
        servers.push(server);
    }
    let client = builder.start().unwrap();
    client.settled().unwrap();
    (client, servers)
}

fn client() -> (Client, Server) {
    let (client, mut servers) = client_of(1);
    (client, servers.remove(0))
}

fn tool(name: &str, text: &str) -> Operation {
    let arguments = json!({"text": text});
    Operation::call(name, Some(arguments.into())).on("0")
}

fn echo(text: &str) -> Operation {
    tool("echo", text)
}

fn hold(text: &str) -> Operation {
    tool("hold", text)
}

fn answered(ended: Ended) -> String {
    CallToolResult::from_ended(ended).unwrap().text()
}

/// Asks until it is so; panics after [`LONG`].
fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < LONG, "never: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Processes whose command line holds this text, zombies (which have none) left out.
fn processes_with(mark: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries
        .map(|entry| entry.path())
        .filter(|path| path.join("cmdline").exists());
    let lines = pids.filter_map(|path| Some((std::fs::read(path.join("cmdline")).ok()?, path)));
    lines
        .filter(|(line, path)| {
            String::from_utf8_lossy(line).contains(mark) && *path != Path::new("/proc/self")
        })
        .map(|(_, path)| path.display().to_string())
        .collect()
}

/// Children of this process in any state, zombies included, with the state.
fn children() -> Vec<String> {
    let own = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    let tail = |stat: &String| {
        stat.rsplit_once(')')
            .map(|(_, tail)| tail.trim().to_owned())
    };
    let fields = stats.filter_map(|stat| tail(&stat));
    fields
        .filter(|tail| tail.split(' ').nth(1) == Some(&own))
        .collect()
}

/// Open descriptors of this process.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// The names of the driver's threads in this process.
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with("mcp-")).collect()
}
