//! The third host passes the driver suite under three runtimes, none of them tokio (R100).

#![cfg(target_os = "linux")]

#[path = "driver_support/host.rs"]
mod driver_support;

use std::future::Future;
use std::marker::PhantomData;

use conformance::suite::Environment;
use driver_support::{Embedded, Runtime};
use futures_lite::future;

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
