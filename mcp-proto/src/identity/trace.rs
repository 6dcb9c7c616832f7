//! Trace context of requests, derived instead of drawn (R6, R7).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::hash::{Field, Sha256Hex, derive_nonzero};
use crate::wire::encode::push_u64;

/// The trace id that all requests of one run share, as 32 hexadecimal digits. Never all zeros.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId([u8; 32]);

/// The span id of one request, as 16 hexadecimal digits. Never all zeros.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId([u8; 16]);

/// The trace id of a run, from its root. Computed once for a run.
#[must_use]
pub fn trace_id(run_root: &str) -> TraceId {
    TraceId(derive_nonzero(
        "mcp.trace",
        &[("run_root_hash", Field::Text(run_root))],
    ))
}

/// The span id of a logical tool call: what is called, and as which call of the run, from 0.
#[must_use]
pub fn span_id(content_hash: &Sha256Hex, call_index: u64) -> SpanId {
    SpanId(derive_nonzero(
        "mcp.span",
        &[
            ("call_index", Field::Number(call_index)),
            ("params_content_hash", Field::Text(content_hash.as_str())),
        ],
    ))
}

/// The span id of a control message (discover, lists, reads, listen, cancel), which no call index is
/// spent on: the `ordinal`th of its method to this server, as the caller counts them.
#[must_use]
pub fn control_span_id(server: &str, method: &str, ordinal: u64) -> SpanId {
    SpanId(derive_nonzero(
        "mcp.control",
        &[
            ("method", Field::Text(method)),
            ("ordinal", Field::Number(ordinal)),
            ("server", Field::Text(server)),
        ],
    ))
}

/// The trace keys of one request. A retry of the same logical call keeps them.
///
/// ```
/// use mcp_proto::identity::{TraceContext, content_hash, span_id, trace_id};
/// let hash = content_hash("tools/call", Some(r#"{"name":"echo","arguments":{"input":"hi"}}"#))?;
/// let trace = TraceContext::for_call(trace_id(&"a".repeat(64)), span_id(&hash, 1), 1);
/// assert_eq!(
///     trace.traceparent(),
///     "00-b9c785d65b1f009a88fdef43b9b1b2df-72bf61596651a0ab-01",
/// );
/// assert_eq!(trace.baggage("tools/call"), "mcp.method=tools/call,mcp.call_index=1");
/// # Ok::<_, mcp_proto::identity::CanonicalError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    traceparent: [u8; 55],
    call_index: Option<u64>,
}

impl TraceContext {
    /// Of a logical tool call.
    #[must_use]
    pub fn for_call(trace: TraceId, span: SpanId, call_index: u64) -> Self {
        Self {
            traceparent: traceparent(trace, span),
            call_index: Some(call_index),
        }
    }

    /// Of a control message, whose baggage names the method alone.
    #[must_use]
    pub fn for_control(trace: TraceId, span: SpanId) -> Self {
        Self {
            traceparent: traceparent(trace, span),
            call_index: None,
        }
    }

    /// The same keys again, from [`traceparent`](Self::traceparent) and [`call_index`](Self::call_index),
    /// so that a retry in another process keeps them (R7). `None` when the text is none that this client
    /// writes.
    #[must_use]
    pub fn restore(traceparent: &str, call_index: Option<u64>) -> Option<Self> {
        let text: [u8; 55] = traceparent.as_bytes().try_into().ok()?;
        let ids = traceparent.strip_prefix("00-")?.strip_suffix("-01")?;
        let (trace, span) = ids.split_once('-')?;
        let is_id = |id: &str, digits| {
            id.len() == digits
                && id
                    .bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
                && id.bytes().any(|byte| byte != b'0')
        };
        (is_id(trace, 32) && is_id(span, 16)).then_some(Self {
            traceparent: text,
            call_index,
        })
    }

    /// Which logical tool call of the run it is; `None` for control messages.
    #[must_use]
    pub const fn call_index(&self) -> Option<u64> {
        self.call_index
    }

    /// The value of `traceparent`: version 00, sampled.
    // spec: W3C Trace Context, section 3.2
    #[must_use]
    pub fn traceparent(&self) -> &str {
        core::str::from_utf8(&self.traceparent).unwrap_or_default()
    }

    /// The value of `baggage`, for the method of the request.
    #[must_use]
    pub fn baggage(&self, method: &str) -> String {
        let mut out = Vec::new();
        self.push_baggage(&mut out, method);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Appends the value of `baggage`, which needs no escapes inside a JSON string.
    pub(super) fn push_baggage(&self, out: &mut Vec<u8>, method: &str) {
        out.extend_from_slice(b"mcp.method=");
        push_baggage_value(out, method);
        if let Some(call_index) = self.call_index {
            out.extend_from_slice(b",mcp.call_index=");
            push_u64(out, call_index);
        }
    }
}

impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceContext")
            .field("traceparent", &self.traceparent())
            .field("call_index", &self.call_index)
            .finish()
    }
}

fn traceparent(trace: TraceId, span: SpanId) -> [u8; 55] {
    let mut text = *b"00-00000000000000000000000000000000-0000000000000000-01";
    if let Some(place) = text.get_mut(3..35) {
        place.copy_from_slice(&trace.0);
    }
    if let Some(place) = text.get_mut(36..52) {
        place.copy_from_slice(&span.0);
    }
    text
}

/// Percent-encodes what a baggage value may not hold, and `%` itself.
// spec: W3C Baggage, section 3.3.1 (baggage-octet)
fn push_baggage_value(out: &mut Vec<u8>, value: &str) {
    let is_plain = |byte| !matches!(byte, b'%' | b'"' | b',' | b';' | b'\\' | ..=0x20 | 0x7f..);
    if value.bytes().all(is_plain) {
        // Every method of the protocol.
        return out.extend_from_slice(value.as_bytes());
    }
    for byte in value.bytes() {
        if is_plain(byte) {
            out.push(byte);
        } else {
            const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
            let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or(b'0');
            out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 0xf)]);
        }
    }
}

impl TraceId {
    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// What sets one run apart from others where a spread is wanted and nothing is drawn.
    pub(crate) fn entropy(&self) -> u64 {
        let digits = self.as_str().get(..16).unwrap_or_default();
        u64::from_str_radix(digits, 16).unwrap_or_default()
    }
}

impl SpanId {
    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
