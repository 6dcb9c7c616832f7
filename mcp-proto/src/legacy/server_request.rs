//! Requests that a server sends, which only older revisions allow (R60).

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::version::Version;
use crate::wire::{Json, Members, ObjectWriter};

/// The capabilities in this client's handshake that let a server send requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// `roots`.
    pub roots: bool,
    /// `sampling`.
    pub sampling: bool,
    /// `sampling.tools`: sampling requests may bring tools.
    pub sampling_tools: bool,
    /// `elicitation`, in form mode.
    pub elicitation_form: bool,
    /// `elicitation.url`: in URL mode.
    pub elicitation_url: bool,
}

/// What to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerRequestReply {
    /// This result, at once.
    Result(Json),
    /// This error, at once.
    Error {
        /// `-32601` or `-32602`.
        code: i64,
        /// Why, for the server's log.
        message: &'static str,
    },
    /// What the application says.
    Defer(Deferred),
}

/// A request that only the application can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deferred {
    /// `elicitation/create`: ask the user.
    Elicitation,
    /// `roots/list`: which folders the server may use.
    Roots,
    /// `sampling/createMessage`: ask a model.
    Sampling,
}

impl Declared {
    /// Reads the capabilities object of the handshake. An empty `elicitation` means form mode.
    #[must_use]
    pub fn read(capabilities: &Json) -> Self {
        let declared = objects(capabilities.as_raw());
        let sampling = declared.get("sampling");
        let elicitation = declared.get("elicitation");
        let modes = elicitation.map(|raw| objects(raw)).unwrap_or_default();
        Self {
            roots: declared.contains_key("roots"),
            sampling: sampling.is_some(),
            sampling_tools: sampling.is_some_and(|raw| objects(raw).contains_key("tools")),
            elicitation_form: elicitation.is_some()
                && (modes.contains_key("form") || !modes.contains_key("url")),
            elicitation_url: modes.contains_key("url"),
        }
    }
}

/// The capabilities for the handshake: of those that are declared per request in the modern era, the ones
/// that let a server ask. The others mean nothing here.
#[must_use]
pub fn capabilities(declared: Option<&Json>) -> Json {
    let mut out = Vec::new();
    let mut object = ObjectWriter::new(&mut out);
    for (name, raw) in declared
        .map(|all| objects(all.as_raw()))
        .into_iter()
        .flatten()
    {
        if matches!(&*name, "elicitation" | "roots" | "sampling") {
            object.raw(&name, raw.get());
        }
    }
    object.end();
    let text = String::from_utf8(out).unwrap_or_default();
    Json::parse(&text).unwrap_or_else(|_| Json::from(Value::Object(serde_json::Map::new())))
}

/// What a server gets whose request the application does not answer.
pub const fn unanswered(deferred: Deferred) -> Result<&'static str, (i64, &'static str)> {
    match deferred {
        Deferred::Elicitation => Ok(r#"{"action":"cancel"}"#),
        // spec: 2025-11-25 client/sampling#error-handling
        Deferred::Sampling => Err((-1, "User rejected sampling request")),
        Deferred::Roots => Err((-32603, "the roots are not available now")),
    }
}

/// Decides what a request of the server gets: `ping` an empty result, what was declared is the
/// application's, everything else does not exist here.
///
/// `version` is the revision of the session, or the offered one as long as there is none.
#[must_use]
pub fn answer_request(
    version: Version,
    declared: &Declared,
    method: &str,
    params: Option<&Members<'_>>,
) -> ServerRequestReply {
    let member = |name: &str| params.and_then(|params| params.present(name));
    match method {
        "ping" => ServerRequestReply::Result(Json::from(Value::Object(serde_json::Map::new()))),
        "roots/list" if declared.roots => ServerRequestReply::Defer(Deferred::Roots),
        "sampling/createMessage" if declared.sampling => {
            let brings_tools = member("tools").is_some() || member("toolChoice").is_some();
            if brings_tools && !declared.sampling_tools {
                return INVALID_SAMPLING;
            }
            ServerRequestReply::Defer(Deferred::Sampling)
        }
        "elicitation/create"
            if version >= Version::V2025_06_18
                && (declared.elicitation_form || declared.elicitation_url) =>
        {
            let supported = match member("mode").map(RawValue::get) {
                None | Some("\"form\"") => declared.elicitation_form,
                Some("\"url\"") => declared.elicitation_url && version >= Version::V2025_11_25,
                Some(_) => false,
            };
            if supported {
                ServerRequestReply::Defer(Deferred::Elicitation)
            } else {
                INVALID_MODE
            }
        }
        _ => NOT_FOUND,
    }
}

const NOT_FOUND: ServerRequestReply = ServerRequestReply::Error {
    code: -32601,
    message: "Method not found",
};

const INVALID_SAMPLING: ServerRequestReply = ServerRequestReply::Error {
    code: -32602,
    message: "sampling with tools was not declared",
};

const INVALID_MODE: ServerRequestReply = ServerRequestReply::Error {
    code: -32602,
    message: "this elicitation mode was not declared",
};

/// The members of an object that are objects themselves, as capabilities are.
fn objects(raw: &RawValue) -> BTreeMap<String, &RawValue> {
    let mut members: BTreeMap<String, &RawValue> =
        serde_json::from_str(raw.get()).unwrap_or_default();
    members.retain(|_, value| value.get().starts_with('{'));
    members
}
