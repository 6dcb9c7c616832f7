//! Bytes to messages and back: line framing, the JSON-RPC envelope, ids, raw JSON.

mod json;

pub use json::{InvalidJson, Json, Members};
