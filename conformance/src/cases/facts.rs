//! What was seen of a case, in one shape whoever played it: that of `mcp-harness batch`.

use std::collections::BTreeMap;

use mcp_proto::error::Cause;
use mcp_proto::wire::Json;
use mcp_proto::{Diagnosis, Ended, Error, ErrorKind, Outcome, Reply};
use serde_json::{Map, Value, json};

/// Everything that was seen while a case was played.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Played {
    /// For each step its outcome line without `id` and `ms`, with what came before it as `progress`
    /// (values) and `events` (methods). `null`: it never ended.
    pub steps: Vec<Value>,
    /// The report before the client was closed, as in its JSON form. `null`: it could not be asked for.
    pub report: Value,
    /// What is known about each peer beyond that: `counters`, `noise`, `stderr`, `evidence`. Empty if the
    /// front does not show it.
    pub details: BTreeMap<String, Value>,
    /// What each peer's servers were sent in all their lives, line by line.
    pub sent: BTreeMap<String, Vec<String>>,
    /// What must not happen in any case: broken rules, failed assertions of the script, processes that are
    /// left, a close that does not return.
    pub complaints: Vec<String>,
}

/// An outcome as `batch` writes it.
pub(super) fn outcome(ended: &Ended, is_call: bool) -> Value {
    let mut line = Map::new();
    let word = match &ended.outcome {
        Outcome::Complete(_) => "complete",
        Outcome::InputRequired(_) => "input_required",
        Outcome::Failed(error) if error.kind() == ErrorKind::Cancelled => "cancelled",
        Outcome::Failed(_) => "error",
    };
    line.insert("outcome".into(), word.into());
    match &ended.outcome {
        Outcome::Complete(reply) => self::reply(&mut line, reply),
        Outcome::InputRequired(pending) => {
            line.insert(
                "inputRequests".into(),
                optional(pending.input.raw_requests.as_ref()),
            );
            let state = pending.input.state.as_ref().map(|state| state.as_json());
            line.insert("requestState".into(), optional(state));
        }
        Outcome::Failed(error) => drop(line.insert("error".into(), self::error(error, is_call))),
    }
    line.into()
}

/// The same of an operation that was not accepted.
pub(super) fn refused(error: &Error, is_call: bool) -> Value {
    let word = match error.kind() {
        ErrorKind::Cancelled => "cancelled",
        _ => "error",
    };
    json!({"outcome": word, "error": self::error(error, is_call)})
}

/// What is known about a peer beyond its report.
pub(super) fn details(diagnosis: &Diagnosis) -> Value {
    let counters = &diagnosis.counters;
    let evidence: Vec<String> = diagnosis.evidence.iter().map(ToString::to_string).collect();
    json!({
        "counters": {
            "droppedNotifications": counters.dropped_notifications,
            "droppedRequests": counters.dropped_requests,
            "errors": counters.errors,
            "lateAnswers": counters.late_answers,
            "noiseLines": counters.noise_lines,
            "operations": counters.operations,
            "starts": counters.starts,
            "unknownAnswers": counters.unknown_answers,
            "violations": counters.violations,
        },
        "evidence": evidence,
        "noise": diagnosis.noise,
        "stderr": diagnosis.stderr,
    })
}

fn reply(line: &mut Map<String, Value>, reply: &Reply) {
    let mut set = |name: &str, value: Value| drop(line.insert(name.into(), value));
    match reply {
        Reply::Tools(list) => set("tools", descriptors(list, "name")),
        Reply::Resources(list) => set("resources", descriptors(list, "uri")),
        Reply::ResourceTemplates(list) => {
            set("resourceTemplates", descriptors(list, "uriTemplate"))
        }
        Reply::Prompts(list) => set("prompts", descriptors(list, "name")),
        Reply::Call(result) => {
            set("isError", result.is_error.into());
            set(
                "content",
                array(result.content.iter().map(|block| block.raw())),
            );
            if let Some(structured) = &result.structured_content {
                set("structuredContent", value(structured));
            }
        }
        Reply::Read(result) => {
            set(
                "contents",
                array(result.contents.iter().map(|part| part.raw())),
            );
        }
        Reply::Prompt(result) => {
            set(
                "messages",
                array(result.messages.iter().map(|message| message.raw())),
            );
        }
        Reply::Listened { notifications } => set("notifications", (*notifications).into()),
        _ => {}
    }
}

fn error(error: &Error, is_call: bool) -> Value {
    let mut object = json!({
        "kind": error.kind().as_str(),
        "message": error.cause.to_string(),
        "remedy": error.remedy(),
    });
    if let Some(peer) = &error.peer {
        object["peer"] = peer.as_str().into();
    }
    match &error.cause {
        Cause::Rpc(rpc) => {
            object["code"] = rpc.code.into();
            if let Some(data) = &rpc.data {
                object["data"] = value(data);
            }
        }
        Cause::CapabilityMissing {
            manifest_digest, ..
        } => {
            object["manifestDigest"] = manifest_digest.as_str().into();
        }
        Cause::RetryRefused(cause) => object["cause"] = cause.error.kind().as_str().into(),
        _ => {}
    }
    if is_call {
        object["mayHaveExecuted"] = error.may_have_executed().into();
    }
    object
}

/// Descriptors under the names that the list gives them.
fn descriptors<T: mcp_proto::types::Entry>(list: &[mcp_proto::Listed<T>], key: &str) -> Value {
    let renamed = list.iter().map(|listed| {
        let mut descriptor = value(listed.item.raw());
        descriptor[key] = listed.name.as_str().into();
        descriptor
    });
    renamed.collect()
}

fn array<'a>(items: impl Iterator<Item = &'a Json>) -> Value {
    items.map(value).collect()
}

fn optional(json: Option<&Json>) -> Value {
    json.map_or(Value::Null, value)
}

/// An object, member by member as [`value`] has them.
#[cfg(target_os = "linux")]
pub(super) fn line(text: &str) -> Result<Value, mcp_proto::wire::InvalidJson> {
    let json = Json::parse(text)?;
    let members: mcp_proto::wire::Members<'_> = json.view()?;
    let members = members.iter();
    Ok(members
        .map(|(name, raw)| (name.to_string(), value(&Json::from(raw))))
        .collect::<Map<String, Value>>()
        .into())
}

/// JSON as a value; as its text where that holds what a value cannot (a number beyond all types).
pub(super) fn value(json: &Json) -> Value {
    json.decode().unwrap_or_else(|_| json.as_str().into())
}
