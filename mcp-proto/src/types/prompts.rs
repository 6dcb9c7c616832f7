//! Prompts: what a server lets be asked.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::content::{self, Content, optional_text};
use super::list::{Entry, entry};
use super::object::{Path, boolean, each, member, pick, present, text};
use crate::violation::{Fault, Violation};
use crate::wire::{Json, Members};

entry! {
    /// One entry of `prompts/list` as the server wrote it.
    Prompt { key: name, required: ["name"], member: "prompts", method: "prompts/list" }
}

impl Prompt {
    /// The arguments that can be given; those without a name are left out.
    #[must_use]
    pub fn arguments(&self) -> Vec<PromptArgument<'_>> {
        let mut arguments = Vec::new();
        if let Some(list) = self.member("arguments") {
            each(list, |_, raw| {
                arguments.extend(PromptArgument::read(raw));
                Ok::<_, core::convert::Infallible>(())
            });
        }
        arguments
    }
}

/// One argument of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptArgument<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// What it is.
    pub description: Option<Cow<'a, str>>,
    /// Whether it must be given.
    pub required: bool,
}

impl<'a> PromptArgument<'a> {
    fn read(raw: &'a RawValue) -> Option<Self> {
        let [name, description, required] = pick(raw, ["name", "description", "required"]).ok()?;
        Some(Self {
            name: optional_text(name)?,
            description: optional_text(description),
            required: required.and_then(boolean).unwrap_or(false),
        })
    }
}

/// The answer to `prompts/get`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GetPromptResult {
    /// What the prompt is for.
    pub description: Option<String>,
    /// The messages.
    pub messages: Vec<PromptMessage>,
    /// `_meta`, unchanged.
    pub meta: Option<Json>,
}

impl GetPromptResult {
    /// Reads the result.
    ///
    /// # Errors
    /// [`Violation::MalformedResult`] when `messages` is no array of objects with a `role` and a
    /// `content`, [`Violation::MalformedContent`] when a content block is malformed.
    pub fn read(members: &Members<'_>) -> Result<Self, Fault> {
        const BROKEN: Violation = Violation::MalformedResult;
        let root = Path::root("messages");
        let raw = members
            .present("messages")
            .ok_or_else(|| root.fault(BROKEN, "is missing"))?;
        let mut messages = Vec::new();
        each(raw, |index, raw| {
            messages.push(PromptMessage::read(raw, &Path::item("messages", index))?);
            Ok(())
        })
        .ok_or_else(|| root.fault(BROKEN, "is not an array"))??;
        let description = match members.present("description").map(text) {
            None => None,
            Some(Ok(description)) => Some(description.into_owned()),
            Some(Err(why)) => return Err(Path::root("description").fault(BROKEN, why.words())),
        };
        Ok(Self {
            description,
            messages,
            meta: members.present("_meta").map(Json::from),
        })
    }
}

/// Who speaks in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The model.
    Assistant,
    /// The person.
    User,
}

impl Role {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Assistant => "assistant",
            Self::User => "user",
        }
    }
}

/// One message of a prompt as the server wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptMessage {
    raw: Json,
    role: Role,
}

impl PromptMessage {
    fn read(raw: &RawValue, path: &Path<'_>) -> Result<Self, Fault> {
        const BROKEN: Violation = Violation::MalformedResult;
        let [role, content] =
            pick(raw, ["role", "content"]).map_err(|why| path.fault(BROKEN, why.words()))?;
        let role = path.required_text(BROKEN, "role", role)?;
        let role = match text(role).as_deref() {
            Ok("assistant") => Role::Assistant,
            Ok("user") => Role::User,
            _ => {
                let words = "is neither \"user\" nor \"assistant\"";
                return Err(path.member("role").fault(BROKEN, words));
            }
        };
        let content = path.required(Violation::MalformedContent, "content", content)?;
        content::check(content, &path.member("content"))?;
        Ok(Self {
            raw: raw.into(),
            role,
        })
    }

    /// Who speaks.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// What is said.
    #[must_use]
    pub fn content(&self) -> Content<'_> {
        let [content] = pick(self.raw.as_raw(), ["content"]).unwrap_or_default();
        // It was there when the message was read.
        content::view(present(content).unwrap_or(self.raw.as_raw()))
    }

    /// The message as the server wrote it.
    #[must_use]
    pub const fn raw(&self) -> &Json {
        &self.raw
    }
}

impl Serialize for PromptMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}
