//! Work that outlives one answer: streams that are taken up again, and requests that take several rounds.
//!
//! - [`StreamContinuation`] keeps one streamed tool call going over dropped streams (R32, R33).
//! - [`InputRounds`] leads one request through the questions of its server (R30), and [`Continuation`] is
//!   such a request as a value that another process can take up (R31).
//!
//! The machines send nothing and know nothing of links: they are told what happened and say what they
//! want.

mod backoff;
mod input;
mod pending;
mod stored;
mod stream;

pub use backoff::Backoff;
pub use input::{InputError, InputPolicy, InputRounds, InputStep};
pub use pending::{PeerPin, PendingRequest, ResumableMethod};
pub use stored::{Continuation, ContinuationError, ResumeRefused};
pub use stream::{
    DropReason, Source, StreamChunk, StreamContinuation, StreamDropped, StreamEnd, StreamPolicy,
    StreamResult, StreamTextPolicy, StreamUpdate, StreamWish,
};
