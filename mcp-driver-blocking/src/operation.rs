//! Operations under way, as the application holds them.

use std::collections::VecDeque;
use std::time::Duration;

use mcp_proto::asking::{InputQuestion, RetryQuestion, Said};
use mcp_proto::error::Cause;
use mcp_proto::streaming::OperationEvent;
use mcp_proto::types::InputResponses;
use mcp_proto::{
    Answer, Ended, Error, Notification, OperationId, Outcome, ProgressUpdate, Question,
};

use crate::client::Client;
use crate::engine::State;

/// An operation that was accepted. Dropping it cancels; the server is told. It keeps the client alive.
///
/// ```no_run
/// use mcp_driver_blocking::{Client, Error, Operation, Options};
///
/// # fn example(client: &Client) -> Result<(), Error> {
/// let options = Options { progress: true, ..Options::default() };
/// let pending = client.submit(Operation::call("build/run", None).with(options))?;
/// while let Some(progress) = pending.progress() {
///     println!("{}", progress.progress);
/// }
/// println!("{:?}", pending.wait().outcome);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping it cancels the operation"]
pub struct Pending {
    pub(crate) client: Client,
    pub(crate) id: OperationId,
}

impl Pending {
    /// The operation's number, with which any thread can [`cancel`](Client::cancel) it.
    #[must_use]
    pub const fn id(&self) -> OperationId {
        self.id
    }

    /// Cancels; the operation then ends at once with [`Cause::Cancelled`], unless it has ended before.
    pub fn cancel(&self) {
        self.client.cancel(self.id);
    }

    /// Waits for the end. If [`wait_timeout`](Self::wait_timeout) gave it out before, this says so as a
    /// [`Cause::Usage`].
    #[must_use]
    pub fn wait(self) -> Ended {
        let ended = self.take(None, |state| state.inbox.take_ended(self.id));
        ended.map_or_else(
            || Ended {
                operation: self.id,
                peer: None,
                tool: None,
                outcome: Outcome::Failed(Error::general(Cause::Usage(
                    "the end of this operation was taken before".into(),
                ))),
            },
            |ended| *ended,
        )
    }

    /// Waits for the end, but not longer than this. `None`: it goes on, and can be waited for again; or
    /// its end was given out before.
    pub fn wait_timeout(&self, longest: Duration) -> Option<Ended> {
        let ended = self.take(Some(longest), |state| state.inbox.take_ended(self.id));
        ended.map(|ended| *ended)
    }

    /// Waits for what the server asks about an operation with
    /// [`Options::interactive`](crate::Options::interactive); `None` once the operation has ended. Answer it
    /// with [`answer`](Self::answer).
    pub fn input_needed(&self) -> Option<Box<InputQuestion>> {
        self.take(None, |state| state.inbox.take_input(self.id))
    }

    /// Answers what the server asks; the operation goes on.
    ///
    /// # Errors
    /// That is not asked (any longer), or the answers do not fit. The question stays open then.
    pub fn answer(&self, question: Question, responses: &InputResponses) -> Result<(), Error> {
        let answer = |state: &mut State| state.core.answer(self.id, question, responses, state.now);
        self.client.owner.0.with(answer)
    }

    /// Waits for the question whether a request may be sent again, of an operation with
    /// [`Options::ask_retry`](crate::Options::ask_retry); `None` once the operation has ended. Answer with
    /// [`Client::decide`].
    pub fn retry_question(&self) -> Option<Box<RetryQuestion>> {
        self.take(None, |state| state.inbox.take_question(self.id))
    }

    /// Says what a handler said.
    pub(crate) fn say(&self, said: &Said) {
        let say = |state: &mut State| state.core.said(self.id, said, state.now);
        self.client.owner.0.with(say);
    }

    /// Waits for whatever is next.
    pub(crate) fn event(&self) -> OperationEvent {
        let event = self.take(None, |state| state.inbox.take_event(self.id));
        event.unwrap_or(OperationEvent::Over)
    }

    /// Waits for the next progress report; `None` once the operation has ended. Reports come only when
    /// [`Options::progress`](crate::Options::progress) was set; when more than 64 wait, the oldest ones
    /// are dropped.
    pub fn progress(&self) -> Option<ProgressUpdate> {
        self.take(None, |state| state.inbox.take_progress(self.id))
    }

    /// Waits for what is found; `None` when the operation is over without it, or time is.
    fn take<T>(
        &self,
        longest: Option<Duration>,
        mut found: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        let shared = &self.client.owner.0;
        let waited = shared.wait(shared.lock(), self.id, longest, |state| {
            let found = found(state);
            (found.is_some() || state.inbox.is_over(self.id)).then_some(found)
        });
        waited.flatten()
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let release = |state: &mut State| {
            let (inbox, core, now) = state.parts();
            inbox.release(core, self.id, now);
        };
        self.client.owner.0.with(release);
    }
}

/// Change notifications as they come. Dropping it ends the listening.
///
/// ```no_run
/// # fn example(client: &mcp_driver_blocking::Client) -> Result<(), mcp_driver_blocking::Error> {
/// let mut listener = client.listen(None)?;
/// while let Some(notification) = listener.next_timeout(std::time::Duration::from_secs(60)) {
///     println!("{}: {}", notification.peer, notification.method);
/// }
/// println!("{} came", listener.finish()?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping it ends the listening"]
pub struct Listener {
    pub(crate) pending: Pending,
    pub(crate) fetched: VecDeque<Notification>,
}

/// For a [`Request::Listen`](mcp_proto::Request::Listen) that was submitted with options of its own.
/// Of any other operation there are no notifications.
impl From<Pending> for Listener {
    fn from(pending: Pending) -> Self {
        let fetched = VecDeque::new();
        Self { pending, fetched }
    }
}

impl Listener {
    /// The operation's number, with which any thread can [`cancel`](Client::cancel) it.
    #[must_use]
    pub const fn id(&self) -> OperationId {
        self.pending.id
    }

    /// Waits for the next notification; `None` once the listening has ended: [`finish`](Self::finish)
    /// says why.
    ///
    /// A server is not read on while too many of its notifications wait to be fetched.
    #[allow(clippy::should_implement_trait)] // an iterator would invite adaptors that block
    pub fn next(&mut self) -> Option<Notification> {
        self.take(None)
    }

    /// Waits for the next notification, but not longer than this; `None` then, and when no more can come.
    pub fn next_timeout(&mut self, longest: Duration) -> Option<Notification> {
        self.take(Some(longest))
    }

    /// Ends the listening and says how many notifications came, those that were not fetched included.
    ///
    /// # Errors
    /// Why the listening had ended before.
    pub fn finish(self) -> Result<u64, Error> {
        let finish = |state: &mut State| state.core.finish(self.pending.id, state.now);
        self.pending.client.owner.0.with(finish);
        u64::from_ended(self.pending.wait())
    }

    fn take(&mut self, longest: Option<Duration>) -> Option<Notification> {
        let (id, fetched) = (self.pending.id, &mut self.fetched);
        self.pending.take(longest, |state| {
            if fetched.is_empty() {
                fetched.extend(state.core.take_notifications(id));
            }
            fetched.pop_front()
        })
    }
}
