//! What becomes of operations when the link under them is lost, and who decides it (R34, R90).

use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::string::ToString;
use alloc::vec::Vec;

use super::active::{Active, Stage};
use super::{MANIFEST, Peer};
use crate::asking::RetryQuestion;
use crate::error::{Cause, Error, Ran};
use crate::ids::{OperationId, Question};
use crate::operation::{News, Outcome, Request};
use crate::safety::{
    Decision, Facts, Failure, IdempotencyKey, OperatorPolicy, RequestKind, RetryGate, Ruling,
};
use crate::time::Instant;

impl Peer {
    /// The link is lost. What must not be sent twice ends at once, with the word whether it may have been
    /// executed; the rest waits, in its old order, if the peer is started again.
    pub(super) fn interrupt_all(&mut self, cause: &Cause, now: Instant) {
        let open: Vec<OperationId> = self.operations.keys().copied().collect();
        for operation in open {
            self.void_question(operation, now);
        }
        let waiting = core::mem::take(&mut self.queue);
        let mut again = VecDeque::new();
        for (operation, active) in core::mem::take(&mut self.operations) {
            if operation == MANIFEST {
                self.close_attempt(operation, cause);
                continue;
            }
            let written = active.request_id().is_some_and(|request| {
                let link = self.link.as_ref();
                !link.is_some_and(|link| link.outbox.holds(request))
            });
            let waits = if active.stream.is_some() {
                self.interrupt_stream(operation, active, written, cause, now)
            } else {
                self.interrupt(operation, active, written, cause)
            };
            if waits {
                again.push_back(operation);
            }
        }
        // One that listens and waited for its turn stands among them already.
        let ahead: BTreeSet<OperationId> = again.iter().copied().collect();
        again.extend(waiting.into_iter().filter(|waits| !ahead.contains(waits)));
        self.queue = again;
    }

    /// The same for one operation. `true` when it is to be queued.
    fn interrupt(
        &mut self,
        operation: OperationId,
        mut active: Box<Active>,
        written: bool,
        cause: &Cause,
    ) -> bool {
        active.may_have_run |= written;
        let ran = if active.may_have_run {
            Ran::Maybe
        } else {
            Ran::No
        };
        let error = self.error(cause.clone()).ran(ran);
        let failure = if written {
            Failure::ConnectionLost
        } else {
            Failure::NotSent
        };
        let ruling = match active.request {
            _ if !self.restarts() => None,
            // A subscription is opened anew with every life of the server (R91).
            Request::Listen => Some(Ruling::Retry),
            _ if !written => Some(Ruling::Retry),
            _ => Some(self.rule(&mut active, failure)),
        };
        match ruling {
            Some(Ruling::Retry) => {}
            Some(Ruling::Decide { question, failure }) => {
                active.error = Some(Box::new(error.clone()));
                self.ask_retry(operation, active, question, failure, error);
                return false;
            }
            Some(Ruling::Refuse(_)) | None => {
                self.end(operation, active, Outcome::Failed(error));
                return false;
            }
        }
        if written {
            self.count_retry();
            self.close_attempt(operation, cause);
        }
        let waits = matches!(
            active.stage,
            Stage::Queued
                | Stage::AwaitInput { .. }
                | Stage::AwaitRetry { .. }
                | Stage::AwaitDecision
        );
        if waits {
            self.operations.insert(operation, active);
        } else {
            self.put_back(operation, active);
        }
        !waits
    }

    /// Back to where it was before its request; what listening has brought so far stays.
    fn put_back(&mut self, operation: OperationId, mut active: Box<Active>) {
        match &mut active.stage {
            Stage::Listening(listening) => {
                listening.request = None;
                listening.acknowledged = false;
            }
            stage => *stage = Stage::Queued,
        }
        active.ticket = None;
        active.version_retried = false;
        active.header_retried = false;
        active.refreshes = 0;
        self.operations.insert(operation, active);
    }

    /// The gate (R34).
    pub(super) fn rule(&self, active: &mut Active, failure: Failure) -> Ruling {
        let mut facts = Facts::new(failure, RequestKind::of_method(active.method()));
        if let Request::CallTool(call) = &active.request {
            facts.operator = OperatorPolicy::of(&self.config, &call.tool);
            let tool = self.manifest.tool(&call.tool);
            facts.server_hints = tool.is_some_and(|tool| {
                let hints = tool.annotations();
                hints.read_only == Some(true) || hints.idempotent == Some(true)
            });
        }
        facts.key = active.key();
        facts.key_travels = self.config.idempotency_meta_key.is_some();
        if active.options.ask_retry && (self.is_linked() || self.restarts()) {
            facts.decision = Decision::CanAsk;
        }
        let retries = self.config.max_continuation_retries;
        let gate = active
            .gate
            .get_or_insert_with(|| Box::new(RetryGate::new(retries)));
        gate.failed(facts)
    }

    /// Lets the application decide. The operation waits for that, no longer than its deadlines.
    pub(super) fn ask_retry(
        &mut self,
        operation: OperationId,
        mut active: Box<Active>,
        question: Question,
        failure: Failure,
        error: Error,
    ) {
        active.stage = Stage::AwaitDecision;
        let text = active
            .stream
            .as_ref()
            .map(|stream| stream.machine.text().to_string());
        let question = RetryQuestion {
            operation,
            question,
            failure,
            error,
            key: active.key(),
            partial_text: text,
        };
        self.operations.insert(operation, active);
        self.deliver(News::RetryQuestion(Box::new(question)));
    }

    /// The application decided; see [`Client::decide`](crate::Client::decide).
    pub fn decide(
        &mut self,
        operation: OperationId,
        question: Question,
        retry: bool,
        now: Instant,
    ) {
        self.reach(now);
        let ruling = self.operations.get_mut(&operation).and_then(|active| {
            let gate = active.gate.as_mut()?;
            gate.decided(question, retry)
        });
        let Some(ruling) = ruling else {
            return;
        };
        let Some(mut active) = self.operations.remove(&operation) else {
            return;
        };
        if active.stream.is_some() {
            self.stream_ruled(operation, active, ruling, now);
        } else if ruling == Ruling::Retry {
            self.count_retry();
            self.put_back(operation, active);
            self.enqueue(operation);
        } else if let Some(error) = active.error.take() {
            self.end(operation, active, Outcome::Failed(*error));
        }
        self.pump(now);
        self.flush();
    }
}

impl Active {
    /// The idempotency key of a call, given or derived.
    fn key(&self) -> Option<IdempotencyKey> {
        let given = self.options.idempotency_key.as_ref();
        given.and_then(|key| IdempotencyKey::given(key.as_str()).ok())
    }
}
