//! The `initialize` handshake.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use serde::Serialize;
use serde_json::value::RawValue;

use super::{Declared, Message, dialect};
use crate::error::{Cause, RpcError};
use crate::negotiation::{Dialect, HandshakeAnswer, ModernError, printable};
use crate::version::{Era, Version};
use crate::violation::{Fault, Violation};
use crate::wire::{InvalidJson, Json, Members};

/// The request, ready to be sent, and the judgement of its answer.
///
/// The sequence on the wire is [`Handshake::request`], its answer, and only after a good one
/// [`Handshake::initialized`]; nothing else is sent before that, and the request is never cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    offered: Version,
    allowed: Vec<Version>,
    params: Json,
    declared: Declared,
}

/// A handshake cannot be built from this configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidHandshake {
    /// None of the configured revisions has a handshake.
    #[error("legacyVersions lists no revision that has a handshake")]
    NoRevision,
    /// The parameters cannot be written.
    #[error(transparent)]
    Json(#[from] InvalidJson),
}

/// What a server said about itself in a handshake that was answered well (R14).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegacySession {
    /// The revision that the server chose, one of the configured ones.
    pub version: Version,
    /// Its capabilities, an object, as sent.
    pub capabilities: Json,
    /// Its identity, an object, as sent. For display only.
    pub server_info: Json,
    /// `serverInfo.name`, not empty.
    pub server_name: String,
    /// `serverInfo.version`, not empty.
    pub server_version: String,
    /// Guidance for a model, if there is any.
    pub instructions: Option<String>,
}

/// Why a handshake selects nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandshakeFault {
    /// The server is modern.
    Modern(ModernError),
    /// Any other error.
    Rpc(RpcError),
    /// The server wants a revision that is unknown or not configured.
    Version {
        /// What it wants, bounded and printable.
        offered: Vec<String>,
    },
    /// The answer is no `InitializeResult`.
    Violation(Fault),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InitializeParams<'a> {
    protocol_version: &'a str,
    capabilities: &'a Json,
    client_info: &'a Json,
}

impl Handshake {
    /// The method of the request.
    pub const METHOD: &'static str = "initialize";

    /// A handshake that offers the newest of the `allowed` revisions and accepts all of them.
    ///
    /// `capabilities` and `client_info` are the objects to declare.
    ///
    /// # Errors
    /// [`InvalidHandshake::NoRevision`] when `allowed` holds no revision that has a handshake.
    pub fn new(
        allowed: &[Version],
        capabilities: &Json,
        client_info: &Json,
    ) -> Result<Self, InvalidHandshake> {
        let mut allowed = allowed.to_vec();
        allowed.retain(|version| version.era() == Era::Legacy);
        let offered = allowed
            .iter()
            .copied()
            .max()
            .ok_or(InvalidHandshake::NoRevision)?;
        let params = Json::encode(&InitializeParams {
            protocol_version: offered.as_str(),
            capabilities,
            client_info,
        })?;
        Ok(Self {
            offered,
            allowed,
            params,
            declared: Declared::read(capabilities),
        })
    }

    /// The revision that the request offers. Until the answer it is the one to read messages by.
    #[must_use]
    pub const fn offered(&self) -> Version {
        self.offered
    }

    /// What the server may ask for.
    #[must_use]
    pub const fn declared(&self) -> &Declared {
        &self.declared
    }

    /// The request.
    #[must_use]
    pub fn request(&self) -> Message {
        Message {
            method: Self::METHOD,
            params: Some(self.params.clone()),
        }
    }

    /// The notification that completes the handshake. It precedes every other message; over HTTP its
    /// exchange ends before the next one begins.
    #[must_use]
    pub const fn initialized() -> Message {
        Message {
            method: "notifications/initialized",
            params: None,
        }
    }

    /// Judges the result. Nothing is defaulted: what the revision requires has to be there (R14).
    ///
    /// # Errors
    /// [`HandshakeFault::Version`] for a revision outside the configured ones,
    /// [`HandshakeFault::Violation`] for a missing or wrongly typed member.
    pub fn read_result(&self, result: &Members<'_>) -> Result<LegacySession, HandshakeFault> {
        let text = string(result.get("protocolVersion"), "protocolVersion")?;
        let version = Version::parse(&text)
            .filter(|version| self.allowed.contains(version))
            .ok_or_else(|| HandshakeFault::Version {
                offered: vec![printable(&text)],
            })?;
        let (capabilities, _) = object(result, "capabilities")?;
        let (server_info, identity) = object(result, "serverInfo")?;
        Ok(LegacySession {
            version,
            server_name: non_empty(identity.get("name"), "serverInfo.name")?,
            server_version: non_empty(identity.get("version"), "serverInfo.version")?,
            capabilities: capabilities.into(),
            server_info: server_info.into(),
            // Optional, for display: a wrong type is as good as none.
            instructions: result
                .get("instructions")
                .and_then(|value| serde_json::from_str(value.get()).ok()),
        })
    }

    /// Judges an error response.
    ///
    /// A server that refuses the offered revision with an error (the lifecycle pages show `-32602`
    /// with `data.supported`) is reported with the revisions it lists; there is no second try.
    #[must_use]
    pub fn read_error(error: RpcError) -> HandshakeFault {
        let error = match ModernError::classify(error) {
            Ok(modern) => return HandshakeFault::Modern(modern),
            Err(other) => other,
        };
        match supported_versions(&error) {
            Some(offered) => HandshakeFault::Version { offered },
            None => HandshakeFault::Rpc(error),
        }
    }
}

impl LegacySession {
    /// The facts about the revision of this session.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        dialect(self.version)
    }

    /// Whether the server declares a capability (`tools`), or an option of one (`resources.subscribe`,
    /// `tools.listChanged`). Options count only when they are `true`, or an object.
    ///
    /// What is not declared may still work: this is what the server says.
    #[must_use]
    pub fn declares(&self, path: &str) -> bool {
        let (capability, option) = match path.split_once('.') {
            Some((capability, option)) => (capability, Some(option)),
            None => (path, None),
        };
        let declared = entries(self.capabilities.as_raw());
        let Some(value) = declared.get(capability).filter(|value| !is_null(value)) else {
            return false;
        };
        let Some(option) = option else {
            return true;
        };
        entries(value)
            .get(option)
            .is_some_and(|value| value.get() == "true" || value.get().starts_with('{'))
    }
}

impl HandshakeFault {
    /// What the negotiation is told.
    #[must_use]
    pub fn into_answer(self) -> HandshakeAnswer {
        match self {
            Self::Modern(error) => HandshakeAnswer::Modern(error),
            Self::Rpc(error) => HandshakeAnswer::Refused(Cause::Rpc(error)),
            Self::Version { offered } => HandshakeAnswer::Refused(Cause::Version { offered }),
            Self::Violation(fault) => HandshakeAnswer::Refused(Cause::SchemaViolation(fault)),
        }
    }
}

/// Whether the last lines of standard error say that the server died of a request before the
/// handshake.
///
/// Servers that treat any other first message as fatal name what they expected or what they got.
/// Such words make a failure say what to change; they are never evidence of an era.
#[must_use]
pub fn last_words_ask_for_handshake(stderr_tail: &str) -> bool {
    const WORDS: [&str; 7] = [
        "before initializ",
        "expected initialize",
        "expectedinitialize",
        "initialize request",
        "initializerequest",
        "server not initialized",
        "server/discover",
    ];
    let text = stderr_tail.to_ascii_lowercase();
    WORDS.iter().any(|word| text.contains(word))
}

/// `data.supported` of an error that refuses the offered revision.
fn supported_versions(error: &RpcError) -> Option<Vec<String>> {
    const INVALID_PARAMS: i64 = -32602;
    /// More are of no use to anybody.
    const MAX_LISTED: usize = 8;
    let data = error
        .data
        .as_ref()
        .filter(|_| error.code == INVALID_PARAMS)?;
    let supported = *entries(data.as_raw()).get("supported")?;
    let versions: Vec<String> = serde_json::from_str(supported.get()).ok()?;
    (!versions.is_empty()).then(|| {
        versions
            .iter()
            .take(MAX_LISTED)
            .map(|text| printable(text))
            .collect()
    })
}

/// The members of an object, none when it is no object. As a map: serde takes arrays for structs.
fn entries(raw: &RawValue) -> BTreeMap<String, &RawValue> {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

/// A member that has to be an object, and what is in it.
fn object<'a>(
    result: &Members<'a>,
    name: &str,
) -> Result<(&'a RawValue, BTreeMap<String, &'a RawValue>), HandshakeFault> {
    let value = result
        .get(name)
        .ok_or_else(|| malformed(format!("{name} is missing")))?;
    match serde_json::from_str(value.get()) {
        Ok(members) => Ok((value, members)),
        Err(_) => Err(malformed(format!("{name} is not an object"))),
    }
}

fn string(value: Option<&RawValue>, name: &str) -> Result<String, HandshakeFault> {
    let value = value.ok_or_else(|| malformed(format!("{name} is missing")))?;
    serde_json::from_str(value.get()).map_err(|_| malformed(format!("{name} is not a string")))
}

fn non_empty(value: Option<&&RawValue>, name: &str) -> Result<String, HandshakeFault> {
    let text = string(value.copied(), name)?;
    if text.is_empty() {
        return Err(malformed(format!("{name} is empty")));
    }
    Ok(text)
}

fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}

fn malformed(detail: impl ToString) -> HandshakeFault {
    HandshakeFault::Violation(Fault::new(Violation::MalformedResult, detail.to_string()))
}
