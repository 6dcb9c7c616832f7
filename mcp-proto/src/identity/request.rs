//! Requests on their way out. A modern one cannot be written without its `_meta` (R5).

use alloc::string::String;
use alloc::vec::Vec;

use super::meta::{CallerMeta, MetaError, Params, keys, open, single_line};
use super::trace::TraceContext;
use crate::types::LogLevel;
use crate::version::Version;
use crate::wire::encode::{end_line, message};
use crate::wire::{Json, ObjectWriter};

/// What connects progress notifications with their request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressToken<'a> {
    /// An integer.
    Number(u64),
    /// A string.
    Text(&'a str),
}

/// The part of `_meta` that all requests to one peer share, rendered once.
///
/// This is the only way to write a modern request. The values are copied when it is made; later changes
/// of the originals do not show.
///
/// ```
/// use mcp_proto::identity::{MetaTemplate, ModernRequest};
/// use mcp_proto::{Version, wire::Json};
/// let capabilities = Json::parse("{}").unwrap();
/// let template = MetaTemplate::new(Version::LATEST, None, &capabilities, false, None).unwrap();
/// let mut line = Vec::new();
/// template.encode(&mut line, &ModernRequest::new(1, "server/discover"));
/// assert_eq!(
///     String::from_utf8(line).unwrap(),
///     concat!(
///         r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"#,
///         r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
///         r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#,
///         "\n",
///     ),
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaTemplate {
    /// Members of `_meta`, without braces and line breaks.
    members: String,
}

/// A modern request that is about to be written.
#[derive(Clone, Copy, Debug)]
pub struct ModernRequest<'a> {
    /// The JSON-RPC id; a retry has another.
    pub id: u64,
    /// The method.
    pub method: &'a str,
    /// The params without `_meta`.
    pub params: Option<&'a Params>,
    /// `_meta` keys of the application.
    pub caller_meta: Option<&'a CallerMeta>,
    /// The trace keys; a retry keeps them.
    pub trace: Option<TraceContext>,
    /// Asks for progress notifications.
    pub progress_token: Option<ProgressToken<'a>>,
}

impl<'a> ModernRequest<'a> {
    /// A request with nothing but what all have.
    #[must_use]
    pub const fn new(id: u64, method: &'a str) -> Self {
        Self {
            id,
            method,
            params: None,
            caller_meta: None,
            trace: None,
            progress_token: None,
        }
    }
}

impl MetaTemplate {
    /// Renders the shared part. `alias` adds the capabilities once more as `client.capabilities`.
    ///
    /// # Errors
    /// [`MetaError::NotObject`] or [`MetaError::DuplicateMember`] when `client_info` or `capabilities` is
    /// no proper object.
    pub fn new(
        version: Version,
        client_info: Option<&Json>,
        capabilities: &Json,
        alias: bool,
        log_level: Option<LogLevel>,
    ) -> Result<Self, MetaError> {
        let capabilities = object_text(capabilities, "capabilities")?;
        let mut out = Vec::new();
        // Opened for its commas; the brace is cut off below.
        let mut meta = ObjectWriter::new(&mut out);
        meta.string(keys::PROTOCOL_VERSION, version.as_str());
        if let Some(client_info) = client_info {
            meta.raw(keys::CLIENT_INFO, &object_text(client_info, "clientInfo")?);
        }
        meta.raw(keys::CLIENT_CAPABILITIES, &capabilities);
        if let Some(level) = log_level {
            meta.string(keys::LOG_LEVEL, level.as_str());
        }
        if alias {
            let mut client = meta.object(keys::CLIENT);
            client.raw("capabilities", &capabilities);
            client.end();
        }
        out.remove(0);
        Ok(Self {
            members: String::from_utf8(out).unwrap_or_default(),
        })
    }

    /// The shared part without any capability: what a request must have at least.
    pub(crate) fn bare(version: Version) -> Self {
        let mut out = Vec::new();
        let mut meta = ObjectWriter::new(&mut out);
        meta.string(keys::PROTOCOL_VERSION, version.as_str())
            .raw(keys::CLIENT_CAPABILITIES, "{}");
        out.remove(0);
        Self {
            members: String::from_utf8(out).unwrap_or_default(),
        }
    }

    /// Appends a request as one line.
    pub fn encode(&self, out: &mut Vec<u8>, request: &ModernRequest<'_>) {
        let params = request.params.map_or("", Params::members);
        let caller_meta = request.caller_meta.map_or("", CallerMeta::members);
        out.reserve(self.members.len() + params.len() + caller_meta.len() + 256);
        let mut message = message(out);
        message
            .u64("id", request.id)
            .string("method", request.method);
        let mut params_object = message.object("params");
        params_object.line_of_members(params);
        let mut meta = params_object.object("_meta");
        meta.line_of_members(&self.members);
        push_progress_token(&mut meta, request.progress_token);
        push_trace(&mut meta, request.method, request.trace);
        meta.line_of_members(caller_meta);
        meta.end();
        params_object.end();
        end_line(message);
    }
}

/// Appends a modern notification as one line; of the client's `_meta` keys it has the trace keys only.
pub fn encode_notification(
    out: &mut Vec<u8>,
    method: &str,
    params: Option<&Params>,
    trace: Option<TraceContext>,
) {
    let mut message = message(out);
    message.string("method", method);
    if params.is_some() || trace.is_some() {
        let mut params_object = message.object("params");
        params_object.line_of_members(params.map_or("", Params::members));
        if trace.is_some() {
            let mut meta = params_object.object("_meta");
            push_trace(&mut meta, method, trace);
            meta.end();
        }
        params_object.end();
    }
    end_line(message);
}

/// Appends a request of an older revision as one line. It has no modern key, and `_meta` only where the
/// application or a progress token needs one.
pub fn encode_legacy(
    out: &mut Vec<u8>,
    id: u64,
    method: &str,
    params: Option<&Params>,
    caller_meta: Option<&CallerMeta>,
    progress_token: Option<ProgressToken<'_>>,
) {
    let caller_meta = caller_meta.map_or("", CallerMeta::members);
    let has_meta = !caller_meta.is_empty() || progress_token.is_some();
    let mut message = message(out);
    message.u64("id", id).string("method", method);
    if params.is_some() || has_meta {
        let mut params_object = message.object("params");
        params_object.line_of_members(params.map_or("", Params::members));
        if has_meta {
            let mut meta = params_object.object("_meta");
            push_progress_token(&mut meta, progress_token);
            meta.line_of_members(caller_meta);
            meta.end();
        }
        params_object.end();
    }
    end_line(message);
}

fn push_progress_token(meta: &mut ObjectWriter<'_>, token: Option<ProgressToken<'_>>) {
    match token {
        Some(ProgressToken::Number(number)) => meta.u64(keys::PROGRESS_TOKEN, number),
        Some(ProgressToken::Text(text)) => meta.string(keys::PROGRESS_TOKEN, text),
        None => meta,
    };
}

fn push_trace(meta: &mut ObjectWriter<'_>, method: &str, trace: Option<TraceContext>) {
    let Some(trace) = trace else {
        return;
    };
    // Neither value needs escapes.
    let out = meta.key(keys::TRACEPARENT);
    out.push(b'"');
    out.extend_from_slice(trace.traceparent().as_bytes());
    out.push(b'"');
    let out = meta.key(keys::BAGGAGE);
    out.push(b'"');
    trace.push_baggage(out, method);
    out.push(b'"');
}

fn object_text(json: &Json, what: &'static str) -> Result<String, MetaError> {
    open(json.as_str(), what)?;
    Ok(single_line(json.as_str()))
}
