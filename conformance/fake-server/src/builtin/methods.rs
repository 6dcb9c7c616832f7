//! The methods both eras share: lists, reading, prompts, completion.

use serde_json::{Value, json};

use super::{Builtin, Call, Reply, Revision, fixtures};
use crate::Sink;
use crate::message::RpcError;

impl Builtin {
    pub(super) fn serve(&mut self, method: &str, call: &Call<'_>, sink: &mut Sink) -> Reply {
        let revision = call.revision;
        match method {
            "tools/call" => self.call_tool(call, sink),
            "tools/list" => self.list("tools", self.tools(revision), call),
            "resources/list" => self.list("resources", fixtures::resources(revision), call),
            "resources/templates/list" => self.list(
                "resourceTemplates",
                fixtures::resource_templates(revision),
                call,
            ),
            "resources/read" => read_resource(call),
            "prompts/list" => self.list("prompts", fixtures::prompts(revision), call),
            "prompts/get" => prompt(call.params),
            "completion/complete" => complete(call.params),
            _ => Reply::Error(RpcError::method_not_found(method)),
        }
    }

    /// One page of a list. Cursors are opaque to clients; they hold characters that need care.
    fn list(&self, key: &str, entries: Vec<Value>, call: &Call<'_>) -> Reply {
        let cursor = |at: usize| format!("{key}?after=\"{at}\"&\u{e9}");
        let start = match call.params.get("cursor") {
            None => Some(0),
            Some(given) => {
                (1..entries.len()).find(|at| given.as_str() == Some(cursor(*at).as_str()))
            }
        };
        let Some(start) = start else {
            return Reply::Error(RpcError::invalid_params("unknown cursor"));
        };
        let size = self.options.page_size.unwrap_or(usize::MAX);
        let end = start.saturating_add(size);
        let more = end < entries.len();
        let page: Vec<Value> = entries.into_iter().skip(start).take(size).collect();
        let mut result = json!({key: page});
        if let (true, Value::Object(members)) = (more, &mut result) {
            members.insert("nextCursor".into(), cursor(end).into());
        }
        Reply::Cacheable(result)
    }
}

fn read_resource(call: &Call<'_>) -> Reply {
    let Some(uri) = call.params.get("uri").and_then(Value::as_str) else {
        return Reply::Error(RpcError::invalid_params("`uri` must be a string"));
    };
    if let Some(contents) = fixtures::resource_contents(uri) {
        return Reply::Cacheable(json!({"contents": [contents]}));
    }
    // The modern revision retired the code of its own (server/resources, error handling).
    let code = match call.revision {
        Revision::Modern => -32602,
        Revision::Legacy(_) => -32002,
    };
    Reply::Error(RpcError::new(code, "Resource not found").with_data(json!({"uri": uri})))
}

fn prompt(params: &Value) -> Reply {
    let argument = |name: &str| {
        params
            .get("arguments")
            .and_then(|arguments| arguments.get(name))
            .and_then(Value::as_str)
    };
    let text = match params.get("name").and_then(Value::as_str) {
        Some("greeting") => "Greet the user.".to_owned(),
        Some("review") => match argument("code") {
            Some(code) => format!(
                "Review this code in a {} way:\n{code}",
                argument("style").unwrap_or("friendly")
            ),
            None => {
                return Reply::Error(RpcError::invalid_params("the argument `code` is missing"));
            }
        },
        Some(other) => {
            return Reply::Error(RpcError::invalid_params(format!("Unknown prompt: {other}")));
        }
        None => return Reply::Error(RpcError::invalid_params("`name` must be a string")),
    };
    Reply::Result(json!({
        "description": "A prompt of the fake server",
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
    }))
}

fn complete(params: &Value) -> Reply {
    let text = |pointer: &str| params.pointer(pointer).and_then(Value::as_str);
    let reference = text("/ref/name").or_else(|| text("/ref/uri"));
    let (Some(kind), Some(reference), Some(argument), Some(typed)) = (
        text("/ref/type"),
        reference,
        text("/argument/name"),
        text("/argument/value"),
    ) else {
        return Reply::Error(RpcError::invalid_params(
            "`ref` and `argument` must be complete",
        ));
    };
    let values: &[&str] = match (kind, reference, argument) {
        ("ref/prompt", "review", "style") => &["friendly", "strict", "terse"],
        ("ref/resource", fixtures::TEMPLATE, "id") => &["1", "10", "2"],
        ("ref/prompt", "greeting" | "review", _) | ("ref/resource", fixtures::TEMPLATE, _) => &[],
        _ => return Reply::Error(RpcError::invalid_params("unknown reference")),
    };
    let values: Vec<&str> = values
        .iter()
        .copied()
        .filter(|value| value.starts_with(typed))
        .collect();
    let total = values.len();
    Reply::Result(json!({"completion": {"values": values, "total": total, "hasMore": false}}))
}
