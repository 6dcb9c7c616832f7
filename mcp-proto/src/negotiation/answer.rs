//! What a server can answer to the probe and to the handshake.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde_json::value::RawValue;

use super::observation::{list_excerpt, printable};
use crate::error::{Cause, RpcError};
use crate::version::Version;
use crate::violation::{Fault, Violation};
use crate::wire::Json;

/// What came back for a probe, already correlated by the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeAnswer {
    /// A valid `DiscoverResult`. The caller keeps the rest of it.
    Discovered {
        /// `supportedVersions`, as sent.
        supported_versions: Vec<String>,
    },
    /// Nothing: a response without a body, or the result `{}`.
    Empty,
    /// A bad envelope, or a result that is neither empty nor a `DiscoverResult`.
    Malformed(Fault),
    /// An error that only modern servers send.
    Modern(ModernError),
    /// Any other JSON-RPC error.
    Error(RpcError),
    /// An HTTP 4xx other than 401, 403 and 429, whose body is no JSON-RPC error, described in a few
    /// words (`HTTP 400, text/plain: Bad Request`).
    Rejected(String),
}

impl ProbeAnswer {
    /// Sorts an error response by its code.
    ///
    /// ```
    /// use mcp_proto::error::RpcError;
    /// use mcp_proto::negotiation::ProbeAnswer;
    /// let error = RpcError { code: -32601, message: "Method not found".into(), data: None };
    /// assert!(matches!(ProbeAnswer::classify_error(error), ProbeAnswer::Error(_)));
    /// ```
    #[must_use]
    pub fn classify_error(error: RpcError) -> Self {
        ModernError::classify(error).map_or_else(Self::Error, Self::Modern)
    }
}

impl fmt::Display for ProbeAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Discovered { supported_versions } => {
                write!(
                    f,
                    "discover answer listing {}",
                    list_excerpt(supported_versions)
                )
            }
            Self::Empty => f.write_str("empty answer"),
            Self::Malformed(fault) => write!(f, "malformed answer: {fault}"),
            Self::Modern(error) => error.fmt(f),
            Self::Error(error) => write!(f, "error {}: {}", error.code, printable(&error.message)),
            Self::Rejected(description) => f.write_str(&printable(description)),
        }
    }
}

/// An error that only modern servers send: it proves one, whatever request it answers.
///
/// spec: 2026-07-28 schema, `-32020` to `-32022`
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModernError {
    /// `-32020`: the HTTP headers disagree with the body.
    HeaderMismatch(RpcError),
    /// `-32021`: the request needs a client capability that was not declared.
    MissingCapability {
        /// `data.requiredCapabilities` as sorted dotted paths two levels deep (`elicitation.url`,
        /// `roots`), or what is wrong with it.
        required: Result<Vec<String>, Fault>,
        /// The error as sent.
        error: RpcError,
    },
    /// `-32022`: the server does not speak the revision that the request declared.
    UnsupportedVersion {
        /// `data.supported`, or what is wrong with it.
        supported: Result<Vec<String>, Fault>,
        /// The error as sent.
        error: RpcError,
    },
}

impl ModernError {
    /// The code of [`ModernError::HeaderMismatch`].
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The code of [`ModernError::MissingCapability`].
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// The code of [`ModernError::UnsupportedVersion`].
    pub const UNSUPPORTED_VERSION: i64 = -32022;

    /// Recognises a modern error by its code alone, and then reads its `data`.
    ///
    /// # Errors
    /// The error itself when its code is any other.
    pub fn classify(error: RpcError) -> Result<Self, RpcError> {
        match error.code {
            Self::HEADER_MISMATCH => Ok(Self::HeaderMismatch(error)),
            Self::MISSING_CAPABILITY => Ok(Self::MissingCapability {
                required: required_capabilities(error.data.as_ref()),
                error,
            }),
            Self::UNSUPPORTED_VERSION => Ok(Self::UnsupportedVersion {
                supported: supported_versions(error.data.as_ref()),
                error,
            }),
            _ => Err(error),
        }
    }

    /// The error as sent.
    #[must_use]
    pub const fn rpc(&self) -> &RpcError {
        match self {
            Self::HeaderMismatch(error)
            | Self::MissingCapability { error, .. }
            | Self::UnsupportedVersion { error, .. } => error,
        }
    }
}

impl fmt::Display for ModernError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = self.rpc();
        let message = printable(&error.message);
        write!(f, "modern error {}: {message}", error.code)?;
        match self {
            Self::UnsupportedVersion {
                supported: Ok(supported),
                ..
            } => write!(f, " (supported: {})", list_excerpt(supported)),
            Self::MissingCapability {
                required: Ok(required),
                ..
            } => write!(f, " (required: {})", list_excerpt(required)),
            Self::UnsupportedVersion {
                supported: Err(fault),
                ..
            }
            | Self::MissingCapability {
                required: Err(fault),
                ..
            } => write!(f, " ({fault})"),
            Self::HeaderMismatch(_) => Ok(()),
        }
    }
}

/// What came back for the handshake, already judged by the code that knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandshakeAnswer {
    /// A correct answer with a configured older revision.
    Accepted {
        /// The revision that the server chose.
        version: Version,
    },
    /// A modern error: the server is modern after all.
    Modern(ModernError),
    /// Anything else; it ends the negotiation with this cause.
    Refused(Cause),
}

impl fmt::Display for HandshakeAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accepted { version } => write!(f, "accepted at {version}"),
            Self::Modern(error) => error.fmt(f),
            Self::Refused(cause) => f.write_str(&printable(&format!("{cause}"))),
        }
    }
}

fn supported_versions(data: Option<&Json>) -> Result<Vec<String>, Fault> {
    let supported = member(data, "supported")?;
    let versions: Vec<String> = serde_json::from_str(supported.get())
        .map_err(|_| malformed("error.data.supported is not a list of strings"))?;
    if versions.is_empty() {
        return Err(malformed("error.data.supported is empty"));
    }
    Ok(versions)
}

fn required_capabilities(data: Option<&Json>) -> Result<Vec<String>, Fault> {
    let required = member(data, "requiredCapabilities")?;
    let capabilities: BTreeMap<String, &RawValue> = serde_json::from_str(required.get())
        .map_err(|_| malformed("error.data.requiredCapabilities is not an object"))?;
    let mut paths = Vec::new();
    for (name, value) in capabilities {
        match serde_json::from_str::<BTreeMap<String, &RawValue>>(value.get()) {
            Ok(below) if !below.is_empty() => {
                paths.extend(below.into_keys().map(|sub| format!("{name}.{sub}")));
            }
            _ => paths.push(name),
        }
    }
    if paths.is_empty() {
        return Err(malformed("error.data.requiredCapabilities is empty"));
    }
    Ok(paths)
}

/// A member of `error.data`. Read as a map, not as a struct: serde would take an array for a struct.
fn member<'a>(data: Option<&'a Json>, name: &str) -> Result<&'a RawValue, Fault> {
    data.ok_or_else(|| malformed("error.data is missing"))?
        .view::<BTreeMap<String, &RawValue>>()
        .map_err(|_| malformed("error.data is not an object"))?
        .remove(name)
        .ok_or_else(|| malformed(format!("error.data.{name} is missing")))
}

fn malformed(detail: impl Into<String>) -> Fault {
    Fault::new(Violation::MalformedError, detail)
}
