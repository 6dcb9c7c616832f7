//! What a server can do wrong (R60).

use core::fmt;

/// One way in which a server broke the protocol. Fieldless, so that it can be counted, compared and
/// kept: a degraded peer keeps the first one (R61). The place and the words travel beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Violation {
    /// The message is a JSON array; a message is one object.
    Batch,
    /// A member stands twice in one object of the envelope.
    DuplicateMember,
    /// Two tools of one server have the same name; both are left out (R22).
    DuplicateTool,
    /// A `tools/list` entry (or that of another list) without its name or identifier.
    EntryWithoutName,
    /// Both `result` and `error` stand in one response.
    BothResultAndError,
    /// An input request that the client did not declare a capability for.
    InputNotDeclared,
    /// `input_required` where it is not allowed, or without either of its members.
    InputRequiredInvalid,
    /// A content block that is no object or lacks a member of its type.
    MalformedContent,
    /// `error` is no object with an integer code and a string message.
    MalformedError,
    /// The result lacks a required member of its method, or has it with a wrong type.
    MalformedResult,
    /// Neither `result` nor `error` stands in a response.
    NeitherResultNorError,
    /// The line is no JSON.
    NotJson,
    /// The message is JSON but no object.
    NotObject,
    /// A structured result does not fit the tool's output schema (R63), where that was to be checked.
    OutputMismatch,
    /// The bytes are no UTF-8.
    NotUtf8,
    /// `result` is no object.
    ResultNotObject,
    /// A server-initiated request in the modern era.
    ServerRequest,
    /// Arrays and objects nested deeper than the limit.
    TooDeep,
    /// A modern result without `resultType`.
    ResultTypeMissing,
    /// A `resultType` that nobody advertised.
    ResultTypeUnknown,
    /// `jsonrpc` is missing or is not `"2.0"`.
    WrongJsonrpc,
    /// An id of a type that ids cannot have (null, boolean, fraction, object, array).
    WrongId,
    /// A stream was dropped on every attempt (R32).
    StreamDropped,
    /// Text on standard output that is no message, after the first message (R62).
    Noise,
}

impl Violation {
    /// A short lower-case description without the place, for messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Batch => "message is a JSON array, not one object",
            Self::DuplicateMember => "member stands twice in one object",
            Self::DuplicateTool => "two tools have the same name",
            Self::EntryWithoutName => "list entry has no name",
            Self::BothResultAndError => "response has both result and error",
            Self::InputNotDeclared => "server asks for input of a kind that was not declared",
            Self::InputRequiredInvalid => "input_required is not valid here",
            Self::MalformedContent => "malformed content block",
            Self::MalformedError => "malformed error object",
            Self::MalformedResult => "malformed result",
            Self::NeitherResultNorError => "response has neither result nor error",
            Self::NotJson => "not JSON",
            Self::NotObject => "message is not an object",
            Self::NotUtf8 => "not UTF-8",
            Self::OutputMismatch => "structured result does not fit the output schema",
            Self::ResultNotObject => "result is not an object",
            Self::ServerRequest => "server sent a request, which this revision forbids",
            Self::TooDeep => "nested too deeply",
            Self::ResultTypeMissing => "result has no resultType",
            Self::ResultTypeUnknown => "unknown resultType",
            Self::WrongJsonrpc => "jsonrpc is not \"2.0\"",
            Self::WrongId => "id is neither a string nor an integer",
            Self::StreamDropped => "stream was dropped on every attempt",
            Self::Noise => "text on standard output that is no message",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A violation together with where and what: the detail is bounded, printable and free of control
/// characters, so that it can go to a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What was broken.
    pub violation: Violation,
    /// Where and with what, for a person: `content[0].name is missing`.
    pub detail: alloc::string::String,
}

impl Fault {
    /// A fault with its detail.
    #[must_use]
    pub fn new(violation: Violation, detail: impl Into<alloc::string::String>) -> Self {
        Self {
            violation,
            detail: detail.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.detail.is_empty() {
            return self.violation.fmt(f);
        }
        write!(f, "{}: {}", self.violation, self.detail)
    }
}
