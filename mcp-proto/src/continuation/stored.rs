//! A pending request as a value that can be stored, moved and taken up elsewhere (R31).

use alloc::string::{String, ToString};

use serde::{Deserialize, Serialize};

use super::pending::{PeerPin, PendingRequest, ResumableMethod};
use crate::identity::{CallerMeta, Params, Sha256Hex, TraceContext};
use crate::safety::IdempotencyKey;
use crate::types::InputRequired;
use crate::version::{Era, Version};
use crate::wire::{Json, depth};

const FORMAT: &str = "mcp-continuation";
const FORMAT_VERSION: u32 = 1;
/// As deep as [`Limits`](crate::Limits) let a message be by default.
const DEPTH_MAX: usize = 128;

/// A pending request with what its server asks, as a value: store it, move it, and take it up with
/// [`InputRounds::resume`](super::InputRounds::resume) of a fresh client.
///
/// It serializes with serde, in any format; [`to_json`](Self::to_json) and
/// [`from_json`](Self::from_json) are the form with typed errors. JSON texts that have to stay as they
/// are, byte by byte, are strings in it. A digest finds damage. It does not make a stored value
/// trustworthy: who can write it can have any request sent to that peer.
///
/// No secret of the configuration is in it: neither environment nor headers nor tokens. What the
/// application sent and what the server asked are, so keep it as safe as those.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Continuation {
    request: PendingRequest,
    rounds: u32,
    input: InputRequired,
}

/// A text that is no continuation that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContinuationError {
    /// Something in it was changed since it was stored.
    #[error("the stored continuation is damaged: its digest is another one")]
    Damaged,
    /// A member holds what it cannot hold.
    #[error("the stored continuation is not usable: {member}: {words}")]
    Invalid {
        /// Which member.
        member: &'static str,
        /// What is wrong with it.
        words: String,
    },
    /// It is something else.
    #[error("not a stored continuation")]
    NotContinuation,
    /// It is not readable at all.
    #[error("the stored continuation is not readable: {0}")]
    Unreadable(String),
    /// It was stored by another version of this library.
    #[error(
        "the stored continuation has format version {found}, and this one reads {FORMAT_VERSION}"
    )]
    Version {
        /// Its format version.
        found: u32,
    },
}

/// A continuation that belongs to another server, or to this one as it was configured before. Nothing
/// was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeRefused {
    /// The configuration says another command, address or authorization context now.
    #[error("the configuration of {peer:?} has changed since the request was made")]
    OtherEndpoint {
        /// The peer.
        peer: String,
    },
    /// It is of a peer of another name.
    #[error("the request was made to {expected:?}, not to {found:?}")]
    OtherPeer {
        /// The peer that it was made to.
        expected: String,
        /// The peer that it was to be resumed with.
        found: String,
    },
    /// Another revision was agreed.
    #[error("the request was made in revision {expected}, and {found} is spoken now")]
    OtherVersion {
        /// The revision of the request.
        expected: Version,
        /// The present one.
        found: Version,
    },
}

impl Continuation {
    pub(super) fn new(request: PendingRequest, rounds: u32, mut input: InputRequired) -> Self {
        // For display only, and shown by now.
        input.meta = None;
        Self {
            request,
            rounds,
            input,
        }
    }

    pub(super) fn into_parts(self) -> (PendingRequest, u32, InputRequired) {
        (self.request, self.rounds, self.input)
    }

    /// The request.
    #[must_use]
    pub const fn request(&self) -> &PendingRequest {
        &self.request
    }

    /// What the server asks, with the state that goes back to it.
    #[must_use]
    pub const fn input(&self) -> &InputRequired {
        &self.input
    }

    /// How many answers were `input_required`.
    #[must_use]
    pub const fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Whether it belongs to this peer as it is now.
    ///
    /// # Errors
    /// [`ResumeRefused`] when it does not.
    pub fn check(&self, now: &PeerPin) -> Result<(), ResumeRefused> {
        let pin = &self.request.pin;
        if pin.peer != now.peer {
            return Err(ResumeRefused::OtherPeer {
                expected: pin.peer.clone(),
                found: now.peer.clone(),
            });
        }
        if pin.endpoint != now.endpoint {
            return Err(ResumeRefused::OtherEndpoint {
                peer: pin.peer.clone(),
            });
        }
        if pin.version != now.version {
            return Err(ResumeRefused::OtherVersion {
                expected: pin.version,
                found: now.version,
            });
        }
        Ok(())
    }

    /// As one JSON object on one line.
    #[must_use]
    pub fn to_json(&self) -> String {
        // A struct of strings and numbers always can be written.
        serde_json::to_string(&Stored::from(self.clone())).unwrap_or_default()
    }

    /// Reads what [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    /// [`ContinuationError`] when the text is anything else.
    pub fn from_json(text: &str) -> Result<Self, ContinuationError> {
        let unreadable =
            |error: serde_json::Error| ContinuationError::Unreadable(error.to_string());
        let json =
            Json::parse(text).map_err(|error| ContinuationError::Unreadable(error.to_string()))?;
        let head: Head = json
            .decode()
            .map_err(|_| ContinuationError::NotContinuation)?;
        check_head(&head.format, head.version)?;
        let stored: Stored = serde_json::from_str(text).map_err(unreadable)?;
        stored.try_into()
    }
}

/// What every format version begins with.
#[derive(Deserialize)]
struct Head {
    format: String,
    version: u32,
}

fn check_head(format: &str, version: u32) -> Result<(), ContinuationError> {
    match version {
        _ if format != FORMAT => Err(ContinuationError::NotContinuation),
        FORMAT_VERSION => Ok(()),
        found => Err(ContinuationError::Version { found }),
    }
}

/// The stored form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Stored {
    format: String,
    version: u32,
    peer: String,
    protocol_version: String,
    endpoint: String,
    method: String,
    params: String,
    meta: Option<String>,
    traceparent: Option<String>,
    call_index: Option<u64>,
    progress: bool,
    idempotency_key: Option<String>,
    rounds: u32,
    input_requests: Option<String>,
    request_state: Option<String>,
    digest: String,
}

impl Stored {
    /// Over everything else.
    fn digest(&self) -> Sha256Hex {
        let bare = Self {
            digest: String::new(),
            ..self.clone()
        };
        Sha256Hex::of(&serde_json::to_vec(&bare).unwrap_or_default())
    }
}

impl From<Continuation> for Stored {
    fn from(continuation: Continuation) -> Self {
        let (request, rounds, input) = continuation.into_parts();
        let trace = request.trace.as_ref();
        let mut stored = Self {
            format: FORMAT.to_string(),
            version: FORMAT_VERSION,
            peer: request.pin.peer,
            protocol_version: request.pin.version.to_string(),
            endpoint: request.pin.endpoint.to_string(),
            method: request.method.as_str().to_string(),
            params: request.params.as_str().to_string(),
            meta: request.meta.map(|meta| meta.to_text()),
            traceparent: trace.map(|trace| trace.traceparent().to_string()),
            call_index: trace.and_then(TraceContext::call_index),
            progress: request.progress,
            idempotency_key: request.key.map(|key| key.to_string()),
            rounds,
            input_requests: input.raw_requests.map(|raw| raw.as_str().to_string()),
            request_state: input
                .state
                .map(|state| state.as_json().as_str().to_string()),
            digest: String::new(),
        };
        stored.digest = stored.digest().to_string();
        stored
    }
}

impl TryFrom<Stored> for Continuation {
    type Error = ContinuationError;

    fn try_from(stored: Stored) -> Result<Self, ContinuationError> {
        check_head(&stored.format, stored.version)?;
        if stored.digest().as_str() != stored.digest {
            return Err(ContinuationError::Damaged);
        }
        let request = request(&stored)?;
        let requests = stored.input_requests.as_deref();
        let requests = requests
            .map(|text| json("inputRequests", text))
            .transpose()?;
        let state = stored.request_state.as_deref();
        let state = state.map(|text| json("requestState", text)).transpose()?;
        let input = InputRequired::restore(requests.as_ref(), state.as_ref())
            .map_err(|fault| invalid("inputRequests", &fault.detail))?;
        Ok(Self {
            request,
            rounds: stored.rounds,
            input,
        })
    }
}

fn request(stored: &Stored) -> Result<PendingRequest, ContinuationError> {
    let version = Version::parse(&stored.protocol_version)
        .filter(|version| version.era() == Era::Modern)
        .ok_or_else(|| invalid("protocolVersion", "is none that has input requests"))?;
    let pin = PeerPin {
        peer: stored.peer.clone(),
        version,
        endpoint: Sha256Hex::parse(&stored.endpoint)
            .ok_or_else(|| invalid("endpoint", "is no digest"))?,
    };
    let method = ResumableMethod::parse(&stored.method)
        .ok_or_else(|| invalid("method", "is none that takes several rounds"))?;
    let (params, meta) = Params::parse(&json("params", &stored.params)?)
        .map_err(|error| invalid("params", &error.to_string()))?;
    let request = PendingRequest::new(pin, method, params);
    if meta.is_some() || request.params.as_str() != stored.params {
        return Err(invalid("params", "is not as it was written"));
    }
    let meta = stored.meta.as_deref().map(|text| {
        CallerMeta::parse(&json("meta", text)?).map_err(|error| invalid("meta", &error.to_string()))
    });
    let key = stored.idempotency_key.as_deref().map(IdempotencyKey::given);
    let key = key
        .transpose()
        .map_err(|error| invalid("idempotencyKey", &error.to_string()))?;
    let request = request
        .with_meta(meta.transpose()?)
        .with_progress(stored.progress)
        .with_key(key);
    match (&stored.traceparent, stored.call_index) {
        (Some(traceparent), call_index) => TraceContext::restore(traceparent, call_index)
            .map(|trace| request.with_trace(trace))
            .ok_or_else(|| invalid("traceparent", "is not as it was written")),
        (None, None) => Ok(request),
        (None, Some(_)) => Err(invalid("callIndex", "stands without a traceparent")),
    }
}

fn json(member: &'static str, text: &str) -> Result<Json, ContinuationError> {
    if depth::exceeds(text, DEPTH_MAX) {
        return Err(invalid(member, "is nested too deeply"));
    }
    Json::parse(text).map_err(|error| invalid(member, &error.to_string()))
}

fn invalid(member: &'static str, words: &str) -> ContinuationError {
    ContinuationError::Invalid {
        member,
        words: words.to_string(),
    }
}

#[cfg(test)]
mod tests;
