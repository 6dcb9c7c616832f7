//! The blocking driver as the suites see it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use conformance::suite::{Driver, Session, Setup};
use mcp_driver_blocking::{
    Client, Diagnosis, Ended, Error, Listener, Notification, Operation, OperationId, Outcome,
    Pending, ProgressUpdate, Reply, Report, Request, StreamUpdate, ToolStream,
};

pub(crate) struct Blocking;

impl Driver for Blocking {
    fn name(&self) -> String {
        "mcp-driver-blocking".into()
    }

    fn connect(&self, setup: Setup) -> Result<Box<dyn Session>, String> {
        let mut builder = Client::builder(setup.config).identity(setup.identity);
        for (name, stream) in setup.streams {
            let reader = stream.try_clone().map_err(|error| error.to_string())?;
            builder = builder.stream(name, reader, stream);
        }
        let client = builder.start().map_err(|error| error.to_string())?;
        Ok(Box::new(BlockingSession {
            client,
            held: Mutex::default(),
            texts: Mutex::default(),
        }))
    }
}

struct BlockingSession {
    client: Client,
    held: Mutex<BTreeMap<OperationId, Held>>,
    texts: Mutex<BTreeMap<OperationId, String>>,
}

/// What the application holds of an operation.
#[derive(Clone)]
enum Held {
    Pending(Arc<Pending>),
    Stream(Arc<Mutex<Option<ToolStream>>>),
    /// `None` once it has finished: with this end, until that is fetched.
    Listener(Arc<Mutex<Option<Listener>>>),
}

impl BlockingSession {
    fn held(&self, operation: OperationId) -> Option<Held> {
        lock(&self.held).get(&operation).cloned()
    }
}

impl Session for BlockingSession {
    fn submit(&self, operation: Operation) -> Result<OperationId, Error> {
        let (id, held) = if operation.request == Request::Listen {
            let listener = self.client.listen(operation.peer.as_deref())?;
            let id = listener.id();
            (id, Held::Listener(Arc::new(Mutex::new(Some(listener)))))
        } else if operation.options.stream.is_some() {
            let stream = self.client.stream(operation)?;
            (
                stream.id(),
                Held::Stream(Arc::new(Mutex::new(Some(stream)))),
            )
        } else {
            let pending = self.client.submit(operation)?;
            (pending.id(), Held::Pending(Arc::new(pending)))
        };
        lock(&self.held).insert(id, held);
        Ok(id)
    }

    fn wait(&self, operation: OperationId, max: Duration) -> Option<Ended> {
        match self.held(operation)? {
            Held::Pending(pending) => pending.wait_timeout(max),
            Held::Stream(stream) => {
                let mut stream = lock(&stream).take()?;
                for update in &mut stream {
                    apply(lock(&self.texts).entry(operation).or_default(), update);
                }
                Some(stream.ended())
            }
            Held::Listener(listener) => {
                let finished = lock(&listener).take()?.finish();
                Some(Ended {
                    operation,
                    peer: None,
                    tool: None,
                    outcome: match finished {
                        Ok(count) => Outcome::Complete(Reply::Listened {
                            notifications: count,
                        }),
                        Err(error) => Outcome::Failed(error),
                    },
                })
            }
        }
    }

    fn cancel(&self, operation: OperationId) {
        self.client.cancel(operation);
    }

    /// It is finished when it is waited for.
    fn finish(&self, _: OperationId) {}

    fn notifications(&self, operation: OperationId, max: Duration) -> Vec<Notification> {
        let Some(Held::Listener(listener)) = self.held(operation) else {
            return Vec::new();
        };
        let mut listener = lock(&listener);
        let Some(listener) = &mut *listener else {
            return Vec::new();
        };
        let mut all: Vec<_> = listener.next_timeout(max).into_iter().collect();
        while let Some(next) = listener.next_timeout(Duration::ZERO) {
            all.push(next);
        }
        all
    }

    fn progress(&self, operation: OperationId) -> Vec<ProgressUpdate> {
        match self.held(operation) {
            Some(Held::Pending(pending)) => std::iter::from_fn(|| pending.progress()).collect(),
            _ => Vec::new(),
        }
    }

    fn text(&self, operation: OperationId) -> String {
        lock(&self.texts).remove(&operation).unwrap_or_default()
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

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the updates make of a text.
fn apply(text: &mut String, update: StreamUpdate) {
    match update {
        StreamUpdate::Text(more) => text.push_str(&more),
        StreamUpdate::Rewind { length_bytes } => text.truncate(length_bytes),
        other => panic!("{other:?}"),
    }
}
