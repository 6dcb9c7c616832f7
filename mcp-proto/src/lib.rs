//! A Model Context Protocol client as a pure state machine.
//!
//! Nothing in this crate opens a socket, reads a clock, spawns a thread or draws a random number.
//! Everything that happens in the world comes in as an [`Event`] together with the [`Instant`] at
//! which it happened; everything the client wants leaves as an [`Action`].
#![no_std]
#![deny(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod catalog;
pub mod config;
pub mod error;
pub mod identity;
pub mod ids;
pub mod legacy;
pub mod limits;
pub mod manifest;
pub mod nearest;
pub mod negotiation;
mod remedy;
pub mod report;
pub mod secret;
pub mod time;
pub mod types;
pub mod version;
pub mod violation;
pub mod wire;

pub use catalog::Catalog;
pub use config::{Config, PeerConfig};
pub use error::{Error, ErrorKind, Ran};
pub use ids::{LinkId, OperationId, PeerId};
pub use limits::Limits;
pub use report::Report;
pub use secret::Secret;
pub use time::{Duration, Instant};
pub use version::{Era, Version};
pub use violation::Violation;
