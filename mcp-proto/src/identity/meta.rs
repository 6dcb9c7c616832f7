//! What the application puts into a request, checked once at submission: params, and `_meta` keys that
//! add to the client's own and never replace them (R5).

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::wire::encode::push_single_line;
use crate::wire::scan::Cursor;
use crate::wire::{Json, Members, ObjectWriter};

/// The keys of `_meta` that this client writes.
// spec: 2026-07-28 basic#meta
pub mod keys {
    /// The revision of the request. Required.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// Name and version of the client.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// The client's capabilities for the request. Required.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// The least severe log messages that the server may send for the request.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// Which `subscriptions/listen` request a notification belongs to; written by servers.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// Name and version of the server; written by servers.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// Asks for progress notifications.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// W3C Trace Context.
    pub const TRACEPARENT: &str = "traceparent";
    /// W3C Trace Context: vendors' part. Never written, since it belongs to a `traceparent`.
    pub const TRACESTATE: &str = "tracestate";
    /// W3C Baggage.
    pub const BAGGAGE: &str = "baggage";
    /// The alias `{"capabilities": …}` for servers that look for the capabilities there.
    pub const CLIENT: &str = "client";

    /// Whether only the client itself may write this key: the protocol reserves it, or it is the alias.
    ///
    /// A prefix is the protocol's if its second label is `modelcontextprotocol` or `mcp`.
    ///
    /// ```
    /// use mcp_proto::identity::keys::is_reserved;
    /// assert!(is_reserved("dev.mcp/x") && is_reserved("baggage"));
    /// assert!(!is_reserved("com.example.mcp/x") && !is_reserved("mcp"));
    /// ```
    #[must_use]
    pub fn is_reserved(key: &str) -> bool {
        if let PROGRESS_TOKEN | TRACEPARENT | TRACESTATE | BAGGAGE | CLIENT = key {
            return true;
        }
        let second_label = key
            .split_once('/')
            .and_then(|(prefix, _)| prefix.split('.').nth(1));
        matches!(second_label, Some("modelcontextprotocol" | "mcp"))
    }
}

/// Why params or `_meta` of the application cannot be sent. The caller's mistake; nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetaError {
    /// A member stands twice in one object.
    #[error("a member stands twice in {what}")]
    DuplicateMember {
        /// `params`, `_meta`, …
        what: &'static str,
    },
    /// A value that must be an object is none.
    #[error("{what} must be a JSON object")]
    NotObject {
        /// `params`, `_meta`, …
        what: &'static str,
    },
    /// A key that only the client may write.
    #[error("the key {key:?} is reserved; choose one with a prefix of your own")]
    Reserved {
        /// The key.
        key: String,
    },
}

/// `_meta` keys of the application: any but reserved ones.
///
/// ```
/// use mcp_proto::{identity::{CallerMeta, MetaError}, wire::Json};
/// let json = Json::parse(r#"{"com.example/tenant": 7}"#).unwrap();
/// assert!(CallerMeta::parse(&json).is_ok());
/// let json = Json::parse(r#"{"traceparent": "00-…"}"#).unwrap();
/// assert_eq!(
///     CallerMeta::parse(&json),
///     Err(MetaError::Reserved { key: "traceparent".into() }),
/// );
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallerMeta {
    /// Without braces and line breaks.
    members: Box<str>,
}

impl CallerMeta {
    /// Takes an object as it is.
    ///
    /// # Errors
    /// [`MetaError`] when it is no object, a key stands twice, or a key is reserved.
    pub fn parse(json: &Json) -> Result<Self, MetaError> {
        let members = open(json.as_str(), "_meta")?;
        if let Some((key, _)) = members.iter().find(|(key, _)| keys::is_reserved(key)) {
            return Err(MetaError::Reserved {
                key: key.to_owned(),
            });
        }
        let text = single_line(json.as_str());
        Ok(Self {
            members: inner(&text).into(),
        })
    }

    /// The same with one more member, a string.
    ///
    /// # Errors
    /// [`MetaError`] when the key is reserved or there already.
    pub fn with(&self, key: &str, value: &str) -> Result<Self, MetaError> {
        let mut out = Vec::new();
        let mut object = ObjectWriter::new(&mut out);
        object.members(&self.members);
        object.string(key, value);
        object.end();
        let text = String::from_utf8(out).unwrap_or_default();
        Json::parse(&text).map_or(Err(MetaError::NotObject { what: "_meta" }), |json| {
            Self::parse(&json)
        })
    }

    /// The object.
    #[must_use]
    pub fn to_text(&self) -> String {
        ["{", &*self.members, "}"].concat()
    }

    pub(super) fn members(&self) -> &str {
        &self.members
    }
}

/// The params of a request without `_meta`: the JSON text of an object on one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    text: String,
}

impl Default for Params {
    fn default() -> Self {
        Self { text: "{}".into() }
    }
}

impl Params {
    /// Takes an object as it is, and the `_meta` keys of the application out of it.
    ///
    /// # Errors
    /// [`MetaError`] when it is no object, a member stands twice, or `_meta` is not what
    /// [`CallerMeta::parse`] accepts.
    pub fn parse(json: &Json) -> Result<(Self, Option<CallerMeta>), MetaError> {
        let members = open(json.as_str(), "params")?;
        let Some(meta) = members.get("_meta") else {
            let text = single_line(json.as_str());
            return Ok((Self { text }, None));
        };
        let meta = CallerMeta::parse(&meta.into())?;
        Ok((Self::rebuild(&members, "_meta", None), Some(meta)))
    }

    /// Writes params member by member. Values are valid JSON texts; a member `_meta` must not be
    /// written.
    #[must_use]
    pub(crate) fn build(write: impl FnOnce(&mut ObjectWriter<'_>)) -> Self {
        let mut out = Vec::with_capacity(256);
        let mut object = ObjectWriter::new(&mut out);
        write(&mut object);
        object.end();
        Self {
            text: String::from_utf8(out).unwrap_or_default(),
        }
    }

    /// The same params with a member set to a value, in the last place. `_meta` cannot be set and is
    /// ignored.
    #[must_use]
    pub fn with(self, name: &str, value: &Json) -> Self {
        match open(&self.text, "params") {
            Ok(members) if name != "_meta" => Self::rebuild(&members, name, Some(value)),
            _ => self,
        }
    }

    /// The same params without a member.
    #[must_use]
    pub fn without(self, name: &str) -> Self {
        match open(&self.text, "params") {
            Ok(members) if members.get(name).is_some() => Self::rebuild(&members, name, None),
            _ => self,
        }
    }

    /// The whole object.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn members(&self) -> &str {
        inner(&self.text)
    }

    fn rebuild(members: &Members<'_>, name: &str, value: Option<&Json>) -> Self {
        let mut out = Vec::new();
        let mut object = ObjectWriter::new(&mut out);
        for (other, value) in members.iter().filter(|(other, _)| *other != name) {
            object.raw(other, value.get());
        }
        if let Some(value) = value {
            object.raw(name, value.as_str());
        }
        object.end();
        Self {
            text: String::from_utf8_lossy(&out).into(),
        }
    }
}

/// The members of an object that the application gave.
pub(super) fn open<'a>(json: &'a str, what: &'static str) -> Result<Members<'a>, MetaError> {
    // The text is valid JSON, so nothing follows what is read here.
    match Members::read(&mut Cursor::new(json)) {
        Some((members, false)) => Ok(members),
        Some((_, true)) => Err(MetaError::DuplicateMember { what }),
        None => Err(MetaError::NotObject { what }),
    }
}

pub(super) fn single_line(json: &str) -> String {
    let mut out = Vec::with_capacity(json.len());
    push_single_line(&mut out, json.trim_ascii());
    String::from_utf8(out).unwrap_or_default()
}

/// What stands between the braces of an object, without white space at the ends.
fn inner(object: &str) -> &str {
    let inner = object
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    inner.unwrap_or_default().trim_ascii()
}
