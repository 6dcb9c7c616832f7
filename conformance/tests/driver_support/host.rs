//! The third host as the suites see it.

#[path = "../../hosts/embedded.rs"]
mod embedded;

use std::future::Future;
use std::marker::PhantomData;
use std::time::Duration;

use async_io::Timer;
use conformance::suite::{Driver, Session, Setup};
use futures_lite::future;
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
struct EmbeddedSession<R>(embedded::Host, PhantomData<R>);

impl<R: Runtime> Driver for Embedded<R> {
    fn name(&self) -> String {
        format!("embedded, on {}", R::NAME)
    }

    fn connect(&self, setup: Setup) -> Result<Box<dyn Session>, String> {
        let streams = setup.streams.into_iter().collect();
        let (host, driver) = embedded::start(setup.config, setup.identity, streams);
        R::spawn(driver);
        Ok(Box::new(EmbeddedSession::<R>(host, PhantomData)))
    }
}

impl<R: Runtime> Session for EmbeddedSession<R> {
    fn submit(&self, operation: Operation) -> Result<OperationId, Error> {
        self.0.submit(operation)
    }

    fn wait(&self, operation: OperationId, max: Duration) -> Option<Ended> {
        R::block_on(within(max, self.0.ended(operation)))
    }

    fn cancel(&self, operation: OperationId) {
        self.0
            .command(|state, now| state.core.cancel(operation, now));
    }

    fn finish(&self, operation: OperationId) {
        self.0
            .command(|state, now| state.core.finish(operation, now));
    }

    fn notifications(&self, operation: OperationId, max: Duration) -> Vec<Notification> {
        R::block_on(within(max, self.0.notifications(operation))).unwrap_or_default()
    }

    fn progress(&self, operation: OperationId) -> Vec<ProgressUpdate> {
        self.0.progress(operation)
    }

    fn text(&self, operation: OperationId) -> String {
        self.0.text(operation)
    }

    fn report(&self) -> Report {
        self.0.command(|state, _| state.core.report())
    }

    fn diagnoses(&self) -> Vec<Diagnosis> {
        self.0.command(|state, _| state.core.diagnoses())
    }

    fn close(&self) {
        R::block_on(self.0.close());
    }
}

async fn within<T>(max: Duration, future: impl Future<Output = T>) -> Option<T> {
    let late = async {
        Timer::after(max).await;
        None
    };
    future::or(async { Some(future.await) }, late).await
}
