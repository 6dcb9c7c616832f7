//! A request that takes several rounds (R30).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::backoff::Backoff;
use super::pending::{PeerPin, PendingRequest};
use super::stored::{Continuation, ResumeRefused};
use crate::identity::Params;
use crate::time::{Duration, Instant};
use crate::types::{
    Elicitation, InputCapabilities, InputMethod, InputRequest, InputRequired, InputResponses,
    RequestState, ResponseFault,
};
use crate::violation::{Fault, Violation};

/// How far a server may go with asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputPolicy {
    /// How many answers may be `input_required`: `maxInputRounds`. Default 10.
    pub rounds_max: u32,
    /// What was declared; default nothing.
    pub capabilities: InputCapabilities,
    /// The waits before a request is sent again for which nothing was asked.
    pub backoff: Backoff,
}

impl Default for InputPolicy {
    fn default() -> Self {
        Self {
            rounds_max: crate::Limits::default().input_rounds,
            capabilities: InputCapabilities::default(),
            backoff: Backoff::default(),
        }
    }
}

/// What is to be done about an `input_required` answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputStep {
    /// Ask the application, and hand what it says to [`InputRounds::answered`].
    Ask(Vec<InputRequest>),
    /// Nothing is asked: send the request again after this time, when [`InputRounds::time_passed`] says
    /// so.
    RetryAfter(Duration),
    /// The server asks what it must not. It is over.
    Refuse(Fault),
    /// More rounds than allowed. It is over.
    Limit {
        /// The bound.
        rounds_max: u32,
    },
}

/// What the application said cannot be sent. Nothing changed, and it may be said again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// A question has no answer.
    #[error("there is no answer to {key:?}")]
    Missing {
        /// Its key.
        key: String,
    },
    /// Nothing is asked at the moment.
    #[error("nothing is asked")]
    NotAsking,
    /// An answer has no question.
    #[error("{key:?} was not asked")]
    Unasked {
        /// Its key.
        key: String,
    },
    /// An answer does not fit its question.
    #[error("the answer to {key:?} does not fit: {fault}")]
    Unfit {
        /// Its key.
        key: String,
        /// What does not fit.
        fault: ResponseFault,
    },
}

#[derive(Clone, Debug)]
enum State {
    /// The request is on its way.
    Requested,
    /// The application thinks.
    Asking {
        since: Instant,
        input: InputRequired,
    },
    /// Nothing was asked; the request is due then.
    Waiting {
        until: Instant,
        state: RequestState,
    },
    Ended,
}

/// The rounds of one call, read or prompt: what the server asks, what the application says, and what is
/// sent then. It holds the request itself, so that neither state nor answers can go with another one.
///
/// ```
/// use mcp_proto::continuation::{
///     InputPolicy, InputRounds, InputStep, PeerPin, PendingRequest, ResumableMethod,
/// };
/// use mcp_proto::identity::{Params, Sha256Hex};
/// use mcp_proto::types::{InputCapabilities, InputRequired, InputResponse, InputResponses};
/// use mcp_proto::wire::{Json, Members};
/// use mcp_proto::{Instant, Version};
///
/// let pin = PeerPin { peer: "git".into(), version: Version::LATEST, endpoint: Sha256Hex::of(b"") };
/// let (params, _) = Params::parse(&Json::parse(r#"{"name":"push"}"#)?)?;
/// let request = PendingRequest::new(pin, ResumableMethod::CallTool, params);
/// let mut policy = InputPolicy::default();
/// policy.capabilities = InputCapabilities::read(&Json::parse(r#"{"elicitation":{}}"#)?);
/// let mut rounds = InputRounds::new(policy, request);
///
/// let answer = r#"{"requestState":"s","inputRequests":{"ok":{"method":"elicitation/create",
///     "params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}}}}"#;
/// let input = InputRequired::read(&Members::parse(answer)?).unwrap();
/// assert!(matches!(rounds.required(input, Instant::ZERO), Some(InputStep::Ask(_))));
///
/// let responses = InputResponses::new().with("ok", InputResponse::decline());
/// assert_eq!(
///     rounds.answered(&responses, Instant::ZERO)?.as_str(),
///     r#"{"name":"push","inputResponses":{"ok":{"action":"decline"}},"requestState":"s"}"#,
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct InputRounds {
    policy: InputPolicy,
    request: PendingRequest,
    state: State,
    /// How many answers were `input_required`.
    rounds: u32,
    /// How many of them in a row asked nothing.
    silent_rounds: u32,
    /// How long the application thought, up to the last question that it answered.
    thought: Duration,
    now: Instant,
}

impl InputRounds {
    /// The rounds of a request that is being sent.
    #[must_use]
    pub const fn new(policy: InputPolicy, request: PendingRequest) -> Self {
        Self {
            policy,
            request,
            state: State::Requested,
            rounds: 0,
            silent_rounds: 0,
            thought: Duration::ZERO,
            now: Instant::ZERO,
        }
    }

    /// Takes up a stored request where it stood, with a fresh client whose peer is now this one (R31).
    ///
    /// # Errors
    /// [`ResumeRefused`] when that is not the peer that asked.
    pub fn resume(
        policy: InputPolicy,
        continuation: Continuation,
        pin: &PeerPin,
        now: Instant,
    ) -> Result<(Self, InputStep), ResumeRefused> {
        continuation.check(pin)?;
        let (request, rounds, input) = continuation.into_parts();
        let mut resumed = Self::new(policy, request);
        resumed.now = now;
        resumed.rounds = rounds;
        let step = resumed.judge(input);
        Ok((resumed, step))
    }

    /// The server answered `input_required`. `None` when no answer is awaited: nothing changes then.
    ///
    /// A `now` before an earlier one counts as that one, here and below.
    pub fn required(&mut self, input: InputRequired, now: Instant) -> Option<InputStep> {
        self.advance(now);
        if !matches!(self.state, State::Requested) {
            return None;
        }
        self.rounds = self.rounds.saturating_add(1);
        Some(self.judge(input))
    }

    /// The application answered. The parameters of the request to send now: the original ones with the
    /// answers and the state of this round, and of no other.
    ///
    /// # Errors
    /// [`InputError`] when nothing is asked, or the answers are not those to what is asked. The question
    /// stays open then.
    pub fn answered(
        &mut self,
        responses: &InputResponses,
        now: Instant,
    ) -> Result<Params, InputError> {
        self.advance(now);
        let State::Asking { since, input } = &self.state else {
            return Err(InputError::NotAsking);
        };
        InputError::check(&input.requests, responses)?;
        self.thought += self.now.since(*since);
        let params = self.request.base().clone();
        let params = params.with("inputResponses", &responses.to_json());
        let params = with_state(params, input.state.as_ref());
        self.silent_rounds = 0;
        self.state = State::Requested;
        Ok(params)
    }

    /// Time passed. The parameters of the request to send now, if it is due. A call before
    /// [`poll_timeout`](Self::poll_timeout) changes nothing.
    pub fn time_passed(&mut self, now: Instant) -> Option<Params> {
        self.advance(now);
        match &self.state {
            State::Waiting { until, state } if *until <= self.now => {
                let params = with_state(self.request.base().clone(), Some(state));
                self.state = State::Requested;
                Some(params)
            }
            _ => None,
        }
    }

    /// It is over: the final answer came, it failed, or nobody wants it any longer. `false` when it was
    /// over already.
    pub fn end(&mut self, now: Instant) -> bool {
        self.advance(now);
        self.stop_thinking();
        !matches!(
            core::mem::replace(&mut self.state, State::Ended),
            State::Ended
        )
    }

    /// When [`time_passed`](Self::time_passed) is due. `None` unless the request waits to be sent again.
    #[must_use]
    pub const fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Waiting { until, .. } => Some(until),
            State::Requested | State::Asking { .. } | State::Ended => None,
        }
    }

    /// What is asked at the moment; empty when nothing is.
    #[must_use]
    pub fn asked(&self) -> &[InputRequest] {
        match &self.state {
            State::Asking { input, .. } => &input.requests,
            State::Requested | State::Waiting { .. } | State::Ended => &[],
        }
    }

    /// How long the application has thought about it by now. The deadlines of the request stand still
    /// meanwhile: add this to them.
    #[must_use]
    pub fn thinking_time(&self, now: Instant) -> Duration {
        match self.state {
            State::Asking { since, .. } => self.thought + now.max(self.now).since(since),
            State::Requested | State::Waiting { .. } | State::Ended => self.thought,
        }
    }

    /// The request.
    #[must_use]
    pub const fn request(&self) -> &PendingRequest {
        &self.request
    }

    /// How many answers were `input_required`.
    #[must_use]
    pub const fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Whether it is over.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// Everything that is needed to go on elsewhere (R31). `None` while the server works on the request,
    /// and when it is over.
    #[must_use]
    pub fn continuation(&self) -> Option<Continuation> {
        let input = match &self.state {
            State::Asking { input, .. } => input.clone(),
            State::Waiting { state, .. } => InputRequired::of_state(state.clone()),
            State::Requested | State::Ended => return None,
        };
        Some(Continuation::new(self.request.clone(), self.rounds, input))
    }

    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    fn stop_thinking(&mut self) {
        self.thought = self.thinking_time(self.now);
    }

    /// Takes in what the server asks, now or before it was stored.
    fn judge(&mut self, input: InputRequired) -> InputStep {
        if self.rounds > self.policy.rounds_max {
            self.state = State::Ended;
            return InputStep::Limit {
                rounds_max: self.policy.rounds_max,
            };
        }
        if let Err(fault) = self.check(&input) {
            self.state = State::Ended;
            return InputStep::Refuse(fault);
        }
        match input.state {
            Some(state) if input.requests.is_empty() => {
                self.silent_rounds = self.silent_rounds.saturating_add(1);
                let purpose = self.request.purpose();
                let wait = self.policy.backoff.wait(&purpose, self.silent_rounds);
                let until = self.now + wait;
                self.state = State::Waiting { until, state };
                InputStep::RetryAfter(wait)
            }
            _ => {
                let requests = input.requests.clone();
                let since = self.now;
                self.state = State::Asking { since, input };
                InputStep::Ask(requests)
            }
        }
    }

    fn check(&self, input: &InputRequired) -> Result<(), Fault> {
        if input.requests.is_empty() && input.state.is_none() {
            let detail = "there is neither an input request nor a requestState".to_string();
            return Err(Fault::new(Violation::InputRequiredInvalid, detail));
        }
        for request in &input.requests {
            self.policy.capabilities.check(request)?;
            if request.method == InputMethod::Elicitation {
                Elicitation::read(request)?;
            }
        }
        Ok(())
    }
}

impl InputError {
    /// Whether these are the answers to what is asked.
    ///
    /// spec: 2026-07-28 basic/patterns/mrtr#client-requirements-basic-workflow
    pub(crate) fn check(requests: &[InputRequest], responses: &InputResponses) -> Result<(), Self> {
        for request in requests {
            let key = || request.key.clone();
            let response = responses.get(&request.key);
            let response = response.ok_or_else(|| Self::Missing { key: key() })?;
            response
                .check(request)
                .map_err(|fault| Self::Unfit { key: key(), fault })?;
        }
        let mut keys = responses.keys();
        match keys.find(|key| !requests.iter().any(|request| request.key == *key)) {
            Some(key) => Err(Self::Unasked {
                key: key.to_string(),
            }),
            None => Ok(()),
        }
    }
}

/// The state goes back exactly as it came, and only where there is one.
fn with_state(params: Params, state: Option<&RequestState>) -> Params {
    match state {
        Some(state) => params.with("requestState", state.as_json()),
        None => params,
    }
}

#[cfg(test)]
pub(super) mod tests;
