//! Requests that a server answers with questions (R30, R31).

use alloc::boxed::Box;
use alloc::string::{String, ToString};

use super::Peer;
use super::active::{Active, Resumed, Sent, Stage};
use crate::continuation::{
    Backoff, InputPolicy, InputRounds, InputStep, PeerPin, PendingRequest, ResumableMethod,
};
use crate::error::{Cause, Error, Ran};
use crate::identity::{CallerMeta, Params};
use crate::ids::{OperationId, Question};
use crate::operation::{News, Options, Outcome, PendingInput, Request};
use crate::safety::IdempotencyKey;
use crate::time::Instant;
use crate::types::{InputRequired, InputResponses};
use crate::violation::{Fault, Violation};
use crate::wire::Members;

impl Peer {
    /// The server needs input before it can answer. On a fault the operation is handed back to be ended
    /// with it.
    pub(super) fn on_input_required(
        &mut self,
        operation: OperationId,
        mut active: Box<Active>,
        members: &Members<'_>,
        now: Instant,
    ) -> Result<(), (Box<Active>, Fault)> {
        // It has begun, at least.
        active.may_have_run = true;
        let input = match self.read_input_required(&active, members) {
            Ok(input) => input,
            Err(fault) => return Err((active, fault)),
        };
        if active.rounds.is_none() {
            active.rounds = self.first_round(&active).map(Box::new);
        }
        let step = active
            .rounds
            .as_mut()
            .and_then(|rounds| rounds.required(input.clone(), now));
        self.take_step(operation, active, input, step, now)
    }

    fn read_input_required(
        &self,
        active: &Active,
        members: &Members<'_>,
    ) -> Result<InputRequired, Fault> {
        let dialect = self.session.as_ref().map(|session| &session.dialect);
        let may_ask = dialect.is_none_or(|dialect| dialect.input_required);
        if !(active.request.may_need_input() && may_ask) {
            let sent = active.sent.as_ref();
            let method = sent.map_or("this method", |sent| sent.method);
            let detail = alloc::format!("in answer to {method}");
            return Err(Fault::new(Violation::InputRequiredInvalid, detail));
        }
        InputRequired::read(members)
    }

    /// The rounds of a request that has just been asked about for the first time.
    fn first_round(&self, active: &Active) -> Option<InputRounds> {
        let sent = active.sent.as_ref()?;
        let method = ResumableMethod::parse(sent.method)?;
        let own = active.options.meta.as_ref();
        let key = active.options.idempotency_key.as_deref();
        let request = PendingRequest::new(self.pin()?, method, sent.params.clone())
            .with_meta(own.and_then(|own| CallerMeta::parse(own).ok()))
            .with_trace(sent.trace)
            .with_progress(active.options.progress)
            .with_key(key.and_then(|key| IdempotencyKey::given(key).ok()));
        Some(InputRounds::new(self.input_policy(), request))
    }

    /// This peer as it is now.
    fn pin(&self) -> Option<PeerPin> {
        let session = self.session.as_ref()?;
        Some(PeerPin::of(&self.config, session.dialect.version))
    }

    fn input_policy(&self) -> InputPolicy {
        InputPolicy {
            rounds_max: self.config.limits.input_rounds,
            capabilities: self.identity.accepts(),
            backoff: Backoff {
                entropy: self.trace_id.entropy(),
                ..Backoff::default()
            },
        }
    }

    /// Does what is to be done about questions.
    fn take_step(
        &mut self,
        operation: OperationId,
        mut active: Box<Active>,
        input: InputRequired,
        step: Option<InputStep>,
        now: Instant,
    ) -> Result<(), (Box<Active>, Fault)> {
        match step {
            Some(InputStep::Ask(_)) if active.options.interactive => {
                active.stage = Stage::AwaitInput { since: now };
                let question = active.next_question();
                self.operations.insert(operation, active);
                self.deliver(News::InputNeeded {
                    operation,
                    question,
                    input: Box::new(input),
                });
            }
            Some(InputStep::Ask(_)) => {
                let rounds = active.rounds.as_ref();
                match rounds.and_then(|rounds| rounds.continuation()) {
                    Some(continuation) => {
                        let pending = PendingInput {
                            input,
                            continuation,
                        };
                        self.end(operation, active, Outcome::InputRequired(pending));
                    }
                    None => return Err((active, unexpected())),
                }
            }
            Some(InputStep::RetryAfter(wait)) => {
                active.stage = Stage::AwaitRetry { until: now + wait };
                self.arm(now + wait);
                self.operations.insert(operation, active);
            }
            Some(InputStep::Limit { rounds_max }) => {
                let cause = Cause::Limit {
                    what: String::from("the number of times that the server asked for input"),
                    setting: "maxInputRounds",
                    max: rounds_max.into(),
                };
                let error = self.error(cause).ran(Ran::Maybe);
                self.end(operation, active, Outcome::Failed(error));
            }
            Some(InputStep::Refuse(fault)) => return Err((active, fault)),
            None => return Err((active, unexpected())),
        }
        Ok(())
    }

    /// Answers what the server asks about an interactive operation; see
    /// [`Client::answer`](crate::Client::answer).
    ///
    /// # Errors
    /// [`Cause::Usage`]: that is not asked (any longer), or the answers do not fit. The question stays open
    /// then.
    pub fn answer(
        &mut self,
        operation: OperationId,
        question: Question,
        responses: &InputResponses,
        now: Instant,
    ) -> Result<(), Error> {
        self.reach(now);
        if self.open_question(operation) != Some(question) {
            let message = "nothing is asked about this operation, or something else by now".into();
            return Err(self.error(Cause::Usage(message)));
        }
        if let Some(answered) = self.answer_asked(operation, responses, now) {
            return answered;
        }
        let Some(active) = self.operations.get_mut(&operation) else {
            return Ok(());
        };
        if let (&Stage::AwaitInput { since }, Some(rounds)) = (&active.stage, &mut active.rounds) {
            match rounds.answered(responses, now) {
                Ok(params) => active.go_on(params, since, now),
                Err(error) => {
                    // It names keys of the server's.
                    let words = self.redact(&error.to_string());
                    return Err(self.error(Cause::Usage(words)));
                }
            }
            self.enqueue(operation);
        }
        self.pump(now);
        self.flush();
        // Its clock runs again, and its deadline may be the first of many.
        self.rearm();
        Ok(())
    }

    /// What came of a question that somebody else was charged with; see
    /// [`Client::reply`](crate::Client::reply).
    pub fn reply(
        &mut self,
        operation: OperationId,
        question: Question,
        responses: Option<&InputResponses>,
        now: Instant,
    ) {
        if self.open_question(operation) != Some(question) {
            return;
        }
        let Some(responses) = responses else {
            return self.finish(operation, now);
        };
        if let Err(error) = self.answer(operation, question, responses, now) {
            self.abandon(operation, error.cause, "no usable answer to what was asked");
            self.pump(now);
            self.flush();
        }
    }

    /// What the application is asked about an operation just now.
    fn open_question(&self, operation: OperationId) -> Option<Question> {
        let active = self.operations.get(&operation)?;
        let asked = active.asked.is_some() || matches!(active.stage, Stage::AwaitInput { .. });
        asked.then_some(Question::new(active.questions))
    }

    /// The application will not answer: the operation ends with what is asked.
    pub(super) fn finish_asking(&mut self, operation: OperationId, now: Instant) {
        if let Some(active) = self.operations.get_mut(&operation)
            && let Some(asked) = active.asked.take()
        {
            active.stood_still(asked.since, now);
            self.refuse_asked(&asked);
            self.rearm();
        }
        let asked = self.operations.get(&operation).and_then(|active| {
            let rounds = active.rounds.as_ref()?;
            let continuation = rounds.continuation()?;
            matches!(active.stage, Stage::AwaitInput { .. }).then_some(continuation)
        });
        let Some(continuation) = asked else {
            return;
        };
        if let Some(active) = self.operations.remove(&operation) {
            let pending = PendingInput {
                input: continuation.input().clone(),
                continuation,
            };
            self.end(operation, active, Outcome::InputRequired(pending));
        }
    }

    /// Sends again what nothing was asked about, once it is due.
    pub(super) fn retry_silent_rounds(&mut self, now: Instant) {
        for (operation, active) in &mut self.operations {
            if let (&Stage::AwaitRetry { until }, Some(rounds)) =
                (&active.stage, &mut active.rounds)
                && until <= now
                && let Some(params) = rounds.time_passed(now)
            {
                active.go_on(params, now, now);
                self.queue.push_back(*operation);
            }
        }
    }

    /// The next round of a request, or the same one in another life of the server, which has to be the one
    /// that asked.
    pub(super) fn start_round(
        &mut self,
        operation: OperationId,
        mut active: Box<Active>,
        now: Instant,
    ) {
        // The list may be another one by now.
        if let Some(cause) = self.missing_tool(&active) {
            let error = self.error(cause);
            return self.end(operation, active, Outcome::Failed(error));
        }
        if let Some(stream) = &mut active.stream
            && stream.machine.is_due(now)
        {
            stream.machine.time_passed(now);
            return self.drive_stream(operation, active, now);
        }
        let pin = active.rounds.as_ref().map(|rounds| rounds.request().pin());
        match (pin, self.pin()) {
            (Some(then), Some(now)) if *then != now => {
                let message = alloc::format!(
                    "the server asked for input in revision {}, and now speaks another one",
                    then.version
                );
                let error = self.error(Cause::Unavailable { reason: message });
                self.end(operation, active, Outcome::Failed(error.ran(Ran::Maybe)));
            }
            _ => self.resend(operation, active),
        }
    }

    /// Why a call must not be sent: the tool is not in the list, or quarantined (R20, R21).
    pub(super) fn missing_tool(&self, active: &Active) -> Option<Cause> {
        match &active.request {
            Request::CallTool(call)
                if self.is_guarded(&call.tool) && !self.manifest.contains(&call.tool) =>
            {
                Some(self.no_such_tool(&call.tool))
            }
            _ => None,
        }
    }

    /// Takes up a request that was asked about earlier, perhaps in another process.
    pub(super) fn start_resumed(
        &mut self,
        operation: OperationId,
        mut active: Box<Active>,
        resumed: Resumed,
        now: Instant,
    ) {
        let Some(pin) = self.pin() else {
            return self.misused(operation, active, "there is no session to go on in".into());
        };
        if let Some(cause) = self.missing_tool(&active) {
            let error = self.error(cause);
            return self.end(operation, active, Outcome::Failed(error));
        }
        let request = resumed.continuation.request().clone();
        let input = resumed.continuation.input().clone();
        let begun = InputRounds::resume(self.input_policy(), resumed.continuation, &pin, now);
        let (mut rounds, step) = match begun {
            Ok(begun) => begun,
            Err(refused) => return self.misused(operation, active, refused.to_string()),
        };
        let params = match &step {
            InputStep::Ask(_) => match rounds.answered(&resumed.responses, now) {
                Ok(params) => params,
                Err(error) => return self.misused(operation, active, error.to_string()),
            },
            _ => request.base().clone(),
        };
        let method = request.method().as_str();
        active.sent = Some(Sent {
            method,
            params,
            trace: match request.trace() {
                Some(trace) => trace,
                None => self.control_trace(method),
            },
        });
        active.rounds = Some(Box::new(rounds));
        // In its earlier rounds.
        active.may_have_run = true;
        if matches!(step, InputStep::Ask(_)) {
            return self.resend(operation, active);
        }
        if let Err((active, fault)) = self.take_step(operation, active, input, Some(step), now) {
            let error = self.error(Cause::SchemaViolation(fault));
            self.end(operation, active, Outcome::Failed(error));
        }
    }

    /// Ends an operation of which nothing can be sent.
    fn misused(&mut self, operation: OperationId, active: Box<Active>, message: String) {
        let error = self.error(Cause::Usage(self.redact(&message)));
        self.end(operation, active, Outcome::Failed(error));
    }
}

impl Active {
    /// The number of the question that is asked next.
    pub(super) const fn next_question(&mut self) -> Question {
        self.questions = self.questions.wrapping_add(1);
        Question::new(self.questions)
    }

    pub(super) fn stood_still(&mut self, since: Instant, now: Instant) {
        if let Some(clock) = &mut self.clock {
            clock.stood_still(since, now);
        }
        if let Some(stream) = &mut self.stream {
            stream.machine.stood_still(since, now);
        }
        self.handed_over = self.handed_over.map(|at| at + now.since(since));
    }

    /// Waits for its turn to be sent with these parameters. The time since then was not the server's, and
    /// its deadlines stood still.
    fn go_on(&mut self, params: Params, since: Instant, now: Instant) {
        if let Some(sent) = &mut self.sent {
            sent.params = params;
        }
        self.stood_still(since, now);
        self.stage = Stage::Queued;
    }
}

/// What an operation that takes up a continuation asks for and brings along.
pub(super) fn unfold(
    request: Request,
    options: &mut Options,
) -> Result<(Request, Option<Resumed>), Cause> {
    let Request::Resume {
        continuation,
        responses,
    } = request
    else {
        return Ok((request, None));
    };
    let pending = continuation.request();
    let Some(request) = pending.request() else {
        let message = "the stored request has not the parameters of its method";
        return Err(Cause::Usage(message.into()));
    };
    options.meta = pending
        .meta()
        .and_then(|meta| crate::wire::Json::parse(&meta.to_text()).ok());
    options.idempotency_key = pending.key().map(ToString::to_string);
    options.progress |= pending.progress();
    let resumed = Resumed {
        continuation: *continuation,
        responses,
    };
    Ok((request, Some(resumed)))
}

/// Not reached: a request that was sent and is answered has rounds that await an answer.
fn unexpected() -> Fault {
    Fault::new(
        Violation::InputRequiredInvalid,
        String::from("it was not expected"),
    )
}
