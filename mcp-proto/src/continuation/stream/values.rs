//! What goes into a stream and comes out of it.

use alloc::string::String;

use crate::continuation::Backoff;
use crate::time::Duration;
use crate::types::CallToolResult;

/// What is kept of the text when a dropped stream is taken up again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamTextPolicy {
    /// What the last checkpoint covers; on a replay of the whole call nothing.
    #[default]
    Checkpointed,
    /// Everything, also what will come a second time.
    Append,
}

/// How one stream is kept going.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamPolicy {
    /// Attempts after the first one: `maxContinuationRetries`.
    pub max_retries: u32,
    /// The longest silence of one attempt: `timeoutMs`.
    pub idle_timeout: Duration,
    /// The longest duration of all attempts together, waits included: `absoluteTimeoutMs`.
    pub absolute_timeout: Duration,
    /// The waits between attempts.
    pub backoff: Backoff,
    /// What is kept on resume.
    pub text: StreamTextPolicy,
    /// The longest text, in bytes. Default 16 MiB.
    pub text_bytes: usize,
    /// The longest checkpoint token, in bytes. Default 64 KiB.
    pub token_bytes: usize,
}

impl Default for StreamPolicy {
    fn default() -> Self {
        Self {
            max_retries: 3,
            idle_timeout: Duration::from_secs(60),
            absolute_timeout: Duration::from_secs(600),
            backoff: Backoff::default(),
            text: StreamTextPolicy::default(),
            text_bytes: 16 << 20,
            token_bytes: 64 << 10,
        }
    }
}

/// One piece of a stream, from its source. Whatever is not set says nothing.
///
/// When several are set, a checkpoint counts before a drop, a drop before text, text before the end. So
/// the text of a piece that says *dropped* counts only if the piece is a checkpoint too (R33).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamChunk {
    /// The text that goes on after that of earlier pieces.
    pub text: String,
    /// A token to resume from after this piece, its own text included. Any text is one, the empty one too.
    pub checkpoint_token: Option<String>,
    /// The stream is complete with this piece (`final`).
    pub is_final: bool,
    /// The source lost its stream.
    pub dropped: bool,
}

/// Names one attempt, so that a fact about an earlier one changes nothing. From 1.
pub type Source = u32;

/// What the machine wants. Take every one, in order, after each call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamWish {
    /// Open the source: a new request for the same call.
    Open {
        /// Which attempt it is; facts about it carry this number.
        source: Source,
        /// Where to go on; `None` runs the whole call (again).
        token: Option<String>,
        /// The idempotency key, the same for all attempts.
        key: String,
    },
    /// Give the source up: it is silent, or nobody wants it any longer. What it says after this changes
    /// nothing.
    Close {
        /// Which attempt.
        source: Source,
    },
    /// Tell the application.
    Update(StreamUpdate),
    /// It is over. Nothing follows.
    End(StreamEnd),
}

/// What the application sees while it streams. All updates applied in order give the text of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamUpdate {
    /// More text.
    Text(String),
    /// Forget the text after the first so many bytes: it will come again, perhaps differently.
    Rewind {
        /// How many bytes stay; never within a character.
        length_bytes: usize,
    },
}

/// How a stream ended.
pub type StreamEnd = Result<StreamResult, StreamDropped>;

/// A stream that is complete, or was cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamResult {
    /// The whole text, or what there was of it.
    pub text: String,
    /// Whether the application cancelled before the text was complete (R40).
    pub cancelled: bool,
    /// How many attempts were begun.
    pub attempts: u32,
    /// The whole answer of the server, once it is complete; of a stream whose source is the caller's there
    /// is none.
    pub answer: Option<CallToolResult>,
}

impl StreamResult {
    /// Of a call that was cancelled before anything was sent.
    pub(crate) const fn unsent() -> Self {
        Self {
            text: String::new(),
            cancelled: true,
            attempts: 0,
            answer: None,
        }
    }
}

/// A stream that could not be brought to its end (R32).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("the stream ended before its text was complete: {reason}")]
pub struct StreamDropped {
    /// Why.
    pub reason: DropReason,
    /// The last checkpoint, if there was one: what a new call may resume from.
    pub token: Option<String>,
    /// All text there was, what no checkpoint covers included.
    pub partial_text: String,
    /// How much of it the checkpoint covers, in bytes: what to keep when the token is used.
    pub checkpoint_bytes: usize,
    /// The idempotency key, for a call that means the same.
    pub key: String,
    /// How many attempts were begun.
    pub attempts: u32,
    /// Whether the peer is to be degraded: it dropped the stream as often as was allowed (R32, R61).
    pub degrades: bool,
}

/// Why a stream was not taken up (again).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DropReason {
    /// The overall deadline came first.
    #[error("the overall deadline of the call passed")]
    Deadline,
    /// It was dropped as often as is allowed.
    #[error("it was dropped on every attempt")]
    Exhausted,
    /// The failure is one that must not be tried again.
    #[error("it failed in a way that must not be tried again")]
    Refused,
    /// Its server is gone and does not come back, or the client was closed.
    #[error("there is nobody left to ask")]
    PeerLost,
    /// The text would exceed [`StreamPolicy::text_bytes`].
    #[error("its text exceeds the limit")]
    TextLimit,
    /// A checkpoint token exceeds [`StreamPolicy::token_bytes`].
    #[error("a checkpoint token exceeds the limit")]
    TokenLimit,
}
