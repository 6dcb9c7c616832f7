//! Answers to input requests (R30).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::value::RawValue;

use super::content::{ContentBlock, optional_text};
use super::elicitation::Elicitation;
use super::form::ResponseFault;
use super::input::{InputMethod, InputRequest};
use super::object::{each, member, pick, present};
use crate::wire::{Json, Members, ObjectWriter};

/// The answer to one input request.
///
/// ```
/// use mcp_proto::types::{InputResponse, Root};
/// assert_eq!(InputResponse::decline().as_json().as_str(), r#"{"action":"decline"}"#);
/// let root = Root::new("file:///src", None).unwrap();
/// assert_eq!(
///     InputResponse::roots(&[root]).as_json().as_str(),
///     r#"{"roots":[{"uri":"file:///src"}]}"#,
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputResponse(Json);

impl InputResponse {
    /// To an elicitation by address: the person agreed to visit it. Whether they were there is between
    /// them and the server. To a form, see [`Form::accept`](super::Form::accept).
    #[must_use]
    pub fn accept_url() -> Self {
        Self::accepted(None)
    }

    pub(super) fn accepted(content: Option<&Json>) -> Self {
        let mut out = Vec::new();
        let mut object = ObjectWriter::new(&mut out);
        object.string("action", "accept");
        if let Some(content) = content {
            object.raw("content", content.as_str());
        }
        object.end();
        Self(json(out))
    }

    /// To an elicitation: the person said no.
    #[must_use]
    pub fn decline() -> Self {
        Self::action("decline")
    }

    /// To an elicitation: the person said nothing, and closed the question.
    #[must_use]
    pub fn cancel() -> Self {
        Self::action("cancel")
    }

    fn action(action: &str) -> Self {
        let mut out = Vec::new();
        let mut object = ObjectWriter::new(&mut out);
        object.string("action", action);
        object.end();
        Self(json(out))
    }

    /// To `roots/list`.
    #[must_use]
    pub fn roots(roots: &[Root]) -> Self {
        let mut list = Vec::new();
        list.push(b'[');
        for (index, root) in roots.iter().enumerate() {
            if index > 0 {
                list.push(b',');
            }
            let mut object = ObjectWriter::new(&mut list);
            object.string("uri", &root.uri);
            if let Some(name) = &root.name {
                object.string("name", name);
            }
            object.end();
        }
        list.push(b']');
        let mut out = Vec::new();
        let mut object = ObjectWriter::new(&mut out);
        object.raw("roots", json(list).as_str());
        object.end();
        Self(json(out))
    }

    /// To `sampling/createMessage`: a text of a model. `stop_reason` is one of `endTurn`,
    /// `stopSequence`, `maxTokens`, `toolUse`, or the provider's own.
    #[must_use]
    pub fn sampled_text(model: &str, text: &str, stop_reason: Option<&str>) -> Self {
        let mut block = Vec::new();
        let mut object = ObjectWriter::new(&mut block);
        object.string("type", "text").string("text", text);
        object.end();
        Self::sampled(model, &json(block), stop_reason)
    }

    /// To `sampling/createMessage`: content of a model as JSON, one block or an array of them.
    #[must_use]
    pub fn sampled(model: &str, content: &Json, stop_reason: Option<&str>) -> Self {
        let mut out = Vec::new();
        let mut object = ObjectWriter::new(&mut out);
        object
            .string("role", "assistant")
            .raw("content", content.as_str())
            .string("model", model);
        if let Some(stop_reason) = stop_reason {
            object.string("stopReason", stop_reason);
        }
        object.end();
        Self(json(out))
    }

    /// An answer as JSON of the application's.
    #[must_use]
    pub const fn raw(json: Json) -> Self {
        Self(json)
    }

    /// The answer as it goes on the wire.
    #[must_use]
    pub const fn as_json(&self) -> &Json {
        &self.0
    }

    /// Whether this is an answer to that request: of its kind and, for an accepted form, with content
    /// that fits.
    ///
    /// # Errors
    /// [`ResponseFault`] with what does not fit.
    ///
    /// spec: 2026-07-28 client/elicitation#form-mode-security
    pub fn check(&self, request: &InputRequest) -> Result<(), ResponseFault> {
        let raw = self.0.as_raw();
        match request.method {
            InputMethod::Elicitation => {
                let [action, content] = read(raw, ["action", "content"])?;
                check_action(request, action, present(content))
            }
            InputMethod::Roots => {
                let [roots] = read(raw, ["roots"])?;
                let roots = roots.and_then(|roots| each(roots, |_, root| check_root(root)));
                roots.unwrap_or_else(|| Err(ResponseFault::new("roots", "must be an array")))
            }
            InputMethod::Sampling => {
                let [role, content, model] = read(raw, ["role", "content", "model"])?;
                if !matches!(optional_text(role).as_deref(), Some("assistant" | "user")) {
                    return Err(ResponseFault::new("role", "must be assistant or user"));
                }
                if optional_text(model).is_none() {
                    return Err(ResponseFault::new("model", "must be a string"));
                }
                let is_block = |raw: &RawValue| ContentBlock::read(raw).map(|_| ());
                let content =
                    present(content).ok_or_else(|| ResponseFault::new("content", "is missing"))?;
                each(content, |_, block| is_block(block))
                    .unwrap_or_else(|| is_block(content))
                    .map_err(|fault| ResponseFault::new("content", fault.to_string()))
            }
        }
    }
}

fn read<'a, const N: usize>(
    raw: &'a RawValue,
    names: [&str; N],
) -> Result<[Option<&'a RawValue>; N], ResponseFault> {
    pick(raw, names).map_err(|why| ResponseFault::new("the response", why.words()))
}

fn check_action(
    request: &InputRequest,
    action: Option<&RawValue>,
    content: Option<&RawValue>,
) -> Result<(), ResponseFault> {
    match optional_text(action).as_deref() {
        Some("accept") => {}
        Some("decline" | "cancel") => return Ok(()),
        _ => {
            return Err(ResponseFault::new(
                "action",
                "must be accept, decline or cancel",
            ));
        }
    }
    // One that cannot be read was refused when it came.
    match (Elicitation::read(request), content) {
        (Ok(Elicitation::Form(form)), Some(content)) => {
            form.check(&content.into(), false).map(|_| ())
        }
        (Ok(Elicitation::Form(_)), None) => Err(ResponseFault::new("content", "is missing")),
        (Ok(Elicitation::Url { .. }), Some(_)) => Err(ResponseFault::new(
            "content",
            "must not be there: nothing is sent back from a page",
        )),
        (Ok(Elicitation::Url { .. }), None) | (Err(_), _) => Ok(()),
    }
}

fn check_root(root: &RawValue) -> Result<(), ResponseFault> {
    let uri = optional_text(member(root, "uri"));
    let root = uri.and_then(|uri| Root::new(uri, None));
    root.map(|_| ())
        .ok_or_else(|| ResponseFault::new("roots", "must each have a uri that begins with file://"))
}

/// A directory or file that the application works in.
///
/// spec: 2026-07-28 client/roots#root
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    uri: String,
    name: Option<String>,
}

impl Root {
    /// A root. `None` when the address does not begin with `file://`, as the specification demands.
    #[must_use]
    pub fn new(uri: impl Into<String>, name: Option<&str>) -> Option<Self> {
        let uri = uri.into();
        uri.starts_with("file://").then(|| Self {
            uri,
            name: name.map(ToString::to_string),
        })
    }

    /// Where it is.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }
}

/// Answers to the requests of one round, by their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputResponses {
    entries: Vec<(String, InputResponse)>,
}

impl InputResponses {
    /// No answers yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            entries: Vec::new(),
        }
    }

    /// The same with an answer more, instead of an earlier one to the same key.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, response: InputResponse) -> Self {
        let key = key.into();
        self.entries.retain(|(known, _)| *known != key);
        self.entries.push((key, response));
        self
    }

    /// Answers from a JSON object by key.
    ///
    /// # Errors
    /// [`ResponseFault`] when it is no object, or has a member twice.
    pub fn parse(json: &Json) -> Result<Self, ResponseFault> {
        let members = Members::parse(json.as_str())
            .map_err(|error| ResponseFault::new("inputResponses", error.to_string()))?;
        let entry = |(key, raw): (&str, &RawValue)| (key.to_string(), InputResponse(raw.into()));
        Ok(Self {
            entries: members.iter().map(entry).collect(),
        })
    }

    /// The answer to a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&InputResponse> {
        let entry = self.entries.iter().find(|(known, _)| known == key);
        entry.map(|(_, response)| response)
    }

    /// The keys, in the order of the answers.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(key, _)| &**key)
    }

    /// All of them as the JSON object that goes on the wire.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let mut out = Vec::new();
        let mut object = ObjectWriter::new(&mut out);
        for (key, response) in &self.entries {
            object.raw(key, response.0.as_str());
        }
        object.end();
        json(out)
    }
}

/// What an [`ObjectWriter`] wrote, which is valid JSON by construction.
pub(super) fn json(out: Vec<u8>) -> Json {
    let text = String::from_utf8(out).unwrap_or_default();
    Json::parse(&text).unwrap_or_else(|_| Json::from(serde_json::Value::Null))
}
