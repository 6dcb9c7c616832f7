//! The stdio binding: one byte stream's life, from opening to release.
//!
//! spec: 2026-07-28 basic/transports/stdio

mod link;
mod outbox;
mod tail;

pub use link::KILL_GRACE;
pub(crate) use link::{Link, LinkNews};
pub(crate) use outbox::Outbox;
pub(crate) use tail::Tail;
