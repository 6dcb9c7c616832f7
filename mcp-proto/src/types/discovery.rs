//! What a server says about itself.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::value::RawValue;

use super::cache_hint::CacheHint;
use super::content::optional_text;
use super::object::{Path, boolean, each, member, pick, present, text};
use super::{ResultType, result_type};
use crate::Era;
use crate::violation::{Fault, Violation};
use crate::wire::{Json, Members};

/// The answer to `server/discover` (R11).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscoverResult {
    /// The revisions that the server speaks, as it wrote them; never empty.
    pub supported_versions: Vec<String>,
    /// What it can do.
    pub capabilities: ServerCapabilities,
    /// Who it is, from `_meta` or else from the top level; `None` when it does not say so properly.
    pub server_info: Option<Implementation>,
    /// How to use it, for a model.
    pub instructions: Option<String>,
    /// For how long the answer may be kept.
    pub cache: CacheHint,
}

/// Why a result is no discover answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiscoverFault {
    /// The empty object: no evidence of any era (R14).
    #[error("the result is empty")]
    Empty,
    /// Something else: a hard failure, and no evidence of a legacy server (R14).
    #[error("{0}")]
    Malformed(Fault),
}

impl From<Fault> for DiscoverFault {
    fn from(fault: Fault) -> Self {
        Self::Malformed(fault)
    }
}

impl DiscoverResult {
    /// Reads the result. Which version to use is not decided here.
    ///
    /// # Errors
    /// [`DiscoverFault::Empty`] for `{}`; [`DiscoverFault::Malformed`] unless `resultType` is
    /// `"complete"`, `supportedVersions` a non-empty array of strings and `capabilities` an object.
    ///
    /// spec: 2026-07-28 server/discover
    pub fn read(members: &Members<'_>) -> Result<Self, DiscoverFault> {
        const BROKEN: Violation = Violation::MalformedResult;
        if members.is_empty() {
            return Err(DiscoverFault::Empty);
        }
        if result_type(members, Era::Modern)? == ResultType::InputRequired {
            let path = Path::root("resultType");
            let words = "is \"input_required\", which server/discover cannot ask for";
            return Err(path.fault(Violation::InputRequiredInvalid, words).into());
        }
        let capabilities = members
            .present("capabilities")
            .ok_or_else(|| Path::root("capabilities").fault(BROKEN, "is missing"))?;
        Ok(Self {
            supported_versions: versions(members)?,
            capabilities: ServerCapabilities::read(capabilities)?,
            server_info: server_info(members),
            instructions: optional_text(members.get("instructions")).map(Cow::into_owned),
            cache: CacheHint::read(members),
        })
    }
}

fn versions(members: &Members<'_>) -> Result<Vec<String>, Fault> {
    const BROKEN: Violation = Violation::MalformedResult;
    let path = Path::root("supportedVersions");
    let raw = members
        .present("supportedVersions")
        .ok_or_else(|| path.fault(BROKEN, "is missing"))?;
    let mut versions = Vec::new();
    each(raw, |index, raw| match text(raw) {
        Ok(version) => {
            versions.push(version.into_owned());
            Ok(())
        }
        Err(why) => Err(Path::item("supportedVersions", index).fault(BROKEN, why.words())),
    })
    .ok_or_else(|| path.fault(BROKEN, "is not an array"))??;
    if versions.is_empty() {
        return Err(path.fault(BROKEN, "is empty"));
    }
    Ok(versions)
}

fn server_info(members: &Members<'_>) -> Option<Implementation> {
    let in_meta = members
        .present("_meta")
        .and_then(|meta| member(meta, "io.modelcontextprotocol/serverInfo"));
    [in_meta, members.present("serverInfo")]
        .into_iter()
        .flatten()
        .find_map(|raw| Implementation::read(raw).ok())
}

/// The name and version of a server. What it calls itself proves nothing and routes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Implementation {
    /// The programmatic name; not empty.
    pub name: String,
    /// The version; not empty.
    pub version: String,
    /// Everything as the server wrote it.
    pub raw: Json,
}

impl Implementation {
    /// Reads a `serverInfo`.
    ///
    /// # Errors
    /// [`Violation::MalformedResult`] unless it is an object with a non-empty string `name` and
    /// `version`.
    pub fn read(raw: &RawValue) -> Result<Self, Fault> {
        const BROKEN: Violation = Violation::MalformedResult;
        let path = Path::root("serverInfo");
        let [name, version] =
            pick(raw, ["name", "version"]).map_err(|why| path.fault(BROKEN, why.words()))?;
        let filled = |member: &'static str, value| {
            let raw = path.required_text(BROKEN, member, value)?;
            match text(raw).unwrap_or_default() {
                empty if empty.is_empty() => Err(path.member(member).fault(BROKEN, "is empty")),
                filled => Ok(filled.into_owned()),
            }
        };
        Ok(Self {
            name: filled("name", name)?,
            version: filled("version", version)?,
            raw: raw.into(),
        })
    }

    /// The name for people.
    #[must_use]
    pub fn title(&self) -> Option<Cow<'_, str>> {
        optional_text(member(self.raw.as_raw(), "title"))
    }
}

/// What a server declares that it can do. A capability counts as declared unless it is absent, `null`
/// or `false`; a flag counts as set only when it is `true`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerCapabilities {
    /// Tools can be listed and called.
    pub tools: Option<ListCapability>,
    /// Resources can be listed and read.
    pub resources: Option<ResourcesCapability>,
    /// Prompts can be listed and asked for.
    pub prompts: Option<ListCapability>,
    /// Arguments can be completed.
    pub completions: bool,
    /// Log messages can be asked for.
    pub logging: bool,
    /// Everything as the server wrote it, `extensions` and `experimental` included.
    pub raw: Json,
}

/// The capability to list something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListCapability {
    /// The server says when the list changes.
    pub list_changed: bool,
}

/// The capability to list and read resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourcesCapability {
    /// The server says when a resource that was subscribed to changes.
    pub subscribe: bool,
    /// The server says when the list changes.
    pub list_changed: bool,
}

impl ServerCapabilities {
    /// Reads `capabilities`, in any era.
    ///
    /// # Errors
    /// [`Violation::MalformedResult`] when it is no object.
    pub fn read(raw: &RawValue) -> Result<Self, Fault> {
        let names = ["tools", "resources", "prompts", "completions", "logging"];
        let [tools, resources, prompts, completions, logging] =
            pick(raw, names).map_err(|why| {
                Path::root("capabilities").fault(Violation::MalformedResult, why.words())
            })?;
        Ok(Self {
            tools: declared(tools).map(ListCapability::read),
            resources: declared(resources).map(|raw| ResourcesCapability {
                subscribe: flag(raw, "subscribe"),
                list_changed: flag(raw, "listChanged"),
            }),
            prompts: declared(prompts).map(ListCapability::read),
            completions: declared(completions).is_some(),
            logging: declared(logging).is_some(),
            raw: raw.into(),
        })
    }

    /// The extensions that the server speaks, by identifier, with their settings; unchanged.
    #[must_use]
    pub fn extensions(&self) -> Option<&RawValue> {
        member(self.raw.as_raw(), "extensions")
    }
}

impl ListCapability {
    fn read(raw: &RawValue) -> Self {
        Self {
            list_changed: flag(raw, "listChanged"),
        }
    }
}

fn declared(value: Option<&RawValue>) -> Option<&RawValue> {
    present(value).filter(|raw| raw.get() != "false")
}

fn flag(raw: &RawValue, name: &str) -> bool {
    member(raw, name).and_then(boolean).unwrap_or(false)
}
