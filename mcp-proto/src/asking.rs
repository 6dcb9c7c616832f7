//! What applications are asked: for input that a server needs (R30), and whether a request may be sent again (R34).
//!
//! Each question has a number, and is answered by it ([`Client::answer`](crate::Client::answer),
//! [`Client::reply`](crate::Client::reply), [`Client::decide`](crate::Client::decide)).

use alloc::string::String;

use crate::error::Error;
use crate::ids::{OperationId, Question};
use crate::safety::{Failure, IdempotencyKey};
use crate::types::{InputRequired, InputResponses};

/// A server needs input about an operation with [`Options::interactive`](crate::Options::interactive) (R30). Answer
/// with [`Client::answer`](crate::Client::answer) or [`Client::reply`](crate::Client::reply); the deadlines of
/// the operation stand still.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct InputQuestion {
    /// Which question; an answer to an earlier one is refused.
    pub question: Question,
    /// What the server asks.
    pub input: InputRequired,
}

/// A request failed, may have been executed, and only the application can know whether it may be sent again
/// (R34). Answer with [`Client::decide`](crate::Client::decide); the deadlines of the operation run on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryQuestion {
    /// Which operation.
    pub operation: OperationId,
    /// Which question; an answer to an earlier one changes nothing.
    pub question: Question,
    /// How the request failed.
    pub failure: Failure,
    /// The same in full.
    pub error: Error,
    /// The idempotency key of the call, if it has one.
    pub key: Option<IdempotencyKey>,
    /// The text of a stream so far.
    pub partial_text: Option<String>,
}

/// What the application's handlers say to [`InputNeeded`](crate::streaming::OperationEvent::InputNeeded) and
/// [`RetryQuestion`](crate::streaming::OperationEvent::RetryQuestion): [`Client::said`](crate::Client::said).
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// The answers; `None` is no answer.
    Input(Question, Option<InputResponses>),
    /// Whether that request may be sent again.
    Retry(Question, bool),
}

/// Which questions an application has handlers for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handlers {
    /// What servers ask for (R30).
    pub input: bool,
    /// Whether a request may be sent again (R34).
    pub retry: bool,
}
