//! The JSON-RPC envelope, read in one pass that copies nothing (R60, R62).
//!
//! The reader is written by hand because derived ones take an array for an object, cannot tell
//! `"id": null` from no id, and let a member stand twice.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use core::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::id::{IdToken, ResponseId, salvage_id};
use super::json::Members;
use super::printable::printable;
use super::scan::Cursor;
use crate::violation::{Fault, Violation};

/// Longest detail of a fault, in bytes.
const DETAIL_BYTES: usize = 200;

/// One message, borrowed from its line.
#[derive(Clone, Debug)]
pub enum Message<'a> {
    /// The answer to a request.
    Response(Response<'a>),
    /// A one-way message.
    Notification(Notification<'a>),
    /// A request of the server.
    Request(Request<'a>),
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub struct Response<'a> {
    /// Which request it answers.
    pub id: ResponseId<'a>,
    /// The result or the error.
    pub answer: Answer<'a>,
}

/// What a response says.
#[derive(Clone, Debug)]
pub enum Answer<'a> {
    /// The members of the object `result`, each unread.
    Result(Members<'a>),
    /// The error object.
    Error(ErrorObject<'a>),
}

/// The error object of a response.
#[derive(Clone, Debug)]
pub struct ErrorObject<'a> {
    /// `code`.
    pub code: i64,
    /// `message`, with its escapes resolved.
    pub message: Cow<'a, str>,
    /// `data`, unread; `null` is a value too.
    pub data: Option<&'a RawValue>,
}

/// A one-way message.
#[derive(Clone, Debug)]
pub struct Notification<'a> {
    /// `method`, with its escapes resolved.
    pub method: Cow<'a, str>,
    /// `params`, unread and of any type.
    pub params: Option<&'a RawValue>,
}

/// A request of the server.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// `id` in the sender's words, to be echoed.
    pub id: IdToken<'a>,
    /// `method`, with its escapes resolved.
    pub method: Cow<'a, str>,
    /// `params`, unread and of any type.
    pub params: Option<&'a RawValue>,
}

/// A line that is no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// What is wrong with it. The detail is printable and at most 200 bytes long.
    pub fault: Fault,
    /// The request that it answers, if that could be made out.
    pub id: Option<u64>,
    /// Whether it was meant to be a message.
    pub kind: RejectKind,
}

/// Whether a rejected line was meant to be a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectKind {
    /// A message with something wrong in it.
    Malformed,
    /// A banner, a log record or the like: no JSON, or an object without any member of an envelope.
    Noise,
}

/// Reads one line, or one HTTP body, as a message.
///
/// Members that the envelope does not define are ignored; a member that stands twice, in the envelope,
/// in `error` or at the top of `result`, is not. How deeply the values are nested is not looked at: see
/// [`depth::exceeds`](super::depth::exceeds).
///
/// # Errors
/// [`Rejected`] when the line is anything but one JSON-RPC 2.0 request, notification or response.
///
/// ```
/// use mcp_proto::wire::{Answer, Message, envelope};
/// let line = br#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}"#;
/// let Ok(Message::Response(response)) = envelope::read(line) else { panic!() };
/// assert_eq!(response.id.as_u64(), Some(1));
/// let Answer::Result(members) = response.answer else { panic!() };
/// assert_eq!(members.get("resultType").unwrap().get(), "\"complete\"");
/// ```
// spec: 2026-07-28 basic#messages
pub fn read(line: &[u8]) -> Result<Message<'_>, Rejected> {
    let text = match core::str::from_utf8(line) {
        Ok(text) => text,
        Err(error) => return Err(not_utf8(line, error.valid_up_to())),
    };
    match Draft::read(text, true).map(Draft::judge) {
        Some(Ok(message)) => Ok(message),
        Some(Err(fault)) => Err(reject(text, Some(fault))),
        None => Err(reject(text, None)),
    }
}

/// Looks again at a text that is no message, this time without opening `result`, which may be what has
/// stopped the first look.
#[cold]
fn reject(text: &str, fault: Option<Fault>) -> Rejected {
    let Some(draft) = Draft::read(text, false) else {
        return unreadable(text);
    };
    let id = draft.answered_id();
    let kind = if draft.is_envelope() {
        RejectKind::Malformed
    } else {
        RejectKind::Noise
    };
    let fault = fault.or_else(|| draft.judge().err());
    let fault = fault.unwrap_or_else(|| Fault::new(Violation::NotJson, excerpt("", text)));
    Rejected { fault, id, kind }
}

/// The members of an envelope as they were found, before any rule is applied.
#[derive(Default)]
struct Draft<'a> {
    jsonrpc: Option<&'a str>,
    id: Option<&'a str>,
    method: Option<&'a str>,
    params: Option<&'a RawValue>,
    result: Option<ResultDraft<'a>>,
    error: Option<&'a RawValue>,
    duplicate: Option<Field>,
}

enum ResultDraft<'a> {
    Object {
        members: Members<'a>,
        duplicate: bool,
    },
    Unread(&'a RawValue),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
}

impl<'a> Draft<'a> {
    /// `None` when the text is no JSON object, or, if `result` is to be opened, when that is none.
    fn read(text: &'a str, open_result: bool) -> Option<Self> {
        let mut draft = Self::default();
        let mut cursor = Cursor::new(text);
        cursor.object(|cursor, name| {
            let (field, is_repeated) = match name.as_ref() {
                "jsonrpc" => (Field::Jsonrpc, put(&mut draft.jsonrpc, cursor.text()?)),
                "id" => (Field::Id, put(&mut draft.id, cursor.text()?)),
                "method" => (Field::Method, put(&mut draft.method, cursor.text()?)),
                "params" => (Field::Params, put(&mut draft.params, cursor.value()?)),
                "error" => (Field::Error, put(&mut draft.error, cursor.value()?)),
                "result" => {
                    let result = if open_result {
                        let (members, duplicate) = Members::read(cursor)?;
                        ResultDraft::Object { members, duplicate }
                    } else {
                        ResultDraft::Unread(cursor.value()?)
                    };
                    (Field::Result, put(&mut draft.result, result))
                }
                _ => return cursor.value().map(drop),
            };
            if is_repeated {
                draft.duplicate.get_or_insert(field);
            }
            Some(())
        })?;
        cursor.is_at_end().then_some(draft)
    }

    fn judge(self) -> Result<Message<'a>, Fault> {
        if let Some(field) = self.duplicate {
            return Err(Fault::new(Violation::DuplicateMember, field.name()));
        }
        match self.jsonrpc {
            Some("\"2.0\"") => {}
            Some(version) if string_text(version).as_deref() == Some("2.0") => {}
            Some(version) => return Err(fault_about(Violation::WrongJsonrpc, "jsonrpc", version)),
            None => return Err(Fault::new(Violation::WrongJsonrpc, "jsonrpc is missing")),
        }
        match self.method {
            Some(method) => self.into_call(method),
            None => self.into_response().map(Message::Response),
        }
    }

    /// A notification or a request.
    fn into_call(self, method: &'a str) -> Result<Message<'a>, Fault> {
        if self.result.is_some() || self.error.is_some() {
            let detail = "method stands beside result or error";
            return Err(Fault::new(Violation::BothResultAndError, detail));
        }
        let Some(method) = string_text(method) else {
            return Err(fault_about(
                Violation::NeitherResultNorError,
                "method",
                method,
            ));
        };
        let params = self.params;
        let Some(id) = self.id else {
            return Ok(Message::Notification(Notification { method, params }));
        };
        let id = IdToken::parse(id).ok_or_else(|| fault_about(Violation::WrongId, "id", id))?;
        Ok(Message::Request(Request { id, method, params }))
    }

    fn into_response(self) -> Result<Response<'a>, Fault> {
        let id = match self.id {
            None => ResponseId::Absent,
            Some("null") => ResponseId::Null,
            Some(token) => IdToken::parse(token)
                .map(ResponseId::Token)
                .ok_or_else(|| Fault::new(Violation::WrongId, excerpt("id is ", token)))?,
        };
        let answer = match (self.result, self.error) {
            (
                Some(ResultDraft::Object {
                    duplicate: true, ..
                }),
                None,
            ) => {
                return Err(Fault::new(Violation::DuplicateMember, "in result"));
            }
            (Some(ResultDraft::Object { members, .. }), None) => Answer::Result(members),
            (Some(ResultDraft::Unread(value)), None) if value.get().starts_with('{') => {
                let detail = "the name of a member of result has an escape that stands for no text";
                return Err(Fault::new(Violation::MalformedResult, detail));
            }
            (Some(ResultDraft::Unread(value)), None) => {
                return Err(fault_about(
                    Violation::ResultNotObject,
                    "result",
                    value.get(),
                ));
            }
            (None, Some(error)) => Answer::Error(ErrorObject::read(error)?),
            (Some(_), Some(_)) => return Err(Fault::new(Violation::BothResultAndError, "")),
            (None, None) => return Err(Fault::new(Violation::NeitherResultNorError, "")),
        };
        Ok(Response { id, answer })
    }

    /// The request of ours that this answers, whatever else is wrong with it. A server's own request
    /// answers nothing.
    fn answered_id(&self) -> Option<u64> {
        if self.duplicate == Some(Field::Id) || (self.method.is_some() && !self.is_answer()) {
            return None;
        }
        IdToken::parse(self.id?)?.as_u64()
    }

    const fn is_answer(&self) -> bool {
        self.result.is_some() || self.error.is_some()
    }

    const fn is_envelope(&self) -> bool {
        self.is_answer() || self.jsonrpc.is_some() || self.id.is_some() || self.method.is_some()
    }
}

impl Field {
    const fn name(self) -> &'static str {
        match self {
            Self::Jsonrpc => "jsonrpc",
            Self::Id => "id",
            Self::Method => "method",
            Self::Params => "params",
            Self::Result => "result",
            Self::Error => "error",
        }
    }
}

impl<'a> ErrorObject<'a> {
    fn read(error: &'a RawValue) -> Result<Self, Fault> {
        if error.get().starts_with('"') {
            let detail = excerpt("error is only a string: ", error.get());
            return Err(Fault::new(Violation::MalformedError, detail));
        }
        let Some((members, duplicate)) = Members::read(&mut Cursor::new(error.get())) else {
            return Err(fault_about(Violation::MalformedError, "error", error.get()));
        };
        if duplicate {
            return Err(Fault::new(Violation::DuplicateMember, "in error"));
        }
        let code = members.get("code").map(RawValue::get);
        let Some(code) = code.and_then(|token| token.parse().ok()) else {
            let detail = excerpt("error.code is ", code.unwrap_or("missing"));
            return Err(Fault::new(Violation::MalformedError, detail));
        };
        let message = members.get("message").map(RawValue::get);
        let Some(message) = message.and_then(string_text) else {
            let detail = excerpt("error.message is ", message.unwrap_or("missing"));
            return Err(Fault::new(Violation::MalformedError, detail));
        };
        let data = members.get("data");
        Ok(Self {
            code,
            message,
            data,
        })
    }
}

/// Fills a place and tells whether it was filled already.
fn put<T>(place: &mut Option<T>, value: T) -> bool {
    place.replace(value).is_some()
}

/// The text of a JSON string; `None` for any other value, or where the escapes stand for no text.
fn string_text(value: &str) -> Option<Cow<'_, str>> {
    let body = value.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', body.as_bytes()).is_none() {
        return Some(Cow::Borrowed(body));
    }
    serde_json::from_str(value).ok().map(Cow::Owned)
}

fn not_utf8(line: &[u8], valid_bytes: usize) -> Rejected {
    let detail = format!("byte {valid_bytes}: {}", printable(line, DETAIL_BYTES / 2));
    not_json(line, Fault::new(Violation::NotUtf8, detail))
}

/// What to say about a text that is no JSON object.
fn unreadable(text: &str) -> Rejected {
    let prefix = match serde_json::from_str::<IgnoredAny>(text) {
        Err(error) => Some(format!("{error}: ")),
        // Valid by the grammar, but a name has an escape that stands for no character.
        Ok(_) if text.trim_ascii_start().starts_with('{') => Some(String::new()),
        Ok(_) => None,
    };
    if let Some(prefix) = prefix {
        let fault = Fault::new(Violation::NotJson, excerpt(&prefix, text));
        return not_json(text.as_bytes(), fault);
    }
    match serde_json::from_str::<Batch>(text) {
        Ok(batch) => Rejected {
            fault: Fault::new(Violation::Batch, excerpt("", text)),
            id: batch.only_answer,
            kind: RejectKind::Malformed,
        },
        Err(_) => Rejected {
            fault: Fault::new(Violation::NotObject, excerpt("", text)),
            id: None,
            kind: RejectKind::Noise,
        },
    }
}

fn not_json(line: &[u8], fault: Fault) -> Rejected {
    let start = line.trim_ascii_start().first();
    let is_message =
        matches!(start, Some(b'{' | b'[')) && memchr::memmem::find(line, b"\"jsonrpc\"").is_some();
    let (id, kind) = if is_message {
        (salvage_id(line), RejectKind::Malformed)
    } else {
        (None, RejectKind::Noise)
    };
    Rejected { fault, id, kind }
}

/// A JSON array, of which only one thing is of interest.
struct Batch {
    /// The request that is answered, if the array holds exactly one response.
    only_answer: Option<u64>,
}

impl<'de> Deserialize<'de> for Batch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(BatchVisitor)
    }
}

struct BatchVisitor;

impl<'de> Visitor<'de> for BatchVisitor {
    type Value = Batch;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Batch, A::Error> {
        let (mut answers, mut only_answer) = (0_usize, None);
        while let Some(element) = seq.next_element::<&RawValue>()? {
            let draft = Draft::read(element.get(), false).unwrap_or_default();
            if draft.is_answer() {
                answers += 1;
                only_answer = draft.answered_id().filter(|_| answers == 1);
            }
        }
        Ok(Batch { only_answer })
    }
}

fn fault_about(violation: Violation, name: &str, value: &str) -> Fault {
    Fault::new(violation, excerpt(&format!("{name} is "), value))
}

/// `prefix` and as much of the text as fits in a detail.
fn excerpt(prefix: &str, text: &str) -> String {
    let mut detail = printable(prefix.as_bytes(), DETAIL_BYTES);
    detail += &printable(text.as_bytes(), DETAIL_BYTES - detail.len());
    detail
}
