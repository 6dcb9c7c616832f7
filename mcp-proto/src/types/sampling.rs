//! Sampling: what a server wants a model to answer (R30).

use alloc::string::String;
use alloc::vec::Vec;

use serde_json::value::RawValue;

use super::content::{Content, ContentBlock, optional_text};
use super::input::{InputMethod, InputRequest};
use super::object::{Path, each, member, number, pick, present, text};
use super::prompts::Role;
use crate::violation::{Fault, Violation};
use crate::wire::Json;

const BROKEN: Violation = Violation::InputRequiredInvalid;

/// A `sampling/createMessage` request, read. Show it to a person before a model sees it, and its answer
/// before the server does.
///
/// spec: 2026-07-28 client/sampling#creating-messages
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SamplingRequest {
    /// The conversation.
    pub messages: Vec<SamplingMessage>,
    /// How many tokens at most.
    pub max_tokens: u64,
    /// The system prompt; may be changed or left out.
    pub system_prompt: Option<String>,
    /// The temperature.
    pub temperature: Option<f64>,
    /// Texts that end the answer.
    pub stop_sequences: Vec<String>,
    /// Names of models, the best first, as substrings.
    pub model_hints: Vec<String>,
    /// How much cost, speed and intelligence matter, each from 0 to 1.
    pub priorities: Priorities,
    /// `includeContext`; may be ignored.
    pub include_context: Option<String>,
    /// `tools`, as the server wrote them.
    pub tools: Option<Json>,
    /// `toolChoice`, as the server wrote it.
    pub tool_choice: Option<Json>,
    /// `metadata` for the provider, as the server wrote it.
    pub metadata: Option<Json>,
}

/// How much each matters, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Priorities {
    /// Low cost.
    pub cost: Option<f64>,
    /// Low latency.
    pub speed: Option<f64>,
    /// Advanced capabilities.
    pub intelligence: Option<f64>,
}

/// One message of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SamplingMessage {
    /// Who speaks.
    pub role: Role,
    /// What: at least one block, unless the server wrote an empty array.
    pub content: Vec<ContentBlock>,
}

impl SamplingRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// [`Violation::InputRequiredInvalid`] when the request is of another method, or lacks `messages` or
    /// `maxTokens`; [`Violation::MalformedContent`] for a malformed block, and for results of tools
    /// beside other content.
    pub fn read(request: &InputRequest) -> Result<Self, Fault> {
        let root = Path::root("inputRequests");
        let path = root.member(&request.key);
        if request.method != InputMethod::Sampling {
            return Err(path.fault(BROKEN, "asks for no model"));
        }
        let path = path.member("params");
        let names = [
            "messages",
            "maxTokens",
            "systemPrompt",
            "temperature",
            "stopSequences",
            "modelPreferences",
            "includeContext",
            "tools",
            "toolChoice",
            "metadata",
        ];
        let [
            messages,
            max_tokens,
            system,
            temperature,
            stops,
            preferences,
            context,
            tools,
            choice,
            metadata,
        ] = pick(request.params.as_raw(), names).map_err(|why| path.fault(BROKEN, why.words()))?;
        let max_tokens = path.required(BROKEN, "maxTokens", max_tokens)?;
        let max_tokens = whole(max_tokens)
            .ok_or_else(|| path.member("maxTokens").fault(BROKEN, "is no whole number"))?;
        let messages = path.required(BROKEN, "messages", messages)?;
        let preferences = present(preferences);
        let priority = |name| {
            preferences
                .and_then(|raw| member(raw, name))
                .and_then(number)
        };
        let hints = preferences.and_then(|raw| member(raw, "hints"));
        Ok(Self {
            messages: read_messages(messages, &path)?,
            max_tokens,
            system_prompt: optional_text(system).map(|text| text.into_owned()),
            temperature: temperature.and_then(number),
            stop_sequences: texts(present(stops), Some),
            model_hints: texts(hints, |hint| member(hint, "name")),
            priorities: Priorities {
                cost: priority("costPriority"),
                speed: priority("speedPriority"),
                intelligence: priority("intelligencePriority"),
            },
            include_context: optional_text(context).map(|text| text.into_owned()),
            tools: present(tools).map(Json::from),
            tool_choice: present(choice).map(Json::from),
            metadata: present(metadata).map(Json::from),
        })
    }
}

/// A whole number that is not negative, also one written with a fraction or an exponent.
fn whole(raw: &RawValue) -> Option<u64> {
    raw.get().parse().ok().or_else(|| {
        let value = number(raw)?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // in range, and whole
        (value % 1.0 == 0.0 && (0.0..9e15).contains(&value)).then_some(value as u64)
    })
}

fn read_messages(raw: &RawValue, path: &Path<'_>) -> Result<Vec<SamplingMessage>, Fault> {
    let mut messages = Vec::new();
    let read = each(raw, |index, raw| {
        messages.push(SamplingMessage::read(raw, &Path::item("messages", index))?);
        Ok(())
    });
    match read {
        Some(read) => read.map(|()| messages),
        None => Err(path.member("messages").fault(BROKEN, "is not an array")),
    }
}

impl SamplingMessage {
    fn read(raw: &RawValue, path: &Path<'_>) -> Result<Self, Fault> {
        let [role, content] =
            pick(raw, ["role", "content"]).map_err(|why| path.fault(BROKEN, why.words()))?;
        let role = text(path.required_text(BROKEN, "role", role)?);
        let role = match role.as_deref() {
            Ok("assistant") => Role::Assistant,
            Ok("user") => Role::User,
            _ => {
                return Err(path
                    .member("role")
                    .fault(BROKEN, "is neither assistant nor user"));
            }
        };
        let raw = path.required(BROKEN, "content", content)?;
        let mut content = Vec::new();
        let mut add = |raw| ContentBlock::read(raw).map(|block| content.push(block));
        each(raw, |_, raw| add(raw)).unwrap_or_else(|| add(raw))?;
        // spec: 2026-07-28 client/sampling#tool-result-messages
        let is_result = |block: &&ContentBlock| matches!(block.view(), Content::Unknown { kind, .. } if kind == "tool_result");
        let results = content.iter().filter(is_result).count();
        if role == Role::User && results > 0 && results < content.len() {
            let words = "has results of tools beside other content";
            return Err(path.fault(Violation::MalformedContent, words));
        }
        Ok(Self { role, content })
    }
}

/// The strings of an array; what is none is left out.
fn texts<'a>(
    list: Option<&'a RawValue>,
    part: impl Fn(&'a RawValue) -> Option<&'a RawValue>,
) -> Vec<String> {
    let mut texts = Vec::new();
    if let Some(list) = list {
        each(list, |_, raw| {
            texts.extend(optional_text(part(raw)).map(|text| text.into_owned()));
            Ok::<_, core::convert::Infallible>(())
        });
    }
    texts
}
