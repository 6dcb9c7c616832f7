//! Operations from acceptance to outcome.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::active::{Active, Clock, Sent, Stage, Token, progress_token};
use super::requests::Owner;
use super::sending::Extra;
use super::{MANIFEST, Peer, Phase, awaited};
use crate::error::{Cause, Error, Ran, StreamText};
use crate::identity::Params;
use crate::ids::OperationId;
use crate::operation::{Options, Outcome, Reply, Request, ToolCall};
use crate::time::Instant;
use crate::wire::{Json, ObjectWriter};

/// How often the manifest is read again for one call: the second time if it changed during the first.
const MANIFEST_REFRESHES_MAX: u8 = 2;

impl Peer {
    /// Refuses what cannot be served, before anything is kept or sent.
    pub(super) fn check_acceptable(&self, request: &Request) -> Result<(), Error> {
        match &self.phase {
            Phase::Closing => {
                return Err(self.error(Cause::Unavailable {
                    reason: "the client is closed".into(),
                }));
            }
            Phase::Failed(error) if !self.is_linked() => return Err(error.clone().ran(Ran::No)),
            _ => {}
        }
        let limits = &self.config.limits;
        if self.operations.len() >= limits.queued.saturating_add(limits.in_flight) {
            let max = limits.queued as u64;
            let what = String::from("the number of waiting operations");
            return Err(self.error(Cause::Limit {
                what,
                setting: "maxInFlight",
                max,
            }));
        }
        let waiting = self
            .link
            .as_ref()
            .map_or(0, |link| link.outbox.queued_bytes());
        if waiting > limits.line_bytes {
            let what = String::from("the number of bytes that the server has not taken");
            let max = limits.line_bytes as u64;
            return Err(self.error(Cause::Limit {
                what,
                setting: "maxLineBytes",
                max,
            }));
        }
        self.refuse_degraded(request)
    }

    /// Whether a session stands on a usable link.
    pub(super) fn is_linked(&self) -> bool {
        self.session.is_some() && self.link.as_ref().is_some_and(|link| link.is_usable())
    }

    fn can_start(&self) -> bool {
        matches!(self.phase, Phase::Ready | Phase::Failed(_))
            && self.requests.in_flight() < self.config.limits.in_flight
            && self.is_linked()
    }

    /// Starts a new operation, or queues it behind those that wait.
    pub(super) fn admit(&mut self, operation: OperationId, mut active: Box<Active>, now: Instant) {
        if self.queue.is_empty() && self.can_start() {
            self.start(operation, active, now);
        } else {
            if self.is_settled() {
                self.start_clock(&mut active, now);
            }
            active.shares_listing = !self.is_settled();
            self.enqueue(operation);
            self.operations.insert(operation, active);
        }
    }

    /// Lets an operation wait for its turn, behind all others. One that stood there twice would be sent twice.
    pub(super) fn enqueue(&mut self, operation: OperationId) {
        debug_assert!(!self.queue.contains(&operation), "{operation} waits");
        self.queue.push_back(operation);
    }

    /// Starts what waits, in order, as far as there are places.
    pub(super) fn pump(&mut self, now: Instant) {
        if core::mem::take(&mut self.just_settled) {
            if matches!(self.phase, Phase::Ready) {
                self.was_ready = true;
                self.recovery.recovered(now);
            }
            for operation in self.queue.clone() {
                if let Some(mut active) = self.operations.remove(&operation) {
                    self.start_clock(&mut active, now);
                    self.operations.insert(operation, active);
                }
            }
        }
        while !self.queue.is_empty() && self.can_start() {
            let Some(operation) = self.queue.pop_front() else {
                return;
            };
            if let Some(active) = self.operations.remove(&operation) {
                self.start(operation, active, now);
            }
        }
    }

    /// The deadlines of an operation run from when its peer has settled, whether or not there is a place
    /// in flight.
    pub(super) fn start_clock(&mut self, active: &mut Active, now: Instant) {
        if active.clock.is_none() {
            let (idle, absolute) = (self.config.timeout, self.config.absolute_timeout);
            let clock = Clock::of(&active.options, idle, absolute, now);
            self.arm(clock.deadline());
            active.clock = Some(clock);
            self.counters.operations = self.counters.operations.saturating_add(1);
        }
    }

    /// Begins to work on an operation.
    pub(super) fn start(&mut self, operation: OperationId, mut active: Box<Active>, now: Instant) {
        self.start_clock(&mut active, now);
        // It may have been accepted before the peer was degraded.
        if let Err(error) = self.refuse_degraded(&active.request) {
            return self.end(operation, active, Outcome::Failed(error));
        }
        // A peer whose first listing failed gets another chance with every operation.
        if matches!(self.phase, Phase::Failed(_)) && active.request != Request::ListTools {
            self.read_manifest(now);
        }
        if self.needs_manifest(&active) {
            active.refreshes += 1;
            active.stage = Stage::AwaitManifest;
            self.operations.insert(operation, active);
            return self.read_manifest(now);
        }
        if let Some(resumed) = active.resumed.take() {
            return self.start_resumed(operation, active, *resumed, now);
        }
        if active.rounds.is_some() {
            return self.start_round(operation, active, now);
        }
        match &active.request {
            Request::CallTool(_) => self.start_call(operation, active, now),
            Request::ListTools
            | Request::ListResources
            | Request::ListResourceTemplates
            | Request::ListPrompts => self.start_list(operation, active, now),
            Request::ReadResource { uri } => {
                let params = Params::build(|object| {
                    object.string("uri", uri);
                    continuation(object, &active.options);
                });
                self.start_read(operation, active, params, now);
            }
            Request::GetPrompt { name, arguments } => {
                let params = Params::build(|object| {
                    object.string("name", name);
                    if let Some(arguments) = arguments {
                        object.raw("arguments", arguments.as_str());
                    }
                    continuation(object, &active.options);
                });
                self.request(operation, active, "prompts/get", params);
            }
            Request::Complete {
                reference,
                argument,
                value,
                context,
            } => {
                let params = completion_params(reference, argument, value, context.as_ref());
                self.request(operation, active, "completion/complete", params);
            }
            Request::Listen => self.start_listening(operation, active),
            // Another request by now: the one that is taken up.
            Request::Resume { .. } | Request::Settle => {
                self.end(operation, active, Outcome::Complete(Reply::Settled));
            }
        }
    }

    /// Whether the list of tools has to be read before this call, or its next round, can be judged by it: it is
    /// not known, or a tool may have come or gone with a change that was announced since it was asked for. A
    /// server that announces one with every list is not asked for ever.
    fn needs_manifest(&self, active: &Active) -> bool {
        let Request::CallTool(call) = &active.request else {
            return false;
        };
        let is_stale = self.manifest.is_stale() && active.refreshes < MANIFEST_REFRESHES_MAX;
        self.is_guarded(&call.tool) && (is_stale || !self.manifest.is_known())
    }

    /// Whether a tool is called only if it is listed (R20, R21).
    pub(super) fn is_guarded(&self, tool: &str) -> bool {
        self.config.validate_capabilities || self.pins.holds(tool)
    }

    /// The capability card first (R20), then the call.
    fn start_call(&mut self, operation: OperationId, mut active: Box<Active>, now: Instant) {
        let Request::CallTool(call) = &active.request else {
            return;
        };
        if let Some(cause) = self.missing_tool(&active) {
            let error = self.error(cause);
            return self.end(operation, active, Outcome::Failed(error));
        }
        let params = call_params(call, &active.options);
        let trace = match self.call_trace(&params, active.call_index.unwrap_or(0)) {
            Ok(trace) => trace,
            Err(error) => {
                let error = self.error(Cause::Usage(format!(
                    "the arguments cannot be sent: {error}"
                )));
                self.end(operation, active, Outcome::Failed(error));
                return;
            }
        };
        active.sent = Some(Sent {
            method: "tools/call",
            params,
            trace,
        });
        match active.options.stream {
            Some(streaming) => self.start_stream(operation, active, streaming, now),
            None => self.resend(operation, active),
        }
    }

    pub(super) fn request(
        &mut self,
        operation: OperationId,
        mut active: Box<Active>,
        method: &'static str,
        params: Params,
    ) {
        let trace = self.control_trace(method);
        active.sent = Some(Sent {
            method,
            params,
            trace,
        });
        self.resend(operation, active);
    }

    /// Sends what is in `sent`: a retry changes nothing but the id (R7).
    pub(super) fn resend(&mut self, operation: OperationId, mut active: Box<Active>) {
        let Some(sent) = active.sent.take() else {
            return;
        };
        let attempt = self.attempt_meta(&active);
        let asks = active.asks_progress();
        let token = asks.then(|| progress_token(operation, active.turn()));
        let extra = Extra {
            progress_token: token.as_ref().map(Token::as_progress),
            caller_meta: attempt.as_ref().or(active.meta.as_ref()),
            context: Some(&active.context),
        };
        // Each request counts from its own beginning.
        active.progress = None;
        let owner = Owner::Operation(operation);
        let request = self.send(owner, sent.method, Some(&sent.params), sent.trace, extra);
        active.sent = Some(sent);
        active.handed_over.get_or_insert(self.now);
        active.stage = Stage::Requested { request };
        self.operations.insert(operation, active);
    }

    fn start_read(
        &mut self,
        operation: OperationId,
        mut active: Box<Active>,
        params: Params,
        now: Instant,
    ) {
        // A retry with input is never answered from memory, and its answer is not kept (R70).
        if active.options.input_responses.is_none() && active.options.request_state.is_none() {
            active.ticket = self.cache.ticket("resources/read", params.as_str());
        }
        if let Some(kept) = active
            .ticket
            .as_ref()
            .and_then(|ticket| self.cached_read(ticket, now))
        {
            self.end(operation, active, Outcome::Complete(Reply::Read(kept)));
            return;
        }
        self.request(operation, active, "resources/read", params);
    }

    /// Ends an operation that is in the table, with an error.
    pub(super) fn end_with_error(&mut self, operation: OperationId, error: Error) {
        if let Some(active) = self.operations.remove(&operation) {
            self.end(operation, active, Outcome::Failed(error));
        }
    }

    /// The end of an operation that is out of the table.
    pub(super) fn end(
        &mut self,
        operation: OperationId,
        mut active: Box<Active>,
        mut outcome: Outcome,
    ) {
        if let Outcome::Failed(error) = &mut outcome {
            if active.may_have_run {
                error.ran = Ran::Maybe;
            }
            if let Some(stream) = &active.stream {
                error.text = Some(Box::new(StreamText(stream.machine.text().into())));
            }
            self.counters.errors = self.counters.errors.saturating_add(1);
        }
        if let Some(asked) = active.asked.take() {
            self.refuse_asked(&asked);
        }
        self.meter_end(&active, &outcome);
        self.close_span(operation, &outcome);
        if let Stage::Listening(listening) = &mut active.stage {
            let unread = core::mem::take(&mut listening.queue);
            self.unread.keep(operation, unread.into());
        }
        if operation == MANIFEST {
            self.on_manifest_read(outcome);
        } else {
            self.deliver_end(operation, &mut active, outcome);
        }
    }

    /// The peer's own reading of its manifest has ended: it is settled, one way or the other.
    fn on_manifest_read(&mut self, outcome: Outcome) {
        let failure = match outcome {
            Outcome::Failed(error) => Some(error),
            Outcome::Complete(_) | Outcome::InputRequired(_) => None,
        };
        let waiting: Vec<OperationId> = self
            .operations
            .iter()
            .filter(|(_, active)| matches!(active.stage, Stage::AwaitManifest))
            .map(|(operation, _)| *operation)
            .collect();
        match failure {
            Some(error) => {
                for operation in waiting {
                    self.go_on_without_list(operation, &error);
                }
                // A good manifest from before is kept (R20).
                self.phase = if self.manifest.is_known() {
                    Phase::Ready
                } else {
                    Phase::Failed(error)
                };
            }
            None => {
                self.phase = Phase::Ready;
                for operation in waiting.into_iter().rev() {
                    // From now on it waits for its turn, and for no list.
                    if let Some(active) = self.operations.get_mut(&operation) {
                        active.stage = Stage::Queued;
                    }
                    debug_assert!(!self.queue.contains(&operation), "{operation} waits");
                    self.queue.push_front(operation);
                }
            }
        }
        self.settle();
    }

    /// The list that a call waited for did not come. The last good one is still in force (R20); what it does
    /// not hold cannot be called.
    fn go_on_without_list(&mut self, operation: OperationId, error: &Error) {
        let manifest = &self.manifest;
        match self.operations.get_mut(&operation) {
            Some(active) if active.calls(|tool| manifest.contains(tool)) => {
                active.refreshes = MANIFEST_REFRESHES_MAX;
                active.stage = Stage::Queued;
                self.enqueue(operation);
            }
            _ => self.end_with_error(operation, error.clone().ran(Ran::No)),
        }
    }

    /// Ends an operation early: its request is taken back or cancelled.
    pub(super) fn abandon(&mut self, operation: OperationId, cause: Cause, reason: &str) {
        let Some(active) = self.operations.remove(&operation) else {
            return;
        };
        let unsent = match active.request_id() {
            Some(request) => self.withdraw(request, reason),
            None => true,
        };
        self.queue.retain(|queued| *queued != operation);
        let ran = if unsent { Ran::No } else { Ran::Maybe };
        let error = self.error(cause).ran(ran);
        self.end(operation, active, Outcome::Failed(error));
    }

    pub(super) fn expire_operations(&mut self, now: Instant) {
        let expired: Vec<_> = self
            .operations
            .iter()
            .filter_map(|(operation, active)| Some((*operation, active.expired(now)?)))
            .collect();
        for (operation, expired) in expired {
            let method = self
                .operations
                .get(&operation)
                .map_or("", |active| active.method());
            let cause = Cause::Timeout {
                awaited: awaited(method),
                setting: expired.setting,
                limit: expired.limit,
            };
            self.abandon(operation, cause, "timed out");
        }
    }

    /// Ends everything that is pending, because the link or the peer is gone.
    pub(super) fn end_all(&mut self, now: Instant, cause: impl Fn() -> Cause) {
        self.queue.clear();
        for (operation, active) in core::mem::take(&mut self.operations) {
            if active.streams_by_itself() && !matches!(self.phase, Phase::Closing) {
                self.operations.insert(operation, active);
                continue;
            }
            if active.stream.is_some() {
                let error = self.error(cause());
                self.lose_stream(operation, active, error, now);
                continue;
            }
            let unsent = match (active.request_id(), &mut self.link) {
                (Some(request), Some(link)) => link.outbox.withdraw(request),
                (Some(_), None) => false,
                (None, _) => true,
            };
            if operation == MANIFEST {
                self.close_attempt(operation, &cause());
                continue;
            }
            let ran = if unsent { Ran::No } else { Ran::Maybe };
            let error = self.error(cause()).ran(ran);
            self.end(operation, active, Outcome::Failed(error));
        }
    }
}

/// The members of a first call stand in canonical order, so that they need not be sorted for the content
/// hash.
fn call_params(call: &ToolCall, options: &Options) -> Params {
    Params::build(|object| {
        object.raw(
            "arguments",
            call.arguments.as_ref().map_or("{}", Json::as_str),
        );
        object.string("name", &call.tool);
        continuation(object, options);
    })
}

/// What a retry after an input request adds to the original parameters (R30).
fn continuation(object: &mut ObjectWriter<'_>, options: &Options) {
    if let Some(responses) = &options.input_responses {
        object.raw("inputResponses", responses.as_str());
    }
    if let Some(state) = &options.request_state {
        object.raw("requestState", state.as_str());
    }
}

fn completion_params(reference: &Json, name: &str, value: &str, context: Option<&Json>) -> Params {
    Params::build(|object| {
        object.raw("ref", reference.as_str());
        let mut argument = object.object("argument");
        argument.string("name", name).string("value", value);
        argument.end();
        if let Some(arguments) = context {
            let mut context = object.object("context");
            context.raw("arguments", arguments.as_str());
            context.end();
        }
    })
}
