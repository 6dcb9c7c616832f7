//! What every scenario has: servers to configure, a client to watch, and an end that leaves nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use mcp_proto::config::{StdioConfig, Transport};
use mcp_proto::report::PeerReport;
use mcp_proto::types::CallToolResult;
use mcp_proto::wire::Json;
use mcp_proto::{
    Config, Diagnosis, Ended, Error, Identity, Operation, OperationId, Options, PeerConfig, Request,
};
use serde_json::{Value, json};

use super::process::{self, MARK, Process};
use super::{Driver, Environment, Session, Setup, expect};

/// How long anything may take before it counts as never.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// How long closing may take, whatever servers do.
const CLOSE_LIMIT: Duration = Duration::from_secs(8);
/// How long processes that were killed may take to disappear.
const REAP_LIMIT: Duration = Duration::from_secs(5);

/// One scenario's servers and files.
pub(super) struct Stage<'a> {
    driver: &'a dyn Driver,
    environment: &'a Environment,
    mark: String,
    scratch: Scratch,
}

impl<'a> Stage<'a> {
    pub(super) fn new(name: &str, driver: &'a dyn Driver, environment: &'a Environment) -> Self {
        /// Makes marks unique within this process.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{name}-{}-{next}", std::process::id());
        Self {
            scratch: Scratch::new(&environment.scratch.join(&mark)),
            driver,
            environment,
            mark,
        }
    }

    /// A peer whose server runs this script.
    pub(super) fn peer(&self, name: &str, script: Value) -> PeerConfig {
        self.stdio_peer(name, script, |stdio| stdio)
    }

    /// A well-behaved server of the modern era.
    pub(super) fn modern(&self, name: &str) -> PeerConfig {
        self.peer(name, json!({}))
    }

    /// A server of the modern era that takes these steps.
    pub(super) fn steps(&self, name: &str, steps: Value) -> PeerConfig {
        self.peer(name, json!({"steps": steps}))
    }

    /// The same with something else about how it is started.
    pub(super) fn stdio_peer(
        &self,
        name: &str,
        script: Value,
        change: impl FnOnce(StdioConfig) -> StdioConfig,
    ) -> PeerConfig {
        let arguments = ["--script-json".to_owned(), script.to_string()];
        let stdio = StdioConfig::new(self.server(), arguments).env(MARK, self.mark.as_str());
        PeerConfig::new(name, Transport::Stdio(change(stdio)))
    }

    /// The fake server's program.
    pub(super) fn server(&self) -> String {
        self.environment.server.to_string_lossy().into_owned()
    }

    /// A file of this scenario.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.scratch.0.join(name)
    }

    /// The JSON messages that a server wrote into this transcript.
    pub(super) fn received(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.file(name)).unwrap_or_default();
        text.lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter_map(|entry| serde_json::from_str(entry.get("received")?.as_str()?).ok())
            .collect()
    }

    /// The methods of these messages.
    pub(super) fn received_methods(&self, name: &str) -> Vec<String> {
        let messages = self.received(name).into_iter();
        messages
            .map(|message| {
                message["method"]
                    .as_str()
                    .unwrap_or("a response")
                    .to_owned()
            })
            .collect()
    }

    /// The living processes of this scenario.
    pub(super) fn processes(&self) -> Vec<Process> {
        Process::marked(&self.mark)
    }

    /// A client that begins to connect.
    pub(super) fn start(&self, setup: Setup) -> Client<'_> {
        let session = self.driver.connect(setup);
        let session = session.unwrap_or_else(|error| panic!("the driver does not start: {error}"));
        Client {
            session: Arc::from(session),
            stage: self,
        }
    }

    /// A client of these peers, each of which is ready or has failed.
    pub(super) fn connect(&self, peers: Vec<PeerConfig>) -> Client<'_> {
        let client = self.start(Setup::of(peers));
        client.settle();
        client
    }
}

impl Setup {
    /// A client of these peers, without streams and with the library's own identity.
    pub(super) fn of(peers: Vec<PeerConfig>) -> Self {
        Self {
            config: Config::new(peers),
            identity: Identity::default(),
            streams: Vec::new(),
        }
    }
}

/// A client under test.
pub(super) struct Client<'a> {
    pub(super) session: Arc<dyn Session>,
    stage: &'a Stage<'a>,
}

impl Client<'_> {
    /// Waits until every peer is ready or has failed.
    #[track_caller]
    pub(super) fn settle(&self) {
        expect::complete(self.run(Operation::new(Request::Settle)));
    }

    #[track_caller]
    pub(super) fn submit(&self, operation: Operation) -> OperationId {
        let accepted = self.session.submit(operation);
        accepted.unwrap_or_else(|error| panic!("not accepted: {error}"))
    }

    /// Waits for the end of an operation.
    #[track_caller]
    pub(super) fn wait(&self, operation: OperationId) -> Ended {
        let ended = self.session.wait(operation, PATIENCE);
        ended.unwrap_or_else(|| panic!("{operation} has not ended within {PATIENCE:?}"))
    }

    #[track_caller]
    pub(super) fn run(&self, operation: Operation) -> Ended {
        self.wait(self.submit(operation))
    }

    /// Calls a tool of one peer and expects a result.
    #[track_caller]
    pub(super) fn call(&self, peer: &str, tool: &str, arguments: Value) -> CallToolResult {
        expect::called(self.run(call(peer, tool, arguments)))
    }

    /// Calls a tool of one peer and expects this text.
    #[track_caller]
    pub(super) fn echo(&self, peer: &str, text: &str) {
        assert_eq!(self.call(peer, "echo", json!({"text": text})).text(), text);
    }

    /// What the report says about a peer.
    #[track_caller]
    pub(super) fn report_of(&self, peer: &str) -> PeerReport {
        let report = self.session.report();
        let found = report.peers.into_iter().find(|report| report.name == peer);
        found.unwrap_or_else(|| panic!("{peer:?} is not in the report"))
    }

    /// What is known about a peer.
    #[track_caller]
    pub(super) fn diagnosis_of(&self, peer: &str) -> Diagnosis {
        let mut all = self.session.diagnoses().into_iter();
        let found = all.find(|diagnosis| diagnosis.report.name == peer);
        found.unwrap_or_else(|| panic!("{peer:?} has no diagnosis"))
    }

    /// Closes the client, which takes a bounded time.
    #[track_caller]
    pub(super) fn close(&self) {
        let (done, closed) = mpsc::channel();
        let session = Arc::clone(&self.session);
        thread::spawn(move || {
            session.close();
            let _ = done.send(());
        });
        if closed.recv_timeout(CLOSE_LIMIT).is_err() {
            panic!("close has not returned within {CLOSE_LIMIT:?}");
        }
    }

    /// Closes the client: nothing of it may be left.
    #[track_caller]
    pub(super) fn end(self) {
        let before = self.stage.processes();
        self.close();
        self.nothing_is_left(before);
    }

    /// Drops the client without closing it: nothing of it may be left.
    #[track_caller]
    pub(super) fn abandon(self) {
        let before = self.stage.processes();
        let stage = self.stage;
        drop(self);
        nothing_is_left(stage, before);
    }

    /// None of these processes, and no other one of this scenario, may be left.
    #[track_caller]
    pub(super) fn nothing_is_left(self, before: Vec<Process>) {
        nothing_is_left(self.stage, before);
    }
}

#[track_caller]
fn nothing_is_left(stage: &Stage<'_>, before: Vec<Process>) {
    let left = || before.iter().any(Process::is_left) || !stage.processes().is_empty();
    if !process::until(REAP_LIMIT, || !left()) {
        let left: Vec<&Process> = before.iter().filter(|process| process.is_left()).collect();
        let alive = stage.processes();
        alive.iter().for_each(Process::kill);
        panic!("processes are left: {left:?}, alive: {alive:?}");
    }
}

/// A call of a peer's tool.
pub(super) fn call(peer: &str, tool: &str, arguments: Value) -> Operation {
    Operation::call(tool, Some(Json::from(arguments))).on(peer)
}

/// Options that ask for progress.
pub(super) fn with_progress() -> Options {
    Options {
        progress: true,
        ..Options::default()
    }
}

/// Options with a longest silence.
pub(super) fn with_idle_timeout(limit: Duration) -> Options {
    Options {
        idle_timeout: Some(limit),
        ..Options::default()
    }
}

/// The error of an operation that was not accepted, or of its end.
#[track_caller]
pub(super) fn refused(client: &Client<'_>, operation: Operation) -> Error {
    match client.session.submit(operation) {
        Err(error) => error,
        Ok(operation) => expect::failed(client.wait(operation)),
    }
}

/// A directory that is gone after the scenario.
struct Scratch(PathBuf);

impl Scratch {
    fn new(path: &Path) -> Self {
        if let Err(error) = fs::create_dir_all(path) {
            panic!("{}: {error}", path.display());
        }
        Self(path.to_owned())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
