//! Operations under way, as the application holds them.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_proto::asking::{InputQuestion, RetryQuestion};
use mcp_proto::types::InputResponses;
use mcp_proto::{Answer, Ended, Error, Notification, OperationId, ProgressUpdate, Question};

use crate::shared::{Owner, State};

/// An operation that was accepted: a future of how it [`Ended`].
///
/// Dropping it cancels the operation; the server is told. It keeps the client alive.
///
/// ```no_run
/// # async fn example(client: mcp_driver_tokio::Client) -> Result<(), mcp_driver_tokio::Error> {
/// use mcp_driver_tokio::{Operation, Options};
///
/// let options = Options { progress: true, ..Options::default() };
/// let mut pending = client.submit(Operation::call("build/run", None).with(options))?;
/// while let Some(progress) = pending.progress().await {
///     println!("{}", progress.progress);
/// }
/// println!("{:?}", pending.await.outcome);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping it cancels the operation"]
pub struct Pending {
    pub(crate) owner: Arc<Owner>,
    pub(crate) id: OperationId,
}

impl Pending {
    /// The operation's number, for [`Client::cancel`](crate::Client::cancel).
    #[must_use]
    pub const fn id(&self) -> OperationId {
        self.id
    }

    /// Cancels; the operation then ends at once with [`Cause::Cancelled`](crate::error::Cause::Cancelled),
    /// unless it has ended before.
    pub fn cancel(&self) {
        let cancel = |state: &mut State, now| state.core.cancel(self.id, now);
        self.owner.0.with(cancel);
    }

    /// What the server asks about an operation with [`Options::interactive`](crate::Options::interactive);
    /// `None` once the operation has ended. Answer it with [`answer`](Self::answer). Dropping the returned
    /// future loses nothing.
    pub async fn input_needed(&mut self) -> Option<Box<InputQuestion>> {
        let next = |cx: &mut Context<'_>| {
            self.owner.0.poll(self.id, cx, |inbox| {
                let next = inbox.take_input(self.id);
                (next.is_some() || inbox.is_over(self.id)).then_some(next)
            })
        };
        poll_fn(next).await
    }

    /// Answers what the server asks; the operation goes on.
    ///
    /// # Errors
    /// That is not asked (any longer), or the answers do not fit. The question stays open then.
    pub fn answer(&self, question: Question, responses: &InputResponses) -> Result<(), Error> {
        let answer = |state: &mut State, now| state.core.answer(self.id, question, responses, now);
        self.owner.0.with(answer)
    }

    /// Whether a request may be sent again, of an operation with
    /// [`Options::ask_retry`](crate::Options::ask_retry); `None` once the operation has ended. Answer with
    /// [`Client::decide`](crate::Client::decide). Dropping the returned future loses nothing.
    pub async fn retry_question(&mut self) -> Option<Box<RetryQuestion>> {
        let next = |cx: &mut Context<'_>| {
            self.owner.0.poll(self.id, cx, |inbox| {
                let next = inbox.take_question(self.id);
                (next.is_some() || inbox.is_over(self.id)).then_some(next)
            })
        };
        poll_fn(next).await
    }

    /// The next progress report; `None` once the operation has ended. Reports come only when
    /// [`Options::progress`](crate::Options::progress) was set; when more than 64 wait, the oldest ones
    /// are dropped. Dropping the returned future loses nothing.
    pub async fn progress(&mut self) -> Option<ProgressUpdate> {
        let next = |cx: &mut Context<'_>| {
            self.owner.0.poll(self.id, cx, |inbox| {
                let next = inbox.take_progress(self.id);
                (next.is_some() || inbox.is_over(self.id)).then_some(next)
            })
        };
        poll_fn(next).await
    }
}

impl Future for Pending {
    type Output = Ended;

    /// Pending for ever after it was ready.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended> {
        let shared = &self.owner.0;
        let ended = shared.poll(self.id, cx, |inbox| inbox.take_ended(self.id));
        ended.map(|ended| *ended)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let release = |state: &mut State, now| state.inbox.release(&mut state.core, self.id, now);
        let released = self.owner.0.with(release);
        // Not under the lock: the last waker of a task may drop what takes it.
        drop(released);
    }
}

/// A stream of change notifications. Dropping it ends the listening.
///
/// ```no_run
/// # async fn example(client: mcp_driver_tokio::Client) -> Result<(), mcp_driver_tokio::Error> {
/// let mut listener = client.listen(None)?;
/// while let Some(notification) = listener.next().await {
///     println!("{}: {}", notification.peer, notification.method);
/// }
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
    /// The operation's number.
    #[must_use]
    pub const fn id(&self) -> OperationId {
        self.pending.id
    }

    /// The next notification; `None` once the listening has ended: [`finish`](Self::finish) says why.
    /// Dropping the returned future loses nothing.
    ///
    /// A server is not read on while too many of its notifications wait to be fetched.
    pub async fn next(&mut self) -> Option<Notification> {
        let (shared, id) = (&self.pending.owner.0, self.pending.id);
        let next = |cx: &mut Context<'_>| {
            // Registered before the fetch, so that what comes after it wakes the task.
            let over = shared.poll(id, cx, |inbox| inbox.is_over(id).then_some(()));
            if self.fetched.is_empty() {
                let fetch = |state: &mut State, _| state.core.take_notifications(id);
                self.fetched = shared.with(fetch).into();
            }
            match self.fetched.pop_front() {
                None => over.map(|()| None),
                next => Poll::Ready(next),
            }
        };
        poll_fn(next).await
    }

    /// Ends the listening and says how many notifications came, those that were not fetched included.
    ///
    /// # Errors
    /// Why the listening had ended before.
    pub async fn finish(self) -> Result<u64, Error> {
        let finish = |state: &mut State, now| state.core.finish(self.pending.id, now);
        self.pending.owner.0.with(finish);
        u64::from_ended(self.pending.await)
    }
}
