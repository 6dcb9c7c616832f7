//! Input requests: what a server wants to know before it can answer (R30).

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::content::{self, Content, optional_text};
use super::object::{Path, each, each_member, member, pick, present, text};
use crate::violation::{Fault, Violation};
use crate::wire::{Json, Members};

const BROKEN: Violation = Violation::InputRequiredInvalid;

/// An `input_required` result. There is at least one request or a state.
///
/// spec: 2026-07-28 basic/patterns/mrtr#inputrequiredresult
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputRequired {
    /// What the server asks, in its order; keys are unique.
    pub requests: Vec<InputRequest>,
    /// What to hand back with the answers.
    pub state: Option<RequestState>,
    /// `inputRequests` as the server wrote it.
    pub raw_requests: Option<Json>,
    /// `_meta`, unchanged.
    pub meta: Option<Json>,
}

impl InputRequired {
    /// Reads the result.
    ///
    /// # Errors
    /// [`Violation::InputRequiredInvalid`] when there is neither a request nor a state, a request is
    /// of a method that asks for no input or lacks what it asks with, two requests have the same key,
    /// or `requestState` is no string.
    pub fn read(members: &Members<'_>) -> Result<Self, Fault> {
        let raw = members.present("inputRequests");
        let requests = raw.map(requests).transpose()?.unwrap_or_default();
        let state = members.present("requestState");
        if state.is_some_and(|raw| !raw.get().starts_with('"')) {
            return Err(Path::root("requestState").fault(BROKEN, "is not a string"));
        }
        if requests.is_empty() && state.is_none() {
            return Err(Fault::new(
                BROKEN,
                "there is neither an input request nor a requestState",
            ));
        }
        Ok(Self {
            requests,
            state: state.map(|raw| RequestState(raw.into())),
            raw_requests: raw.map(Json::from),
            meta: members.present("_meta").map(Json::from),
        })
    }

    /// A result that asks nothing and has this state.
    pub(crate) const fn of_state(state: RequestState) -> Self {
        Self {
            requests: Vec::new(),
            state: Some(state),
            raw_requests: None,
            meta: None,
        }
    }

    /// The same result from its two members, as they were kept.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) fn restore(requests: Option<&Json>, state: Option<&Json>) -> Result<Self, Fault> {
        let mut members = Members::default();
        for (name, value) in [("inputRequests", requests), ("requestState", state)] {
            if let Some(value) = value {
                members.insert(name.into(), value.as_raw());
            }
        }
        Self::read(&members)
    }

    /// The questions as one text for a person, one a line; empty when there is only a state.
    #[must_use]
    pub fn prompt(&self) -> String {
        let prompts: Vec<String> = self.requests.iter().map(InputRequest::prompt).collect();
        prompts.join("\n")
    }
}

fn requests(raw: &RawValue) -> Result<Vec<InputRequest>, Fault> {
    let root = Path::root("inputRequests");
    let mut keys = BTreeSet::new();
    let mut requests = Vec::new();
    each_member(raw, |key, raw| {
        let path = root.member(&key);
        if !keys.insert(key.clone()) {
            return Err(path.fault(BROKEN, "stands twice"));
        }
        requests.push(InputRequest::read(&key, raw, &path)?);
        Ok(())
    })
    .map_err(|why| root.fault(BROKEN, why.words()))??;
    Ok(requests)
}

/// The server's opaque state: handed back exactly as it came, never looked into.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestState(Json);

impl RequestState {
    /// The state as the JSON string token that the server wrote, quotes and escapes included. This is
    /// what goes back on the wire.
    #[must_use]
    pub const fn as_json(&self) -> &Json {
        &self.0
    }

    /// The characters of the state, for an application that keeps it as text. `None` when an escape
    /// in it stands for no character; [`as_json`](Self::as_json) can be handed back all the same.
    #[must_use]
    pub fn text(&self) -> Option<Cow<'_, str>> {
        text(self.0.as_raw()).ok()
    }
}

impl fmt::Debug for RequestState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It may hold anything, secrets included.
        write!(f, "RequestState({} bytes)", self.0.as_str().len())
    }
}

/// What an input request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum InputMethod {
    /// `elicitation/create`: a person fills a form or visits a page.
    Elicitation,
    /// `roots/list`: which directories the client works in.
    Roots,
    /// `sampling/createMessage`: a model answers.
    Sampling,
}

impl InputMethod {
    /// The method on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation/create",
            Self::Roots => "roots/list",
            Self::Sampling => "sampling/createMessage",
        }
    }

    fn parse(method: &str) -> Option<Self> {
        [Self::Elicitation, Self::Roots, Self::Sampling]
            .into_iter()
            .find(|known| known.as_str() == method)
    }
}

/// Which input a client declared that it can give.
///
/// spec: 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputCapabilities {
    /// Forms. An `elicitation` without a mode stands for this one.
    pub elicitation_form: bool,
    /// Pages to visit.
    pub elicitation_url: bool,
    /// Directories.
    pub roots: bool,
    /// Answers of a model.
    pub sampling: bool,
    /// Answers of a model that may use tools of the server's.
    pub sampling_tools: bool,
}

impl InputCapabilities {
    /// Reads `clientCapabilities`.
    #[must_use]
    pub fn read(capabilities: &Json) -> Self {
        let names = ["elicitation", "roots", "sampling"];
        let [elicitation, roots, sampling] = pick(capabilities.as_raw(), names).unwrap_or_default();
        let has = |of: Option<&RawValue>, name| {
            present(of).is_some_and(|raw| member(raw, name).is_some())
        };
        let url = has(elicitation, "url");
        Self {
            elicitation_form: has(elicitation, "form") || (present(elicitation).is_some() && !url),
            elicitation_url: url,
            roots: present(roots).is_some(),
            sampling: present(sampling).is_some(),
            sampling_tools: has(sampling, "tools"),
        }
    }

    /// Whether a request asks for something that was declared.
    ///
    /// # Errors
    /// [`Violation::InputNotDeclared`] when it does not.
    pub fn check(&self, request: &InputRequest) -> Result<(), Fault> {
        let params = request.params.as_raw();
        let is_declared = match request.method {
            InputMethod::Elicitation => match optional_text(member(params, "mode")).as_deref() {
                None | Some("form") => self.elicitation_form,
                Some("url") => self.elicitation_url,
                Some(_) => false,
            },
            InputMethod::Roots => self.roots,
            InputMethod::Sampling => {
                let [tools, choice] = pick(params, ["tools", "toolChoice"]).unwrap_or_default();
                let with_tools = present(tools).is_some() || present(choice).is_some();
                self.sampling && (self.sampling_tools || !with_tools)
            }
        };
        if is_declared {
            return Ok(());
        }
        let root = Path::root("inputRequests");
        Err(root
            .member(&request.key)
            .fault(Violation::InputNotDeclared, request.method.as_str()))
    }
}

/// One thing that the server asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputRequest {
    /// The server's name for it; the answer goes under the same key.
    pub key: String,
    /// What is asked for.
    pub method: InputMethod,
    /// The request's `params` as the server wrote them; `{}` when there are none.
    pub params: Json,
}

impl InputRequest {
    fn read(key: &str, raw: &RawValue, path: &Path<'_>) -> Result<Self, Fault> {
        let [method, params] =
            pick(raw, ["method", "params"]).map_err(|why| path.fault(BROKEN, why.words()))?;
        let method = path.required_text(BROKEN, "method", method)?;
        let method = text(method)
            .ok()
            .and_then(|method| InputMethod::parse(&method))
            .ok_or_else(|| {
                path.member("method")
                    .fault(BROKEN, "asks for no kind of input")
            })?;
        let place = path.member("params");
        let params = match method {
            InputMethod::Roots => present(params),
            _ => Some(path.required(BROKEN, "params", params)?),
        };
        if let Some(params) = params {
            check_params(method, params, &place)?;
        }
        Ok(Self {
            key: key.to_string(),
            method,
            params: params.map_or_else(empty_object, Json::from),
        })
    }

    /// The question for a person: the message of an elicitation (and the address to visit), the texts
    /// that a model is to answer, or what the request is about.
    #[must_use]
    pub fn prompt(&self) -> String {
        let params = self.params.as_raw();
        match self.method {
            InputMethod::Elicitation => {
                let [message, url] = pick(params, ["message", "url"]).unwrap_or_default();
                let mut prompt = optional_text(message).unwrap_or_default().into_owned();
                if let Some(url) = optional_text(url) {
                    prompt.push(' ');
                    prompt.push_str(&url);
                }
                prompt
            }
            InputMethod::Roots => "The server asks which directories you work in.".to_string(),
            InputMethod::Sampling => sampling_prompt(params),
        }
    }
}

/// Checks what every client needs in order to show or answer the request.
fn check_params(method: InputMethod, params: &RawValue, path: &Path<'_>) -> Result<(), Fault> {
    let names = ["message", "mode", "url", "messages"];
    let [message, mode, url, messages] =
        pick(params, names).map_err(|why| path.fault(BROKEN, why.words()))?;
    match method {
        InputMethod::Elicitation => {
            path.required_text(BROKEN, "message", message)?;
            if optional_text(mode).as_deref() == Some("url") {
                path.required_text(BROKEN, "url", url)?;
            }
            Ok(())
        }
        InputMethod::Roots => Ok(()),
        InputMethod::Sampling => {
            let messages = path.required(BROKEN, "messages", messages)?;
            if messages.get().starts_with('[') {
                return Ok(());
            }
            Err(path.member("messages").fault(BROKEN, "is not an array"))
        }
    }
}

/// The texts of the messages, one a line. Content is one block or an array of blocks.
fn sampling_prompt(params: &RawValue) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut add = |raw| {
        if let Content::Text { text } = content::view(raw) {
            texts.push(text.into_owned());
        }
        Ok::<_, core::convert::Infallible>(())
    };
    if let Some(messages) = member(params, "messages") {
        each(messages, |_, message| {
            let Some(content) = member(message, "content") else {
                return Ok(());
            };
            match each(content, |_, block| add(block)) {
                Some(outcome) => outcome,
                None => add(content),
            }
        });
    }
    texts.join("\n")
}

fn empty_object() -> Json {
    Json::from(serde_json::Value::Object(serde_json::Map::new()))
}
