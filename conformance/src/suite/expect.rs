//! What a scenario expects of an end.

use mcp_proto::types::CallToolResult;
use mcp_proto::wire::Json;
use mcp_proto::{Ended, Error, ErrorKind, Outcome, Reply};
use serde_json::Value;

/// The answer.
#[track_caller]
pub(super) fn complete(ended: Ended) -> Reply {
    match ended.outcome {
        Outcome::Complete(reply) => reply,
        outcome => panic!("expected an answer, got {outcome:?}"),
    }
}

/// The result of a tool call.
#[track_caller]
pub(super) fn called(ended: Ended) -> CallToolResult {
    match complete(ended) {
        Reply::Call(result) => result,
        reply => panic!("expected the result of a call, got {reply:?}"),
    }
}

/// The error.
#[track_caller]
pub(super) fn failed(ended: Ended) -> Error {
    match ended.outcome {
        Outcome::Failed(error) => error,
        outcome => panic!("expected an error, got {}", brief(&outcome)),
    }
}

/// An error of this kind that says whether the request may have been executed.
#[track_caller]
pub(super) fn failed_with(ended: Ended, kind: ErrorKind, may_have_executed: bool) -> Error {
    let error = failed(ended);
    let found = (error.kind(), error.may_have_executed());
    assert_eq!(found, (kind, may_have_executed), "{error}");
    error
}

/// JSON as a value, to be compared without regard to the order of members.
pub(super) fn value(json: &Json) -> Value {
    json.decode().unwrap_or(Value::Null)
}

fn brief(outcome: &Outcome) -> String {
    format!("{outcome:?}").chars().take(300).collect()
}
