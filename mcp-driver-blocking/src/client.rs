//! The application's handle.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mcp_proto::error::Cause;
use mcp_proto::types::{
    CallToolResult, CompleteResult, GetPromptResult, InputRequired, Prompt, ReadResourceResult,
    Resource, ResourceTemplate, Tool,
};
use mcp_proto::wire::Json;
use mcp_proto::{
    Config, Diagnosis, Ended, Error, Identity, Instant, Listed, Operation, OperationId, Outcome,
    Reply, Report, Request,
};
use serde::Serialize;

use crate::Core;
use crate::engine::{CLIENT, Shared, State};
use crate::machine;
use crate::sys::{self, Pair};
use crate::waiting::{Listener, Pending};

/// The answer of an operation that ended, if it is of the kind that was asked for.
macro_rules! answer {
    ($ended:expr, $kind:path) => {
        match $ended.outcome {
            Outcome::Complete($kind(answer)) => Ok(answer),
            outcome => Err(unanswered(outcome)),
        }
    };
}

/// How long killed processes may take to disappear before the client stops waiting for it.
const REAP_LIMIT: Duration = Duration::from_secs(1);

/// A client of any number of servers; a cheap handle to share between threads.
///
/// When the last handle is dropped ([`Pending`] and [`Listener`] are handles too) every process is killed
/// with its process group. [`close`](Client::close) is the polite way.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
}

/// What a tool call came to.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)] // handed out once, never stored
pub enum CallOutcome {
    /// The tool answered; perhaps with `isError`.
    Complete(CallToolResult),
    /// The server needs input before it can answer. Call again with
    /// [`ToolCall::input_responses`](mcp_proto::ToolCall::input_responses) through [`Client::run`].
    InputRequired(InputRequired),
}

/// Makes a [`Client`] with more than a configuration.
///
/// ```
/// # #[cfg(unix)]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::os::unix::net::UnixStream;
/// use mcp_driver_blocking::Client;
/// use mcp_proto::Config;
///
/// // Two ends in one process: one for the client, the other for a server on a thread.
/// let (ours, theirs) = UnixStream::pair()?;
/// let builder = Client::builder(Config::default()).stream("in-process", ours.try_clone()?, ours);
/// # drop((builder, theirs));
/// # Ok(())
/// # }
/// # #[cfg(not(unix))]
/// # fn main() {}
/// ```
#[derive(Debug)]
#[must_use = "nothing happens before `start`"]
pub struct Builder {
    config: Config,
    identity: Identity,
    streams: BTreeMap<String, Pair>,
    failure: Option<io::Error>,
}

impl Builder {
    /// Who the application is and what it can do, as servers are told. Without it they are told the name
    /// and version of this library, and no capability.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = identity;
        self
    }

    /// The byte stream to the server with this configured name: a socket (with `try_clone` for one of
    /// the two), a pair of pipes, an end of `UnixStream::pair`.
    ///
    /// Both are switched to non-blocking mode, for every duplicate of them too. A stream serves for one
    /// connection; the client cannot open it again.
    #[cfg(unix)]
    pub fn stream(
        mut self,
        name: impl Into<String>,
        reader: impl Into<std::os::fd::OwnedFd>,
        writer: impl Into<std::os::fd::OwnedFd>,
    ) -> Self {
        self.streams
            .insert(name.into(), (reader.into(), writer.into()));
        self
    }

    /// The same for a reader and a writer that have no descriptor to wait for (or where one says nothing,
    /// as with TLS).
    ///
    /// Two threads copy. They end with the connection, except that nothing can end a `read` of yours
    /// that blocks: such a thread stays until it returns.
    pub fn stream_any(
        mut self,
        name: impl Into<String>,
        reader: impl Read + Send + 'static,
        writer: impl Write + Send + 'static,
    ) -> Self {
        match sys::pump(reader, writer) {
            Ok(pair) => drop(self.streams.insert(name.into(), pair)),
            Err(error) => self.failure = Some(error),
        }
        self
    }

    /// Starts to connect to every server and returns at once.
    ///
    /// # Errors
    /// [`Cause::Unavailable`] when the operating system has no descriptors or threads left. What goes
    /// wrong with a server is in the [`report`](Client::report) instead.
    pub fn start(self) -> Result<Client, Error> {
        let core = |now| Core::new(machine::pin(self.config), self.identity, now);
        let started = match self.failure {
            Some(error) => Err(error),
            None => Client::over(core, self.streams),
        };
        started.map_err(|error| {
            Error::general(Cause::Unavailable {
                reason: format!("the client could not be started: {error}"),
            })
        })
    }
}

impl Client {
    /// Connects to every configured server and waits until each is ready or has failed.
    ///
    /// # Errors
    /// As [`Builder::start`]. A server that failed is no error: see [`Client::report`].
    pub fn connect(config: Config) -> Result<Self, Error> {
        let client = Self::builder(config).start()?;
        client.settled()?;
        Ok(client)
    }

    /// Prepares a client.
    pub fn builder(config: Config) -> Builder {
        Builder {
            config,
            identity: Identity::default(),
            streams: BTreeMap::new(),
            failure: None,
        }
    }

    /// Waits until every server is ready or has failed.
    ///
    /// # Errors
    /// When the client is closed meanwhile.
    pub fn settled(&self) -> Result<(), Error> {
        match self.run(Operation::new(Request::Settle))?.outcome {
            Outcome::Failed(error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Which servers are there, and what became of the others.
    #[must_use]
    pub fn report(&self) -> Report {
        self.shared().with(|state| state.core.report())
    }

    /// Per server: what was run and what came back.
    #[must_use]
    pub fn diagnoses(&self) -> Vec<Diagnosis> {
        self.shared().with(|state| state.core.diagnoses())
    }

    /// All tools, by canonical name.
    ///
    /// # Errors
    /// Why there is no answer. The same for the other lists.
    pub fn tools(&self) -> Result<Vec<Listed<Tool>>, Error> {
        answer!(self.run(Operation::new(Request::ListTools))?, Reply::Tools)
    }

    /// All resources.
    #[allow(clippy::missing_errors_doc)] // as `tools`
    pub fn resources(&self) -> Result<Vec<Listed<Resource>>, Error> {
        answer!(
            self.run(Operation::new(Request::ListResources))?,
            Reply::Resources
        )
    }

    /// All resource templates.
    #[allow(clippy::missing_errors_doc)] // as `tools`
    pub fn resource_templates(&self) -> Result<Vec<Listed<ResourceTemplate>>, Error> {
        let ended = self.run(Operation::new(Request::ListResourceTemplates))?;
        answer!(ended, Reply::ResourceTemplates)
    }

    /// All prompts.
    #[allow(clippy::missing_errors_doc)] // as `tools`
    pub fn prompts(&self) -> Result<Vec<Listed<Prompt>>, Error> {
        answer!(
            self.run(Operation::new(Request::ListPrompts))?,
            Reply::Prompts
        )
    }

    /// Calls a tool by its canonical name. The arguments serialize to a JSON object, or are `()`.
    ///
    /// # Errors
    /// [`Cause::Usage`] when the arguments cannot be serialized; else why there is no answer, and
    /// [`Error::may_have_executed`] says whether the tool may have run nevertheless.
    pub fn call_tool(&self, name: &str, arguments: impl Serialize) -> Result<CallOutcome, Error> {
        let ended = self.run(Operation::call(name, members(&arguments)?))?;
        match ended.outcome {
            Outcome::InputRequired(input) => Ok(CallOutcome::InputRequired(input)),
            _ => answer!(ended, Reply::Call).map(CallOutcome::Complete),
        }
    }

    /// Reads a resource by its URI, from whichever server has it.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn read_resource(&self, uri: &str) -> Result<ReadResourceResult, Error> {
        let uri = uri.to_owned();
        answer!(
            self.run(Operation::new(Request::ReadResource { uri }))?,
            Reply::Read
        )
    }

    /// Gets a prompt by its canonical name. The arguments serialize to a JSON object of strings, or are
    /// `()`.
    ///
    /// # Errors
    /// [`Cause::Usage`] when the arguments cannot be serialized; else why there is no answer.
    pub fn get_prompt(
        &self,
        name: &str,
        arguments: impl Serialize,
    ) -> Result<GetPromptResult, Error> {
        let (name, arguments) = (name.to_owned(), members(&arguments)?);
        let request = Request::GetPrompt { name, arguments };
        answer!(self.run(Operation::new(request))?, Reply::Prompt)
    }

    /// Asks one server to complete what was typed: `value` of `argument`, of a prompt
    /// (`{"type":"ref/prompt","name":…}`) or a resource template (`{"type":"ref/resource","uri":…}`).
    /// For more context there is [`Client::run`].
    ///
    /// # Errors
    /// [`Cause::Usage`] when the reference cannot be serialized; else why there is no answer.
    pub fn complete(
        &self,
        peer: &str,
        reference: impl Serialize,
        argument: &str,
        value: &str,
    ) -> Result<CompleteResult, Error> {
        let reference = Json::encode(&reference).map_err(misuse)?;
        let (argument, value) = (argument.to_owned(), value.to_owned());
        let context = None;
        let request = Request::Complete {
            reference,
            argument,
            value,
            context,
        };
        answer!(
            self.run(Operation::new(request).on(peer))?,
            Reply::Completion
        )
    }

    /// Does one operation, whatever it is, and waits for its end.
    ///
    /// # Errors
    /// Only when the operation was not accepted. How it failed afterwards is in [`Ended::outcome`].
    pub fn run(&self, operation: Operation) -> Result<Ended, Error> {
        let ended = self.shared().run(operation)?;
        ended.ok_or_else(|| misuse("the operation has no end"))
    }

    /// Starts an operation without waiting for it.
    ///
    /// # Errors
    /// When it was not accepted: nothing was sent.
    pub fn submit(&self, operation: Operation) -> Result<Pending, Error> {
        let id = self.shared().with(|state| state.submit(operation))?;
        Ok(Pending {
            client: self.clone(),
            id,
        })
    }

    /// Listens to the change notifications of one server, or of all.
    ///
    /// # Errors
    /// When there is no such server.
    pub fn listen(&self, peer: Option<&str>) -> Result<Listener, Error> {
        let mut operation = Operation::new(Request::Listen);
        operation.peer = peer.map(str::to_owned);
        let pending = self.submit(operation)?;
        Ok(Listener {
            pending,
            taken: VecDeque::new(),
        })
    }

    /// Cancels an operation, which ends with [`Cause::Cancelled`]; nothing if it has ended. Whoever waits
    /// for it, on whatever thread, returns.
    pub fn cancel(&self, operation: OperationId) {
        self.shared()
            .with(|state| state.core.cancel(operation, state.now));
    }

    /// Ends a listening operation with its count, on whatever thread it is waited for; other operations
    /// stay as they are.
    pub fn finish(&self, operation: OperationId) {
        self.shared()
            .with(|state| state.core.finish(operation, state.now));
    }

    /// Ends every operation, asks the servers to end, and ends those that do not; returns when nothing is
    /// left. The time is bounded by the configuration. A second call finds nothing to do.
    pub fn close(&self) {
        self.shared().with(|state| state.core.close(state.now));
        let closed = |state: &mut State| state.core.is_closed().then_some(());
        let shared = self.shared();
        shared.wait(shared.lock(), CLIENT, None, closed);
        self.inner.end();
    }

    /// A client over this core, which starts to connect.
    pub(crate) fn over(
        core: impl FnOnce(Instant) -> Core,
        streams: BTreeMap<String, Pair>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::new(core, streams)?);
        let keeper = Arc::clone(&shared);
        let thread = thread::Builder::new().name("mcp-keeper".to_owned());
        let keeper = Mutex::new(Some(thread.spawn(move || keeper.keep())?));
        shared.with(|state| state.core.connect(state.now));
        Ok(Self {
            inner: Arc::new(Inner { shared, keeper }),
        })
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.inner.shared
    }
}

/// Dropped with the last handle.
#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    keeper: Mutex<Option<JoinHandle<()>>>,
}

impl Inner {
    fn end(&self) {
        self.shared.shut_down();
        let mut keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = keeper.take() {
            let _ = thread.join();
        }
        self.shared.wait_until_reaped(REAP_LIMIT);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.end();
    }
}

/// Why there is no answer of the kind that was asked for.
pub(crate) fn unanswered(outcome: Outcome) -> Error {
    match outcome {
        Outcome::Failed(error) => error,
        Outcome::InputRequired(_) => {
            misuse("the server needs input first: `Client::run` shows what")
        }
        Outcome::Complete(_) => misuse("the answer is of another kind than the request"),
    }
}

pub(crate) fn misuse(why: impl Display) -> Error {
    Error::general(Cause::Usage(why.to_string()))
}

/// The arguments as JSON; none for `()`.
fn members(arguments: &impl Serialize) -> Result<Option<Json>, Error> {
    let json = Json::encode(arguments).map_err(misuse)?;
    Ok(Some(json).filter(|json| json.as_str() != "null"))
}
