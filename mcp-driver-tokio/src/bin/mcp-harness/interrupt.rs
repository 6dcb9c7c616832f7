//! SIGINT and SIGTERM: close every server, then end with 130.

use std::process;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::exit::{Exit, Failure};

/// How long the command may take to end after everything is closed. Only one that is stuck writing to
/// a reader that does not read needs it.
const GRACE: Duration = Duration::from_secs(2);
/// How long a client may take from the start of its first server until it can be closed: it waits for nothing.
const OPENING_MAX: Duration = Duration::from_secs(30);

type Hook = Box<dyn FnOnce() + Send>;

/// Whether the process was asked to end, and what is to happen then.
#[derive(Clone, Default)]
pub(crate) struct Interrupt {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    hit: bool,
    hook: Option<Hook>,
    /// Whether there was a hook at all. Before that servers may be starting that nobody can close yet.
    opened: bool,
    /// How many hooks are at work. Any thread may run one.
    closing: usize,
}

/// A hook at work; it is over when this is dropped, also by a panic.
struct Closing<'a>(&'a Interrupt);

impl Interrupt {
    /// Takes the signals over.
    pub(crate) fn install() -> Result<Self, Failure> {
        let interrupt = Self::default();
        let other = interrupt.clone();
        ctrlc::set_handler(move || {
            other.on_signal();
            process::exit(i32::from(Exit::Interrupted as u8));
        })
        .map_err(|error| Failure::exhausted(format!("signals cannot be handled: {error}")))?;
        Ok(interrupt)
    }

    /// What to do on a signal: end all that is open. If there was one already, it is done now.
    pub(crate) fn on_hit(&self, hook: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        state.opened = true;
        if state.hit {
            state.closing += 1;
            drop(state);
            let _closing = Closing(self);
            hook();
        } else {
            state.hook = Some(Box::new(hook));
        }
    }

    /// Whether there was a signal.
    pub(crate) fn is_hit(&self) -> bool {
        self.lock().hit
    }

    /// The exit status, given what it would be without a signal.
    pub(crate) fn exit(&self, otherwise: Exit) -> Exit {
        if self.is_hit() {
            Exit::Interrupted
        } else {
            otherwise
        }
    }

    /// Returns when the process has to end whatever it is doing: everything is closed, and the command had time
    /// to say what came of it. Further signals change nothing, for a server that is left to itself stays.
    fn on_signal(&self) {
        let hook = {
            let mut state = self.lock();
            state.hit = true;
            let hook = state.hook.take();
            state.closing += usize::from(hook.is_some());
            hook
        };
        if let Some(hook) = hook {
            let _closing = Closing(self);
            hook();
        }
        self.wait_while(Some(OPENING_MAX), |state| !state.opened);
        loop {
            // Closing is bounded: it kills what does not go.
            self.wait_while(None, |state| state.closing > 0);
            if self.wait_while(Some(GRACE), |state| state.closing == 0) {
                return;
            }
        }
    }

    /// Waits while this holds. Whether it was for so long that it still does.
    fn wait_while(&self, limit: Option<Duration>, holds: impl Fn(&State) -> bool) -> bool {
        let changed = &self.shared.changed;
        let state = self.lock();
        let Some(limit) = limit else {
            drop(changed.wait_while(state, |state| holds(state)));
            return false;
        };
        let waited = changed.wait_timeout_while(state, limit, |state| holds(state));
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        holds(&state)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        let state = self.shared.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.lock().closing -= 1;
        self.0.shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_hook_that_comes_after_the_signal_runs_at_once() {
        let interrupt = Interrupt::default();
        interrupt.lock().hit = true;
        let runs = Arc::new(AtomicUsize::new(0));
        let (counted, seen) = (Arc::clone(&runs), interrupt.clone());
        interrupt.on_hit(move || counted.store(seen.lock().closing, Ordering::Relaxed));
        assert_eq!(runs.load(Ordering::Relaxed), 1, "it counts while it runs");
        let state = interrupt.lock();
        assert_eq!((state.closing, state.opened), (0, true));
        assert!(state.hook.is_none());
    }

    #[test]
    fn without_a_signal_nothing_is_closed() {
        let interrupt = Interrupt::default();
        interrupt.on_hit(|| unreachable!("nobody asked for it"));
        assert_eq!(interrupt.exit(Exit::Good), Exit::Good);
        assert!(interrupt.lock().opened);
    }
}
