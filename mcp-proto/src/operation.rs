//! What the application asks for, and what it gets.

mod outcome;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};

use serde::Serialize;

use crate::asking::Handlers;
use crate::continuation::Continuation;
use crate::cost::CostReading;
use crate::error::{Cause, Error};
use crate::safety::IdempotencyKey;
use crate::streaming::Streaming;
use crate::time::Duration;
use crate::types::{InputRequired, InputResponses};
use crate::wire::Json;

pub use outcome::{
    Ended, Listed, LogMessage, News, Notification, Outcome, PendingInput, ProgressUpdate, Reply,
};

/// One thing to do.
///
/// With a peer, names and URIs are that server's own; without one they are canonical (R80) and the
/// operation waits until every peer has settled, because only then it is known whose they are.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Operation {
    /// The configured name of the peer, or `None` for canonical names and "all peers".
    pub peer: Option<String>,
    /// What to do.
    pub request: Request,
    /// How long, and with what beside it.
    pub options: Options,
}

/// The kinds of operation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Request {
    /// `tools/list`, all pages.
    ListTools,
    /// `resources/list`, all pages.
    ListResources,
    /// `resources/templates/list`, all pages.
    ListResourceTemplates,
    /// `prompts/list`, all pages.
    ListPrompts,
    /// `tools/call`.
    CallTool(ToolCall),
    /// `resources/read`.
    ReadResource {
        /// The URI.
        uri: String,
    },
    /// `prompts/get`.
    GetPrompt {
        /// The prompt's name.
        name: String,
        /// A JSON object of strings.
        arguments: Option<Json>,
    },
    /// `completion/complete`; needs a peer.
    Complete {
        /// The reference: `{"type":"ref/prompt","name":…}` or `{"type":"ref/resource","uri":…}`.
        reference: Json,
        /// The argument that is being typed.
        argument: String,
        /// What has been typed so far.
        value: String,
        /// Arguments that are known already, a JSON object of strings.
        context: Option<Json>,
    },
    /// A request that was answered with questions, taken up again with the answers, by this client or by
    /// another one (R31); see [`Operation::resume`]. It is the same logical request: a call keeps its place
    /// in the run and its trace keys.
    Resume {
        /// The request, and what was asked.
        continuation: Box<Continuation>,
        /// The answers.
        responses: InputResponses,
    },
    /// Change notifications as they come, until [`Client::finish`](crate::Client::finish) or cancellation.
    Listen,
    /// Completes once every peer is ready or has failed.
    Settle,
}

/// The parameters of a tool call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolCall {
    /// The tool's name: canonical without a peer, the server's own with one.
    pub tool: String,
    /// A JSON object; `None` is `{}`.
    pub arguments: Option<Json>,
}

/// What goes with an operation whatever its kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Longest silence, instead of the peer's `timeoutMs`.
    pub idle_timeout: Option<Duration>,
    /// Longest duration, instead of the peer's `absoluteTimeoutMs`; progress does not extend it (R41).
    pub absolute_timeout: Option<Duration>,
    /// Caps both of the deadlines above, wherever they come from: the operation takes no longer, be it of
    /// one part or of several. Waiting for a peer that is still connecting does not count.
    pub total_timeout: Option<Duration>,
    /// Ask the server for progress notifications.
    pub progress: bool,
    /// Keep the operation open when the server needs input: [`News::InputNeeded`] says what for, and
    /// [`Client::answer`](crate::Client::answer) goes on. Its deadlines stand still meanwhile. Otherwise it
    /// ends with [`Outcome::InputRequired`].
    pub interactive: bool,
    /// Stream the call: its text is told as it comes ([`News::StreamUpdate`]), and a stream that drops is
    /// taken up again (R32). For calls only; it ends with [`Reply::Stream`], also when it is cancelled.
    pub stream: Option<Streaming>,
    /// Ask the application when only it can know whether a request may be sent again:
    /// [`News::RetryQuestion`]. Otherwise it is not (R34).
    pub ask_retry: bool,
    /// Additional `_meta` members, a JSON object; reserved names are refused (R5).
    pub meta: Option<Json>,
    /// Check the structured result of a call against the tool's output schema (R63), also where `validateOutput`
    /// is not set for the peer: [`CallToolResult::output_check`](crate::types::CallToolResult::output_check). Refused by a build without the feature
    /// `schema`.
    pub validate_output: bool,
    /// What a call costs, instead of what the configuration says (R50): `0.25.into()` dollars, or an exact
    /// [`NanoUsd`](crate::NanoUsd). It is recorded once, when the call has ended, unless the call provably did not run.
    pub cost: Option<CostReading>,
    /// The application's idempotency key (R33).
    pub idempotency_key: Option<String>,
    /// Answers to the input requests of an earlier round: a JSON object from key to response. For calls,
    /// reads and prompts only (R30).
    pub input_responses: Option<Json>,
    /// The `requestState` of that round as the JSON string it arrived as, echoed byte-exactly. For calls,
    /// reads and prompts only (R30).
    pub request_state: Option<Json>,
}

impl Operation {
    /// An operation under canonical names, with default options.
    #[must_use]
    pub fn new(request: Request) -> Self {
        Self {
            peer: None,
            request,
            options: Options::default(),
        }
    }

    /// The same for one peer.
    #[must_use]
    pub fn on(mut self, peer: impl Into<String>) -> Self {
        self.peer = Some(peer.into());
        self
    }

    /// The same with these options.
    #[must_use]
    pub fn with(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// The same as it is run to its end by a driver, which asks these handlers meanwhile and nobody else: what
    /// nobody can answer is not asked, so that nothing waits for an answer that cannot come.
    #[must_use]
    pub fn attended(mut self, handlers: Handlers) -> Self {
        self.options.interactive = handlers.input;
        self.options.ask_retry = handlers.retry;
        self
    }

    /// The same once more, with responses to the questions that it was answered with, and with the state
    /// that came with them (R30).
    #[must_use]
    pub fn answering(mut self, input: &InputRequired, responses: impl Into<Json>) -> Self {
        self.options.input_responses = Some(responses.into());
        let state = input.state.as_ref();
        self.options.request_state = state.map(|state| state.as_json().clone());
        self
    }

    /// The request of a continuation once more, with the answers to what was asked. It goes to the peer that
    /// asked, which has to be configured as it was then.
    #[must_use]
    pub fn resume(continuation: Continuation, responses: InputResponses) -> Self {
        let peer = continuation.request().pin().peer.clone();
        let continuation = Box::new(continuation);
        Self::new(Request::Resume {
            continuation,
            responses,
        })
        .on(peer)
    }

    /// All tools.
    #[must_use]
    pub fn list_tools() -> Self {
        Self::new(Request::ListTools)
    }

    /// All resources.
    #[must_use]
    pub fn list_resources() -> Self {
        Self::new(Request::ListResources)
    }

    /// All resource templates.
    #[must_use]
    pub fn list_resource_templates() -> Self {
        Self::new(Request::ListResourceTemplates)
    }

    /// All prompts.
    #[must_use]
    pub fn list_prompts() -> Self {
        Self::new(Request::ListPrompts)
    }

    /// A tool call with its [`arguments`], a JSON object.
    #[must_use]
    pub fn call(tool: impl Into<String>, arguments: Option<Json>) -> Self {
        let tool = tool.into();
        Self::new(Request::CallTool(ToolCall { tool, arguments }))
    }

    /// A tool call whose text is told as it comes, and which survives dropped streams (R32).
    #[must_use]
    pub fn call_streaming(tool: impl Into<String>, arguments: Option<Json>) -> Self {
        let mut operation = Self::call(tool, arguments);
        operation.options.stream = Some(Streaming::default());
        operation
    }

    /// The contents of a resource.
    #[must_use]
    pub fn read(uri: impl Into<String>) -> Self {
        Self::new(Request::ReadResource { uri: uri.into() })
    }

    /// A prompt with its [`arguments`], a JSON object of strings.
    #[must_use]
    pub fn prompt(name: impl Into<String>, arguments: Option<Json>) -> Self {
        let name = name.into();
        Self::new(Request::GetPrompt { name, arguments })
    }

    /// How an argument of a prompt or of a resource template of that peer may go on, with nothing known
    /// of the other arguments.
    #[must_use]
    pub fn complete(
        peer: impl Into<String>,
        reference: Json,
        argument: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        let request = Request::Complete {
            reference,
            argument: argument.into(),
            value: value.into(),
            context: None,
        };
        Self::new(request).on(peer)
    }

    /// Change notifications of one peer, or of all.
    #[must_use]
    pub fn listen(peer: Option<&str>) -> Self {
        let mut operation = Self::new(Request::Listen);
        operation.peer = peer.map(Into::into);
        operation
    }

    /// The moment at which every peer is ready or has failed.
    #[must_use]
    pub fn settle() -> Self {
        Self::new(Request::Settle)
    }
}

/// Arguments as JSON; those that serialize to `null`, like `()` and `None`, are none.
///
/// ```
/// let arguments = std::collections::BTreeMap::from([("timezone", "Asia/Tokyo")]);
/// let json = mcp_proto::operation::arguments(&arguments)?;
/// assert_eq!(json.unwrap().as_str(), r#"{"timezone":"Asia/Tokyo"}"#);
/// assert_eq!(mcp_proto::operation::arguments(&())?, None);
/// # Ok::<(), mcp_proto::Error>(())
/// ```
///
/// # Errors
/// [`Cause::Usage`] when they cannot be written as JSON, or as something else than an object.
pub fn arguments(arguments: &(impl Serialize + ?Sized)) -> Result<Option<Json>, Error> {
    let json = encode(arguments)?;
    let json = Some(json).filter(|json| json.as_str() != "null");
    must_begin(json.as_ref(), '{', "arguments").map_err(Error::general)?;
    Ok(json)
}

/// Any value as JSON.
///
/// # Errors
/// [`Cause::Usage`] when it cannot be written as JSON.
pub fn encode(value: &(impl Serialize + ?Sized)) -> Result<Json, Error> {
    Json::encode(value).map_err(|error| Error::general(Cause::Usage(error.to_string())))
}

/// Refuses what could not be sent as valid parameters, before anything is kept or sent.
pub(crate) fn check(request: &Request, options: &Options) -> Result<(), Cause> {
    match request {
        Request::CallTool(ToolCall { arguments, .. }) | Request::GetPrompt { arguments, .. } => {
            must_begin(arguments.as_ref(), '{', "arguments")?;
        }
        Request::Complete {
            reference, context, ..
        } => {
            must_begin(Some(reference), '{', "reference")?;
            must_begin(context.as_ref(), '{', "context")?;
        }
        _ => {}
    }
    let Options {
        input_responses,
        request_state,
        ..
    } = options;
    if options.stream.is_some() && !matches!(request, Request::CallTool(_)) {
        return Err(Cause::Usage("only a call can be streamed".into()));
    }
    if let Some(key) = &options.idempotency_key {
        let checked = IdempotencyKey::given(key.as_str());
        checked.map_err(|error| Cause::Usage(error.to_string()))?;
    }
    must_begin(input_responses.as_ref(), '{', "input_responses")?;
    must_begin(request_state.as_ref(), '"', "request_state")?;
    let continues = input_responses.is_some() || request_state.is_some();
    if continues && !request.may_need_input() {
        return Err(Cause::Usage(
            "input_responses and request_state go with calls, reads and prompts only".into(),
        ));
    }
    Ok(())
}

/// A JSON text tells by its first character whether it is an object or a string.
fn must_begin(json: Option<&Json>, first: char, field: &str) -> Result<(), Cause> {
    let kind = if first == '{' { "object" } else { "string" };
    match json {
        Some(json) if !json.as_str().starts_with(first) => {
            Err(Cause::Usage(format!("{field} must be a JSON {kind}")))
        }
        _ => Ok(()),
    }
}

impl Request {
    /// Whether a server may ask for input before it answers (R30).
    pub(crate) const fn may_need_input(&self) -> bool {
        matches!(
            self,
            Self::CallTool(_)
                | Self::ReadResource { .. }
                | Self::GetPrompt { .. }
                | Self::Resume { .. }
        )
    }
}
