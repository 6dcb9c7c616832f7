//! A blocking client for the Model Context Protocol, without an async runtime.
//!
//! Servers are child processes (`stdio`) or byte streams that the host supplies. Everything is decided by
//! the state machine of [`mcp_proto`]; this crate moves its bytes, starts and ends its processes and keeps
//! its clock.
//!
//! ```no_run
//! use mcp_driver_blocking::{CallOutcome, Client, Config};
//!
//! # fn example(config: Config) -> Result<(), mcp_driver_blocking::Error> {
//! let client = Client::connect(config)?;
//! println!("{}", client.report());
//! let arguments = std::collections::BTreeMap::from([("timezone", "Asia/Tokyo")]);
//! match client.call_tool("time/get_current_time", arguments)? {
//!     CallOutcome::Complete(result) => println!("{result:?}"),
//!     CallOutcome::InputRequired(input) => println!("the server asks first: {input:?}"),
//! }
//! client.close();
//! # Ok(())
//! # }
//! ```
//!
//! # Threads
//! A [`Client`] is a handle: clone it, share it, wait from as many threads as you like. Of the threads that
//! wait, one polls all servers on behalf of the others, so a call that is alone is carried from request to
//! answer by the calling thread. One more thread (`mcp-keeper`) does the same while nobody waits: deadlines,
//! notifications and standard error make progress on an idle client, which sleeps when there are none. A
//! third kind (`mcp-child-…`), one per process, does nothing but wait for the process to end.
//!
//! # Platforms
//! Child processes and streams need Unix. Elsewhere the crate compiles, and every server fails to start with
//! a message that says so.

mod client;
mod engine;
mod ledger;
mod operation;
mod streaming;
#[cfg(not(unix))]
#[path = "elsewhere.rs"]
mod sys;
#[cfg(unix)]
#[path = "unix.rs"]
mod sys;

#[cfg(all(test, target_os = "linux"))]
mod tests;

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
