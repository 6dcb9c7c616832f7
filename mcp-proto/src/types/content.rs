//! Content blocks: what tools answer with and prompts are made of.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::object::{Misread, Path, each, member, pick, present, text};
use super::resources::{ResourceView, check_contents, view_contents};
use crate::violation::{Fault, Violation};
use crate::wire::Json;

/// One content block as the server wrote it, known to have the members of its type.
///
/// A type that this client does not know is kept, not refused: see [`Content::Unknown`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentBlock(Json);

impl ContentBlock {
    /// Checks one block. `content[0]` in the messages is where the block is taken to stand.
    ///
    /// # Errors
    /// [`Violation::MalformedContent`] when the block is no object, has no string `type`, or lacks a
    /// member of its type or has it with a wrong type (R60).
    pub fn read(raw: &RawValue) -> Result<Self, Fault> {
        check(raw, &Path::item("content", 0))?;
        Ok(Self(raw.into()))
    }

    /// The block as typed data that borrows from the text.
    #[must_use]
    pub fn view(&self) -> Content<'_> {
        view(self.0.as_raw())
    }

    /// The block's text, if it is a text block.
    #[must_use]
    pub fn text(&self) -> Option<Cow<'_, str>> {
        match self.view() {
            Content::Text { text } => Some(text),
            _ => None,
        }
    }

    /// The block as the server wrote it.
    #[must_use]
    pub const fn raw(&self) -> &Json {
        &self.0
    }

    /// `annotations` (audience, priority, …), unchanged.
    #[must_use]
    pub fn annotations(&self) -> Option<&RawValue> {
        member(self.0.as_raw(), "annotations")
    }

    /// `_meta`, unchanged.
    #[must_use]
    pub fn meta(&self) -> Option<&RawValue> {
        member(self.0.as_raw(), "_meta")
    }
}

impl Serialize for ContentBlock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// A content block, looked into. Texts borrow from the block unless something in them is escaped.
///
/// spec: 2026-07-28 schema, `ContentBlock`
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Content<'a> {
    /// Text.
    Text {
        /// The text.
        text: Cow<'a, str>,
    },
    /// An image.
    Image {
        /// The bytes in Base64, as the server wrote them.
        data: Cow<'a, str>,
        /// The declared media type; not compared with the bytes.
        mime_type: Cow<'a, str>,
    },
    /// A sound.
    Audio {
        /// The bytes in Base64, as the server wrote them.
        data: Cow<'a, str>,
        /// The declared media type; not compared with the bytes.
        mime_type: Cow<'a, str>,
    },
    /// A resource with its contents.
    Resource(ResourceView<'a>),
    /// A reference to a resource that can be read.
    ResourceLink {
        /// Where it is.
        uri: Cow<'a, str>,
        /// Its programmatic name.
        name: Cow<'a, str>,
        /// Its name for people.
        title: Option<Cow<'a, str>>,
        /// What it is.
        description: Option<Cow<'a, str>>,
        /// Its media type, if known.
        mime_type: Option<Cow<'a, str>>,
    },
    /// A type that this client does not know.
    Unknown {
        /// The value of `type`.
        kind: Cow<'a, str>,
        /// The whole block.
        raw: &'a RawValue,
    },
}

/// Reads an array of content blocks; `name` is the member that holds it.
pub(super) fn read_blocks(raw: &RawValue, name: &str) -> Result<Vec<ContentBlock>, Fault> {
    let mut blocks = Vec::new();
    let outcome = each(raw, |index, raw| {
        check(raw, &Path::item(name, index))?;
        blocks.push(ContentBlock(raw.into()));
        Ok(())
    });
    match outcome {
        Some(outcome) => outcome.map(|()| blocks),
        None => Err(Path::root(name).fault(Violation::MalformedResult, "is not an array")),
    }
}

/// Checks one block at a place.
pub(super) fn check(raw: &RawValue, path: &Path<'_>) -> Result<(), Fault> {
    const BROKEN: Violation = Violation::MalformedContent;
    let members = [
        "type", "text", "data", "mimeType", "resource", "uri", "name",
    ];
    let [kind, body, data, mime_type, resource, uri, name] =
        pick(raw, members).map_err(|why: Misread| path.fault(BROKEN, why.words()))?;
    let kind = path.required_text(BROKEN, "type", kind)?;
    let kind = text(kind).unwrap_or_default();
    match &*kind {
        "text" => path.required_text(BROKEN, "text", body).map(|_| ()),
        "image" | "audio" => {
            path.required_text(BROKEN, "data", data)?;
            path.required_text(BROKEN, "mimeType", mime_type)
                .map(|_| ())
        }
        "resource" => {
            let resource = path.required(BROKEN, "resource", resource)?;
            check_contents(resource, BROKEN, &path.member("resource"))
        }
        "resource_link" => {
            path.required_text(BROKEN, "uri", uri)?;
            path.required_text(BROKEN, "name", name).map(|_| ())
        }
        _ => Ok(()),
    }
}

/// Looks into a block that was checked.
pub(super) fn view(raw: &RawValue) -> Content<'_> {
    // On a checked block nothing here fails; were it to, the block shows as unknown.
    known(raw).unwrap_or_else(|| Content::Unknown {
        kind: optional_text(member(raw, "type")).unwrap_or_default(),
        raw,
    })
}

fn known(raw: &RawValue) -> Option<Content<'_>> {
    let [kind, body, data, mime_type, resource] =
        pick(raw, ["type", "text", "data", "mimeType", "resource"]).ok()?;
    let mime_type = optional_text(mime_type);
    Some(match &*text(kind?).ok()? {
        "text" => Content::Text {
            text: text(body?).ok()?,
        },
        "image" => Content::Image {
            data: text(data?).ok()?,
            mime_type: mime_type?,
        },
        "audio" => Content::Audio {
            data: text(data?).ok()?,
            mime_type: mime_type?,
        },
        "resource" => Content::Resource(view_contents(resource?)?),
        "resource_link" => {
            let [uri, name, title, description] =
                pick(raw, ["uri", "name", "title", "description"]).ok()?;
            Content::ResourceLink {
                uri: text(uri?).ok()?,
                name: text(name?).ok()?,
                title: optional_text(title),
                description: optional_text(description),
                mime_type,
            }
        }
        _ => return None,
    })
}

/// The text of an optional member; `None` when it is absent, `null` or no text.
pub(super) fn optional_text(value: Option<&RawValue>) -> Option<Cow<'_, str>> {
    present(value).and_then(|raw| text(raw).ok())
}
