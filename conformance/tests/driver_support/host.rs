//! The third host as the suites see it.

#[path = "../../hosts/embedded.rs"]
mod embedded;

use std::collections::BTreeMap;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_io::Timer;
use conformance::suite::{Driver, Session, Setup};
use futures_lite::future;
use mcp_proto::continuation::StreamUpdate;
use mcp_proto::{
    Diagnosis, Ended, Error, Notification, Operation, OperationId, ProgressUpdate, Report,
};

/// Where futures run.
pub(crate) trait Runtime: Send + Sync + 'static {
    const NAME: &'static str;
    fn spawn(future: impl Future<Output = ()> + Send + 'static);
    fn block_on<T>(future: impl Future<Output = T>) -> T;
}

pub(crate) struct Embedded<R>(pub(crate) PhantomData<R>);
struct EmbeddedSession<R> {
    host: embedded::Host,
    /// The texts of streamed calls.
    texts: Mutex<BTreeMap<OperationId, String>>,
    runtime: PhantomData<R>,
}

impl<R: Runtime> Driver for Embedded<R> {
    fn name(&self) -> String {
        format!("embedded, on {}", R::NAME)
    }

    fn connect(&self, setup: Setup) -> Result<Box<dyn Session>, String> {
        let streams = setup.streams.into_iter().collect();
        let (host, driver) = embedded::start(setup.config, setup.identity, streams);
        R::spawn(driver);
        Ok(Box::new(EmbeddedSession::<R> {
            host,
            texts: Mutex::default(),
            runtime: PhantomData,
        }))
    }
}

impl<R: Runtime> Session for EmbeddedSession<R> {
    fn submit(&self, operation: Operation) -> Result<OperationId, Error> {
        self.host.submit(operation)
    }

    fn wait(&self, operation: OperationId, max: Duration) -> Option<Ended> {
        R::block_on(within(max, self.host.ended(operation)))
    }

    fn cancel(&self, operation: OperationId) {
        self.host
            .command(|state, now| state.core.cancel(operation, now));
    }

    fn finish(&self, operation: OperationId) {
        self.host
            .command(|state, now| state.core.finish(operation, now));
    }

    fn notifications(&self, operation: OperationId, max: Duration) -> Vec<Notification> {
        R::block_on(within(max, self.host.notifications(operation))).unwrap_or_default()
    }

    fn progress(&self, operation: OperationId) -> Vec<ProgressUpdate> {
        self.host.command(|state, _| {
            std::iter::from_fn(|| state.inbox.take_progress(operation)).collect()
        })
    }

    fn text(&self, operation: OperationId) -> String {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let text = texts.entry(operation).or_default();
        self.host.command(|state, _| {
            while let Some(update) = state.inbox.take_update(operation) {
                match update {
                    StreamUpdate::Text(more) => text.push_str(&more),
                    StreamUpdate::Rewind { length_bytes } => text.truncate(length_bytes),
                    _ => {}
                }
            }
        });
        text.clone()
    }

    fn report(&self) -> Report {
        self.host.command(|state, _| state.core.report())
    }

    fn diagnoses(&self) -> Vec<Diagnosis> {
        self.host.command(|state, _| state.core.diagnoses())
    }

    fn close(&self) {
        R::block_on(self.host.close());
    }
}

async fn within<T>(max: Duration, future: impl Future<Output = T>) -> Option<T> {
    let late = async {
        Timer::after(max).await;
        None
    };
    future::or(async { Some(future.await) }, late).await
}
