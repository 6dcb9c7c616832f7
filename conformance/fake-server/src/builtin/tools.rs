//! Calling the built-in tools.

use std::time::Duration;

use serde_json::{Value, json};

use super::jobs::Work;
use super::{Builtin, Call, Reply, Revision, fixtures};
use crate::message::{self, RpcError};
use crate::{Output, Sink};

/// What `ask` gives the client to carry. It is constant, so that a restarted server can take it
/// back, and a trap for clients that decode or re-encode it.
const REQUEST_STATE: &str =
    "round \"1\" \\ / \u{e9}\u{1f512}\u{2028}\n\t\u{1} {\"a\": [1.0, 1e2]} %20+=&";

/// The largest answer of `big`.
const BIG_LIMIT_BYTES: u64 = 256 * 1024 * 1024;

const STEPS_LIMIT: u64 = 1_000_000;

/// The severity of `echo`'s log message: `info`.
const ECHO_LEVEL: usize = 1;

impl Builtin {
    /// Every tool as it is listed.
    pub(super) fn tools(&self, revision: Revision) -> Vec<Value> {
        let names = self.tool_names(revision);
        names
            .iter()
            .map(|name| {
                let exposed = format!("{}{name}", self.options.tool_prefix);
                // A byte script's tools are as bare as possible, so that it stays in charge.
                let fixture = match self.scripted {
                    true => None,
                    false => fixtures::tool(name, &exposed, revision),
                };
                fixture.unwrap_or_else(|| fixtures::plain_tool(&exposed))
            })
            .collect()
    }

    pub(super) fn call_tool(&mut self, call: &Call<'_>, sink: &mut Sink) -> Reply {
        let Some(exposed) = call.params.get("name").and_then(Value::as_str) else {
            return Reply::Error(RpcError::invalid_params("`name` must be a string"));
        };
        let name = exposed
            .strip_prefix(&self.options.tool_prefix)
            .filter(|name| {
                self.tool_names(call.revision)
                    .iter()
                    .any(|known| known == name)
            });
        let Some(name) = name else {
            return Reply::Error(RpcError::invalid_params(format!("Unknown tool: {exposed}")));
        };
        let arguments = Arguments(call.params.get("arguments").unwrap_or(&Value::Null));
        let answered = match name {
            "slow" => self.slow(call, arguments),
            "progress" => self.progress(call, arguments),
            "ask" => Ok(self.ask(call, sink)),
            "touch_resource" => self.touch_resource(arguments, sink),
            "exit" => arguments.number_or("code", 0).map(|code| {
                sink.push(Output::Exit(i32::try_from(code).unwrap_or(1)));
                Reply::Later
            }),
            "rpc_error" => Ok(rpc_error(arguments)),
            _ => self.instant(name, call, arguments, sink).map(Reply::Result),
        };
        // Wrong arguments are for the model to correct, so they are a result (server/tools).
        answered.unwrap_or_else(|problem| Reply::Result(failure(&problem)))
    }

    fn tool_names(&self, revision: Revision) -> Vec<String> {
        let named = self.options.tools.iter().flatten().cloned();
        let mut names: Vec<String> = match (self.scripted, &self.options.tools) {
            (true, _) => {
                let named = named.filter(|name| name != "echo");
                std::iter::once("echo".to_owned()).chain(named).collect()
            }
            (false, Some(_)) => named.collect(),
            (false, None) => fixtures::TOOLS.map(str::to_owned).to_vec(),
        };
        names.retain(|name| fixtures::has_tool(name, revision));
        names.extend((1..=self.added_tools).map(|n| format!("added_{n}")));
        names
    }

    /// Tools that answer at once with a result.
    fn instant(
        &mut self,
        name: &str,
        call: &Call<'_>,
        arguments: Arguments<'_>,
        sink: &mut Sink,
    ) -> Result<Value, String> {
        Ok(match name {
            "echo" => match arguments.text("text") {
                Ok(text) => {
                    log_echo(call, text, sink);
                    success(text)
                }
                Err(_) if self.scripted => success("ok"),
                Err(problem) => return Err(problem),
            },
            "add" => add(call.revision, arguments)?,
            "fail" => failure("This tool always fails"),
            "big" => {
                let bytes = arguments.limited("bytes", BIG_LIMIT_BYTES)?;
                success(&"x".repeat(usize::try_from(bytes).unwrap_or_default()))
            }
            "content" => json!({"content": fixtures::content_blocks(call.revision)}),
            "env" => {
                let variable = arguments.text("name")?;
                success((self.env)(variable).as_deref().unwrap_or("unset"))
            }
            "touch_list" => {
                self.added_tools += 1;
                self.tell_tool_listeners(sink);
                self.tell_session_tools(sink);
                success(&format!("added_{}", self.added_tools))
            }
            "end_listen" => {
                let count = self.listeners.len();
                self.end_listeners(sink);
                success(&format!("ended {count}"))
            }
            _ => success("ok"),
        })
    }

    fn slow(&mut self, call: &Call<'_>, arguments: Arguments<'_>) -> Result<Reply, String> {
        let wait = Duration::from_millis(arguments.whole("ms")?);
        let text = format!("done after {} ms", wait.as_millis());
        let answer = self.result(call.id, call.revision, success(&text));
        Ok(self.later(call, call.now.saturating_add(wait), Work::Answer(answer)))
    }

    fn progress(&mut self, call: &Call<'_>, arguments: Arguments<'_>) -> Result<Reply, String> {
        let steps = arguments.limited("steps", STEPS_LIMIT)?;
        let every = Duration::from_millis(arguments.number_or("everyMs", 0)?);
        let text = format!("{steps} steps");
        let work = Work::Progress {
            token: message::progress_token(call.params).cloned(),
            done: 0,
            steps,
            every,
            answer: self.result(call.id, call.revision, success(&text)),
        };
        Ok(self.later(call, call.now.saturating_add(every), work))
    }

    fn touch_resource(&self, arguments: Arguments<'_>, sink: &mut Sink) -> Result<Reply, String> {
        let uri = arguments.text("uri")?;
        self.tell_resource_listeners(uri, sink);
        self.tell_session_resource(uri, sink);
        Ok(Reply::Result(success(uri)))
    }

    /// Asks the user for a name, the way the revision has for it.
    fn ask(&mut self, call: &Call<'_>, sink: &mut Sink) -> Reply {
        let can_ask = call.client_capabilities.get("elicitation").is_some();
        let question = json!({
            "message": "What is your name?",
            "requestedSchema": {
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
            },
        });
        if let Revision::Legacy(_) = call.revision {
            if !can_ask {
                return Reply::Result(failure("the client did not declare elicitation"));
            }
            self.ask_client(call, "elicitation/create", question, sink);
            return Reply::Later;
        }
        let state = call.params.get("requestState");
        if state.is_some_and(|state| state != REQUEST_STATE) {
            return Reply::Error(RpcError::invalid_params("requestState was changed"));
        }
        let response = call.params.pointer("/inputResponses/name");
        match (state, response) {
            (Some(_), Some(response)) => Reply::Result(greeting(response)),
            _ if !can_ask => {
                let data = json!({"requiredCapabilities": {"elicitation": {}}});
                let error = RpcError::new(-32021, "Missing required client capability");
                Reply::Error(error.with_data(data))
            }
            _ => Reply::Result(json!({
                "resultType": "input_required",
                "inputRequests": {"name": {"method": "elicitation/create", "params": question}},
                "requestState": REQUEST_STATE,
            })),
        }
    }
}

/// What `ask` makes of an `ElicitResult`.
pub(super) fn greeting(response: &Value) -> Value {
    let action = response.get("action").and_then(Value::as_str);
    let name = response.pointer("/content/name").and_then(Value::as_str);
    match (action, name) {
        (Some("accept"), Some(name)) => success(&format!("Hello, {name}")),
        (Some("accept"), None) => failure("the answer has no name"),
        (Some("decline"), _) => success("declined"),
        (Some("cancel"), _) => success("cancelled"),
        _ => failure("the answer is no elicitation result"),
    }
}

pub(super) fn failure(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": true})
}

fn success(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn add(revision: Revision, arguments: Arguments<'_>) -> Result<Value, String> {
    let whole = |name| arguments.0.get(name).and_then(Value::as_i64);
    // Whole numbers stay whole: 2 + 3 is 5, not 5.0.
    let sum = match (whole("a"), whole("b")) {
        (Some(a), Some(b)) if a.checked_add(b).is_some() => Value::from(a.saturating_add(b)),
        _ => Value::from(arguments.number("a")? + arguments.number("b")?),
    };
    let structured = json!({"sum": sum});
    let text = match fixtures::has_structured_content(revision) {
        true => structured.to_string(),
        false => sum.to_string(),
    };
    let mut result = success(&text);
    if let (true, Value::Object(members)) =
        (fixtures::has_structured_content(revision), &mut result)
    {
        members.insert("structuredContent".into(), structured);
    }
    Ok(result)
}

fn rpc_error(arguments: Arguments<'_>) -> Reply {
    let code = arguments.0.get("code").and_then(Value::as_i64);
    let message = arguments.text("message").unwrap_or("Asked for an error");
    let error = RpcError::new(code.unwrap_or(-32001), message);
    Reply::Error(error.with_data(json!({"tool": "rpc_error"})))
}

/// Logs the text if the client wants messages of this level.
fn log_echo(call: &Call<'_>, text: &str, sink: &mut Sink) {
    if call.log_level.is_some_and(|least| least <= ECHO_LEVEL) {
        let params = json!({"level": "info", "logger": "echo", "data": text});
        sink.send(&message::notification("notifications/message", params));
    }
}

/// The arguments of a call, read with errors that say what a tool needs.
#[derive(Clone, Copy)]
struct Arguments<'a>(&'a Value);

impl<'a> Arguments<'a> {
    fn text(self, name: &str) -> Result<&'a str, String> {
        self.0
            .get(name)
            .and_then(Value::as_str)
            .ok_or_else(|| format!("`{name}` must be a string"))
    }

    fn number(self, name: &str) -> Result<f64, String> {
        self.0
            .get(name)
            .and_then(Value::as_f64)
            .ok_or_else(|| format!("`{name}` must be a number"))
    }

    fn whole(self, name: &str) -> Result<u64, String> {
        self.0
            .get(name)
            .and_then(Value::as_u64)
            .ok_or_else(|| format!("`{name}` must be a whole number, not negative"))
    }

    fn limited(self, name: &str, most: u64) -> Result<u64, String> {
        self.whole(name)
            .ok()
            .filter(|number| *number <= most)
            .ok_or_else(|| format!("`{name}` must be a whole number from 0 to {most}"))
    }

    fn number_or(self, name: &str, default: u64) -> Result<u64, String> {
        match self.0.get(name) {
            None => Ok(default),
            Some(_) => self.whole(name),
        }
    }
}
