//! What becomes of operations when the link under them is lost (R34, R90).

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use super::active::{Active, Stage};
use super::{MANIFEST, Peer};
use crate::error::{Cause, Ran};
use crate::ids::OperationId;
use crate::operation::{Outcome, Request};
use crate::safety::{
    Facts, Failure, IdempotencyKey, OperatorPolicy, RequestKind, Verdict, may_retry,
};

impl Peer {
    /// The link is lost. What must not be sent twice ends at once, with the word whether it may have been
    /// executed; the rest waits, in its old order, if the peer is started again.
    pub(super) fn interrupt_all(&mut self, cause: &Cause) {
        let restarts = self.restarts();
        let waiting = core::mem::take(&mut self.queue);
        let mut again = VecDeque::new();
        for (operation, mut active) in core::mem::take(&mut self.operations) {
            if operation == MANIFEST {
                continue;
            }
            let written = active.request_id().is_some_and(|request| {
                let link = self.link.as_ref();
                !link.is_some_and(|link| link.outbox.holds(request))
            });
            if !(restarts && self.may_go_on(&active, written)) {
                let ran = if written { Ran::Maybe } else { Ran::No };
                let error = self.error(cause.clone()).ran(ran);
                self.end(operation, active, Outcome::Failed(error));
                continue;
            }
            if written {
                active.was_written = true;
                active.retries = active.retries.saturating_add(1);
                self.counters.retries = self.counters.retries.saturating_add(1);
            }
            let waits = matches!(
                active.stage,
                Stage::Queued | Stage::AwaitInput { .. } | Stage::AwaitRetry { .. }
            );
            if waits {
                self.operations.insert(operation, active);
            } else {
                again.push_back(operation);
                self.put_back(operation, active);
            }
        }
        again.extend(waiting);
        self.queue = again;
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
        active.refreshes = 0;
        self.operations.insert(operation, active);
    }

    /// The gate (R34).
    fn may_go_on(&self, active: &Active, written: bool) -> bool {
        let failure = if written {
            Failure::ConnectionLost
        } else {
            Failure::NotSent
        };
        let mut facts = Facts::new(failure, RequestKind::of_method(active.method()));
        facts.retries_left = match (&active.request, written) {
            // A subscription is opened anew with every life of the server (R91).
            (Request::Listen, _) | (_, false) => 1,
            _ => self
                .config
                .max_continuation_retries
                .saturating_sub(active.retries),
        };
        if let Request::CallTool(call) = &active.request {
            facts.operator = OperatorPolicy::of(&self.config, &call.tool);
        }
        let key = active.options.idempotency_key.as_ref();
        facts.key = key.and_then(|key| IdempotencyKey::given(key.as_str()).ok());
        facts.key_travels = self.config.idempotency_meta_key.is_some();
        may_retry(&facts) == Verdict::Retry
    }
}
