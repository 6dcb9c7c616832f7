//! What the client is told to do: operations as the lines of `mcp-harness batch` have them.

use mcp_proto::wire::Json;
use mcp_proto::{Duration, Operation, Options, Request, ToolCall};
use serde_json::{Map, Value};

use super::case::{PEER, known, object};

/// Every member of a step.
const MEMBERS: [&str; 16] = [
    "arguments",
    "background",
    "cancelAfterMs",
    "expect",
    "idempotencyKey",
    "input",
    "ms",
    "name",
    "op",
    "peer",
    "progress",
    "requestState",
    "timeoutMs",
    "tool",
    "uri",
    "repeat",
];

/// One step.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) task: Task,
    /// The line of `batch`, without its id.
    pub(super) line: Map<String, Value>,
    /// What must be true of its outcome.
    pub(super) expect: Map<String, Value>,
}

#[derive(Clone, Debug)]
pub(super) enum Task {
    Close,
    /// Waits until every peer has settled.
    Report,
    Sleep(Duration),
    Operation(Box<Doing>),
}

/// An operation, and what becomes of it on the way.
#[derive(Clone, Debug)]
pub(super) struct Doing {
    pub(super) operation: Operation,
    pub(super) background: bool,
    pub(super) cancel_after: Option<Duration>,
    /// How long it listens; only for [`Request::Listen`].
    pub(super) listen_for: Option<Duration>,
}

impl Doing {
    pub(super) const fn is_call(&self) -> bool {
        matches!(self.operation.request, Request::CallTool(_))
    }
}

impl Step {
    pub(super) fn parse(step: &Value) -> Result<Self, String> {
        let mut line = object(step, "the step")?.clone();
        known(&line, &MEMBERS, "the step")?;
        let expect = match line.remove("expect") {
            None => Map::new(),
            Some(expect) => object(&expect, "expect")?.clone(),
        };
        let op = line.get("op").and_then(Value::as_str).map(str::to_owned);
        let op = op.ok_or("op: expected a text")?;
        if !["close", "report", "sleep"].contains(&op.as_str()) {
            match line.get("peer") {
                None => drop(line.insert("peer".into(), PEER.into())),
                // Canonical names, and all peers.
                Some(Value::Null) => drop(line.remove("peer")),
                Some(_) => {}
            }
        }
        if let Some(repeat) = line.remove("repeat") {
            fill(&mut line, &repeat)?;
        }
        Ok(Self {
            task: task(&op, &line)?,
            line,
            expect,
        })
    }
}

/// `repeat: {"text": "x", "count": n}` makes `arguments.text` of that length.
fn fill(line: &mut Map<String, Value>, repeat: &Value) -> Result<(), String> {
    let (text, count) = (repeat["text"].as_str(), repeat["count"].as_u64());
    let (Some(text), Some(count)) = (text, count) else {
        return Err("repeat: expected a `text` and a `count`".into());
    };
    let count = usize::try_from(count).map_err(|error| error.to_string())?;
    let arguments = line
        .entry("arguments")
        .or_insert_with(|| Value::Object(Map::new()));
    arguments["text"] = text.repeat(count).into();
    Ok(())
}

fn task(op: &str, line: &Map<String, Value>) -> Result<Task, String> {
    let text = |name: &str| {
        let text = line.get(name).and_then(Value::as_str).map(str::to_owned);
        text.ok_or_else(|| format!("{name}: expected a text"))
    };
    let json = |name: &str| line.get(name).cloned().map(Json::from);
    let millis = |name: &str| match line.get(name) {
        None => Ok(None),
        Some(value) => match value.as_u64() {
            Some(millis) => Ok(Some(Duration::from_millis(millis))),
            None => Err(format!("{name}: expected a number of milliseconds")),
        },
    };
    let flag = |name: &str| line.get(name).and_then(Value::as_bool).unwrap_or(false);
    let request = match op {
        "close" => return Ok(Task::Close),
        "report" => return Ok(Task::Report),
        "sleep" => return Ok(Task::Sleep(millis("ms")?.ok_or("ms is missing")?)),
        "call" => Request::CallTool(ToolCall {
            tool: text("tool")?,
            arguments: json("arguments"),
        }),
        "list_prompts" => Request::ListPrompts,
        "list_resource_templates" => Request::ListResourceTemplates,
        "list_resources" => Request::ListResources,
        "list_tools" => Request::ListTools,
        "listen" => Request::Listen,
        "prompt" => Request::GetPrompt {
            name: text("name")?,
            arguments: json("arguments"),
        },
        "read" => Request::ReadResource { uri: text("uri")? },
        other => return Err(format!("op: unknown `{other}`")),
    };
    let listen_for = millis("ms")?;
    if matches!(request, Request::Listen) != listen_for.is_some() {
        return Err("ms: `listen` says how long, and nothing else does".into());
    }
    let options = Options {
        total_timeout: millis("timeoutMs")?,
        progress: flag("progress"),
        idempotency_key: line
            .get("idempotencyKey")
            .map(|_| text("idempotencyKey"))
            .transpose()?,
        input_responses: json("input"),
        request_state: json("requestState"),
        ..Options::default()
    };
    let mut operation = Operation::new(request).with(options);
    operation.peer = line.get("peer").map(|_| text("peer")).transpose()?;
    Ok(Task::Operation(Box::new(Doing {
        operation,
        background: flag("background"),
        cancel_after: millis("cancelAfterMs")?,
        listen_for,
    })))
}
