//! Servers of older revisions ask in the middle of a request, by one of their own.

use alloc::boxed::Box;
use alloc::string::ToString;

use serde_json::value::RawValue;

use super::Peer;
use super::active::{Asked, Stage};
use crate::continuation::InputError;
use crate::error::{Cause, Error};
use crate::identity::Params;
use crate::ids::{OperationId, Question};
use crate::legacy::{self, Deferred};
use crate::operation::News;
use crate::time::Instant;
use crate::types::{self, InputRequired, InputResponses};
use crate::violation::Fault;
use crate::wire::IdToken;

/// The key of the only question that an older server has at a time.
const ASKED_KEY: &str = "request";

impl Peer {
    /// Puts a request of the server before the application: as a question about the oldest interactive
    /// operation under way that is not asked about already. Without one there is nobody to ask.
    pub(super) fn defer(
        &mut self,
        id: IdToken<'_>,
        deferred: Deferred,
        method: &str,
        params: Option<&RawValue>,
        now: Instant,
    ) {
        let input = match question(method, params) {
            Ok(input) => input,
            Err(fault) => {
                self.note(alloc::format!("asks for input in a wrong way: {fault}"));
                return self.respond(id, Err((-32602, "Invalid params")));
            }
        };
        let open = self.operations.iter_mut().find(|(_, active)| {
            active.options.interactive
                && active.request.may_need_input()
                && active.asked.is_none()
                && matches!(active.stage, Stage::Requested { .. })
        });
        let (Some((operation, active)), Some(request)) = (open, input.requests.first()) else {
            return self.respond(id, legacy::unanswered(deferred));
        };
        let operation = *operation;
        if active.questions >= self.config.limits.input_rounds {
            let limit = self.too_often_asked();
            self.respond(id, legacy::unanswered(deferred));
            return self.abandon(operation, limit, "asked for input too often");
        }
        active.asked = Some(Box::new(Asked {
            id: id.as_str().into(),
            deferred,
            request: request.clone(),
            since: now,
        }));
        let question = active.next_question();
        self.deliver(News::InputNeeded {
            operation,
            question,
            input: Box::new(input),
        });
    }

    /// Answers what an older server asks about an operation; `None` when it does not.
    pub(super) fn answer_asked(
        &mut self,
        operation: OperationId,
        responses: &InputResponses,
        now: Instant,
    ) -> Option<Result<(), Error>> {
        let asked = self.operations.get(&operation)?.asked.as_ref()?;
        let judged = InputError::check(core::slice::from_ref(&asked.request), responses);
        let (Ok(()), Some(response)) = (&judged, responses.get(&asked.request.key)) else {
            let words = judged.err().map(|error| self.redact(&error.to_string()));
            return Some(Err(self.error(Cause::Usage(words.unwrap_or_default()))));
        };
        if !self.may_respond() {
            return Some(Err(self.error(Cause::Limit {
                what: "the number of bytes that the server has not taken".into(),
                setting: "maxLineBytes",
                max: self.config.limits.line_bytes as u64,
            })));
        }
        let active = self.operations.get_mut(&operation)?;
        let asked = active.asked.take()?;
        active.stood_still(asked.since, now);
        if let Some(id) = IdToken::parse(&asked.id) {
            self.respond(id, Ok(response.as_json().as_str()));
        }
        Some(Ok(()))
    }

    /// The server takes its question back: nobody answers it any more, and time counts again (R60).
    pub(super) fn on_question_withdrawn(
        &mut self,
        params: Option<&RawValue>,
        now: Instant,
    ) -> bool {
        let Some(id) = params.and_then(types::cancelled_request) else {
            return false;
        };
        let mut open = self.operations.iter();
        let operation = open.find_map(|(operation, active)| {
            let asked = active.asked.as_ref()?;
            (asked.id == id.as_str()).then_some(*operation)
        });
        if let Some(operation) = operation {
            self.void_question(operation, now);
            self.rearm();
        }
        operation.is_some()
    }

    /// Nobody waits for the answer to what an older server asked any more.
    pub(super) fn void_question(&mut self, operation: OperationId, now: Instant) {
        if let Some(active) = self.operations.get_mut(&operation)
            && let Some(asked) = active.asked.take()
        {
            active.stood_still(asked.since, now);
            let question = Question::new(active.questions);
            self.deliver(News::InputWithdrawn {
                operation,
                question,
            });
        }
    }

    /// Nobody answers what an older server asks.
    pub(super) fn refuse_asked(&mut self, asked: &Asked) {
        if let Some(id) = IdToken::parse(&asked.id) {
            self.respond(id, legacy::unanswered(asked.deferred));
        }
    }
}

/// One request of an older server in the form of today's input requests.
fn question(method: &str, params: Option<&RawValue>) -> Result<InputRequired, Fault> {
    let requests = Params::build(|object| {
        let mut request = object.object(ASKED_KEY);
        request.string("method", method);
        request.raw("params", params.map_or("{}", RawValue::get));
        request.end();
    });
    let requests = crate::wire::Json::parse(requests.as_str()).ok();
    InputRequired::restore(requests.as_ref(), None)
}
