//! The corpus of misbehaving servers through the third host, on a bare `block_on`.

#![cfg(target_os = "linux")]

#[path = "driver_support/host.rs"]
mod driver_support;

use std::future::Future;
use std::marker::PhantomData;

use conformance::cases::{self, WithDriver};
use conformance::suite::Environment;
use driver_support::{Embedded, Runtime};
use futures_lite::future;

struct Bare;

impl Runtime for Bare {
    const NAME: &'static str = "bare";

    fn spawn(future: impl Future<Output = ()> + Send + 'static) {
        std::thread::spawn(|| future::block_on(future));
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        future::block_on(future)
    }
}

#[test]
fn every_case_holds() {
    let environment = Environment::new(env!("CARGO_BIN_EXE_conformance-server"));
    cases::assert_holds(
        &WithDriver::new(&Embedded::<Bare>(PhantomData), environment),
        16,
    );
}
