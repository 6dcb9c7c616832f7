//! The core behind a lock, and the loop that performs its actions.
//!
//! There is no central task. Whoever has something to tell the core, be it a caller, a link's task or
//! the timer, takes the lock, tells it, and performs what the core wants done, all without waiting;
//! tasks that have something to do then are woken after the lock is released. So a call costs two
//! switches of task: to the reader of the link when the answer comes, and back to the caller.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use mcp_proto::{
    Action, Config, Ended, Error, Event, Identity, Instant, LinkId, News, Operation, OperationId,
    ProgressUpdate, Request,
};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant as Clock, timeout_at};

use crate::links::{Host, Links, Stream};
use crate::machine;

/// Progress reports kept for an application that does not ask for them; then the oldest ones go.
const PROGRESS_KEPT: usize = 64;

/// What all handles of one client and all tasks behind it share.
pub(crate) struct Shared {
    state: Mutex<State>,
    epoch: Clock,
    /// The deadline came nearer, or time matters no more.
    timer: Notify,
    closed: Notify,
}

pub(crate) struct State {
    pub(crate) core: mcp_proto::Client,
    links: Links,
    waiters: BTreeMap<OperationId, Waiter>,
    /// Operations that await an answer.
    in_flight: usize,
    /// What the timing task sleeps until.
    alarm: Instant,
    /// No handle is left.
    abandoned: bool,
    /// Whom to wake once the lock is released.
    wakes: Vec<Waker>,
}

/// What is kept for the application's side of an operation.
#[derive(Default)]
pub(crate) struct Waiter {
    pub(crate) ended: Option<Box<Ended>>,
    pub(crate) progress: VecDeque<ProgressUpdate>,
    /// Its share of [`State::in_flight`].
    in_flight: usize,
    waker: Option<Waker>,
}

/// The share of the application. When the last one is gone nobody can be told anything any more, so
/// everything ends at once: processes are killed, streams dropped, tasks stopped.
pub(crate) struct Owner(pub(crate) Arc<Shared>);

impl Drop for Owner {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.abandoned = true;
        let links = state.links.take();
        drop(state);
        drop(links);
        self.0.timer.notify_one();
    }
}

impl Shared {
    /// Starts a client on the runtime of the calling task.
    pub(crate) fn start(
        config: Config,
        identity: Identity,
        streams: BTreeMap<String, Box<dyn Stream>>,
    ) -> Arc<Self> {
        let runtime = Handle::current();
        let shared = Arc::new(Self {
            state: Mutex::new(State {
                core: mcp_proto::Client::new(machine::pin(config), identity, Instant::ZERO),
                links: Links::new(streams, runtime.clone()),
                waiters: BTreeMap::new(),
                in_flight: 0,
                alarm: Instant::MAX,
                abandoned: false,
                wakes: Vec::new(),
            }),
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
        let wakes = std::mem::take(&mut state.wakes);
        drop(state);
        wakes.into_iter().for_each(Waker::wake);
        told
    }

    /// Looks at the core; nothing is performed.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&mcp_proto::Client) -> T) -> T {
        look(&self.lock().core)
    }

    /// Submits an operation and keeps a place for its end.
    pub(crate) fn submit(self: &Arc<Self>, operation: Operation) -> Result<OperationId, Error> {
        // One that listens is open for long, and says nothing about how busy the links are.
        let waiter = Waiter {
            in_flight: usize::from(operation.request != Request::Listen),
            ..Waiter::default()
        };
        self.with(|state, now| {
            let id = state.core.submit(operation, now)?;
            state.in_flight += waiter.in_flight;
            state.waiters.insert(id, waiter);
            Ok(id)
        })
    }

    /// Ready with what `take` finds for an operation; else the task is woken when there is news of it.
    pub(crate) fn poll<T>(
        &self,
        id: OperationId,
        cx: &Context<'_>,
        take: impl FnOnce(&mut Waiter) -> Option<T>,
    ) -> Poll<T> {
        let mut state = self.lock();
        let Some(waiter) = state.waiters.get_mut(&id) else {
            return Poll::Pending;
        };
        if let Some(taken) = take(waiter) {
            return Poll::Ready(taken);
        }
        if !waiter
            .waker
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            let replaced = waiter.waker.replace(cx.waker().clone());
            // It may be the last of its task, which may take this very lock when it is dropped.
            drop(state);
            drop(replaced);
        }
        Poll::Pending
    }

    /// Drops what is kept for an operation, and cancels it if nobody has learned of its end.
    pub(crate) fn forget(self: &Arc<Self>, id: OperationId, learned: bool) {
        if !learned {
            self.with(|state, now| state.core.cancel(id, now));
        }
        let forgotten = self.lock().waiters.remove(&id);
        drop(forgotten);
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
                self.deliver(news, host);
                continue;
            }
            // A lone caller's message leaves at once. Among many it waits for the others whose turn it
            // is now: they then share one write, and the server wakes up once.
            let eager = self.in_flight <= 1;
            let fact = self.links.perform(action, eager, host, &mut self.wakes);
            if let Some(fact) = fact {
                self.core.handle(fact, now);
            }
        }
        self.links
            .resume(|link| self.core.wants_read(link), &mut self.wakes);
        // A deadline that moves away is noticed when the timer wakes up, for most never come true.
        if let Some(deadline) = self.core.poll_timeout()
            && deadline < self.alarm
        {
            self.alarm = deadline;
            host.timer.notify_one();
        }
    }

    fn deliver(&mut self, news: News, host: &Shared) {
        let (operation, ended, progress) = match news {
            News::Ended(ended) => (ended.operation, Some(ended), None),
            News::Progress {
                operation,
                progress,
            } => (operation, None, Some(progress)),
            News::Notified { operation } => (operation, None, None),
            News::Closed => {
                host.closed.notify_waiters();
                return host.timer.notify_one();
            }
            _ => return,
        };
        let Some(waiter) = self.waiters.get_mut(&operation) else {
            return;
        };
        if let Some(ended) = ended {
            self.in_flight -= std::mem::take(&mut waiter.in_flight);
            waiter.ended = Some(ended);
        }
        if waiter.progress.len() >= PROGRESS_KEPT {
            waiter.progress.pop_front();
        }
        waiter.progress.extend(progress);
        self.wakes.extend(waiter.waker.take());
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
