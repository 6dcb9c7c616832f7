//! Streamed tool calls as applications and drivers see them (R32, R33).
//!
//! The machine behind it is [`StreamContinuation`](crate::StreamContinuation).

use alloc::boxed::Box;
use alloc::string::String;
use core::mem;

use crate::asking::{InputQuestion, RetryQuestion};
use crate::continuation::{Source, StreamTextPolicy, StreamUpdate};

/// That a tool call is streamed, and how: [`Options::stream`](crate::Options::stream).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Streaming {
    /// What is kept of the text when a dropped stream is taken up again.
    pub text: StreamTextPolicy,
    /// Who opens the stream.
    pub from: StreamFrom,
}

/// Who opens the stream of a streamed call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamFrom {
    /// The peer: the call is sent to it, and its progress notifications are the pieces.
    #[default]
    Peer,
    /// The application: it is told to by [`News::OpenSource`](crate::News::OpenSource), and feeds
    /// [`Client::chunk`](crate::Client::chunk). Nothing is sent to the peer.
    Application,
}

/// What is to be done about the source of a stream that is the application's.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceWish {
    /// Open it (again). Any source that was open for this operation is given up with that.
    Open(SourceRequest),
    /// Give it up. What is said about it after this changes nothing.
    Close {
        /// Which attempt.
        source: Source,
    },
}

/// What a source is opened with (R32).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRequest {
    /// Which attempt it is, from 1; whatever is said about it carries this number.
    pub source: Source,
    /// Where to go on; `None` runs the whole call (again).
    pub token: Option<String>,
    /// The idempotency key, the same for all attempts.
    pub key: String,
}

/// The next thing that an application has to know of an operation: [`Inbox::take_event`](crate::Inbox::take_event).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OperationEvent {
    /// The text of a streamed call changes.
    Update(StreamUpdate),
    /// Something is to be done about the application's source.
    Source(SourceWish),
    /// The server needs input.
    InputNeeded(Box<InputQuestion>),
    /// It no longer needs it: whoever was asked may stop.
    InputWithdrawn,
    /// A request may be sent again, or may not.
    RetryQuestion(Box<RetryQuestion>),
    /// The operation has ended, and everything of it was taken but its end.
    Over,
}

/// Updates of one stream that the application has not taken, as few as say the same: at most one
/// [`Rewind`](StreamUpdate::Rewind) and one [`Text`](StreamUpdate::Text). So what waits is never more than
/// the text itself, which is bounded.
///
/// ```
/// use mcp_proto::{continuation::StreamUpdate, streaming::Undelivered};
/// let mut waiting = Undelivered::default();
/// waiting.push(StreamUpdate::Text("one ".into()));
/// waiting.push(StreamUpdate::Text("two ".into()));
/// waiting.push(StreamUpdate::Rewind { length_bytes: 4 });
/// assert_eq!(waiting.take(), Some(StreamUpdate::Text("one ".into())));
/// assert_eq!(waiting.take(), None);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Undelivered {
    /// How much text the application has.
    taken: usize,
    /// How much of that stays, where not all.
    rewind: Option<usize>,
    /// What comes after it.
    text: String,
}

impl Undelivered {
    /// Adds an update.
    pub fn push(&mut self, update: StreamUpdate) {
        match update {
            StreamUpdate::Text(text) if self.text.is_empty() => self.text = text,
            StreamUpdate::Text(text) => self.text.push_str(&text),
            StreamUpdate::Rewind { length_bytes } => {
                let kept = self.rewind.unwrap_or(self.taken);
                if let Some(rest) = length_bytes.checked_sub(kept) {
                    self.text.truncate(rest);
                } else {
                    self.text.clear();
                    self.rewind = Some(length_bytes);
                }
            }
        }
    }

    /// The next update, in order.
    pub fn take(&mut self) -> Option<StreamUpdate> {
        if let Some(length_bytes) = self.rewind.take() {
            self.taken = length_bytes;
            return Some(StreamUpdate::Rewind { length_bytes });
        }
        if self.text.is_empty() {
            return None;
        }
        self.taken = self.taken.saturating_add(self.text.len());
        Some(StreamUpdate::Text(mem::take(&mut self.text)))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    /// What an application makes of updates.
    fn apply(text: &mut String, update: StreamUpdate) {
        match update {
            StreamUpdate::Text(more) => text.push_str(&more),
            StreamUpdate::Rewind { length_bytes } => text.truncate(length_bytes),
        }
    }

    proptest! {
        /// R32: whenever updates are taken, they give the same text as if each had been taken at once, and
        /// no more than two of them wait.
        #[test]
        fn r32_coalesced_updates_say_the_same(
            steps in prop::collection::vec((0..4_u8, "[a-z]{0,5}", 0..20_usize), 0..40),
        ) {
            let (mut told, mut seen) = (String::new(), String::new());
            let mut waiting = Undelivered::default();
            for (step, text, at) in steps {
                let update = match step {
                    0 => StreamUpdate::Rewind { length_bytes: at.min(told.len()) },
                    1 | 2 => StreamUpdate::Text(text),
                    _ => {
                        let taken: Vec<_> = core::iter::from_fn(|| waiting.take()).collect();
                        prop_assert!(taken.len() <= 2);
                        taken.into_iter().for_each(|update| apply(&mut seen, update));
                        prop_assert_eq!(&seen, &told);
                        continue;
                    }
                };
                apply(&mut told, update.clone());
                waiting.push(update);
            }
            core::iter::from_fn(|| waiting.take()).for_each(|update| apply(&mut seen, update));
            prop_assert_eq!(seen, told);
        }
    }
}
