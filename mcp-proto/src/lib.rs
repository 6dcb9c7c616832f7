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

pub mod action;
pub mod answer;
pub mod asking;
pub mod cache;
pub mod catalog;
pub mod client;
pub mod config;
pub mod continuation;
pub mod cost;
pub mod error;
pub mod event;
pub mod identity;
pub mod ids;
pub mod inbox;
pub mod legacy;
pub mod limits;
pub mod manifest;
pub mod metrics;
pub mod nearest;
pub mod negotiation;
pub mod operation;
pub mod peer;
pub mod recovery;
mod remedy;
pub mod report;
pub mod safety;
#[cfg(feature = "schema")]
pub mod schema;
pub mod secret;
#[cfg(feature = "tracing")]
pub mod spans;
mod stdio;
pub mod streaming;
pub mod time;
pub mod types;
mod unread;
pub mod version;
pub mod violation;
pub mod wire;

pub use action::{Action, LinkTarget};
pub use answer::{Answer, CallOutcome};
pub use catalog::Catalog;
pub use client::{Client, Costs, DegradedServer};
pub use config::{Config, PeerConfig};
pub use continuation::{Continuation, InputRounds, StreamChunk, StreamContinuation};
pub use cost::{NanoUsd, ServerCostMeter, SpendLedger};
pub use error::{Error, ErrorKind, Ran};
pub use event::{Event, Exit, IoFailure, IoKind};
pub use ids::{LinkId, OperationId, PeerId, Question};
pub use inbox::Inbox;
pub use limits::Limits;
pub use metrics::MetricsSnapshot;
pub use operation::{
    Ended, Listed, LogMessage, News, Notification, Operation, Options, Outcome, PendingInput,
    ProgressUpdate, Reply, Request, ToolCall,
};
pub use peer::{Diagnosis, Identity, Peer, QuarantinedTool};
pub use report::Report;
pub use safety::RetryGate;
pub use secret::Secret;
pub use stdio::KILL_GRACE;
pub use time::{Duration, Instant};
pub use version::{Era, Version};
pub use violation::Violation;
