//! The tokio driver passes the driver suite.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use conformance::suite::{Driver, Environment, Session, Setup};
use mcp_driver_tokio::{Client, Listener, Pending};
use mcp_proto::{
    Diagnosis, Ended, Error, Notification, Operation, OperationId, Outcome, ProgressUpdate, Reply,
    Report, Request,
};
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// One for all clients, as in an application.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.expect("a runtime")
});

struct Tokio;

struct TokioSession {
    client: Client,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pending: BTreeMap<OperationId, Pending>,
    listeners: BTreeMap<OperationId, Listener>,
    ended: BTreeMap<OperationId, Ended>,
    progress: BTreeMap<OperationId, Vec<ProgressUpdate>>,
}

impl Driver for Tokio {
    fn name(&self) -> String {
        "mcp-driver-tokio".to_owned()
    }

    fn connect(&self, setup: Setup) -> Result<Box<dyn Session>, String> {
        let _context = RUNTIME.enter();
        let mut builder = Client::builder(setup.config).identity(setup.identity);
        for (name, stream) in setup.streams {
            let ready = stream
                .set_nonblocking(true)
                .and_then(|()| UnixStream::from_std(stream));
            builder = builder.stream(name, ready.map_err(|error| error.to_string())?);
        }
        let (client, state) = (builder.start(), Mutex::default());
        Ok(Box::new(TokioSession { client, state }))
    }
}

impl TokioSession {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session for TokioSession {
    fn submit(&self, operation: Operation) -> Result<OperationId, Error> {
        if operation.request == Request::Listen {
            let listener = self.client.listen(operation.peer.as_deref())?;
            let id = listener.id();
            self.state().listeners.insert(id, listener);
            return Ok(id);
        }
        let pending = self.client.submit(operation)?;
        let id = pending.id();
        self.state().pending.insert(id, pending);
        Ok(id)
    }

    fn wait(&self, operation: OperationId, max: Duration) -> Option<Ended> {
        self.finish(operation);
        let pending = self.state().pending.remove(&operation);
        let Some(mut pending) = pending else {
            return self.state().ended.remove(&operation);
        };
        let mut reports = Vec::new();
        let ended = RUNTIME.block_on(async {
            let progress_then_end = async {
                while let Some(progress) = pending.progress().await {
                    reports.push(progress);
                }
                (&mut pending).await
            };
            timeout(max, progress_then_end).await
        });
        let mut state = self.state();
        state
            .progress
            .entry(operation)
            .or_default()
            .append(&mut reports);
        if ended.is_err() {
            state.pending.insert(operation, pending);
        }
        ended.ok()
    }

    fn cancel(&self, operation: OperationId) {
        self.client.cancel(operation);
    }

    fn finish(&self, operation: OperationId) {
        let listener = self.state().listeners.remove(&operation);
        let Some(listener) = listener else {
            return;
        };
        let outcome = match RUNTIME.block_on(listener.finish()) {
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
        let listener = self.state().listeners.remove(&operation);
        let Some(mut listener) = listener else {
            return Vec::new();
        };
        let mut taken = Vec::new();
        RUNTIME.block_on(async {
            let mut max = max;
            while let Ok(Some(notification)) = timeout(max, listener.next()).await {
                taken.push(notification);
                max = Duration::ZERO;
            }
        });
        self.state().listeners.insert(operation, listener);
        taken
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
        RUNTIME.block_on(self.client.close());
    }
}

conformance::driver_suite!(
    &Tokio,
    Environment::new(env!("CARGO_BIN_EXE_conformance-server"))
);
