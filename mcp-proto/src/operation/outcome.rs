//! What the application gets.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::asking::RetryQuestion;
use crate::continuation::{Continuation, Source, StreamResult, StreamUpdate};
use crate::error::Error;
use crate::ids::{OperationId, PeerId, Question};
use crate::streaming::SourceRequest;
use crate::types::{
    CallToolResult, CompleteResult, GetPromptResult, InputRequired, LogLevel, Prompt,
    ReadResourceResult, Resource, ResourceTemplate, Tool,
};
use crate::wire::Json;

/// What is delivered to the application.
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub enum News {
    /// An operation ended; it is the last word about it.
    Ended(Box<Ended>),
    /// The server needs input for an [`interactive`](crate::Options::interactive) operation, which goes on with
    /// [`Client::answer`](crate::Client::answer) or ends when it is cancelled.
    InputNeeded {
        /// Which operation.
        operation: OperationId,
        /// Which question; an answer to an earlier one is refused.
        question: Question,
        /// What it asks.
        input: Box<InputRequired>,
    },
    /// A server of an older revision no longer waits for an answer to that question: it took it back, or is
    /// gone. Nothing has to be said about it any more.
    InputWithdrawn {
        /// Which operation.
        operation: OperationId,
        /// Which question.
        question: Question,
    },
    /// The text of a [streamed](crate::Options::stream) call goes on, or is taken back.
    StreamUpdate {
        /// Which operation.
        operation: OperationId,
        /// What changes.
        update: StreamUpdate,
    },
    /// Open the source of a streamed call whose source is the application's, in the place of the one that
    /// is open: [`Client::source_opened`](crate::Client::source_opened) and what stands beside it.
    OpenSource {
        /// Which operation.
        operation: OperationId,
        /// With what.
        request: SourceRequest,
    },
    /// Give that source up.
    CloseSource {
        /// Which operation.
        operation: OperationId,
        /// Which attempt.
        source: Source,
    },
    /// A request may have been executed; whether it may be sent again only the application can know
    /// ([`Options::ask_retry`](crate::Options::ask_retry)).
    RetryQuestion(Box<RetryQuestion>),
    /// A server reported progress of an operation: finite and strictly increasing.
    Progress {
        /// Which operation.
        operation: OperationId,
        /// How far.
        progress: ProgressUpdate,
    },
    /// Change notifications for a [`Request::Listen`](crate::Request::Listen) operation wait in
    /// [`Client::take_notifications`](crate::Client::take_notifications).
    Notified {
        /// The listening operation.
        operation: OperationId,
    },
    /// A server's log message, at or above the level that was asked for.
    Log(LogMessage),
    /// A peer became ready, failed or was lost: the report has changed.
    PeerChanged {
        /// Which peer.
        peer: PeerId,
    },
    /// After [`Client::close`](crate::Client::close): every link is released; nothing else follows.
    Closed,
}

/// How far an operation is (R42): each update is further than the one before.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ProgressUpdate {
    /// How far; finite and not negative.
    pub progress: f64,
    /// The value at the end, where the server knows it; finite.
    pub total: Option<f64>,
    /// Words for a person.
    pub message: Option<String>,
}

impl ProgressUpdate {
    /// An update without total and message.
    #[must_use]
    pub const fn new(progress: f64) -> Self {
        Self {
            progress,
            total: None,
            message: None,
        }
    }
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// Which operation.
    pub operation: OperationId,
    /// The configured name of the peer that served it, once it is known.
    pub peer: Option<String>,
    /// The server's own name of the tool, for calls, once it is known.
    pub tool: Option<String>,
    /// How.
    pub outcome: Outcome,
}

/// The three ways of ending. A cancelled operation has failed with
/// [`Cause::Cancelled`](crate::error::Cause::Cancelled).
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)] // boxed where it is queued
pub enum Outcome {
    /// The answer. A tool that says `isError` has answered too.
    Complete(Reply),
    /// The server needs input first (R30); not an error.
    InputRequired(PendingInput),
    /// No answer.
    Failed(Error),
}

/// What a server needs to know before it can answer (R30), and everything that is needed to go on (R31).
#[derive(Clone, Debug, PartialEq)]
pub struct PendingInput {
    /// What it asks.
    pub input: InputRequired,
    /// The request as a value, which can be stored and taken up by another client:
    /// [`Operation::resume`](crate::Operation::resume).
    pub continuation: Continuation,
}

/// The answers, by kind of operation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reply {
    /// To [`Request::ListTools`](crate::Request::ListTools): sorted by name, which is the canonical one without a peer (R80).
    Tools(Vec<Listed<Tool>>),
    /// To [`Request::ListResources`](crate::Request::ListResources).
    Resources(Vec<Listed<Resource>>),
    /// To [`Request::ListResourceTemplates`](crate::Request::ListResourceTemplates).
    ResourceTemplates(Vec<Listed<ResourceTemplate>>),
    /// To [`Request::ListPrompts`](crate::Request::ListPrompts).
    Prompts(Vec<Listed<Prompt>>),
    /// To [`Request::CallTool`](crate::Request::CallTool).
    Call(CallToolResult),
    /// To a [streamed](crate::Options::stream) call.
    Stream(StreamResult),
    /// To [`Request::ReadResource`](crate::Request::ReadResource).
    Read(ReadResourceResult),
    /// To [`Request::GetPrompt`](crate::Request::GetPrompt).
    Prompt(GetPromptResult),
    /// To [`Request::Complete`](crate::Request::Complete).
    Completion(CompleteResult),
    /// To [`Request::Listen`](crate::Request::Listen): how many notifications came.
    Listened {
        /// The count, coalesced ones included.
        notifications: u64,
    },
    /// To [`Request::Settle`](crate::Request::Settle).
    Settled,
}

impl Reply {
    /// Whether it is a tool's word that it ran and failed.
    #[must_use]
    pub fn is_tool_error(&self) -> bool {
        match self {
            Self::Call(result) => result.is_error,
            Self::Stream(stream) => stream.answer.as_ref().is_some_and(|answer| answer.is_error),
            _ => false,
        }
    }
}

/// A list entry with its canonical name.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed<T> {
    /// Unique among all peers; the server's own name when the list was asked of one peer.
    pub name: String,
    /// The peer that has it.
    pub peer: PeerId,
    /// The descriptor as the server sent it.
    pub item: T,
}

/// One log message of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogMessage {
    /// The configured name of the peer.
    pub peer: String,
    /// How severe it is.
    pub level: LogLevel,
    /// The part of the server that speaks, if it says so.
    pub logger: Option<String>,
    /// What it says: any JSON value.
    pub data: Json,
}

/// A change notification, for listeners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The configured name of the peer.
    pub peer: String,
    /// `notifications/tools/list_changed`, …
    pub method: String,
    /// Its parameters as they came.
    pub params: Option<Json>,
}
