//! Tools: what a server lets be called.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::content::{ContentBlock, optional_text, read_blocks};
use super::list::{self, Entry};
use super::object::{Path, boolean, member, pick, present};
use crate::violation::{Fault, Violation};
use crate::wire::{Json, Members};

/// One entry of `tools/list` as the server wrote it, known to have a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    raw: Json,
    name: String,
}

impl Tool {
    /// The server's own name of the tool.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether `inputSchema` is an object. Without one the tool can be called all the same (R22).
    #[must_use]
    pub fn has_input_schema(&self) -> bool {
        self.input_schema().is_some()
    }

    /// Whether `outputSchema` is an object.
    #[must_use]
    pub fn has_output_schema(&self) -> bool {
        self.output_schema().is_some()
    }

    /// The name for people.
    #[must_use]
    pub fn title(&self) -> Option<Cow<'_, str>> {
        optional_text(self.member("title"))
    }

    /// What the tool does, in the server's words.
    #[must_use]
    pub fn description(&self) -> Option<Cow<'_, str>> {
        optional_text(self.member("description"))
    }

    /// The JSON Schema of the arguments.
    #[must_use]
    pub fn input_schema(&self) -> Option<&RawValue> {
        self.member("inputSchema").filter(|raw| is_object(raw))
    }

    /// The JSON Schema of `structuredContent`.
    #[must_use]
    pub fn output_schema(&self) -> Option<&RawValue> {
        self.member("outputSchema").filter(|raw| is_object(raw))
    }

    /// The server's hints about the tool's behaviour. Hints: no decision about safety rests on them.
    #[must_use]
    pub fn annotations(&self) -> ToolAnnotations<'_> {
        self.member("annotations")
            .and_then(ToolAnnotations::read)
            .unwrap_or_default()
    }

    /// Any other member (`icons`, `_meta`, …), unchanged; `None` when it is absent or `null`.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&RawValue> {
        member(self.raw.as_raw(), name)
    }
}

impl list::sealed::Sealed for Tool {}

impl Entry for Tool {
    const METHOD: &'static str = "tools/list";
    const MEMBER: &'static str = "tools";

    fn read(raw: &RawValue, index: usize) -> Result<Self, Fault> {
        if let Some(name) = leading_name(raw.get()) {
            return Ok(Self {
                raw: raw.into(),
                name: name.to_string(),
            });
        }
        let path = Path::item(Self::MEMBER, index);
        let [name] = pick(raw, ["name"])
            .map_err(|why| path.fault(Violation::EntryWithoutName, why.words()))?;
        Ok(Self {
            name: list::key(&path, "name", name)?.into_owned(),
            raw: raw.into(),
        })
    }

    fn raw(&self) -> &Json {
        &self.raw
    }

    fn key(&self) -> &str {
        &self.name
    }
}

impl Serialize for Tool {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}

/// The server's hints about a tool; `None` where it gives none (`null` and wrong types included).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolAnnotations<'a> {
    /// A name for people.
    pub title: Option<Cow<'a, str>>,
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy something.
    pub destructive: Option<bool>,
    /// Calling it again with the same arguments changes nothing more.
    pub idempotent: Option<bool>,
    /// It deals with the world outside.
    pub open_world: Option<bool>,
}

impl<'a> ToolAnnotations<'a> {
    fn read(raw: &'a RawValue) -> Option<Self> {
        let names = [
            "title",
            "readOnlyHint",
            "destructiveHint",
            "idempotentHint",
            "openWorldHint",
        ];
        let [title, read_only, destructive, idempotent, open_world] = pick(raw, names).ok()?;
        Some(Self {
            title: optional_text(title),
            read_only: read_only.and_then(boolean),
            destructive: destructive.and_then(boolean),
            idempotent: idempotent.and_then(boolean),
            open_world: open_world.and_then(boolean),
        })
    }
}

/// The final answer to `tools/call`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallToolResult {
    /// What the tool says, for a model or a person; may be empty.
    pub content: Vec<ContentBlock>,
    /// What the tool says, for a program. JSON `null` is a value and not the same as `None`.
    pub structured_content: Option<Json>,
    /// The tool ran and failed; `content` says why. No error of the protocol.
    pub is_error: bool,
    /// `_meta`, unchanged.
    pub meta: Option<Json>,
    /// What came of the check against the tool's output schema, where
    /// [`validate_output`](crate::Options::validate_output) was asked for.
    pub output_check: OutputCheck,
}

/// What came of the check of a structured result against the tool's output schema (R63). The tool ran all the
/// same, and the result is what it said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputCheck {
    /// Nobody asked for one; or the tool says `isError`, and then owes nothing.
    #[default]
    Unasked,
    /// The structured result fits.
    Fits,
    /// It does not fit, or is missing, or could not be checked for its depth or its cost. A violation of the
    /// protocol was noted.
    Mismatch(Fault),
    /// There was nothing to check it against, for this reason: the tool declares no output schema, or one
    /// that is not to be used.
    Impossible(String),
}

impl OutputCheck {
    /// What does not fit, if it is known not to.
    #[must_use]
    pub const fn mismatch(&self) -> Option<&Fault> {
        match self {
            Self::Mismatch(fault) => Some(fault),
            _ => None,
        }
    }
}

impl CallToolResult {
    /// Reads the result.
    ///
    /// # Errors
    /// [`Violation::MalformedResult`] when `content` is missing or no array (`structuredContent` alone
    /// is not enough in any revision) or `isError` is no boolean; [`Violation::MalformedContent`] for
    /// a bad block. How deep it nests is judged with the whole message.
    pub fn read(members: &Members<'_>) -> Result<Self, Fault> {
        const BROKEN: Violation = Violation::MalformedResult;
        let content = members
            .present("content")
            .ok_or_else(|| Path::root("content").fault(BROKEN, "is missing"))?;
        let is_error = match members.present("isError").map(boolean) {
            None => false,
            Some(Some(flag)) => flag,
            Some(None) => return Err(Path::root("isError").fault(BROKEN, "is not a boolean")),
        };
        let structured_content = members.get("structuredContent");
        Ok(Self {
            content: read_blocks(content, "content")?,
            structured_content: structured_content.map(Json::from),
            is_error,
            meta: members.present("_meta").map(Json::from),
            output_check: OutputCheck::Unasked,
        })
    }

    /// The text blocks, joined by line feeds.
    #[must_use]
    pub fn text(&self) -> String {
        let mut joined = String::new();
        for (index, text) in self
            .content
            .iter()
            .filter_map(ContentBlock::text)
            .enumerate()
        {
            if index > 0 {
                joined.push('\n');
            }
            joined.push_str(&text);
        }
        joined
    }
}

/// The name of an entry that begins with it and cannot have a second one: nearly every entry of
/// nearly every server, for which the walk over all its members is saved.
fn leading_name(entry: &str) -> Option<&str> {
    let rest = entry.strip_prefix(r#"{"name":""#)?;
    let (name, rest) = rest.split_at_checked(memchr::memchr(b'"', rest.as_bytes())?)?;
    let escaped = memchr::memchr(b'\\', rest.as_bytes()).is_some_and(|at| {
        let tail = rest.as_bytes().get(at..).unwrap_or_default();
        memchr::memmem::find(tail, b"\\u").is_some()
    });
    let again = memchr::memmem::find(rest.as_bytes(), br#""name""#).is_some();
    (!name.contains('\\') && !escaped && !again).then_some(name)
}

fn is_object(raw: &RawValue) -> bool {
    present(Some(raw)).is_some_and(|raw| raw.get().starts_with('{'))
}
