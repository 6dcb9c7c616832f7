//! Streamed calls whose source is the application's: what it says about it.

use alloc::borrow::ToOwned;

use super::Peer;
use super::active::Active;
use super::streaming::Stream;
use crate::continuation::{Source, StreamChunk};
use crate::error::{Cause, Ran};
use crate::ids::OperationId;
use crate::streaming::StreamFrom;
use crate::time::Instant;

impl Peer {
    /// See [`Client::source_opened`](crate::Client::source_opened).
    pub fn source_opened(&mut self, operation: OperationId, source: Source, now: Instant) {
        self.with_source(operation, now, |stream| stream.machine.opened(source, now));
    }

    /// See [`Client::chunk`](crate::Client::chunk).
    pub fn chunk(
        &mut self,
        operation: OperationId,
        source: Source,
        chunk: StreamChunk,
        now: Instant,
    ) {
        self.with_source(operation, now, |stream| {
            stream.machine.chunk(source, chunk, now);
        });
    }

    /// See [`Client::source_ended`](crate::Client::source_ended).
    pub fn source_ended(&mut self, operation: OperationId, source: Source, now: Instant) {
        self.with_source(operation, now, |stream| stream.machine.ended(source, now));
    }

    /// See [`Client::source_failed`](crate::Client::source_failed).
    pub fn source_failed(
        &mut self,
        operation: OperationId,
        source: Source,
        reason: &str,
        now: Instant,
    ) {
        let reason = reason.to_owned();
        let error = self.error(Cause::Unavailable { reason }).ran(Ran::Maybe);
        self.with_source(operation, now, |stream| {
            if source == stream.source {
                stream.failure = Some(error);
            }
            stream.machine.failed(source, true, now);
        });
    }

    /// A fact about a source of the application's.
    fn with_source(
        &mut self,
        operation: OperationId,
        now: Instant,
        tell: impl FnOnce(&mut Stream),
    ) {
        let is_own = |active: &Active| {
            let stream = active.stream.as_ref();
            stream.is_some_and(|stream| stream.from == StreamFrom::Application)
        };
        if !self
            .operations
            .get(&operation)
            .is_some_and(|active| is_own(active))
        {
            return;
        }
        self.reach(now);
        if let Some(mut active) = self.operations.remove(&operation) {
            if let Some(stream) = &mut active.stream {
                tell(stream);
            }
            self.drive_stream(operation, active, now);
        }
        self.pump(now);
        self.flush();
    }
}
