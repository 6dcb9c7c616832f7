//! What drivers keep for an application that fetches its news later.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};

use crate::asking::{InputQuestion, RetryQuestion};
use crate::client::Client;
use crate::continuation::StreamUpdate;
use crate::error::Error;
use crate::ids::OperationId;
use crate::operation::{Ended, News, Operation, ProgressUpdate, Request};
use crate::streaming::{OperationEvent, SourceWish, Undelivered};
use crate::time::Instant;

/// Progress reports kept for an application that does not fetch them; then the oldest ones go (R42).
const PROGRESS_KEPT: usize = 64;

/// The operations of an application: what was delivered for each, and who waits for it.
///
/// Optional: for drivers whose applications ask for an operation's news when they like. `W` is whatever
/// wakes somebody: a `Waker`, a condition variable. Nothing here changes what the core does.
///
/// ```
/// # use mcp_proto::{Action, Client, Config, Identity, Inbox, Instant, Operation};
/// # let now = Instant::ZERO;
/// # let pinned = Config::default().pin(&mut |_| None, &mut |_| None);
/// let mut core = Client::new(pinned, Identity::default(), now);
/// let mut inbox = Inbox::<()>::default();
/// let id = inbox.submit(&mut core, Operation::settle(), now)?;
/// while let Some(action) = core.poll_action() {
///     if let Action::Deliver(news) = action {
///         inbox.deliver(news);
///     }
/// }
/// assert_eq!(inbox.take_ended(id).unwrap().operation, id);
/// # Ok::<(), mcp_proto::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Inbox<W> {
    slots: BTreeMap<OperationId, Slot<W>>,
    awaited: usize,
}

/// One operation that the application has not let go of.
#[derive(Debug, Default)]
struct Slot<W> {
    ended: Option<Box<Ended>>,
    is_over: bool,
    progress: VecDeque<ProgressUpdate>,
    input: Option<Box<InputQuestion>>,
    /// Somebody may be asked in vain.
    withdrawn: bool,
    retry: Option<Box<RetryQuestion>>,
    updates: Undelivered,
    source: Option<SourceWish>,
    is_listening: bool,
    waiter: W,
}

impl<W: Default> Inbox<W> {
    /// Submits an operation and makes room for its news.
    ///
    /// # Errors
    /// As [`Client::submit`]; there is no room then.
    pub fn submit(
        &mut self,
        core: &mut Client,
        operation: Operation,
        now: Instant,
    ) -> Result<OperationId, Error> {
        let slot = Slot {
            is_listening: operation.request == Request::Listen,
            ..Slot::default()
        };
        let id = core.submit(operation, now)?;
        self.awaited += usize::from(!slot.is_listening);
        self.slots.insert(id, slot);
        Ok(id)
    }

    /// Takes in what is for an operation, and says who waits for that. `None` for all other news, and
    /// when the application has let go of the operation.
    pub fn deliver(&mut self, news: News) -> Option<&mut W> {
        let id = match &news {
            News::Ended(ended) => ended.operation,
            News::RetryQuestion(question) => question.operation,
            News::Progress { operation, .. }
            | News::StreamUpdate { operation, .. }
            | News::OpenSource { operation, .. }
            | News::CloseSource { operation, .. }
            | News::InputNeeded { operation, .. }
            | News::InputWithdrawn { operation, .. }
            | News::Notified { operation } => *operation,
            News::Log(_) | News::PeerChanged { .. } | News::Closed => return None,
        };
        let slot = self.slots.get_mut(&id)?;
        match news {
            News::Ended(ended) => {
                self.awaited -= usize::from(!slot.is_listening && !slot.is_over);
                (slot.ended, slot.is_over) = (Some(ended), true);
                (slot.input, slot.retry, slot.source) = (None, None, None);
            }
            News::RetryQuestion(question) => slot.retry = Some(question),
            News::StreamUpdate { update, .. } => slot.updates.push(update),
            News::OpenSource { request, .. } => slot.source = Some(SourceWish::Open(request)),
            News::CloseSource { source, .. } => slot.source = Some(SourceWish::Close { source }),
            News::InputNeeded {
                question, input, ..
            } => {
                let input = *input;
                slot.withdrawn = false;
                slot.input = Some(Box::new(InputQuestion { question, input }));
            }
            News::InputWithdrawn { .. } => slot.withdrawn = slot.input.take().is_none(),
            News::Progress { progress, .. } => {
                if slot.progress.len() >= PROGRESS_KEPT {
                    slot.progress.pop_front();
                }
                slot.progress.push_back(progress);
            }
            _ => {}
        }
        Some(&mut slot.waiter)
    }

    /// The end of an operation, once.
    pub fn take_ended(&mut self, operation: OperationId) -> Option<Box<Ended>> {
        self.slots.get_mut(&operation)?.ended.take()
    }

    /// The oldest progress report that was not taken. At most 64 are kept, the newest.
    pub fn take_progress(&mut self, operation: OperationId) -> Option<ProgressUpdate> {
        self.slots.get_mut(&operation)?.progress.pop_front()
    }

    /// What the server asks about an interactive operation, once per round.
    pub fn take_input(&mut self, operation: OperationId) -> Option<Box<InputQuestion>> {
        self.slots.get_mut(&operation)?.input.take()
    }

    /// Whether a request of this operation may be sent again, once per question.
    pub fn take_question(&mut self, operation: OperationId) -> Option<Box<RetryQuestion>> {
        self.slots.get_mut(&operation)?.retry.take()
    }

    /// What changes in the text of a streamed call. Updates that wait are told together, so that at most
    /// the whole text waits. The last ones may be taken after the end.
    pub fn take_update(&mut self, operation: OperationId) -> Option<StreamUpdate> {
        self.slots.get_mut(&operation)?.updates.take()
    }

    /// What is to be done about the application's source of a streamed call: the latest wish, once.
    pub fn take_source(&mut self, operation: OperationId) -> Option<SourceWish> {
        self.slots.get_mut(&operation)?.source.take()
    }

    /// The next of all that, in this order: a wish about a source, a question, an update, that it is over.
    /// `None` while there is nothing.
    pub fn take_event(&mut self, operation: OperationId) -> Option<OperationEvent> {
        let Some(slot) = self.slots.get_mut(&operation) else {
            return Some(OperationEvent::Over);
        };
        let source = slot.source.take().map(OperationEvent::Source);
        source
            .or_else(|| {
                let withdrawn = core::mem::take(&mut slot.withdrawn);
                withdrawn.then_some(OperationEvent::InputWithdrawn)
            })
            .or_else(|| slot.input.take().map(OperationEvent::InputNeeded))
            .or_else(|| slot.retry.take().map(OperationEvent::RetryQuestion))
            .or_else(|| slot.updates.take().map(OperationEvent::Update))
            .or_else(|| slot.is_over.then_some(OperationEvent::Over))
    }

    /// Whether nothing more is delivered for an operation: it has ended, or was let go of.
    #[must_use]
    pub fn is_over(&self, operation: OperationId) -> bool {
        self.slots.get(&operation).is_none_or(|slot| slot.is_over)
    }

    /// Who waits for an operation.
    pub fn waiter(&mut self, operation: OperationId) -> Option<&mut W> {
        self.slots.get_mut(&operation).map(|slot| &mut slot.waiter)
    }

    /// All operations that have not ended, with who waits for them, in the order of submission.
    pub fn open(&self) -> impl DoubleEndedIterator<Item = (OperationId, &W)> {
        self.slots
            .iter()
            .filter(|(_, slot)| !slot.is_over)
            .map(|(id, slot)| (*id, &slot.waiter))
    }

    /// How many operations await an answer. One that listens does not: it is open for long.
    #[must_use]
    pub const fn awaited(&self) -> usize {
        self.awaited
    }

    /// Lets go of an operation, which is cancelled unless it has ended, and gives back who waited.
    pub fn release(
        &mut self,
        core: &mut Client,
        operation: OperationId,
        now: Instant,
    ) -> Option<W> {
        let slot = self.slots.remove(&operation)?;
        if !slot.is_over {
            self.awaited -= usize::from(!slot.is_listening);
            core.cancel(operation, now);
        }
        Some(slot.waiter)
    }
}
