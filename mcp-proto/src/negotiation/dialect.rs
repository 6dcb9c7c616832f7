//! What differs between revisions, as plain facts.

use crate::version::Version;

/// The facts about one revision that the rest of the core asks for.
///
/// Reading stays lenient: a server may send more than its revision defines, and that is kept. These
/// facts say what the client may send, what it must insist on, and what a value means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dialect {
    /// The revision.
    pub version: Version,
    /// Whether every request carries version, capabilities and identity in its `_meta`.
    pub request_meta: bool,
    /// Whether a result without `resultType` is a violation; where not, it means `"complete"`.
    pub result_type_required: bool,
    /// Whether the server may send requests. Where not, one is a violation.
    pub server_requests: bool,
    /// Whether a result may ask for input instead of completing the request.
    pub input_required: bool,
    /// Whether changes are asked for with `subscriptions/listen`. Where not, list changes come unasked
    /// and resources are subscribed to one by one.
    pub listen: bool,
    /// Whether results carry `ttlMs` and `cacheScope`. Where not, nothing may be cached.
    pub cache_hints: bool,
    /// How a level of log messages is asked for.
    pub log_level: LogLevelScope,
    /// The `type`s of content blocks that the revision defines, sorted.
    pub content_types: &'static [&'static str],
    /// What `structuredContent` of a tool result may be.
    pub structured_content: StructuredContent,
    /// Whether `completion/complete` takes the values of other arguments as `context`.
    pub completion_context: bool,
    /// Whether `completion/complete` needs the capability `completions` to be declared.
    pub completions_declared: bool,
    /// The error code that means "no such resource".
    pub resource_not_found: i64,
}

/// How a level of log messages is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevelScope {
    /// In the `_meta` of each request.
    Request,
    /// Once, for everything that follows.
    Connection,
}

/// What `structuredContent` of a tool result may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StructuredContent {
    /// The revision has neither `structuredContent` nor `outputSchema`.
    Absent,
    /// A JSON object.
    Object,
    /// Any JSON value.
    Any,
}

impl Dialect {
    /// The facts about [`Version::V2026_07_28`], the only modern revision so far.
    pub const MODERN: Self = Self {
        version: Version::V2026_07_28,
        request_meta: true,
        result_type_required: true,
        server_requests: false,
        input_required: true,
        listen: true,
        cache_hints: true,
        log_level: LogLevelScope::Request,
        content_types: &["audio", "image", "resource", "resource_link", "text"],
        structured_content: StructuredContent::Any,
        completion_context: true,
        completions_declared: true,
        resource_not_found: -32602,
    };
}
