//! A streamed tool call that survives dropped streams (R32, R33).

use alloc::string::String;
use core::mem;

use crate::time::Instant;
use crate::types::{CallToolResult, ContentBlock};

mod values;

pub use values::{
    DropReason, Source, StreamChunk, StreamDropped, StreamEnd, StreamPolicy, StreamResult,
    StreamTextPolicy, StreamUpdate, StreamWish,
};

#[derive(Clone, Debug)]
enum State {
    Idle,
    /// The newest source is open and may be silent until then.
    Open {
        idle: Instant,
    },
    /// The next attempt is due then.
    Waiting {
        until: Instant,
    },
    /// The end was not taken yet.
    Ending(StreamEnd),
    Ended,
}

#[derive(Clone, Debug)]
struct Checkpoint {
    token: String,
    /// How much of the text it covers.
    length_bytes: usize,
}

/// Keeps one streamed tool call going: opens its source, opens it again where it was dropped, from the
/// last checkpoint if there is one, and says what became of the text.
///
/// ```
/// use mcp_proto::Instant;
/// use mcp_proto::continuation::{StreamChunk, StreamContinuation, StreamPolicy, StreamWish};
///
/// let mut stream = StreamContinuation::new(StreamPolicy::default(), "key-1");
/// stream.start(Instant::ZERO);
/// let open = StreamWish::Open { source: 1, token: None, key: "key-1".into() };
/// assert_eq!(stream.poll_wish(), Some(open));
///
/// let chunk = StreamChunk { text: "half".into(), checkpoint_token: Some("t".into()), ..Default::default() };
/// stream.chunk(1, chunk, Instant::ZERO);
/// stream.ended(1, Instant::ZERO);
/// while stream.poll_wish().is_some() {}
///
/// let due = stream.poll_timeout().unwrap();
/// stream.time_passed(due);
/// let open = StreamWish::Open { source: 2, token: Some("t".into()), key: "key-1".into() };
/// assert_eq!(stream.poll_wish(), Some(open));
/// ```
#[derive(Clone, Debug)]
pub struct StreamContinuation {
    policy: StreamPolicy,
    key: String,
    state: State,
    /// How many attempts were begun; the number of the newest.
    source: Source,
    /// The source that is to be closed, until that wish is taken.
    close: Option<Source>,
    /// Whether the newest source is still to be opened.
    open: bool,
    text: String,
    checkpoint: Option<Checkpoint>,
    /// How much text the application has; of that, how much is still true.
    told: usize,
    still_true: usize,
    /// How much text there was when the present attempt began, and how much of that it goes on from.
    begun: usize,
    kept: usize,
    answer: Option<CallToolResult>,
    deadline: Instant,
    dropped_late: u64,
    now: Instant,
}

impl StreamContinuation {
    /// A stream that waits for [`start`](Self::start), with the idempotency key of its call.
    #[must_use]
    pub fn new(policy: StreamPolicy, key: impl Into<String>) -> Self {
        Self {
            policy,
            key: key.into(),
            state: State::Idle,
            source: 0,
            close: None,
            open: false,
            text: String::new(),
            checkpoint: None,
            told: 0,
            still_true: 0,
            begun: 0,
            kept: 0,
            answer: None,
            deadline: Instant::MAX,
            dropped_late: 0,
            now: Instant::ZERO,
        }
    }

    /// Begins. A second start is ignored.
    ///
    /// After this and every other fact, drain [`poll_wish`](Self::poll_wish) and ask
    /// [`poll_timeout`](Self::poll_timeout) again. A `now` before an earlier one counts as that one.
    pub fn start(&mut self, now: Instant) {
        self.advance(now);
        if matches!(self.state, State::Idle) {
            self.deadline = self.now + self.policy.absolute_timeout;
            self.reopen();
        }
    }

    /// A piece arrived.
    pub fn chunk(&mut self, source: Source, chunk: StreamChunk, now: Instant) {
        if !self.concerns(source, now) {
            return;
        }
        self.state = State::Open {
            idle: self.now + self.policy.idle_timeout,
        };
        let is_checkpoint = chunk.checkpoint_token.is_some();
        if is_checkpoint || !chunk.dropped {
            if self.text.len().saturating_add(chunk.text.len()) > self.policy.text_bytes {
                return self.give_up(DropReason::TextLimit, true);
            }
            self.text.push_str(&chunk.text);
        }
        if let Some(token) = chunk.checkpoint_token {
            if token.len() > self.policy.token_bytes {
                return self.give_up(DropReason::TokenLimit, true);
            }
            let length_bytes = self.text.len();
            self.checkpoint = Some(Checkpoint {
                token,
                length_bytes,
            });
        }
        if chunk.dropped {
            self.on_drop(true);
        } else if chunk.is_final {
            self.finish(false, true);
        } else {
            self.check_deadline();
        }
    }

    /// The source ended without a final piece.
    pub fn ended(&mut self, source: Source, now: Instant) {
        if self.concerns(source, now) {
            self.on_drop(false);
        }
    }

    /// The source failed, or could not be opened. `may_retry` is what the
    /// [retry gate](crate::safety) says of the failure (R34).
    pub fn failed(&mut self, source: Source, may_retry: bool, now: Instant) {
        if !self.concerns(source, now) {
            return;
        }
        if may_retry {
            self.on_drop(false);
        } else {
            self.give_up(DropReason::Refused, false);
        }
    }

    /// The source cannot be opened yet, or nobody may ask it anything: its silence does not count until
    /// [`opened`](Self::opened), the overall deadline does.
    pub fn held(&mut self, source: Source) {
        if source == self.source
            && let State::Open { idle } = &mut self.state
        {
            *idle = Instant::MAX;
        }
    }

    /// The source is open; its silence counts from now on.
    pub fn opened(&mut self, source: Source, now: Instant) {
        if self.concerns(source, now) {
            self.state = State::Open {
                idle: self.now + self.policy.idle_timeout,
            };
        }
    }

    /// The whole answer is here, and what it says is what counts. Text that it begins with is kept, and
    /// only the rest is new; otherwise all of it comes anew. Where text is only ever appended
    /// ([`StreamTextPolicy::Append`]) the rest of the answer is, as far as it can be told.
    pub fn completed(&mut self, source: Source, answer: CallToolResult, now: Instant) {
        if !self.concerns(source, now) {
            return;
        }
        let text = concatenated(&answer);
        if text.len() > self.policy.text_bytes {
            return self.give_up(DropReason::TextLimit, false);
        }
        match self.policy.text {
            StreamTextPolicy::Checkpointed if !text.starts_with(&self.text) => {
                self.still_true = 0;
                self.text = text;
            }
            StreamTextPolicy::Checkpointed => self.text = text,
            StreamTextPolicy::Append => {
                let rest = self.rest_of(&text).unwrap_or_default();
                if self.text.len().saturating_add(rest.len()) > self.policy.text_bytes {
                    return self.give_up(DropReason::TextLimit, false);
                }
                self.text.push_str(rest);
            }
        }
        self.answer = Some(answer);
        self.finish(false, false);
    }

    /// Time passed since then that does not count: somebody was asked for something.
    pub fn stood_still(&mut self, since: Instant, now: Instant) {
        self.deadline = self.deadline + now.since(since);
    }

    /// There is nobody left to ask.
    pub fn lost(&mut self, now: Instant) {
        self.advance(now);
        if !self.is_over() {
            let is_up = matches!(self.state, State::Open { .. });
            self.give_up(DropReason::PeerLost, is_up);
        }
    }

    /// Whether [`time_passed`](Self::time_passed) begins the next attempt.
    #[must_use]
    pub fn is_due(&self, now: Instant) -> bool {
        matches!(self.state, State::Waiting { until } if until <= now && now < self.deadline)
    }

    /// When all attempts together have taken as long as they may.
    #[must_use]
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether there is no attempt after the present one.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        self.source > self.policy.max_retries
    }

    /// The application wants no more. What was complete before stays complete (R40).
    pub fn cancel(&mut self, now: Instant) {
        self.advance(now);
        self.finish(true, true);
    }

    /// Time passed. A call before [`poll_timeout`](Self::poll_timeout) changes nothing.
    pub fn time_passed(&mut self, now: Instant) {
        self.advance(now);
        if self.check_deadline() {
            return;
        }
        match self.state {
            State::Open { idle } if idle <= self.now => self.on_drop(true),
            State::Waiting { until } if until <= self.now => self.reopen(),
            _ => {}
        }
    }

    /// When [`time_passed`](Self::time_passed) is due. `None` exactly before the start and after the end.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Open { idle: at } | State::Waiting { until: at } => Some(at.min(self.deadline)),
            State::Idle | State::Ending(_) | State::Ended => None,
        }
    }

    /// The next wish. Changes only with facts; there are never more than a few.
    pub fn poll_wish(&mut self) -> Option<StreamWish> {
        if let Some(source) = self.close.take() {
            return Some(StreamWish::Close { source });
        }
        if let Some(update) = self.poll_update() {
            return Some(StreamWish::Update(update));
        }
        if mem::take(&mut self.open) {
            let token = self.checkpoint.as_ref();
            return Some(StreamWish::Open {
                source: self.source,
                token: token.map(|checkpoint| checkpoint.token.clone()),
                key: self.key.clone(),
            });
        }
        if !matches!(self.state, State::Ending(_)) {
            return None;
        }
        match mem::replace(&mut self.state, State::Ended) {
            State::Ending(end) => Some(StreamWish::End(end)),
            _ => None,
        }
    }

    /// The text so far; empty once the end was taken.
    #[must_use]
    pub fn text(&self) -> &str {
        match &self.state {
            State::Ending(Ok(result)) => &result.text,
            State::Ending(Err(dropped)) => &dropped.partial_text,
            _ => &self.text,
        }
    }

    /// Whether it is over, be the end taken or not.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.state, State::Ending(_) | State::Ended)
    }

    /// How many facts came from attempts that no longer count, and were dropped.
    #[must_use]
    pub const fn dropped_late(&self) -> u64 {
        self.dropped_late
    }

    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    /// Whether a fact is about the source that is open.
    fn concerns(&mut self, source: Source, now: Instant) -> bool {
        self.advance(now);
        let concerns = matches!(self.state, State::Open { .. }) && source == self.source;
        if !concerns && (1..=self.source).contains(&source) {
            self.dropped_late = self.dropped_late.saturating_add(1);
        }
        concerns
    }

    /// The present attempt came to nothing; `is_up` when its source may still be there.
    fn on_drop(&mut self, is_up: bool) {
        if self.source > self.policy.max_retries {
            return self.give_up(DropReason::Exhausted, is_up);
        }
        let until = self.now + self.policy.backoff.wait(&self.key, self.source);
        if until >= self.deadline {
            return self.give_up(DropReason::Deadline, is_up);
        }
        self.close(is_up);
        self.state = State::Waiting { until };
    }

    /// What of an answer was not told yet, where told text is never taken back. `None` when the text of this
    /// attempt is not in it.
    fn rest_of<'a>(&self, answer: &'a str) -> Option<&'a str> {
        let (earlier, present) = self.text.split_at_checked(self.begun)?;
        let kept = earlier.get(..self.kept)?;
        let mut ways = [earlier, kept, ""].into_iter();
        ways.find_map(|way| answer.strip_prefix(way)?.strip_prefix(present))
    }

    /// Begins an attempt, with the text that goes with the place where it begins.
    fn reopen(&mut self) {
        let checkpoint = self.checkpoint.as_ref();
        self.kept = checkpoint.map_or(0, |checkpoint| checkpoint.length_bytes);
        if self.policy.text == StreamTextPolicy::Checkpointed {
            self.text.truncate(self.kept);
            self.still_true = self.still_true.min(self.kept);
        }
        self.begun = self.text.len();
        self.source = self.source.saturating_add(1);
        self.open = true;
        self.state = State::Open {
            idle: self.now + self.policy.idle_timeout,
        };
    }

    fn check_deadline(&mut self) -> bool {
        let (is_up, is_due) = match self.state {
            State::Open { .. } => (true, self.deadline <= self.now),
            State::Waiting { .. } => (false, self.deadline <= self.now),
            State::Idle | State::Ending(_) | State::Ended => return false,
        };
        if is_due {
            self.give_up(DropReason::Deadline, is_up);
        }
        is_due
    }

    fn finish(&mut self, cancelled: bool, is_up: bool) {
        if self.is_over() {
            return;
        }
        self.close(is_up && matches!(self.state, State::Open { .. }));
        self.state = State::Ending(Ok(StreamResult {
            text: self.take_text(),
            cancelled,
            attempts: self.source,
            answer: self.answer.take(),
        }));
    }

    fn give_up(&mut self, reason: DropReason, is_up: bool) {
        self.close(is_up);
        let (token, checkpoint_bytes) = match self.checkpoint.take() {
            Some(checkpoint) => (Some(checkpoint.token), checkpoint.length_bytes),
            None => (None, 0),
        };
        self.state = State::Ending(Err(StreamDropped {
            reason,
            token,
            partial_text: self.take_text(),
            checkpoint_bytes,
            key: mem::take(&mut self.key),
            attempts: self.source,
            degrades: reason == DropReason::Exhausted,
        }));
    }

    /// A source that was never wished for is not closed either.
    fn close(&mut self, is_up: bool) {
        if mem::take(&mut self.open) {
            return;
        }
        if is_up {
            self.close = Some(self.source);
        }
    }

    /// What the application has not been told yet. Nothing is queued for it: the difference between what
    /// it has and what there is needs no memory.
    fn poll_update(&mut self) -> Option<StreamUpdate> {
        if self.still_true < self.told {
            self.told = self.still_true;
            return Some(StreamUpdate::Rewind {
                length_bytes: self.told,
            });
        }
        let news = self.text().get(self.told..).unwrap_or_default();
        if news.is_empty() {
            return None;
        }
        let news = String::from(news);
        self.told += news.len();
        self.still_true = self.told;
        Some(StreamUpdate::Text(news))
    }

    fn take_text(&mut self) -> String {
        mem::take(&mut self.text)
    }
}

/// The text blocks of an answer, one after the other.
fn concatenated(answer: &CallToolResult) -> String {
    let texts = answer.content.iter().filter_map(ContentBlock::text);
    texts.fold(String::new(), |text, block| text + &block)
}

#[cfg(test)]
mod tests;
