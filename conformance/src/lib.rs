//! What a Model Context Protocol client is tested with: a scriptable server, a simulator in virtual
//! time, and suites that any driver can run.

pub mod fuzzing;
pub mod schedules;
pub mod strategies;
#[cfg(target_os = "linux")]
pub mod suite;
pub mod world;

pub use mcp_fake_server as fake_server;

/// The examples of the project's README, so that they stay true.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
