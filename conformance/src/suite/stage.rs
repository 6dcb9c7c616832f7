//! What every scenario has: servers to configure, a client to watch, and an end that leaves nothing.

use std::path::PathBuf;
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

use super::place::Place;
use super::process::{MARK, Process};
use super::{Driver, Environment, Session, Setup, expect};

/// How long anything may take before it counts as never.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// How long closing may take, whatever servers do.
pub(crate) const CLOSE_LIMIT: Duration = Duration::from_secs(8);

/// One scenario's servers and files.
pub(crate) struct Stage<'a> {
    driver: &'a dyn Driver,
    environment: &'a Environment,
    pub(crate) place: Place,
}

impl<'a> Stage<'a> {
    pub(crate) fn new(name: &str, driver: &'a dyn Driver, environment: &'a Environment) -> Self {
        Self {
            place: Place::new(name, &environment.scratch),
            driver,
            environment,
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
        let stdio = StdioConfig::new(self.server(), arguments).env(MARK, self.place.mark());
        PeerConfig::new(name, Transport::Stdio(change(stdio)))
    }

    /// The fake server's program.
    pub(crate) fn server(&self) -> String {
        self.environment.server.to_string_lossy().into_owned()
    }

    /// A file of this scenario.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.place.file(name)
    }

    /// The JSON messages that a server wrote into this transcript.
    pub(super) fn received(&self, name: &str) -> Vec<Value> {
        let lines = self.place.transcript(name).received.into_iter();
        lines
            .filter_map(|line| serde_json::from_str(&line).ok())
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
        self.place.processes()
    }

    /// A client that begins to connect.
    pub(crate) fn start(&self, setup: Setup) -> Client<'_> {
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
pub(crate) struct Client<'a> {
    pub(crate) session: Arc<dyn Session>,
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
    pub(crate) fn close(&self) {
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
    pub(crate) fn end(self) {
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
        stage.place.nothing_is_left(before);
    }

    /// None of these processes, and no other one of this scenario, may be left.
    #[track_caller]
    pub(super) fn nothing_is_left(self, before: Vec<Process>) {
        self.stage.place.nothing_is_left(before);
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
