//! The client handle.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use mcp_proto::asking::{self, RetryQuestion};
use mcp_proto::continuation::Continuation;
use mcp_proto::error::Cause;
use mcp_proto::operation::{self, arguments as encoded};
use mcp_proto::streaming::{SourceRequest, StreamFrom};
use mcp_proto::types::{
    CallToolResult, CompleteResult, GetPromptResult, InputRequired, InputResponses, Prompt,
    ReadResourceResult, Resource, ResourceTemplate, Tool,
};
use mcp_proto::{
    Answer, CallOutcome, Config, Costs, DegradedServer, Diagnosis, Ended, Error, Identity, Instant,
    Listed, MetricsSnapshot, Operation, OperationId, QuarantinedTool, Question, Report,
    StreamChunk,
};
use serde::Serialize;

use crate::engine::{Owner, State};
use crate::operation::{Listener, Pending};
use crate::streaming::{Handlers, Open, ToolStream, opener};
use crate::sys::{self, Pair};

/// A client of any number of servers: a handle that can be cloned and used from any thread.
///
/// Names and URIs are canonical (see [`tools`](Self::tools)); to use those of one server, submit an
/// [`Operation`] [`on`](Operation::on) it.
///
/// When the last handle is dropped without [`close`](Self::close) ([`Pending`] and [`Listener`] are handles
/// too), everything ends at once: processes are killed with their process groups, and streams are closed.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) owner: Arc<Owner>,
    handlers: Handlers,
}

impl Client {
    /// Starts a client of the configured servers and waits until each of them is ready or has failed.
    ///
    /// A server that failed is not an error here: the [`report`](Self::report) names it with the reason
    /// and the remedy, and the others can be used.
    ///
    /// # Errors
    /// As [`ClientBuilder::start`].
    pub fn connect(config: Config) -> Result<Self, Error> {
        let client = Self::builder(config).start()?;
        client.settled()?;
        Ok(client)
    }

    /// A client with more than the defaults.
    pub fn builder(config: Config) -> ClientBuilder {
        ClientBuilder {
            config,
            identity: Identity::default(),
            streams: BTreeMap::new(),
            handlers: Handlers::default(),
            failure: None,
        }
    }

    /// Waits until every server is ready or has failed.
    ///
    /// # Errors
    /// The client was closed meanwhile.
    pub fn settled(&self) -> Result<(), Error> {
        self.ask(Operation::settle())
    }

    /// What became of the servers, and what they offer under which names.
    #[must_use]
    pub fn report(&self) -> Report {
        self.owner.0.lock().core.report()
    }

    /// Per server: what was run and what came back.
    #[must_use]
    pub fn diagnoses(&self) -> Vec<Diagnosis> {
        self.owner.0.lock().core.diagnoses()
    }

    /// What was counted and measured of each server, since the client began.
    #[must_use]
    pub fn metrics(&self) -> MetricsSnapshot {
        self.owner.0.lock().core.metrics()
    }

    /// The servers that broke the protocol, sorted by name, each with what it did first.
    #[must_use]
    pub fn degraded_servers(&self) -> Vec<DegradedServer> {
        self.owner.0.lock().core.degraded_servers()
    }

    /// What calls cost so far: by server, and by whatever else the ledger sums up.
    #[must_use]
    pub fn costs(&self) -> Costs {
        self.owner.0.lock().core.costs().clone()
    }

    /// The tools that are neither offered nor called until they are accepted: of servers with `pinTools`,
    /// those that are new since the first listing, or another one by now.
    #[must_use]
    pub fn quarantined_tools(&self) -> Vec<QuarantinedTool> {
        self.owner.0.lock().core.quarantined_tools()
    }

    /// Accepts quarantined tools of a server as they are now, by the server's own names, or all of them; what
    /// was accepted comes back.
    ///
    /// # Errors
    /// There is no such server, or a tool of some name is not quarantined; none was accepted then.
    pub fn accept_tools(
        &self,
        peer: &str,
        names: Option<&[&str]>,
    ) -> Result<Vec<QuarantinedTool>, Error> {
        self.owner
            .0
            .with(|state| state.core.accept_tools(peer, names))
    }

    /// All tools of all servers, sorted by canonical name: the one to call them by.
    ///
    /// # Errors
    /// No server could say; what single ones could not is in the [`report`](Self::report).
    pub fn tools(&self) -> Result<Vec<Listed<Tool>>, Error> {
        self.ask(Operation::list_tools())
    }

    /// All resources of all servers.
    ///
    /// # Errors
    /// As for [`tools`](Self::tools).
    pub fn resources(&self) -> Result<Vec<Listed<Resource>>, Error> {
        self.ask(Operation::list_resources())
    }

    /// All resource templates of all servers.
    ///
    /// # Errors
    /// As for [`tools`](Self::tools).
    pub fn resource_templates(&self) -> Result<Vec<Listed<ResourceTemplate>>, Error> {
        self.ask(Operation::list_resource_templates())
    }

    /// All prompts of all servers.
    ///
    /// # Errors
    /// As for [`tools`](Self::tools).
    pub fn prompts(&self) -> Result<Vec<Listed<Prompt>>, Error> {
        self.ask(Operation::list_prompts())
    }

    /// Calls a tool with arguments that serialize to a JSON object; `()` is none.
    ///
    /// # Errors
    /// There is no such tool, it could not be called, or no valid answer came in time;
    /// [`Error::may_have_executed`] tells whether the server may have run it.
    pub fn call_tool(
        &self,
        tool: impl Into<String>,
        arguments: impl Serialize,
    ) -> Result<CallOutcome<CallToolResult>, Error> {
        self.ask(Operation::call(tool, encoded(&arguments)?))
    }

    /// Goes on with a call that was answered with questions, with the answers: here, or in another process
    /// than the one that made the call. Reads and prompts go on with [`run`](Self::run).
    ///
    /// # Errors
    /// As for [`call_tool`](Self::call_tool); [`Usage`](crate::ErrorKind::Usage) when the answers do not fit, or
    /// the server is not the one that asked, or not configured as it was then.
    pub fn resume(
        &self,
        continuation: Continuation,
        responses: InputResponses,
    ) -> Result<CallOutcome<CallToolResult>, Error> {
        self.ask(Operation::resume(continuation, responses))
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// As for [`call_tool`](Self::call_tool).
    pub fn read_resource(
        &self,
        uri: impl Into<String>,
    ) -> Result<CallOutcome<ReadResourceResult>, Error> {
        self.ask(Operation::read(uri))
    }

    /// Gets a prompt, with arguments that serialize to a JSON object of strings; `()` is none.
    ///
    /// # Errors
    /// As for [`call_tool`](Self::call_tool).
    pub fn get_prompt(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> Result<CallOutcome<GetPromptResult>, Error> {
        self.ask(Operation::prompt(name, encoded(&arguments)?))
    }

    /// Asks a server how `value` of an argument may go on, of a prompt (`{"type":"ref/prompt","name":…}`)
    /// or of a resource template (`{"type":"ref/resource","uri":…}`). Arguments that are known already go
    /// with [`run`](Self::run).
    ///
    /// # Errors
    /// As for [`call_tool`](Self::call_tool).
    pub fn complete(
        &self,
        peer: impl Into<String>,
        reference: impl Serialize,
        argument: impl Into<String>,
        value: impl Into<String>,
    ) -> Result<CompleteResult, Error> {
        let reference = operation::encode(&reference)?;
        self.ask(Operation::complete(peer, reference, argument, value))
    }

    /// Listens to change notifications of one server, or of all.
    ///
    /// # Errors
    /// There is no such server, or the client is closed.
    pub fn listen(&self, peer: Option<&str>) -> Result<Listener, Error> {
        Ok(Listener {
            pending: self.submit(Operation::listen(peer))?,
            fetched: VecDeque::new(),
        })
    }

    /// Runs any operation to its end. Whatever is asked about it goes to the handlers; without them nothing is
    /// asked, whatever its [`Options`](crate::Options) say, because nobody could answer.
    ///
    /// # Errors
    /// The operation was not accepted. How an accepted one failed is in its
    /// [`outcome`](Ended::outcome).
    pub fn run(&self, operation: Operation) -> Result<Ended, Error> {
        let handlers = self.handlers.present();
        if handlers == asking::Handlers::default() {
            return self.owner.0.run(operation.attended(handlers));
        }
        Ok(self.attend(operation, None)?.ended())
    }

    /// Calls a tool whose text is told as it comes. A stream that drops is taken up again, from the last
    /// checkpoint where there is one, as long as that is safe; see [`ToolStream::finish`].
    ///
    /// # Errors
    /// The call was not accepted; nothing was sent.
    pub fn call_tool_streaming(
        &self,
        tool: impl Into<String>,
        arguments: impl Serialize,
    ) -> Result<ToolStream, Error> {
        self.stream(Operation::call_streaming(tool, encoded(&arguments)?))
    }

    /// The same with a source of the application's: nothing is sent to the server, whose tool it has to be
    /// all the same. `source` is asked for an iterator over pieces with every attempt; an error of it, its
    /// end without a final piece, and silence are drops.
    ///
    /// `source` is called on the thread that waits for the stream. What it gives is read on a thread of its
    /// own, which nothing can wake: one that is not wanted any more ends with its next piece.
    ///
    /// # Errors
    /// The call was not accepted; nothing was opened.
    pub fn call_tool_streaming_from<I, E>(
        &self,
        tool: impl Into<String>,
        arguments: impl Serialize,
        source: impl FnMut(SourceRequest) -> I + Send + 'static,
    ) -> Result<ToolStream, Error>
    where
        I: Iterator<Item = Result<StreamChunk, E>> + Send + 'static,
        E: fmt::Display + 'static,
    {
        let mut operation = Operation::call_streaming(tool, encoded(&arguments)?);
        let streaming = operation.options.stream.get_or_insert_default();
        streaming.from = StreamFrom::Application;
        self.attend(operation, Some(opener(source)))
    }

    /// A streamed call with options of its own; see [`Options::stream`](crate::Options::stream).
    ///
    /// # Errors
    /// As for [`call_tool_streaming`](Self::call_tool_streaming).
    pub fn stream(&self, operation: Operation) -> Result<ToolStream, Error> {
        self.attend(operation, None)
    }

    /// Starts an operation about which the handlers are asked.
    fn attend(&self, operation: Operation, open: Option<Open>) -> Result<ToolStream, Error> {
        let pending = self.submit(operation.attended(self.handlers.present()))?;
        Ok(ToolStream::new(pending, self.handlers.clone(), open))
    }

    /// Decides whether a request may be sent again, as [`Pending::retry_question`] asked.
    pub fn decide(&self, operation: OperationId, question: Question, retry: bool) {
        let decide = |state: &mut State| state.core.decide(operation, question, retry, state.now);
        self.owner.0.with(decide);
    }

    /// Starts any operation. It is under way when this returns, whether or not somebody waits for it.
    ///
    /// # Errors
    /// The operation was not accepted; nothing was sent.
    pub fn submit(&self, operation: Operation) -> Result<Pending, Error> {
        let submit = |state: &mut State| {
            let (inbox, core, now) = state.parts();
            inbox.submit(core, operation, now)
        };
        Ok(Pending {
            id: self.owner.0.with(submit)?,
            client: self.clone(),
        })
    }

    /// Ends a listening operation from any thread, with its count, and one that waits for input with what is
    /// asked; other operations stay as they are.
    pub fn finish(&self, operation: OperationId) {
        self.owner
            .0
            .with(|state| state.core.finish(operation, state.now));
    }

    /// Cancels an operation from anywhere; one that has ended stays as it is.
    pub fn cancel(&self, operation: OperationId) {
        let cancel = |state: &mut State| state.core.cancel(operation, state.now);
        self.owner.0.with(cancel);
    }

    /// Ends everything in order and in bounded time: operations, then servers. It can be called more
    /// than once and through several handles, and returns when nothing is left.
    pub fn close(&self) {
        self.owner.0.close();
    }

    fn ask<T: Answer>(&self, operation: Operation) -> Result<T, Error> {
        T::from_ended(self.run(operation)?)
    }
}

/// A client that is not started yet; see [`Client::builder`].
///
/// ```
/// # #[cfg(unix)]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::os::unix::net::UnixStream;
/// use mcp_driver_blocking::{Client, Config};
///
/// // Two ends in one process: one for the client, the other for a server on a thread.
/// let (ours, theirs) = UnixStream::pair()?;
/// let builder = Client::builder(Config::default()).stream("embedded", ours.try_clone()?, ours);
/// # drop((builder, theirs));
/// # Ok(())
/// # }
/// # #[cfg(not(unix))]
/// # fn main() {}
/// ```
#[derive(Debug)]
#[must_use = "nothing happens before `start`"]
pub struct ClientBuilder {
    config: Config,
    identity: Identity,
    streams: BTreeMap<String, Pair>,
    handlers: Handlers,
    failure: Option<io::Error>,
}

impl ClientBuilder {
    /// Who the application is and what it can do, as servers are told. Without it they are told the name
    /// and version of this library, and no capability.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = identity;
        self
    }

    /// Who answers when a server needs input: a person who is shown a form, a model, a list of directories.
    /// The [`identity`](Self::identity) has to declare what can be answered; servers of older revisions are
    /// told of it only with this. It is asked on the thread that waits for the outcome, and deadlines stand
    /// still meanwhile. `None` is no answer: the operation ends
    /// with [`CallOutcome::InputRequired`], as all do without this.
    ///
    /// Asked by the methods that wait for an outcome. Operations that are [submitted](Client::submit) ask
    /// through [`Pending::input_needed`].
    pub fn on_input(
        mut self,
        answer: impl Fn(&InputRequired) -> Option<InputResponses> + Send + Sync + 'static,
    ) -> Self {
        self.handlers.input = Some(Arc::new(answer));
        self
    }

    /// Who decides whether a call may be sent again that may have been executed, when only the application
    /// can know: `true` sends it again. Without this it is not. It is asked on the thread that waits for the
    /// outcome, and deadlines run meanwhile.
    ///
    /// Asked by the methods that wait for an outcome. Operations that are [submitted](Client::submit) with
    /// [`Options::ask_retry`](crate::Options::ask_retry) ask through [`Pending::retry_question`].
    pub fn on_retry(
        mut self,
        decide: impl Fn(&RetryQuestion) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.handlers.retry = Some(Arc::new(decide));
        self
    }

    /// The stream to a server that the application reaches by itself: a socket (with `try_clone` for one
    /// of the two), a pair of pipes, an end of `UnixStream::pair`. The configuration has to name that
    /// server as one with a stream. A stream is used once; after it has ended the server cannot be
    /// connected again.
    ///
    /// Both are switched to non-blocking mode, for every duplicate of them too.
    #[cfg(unix)]
    pub fn stream(
        mut self,
        name: impl Into<String>,
        reader: impl Into<std::os::fd::OwnedFd>,
        writer: impl Into<std::os::fd::OwnedFd>,
    ) -> Self {
        let pair = (reader.into(), writer.into());
        self.streams.insert(name.into(), pair);
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

    /// Starts the client and returns at once, while the servers are being connected. Operations can be
    /// submitted right away.
    ///
    /// # Errors
    /// [`Cause::Unavailable`] when the operating system has no descriptors or threads left. What goes
    /// wrong with a server is in the [`report`](Client::report) instead.
    pub fn start(self) -> Result<Client, Error> {
        let started = match self.failure {
            Some(error) => Err(error),
            None => {
                let variable = &mut |name: &str| std::env::var(name).ok();
                let pinned = self.config.pin(variable, &mut executable);
                let identity = self.identity.answering(self.handlers.input.is_some());
                let core = mcp_proto::Client::new(pinned, identity, Instant::ZERO);
                Owner::start(core, self.streams)
            }
        };
        match started {
            Ok(owner) => Ok(Client {
                owner: Arc::new(owner),
                handlers: self.handlers,
            }),
            Err(error) => Err(Error::general(Cause::Unavailable {
                reason: format!("the client could not be started: {error}"),
            })),
        }
    }
}

/// The absolute path of a file that can be executed.
fn executable(path: &str) -> Option<String> {
    let metadata = Path::new(path).metadata().ok()?;
    #[cfg(unix)]
    let runs = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let runs = true;
    let absolute = std::path::absolute(path).ok()?;
    absolute
        .to_str()
        .filter(|_| runs && metadata.is_file())
        .map(Into::into)
}
