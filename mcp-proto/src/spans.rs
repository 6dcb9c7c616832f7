//! Spans of calls, by OpenTelemetry's conventions for MCP (feature `tracing`, R51).
//!
//! The spans are `tracing`'s. A subscriber that exports to OpenTelemetry (the `tracing-opentelemetry`
//! crate) understands the fields `otel.name`, `otel.kind`, `otel.status_code` and
//! `otel.status_description`; all other fields are attributes of the conventions. Neither arguments nor
//! results are recorded: they may be anybody's secrets.
//!
//! spec: OpenTelemetry semantic conventions for generative AI, "Model Context Protocol", client spans

use alloc::string::{String, ToString};
use core::fmt;

use tracing::Span;
use tracing::field::Empty;

use crate::config::TransportKind;
use crate::error::{Cause, Error};
use crate::operation::Outcome;
use crate::version::Version;
use crate::wire::printable;

/// The longest text that is recorded, in bytes; what is longer is cut.
const TEXT_BYTES: usize = 256;

/// What is known of a request when it is sent.
#[derive(Clone, Copy, Debug)]
pub struct CallFacts<'a> {
    /// The configured name of the server.
    pub peer: &'a str,
    /// The method: `tools/call`, …
    pub method: &'static str,
    /// What the method is applied to.
    pub target: Target<'a>,
    /// The id of the request, where it has one.
    pub request_id: Option<u64>,
    /// The revision that is spoken, once it is agreed.
    pub version: Option<Version>,
    /// What the request travels over.
    pub transport: TransportKind,
}

/// What a method is applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target<'a> {
    /// Nothing in particular: a list.
    None,
    /// A prompt, by name.
    Prompt(&'a str),
    /// A resource, by URI. It is an attribute, but no part of the span's name: there are too many.
    Resource(&'a str),
    /// A tool, by the server's own name.
    Tool(&'a str),
}

/// The span of one request, from when it is sent until it has an outcome. Dropped, it ends without one.
///
/// ```
/// use mcp_proto::config::TransportKind;
/// use mcp_proto::operation::Reply;
/// use mcp_proto::spans::{CallFacts, CallSpan, Target};
/// use mcp_proto::{Outcome, Version};
///
/// let span = CallSpan::open(&CallFacts {
///     peer: "git",
///     method: "tools/call",
///     target: Target::Tool("diff"),
///     request_id: Some(7),
///     version: Some(Version::V2026_07_28),
///     transport: TransportKind::Stdio,
/// });
/// span.close(&Outcome::Complete(Reply::Settled));
/// ```
#[derive(Clone, Debug)]
#[must_use = "the span ends when this is dropped"]
pub struct CallSpan(Span);

impl CallSpan {
    /// Opens a span under the one that is current.
    pub fn open(facts: &CallFacts<'_>) -> Self {
        Self::open_under(facts, &Span::current())
    }

    /// Opens a span under that one: the application's, where the request is sent from somewhere else.
    pub fn open_under(facts: &CallFacts<'_>, parent: &Span) -> Self {
        let span = tracing::info_span!(
            parent: parent.id(),
            "mcp.client",
            "otel.name" = %Name(facts),
            "otel.kind" = "client",
            "otel.status_code" = Empty,
            "otel.status_description" = Empty,
            "mcp.method.name" = facts.method,
            "mcp.protocol.version" = facts.version.map(Version::as_str),
            "mcp.resource.uri" = facts.target.resource().as_deref(),
            "gen_ai.operation.name" = facts.target.tool().map(|_| "execute_tool"),
            "gen_ai.tool.name" = facts.target.tool().as_deref(),
            "gen_ai.prompt.name" = facts.target.prompt().as_deref(),
            "jsonrpc.request.id" = facts.request_id.map(|id| id.to_string()).as_deref(),
            "network.transport" = network_transport(facts.transport),
            "service.peer.name" = bounded(facts.peer).as_str(),
            "error.type" = Empty,
            "rpc.response.status_code" = Empty,
        );
        Self(span)
    }

    /// Records how it ended and closes it.
    pub fn close(self, outcome: &Outcome) {
        match outcome {
            Outcome::Complete(reply) if reply.is_tool_error() => self.fail("tool_error"),
            Outcome::Complete(_) | Outcome::InputRequired(_) => {}
            Outcome::Failed(error) => self.record(error),
        }
    }

    /// The span, to enter it or to record more of it.
    #[must_use]
    pub const fn span(&self) -> &Span {
        &self.0
    }

    fn record(&self, error: &Error) {
        let Cause::Rpc(rpc) = &error.cause else {
            return self.fail(error.kind().as_str());
        };
        let code = rpc.code.to_string();
        self.fail(&code);
        self.0.record("rpc.response.status_code", code.as_str());
        let message = bounded(&rpc.message);
        self.0.record("otel.status_description", message.as_str());
    }

    fn fail(&self, error_type: &str) {
        self.0.record("error.type", error_type);
        self.0.record("otel.status_code", "ERROR");
    }
}

impl Target<'_> {
    fn tool(self) -> Option<String> {
        match self {
            Self::Tool(name) => Some(bounded(name)),
            _ => None,
        }
    }

    fn prompt(self) -> Option<String> {
        match self {
            Self::Prompt(name) => Some(bounded(name)),
            _ => None,
        }
    }

    fn resource(self) -> Option<String> {
        match self {
            Self::Resource(uri) => Some(bounded(uri)),
            _ => None,
        }
    }
}

/// The name that the span has for people: the method, and the tool or prompt.
struct Name<'a>(&'a CallFacts<'a>);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.method)?;
        match self.0.target {
            Target::Tool(name) | Target::Prompt(name) => write!(f, " {}", bounded(name)),
            Target::None | Target::Resource(_) => Ok(()),
        }
    }
}

/// What carries the bytes; nothing is known of a stream that the host supplies.
const fn network_transport(transport: TransportKind) -> Option<&'static str> {
    match transport {
        TransportKind::Http => Some("tcp"),
        TransportKind::Stdio => Some("pipe"),
        TransportKind::Stream => None,
    }
}

fn bounded(text: &str) -> String {
    printable(text.as_bytes(), TEXT_BYTES)
}

#[cfg(test)]
mod tests;
