//! The core behind a lock, and the loop that performs its actions.
//!
//! There is no central task. Whoever has something to tell the core, be it a caller, a link's task or
//! the timer, takes the lock, tells it, and performs what the core wants done, all without waiting;
//! tasks that have something to do then are woken after the lock is released. So a call costs two
//! switches of task: to the reader of the link when the answer comes, and back to the caller.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use mcp_proto::{Action, Error, Event, Inbox, Instant, LinkId, News, Operation, OperationId};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant as Clock, timeout_at};

use crate::links::{Host, Links, Stream};

/// What all handles of one client and all tasks behind it share.
pub(crate) struct Shared {
    state: Mutex<State>,
    pub(crate) runtime: Handle,
    epoch: Clock,
    /// The deadline came nearer, or time matters no more.
    timer: Notify,
    closed: Notify,
}

pub(crate) struct State {
    pub(crate) core: mcp_proto::Client,
    /// Operations, each with the task that waits for it.
    pub(crate) inbox: Inbox<Option<Waker>>,
    links: Links,
    /// What the timing task sleeps until.
    alarm: Instant,
    /// No handle is left.
    abandoned: bool,
}

/// The share of the application. When the last one is gone nobody can be told anything any more, so
/// everything ends at once: processes are killed, streams dropped, tasks stopped.
pub(crate) struct Owner(pub(crate) Arc<Shared>);

impl Drop for Owner {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.abandoned = true;
        let links = state.links.clear();
        drop(state);
        drop(links);
        self.0.timer.notify_one();
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

impl Shared {
    /// Starts a client on the runtime of the calling task.
    pub(crate) fn start(
        core: mcp_proto::Client,
        streams: BTreeMap<String, Box<dyn Stream>>,
    ) -> Arc<Self> {
        let runtime = Handle::current();
        let shared = Arc::new(Self {
            state: Mutex::new(State {
                core,
                inbox: Inbox::default(),
                links: Links::new(streams, runtime.clone()),
                alarm: Instant::MAX,
                abandoned: false,
            }),
            runtime: runtime.clone(),
            epoch: Clock::now(),
            timer: Notify::new(),
            closed: Notify::new(),
        });
        runtime.spawn(keep_time(shared.clone()));
        shared.with(|state, now| state.core.connect(now));
        shared
    }

    /// Tells the core something, performs what it wants done, and wakes whom that concerns.
    pub(crate) fn with<T>(self: &Arc<Self>, tell: impl FnOnce(&mut State, Instant) -> T) -> T {
        let mut state = self.lock();
        let now = Instant::after_epoch(self.epoch.elapsed());
        let told = tell(&mut state, now);
        if !state.abandoned {
            state.perform(self, now);
        }
        let wakes = std::mem::take(&mut state.links.wakes);
        drop(state);
        wakes.into_iter().for_each(Waker::wake);
        told
    }

    /// Looks at the core; nothing is performed.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&mcp_proto::Client) -> T) -> T {
        look(&self.lock().core)
    }

    pub(crate) fn submit(self: &Arc<Self>, operation: Operation) -> Result<OperationId, Error> {
        self.with(|state, now| state.inbox.submit(&mut state.core, operation, now))
    }

    /// Ready with what `take` finds; else the task is woken when there is news of the operation.
    pub(crate) fn poll<T>(
        &self,
        id: OperationId,
        cx: &Context<'_>,
        take: impl FnOnce(&mut Inbox<Option<Waker>>) -> Option<T>,
    ) -> Poll<T> {
        let mut state = self.lock();
        if let Some(taken) = take(&mut state.inbox) {
            return Poll::Ready(taken);
        }
        let waiter = state.inbox.waiter(id);
        let replaced = waiter.and_then(|waiter| waiter.replace(cx.waker().clone()));
        // It may be the last of its task, which may take this very lock when it is dropped.
        drop(state);
        drop(replaced);
        Poll::Pending
    }

    /// Ends everything in the order and time that the core sets.
    pub(crate) async fn close(self: &Arc<Self>) {
        let closed = self.closed.notified();
        self.with(|state, now| state.core.close(now));
        if !self.look(mcp_proto::Client::is_closed) {
            closed.await;
        }
    }

    /// Nothing that can panic leaves the state half changed, so a poisoned lock is as good as another.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Host for Shared {
    fn turn<'a, T>(self: &Arc<Self>, step: impl FnOnce(&mut Links) -> (Option<Event<'a>>, T)) -> T {
        self.with(|state, now| {
            let (fact, found) = step(&mut state.links);
            if let Some(fact) = fact {
                state.core.handle(fact, now);
            }
            found
        })
    }

    fn is_wanted(&self) -> bool {
        !self.lock().abandoned
    }

    fn poll_readable(&self, link: LinkId, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.core.wants_read(link) {
            return Poll::Ready(());
        }
        state.links.pause(link, cx);
        Poll::Pending
    }
}

impl State {
    /// Performs actions until the core has none.
    fn perform(&mut self, host: &Arc<Shared>, now: Instant) {
        while let Some(action) = self.core.poll_action() {
            if let Action::Deliver(news) = action {
                if news == News::Closed {
                    host.closed.notify_waiters();
                    host.timer.notify_one();
                }
                let waiter = self.inbox.deliver(news).and_then(Option::take);
                self.links.wakes.extend(waiter);
                continue;
            }
            // A lone caller's message leaves at once. Among many it waits for the others whose turn it
            // is now: they then share one write, and the server wakes up once.
            let eager = self.inbox.awaited() <= 1;
            if let Some(fact) = self.links.perform(action, eager, host) {
                self.core.handle(fact, now);
            }
        }
        self.links.resume(|link| self.core.wants_read(link));
        // A deadline that moves away is noticed when the timer wakes up, for most never come true.
        if let Some(deadline) = self.core.poll_timeout()
            && deadline < self.alarm
        {
            self.alarm = deadline;
            host.timer.notify_one();
        }
    }
}

/// Tells the core the time at its deadlines.
async fn keep_time(shared: Arc<Shared>) {
    loop {
        let deadline = {
            let mut state = shared.lock();
            if state.abandoned || state.core.is_closed() {
                return;
            }
            let deadline = state.core.poll_timeout();
            state.alarm = deadline.unwrap_or(Instant::MAX);
            deadline
        };
        let nearer = shared.timer.notified();
        let Some(deadline) = deadline else {
            nearer.await;
            continue;
        };
        let deadline = shared.epoch + deadline.since(Instant::ZERO);
        if timeout_at(deadline, nearer).await.is_err() {
            shared.report(Event::TimePassed);
        }
    }
}
