//! The corpus of misbehaving servers through the blocking driver.

#![cfg(target_os = "linux")]

#[path = "driver_support/blocking.rs"]
mod driver_support;

use conformance::cases::{self, WithDriver};
use conformance::suite::Environment;
use driver_support::Blocking;

#[test]
fn every_case_holds() {
    let environment = Environment::new(env!("CARGO_BIN_EXE_conformance-server"));
    cases::assert_holds(&WithDriver::new(&Blocking, environment), 16);
}
