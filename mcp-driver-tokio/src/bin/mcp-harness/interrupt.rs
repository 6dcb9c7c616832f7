//! SIGINT and SIGTERM: close every server, then end with 130.

use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::exit::{Exit, Failure};

/// How long the command may take to end after everything is closed. Only one that is stuck writing to
/// a reader that does not read needs it.
const GRACE: Duration = Duration::from_secs(2);

type Hook = Box<dyn FnOnce() + Send>;

/// Whether the process was asked to end, and what is to happen then.
#[derive(Clone, Default)]
pub(crate) struct Interrupt {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    hit: bool,
    hook: Option<Hook>,
}

impl Interrupt {
    /// Takes the signals over.
    pub(crate) fn install() -> Result<Self, Failure> {
        let interrupt = Self::default();
        let other = interrupt.clone();
        ctrlc::set_handler(move || other.on_signal())
            .map_err(|error| Failure::exhausted(format!("signals cannot be handled: {error}")))?;
        Ok(interrupt)
    }

    /// What to do on a signal: end all that is open. If there was one already, it is done now.
    pub(crate) fn on_hit(&self, hook: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        if state.hit {
            drop(state);
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

    fn on_signal(&self) {
        let hook = {
            let mut state = self.lock();
            state.hit = true;
            state.hook.take()
        };
        if let Some(hook) = hook {
            hook();
        }
        thread::sleep(GRACE);
        process::exit(i32::from(Exit::Interrupted as u8));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
