//! The third host passes the driver suite under three runtimes, none of them tokio (R100).

#![cfg(target_os = "linux")]

#[path = "../hosts/embedded.rs"]
mod embedded;

use std::future::Future;
use std::marker::PhantomData;
use std::time::Duration;

use async_io::Timer;
use conformance::suite::{Driver, Environment, Session, Setup};
use futures_lite::future;
use mcp_proto::{
    Diagnosis, Ended, Error, Notification, Operation, OperationId, ProgressUpdate, Report,
};

/// Where futures run.
trait Runtime: Send + Sync + 'static {
    const NAME: &'static str;
    fn spawn(future: impl Future<Output = ()> + Send + 'static);
    fn block_on<T>(future: impl Future<Output = T>) -> T;
}

struct Embedded<R>(PhantomData<R>);
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

/// Makes a module with the whole suite on one runtime.
macro_rules! host {
    ($name:ident, $spawn:expr, $block_on:path) => {
        mod $name {
            use super::*;

            struct Here;
            impl Runtime for Here {
                const NAME: &'static str = stringify!($name);
                fn spawn(future: impl Future<Output = ()> + Send + 'static) {
                    $spawn(future);
                }
                fn block_on<T>(future: impl Future<Output = T>) -> T {
                    $block_on(future)
                }
            }

            conformance::driver_suite!(
                &Embedded::<Here>(PhantomData),
                Environment::new(env!("CARGO_BIN_EXE_conformance-server"))
            );
        }
    };
}

host!(
    bare,
    |future| drop(std::thread::spawn(|| future::block_on(future))),
    future::block_on
);
host!(
    smol,
    |future| ::smol::spawn(future).detach(),
    ::smol::block_on
);
// async-std is discontinued (RUSTSEC-2025-0052): used on purpose, to prove that a host that still runs on
// it can embed the core.
host!(
    async_std,
    |future| drop(::async_std::task::spawn(future)),
    ::async_std::task::block_on
);
