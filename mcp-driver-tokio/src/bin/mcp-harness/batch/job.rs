//! One line of input, understood or not.

use std::time::Duration;

use mcp_proto::nearest::nearest;
use mcp_proto::wire::{Json, Members};
use mcp_proto::{Operation, Options, Request, ToolCall};

/// Every `op`, for suggestions.
const OPS: [&str; 11] = [
    "call",
    "close",
    "list_prompts",
    "list_resource_templates",
    "list_resources",
    "list_tools",
    "listen",
    "prompt",
    "read",
    "report",
    "sleep",
];

/// What a line asks for.
#[derive(Debug)]
pub(super) struct Job {
    /// The exact JSON text of its `id`.
    pub(super) id: String,
    pub(super) task: Task,
}

#[derive(Debug)]
pub(super) enum Task {
    Close,
    Report,
    Sleep(Duration),
    Peers(Box<PeerTask>),
}

/// An operation on servers.
#[derive(Debug)]
pub(super) struct PeerTask {
    pub(super) operation: Operation,
    pub(super) background: bool,
    pub(super) timing: Timing,
}

impl Task {
    /// Whether it answers what was asked, but does not give back the state that came with the question.
    pub(super) fn answers_without_state(&self) -> bool {
        match self {
            Self::Peers(task) => {
                let options = &task.operation.options;
                options.input_responses.is_some() && options.request_state.is_none()
            }
            _ => false,
        }
    }

    /// The tool that is asked for, if it is a call.
    pub(super) fn tool(&self) -> Option<&str> {
        match self {
            Self::Peers(task) => match &task.operation.request {
                Request::CallTool(call) => Some(&call.tool),
                _ => None,
            },
            _ => None,
        }
    }
}

/// What ends an operation early; each counts from its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// Its total duration.
    pub(super) timeout: Option<Duration>,
    /// When the application cancels it.
    pub(super) cancel_after: Option<Duration>,
    /// How long it listens.
    pub(super) listen_for: Option<Duration>,
}

/// Why a line is no operation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    /// The exact JSON text of its `id`, if that is usable.
    pub(super) id: Option<String>,
    pub(super) message: String,
}

/// Reads one line.
pub(super) fn parse(line: &[u8]) -> Result<Job, Malformed> {
    let without_id = |message: String| Malformed { id: None, message };
    let text = std::str::from_utf8(line)
        .map_err(|error| without_id(format!("not valid UTF-8: {error}")))?;
    let raw = Json::parse(text).map_err(|error| without_id(error.to_string()))?;
    if !raw.as_str().starts_with('{') {
        return Err(without_id("not a JSON object".to_owned()));
    }
    let members: Members<'_> = raw.view().map_err(|error| without_id(error.to_string()))?;
    let fields = Fields(&members);
    let id = fields.id().map_err(without_id)?;
    match task(&fields) {
        Ok(task) => Ok(Job { id, task }),
        Err(message) => Err(Malformed {
            id: Some(id),
            message,
        }),
    }
}

fn task(fields: &Fields<'_>) -> Result<Task, String> {
    let op = fields.required_text("op")?;
    let request = match op.as_str() {
        "report" => return Ok(Task::Report),
        "close" => return Ok(Task::Close),
        "sleep" => {
            let ms = fields.duration("ms")?;
            return ms.map(Task::Sleep).ok_or_else(|| fields.missing("ms"));
        }
        "list_tools" => Request::ListTools,
        "list_resources" => Request::ListResources,
        "list_resource_templates" => Request::ListResourceTemplates,
        "list_prompts" => Request::ListPrompts,
        "listen" => Request::Listen,
        "call" => Request::CallTool(ToolCall {
            tool: fields.required_text("tool")?,
            arguments: fields.object("arguments")?,
        }),
        "read" => Request::ReadResource {
            uri: fields.required_text("uri")?,
        },
        "prompt" => Request::GetPrompt {
            name: fields.required_text("name")?,
            arguments: fields.object("arguments")?,
        },
        other => return Err(unknown_op(other)),
    };
    peer_task(fields, request).map(|task| Task::Peers(Box::new(task)))
}

fn peer_task(fields: &Fields<'_>, request: Request) -> Result<PeerTask, String> {
    let mut options = Options::default();
    if let Request::CallTool(_) = request {
        options.progress = fields.flag("progress")?;
        options.idempotency_key = fields.text("idempotencyKey")?;
        options.input_responses = fields.object("input")?;
        options.request_state = fields.raw_text("requestState")?;
    }
    let listen_for = match request {
        Request::Listen => fields.duration("ms")?,
        _ => None,
    };
    let mut operation = Operation::new(request).with(options);
    operation.peer = fields.text("peer")?;
    Ok(PeerTask {
        operation,
        background: fields.flag("background")?,
        timing: Timing {
            timeout: fields.timeout()?,
            cancel_after: fields.duration("cancelAfterMs")?,
            listen_for,
        },
    })
}

fn unknown_op(op: &str) -> String {
    let hint = match nearest(op, OPS) {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("known: {}", OPS.join(", ")),
    };
    format!("unknown op {op:?}; {hint}")
}

fn missing(name: &str) -> String {
    format!("{name:?} is missing")
}

/// The members of a line. An optional one that is `null` counts as absent.
struct Fields<'a>(&'a Members<'a>);

impl Fields<'_> {
    fn id(&self) -> Result<String, String> {
        let raw = self.0.get("id").ok_or_else(|| self.missing("id"))?.get();
        match raw.bytes().next() {
            Some(b'"' | b'-' | b'0'..=b'9') => Ok(raw.to_owned()),
            _ => Err("\"id\" is neither a string nor a number".to_owned()),
        }
    }

    fn required_text(&self, name: &str) -> Result<String, String> {
        self.text(name)?.ok_or_else(|| self.missing(name))
    }

    /// That a member is missing, and the one that is there in its stead. Other unknown members are ignored.
    fn missing(&self, name: &str) -> String {
        let mut others = self.0.iter().map(|(other, _)| other);
        match others.find(|other| nearest(other, [name]).is_some()) {
            Some(other) if other != name => {
                format!("{}; should {other:?} be it?", missing(name))
            }
            _ => missing(name),
        }
    }

    fn text(&self, name: &str) -> Result<Option<String>, String> {
        self.decode(name, "a string")
    }

    fn flag(&self, name: &str) -> Result<bool, String> {
        Ok(self.decode(name, "true or false")?.unwrap_or(false))
    }

    fn duration(&self, name: &str) -> Result<Option<Duration>, String> {
        let Some(raw) = self.0.present(name) else {
            return Ok(None);
        };
        let ms = milliseconds(raw.get());
        ms.map(Some)
            .ok_or_else(|| format!("{name:?} is not a whole number of milliseconds"))
    }

    /// As in the configuration and on the command line: no time at all is no limit that anything can keep.
    fn timeout(&self) -> Result<Option<Duration>, String> {
        match self.duration("timeoutMs")? {
            Some(Duration::ZERO) => Err("\"timeoutMs\" is not more than 0".to_owned()),
            timeout => Ok(timeout),
        }
    }

    fn object(&self, name: &str) -> Result<Option<Json>, String> {
        self.raw(name, '{', "an object")
    }

    fn raw_text(&self, name: &str) -> Result<Option<Json>, String> {
        self.raw(name, '"', "a string")
    }

    fn raw(&self, name: &str, begins: char, expected: &str) -> Result<Option<Json>, String> {
        match self.0.present(name) {
            None => Ok(None),
            Some(raw) if raw.get().starts_with(begins) => Ok(Some(Json::from(raw))),
            Some(_) => Err(format!("{name:?} is not {expected}")),
        }
    }

    fn decode<T: serde::de::DeserializeOwned>(
        &self,
        name: &str,
        expected: &str,
    ) -> Result<Option<T>, String> {
        let Some(raw) = self.0.present(name) else {
            return Ok(None);
        };
        serde_json::from_str(raw.get())
            .map(Some)
            .map_err(|_| format!("{name:?} is not {expected}"))
    }
}

/// A whole number however JSON can write it: `10`, `10.0`, `1e1`.
fn milliseconds(token: &str) -> Option<Duration> {
    if let Ok(ms) = token.parse() {
        return Some(Duration::from_millis(ms));
    }
    let ms: f64 = serde_json::from_str(token).ok()?;
    let whole = ms >= 0.0 && ms.fract() == 0.0;
    whole
        .then(|| Duration::try_from_secs_f64(ms / 1_000.0).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_can_be_written_in_many_ways() {
        for token in ["10", "10.0", "1e1", "1.0E+1", "100e-1"] {
            assert_eq!(
                milliseconds(token),
                Some(Duration::from_millis(10)),
                "{token}"
            );
        }
        assert_eq!(milliseconds("-0.0"), Some(Duration::ZERO));
        for token in ["0.5", "1e-1", "-1", "1e300", "\"1\"", "true", "[]"] {
            assert_eq!(milliseconds(token), None, "{token}");
        }
    }

    #[test]
    fn the_id_keeps_its_exact_text() {
        for id in [
            "1",
            "-0",
            "1.0",
            "1e2",
            "18446744073709551616",
            r#""\u0061\n""#,
        ] {
            let line = format!(r#"{{"id":{id},"op":"report"}}"#);
            assert_eq!(parse(line.as_bytes()).unwrap().id, id);
        }
    }

    #[test]
    fn what_is_wrong_is_named_and_the_id_is_kept_where_it_is_usable() {
        let cases: [(&str, Option<&str>, &str); 19] = [
            (
                r#"{"id":1,"op":"call","tol":"x"}"#,
                Some("1"),
                "\"tool\" is missing; should \"tol\" be it?",
            ),
            (r#"{"ID":1,"op":"report"}"#, None, "; should \"ID\" be it?"),
            (
                r#"{"id":1,"op":"read","url":"x:y"}"#,
                Some("1"),
                "; should \"url\" be it?",
            ),
            ("nope", None, "not valid JSON"),
            ("[1]", None, "not a JSON object"),
            (r#"{"op":"report"}"#, None, "\"id\" is missing"),
            (r#"{"id":null,"op":"report"}"#, None, "\"id\" is neither"),
            (r#"{"id":1,"id":2,"op":"report"}"#, None, "stands twice"),
            (r#"{"id":1}"#, Some("1"), "\"op\" is missing"),
            (
                r#"{"id":1,"op":"cal"}"#,
                Some("1"),
                "did you mean \"call\"?",
            ),
            (
                r#"{"id":"a","op":"call"}"#,
                Some("\"a\""),
                "\"tool\" is missing",
            ),
            (
                r#"{"id":1,"op":"call","tool":1}"#,
                Some("1"),
                "\"tool\" is not a string",
            ),
            (
                r#"{"id":1,"op":"call","tool":"x","arguments":[]}"#,
                Some("1"),
                "\"arguments\" is not an object",
            ),
            (
                r#"{"id":1,"op":"sleep","ms":-1}"#,
                Some("1"),
                "\"ms\" is not a whole",
            ),
            (r#"{"id":1,"op":"sleep"}"#, Some("1"), "\"ms\" is missing"),
            (
                r#"{"id":1,"op":"call","tool":"x","timeoutMs":0}"#,
                Some("1"),
                "\"timeoutMs\" is not more than 0",
            ),
            (
                r#"{"id":1,"op":"list_tools","timeoutMs":-0.0}"#,
                Some("1"),
                "\"timeoutMs\" is not more than 0",
            ),
            (
                r#"{"id":1,"op":"call","tool":"x","timeoutMs":0.5}"#,
                Some("1"),
                "\"timeoutMs\" is not a whole",
            ),
            (
                r#"{"id":1,"op":"call","tool":"x","timeoutMs":-1}"#,
                Some("1"),
                "\"timeoutMs\" is not a whole",
            ),
        ];
        for (line, id, words) in cases {
            let malformed = parse(line.as_bytes()).unwrap_err();
            assert_eq!(malformed.id.as_deref(), id, "{line}");
            assert!(malformed.message.contains(words), "{line}: {malformed:?}");
        }
        assert!(parse(b"\xff").unwrap_err().message.contains("UTF-8"));
        for (timeout, ms) in [("1", 1), ("1e3", 1_000)] {
            let line = format!(r#"{{"id":1,"op":"list_tools","timeoutMs":{timeout}}}"#);
            let Task::Peers(task) = parse(line.as_bytes()).unwrap().task else {
                panic!("{line}");
            };
            assert_eq!(task.timing.timeout, Some(Duration::from_millis(ms)));
        }
    }
}
