//! The tokio driver as the suites see it.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use conformance::suite::{Driver, Session, Setup};
use mcp_driver_tokio::{
    Client, Diagnosis, Ended, Error, Listener, Notification, Operation, OperationId, Outcome,
    Pending, ProgressUpdate, Reply, Report, Request, StreamUpdate, ToolStream,
};
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Handle};
use tokio::time::timeout;

/// A runtime for the whole test process, with a thread on which it runs.
pub(crate) type Runtime = LazyLock<Handle>;

pub(crate) fn forever(mut builder: Builder) -> Handle {
    let (sender, handle) = mpsc::channel();
    thread::spawn(move || {
        let runtime = builder.enable_all().build().unwrap();
        sender.send(runtime.handle().clone()).unwrap();
        runtime.block_on(std::future::pending::<()>());
    });
    handle.recv().unwrap()
}

pub(crate) struct Tokio(pub(crate) &'static Runtime);

impl Driver for Tokio {
    fn name(&self) -> String {
        "mcp-driver-tokio".into()
    }

    fn connect(&self, setup: Setup) -> Result<Box<dyn Session>, String> {
        let runtime: &Handle = self.0;
        let _entered = runtime.enter();
        let mut builder = Client::builder(setup.config).identity(setup.identity);
        for (name, stream) in setup.streams {
            let ready = stream.set_nonblocking(true);
            let stream = ready.and_then(|()| UnixStream::from_std(stream));
            builder = builder.stream(name, stream.map_err(|error| error.to_string())?);
        }
        Ok(Box::new(TokioSession {
            runtime: runtime.clone(),
            client: builder.start(),
            held: Mutex::default(),
            progress: Mutex::default(),
            texts: Mutex::default(),
        }))
    }
}

struct TokioSession {
    runtime: Handle,
    client: Client,
    held: Mutex<BTreeMap<OperationId, Held>>,
    progress: Mutex<BTreeMap<OperationId, Vec<ProgressUpdate>>>,
    texts: Mutex<BTreeMap<OperationId, String>>,
}

/// What the application holds of an operation.
enum Held {
    Pending(Pending),
    Stream(ToolStream),
    Listener(Listener),
}

impl TokioSession {
    fn within<T>(&self, max: Duration, future: impl Future<Output = T>) -> Option<T> {
        let limited = async { timeout(max, future).await.ok() };
        self.runtime.block_on(limited)
    }

    fn take(&self, operation: OperationId) -> Option<Held> {
        lock(&self.held).remove(&operation)
    }

    fn keep(&self, operation: OperationId, held: Held) {
        lock(&self.held).insert(operation, held);
    }
}

impl Session for TokioSession {
    fn submit(&self, operation: Operation) -> Result<OperationId, Error> {
        let (id, held) = if operation.request == Request::Listen {
            let listener = self.client.listen(operation.peer.as_deref())?;
            (listener.id(), Held::Listener(listener))
        } else if operation.options.stream.is_some() {
            let stream = self.client.stream(operation)?;
            (stream.id(), Held::Stream(stream))
        } else {
            let pending = self.client.submit(operation)?;
            (pending.id(), Held::Pending(pending))
        };
        self.keep(id, held);
        Ok(id)
    }

    fn wait(&self, operation: OperationId, max: Duration) -> Option<Ended> {
        match self.take(operation)? {
            Held::Pending(mut pending) => {
                let mut reports = Vec::new();
                let ended = self.within(max, async {
                    while let Some(report) = pending.progress().await {
                        reports.push(report);
                    }
                    (&mut pending).await
                });
                let mut progress = lock(&self.progress);
                progress.entry(operation).or_default().append(&mut reports);
                if ended.is_none() {
                    self.keep(operation, Held::Pending(pending));
                }
                ended
            }
            Held::Stream(mut stream) => {
                let over = self.within(max, async {
                    while let Some(update) = stream.next().await {
                        apply(lock(&self.texts).entry(operation).or_default(), update);
                    }
                });
                if over.is_none() {
                    self.keep(operation, Held::Stream(stream));
                    return None;
                }
                self.within(max, stream.ended())
            }
            Held::Listener(listener) => Some(Ended {
                operation,
                peer: None,
                tool: None,
                outcome: match self.within(max, listener.finish())? {
                    Ok(count) => Outcome::Complete(Reply::Listened {
                        notifications: count,
                    }),
                    Err(error) => Outcome::Failed(error),
                },
            }),
        }
    }

    fn cancel(&self, operation: OperationId) {
        self.client.cancel(operation);
    }

    /// It is finished when it is waited for.
    fn finish(&self, _: OperationId) {}

    fn notifications(&self, operation: OperationId, max: Duration) -> Vec<Notification> {
        let Some(Held::Listener(mut listener)) = self.take(operation) else {
            return Vec::new();
        };
        let first = self.within(max, listener.next()).flatten();
        let mut all = Vec::from_iter(first);
        while let Some(next) = self.within(Duration::ZERO, listener.next()).flatten() {
            all.push(next);
        }
        self.keep(operation, Held::Listener(listener));
        all
    }

    fn progress(&self, operation: OperationId) -> Vec<ProgressUpdate> {
        lock(&self.progress).remove(&operation).unwrap_or_default()
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
        self.runtime.block_on(self.client.close());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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
