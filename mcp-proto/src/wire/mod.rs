//! Bytes to messages and back: line framing, the JSON-RPC envelope, ids, raw JSON.

pub mod depth;
pub mod encode;
pub mod envelope;
mod id;
mod json;
mod line;
mod printable;
pub(crate) mod scan;

pub use encode::ObjectWriter;
pub use envelope::{
    Answer, ErrorObject, Message, Notification, RejectKind, Rejected, Request, Response,
};
pub use id::{IdToken, ResponseId, salvage_id};
pub use json::{InvalidJson, Json, Members};
pub use line::{Line, LineBuffer, Lines};
pub use printable::printable;
