//! Streamed calls: the machine that keeps one going, and the requests or sources that it wishes for
//! (R32, R33).

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::value::RawValue;

use super::active::{Active, Clock, Stage};
use super::{Peer, awaited};
use crate::continuation::{
    Backoff, Source, StreamChunk, StreamContinuation, StreamDropped, StreamEnd, StreamPolicy,
    StreamResult, StreamWish,
};
use crate::error::{Cause, DroppedStream, Error, Ran, RefusedRetry};
use crate::identity::CallerMeta;
use crate::ids::OperationId;
use crate::operation::{News, Outcome, Reply, Request};
use crate::safety::{
    Failure, IdempotencyKey, LogicalCall, RetryGate, RetryRefused, Ruling, arguments_hash,
};
use crate::streaming::{SourceRequest, StreamFrom, Streaming};
use crate::time::{Duration, Instant};
use crate::types::object::member;
use crate::types::{CallToolResult, text_member};
use crate::violation::{Fault, Violation};

/// A streamed call that has begun.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) machine: StreamContinuation,
    pub(super) from: StreamFrom,
    /// The newest attempt, and where it begins.
    pub(super) source: Source,
    token: Option<String>,
    /// Sets apart what attempts in one life of the server report; those in different lives cannot be
    /// confused, and a retry keeps its `_meta` (R7).
    pub(super) turn: u32,
    /// How the last attempt failed.
    pub(super) failure: Option<Error>,
    refused: Option<RetryRefused>,
}

impl Peer {
    /// Begins a streamed call, or its next attempt, which may be sent now.
    pub(super) fn start_stream(
        &mut self,
        operation: OperationId,
        mut active: Box<Active>,
        streaming: Streaming,
        now: Instant,
    ) {
        if active.stream.is_none() {
            match self.new_stream(&mut active, streaming, now) {
                Ok(stream) => active.stream = Some(Box::new(stream)),
                Err(cause) => {
                    let error = self.error(cause);
                    return self.end(operation, active, Outcome::Failed(error));
                }
            }
        } else if let Some(stream) = &mut active.stream {
            if !stream.machine.is_due(now) {
                // The attempt that waited for its turn before the link was lost.
                return self.send_attempt(operation, active, now);
            }
            stream.machine.time_passed(now);
        }
        self.drive_stream(operation, active, now);
    }

    fn send_attempt(&mut self, operation: OperationId, mut active: Box<Active>, now: Instant) {
        if let Some(clock) = &mut active.clock {
            clock.heard(now);
            self.arm(clock.idle_deadline());
        }
        if let Some(due) = active.due() {
            self.arm(due);
        }
        self.resend(operation, active);
    }

    fn new_stream(
        &self,
        active: &mut Active,
        streaming: Streaming,
        now: Instant,
    ) -> Result<Stream, Cause> {
        let usage = |error: &dyn ToString| Cause::Usage(error.to_string());
        let key = match &active.options.idempotency_key {
            Some(given) => IdempotencyKey::given(given.as_str()).map_err(|error| usage(&error))?,
            None => {
                let key = self.derived_key(active)?;
                if let Some(name) = &self.config.idempotency_meta_key {
                    let own = active.meta.take().unwrap_or_default();
                    let own = own.with(name, key.as_str());
                    active.meta = Some(own.map_err(|error| usage(&error))?);
                }
                active.options.idempotency_key = Some(key.to_string());
                key
            }
        };
        if let Some(name) = &self.config.checkpoint_meta_key {
            let own = active.meta.clone().unwrap_or_default();
            own.with(name, "").map_err(|error| usage(&error))?;
        }
        let (idle, absolute) = match &active.clock {
            Some(clock) => (clock.idle(), clock.absolute_left(now)),
            None => (self.config.timeout, self.config.absolute_timeout),
        };
        let policy = StreamPolicy {
            max_retries: self.config.max_continuation_retries,
            // The silence of a request is the peer's business: whether one that may have been executed is
            // sent again, the gate decides.
            idle_timeout: match streaming.from {
                StreamFrom::Peer => Duration::MAX,
                StreamFrom::Application => idle,
            },
            absolute_timeout: absolute,
            backoff: Backoff {
                entropy: self.trace_id.entropy(),
                ..Backoff::default()
            },
            text: streaming.text,
            text_bytes: self.config.limits.line_bytes,
            ..StreamPolicy::default()
        };
        let mut machine = StreamContinuation::new(policy, key.as_str());
        machine.start(now);
        // The machine counts its attempts itself.
        active.gate = Some(Box::new(RetryGate::new(u32::MAX)));
        Ok(Stream {
            machine,
            from: streaming.from,
            source: 0,
            token: None,
            turn: 0,
            failure: None,
            refused: None,
        })
    }

    /// The key of a call for which the application gives none (R33).
    fn derived_key(&self, active: &Active) -> Result<IdempotencyKey, Cause> {
        let (tool, arguments) = match &active.request {
            Request::CallTool(call) => (&*call.tool, call.arguments.as_ref()),
            _ => ("", None),
        };
        let hash = arguments_hash(arguments.map(|json| json.as_str()));
        let hash = hash.map_err(|error| Cause::Usage(error.to_string()))?;
        Ok(IdempotencyKey::derived(&LogicalCall {
            run_root: &self.run_root,
            peer: self.name(),
            tool,
            arguments_hash: &hash,
            call_index: active.call_index.unwrap_or(0),
        }))
    }

    /// What goes into `_meta` of the next request: the last checkpoint beside everything else.
    pub(super) fn attempt_meta(&self, active: &Active) -> Option<CallerMeta> {
        let token = active.stream.as_ref()?.token.as_ref()?;
        let name = self.config.checkpoint_meta_key.as_ref()?;
        let own = active.meta.clone().unwrap_or_default();
        own.with(name, token).ok()
    }

    /// Does what the machine wishes for, and keeps the operation unless that was its end.
    pub(super) fn drive_stream(
        &mut self,
        operation: OperationId,
        mut active: Box<Active>,
        now: Instant,
    ) {
        while let Some(stream) = &mut active.stream
            && let Some(wish) = stream.machine.poll_wish()
        {
            match wish {
                StreamWish::Close { source } => self.close_source(operation, &mut active, source),
                StreamWish::Update(update) => {
                    self.deliver(News::StreamUpdate { operation, update });
                }
                StreamWish::Open { source, token, key } => {
                    if source > 1 {
                        self.count_retry();
                    }
                    stream.source = source;
                    if stream.from == StreamFrom::Peer {
                        stream.token = token;
                        return self.send_attempt(operation, active, now);
                    }
                    stream.machine.held(source);
                    active.handed_over.get_or_insert(self.now);
                    active.stage = Stage::Streaming;
                    active.may_have_run = true;
                    let request = SourceRequest { source, token, key };
                    self.deliver(News::OpenSource { operation, request });
                }
                StreamWish::End(end) => return self.end_stream(operation, active, end),
            }
        }
        if let Some(due) = active.due() {
            self.arm(due.max(now));
        }
        self.operations.insert(operation, active);
    }

    fn close_source(&mut self, operation: OperationId, active: &mut Active, source: Source) {
        let from = active.stream.as_ref().map(|stream| stream.from);
        if from == Some(StreamFrom::Application) {
            return self.deliver(News::CloseSource { operation, source });
        }
        if let Some(request) = active.request_id() {
            if !self.withdraw(request, "no longer needed") {
                active.may_have_run = true;
            }
            active.stage = Stage::Streaming;
        }
    }

    fn end_stream(&mut self, operation: OperationId, mut active: Box<Active>, end: StreamEnd) {
        self.queue.retain(|queued| *queued != operation);
        let dropped = match &end {
            Ok(result) => result.attempts.saturating_sub(1),
            Err(dropped) => dropped.attempts,
        };
        let drops = &mut self.counters.stream_drops;
        *drops = drops.saturating_add(dropped.into());
        let outcome = match end {
            // It never left the queue.
            Ok(result) if result.cancelled && !active.may_have_run => {
                Outcome::Complete(Reply::Stream(StreamResult::unsent()))
            }
            Ok(result) => Outcome::Complete(Reply::Stream(result)),
            Err(dropped) => Outcome::Failed(self.stream_error(&mut active, dropped)),
        };
        self.end(operation, active, outcome);
    }

    fn stream_error(&mut self, active: &mut Active, dropped: StreamDropped) -> Error {
        if dropped.degrades {
            let detail = format!("{} attempts", dropped.attempts);
            self.degrade(&Fault::new(Violation::StreamDropped, detail));
        }
        let stream = active.stream.take();
        let (last, refused) =
            stream.map_or((None, None), |stream| (stream.failure, stream.refused));
        let cause = match (refused, last) {
            (Some(mut refused), Some(error)) => {
                refused.partial_text = Some(dropped.partial_text);
                Cause::RetryRefused(Box::new(RefusedRetry {
                    refused,
                    error,
                    token: dropped.token,
                }))
            }
            (_, last) => Cause::StreamDropped(Box::new(DroppedStream::new(dropped, last))),
        };
        let ran = if active.may_have_run {
            Ran::Maybe
        } else {
            Ran::No
        };
        self.error(cause).ran(ran)
    }

    /// An attempt came to nothing. Whether there may be another one, the gate decides (R34).
    pub(super) fn attempt_failed(
        &mut self,
        operation: OperationId,
        mut active: Box<Active>,
        failure: Failure,
        error: Error,
        now: Instant,
    ) {
        active.stage = Stage::Streaming;
        if let Some(stream) = &mut active.stream {
            stream.failure = Some(error);
            // Whatever the gate would say: it was tried as often as it may be.
            if stream.machine.is_last() {
                stream.machine.failed(stream.source, true, now);
                return self.drive_stream(operation, active, now);
            }
        }
        let ruling = self.rule(&mut active, failure);
        self.stream_ruled(operation, active, ruling, now);
    }

    /// The gate, or the application, has decided.
    pub(super) fn stream_ruled(
        &mut self,
        operation: OperationId,
        mut active: Box<Active>,
        ruling: Ruling,
        now: Instant,
    ) {
        let Some(stream) = &mut active.stream else {
            return;
        };
        active.stage = Stage::Streaming;
        match ruling {
            Ruling::Retry => stream.machine.failed(stream.source, true, now),
            Ruling::Refuse(refused) => {
                stream.refused = Some(refused);
                stream.machine.failed(stream.source, false, now);
            }
            Ruling::Decide { question, failure } => {
                if let Some(error) = stream.failure.clone() {
                    return self.ask_retry(operation, active, question, failure, error);
                }
            }
        }
        self.drive_stream(operation, active, now);
    }

    /// The link under a streamed call is lost. `true` when it is to be queued: nothing of it was sent.
    pub(super) fn interrupt_stream(
        &mut self,
        operation: OperationId,
        mut active: Box<Active>,
        written: bool,
        cause: &Cause,
        now: Instant,
    ) -> bool {
        if written && active.request_id().is_some() {
            active.may_have_run = true;
            let error = self.error(cause.clone()).ran(Ran::Maybe);
            self.attempt_failed(operation, active, Failure::ConnectionLost, error, now);
            return false;
        }
        let waits_for_peer = matches!(active.stage, Stage::Requested { .. } | Stage::AwaitManifest);
        if waits_for_peer {
            active.stage = Stage::Queued;
            active.refreshes = 0;
        }
        self.operations.insert(operation, active);
        waits_for_peer
    }

    /// There is nobody left to ask. `false` when the stream needs nobody.
    pub(super) fn lose_stream(
        &mut self,
        operation: OperationId,
        mut active: Box<Active>,
        error: Error,
        now: Instant,
    ) {
        if let Some(stream) = &mut active.stream {
            stream.failure = Some(error);
            stream.machine.lost(now);
        }
        self.drive_stream(operation, active, now);
    }

    /// What streams are due for: silence, the next attempt, the overall deadline.
    pub(super) fn expire_streams(&mut self, now: Instant) {
        let is_due =
            |active: &Active| active.stream.is_some() && active.due().is_some_and(|due| due <= now);
        let due = self.operations.iter().filter(|(_, active)| is_due(active));
        let due: Vec<OperationId> = due.map(|(operation, _)| *operation).collect();
        for operation in due {
            let Some(mut active) = self.operations.remove(&operation) else {
                continue;
            };
            if let Some(stream) = &mut active.stream {
                // The text stays as it is until the server is there to be asked again.
                if stream.machine.is_due(now)
                    && stream.from == StreamFrom::Peer
                    && matches!(active.stage, Stage::Streaming)
                {
                    active.stage = Stage::Queued;
                    self.enqueue(operation);
                    self.operations.insert(operation, active);
                    continue;
                }
                stream.machine.time_passed(now);
                if !stream.machine.is_over() && active.is_silent(now) {
                    self.on_silence(operation, active, now);
                    continue;
                }
            }
            self.drive_stream(operation, active, now);
        }
    }

    fn on_silence(&mut self, operation: OperationId, mut active: Box<Active>, now: Instant) {
        let unsent = match active.request_id() {
            Some(request) => self.withdraw(request, "timed out"),
            None => true,
        };
        let ran = if unsent { Ran::No } else { Ran::Maybe };
        active.may_have_run |= !unsent;
        let cause = Cause::Timeout {
            awaited: awaited(active.method()),
            setting: "timeoutMs",
            limit: active
                .clock
                .as_ref()
                .map_or(self.config.timeout, Clock::idle),
        };
        if let Some(stream) = &mut active.stream {
            stream.turn = stream.turn.saturating_add(1);
        }
        let failure = match ran {
            Ran::No => Failure::NotSent,
            Ran::Maybe => Failure::Timeout,
        };
        let error = self.error(cause).ran(ran);
        self.attempt_failed(operation, active, failure, error, now);
    }

    /// Progress of a streamed call is a piece of its text.
    pub(super) fn on_stream_progress(
        &mut self,
        operation: OperationId,
        text: Option<String>,
        params: &RawValue,
        now: Instant,
    ) {
        let Some(mut active) = self.operations.remove(&operation) else {
            return;
        };
        let token = self.config.checkpoint_meta_key.as_ref().and_then(|name| {
            let meta = member(params, "_meta").filter(|meta| meta.get().starts_with('{'))?;
            text_member(meta, name).map(|token| (*token).to_owned())
        });
        if let Some(stream) = &mut active.stream {
            let chunk = StreamChunk {
                text: text.unwrap_or_default(),
                checkpoint_token: token,
                ..StreamChunk::default()
            };
            stream.machine.chunk(stream.source, chunk, now);
        }
        self.drive_stream(operation, active, now);
    }

    /// The answer to a streamed call: what it says is what counts.
    pub(super) fn on_stream_answer(
        &mut self,
        operation: OperationId,
        mut active: Box<Active>,
        answer: CallToolResult,
        now: Instant,
    ) {
        active.may_have_run = true;
        if let Some(stream) = &mut active.stream {
            stream.machine.completed(stream.source, answer, now);
        }
        self.drive_stream(operation, active, now);
    }

    /// Cancels a streamed call (R40): what there is of its text is its result.
    pub(super) fn cancel_stream(&mut self, operation: OperationId, now: Instant) {
        let Some(mut active) = self.operations.remove(&operation) else {
            return;
        };
        match &mut active.stream {
            Some(stream) => {
                stream.machine.cancel(now);
                self.drive_stream(operation, active, now);
            }
            None => self.end_stream(operation, active, Ok(StreamResult::unsent())),
        }
    }
}

impl Active {
    /// Whether the peer is not needed any more: the text comes from the application.
    pub(super) fn streams_by_itself(&self) -> bool {
        let stream = self.stream.as_ref();
        stream.is_some_and(|stream| stream.from == StreamFrom::Application)
    }

    /// Whether the request of a streamed call has been silent for too long.
    fn is_silent(&self, now: Instant) -> bool {
        let clock = self.clock.as_ref();
        matches!(self.stage, Stage::Requested { .. })
            && clock.is_some_and(|clock| clock.idle_deadline() <= now)
    }

    /// When a streamed call is looked at again.
    pub(super) fn stream_due(&self, stream: &Stream) -> Option<Instant> {
        let machine = stream.machine.poll_timeout();
        let other = match self.stage {
            Stage::AwaitInput { .. } => return None,
            Stage::Queued | Stage::AwaitManifest => return Some(stream.machine.deadline()),
            Stage::AwaitRetry { until } => Some(until),
            Stage::Requested { .. } => self.clock.as_ref().map(Clock::idle_deadline),
            _ => None,
        };
        machine.into_iter().chain(other).min()
    }
}
