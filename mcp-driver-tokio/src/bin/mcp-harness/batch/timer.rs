//! Things to do at a time, on one thread.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

type Alarms = BTreeMap<(Instant, u64), Box<dyn FnOnce() + Send>>;

/// Runs what is due. What it runs must be quick.
pub(super) struct Timer(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    alarms: Alarms,
    set: u64,
    stopped: bool,
}

/// An alarm that is off once this is dropped.
pub(super) struct Alarm {
    key: (Instant, u64),
    inner: Arc<Inner>,
}

impl Timer {
    pub(super) fn start() -> io::Result<Self> {
        let inner = Arc::new(Inner {
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let other = Arc::clone(&inner);
        let thread = thread::Builder::new().name("batch-timer".into());
        thread.spawn(move || other.run())?;
        Ok(Self(inner))
    }

    /// Runs `due` so long after `start`; never, if that is beyond what the clock can say.
    pub(super) fn set(
        &self,
        start: Instant,
        after: Duration,
        due: impl FnOnce() + Send + 'static,
    ) -> Option<Alarm> {
        let at = start.checked_add(after)?;
        let mut state = self.0.lock();
        state.set += 1;
        let key = (at, state.set);
        state.alarms.insert(key, Box::new(due));
        self.0.changed.notify_all();
        let inner = Arc::clone(&self.0);
        Some(Alarm { key, inner })
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.lock().stopped = true;
        self.0.changed.notify_all();
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        let alarm = self.inner.lock().alarms.remove(&self.key);
        drop(alarm);
    }
}

impl Inner {
    fn run(&self) {
        let mut state = self.lock();
        while !state.stopped {
            let now = Instant::now();
            let Some((&(at, _), _)) = state.alarms.first_key_value() else {
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            if at > now {
                let waited = self.changed.wait_timeout(state, at - now);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let due = state.alarms.pop_first();
            drop(state);
            if let Some((_, due)) = due {
                due();
            }
            state = self.lock();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
