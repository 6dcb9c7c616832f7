//! Streams that came to nothing, and retries that were not made (R3, R32, R34).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::Error;
use crate::continuation::{DropReason, StreamDropped};
use crate::safety::RetryRefused;

/// A stream that could not be brought to its end, with what there was of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DroppedStream {
    /// The text so far, the last checkpoint and the key.
    pub stream: StreamDropped,
    /// How the last attempt failed, where an error says so.
    pub last: Option<Error>,
}

/// A retry that was needed and not made, with what the caller needs to go on by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedRetry {
    /// Why, the key, and the text of a stream so far.
    pub refused: RetryRefused,
    /// How the request failed.
    pub error: Error,
    /// The last checkpoint of a stream, if there was one.
    pub token: Option<String>,
}

impl DroppedStream {
    /// A stream that ended so, and how its last attempt failed.
    #[must_use]
    pub const fn new(stream: StreamDropped, last: Option<Error>) -> Self {
        Self { stream, last }
    }

    /// What is to be done about it, in one sentence.
    pub(crate) const fn remedy(&self) -> &'static str {
        match self.stream.reason {
            DropReason::Deadline => {
                "Set \"absoluteTimeoutMs\" for this server to more if the tool needs that long."
            }
            DropReason::Exhausted => {
                "Call again later, from the last checkpoint if there is one; \
                 \"maxContinuationRetries\" of this server says how often a stream is taken up again."
            }
            DropReason::TextLimit | DropReason::TokenLimit => {
                "Ask the tool for less at a time; what there was of its text is in the error."
            }
            DropReason::Refused | DropReason::PeerLost => {
                "Check whether the call took effect before calling again; what there was of its text is \
                 in the error."
            }
        }
    }
}

impl fmt::Display for DroppedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stream.fmt(f)?;
        match &self.last {
            Some(error) => write!(f, " ({})", error.cause),
            None => Ok(()),
        }
    }
}

impl fmt::Display for RefusedRetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.refused, self.error.cause)
    }
}

impl Error {
    /// The text of a stream that ended early, as far as it came.
    #[must_use]
    pub fn partial_text(&self) -> Option<&str> {
        match &self.cause {
            super::Cause::StreamDropped(dropped) => Some(&dropped.stream.partial_text),
            super::Cause::RetryRefused(refusal) => refusal.refused.partial_text.as_deref(),
            _ => self.text.as_ref().map(|text| &*text.0),
        }
    }

    /// The idempotency key under which the call can be made again, where the error is about that.
    #[must_use]
    pub fn idempotency_key(&self) -> Option<&str> {
        match &self.cause {
            super::Cause::StreamDropped(dropped) => Some(&dropped.stream.key),
            super::Cause::RetryRefused(refusal) => {
                refusal.refused.key.as_ref().map(|key| key.as_str())
            }
            _ => None,
        }
    }

    /// The last checkpoint of a stream that ended early, if there was one.
    #[must_use]
    pub fn checkpoint_token(&self) -> Option<&str> {
        match &self.cause {
            super::Cause::StreamDropped(dropped) => dropped.stream.token.as_deref(),
            super::Cause::RetryRefused(refusal) => refusal.token.as_deref(),
            _ => None,
        }
    }

    /// What the server last wrote to standard error, of the attempt that failed last.
    pub(super) fn stderr_of_attempt(&self) -> &[String] {
        const NONE: &Vec<String> = &Vec::new();
        match &self.cause {
            super::Cause::StreamDropped(dropped) => {
                dropped.last.as_ref().map_or(NONE, Self::stderr)
            }
            super::Cause::RetryRefused(refusal) => refusal.error.stderr(),
            _ => NONE,
        }
    }
}
