//! The client handle.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use mcp_proto::asking::RetryQuestion;
use mcp_proto::continuation::Continuation;
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
use tokio::io::{AsyncRead, AsyncWrite};

use crate::links::Stream;
use crate::operation::{Listener, Pending};
use crate::shared::{Owner, Shared, State};
use crate::streaming::{Handlers, Open, ToolStream, opener};

/// A client of any number of servers: a handle that can be cloned and used from any task or thread.
///
/// Names and URIs are canonical (see [`tools`](Self::tools)); to use those of one server, submit an
/// [`Operation`] [`on`](Operation::on) it. Dropping the future of a method cancels the operation.
///
/// When the last handle is dropped without [`close`](Self::close), everything ends at once: processes
/// are killed with their process groups, and streams are dropped.
#[derive(Clone, Debug)]
pub struct Client {
    owner: Arc<Owner>,
    handlers: Handlers,
}

impl Client {
    /// Starts a client of the configured servers and waits until each of them is ready or has failed.
    ///
    /// A server that failed is not an error here: the [`report`](Self::report) names it with the reason
    /// and the remedy, and the others can be used.
    ///
    /// # Errors
    /// The core could not start at all.
    ///
    /// # Panics
    /// Outside a tokio runtime, or in one without I/O or time enabled.
    pub async fn connect(config: Config) -> Result<Self, Error> {
        let client = Self::builder(config).start();
        client.settled().await?;
        Ok(client)
    }

    /// A client with more than the defaults.
    pub fn builder(config: Config) -> ClientBuilder {
        ClientBuilder {
            config,
            identity: Identity::default(),
            streams: BTreeMap::new(),
            handlers: Handlers::default(),
        }
    }

    /// Waits until every server is ready or has failed.
    ///
    /// # Errors
    /// The client was closed meanwhile.
    pub async fn settled(&self) -> Result<(), Error> {
        self.ask(Operation::settle()).await
    }

    /// What became of the servers, and what they offer under which names.
    #[must_use]
    pub fn report(&self) -> Report {
        self.owner.0.look(mcp_proto::Client::report)
    }

    /// Per server: what was run and what came back.
    #[must_use]
    pub fn diagnoses(&self) -> Vec<Diagnosis> {
        self.owner.0.look(mcp_proto::Client::diagnoses)
    }

    /// What was counted and measured of each server, since the client began.
    #[must_use]
    pub fn metrics(&self) -> MetricsSnapshot {
        self.owner.0.look(mcp_proto::Client::metrics)
    }

    /// The servers that broke the protocol, sorted by name, each with what it did first.
    #[must_use]
    pub fn degraded_servers(&self) -> Vec<DegradedServer> {
        self.owner.0.look(mcp_proto::Client::degraded_servers)
    }

    /// What calls cost so far: by server, and by whatever else the ledger sums up.
    #[must_use]
    pub fn costs(&self) -> Costs {
        self.owner.0.look(|core| core.costs().clone())
    }

    /// The tools that are neither offered nor called until they are accepted: of servers with `pinTools`,
    /// those that are new since the first listing, or another one by now.
    #[must_use]
    pub fn quarantined_tools(&self) -> Vec<QuarantinedTool> {
        self.owner.0.look(mcp_proto::Client::quarantined_tools)
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
            .with(|state, _| state.core.accept_tools(peer, names))
    }

    /// All tools of all servers, sorted by canonical name: the one to call them by.
    ///
    /// # Errors
    /// No server could say; what single ones could not is in the [`report`](Self::report).
    pub async fn tools(&self) -> Result<Vec<Listed<Tool>>, Error> {
        self.ask(Operation::list_tools()).await
    }

    /// All resources of all servers.
    ///
    /// # Errors
    /// As for [`tools`](Self::tools).
    pub async fn resources(&self) -> Result<Vec<Listed<Resource>>, Error> {
        self.ask(Operation::list_resources()).await
    }

    /// All resource templates of all servers.
    ///
    /// # Errors
    /// As for [`tools`](Self::tools).
    pub async fn resource_templates(&self) -> Result<Vec<Listed<ResourceTemplate>>, Error> {
        self.ask(Operation::list_resource_templates()).await
    }

    /// All prompts of all servers.
    ///
    /// # Errors
    /// As for [`tools`](Self::tools).
    pub async fn prompts(&self) -> Result<Vec<Listed<Prompt>>, Error> {
        self.ask(Operation::list_prompts()).await
    }

    /// Calls a tool with arguments that serialize to a JSON object; `()` is none.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_driver_tokio::Client) -> Result<(), mcp_driver_tokio::Error> {
    /// use mcp_driver_tokio::CallOutcome;
    ///
    /// let arguments = serde_json::json!({"timezone": "Asia/Tokyo"});
    /// match client.call_tool("time/get_current_time", arguments).await? {
    ///     CallOutcome::Complete(result) => println!("{result:?}"),
    ///     CallOutcome::InputRequired(questions) => println!("{questions:?}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// There is no such tool, it could not be called, or no valid answer came in time;
    /// [`Error::may_have_executed`] tells whether the server may have run it.
    pub async fn call_tool(
        &self,
        tool: impl Into<String>,
        arguments: impl Serialize,
    ) -> Result<CallOutcome<CallToolResult>, Error> {
        self.ask(Operation::call(tool, encoded(&arguments)?)).await
    }

    /// Goes on with a call that was answered with questions, with the answers: here, or in another process
    /// than the one that made the call. Reads and prompts go on with [`run`](Self::run).
    ///
    /// # Errors
    /// As for [`call_tool`](Self::call_tool); [`Usage`](crate::ErrorKind::Usage) when the answers do not fit, or
    /// the server is not the one that asked, or not configured as it was then.
    pub async fn resume(
        &self,
        continuation: Continuation,
        responses: InputResponses,
    ) -> Result<CallOutcome<CallToolResult>, Error> {
        self.ask(Operation::resume(continuation, responses)).await
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// As for [`call_tool`](Self::call_tool).
    pub async fn read_resource(
        &self,
        uri: impl Into<String>,
    ) -> Result<CallOutcome<ReadResourceResult>, Error> {
        self.ask(Operation::read(uri)).await
    }

    /// Gets a prompt, with arguments that serialize to a JSON object of strings; `()` is none.
    ///
    /// # Errors
    /// As for [`call_tool`](Self::call_tool).
    pub async fn get_prompt(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> Result<CallOutcome<GetPromptResult>, Error> {
        self.ask(Operation::prompt(name, encoded(&arguments)?))
            .await
    }

    /// Asks a server how `value` of an argument may go on, of a prompt (`{"type":"ref/prompt","name":…}`)
    /// or of a resource template (`{"type":"ref/resource","uri":…}`). Arguments that are known already go
    /// with [`run`](Self::run).
    ///
    /// # Errors
    /// As for [`call_tool`](Self::call_tool).
    pub async fn complete(
        &self,
        peer: impl Into<String>,
        reference: impl Serialize,
        argument: impl Into<String>,
        value: impl Into<String>,
    ) -> Result<CompleteResult, Error> {
        let reference = operation::encode(&reference)?;
        self.ask(Operation::complete(peer, reference, argument, value))
            .await
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
    pub async fn run(&self, operation: Operation) -> Result<Ended, Error> {
        Ok(self.attend(operation, None)?.ended().await)
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
    /// all the same. `source` is asked for a stream of pieces with every attempt; an error of that stream,
    /// its end without a final piece, and silence are drops. It is read in a task of its own.
    ///
    /// # Errors
    /// The call was not accepted; nothing was opened.
    pub fn call_tool_streaming_from<S, E>(
        &self,
        tool: impl Into<String>,
        arguments: impl Serialize,
        source: impl FnMut(SourceRequest) -> S + Send + 'static,
    ) -> Result<ToolStream, Error>
    where
        S: futures_core::Stream<Item = Result<StreamChunk, E>> + Send + 'static,
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
        let decide = |state: &mut State, now| state.core.decide(operation, question, retry, now);
        self.owner.0.with(decide);
    }

    /// Starts any operation. It is under way when this returns, whether or not the returned future is
    /// polled.
    ///
    /// # Errors
    /// The operation was not accepted; nothing was sent.
    pub fn submit(&self, operation: Operation) -> Result<Pending, Error> {
        Ok(Pending {
            id: self.owner.0.submit(operation)?,
            owner: self.owner.clone(),
        })
    }

    /// Cancels an operation from anywhere; one that has ended stays as it is.
    pub fn cancel(&self, operation: OperationId) {
        let cancel = |state: &mut State, now| state.core.cancel(operation, now);
        self.owner.0.with(cancel);
    }

    /// Ends a listening operation from anywhere, with its count, and one that waits for input with what is
    /// asked; other operations stay as they are.
    pub fn finish(&self, operation: OperationId) {
        self.owner
            .0
            .with(|state, now| state.core.finish(operation, now));
    }

    /// Ends everything in order and in bounded time: operations, then servers. It can be called more
    /// than once and through several handles; dropping the returned future does not stop the closing.
    pub async fn close(&self) {
        self.owner.0.close().await;
    }

    async fn ask<T: Answer>(&self, operation: Operation) -> Result<T, Error> {
        T::from_ended(self.run(operation).await?)
    }
}

/// A client that is not started yet; see [`Client::builder`].
#[must_use = "nothing happens before `start`"]
pub struct ClientBuilder {
    config: Config,
    identity: Identity,
    streams: BTreeMap<String, Box<dyn Stream>>,
    handlers: Handlers,
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
    /// told of it only with this. Deadlines stand still while it works; cancelling ends it. `None` is no answer: the operation ends with
    /// [`CallOutcome::InputRequired`], as all do without this.
    ///
    /// Asked by the methods that wait for an outcome. Operations that are [submitted](Client::submit) ask
    /// through [`Pending::input_needed`].
    pub fn on_input<F>(
        mut self,
        answer: impl Fn(Box<InputRequired>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Option<InputResponses>> + Send + 'static,
    {
        self.handlers.input = Some(Arc::new(move |input| Box::pin(answer(input))));
        self
    }

    /// Who decides whether a call may be sent again that may have been executed, when only the application
    /// can know: `true` sends it again. Without this it is not. Deadlines run while this works.
    ///
    /// Asked by the methods that wait for an outcome. Operations that are [submitted](Client::submit) with
    /// [`Options::ask_retry`](crate::Options::ask_retry) ask through [`Pending::retry_question`].
    pub fn on_retry<F>(
        mut self,
        decide: impl Fn(Box<RetryQuestion>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = bool> + Send + 'static,
    {
        self.handlers.retry = Some(Arc::new(move |asked| Box::pin(decide(asked))));
        self
    }

    /// The stream to a server that the application reaches by itself: a socket, an in-memory duplex, the
    /// pipe of a container. The configuration has to name that server as one with a stream. A stream is
    /// used once; after it has ended the server cannot be connected again.
    ///
    /// The stream is polled with the client locked, so it must not use the client itself.
    pub fn stream(
        mut self,
        name: impl Into<String>,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        self.streams.insert(name.into(), Box::new(stream));
        self
    }

    /// Starts the client and returns at once, while the servers are being connected. Operations can be
    /// submitted right away.
    ///
    /// # Panics
    /// Outside a tokio runtime, or in one without I/O or time enabled.
    pub fn start(self) -> Client {
        let variable = &mut |name: &str| std::env::var(name).ok();
        let pinned = self.config.pin(variable, &mut executable);
        let identity = self.identity.answering(self.handlers.input.is_some());
        let core = mcp_proto::Client::new(pinned, identity, Instant::ZERO);
        let shared = Shared::start(core, self.streams);
        Client {
            owner: Arc::new(Owner(shared)),
            handlers: self.handlers,
        }
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").finish_non_exhaustive()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Without a handle nobody can be told anything: no task may go on.
    #[tokio::test]
    async fn tasks_end_with_the_last_handle() {
        let client = Client::builder(Config::default()).start();
        let shared = Arc::downgrade(&client.owner.0);
        let other = client.clone();
        drop(client);
        tokio::task::yield_now().await;
        assert!(shared.upgrade().is_some());

        drop(other);
        while shared.upgrade().is_some() {
            tokio::task::yield_now().await;
        }
    }
}
