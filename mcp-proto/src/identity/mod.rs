//! Canonical JSON, derived ids and the request `_meta` (R4–R8).
//!
//! Everything here is a pure function: the same request of the same run has the same ids and the same
//! `_meta`, whenever and wherever it is sent.

pub mod canonical;
mod hash;
mod meta;
pub(crate) mod number;
mod request;
mod text;
mod trace;
mod writer;

pub use canonical::{CanonicalError, CanonicalProblem, Element};
pub use hash::{
    Field, Sha256Hex, content_hash, default_run_root, derive_id, digest_sorted, stdio_url,
};
pub use meta::{CallerMeta, MetaError, Params, keys};
pub use request::{MetaTemplate, ModernRequest, ProgressToken, encode_legacy, encode_notification};
pub use trace::{SpanId, TraceContext, TraceId, control_span_id, span_id, trace_id};
