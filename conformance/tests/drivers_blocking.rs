//! The blocking driver passes the driver suite.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::iter;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use conformance::suite::{Driver, Environment, Session, Setup};
use mcp_driver_blocking::{Client, Listener, Pending, PendingEvent};
use mcp_proto::{
    Diagnosis, Ended, Error, Notification, Operation, OperationId, Outcome, ProgressUpdate, Reply,
    Report, Request,
};

struct Blocking;

struct BlockingSession {
    client: Client,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pending: BTreeMap<OperationId, Arc<Pending>>,
    listeners: BTreeMap<OperationId, Arc<Mutex<Listener>>>,
    ended: BTreeMap<OperationId, Ended>,
    progress: BTreeMap<OperationId, Vec<ProgressUpdate>>,
}

impl Driver for Blocking {
    fn name(&self) -> String {
        "mcp-driver-blocking".to_owned()
    }

    fn connect(&self, setup: Setup) -> Result<Box<dyn Session>, String> {
        let mut builder = Client::builder(setup.config).identity(setup.identity);
        for (name, stream) in setup.streams {
            let reader = stream.try_clone().map_err(|error| error.to_string())?;
            builder = builder.stream(name, reader, stream);
        }
        let client = builder.start().map_err(|error| error.to_string())?;
        let state = Mutex::default();
        Ok(Box::new(BlockingSession { client, state }))
    }
}

impl BlockingSession {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session for BlockingSession {
    fn submit(&self, operation: Operation) -> Result<OperationId, Error> {
        if operation.request == Request::Listen {
            let listener = self.client.listen(operation.peer.as_deref())?;
            let id = listener.id();
            let listener = Arc::new(Mutex::new(listener));
            self.state().listeners.insert(id, listener);
            return Ok(id);
        }
        let pending = self.client.submit(operation)?;
        let id = pending.id();
        self.state().pending.insert(id, Arc::new(pending));
        Ok(id)
    }

    fn wait(&self, operation: OperationId, max: Duration) -> Option<Ended> {
        self.finish(operation);
        let pending = self.state().pending.get(&operation).cloned();
        let Some(pending) = pending else {
            return self.state().ended.remove(&operation);
        };
        let ended = pending.wait_timeout(max)?;
        let progress = iter::from_fn(|| pending.next_event()).filter_map(|event| match event {
            PendingEvent::Progress(progress) => Some(progress),
            PendingEvent::Ended(_) => None,
        });
        let progress = progress.collect();
        let mut state = self.state();
        state.progress.insert(operation, progress);
        state.pending.remove(&operation);
        Some(ended)
    }

    fn cancel(&self, operation: OperationId) {
        self.client.cancel(operation);
    }

    fn finish(&self, operation: OperationId) {
        let listener = self.state().listeners.remove(&operation);
        let Some(listener) = listener.and_then(Arc::into_inner) else {
            return;
        };
        let listener = listener
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let outcome = match listener.finish() {
            Ok(notifications) => Outcome::Complete(Reply::Listened { notifications }),
            Err(error) => Outcome::Failed(error),
        };
        let ended = Ended {
            operation,
            peer: None,
            tool: None,
            outcome,
        };
        self.state().ended.insert(operation, ended);
    }

    fn notifications(&self, operation: OperationId, max: Duration) -> Vec<Notification> {
        let listener = self.state().listeners.get(&operation).cloned();
        let Some(listener) = listener else {
            return Vec::new();
        };
        let mut listener = listener.lock().unwrap_or_else(PoisonError::into_inner);
        let first = listener.next_timeout(max);
        let rest = iter::from_fn(|| listener.next_timeout(Duration::ZERO));
        first.into_iter().chain(rest).collect()
    }

    fn progress(&self, operation: OperationId) -> Vec<ProgressUpdate> {
        self.state().progress.remove(&operation).unwrap_or_default()
    }

    fn report(&self) -> Report {
        self.client.report()
    }

    fn diagnoses(&self) -> Vec<Diagnosis> {
        self.client.diagnoses()
    }

    fn close(&self) {
        self.client.close();
    }
}

conformance::driver_suite!(
    &Blocking,
    Environment::new(env!("CARGO_BIN_EXE_conformance-server"))
);
