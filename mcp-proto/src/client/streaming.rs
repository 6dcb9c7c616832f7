//! Streamed calls whose source is the application's, and idempotency keys (R32, R33).

use alloc::string::ToString;

use super::{Client, Entry};
use crate::continuation::{Source, StreamChunk, StreamResult};
use crate::error::{Cause, Error};
use crate::ids::{OperationId, PeerId};
use crate::operation::{Operation, Outcome, Reply, Request};
use crate::safety::{IdempotencyKey, arguments_hash};
use crate::time::Instant;

/// How many idempotency keys of the application are remembered.
pub(super) const KEYS_MAX: usize = 4096;

impl Client {
    /// The source that [`News::OpenSource`](crate::News::OpenSource) asked for is open: its silence counts
    /// from now on. Telling a piece of it says the same. Here and below, what is said about an earlier
    /// attempt or an operation that has ended changes nothing.
    pub fn source_opened(&mut self, operation: OperationId, source: Source, now: Instant) {
        self.with_operation(operation, now, |peer, now| {
            peer.source_opened(operation, source, now);
        });
    }

    /// A piece of that source arrived.
    pub fn chunk(
        &mut self,
        operation: OperationId,
        source: Source,
        chunk: StreamChunk,
        now: Instant,
    ) {
        self.with_operation(operation, now, |peer, now| {
            peer.chunk(operation, source, chunk, now);
        });
    }

    /// That source ended. Without a piece that is final before it, the stream was dropped.
    pub fn source_ended(&mut self, operation: OperationId, source: Source, now: Instant) {
        self.with_operation(operation, now, |peer, now| {
            peer.source_ended(operation, source, now);
        });
    }

    /// That source failed, or could not be opened, for this reason. It is opened again as long as attempts
    /// are left: the application knows what opening it twice does (R34).
    pub fn source_failed(
        &mut self,
        operation: OperationId,
        source: Source,
        reason: &str,
        now: Instant,
    ) {
        self.with_operation(operation, now, |peer, now| {
            peer.source_failed(operation, source, reason, now);
        });
    }

    /// Takes the application's key for a call, which no other call may use (R33).
    pub(super) fn claim_key(&mut self, peer: PeerId, operation: &Operation) -> Result<(), Error> {
        let (Request::CallTool(call), Some(key)) =
            (&operation.request, &operation.options.idempotency_key)
        else {
            return Ok(());
        };
        let arguments = call.arguments.as_ref().map(|json| json.as_str());
        // Arguments without a canonical form are refused by the peer.
        let (Some(peer), Ok(key), Ok(hash)) = (
            self.peers.get(peer.index()),
            IdempotencyKey::given(key.as_str()),
            arguments_hash(arguments),
        ) else {
            return Ok(());
        };
        let claimed = self.keys.claim(&key, peer.name(), &call.tool, &hash);
        claimed.map(drop).map_err(|reused| {
            let cause = Cause::Usage(reused.to_string());
            Error::new(peer.name(), cause)
        })
    }
}

/// How an operation ends that is cancelled before any peer has it.
pub(super) fn cancelled(entry: &Entry) -> Outcome {
    match entry {
        Entry::Unsettled { operation, .. } if operation.options.stream.is_some() => {
            Outcome::Complete(Reply::Stream(StreamResult::unsent()))
        }
        _ => Outcome::Failed(Error::general(Cause::Cancelled)),
    }
}
