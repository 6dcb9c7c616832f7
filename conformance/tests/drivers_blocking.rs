//! The blocking driver passes the driver suite.

#![cfg(target_os = "linux")]

#[path = "driver_support/blocking.rs"]
mod driver_support;

use conformance::suite::Environment;
use driver_support::Blocking;

conformance::driver_suite!(
    &Blocking,
    Environment::new(env!("CARGO_BIN_EXE_conformance-server"))
);
