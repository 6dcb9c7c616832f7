//! Everything about the revisions before 2026-07-28, and nothing of it elsewhere.
//!
//! These revisions open a session with an `initialize` handshake. Whether a peer may be talked to in
//! this way at all is decided by [`negotiation`](crate::negotiation), which asks for "the handshake"
//! and gets an answer in its own words; what differs afterwards is a [`Dialect`](crate::negotiation::Dialect).
//! Deleting this folder leaves a working modern client.
//!
//! What needs no code here because it is the same in every revision: the envelope, ids, progress
//! tokens, cursors, `notifications/cancelled` (which must never name the handshake),
//! `notifications/progress` and `notifications/message`.
//!
//! # Batches
//! 2025-03-26 alone lets a server send JSON-RPC batches. This client takes a batch for a violation in
//! that revision as well (R60): it never sends one, so nothing is answered with one; the revision
//! before and the one after do not have them; and one rule for the envelope of all revisions is a rule
//! that a server cannot talk its way around.
//!
//! spec: 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05 basic/lifecycle

mod dialect;
mod handshake;
mod message;
mod server_request;

pub use dialect::dialect;
pub use handshake::{
    Handshake, HandshakeFault, InvalidHandshake, LegacySession, last_words_ask_for_handshake,
};
pub use message::{Change, Message, roots_changed, set_level, subscribe, unsubscribe};
pub use server_request::{
    Declared, Deferred, ServerRequestReply, answer_request, capabilities, unanswered,
};
