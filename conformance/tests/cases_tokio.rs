//! The corpus of misbehaving servers through the tokio driver.

#![cfg(target_os = "linux")]

#[path = "driver_support/tokio.rs"]
mod driver_support;

use std::sync::LazyLock;

use conformance::cases::{self, WithDriver};
use conformance::suite::Environment;
use driver_support::{Runtime, Tokio, forever};
use tokio::runtime::Builder;

static RUNTIME: Runtime = LazyLock::new(|| forever(Builder::new_multi_thread()));

#[test]
fn every_case_holds() {
    let environment = Environment::new(env!("CARGO_BIN_EXE_conformance-server"));
    cases::assert_holds(&WithDriver::new(&Tokio(&RUNTIME), environment), 16);
}
