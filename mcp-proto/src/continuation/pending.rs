//! A request that may take several rounds, and the server that it is bound to (R30, R31).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::config::{PeerConfig, Transport};
use crate::identity::{CallerMeta, Field, Params, Sha256Hex, TraceContext, derive_id, stdio_url};
use crate::operation::{Request, ToolCall};
use crate::safety::IdempotencyKey;
use crate::version::{Era, Version};
use crate::wire::{Json, Members};

/// The methods whose answer may be `input_required`.
///
/// spec: 2026-07-28 basic/patterns/mrtr#supported-requests
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResumableMethod {
    /// `tools/call`
    CallTool,
    /// `prompts/get`
    GetPrompt,
    /// `resources/read`
    ReadResource,
}

impl ResumableMethod {
    /// The method on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CallTool => "tools/call",
            Self::GetPrompt => "prompts/get",
            Self::ReadResource => "resources/read",
        }
    }

    /// The method written so.
    #[must_use]
    pub fn parse(method: &str) -> Option<Self> {
        [Self::CallTool, Self::GetPrompt, Self::ReadResource]
            .into_iter()
            .find(|known| known.as_str() == method)
    }

    /// The method of an operation, if it is one of these.
    #[must_use]
    pub const fn of(request: &Request) -> Option<Self> {
        match request {
            Request::CallTool(_) => Some(Self::CallTool),
            Request::GetPrompt { .. } => Some(Self::GetPrompt),
            Request::ReadResource { .. } => Some(Self::ReadResource),
            _ => None,
        }
    }
}

/// Which server was asked, so that another one is not handed what this one said (R30).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerPin {
    /// The configured name.
    pub peer: String,
    /// The revision that was agreed.
    pub version: Version,
    /// The digest of where and as whom it is reached; see [`PeerPin::of`].
    pub endpoint: Sha256Hex,
}

impl PeerPin {
    /// The pin of a configured peer: its name, and a digest over its command line or address, working
    /// directory and authorization context. Variables count by name, so that it is the same on every
    /// machine and does not depend on secrets; environment and headers do not count.
    #[must_use]
    pub fn of(config: &PeerConfig, version: Version) -> Self {
        let mut fields = Vec::new();
        let url = match &config.transport {
            Transport::Stdio(stdio) => {
                let args: Vec<&str> = stdio.args.iter().map(|arg| arg.shown()).collect();
                if let Some(directory) = &stdio.cwd {
                    fields.push(("cwd", Field::Text(directory.shown())));
                }
                stdio_url(stdio.command.shown(), &args)
            }
            Transport::Http(http) => http.url.shown().to_string(),
            Transport::Stream => "stream:".to_string(),
        };
        if let Some(context) = &config.auth_context {
            fields.push(("auth_context", Field::Text(context)));
        }
        fields.push(("server", Field::Text(&config.name)));
        fields.push(("url", Field::Text(&url)));
        let digest = derive_id("mcp.endpoint", &fields, 32);
        Self {
            peer: config.name.clone(),
            version,
            // 32 bytes always are one.
            endpoint: Sha256Hex::parse(&digest).unwrap_or_else(|| Sha256Hex::of(&[])),
        }
    }

    /// The era of the revision.
    #[must_use]
    pub fn era(&self) -> Era {
        self.version.era()
    }
}

/// A request that may take several rounds, without what belongs to one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingRequest {
    pub(super) pin: PeerPin,
    pub(super) method: ResumableMethod,
    pub(super) params: Params,
    pub(super) meta: Option<CallerMeta>,
    pub(super) trace: Option<TraceContext>,
    pub(super) progress: bool,
    pub(super) key: Option<IdempotencyKey>,
}

impl PendingRequest {
    /// A request to a peer. Answers and state of earlier rounds are taken out of the parameters.
    #[must_use]
    pub fn new(pin: PeerPin, method: ResumableMethod, params: Params) -> Self {
        Self {
            pin,
            method,
            params: params.without("inputResponses").without("requestState"),
            meta: None,
            trace: None,
            progress: false,
            key: None,
        }
    }

    /// The same with `_meta` keys of the application's, which every round carries.
    #[must_use]
    pub fn with_meta(mut self, meta: Option<CallerMeta>) -> Self {
        self.meta = meta;
        self
    }

    /// The same with its trace keys, which every round keeps (R7).
    #[must_use]
    pub const fn with_trace(mut self, trace: TraceContext) -> Self {
        self.trace = Some(trace);
        self
    }

    /// The same, asking for progress or not.
    #[must_use]
    pub const fn with_progress(mut self, progress: bool) -> Self {
        self.progress = progress;
        self
    }

    /// The same with its idempotency key, which every round keeps.
    #[must_use]
    pub fn with_key(mut self, key: Option<IdempotencyKey>) -> Self {
        self.key = key;
        self
    }

    /// Which server was asked.
    #[must_use]
    pub const fn pin(&self) -> &PeerPin {
        &self.pin
    }

    /// The method.
    #[must_use]
    pub const fn method(&self) -> ResumableMethod {
        self.method
    }

    /// What the application asked for, read back from the parameters. `None` when they are not those of
    /// the method.
    #[must_use]
    pub fn request(&self) -> Option<Request> {
        let members = Members::parse(self.params.as_str()).ok()?;
        let text = |name: &str| {
            let raw = members.get(name)?;
            serde_json::from_str::<String>(raw.get()).ok()
        };
        let arguments = members.get("arguments").map(Json::from);
        Some(match self.method {
            ResumableMethod::CallTool => Request::CallTool(ToolCall {
                tool: text("name")?,
                arguments,
            }),
            ResumableMethod::GetPrompt => Request::GetPrompt {
                name: text("name")?,
                arguments,
            },
            ResumableMethod::ReadResource => Request::ReadResource { uri: text("uri")? },
        })
    }

    /// The original parameters, byte by byte.
    #[must_use]
    pub const fn base(&self) -> &Params {
        &self.params
    }

    /// `_meta` keys of the application's.
    #[must_use]
    pub const fn meta(&self) -> Option<&CallerMeta> {
        self.meta.as_ref()
    }

    /// The trace keys, with the index of the call among them.
    #[must_use]
    pub const fn trace(&self) -> Option<TraceContext> {
        self.trace
    }

    /// Whether progress is asked for.
    #[must_use]
    pub const fn progress(&self) -> bool {
        self.progress
    }

    /// The idempotency key.
    #[must_use]
    pub const fn key(&self) -> Option<&IdempotencyKey> {
        self.key.as_ref()
    }

    /// What sets the waits of this request apart from those of others.
    pub(super) fn purpose(&self) -> String {
        let trace = self.trace.as_ref().map_or("", TraceContext::traceparent);
        [self.method.as_str(), " ", trace].concat()
    }
}
