//! Everything that happened, for people.

use std::borrow::Cow;

use mcp_proto::continuation::StreamUpdate;
use mcp_proto::{Ended, News, Outcome, Ran, Reply, StreamChunk};
use serde_json::Value;

/// The longest string that is shown in full, in characters.
const STRING_CHARS: usize = 72;
/// The longest line that is no message and is shown in full.
const TEXT_CHARS: usize = 160;
/// The longest result that is shown in full.
const RESULT_CHARS: usize = 240;
/// Members of `_meta` that every modern request has.
const MODERN_KEYS: [&str; 6] = [
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/clientInfo",
    "traceparent",
    "baggage",
    "client",
];

/// One message line as it is shown: method, id and what is inside, long strings cut, the members of
/// `_meta` that every modern request has as `‹modern›`. What is no message is shown as text.
#[must_use]
pub fn abbreviate(line: &[u8]) -> String {
    match serde_json::from_slice(line) {
        Ok(Value::Object(message)) if message.contains_key("jsonrpc") => {
            let id = message.get("id");
            let id = id.map_or_else(String::new, |id| format!("#{id} "));
            let mut message = Value::Object(message);
            cut_strings(&mut message);
            let rest = match (&message["method"], &message["result"], &message["error"]) {
                (Value::String(method), ..) => {
                    format!("{method}{}", shown_params(&message["params"]))
                }
                (_, Value::Null, Value::Null) => message.to_string(),
                (_, result, Value::Null) => format!("= {}", shown_result(result)),
                (.., error) => format!("! {error}"),
            };
            format!("{id}{rest}")
        }
        _ => text(&String::from_utf8_lossy(line)),
    }
}

fn shown_params(params: &Value) -> String {
    let Value::Object(params) = params else {
        return match params {
            Value::Null => String::new(),
            other => format!(" {other}"),
        };
    };
    let mut params = params.clone();
    let mut modern = "";
    if let Some(Value::Object(meta)) = params.get_mut("_meta") {
        if meta.contains_key(MODERN_KEYS[0]) {
            modern = " ‹modern›";
        }
        meta.retain(|key, _| !MODERN_KEYS.contains(&key.as_str()));
        if meta.is_empty() {
            params.remove("_meta");
        }
    }
    if params.is_empty() {
        return modern.into();
    }
    format!(" {}{modern}", Value::Object(params))
}

/// Without what the server says about itself, and not too long.
fn shown_result(result: &Value) -> String {
    let mut result = result.clone();
    if let Value::Object(members) = &mut result {
        members.remove("_meta");
    }
    cut(&result.to_string(), RESULT_CHARS).into_owned()
}

fn cut_strings(value: &mut Value) {
    match value {
        Value::String(text) => *text = cut(text, STRING_CHARS).into_owned(),
        Value::Array(items) => items.iter_mut().for_each(cut_strings),
        Value::Object(members) => members.values_mut().for_each(cut_strings),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn cut(text: &str, chars: usize) -> Cow<'_, str> {
    match text.char_indices().nth(chars) {
        Some((at, _)) => format!("{}…({} bytes)", &text[..at], text.len()).into(),
        None => text.into(),
    }
}

fn text(line: &str) -> String {
    cut(line, TEXT_CHARS).escape_debug().to_string()
}

/// A piece of a source in one line.
pub(super) fn chunk(chunk: &StreamChunk) -> String {
    let mut shown = text(&chunk.text);
    if let Some(token) = &chunk.checkpoint_token {
        shown += &format!(" checkpoint {token:?}");
    }
    for (set, word) in [(chunk.dropped, " dropped"), (chunk.is_final, " final")] {
        if set {
            shown += word;
        }
    }
    shown
}

/// News in one line.
#[must_use]
pub fn news(news: &News) -> String {
    match news {
        News::Ended(ended) => {
            let Ended {
                operation, outcome, ..
            } = &**ended;
            format!("{operation} {}", self::outcome(outcome))
        }
        News::Progress {
            operation,
            progress,
        } => {
            let total = progress.total.map(|total| format!(" of {total}"));
            let total = total.unwrap_or_default();
            format!("{operation} progress {}{total}", progress.progress)
        }
        News::StreamUpdate { operation, update } => match update {
            StreamUpdate::Rewind { length_bytes } => format!("{operation} rewind {length_bytes}"),
            StreamUpdate::Text(more) => format!("{operation} text {}", text(more)),
            other => format!("{operation} {other:?}"),
        },
        News::OpenSource { operation, request } => format!(
            "{operation} open source {} {:?} {}",
            request.source, request.token, request.key
        ),
        News::CloseSource { operation, source } => format!("{operation} close source {source}"),
        News::RetryQuestion(question) => {
            format!(
                "{} may it run again? {}",
                question.operation, question.error
            )
        }
        News::InputWithdrawn {
            operation,
            question,
        } => format!("{operation} is not asked {question} any more"),
        News::InputNeeded {
            operation, input, ..
        } => {
            format!("{operation} asks: {} request(s)", input.requests.len())
        }
        News::Notified { operation } => format!("{operation} notified"),
        News::Log(message) => format!(
            "log {} {}",
            message.level.as_str(),
            text(message.data.as_str())
        ),
        News::PeerChanged { peer } => format!("{peer} changed"),
        News::Closed => "closed".into(),
        other => format!("{other:?}"),
    }
}

/// An outcome in one line.
#[must_use]
pub fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Complete(reply) => format!("completed: {}", self::reply(reply)),
        Outcome::InputRequired(pending) => {
            format!("needs input: {} request(s)", pending.input.requests.len())
        }
        Outcome::Failed(error) => {
            let ran = match error.ran {
                Ran::No => "not executed",
                Ran::Maybe => "may have been executed",
            };
            format!(
                "failed [{}, {ran}]: {}",
                error.kind(),
                text(&error.to_string())
            )
        }
    }
}

fn reply(reply: &Reply) -> String {
    fn names<T>(list: &[mcp_proto::Listed<T>]) -> String {
        let names: Vec<&str> = list.iter().map(|listed| listed.name.as_str()).collect();
        cut(&names.join(", "), TEXT_CHARS).into_owned()
    }
    match reply {
        Reply::Tools(list) => format!("tools {}", names(list)),
        Reply::Resources(list) => format!("resources {}", names(list)),
        Reply::ResourceTemplates(list) => format!("templates {}", names(list)),
        Reply::Prompts(list) => format!("prompts {}", names(list)),
        Reply::Call(result) => {
            let error = if result.is_error { " isError" } else { "" };
            format!("call{error} {:?}", cut(&result.text(), STRING_CHARS))
        }
        Reply::Stream(result) => {
            let cancelled = if result.cancelled { " cancelled" } else { "" };
            let shown = cut(&result.text, STRING_CHARS).into_owned();
            format!(
                "stream{cancelled} {shown:?}, {} attempt(s)",
                result.attempts
            )
        }
        Reply::Read(result) => format!("read, {} content(s)", result.contents.len()),
        Reply::Prompt(result) => format!("prompt, {} message(s)", result.messages.len()),
        Reply::Completion(_) => "completion".into(),
        Reply::Listened { notifications } => format!("listened, {notifications} notification(s)"),
        Reply::Settled => "settled".into(),
        other => format!("{other:?}"),
    }
}
