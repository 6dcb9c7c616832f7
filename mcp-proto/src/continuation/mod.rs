//! Work that outlives one answer: streams that are taken up again, and requests that take several rounds.
//!
//! - [`StreamContinuation`] keeps one streamed tool call going over dropped streams (R32, R33).
//!
//! The machines send nothing and know nothing of links: they are told what happened and say what they
//! want.

mod backoff;
mod stream;

pub use backoff::Backoff;
pub use stream::{
    DropReason, Source, StreamChunk, StreamContinuation, StreamDropped, StreamEnd, StreamPolicy,
    StreamResult, StreamTextPolicy, StreamUpdate, StreamWish,
};
