//! Outcomes as the types that the application asked for.

use alloc::vec::Vec;

use crate::continuation::StreamResult;
use crate::error::{Cause, Error};
use crate::operation::{Ended, Listed, Outcome, PendingInput, Reply};
use crate::types::{
    CallToolResult, CompleteResult, GetPromptResult, Prompt, ReadResourceResult, Resource,
    ResourceTemplate, Tool,
};

/// What came of a call, or of another request that may need input first (R30).
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)] // it is matched where it is returned, not kept
pub enum CallOutcome<T = CallToolResult> {
    /// The answer. A tool that says `isError` has answered too.
    Complete(T),
    /// The server needs input first; not an error. Ask for it, and [`resume`](crate::Operation::resume) the
    /// continuation with the answers, here or anywhere else.
    InputRequired(PendingInput),
}

/// What one kind of operation is answered with: a list, a result, the count of a listening (`u64`),
/// `()` for [`Settle`](crate::Request::Settle). With [`CallOutcome`] around it a request for input is an
/// answer too; without, it is an error.
///
/// ```
/// use mcp_proto::{Answer, Ended, Operation, OperationId, Outcome, Reply};
///
/// let ended = Ended {
///     operation: OperationId::new(1),
///     peer: None,
///     tool: None,
///     outcome: Outcome::Complete(Reply::Listened { notifications: 3 }),
/// };
/// assert_eq!(u64::from_ended(ended), Ok(3));
/// ```
pub trait Answer: Sized + sealed::FromOutcome {
    /// The answer that an operation ended with.
    ///
    /// # Errors
    /// The operation failed. [`Cause::Usage`] when it was of a kind that is answered with another type,
    /// or when the server needs input and this type cannot say so.
    fn from_ended(ended: Ended) -> Result<Self, Error> {
        Self::from_outcome(ended.outcome)
    }
}

impl<T: sealed::FromOutcome> Answer for T {}

mod sealed {
    use super::{Error, Outcome};

    pub trait FromOutcome: Sized {
        fn from_outcome(outcome: Outcome) -> Result<Self, Error>;
    }
}

impl<T: sealed::FromOutcome> sealed::FromOutcome for CallOutcome<T> {
    fn from_outcome(outcome: Outcome) -> Result<Self, Error> {
        match outcome {
            Outcome::InputRequired(input) => Ok(Self::InputRequired(input)),
            outcome => T::from_outcome(outcome).map(Self::Complete),
        }
    }
}

macro_rules! answers {
    ($($type:ty = $reply:pat => $answer:expr;)*) => {
        $(impl sealed::FromOutcome for $type {
            fn from_outcome(outcome: Outcome) -> Result<Self, Error> {
                match outcome {
                    Outcome::Complete($reply) => Ok($answer),
                    outcome => Err(unanswered(outcome)),
                }
            }
        })*
    };
}

answers! {
    Vec<Listed<Tool>> = Reply::Tools(tools) => tools;
    Vec<Listed<Resource>> = Reply::Resources(resources) => resources;
    Vec<Listed<ResourceTemplate>> = Reply::ResourceTemplates(templates) => templates;
    Vec<Listed<Prompt>> = Reply::Prompts(prompts) => prompts;
    CallToolResult = Reply::Call(result) => result;
    StreamResult = Reply::Stream(result) => result;
    ReadResourceResult = Reply::Read(result) => result;
    GetPromptResult = Reply::Prompt(result) => result;
    CompleteResult = Reply::Completion(result) => result;
    u64 = Reply::Listened { notifications } => notifications;
    () = Reply::Settled => ();
}

/// Why there is no answer of the type that was asked for.
fn unanswered(outcome: Outcome) -> Error {
    Error::general(Cause::Usage(
        match outcome {
            Outcome::Failed(error) => return error,
            Outcome::InputRequired(_) => "the server needs input before it can answer",
            Outcome::Complete(_) => "the answer is of another kind than the operation",
        }
        .into(),
    ))
}
