//! A Model Context Protocol client for [tokio](https://docs.rs/tokio).
//!
//! Everything about the protocol is decided by [`mcp_proto`], which does no I/O; this crate starts
//! processes, moves bytes and keeps the clock for it. It needs a runtime with I/O and time enabled, of
//! either flavour, and never blocks its threads.
//!
//! ```no_run
//! use mcp_driver_tokio::{CallOutcome, Client, Config};
//!
//! # async fn example(config: Config) -> Result<(), mcp_driver_tokio::Error> {
//! let client = Client::connect(config).await?;
//! println!("{}", client.report());
//!
//! let arguments = serde_json::json!({"timezone": "Asia/Tokyo"});
//! if let CallOutcome::Complete(result) = client.call_tool("time/get_current_time", arguments).await? {
//!     println!("{result:?}");
//! }
//! client.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Streams instead of processes
//!
//! A server that the application reaches by itself is handed over as a byte stream under its configured
//! name:
//!
//! ```no_run
//! # use mcp_driver_tokio::{Client, Config, Identity};
//! # async fn example(config: Config, identity: Identity) {
//! let (ours, theirs) = tokio::io::duplex(64 * 1024);
//! let client = Client::builder(config)
//!     .identity(identity)
//!     .stream("embedded", ours)
//!     .start();
//! # drop(theirs);
//! # }
//! ```
//!
//! # What is left when a client goes
//!
//! [`Client::close`] ends servers in order and in bounded time. Dropping the last handle ends them at
//! once. Either way the whole process group of each server is gone, its pipes are closed even where a
//! process that left the group still holds them, and no zombie is left.

mod client;
mod ledger;
mod links;
mod operation;
mod process;
mod shared;
mod streaming;

pub use client::{Client, ClientBuilder};
pub use mcp_proto::{
    Answer, CallOutcome, Config, Costs, DegradedServer, Diagnosis, Ended, Error, ErrorKind,
    Identity, Listed, MetricsSnapshot, Notification, Operation, OperationId, Options, Outcome,
    PendingInput, ProgressUpdate, QuarantinedTool, Reply, Report, Request, ToolCall, continuation,
    cost, error, types, wire::Json,
};
pub use mcp_proto::{
    Question, StreamChunk,
    asking::{InputQuestion, RetryQuestion},
    continuation::{StreamResult, StreamTextPolicy, StreamUpdate},
    streaming::{SourceRequest, StreamFrom, Streaming},
};
pub use operation::{Listener, Pending};
pub use streaming::ToolStream;
