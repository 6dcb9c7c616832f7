//! Resources: what a server lets be read.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::cache_hint::CacheHint;
use super::content::optional_text;
use super::list::{Entry, entry};
use super::object::{Path, each, member, pick, present, text};
use crate::violation::{Fault, Violation};
use crate::wire::{Json, Members};

/// The answer to `resources/read`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadResourceResult {
    /// The contents; a directory may have several.
    pub contents: Vec<ResourceContents>,
    /// For how long the answer may be kept.
    pub cache: CacheHint,
    /// `_meta`, unchanged.
    pub meta: Option<Json>,
}

impl ReadResourceResult {
    /// Reads the result.
    ///
    /// # Errors
    /// [`Violation::MalformedResult`] when `contents` is no array of objects with a `uri` and either
    /// `text` or `blob`.
    pub fn read(members: &Members<'_>) -> Result<Self, Fault> {
        const BROKEN: Violation = Violation::MalformedResult;
        let root = Path::root("contents");
        let raw = members
            .present("contents")
            .ok_or_else(|| root.fault(BROKEN, "is missing"))?;
        let mut contents = Vec::new();
        each(raw, |index, raw| {
            check_contents(raw, BROKEN, &Path::item("contents", index))?;
            contents.push(ResourceContents(raw.into()));
            Ok(())
        })
        .ok_or_else(|| root.fault(BROKEN, "is not an array"))??;
        Ok(Self {
            contents,
            cache: CacheHint::read(members),
            meta: members.present("_meta").map(Json::from),
        })
    }
}

/// The contents of one resource as the server wrote them, known to have a `uri` and a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceContents(Json);

impl ResourceContents {
    /// The contents as typed data that borrows from the text.
    #[must_use]
    pub fn view(&self) -> ResourceView<'_> {
        // On checked contents nothing fails; were it to, they show as empty.
        view_contents(self.0.as_raw()).unwrap_or(ResourceView {
            uri: Cow::Borrowed(""),
            mime_type: None,
            body: ResourceBody::Text(Cow::Borrowed("")),
        })
    }

    /// The contents as the server wrote them.
    #[must_use]
    pub const fn raw(&self) -> &Json {
        &self.0
    }

    /// `_meta`, unchanged.
    #[must_use]
    pub fn meta(&self) -> Option<&RawValue> {
        member(self.0.as_raw(), "_meta")
    }
}

impl Serialize for ResourceContents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// The contents of one resource, looked into.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceView<'a> {
    /// Which resource it is; may be a part of the one that was asked for.
    pub uri: Cow<'a, str>,
    /// Its media type, if known.
    pub mime_type: Option<Cow<'a, str>>,
    /// What is in it.
    pub body: ResourceBody<'a>,
}

/// What is in a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceBody<'a> {
    /// Text.
    Text(Cow<'a, str>),
    /// Bytes in Base64, as the server wrote them.
    Blob(Cow<'a, str>),
}

/// Checks the contents of one resource at a place. Where both bodies stand, the text counts.
pub(super) fn check_contents(
    raw: &RawValue,
    broken: Violation,
    path: &Path<'_>,
) -> Result<(), Fault> {
    let [uri, text, blob] =
        pick(raw, ["uri", "text", "blob"]).map_err(|why| path.fault(broken, why.words()))?;
    path.required_text(broken, "uri", uri)?;
    match (present(text), present(blob)) {
        (None, None) => Err(path.fault(broken, "has neither text nor blob")),
        (None, blob) => path.required_text(broken, "blob", blob).map(|_| ()),
        (text, _) => path.required_text(broken, "text", text).map(|_| ()),
    }
}

/// Looks into contents that were checked.
pub(super) fn view_contents(raw: &RawValue) -> Option<ResourceView<'_>> {
    let [uri, mime_type, body, blob] = pick(raw, ["uri", "mimeType", "text", "blob"]).ok()?;
    let body = match present(body) {
        Some(body) => ResourceBody::Text(text(body).ok()?),
        None => ResourceBody::Blob(text(blob?).ok()?),
    };
    Some(ResourceView {
        uri: text(uri?).ok()?,
        mime_type: optional_text(mime_type),
        body,
    })
}

entry! {
    /// One entry of `resources/list` as the server wrote it.
    Resource {
        key: uri, required: ["uri", "name"],
        member: "resources", method: "resources/list"
    }
}

impl Resource {
    /// The programmatic name.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        optional_text(self.member("name")).unwrap_or_default()
    }

    /// The media type, if known.
    #[must_use]
    pub fn mime_type(&self) -> Option<Cow<'_, str>> {
        optional_text(self.member("mimeType"))
    }
}

entry! {
    /// One entry of `resources/templates/list` as the server wrote it.
    ResourceTemplate {
        key: uri_template, required: ["uriTemplate", "name"],
        member: "resourceTemplates", method: "resources/templates/list"
    }
}

impl ResourceTemplate {
    /// The programmatic name.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        optional_text(self.member("name")).unwrap_or_default()
    }

    /// The media type of what matches, if it is always the same.
    #[must_use]
    pub fn mime_type(&self) -> Option<Cow<'_, str>> {
        optional_text(self.member("mimeType"))
    }
}
