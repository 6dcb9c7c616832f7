//! The corpus of misbehaving servers through `batch`, with both drivers.
#![cfg(all(feature = "cli", target_os = "linux"))]

use conformance::cases::{self, WithBatch};

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-harness");

#[test]
fn every_case_holds_with_the_tokio_driver() {
    cases::assert_holds(&WithBatch::new(PROGRAM, ["--driver", "tokio"]), 12);
}

#[test]
fn every_case_holds_with_the_blocking_driver() {
    cases::assert_holds(&WithBatch::new(PROGRAM, ["--driver", "blocking"]), 12);
}
