//! The tokio driver passes the driver suite on runtimes of both flavours.

#![cfg(target_os = "linux")]

#[path = "driver_support/tokio.rs"]
mod driver_support;

use std::sync::LazyLock;

use conformance::suite::Environment;
use driver_support::{Runtime, Tokio, forever};
use tokio::runtime::Builder;

mod current_thread {
    use super::*;

    static RUNTIME: Runtime = LazyLock::new(|| forever(Builder::new_current_thread()));

    conformance::driver_suite!(
        &Tokio(&RUNTIME),
        Environment::new(env!("CARGO_BIN_EXE_conformance-server"))
    );
}

mod multi_thread {
    use super::*;

    static RUNTIME: Runtime = LazyLock::new(|| forever(Builder::new_multi_thread()));

    conformance::driver_suite!(
        &Tokio(&RUNTIME),
        Environment::new(env!("CARGO_BIN_EXE_conformance-server"))
    );
}
