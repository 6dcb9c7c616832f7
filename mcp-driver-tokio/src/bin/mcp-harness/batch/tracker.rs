//! What is under way, and what of it ends when the input does.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mcp_proto::OperationId;

/// Counts of operations, and the facts that end some of them early.
#[derive(Default)]
pub(super) struct Tracker {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Operations in the background that end by themselves.
    background: usize,
    listens: BTreeMap<OperationId, Listen>,
    input_ended: bool,
    /// A `close` was read; perhaps its turn is not yet.
    close_read: bool,
    stopping: bool,
    woken: bool,
}

struct Listen {
    /// The next line waits for it, and nothing but the input ends it.
    holds_up: bool,
    /// It is cancelled for a `close`.
    closed: bool,
}

/// What to do with a listening operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Finish(OperationId),
    Cancel(OperationId),
}

impl Tracker {
    pub(super) fn background_started(&self) {
        self.lock().background += 1;
    }

    pub(super) fn background_ended(&self) {
        self.change(|state| state.background = state.background.saturating_sub(1));
    }

    pub(super) fn listen_started(&self, operation: OperationId, holds_up: bool) {
        let listen = Listen {
            holds_up,
            closed: false,
        };
        self.lock().listens.insert(operation, listen);
    }

    /// Whether a listening operation was cancelled for a `close`, and not by `cancelAfterMs`.
    pub(super) fn was_closed(&self, operation: OperationId) -> bool {
        let state = self.lock();
        let listen = state.listens.get(&operation);
        listen.is_some_and(|listen| listen.closed)
    }

    pub(super) fn listen_ended(&self, operation: OperationId) {
        self.change(|state| state.listens.remove(&operation));
    }

    pub(super) fn input_ended(&self) {
        self.change(|state| state.input_ended = true);
    }

    pub(super) fn close_read(&self) {
        self.change(|state| state.close_read = true);
    }

    /// Nothing more is to be started.
    pub(super) fn stop(&self) {
        self.lock().stopping = true;
    }

    /// Ends what sleeps, after [`Tracker::stop`].
    pub(super) fn wake(&self) {
        self.change(|state| state.woken = true);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.lock().stopping
    }

    /// What becomes of a listening operation that holds up the next line: without more input, or before a
    /// `close`, that line would wait for ever.
    pub(super) fn due(&self) -> Option<Due> {
        let mut state = self.lock();
        let no_more = state.input_ended && state.background == 0;
        let close = state.close_read;
        let (operation, listen) = state
            .listens
            .iter_mut()
            .find(|(_, listen)| listen.holds_up)?;
        if close {
            listen.closed = true;
            return Some(Due::Cancel(*operation));
        }
        no_more.then_some(Due::Finish(*operation))
    }

    /// Waits for the operations that end by themselves; then, which ones listen. `None` when everything
    /// is being stopped.
    pub(super) fn wait_for_background(&self) -> Option<Vec<OperationId>> {
        let state = self.wait_until(|state| state.stopping || state.background == 0);
        (!state.stopping).then(|| state.listens.keys().copied().collect())
    }

    /// Waits until every outcome is written.
    pub(super) fn wait_for_all(&self) {
        drop(self.wait_until(|state| state.background == 0 && state.listens.is_empty()));
    }

    /// Sleeps; `false` when everything was stopped meanwhile.
    pub(super) fn sleep(&self, duration: Duration) -> bool {
        let until = Instant::now().checked_add(duration);
        let mut state = self.lock();
        loop {
            let left = until.map_or(Duration::MAX, |until| {
                until.saturating_duration_since(Instant::now())
            });
            if state.woken {
                return false;
            }
            if left.is_zero() {
                return !state.stopping;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn wait_until(&self, done: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        while !done(&state) {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.lock());
        self.changed.notify_all();
        changed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
