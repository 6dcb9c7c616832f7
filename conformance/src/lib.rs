//! What a Model Context Protocol client is tested with: a scriptable server, a simulator in virtual
//! time, and suites that any driver can run.

pub mod cases;
pub mod strategies;
#[cfg(target_os = "linux")]
pub mod suite;
pub mod world;

pub use mcp_fake_server as fake_server;

/// What a panic says.
fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("it panicked")
        .to_owned()
}

/// The examples of the project's README, so that they stay true.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
