//! What a server answers to the request of an operation.

use alloc::boxed::Box;

use super::Peer;
use super::active::{Active, Stage};
use crate::error::{Cause, Ran, RpcError};
use crate::ids::OperationId;
use crate::negotiation::ModernError;
use crate::operation::{Outcome, Reply, Request};
use crate::safety::Failure;
use crate::time::Instant;
use crate::types::{
    self, CallToolResult, CompleteResult, GetPromptResult, ReadResourceResult, ResultType,
};
use crate::version::Version;
use crate::violation::Fault;
use crate::wire::{Answer, ErrorObject, Members};

/// JSON-RPC: the method does not exist.
const METHOD_NOT_FOUND: i64 = -32601;

impl Peer {
    /// A response to the request of an operation.
    pub(super) fn on_answer(&mut self, operation: OperationId, answer: &Answer<'_>, now: Instant) {
        let Some(mut active) = self.operations.remove(&operation) else {
            return;
        };
        if let Some(clock) = &mut active.clock {
            clock.heard(now);
        }
        match answer {
            Answer::Error(error) => self.on_error_answer(operation, active, error, now),
            Answer::Result(members) => {
                if let Err((active, fault)) = self.on_result(operation, active, members, now) {
                    self.degrade(&fault);
                    let error = self.error(Cause::SchemaViolation(fault)).ran(Ran::Maybe);
                    self.end(operation, active, Outcome::Failed(error));
                }
            }
        }
    }

    fn on_error_answer(
        &mut self,
        operation: OperationId,
        mut active: Box<Active>,
        error: &ErrorObject<'_>,
        now: Instant,
    ) {
        let rpc: RpcError = error.into();
        if rpc.code == ModernError::UNSUPPORTED_VERSION
            && active.sent.is_some()
            && !active.version_retried
        {
            active.version_retried = true;
            if self.adopt_version(&rpc) {
                // It may have been quarantined, or be gone, meanwhile.
                if let Some(cause) = self.missing_tool(&active) {
                    let error = self.error(cause);
                    return self.end(operation, active, Outcome::Failed(error));
                }
                self.count_retry();
                return self.resend(operation, active);
            }
        }
        // The server checks headers against a tool's schema, which is not the one that we know. Nothing ran.
        if rpc.code == ModernError::HEADER_MISMATCH
            && matches!(active.request, Request::CallTool(_))
            && !active.header_retried
            && self.speaks_modern()
        {
            active.header_retried = true;
            active.refreshes = 0;
            self.manifest.invalidate();
            self.count_retry();
            active.stage = Stage::Queued;
            self.start(operation, active, now);
            return;
        }
        // In answer to a cursor it is no statement about the method, which has answered before.
        if rpc.code == METHOD_NOT_FOUND
            && matches!(&active.stage, Stage::Paging { pages, .. } if pages.is_empty())
        {
            self.end_without_list(operation, active, now);
            return;
        }
        let ran = Failure::of_rpc_code(rpc.code).ran();
        let error = self.error(Cause::Rpc(rpc)).ran(ran);
        self.end(operation, active, Outcome::Failed(error));
    }

    fn speaks_modern(&self) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|session| session.dialect.request_meta)
    }

    /// Takes the newest revision in common that an inline version error names (R12).
    fn adopt_version(&mut self, rpc: &RpcError) -> bool {
        let Ok(ModernError::UnsupportedVersion {
            supported: Ok(supported),
            ..
        }) = ModernError::classify(rpc.clone())
        else {
            return false;
        };
        let modern = self.speaks_modern();
        match Version::newest_mutual_modern(&supported).filter(|_| modern) {
            Some(version) => {
                self.adopt(version);
                true
            }
            None => false,
        }
    }

    /// Reads a result. On a fault the operation is handed back to be ended with it.
    fn on_result(
        &mut self,
        operation: OperationId,
        active: Box<Active>,
        members: &Members<'_>,
        now: Instant,
    ) -> Result<(), (Box<Active>, Fault)> {
        let kind = match self.session.as_ref() {
            Some(session) => types::result_type(members, session.dialect.version.era()),
            None => Ok(ResultType::Complete),
        };
        let outcome = match kind {
            Ok(ResultType::InputRequired) => {
                return self.on_input_required(operation, active, members, now);
            }
            Ok(ResultType::Complete) if active.stream.is_some() => {
                match self.read_call(&active, members) {
                    Ok(answer) => {
                        self.on_stream_answer(operation, active, answer, now);
                        return Ok(());
                    }
                    Err(fault) => Err(fault),
                }
            }
            Ok(ResultType::Complete) => match &active.stage {
                Stage::Paging { .. } => {
                    self.on_page(operation, active, members, now);
                    return Ok(());
                }
                Stage::Listening(listening) => Ok(Outcome::Complete(Reply::Listened {
                    notifications: listening.count,
                })),
                _ => self
                    .read_reply(&active, members, now)
                    .map(Outcome::Complete),
            },
            Err(fault) => Err(fault),
        };
        match outcome {
            Ok(outcome) => {
                self.end(operation, active, outcome);
                Ok(())
            }
            Err(fault) => Err((active, fault)),
        }
    }

    /// The result of a call, checked against the tool's output schema where that was asked for.
    fn read_call(
        &mut self,
        active: &Active,
        members: &Members<'_>,
    ) -> Result<CallToolResult, Fault> {
        let mut result = CallToolResult::read(members)?;
        if let (true, Request::CallTool(call)) = (active.validates, &active.request) {
            self.validate(&call.tool, &mut result);
        }
        Ok(result)
    }

    fn read_reply(
        &mut self,
        active: &Active,
        members: &Members<'_>,
        now: Instant,
    ) -> Result<Reply, Fault> {
        Ok(match &active.request {
            Request::CallTool(_) => Reply::Call(self.read_call(active, members)?),
            Request::ReadResource { .. } => {
                let result = ReadResourceResult::read(members)?;
                if let Some(ticket) = &active.ticket {
                    self.keep_read(ticket, members, now);
                }
                Reply::Read(result)
            }
            Request::GetPrompt { .. } => Reply::Prompt(GetPromptResult::read(members)?),
            Request::Complete { .. } => Reply::Completion(CompleteResult::read(members)?),
            _ => Reply::Settled,
        })
    }
}
