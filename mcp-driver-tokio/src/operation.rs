//! Operations under way, as the application holds them.

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_proto::types::{
    CallToolResult, CompleteResult, GetPromptResult, InputRequired, Prompt, ReadResourceResult,
    Resource, ResourceTemplate, Tool,
};
use mcp_proto::{Ended, Error, Listed, Notification, OperationId, Outcome, ProgressUpdate, Reply};

use crate::error::Cause;
use crate::shared::Owner;

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
    owner: Arc<Owner>,
    id: OperationId,
    learned: bool,
}

impl Pending {
    pub(crate) const fn new(owner: Arc<Owner>, id: OperationId) -> Self {
        Self {
            owner,
            id,
            learned: false,
        }
    }

    /// The operation's number, for [`Client::cancel`](crate::Client::cancel).
    #[must_use]
    pub const fn id(&self) -> OperationId {
        self.id
    }

    /// Cancels; the operation then ends at once with [`Cause::Cancelled`], unless it has ended before.
    pub fn cancel(&self) {
        self.owner
            .0
            .with(|state, now| state.core.cancel(self.id, now));
    }

    /// The next progress report; `None` once the operation has ended. Reports come only when
    /// [`Options::progress`](crate::Options::progress) was set; when more than 64 wait, the oldest ones
    /// are dropped. Dropping the returned future loses nothing.
    pub async fn progress(&mut self) -> Option<ProgressUpdate> {
        let next = poll_fn(|cx| {
            self.owner.0.poll(self.id, cx, |waiter| {
                let next = waiter.progress.pop_front();
                (next.is_some() || waiter.ended.is_some()).then_some(next)
            })
        });
        if self.learned { None } else { next.await }
    }
}

impl Future for Pending {
    type Output = Ended;

    /// Pending for ever after it was ready.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended> {
        let ended = self.owner.0.poll(self.id, cx, |waiter| waiter.ended.take());
        self.learned |= ended.is_ready();
        ended.map(|ended| *ended)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.owner.0.forget(self.id, self.learned);
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
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
pub struct Listener {
    pub(crate) pending: Pending,
    pub(crate) fetched: VecDeque<Notification>,
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
        poll_fn(|cx| {
            if self.fetched.is_empty() {
                // Registered before the fetch, so that what comes after it wakes the task.
                let over = shared.poll(id, cx, |waiter| waiter.ended.is_some().then_some(()));
                self.fetched = shared
                    .with(|state, _| state.core.take_notifications(id))
                    .into();
                if self.fetched.is_empty() {
                    return over.map(|()| None);
                }
            }
            Poll::Ready(self.fetched.pop_front())
        })
        .await
    }

    /// Ends the listening and says how many notifications came, those that were not fetched included.
    ///
    /// # Errors
    /// Why the listening had ended before.
    pub async fn finish(self) -> Result<u64, Error> {
        let Self { pending, .. } = self;
        pending
            .owner
            .0
            .with(|state, now| state.core.finish(pending.id, now));
        answer(pending.await)
    }
}

/// What came of a call, or of another request that may need input first.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)] // it is matched where it is returned, not kept
pub enum CallOutcome<T = CallToolResult> {
    /// The answer. A tool that says `isError` has answered too.
    Complete(T),
    /// The server needs input first; not an error. Ask for it and send the call again, with
    /// [`ToolCall::input_responses`](crate::ToolCall::input_responses) and the state that came with it.
    InputRequired(InputRequired),
}

/// The outcome of an operation that may need input.
pub(crate) fn outcome<T: Answer>(ended: Ended) -> Result<CallOutcome<T>, Error> {
    match ended.outcome {
        Outcome::Complete(reply) => {
            let answer = T::from(reply).ok_or_else(other_reply)?;
            Ok(CallOutcome::Complete(answer))
        }
        Outcome::InputRequired(input) => Ok(CallOutcome::InputRequired(input)),
        Outcome::Failed(error) => Err(error),
    }
}

/// The outcome of an operation where nothing can be asked back.
pub(crate) fn answer<T: Answer>(ended: Ended) -> Result<T, Error> {
    match outcome(ended)? {
        CallOutcome::Complete(answer) => Ok(answer),
        CallOutcome::InputRequired(_) => Err(other_reply()),
    }
}

/// The core never answers an operation with the reply of another kind.
fn other_reply() -> Error {
    Error::general(Cause::Usage(
        "the answer is of another kind than the operation".into(),
    ))
}

/// What one kind of operation is answered with.
pub(crate) trait Answer: Sized {
    fn from(reply: Reply) -> Option<Self>;
}

macro_rules! answers {
    ($($type:ty = $pattern:pat => $value:expr;)*) => {
        $(impl Answer for $type {
            fn from(reply: Reply) -> Option<Self> {
                if let $pattern = reply { Some($value) } else { None }
            }
        })*
    };
}

answers! {
    Vec<Listed<Tool>> = Reply::Tools(tools) => tools;
    Vec<Listed<Resource>> = Reply::Resources(resources) => resources;
    Vec<Listed<ResourceTemplate>> = Reply::ResourceTemplates(templates) => templates;
    Vec<Listed<Prompt>> = Reply::Prompts(prompts) => prompts;
    CallToolResult = Reply::Call(result) => result;
    ReadResourceResult = Reply::Read(result) => result;
    GetPromptResult = Reply::Prompt(result) => result;
    CompleteResult = Reply::Completion(result) => result;
    u64 = Reply::Listened { notifications } => notifications;
    () = Reply::Settled => ();
}
