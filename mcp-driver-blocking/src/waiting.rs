//! Operations that are under way.

use std::collections::VecDeque;
use std::time::Duration;

use mcp_proto::{Ended, Error, Notification, OperationId, Outcome, ProgressUpdate, Reply};

use crate::client::{Client, misuse, unanswered};
use crate::engine::Slot;

/// An operation that was submitted. Dropping it cancels.
///
/// ```no_run
/// use mcp_driver_blocking::{Client, PendingEvent};
/// use mcp_proto::{Operation, Options};
///
/// # fn example(client: &Client) -> Result<(), mcp_proto::Error> {
/// let options = Options { progress: true, ..Options::default() };
/// let pending = client.submit(Operation::call("build", None).with(options))?;
/// while let Some(event) = pending.next_event() {
///     match event {
///         PendingEvent::Progress(progress) => eprintln!("{}", progress.progress),
///         PendingEvent::Ended(ended) => println!("{:?}", ended.outcome),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping it cancels the operation"]
pub struct Pending {
    pub(crate) client: Client,
    pub(crate) id: OperationId,
}

/// What happens to a pending operation.
#[derive(Clone, Debug, PartialEq)]
pub enum PendingEvent {
    /// The server reported progress.
    Progress(ProgressUpdate),
    /// It ended.
    Ended(Ended),
}

impl Pending {
    /// The operation's handle, with which any thread can [`cancel`](Client::cancel) it.
    #[must_use]
    pub fn id(&self) -> OperationId {
        self.id
    }

    /// Waits for the end. If that was already taken by one of the other methods, this says so as a
    /// [`Cause::Usage`](mcp_proto::error::Cause::Usage).
    #[must_use]
    pub fn wait(self) -> Ended {
        let ended = self.take(None, |slot| slot.ended.take());
        let taken = || Outcome::Failed(misuse("the end of this operation was taken before"));
        ended.map_or_else(
            || Ended {
                operation: self.id,
                peer: None,
                tool: None,
                outcome: taken(),
            },
            |ended| *ended,
        )
    }

    /// Waits for the end, but not longer than this. `None`: it goes on, and can be waited for again.
    pub fn wait_timeout(&self, longest: Duration) -> Option<Ended> {
        self.take(Some(longest), |slot| slot.ended.take())
            .map(|ended| *ended)
    }

    /// Waits for progress or the end, which comes last; `None` after it. Of unread progress a bounded
    /// number is kept, the newest.
    pub fn next_event(&self) -> Option<PendingEvent> {
        self.take(None, |slot| match slot.progress.pop_front() {
            Some(progress) => Some(PendingEvent::Progress(progress)),
            None => slot.ended.take().map(|ended| PendingEvent::Ended(*ended)),
        })
    }

    /// Cancels: it ends with [`Cause::Cancelled`](mcp_proto::error::Cause::Cancelled), unless it has ended.
    pub fn cancel(&self) {
        self.client.cancel(self.id);
    }

    /// Waits for what is found in the slot; `None` when the operation is over without it.
    fn take<T>(
        &self,
        longest: Option<Duration>,
        mut found: impl FnMut(&mut Slot) -> Option<T>,
    ) -> Option<T> {
        let shared = self.client.shared();
        let waited = shared.wait(shared.lock(), self.id, longest, |state| {
            let slot = state.slots.get_mut(&self.id)?;
            let found = found(slot);
            (found.is_some() || slot.over).then_some(found)
        });
        waited.flatten()
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.client.shared().with(|state| {
            if state.slots.remove(&self.id).is_some_and(|slot| !slot.over) {
                state.core.cancel(self.id, state.now);
            }
        });
    }
}

/// Change notifications as they come. Dropping it ends the subscription.
///
/// ```no_run
/// # fn example(client: &mcp_driver_blocking::Client) -> Result<(), mcp_proto::Error> {
/// let mut listener = client.listen(None)?;
/// while let Some(notification) = listener.next_timeout(std::time::Duration::from_secs(60)) {
///     println!("{} says {}", notification.peer, notification.method);
/// }
/// println!("{} came", listener.finish()?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping it ends the subscription"]
pub struct Listener {
    pub(crate) pending: Pending,
    pub(crate) taken: VecDeque<Notification>,
}

impl Listener {
    /// The handle of the listening operation, with which any thread can [`cancel`](Client::cancel) it.
    #[must_use]
    pub fn id(&self) -> OperationId {
        self.pending.id
    }

    /// Waits for the next notification, without a limit; `None` when no more can come.
    #[allow(clippy::should_implement_trait)] // an iterator would invite adaptors that block
    pub fn next(&mut self) -> Option<Notification> {
        self.take(None)
    }

    /// Waits for the next notification, but not longer than this; `None` then, and when no more can come.
    pub fn next_timeout(&mut self, longest: Duration) -> Option<Notification> {
        self.take(Some(longest))
    }

    /// Ends the subscription: how many notifications came.
    ///
    /// # Errors
    /// When it had ended before, by [`Client::cancel`] or [`Client::close`].
    pub fn finish(self) -> Result<u64, Error> {
        let id = self.pending.id;
        self.pending
            .client
            .shared()
            .with(|state| state.core.finish(id, state.now));
        match self.pending.wait().outcome {
            Outcome::Complete(Reply::Listened { notifications }) => Ok(notifications),
            outcome => Err(unanswered(outcome)),
        }
    }

    fn take(&mut self, longest: Option<Duration>) -> Option<Notification> {
        let (id, taken) = (self.pending.id, &mut self.taken);
        let shared = self.pending.client.shared();
        let waited = shared.wait(shared.lock(), id, longest, |state| {
            let slot = state.slots.get_mut(&id)?;
            if taken.is_empty() && std::mem::take(&mut slot.notified) {
                taken.extend(state.core.take_notifications(id));
            }
            (!taken.is_empty() || slot.over).then(|| taken.pop_front())
        });
        waited.flatten()
    }
}
