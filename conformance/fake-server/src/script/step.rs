//! The steps of a script, parsed.

use std::time::Duration;

use serde_json::{Map, Value};

use super::template::Template;
use crate::ChildKind;
use crate::message;

/// One step; `engine.rs` gives each its meaning.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    AssertNoInput(Duration),
    CloseStdin,
    CloseStdout,
    Emit(Emission),
    ExpectNext {
        method: String,
        else_exit: Option<i32>,
        name: Option<String>,
    },
    Forbid(String),
    ForbidBefore(String, String),
    Hang,
    IfSeen {
        name: String,
        emit: Vec<Emission>,
    },
    IgnoreSigterm,
    IgnoreStdinEof,
    Loop {
        every: Duration,
        emit: Vec<Emission>,
        count: Option<u64>,
    },
    On {
        matcher: Matcher,
        name: Option<String>,
        within: Option<Duration>,
    },
    OnEach {
        matcher: Matcher,
        emit: Vec<Emission>,
    },
    OnResponse(Value),
    Sleep(Duration),
    SpawnChild(ChildKind),
    StopReading,
}

/// Something that leaves the server.
#[derive(Clone, Debug)]
pub(crate) enum Emission {
    Exit(i32),
    Kill,
    StderrBytes(Vec<u8>),
    StderrText(Template),
    StdoutBytes(Vec<u8>),
    StdoutText {
        text: Template,
        line: bool,
        times: usize,
    },
}

/// Which client messages a step is about.
#[derive(Clone, Debug)]
pub(crate) struct Matcher {
    pub(super) method: String,
    /// Dotted paths into the message and the values they must have.
    pub(super) conditions: Vec<(String, Value)>,
}

impl Step {
    pub(crate) fn waits_for_handshake(&self) -> bool {
        let method = match self {
            Self::On { matcher, .. } | Self::OnEach { matcher, .. } => &matcher.method,
            Self::ExpectNext { method, .. } => method,
            _ => return false,
        };
        method == "server/discover" || method == "initialize"
    }

    /// Whether the script stops here until the client says something.
    pub(crate) fn waits_for_client(&self) -> bool {
        matches!(
            self,
            Self::On { .. } | Self::OnResponse(_) | Self::ExpectNext { .. }
        )
    }

    /// Whether this message is one the step waits for.
    pub(crate) fn takes(&self, message: &Value) -> bool {
        match self {
            Self::On { matcher, .. } => matcher.matches(message),
            Self::OnResponse(id) => {
                message.get("method").is_none() && message.get("id") == Some(id)
            }
            // It judges whatever comes next.
            Self::ExpectNext { .. } => true,
            _ => false,
        }
    }
}

impl Emission {
    pub(crate) fn uses_counter(&self) -> bool {
        match self {
            Self::StderrText(text) | Self::StdoutText { text, .. } => text.uses_counter(),
            Self::Exit(_) | Self::Kill | Self::StderrBytes(_) | Self::StdoutBytes(_) => false,
        }
    }
}

impl Matcher {
    pub(crate) fn matches(&self, message: &Value) -> bool {
        message::method(message) == Some(&self.method)
            && self
                .conditions
                .iter()
                .all(|(path, expected)| lookup(message, path).unwrap_or(&Value::Null) == expected)
    }
}

/// Follows a dotted path. Keys may contain dots themselves (`_meta` keys do), so every way of
/// cutting the path is tried, the shortest first key first.
fn lookup<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    if let Some(found) = child(value, path) {
        return Some(found);
    }
    path.match_indices('.').find_map(|(at, _)| {
        let (key, rest) = path.split_at(at);
        lookup(child(value, key)?, rest.strip_prefix('.')?)
    })
}

fn child<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    match value {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        Value::Object(members) => Map::get(members, key),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_follow_objects_arrays_and_dotted_keys() {
        let message =
            json!({"params": {"list": [{"a": 1}], "_meta": {"io.x/y.z": "v"}, "cursor": ""}});
        assert_eq!(lookup(&message, "params.list.0.a"), Some(&json!(1)));
        assert_eq!(lookup(&message, "params._meta.io.x/y.z"), Some(&json!("v")));
        assert_eq!(lookup(&message, "params.cursor"), Some(&json!("")));
        assert_eq!(lookup(&message, "params.list.1.a"), None);
        assert_eq!(lookup(&message, "params.nothing"), None);
    }
}
