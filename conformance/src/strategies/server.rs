//! Generated servers.

use mcp_fake_server::{LegacyVersion, Script};
use serde_json::{Value, json};

use super::{HOSTILE_LINES, LINE_BYTES, scenes};
use crate::world::{Choice, pick};

/// Answers that are right for a method, by era.
const GOOD_LINES: [(&str, &str); 11] = [
    ("server/discover", "«GOOD_DISCOVER»"),
    ("server/discover", "«METHOD_NOT_FOUND»"),
    ("initialize", "«GOOD_INIT»"),
    ("tools/call", "«OK_RESULT»"),
    ("tools/call", "«OK_RESULT_LEGACY»"),
    (
        "tools/list",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","tools":[{"name":"echo","inputSchema":{"type":"object"}}],"nextCursor":"c$N"}}"#,
    ),
    ("tools/call", ASKS),
    // The same progress again and again, and less than before.
    ("tools/call", STANDS_STILL),
    ("tools/call", STANDS_STILL),
    ("prompts/get", ASKS),
    ("resources/read", ASKS),
];

const STANDS_STILL: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$PTOKEN,"progress":1}}"#;

/// A question that an application can answer.
pub(super) const ASKS: &str = r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","inputRequests":{"name":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}},"requestState":"s$N"}}"#;

const METHODS: [&str; 11] = [
    "tools/call",
    "tools/list",
    "server/discover",
    "initialize",
    "subscriptions/listen",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
    "completion/complete",
];

/// One thing that leaves a server.
fn emission(choice: &mut dyn Choice, method: &str) -> Value {
    let good: Vec<&str> = GOOD_LINES
        .into_iter()
        .filter_map(|(of, line)| (of == method).then_some(line))
        .collect();
    match choice.choose(16) {
        0..=4 if !good.is_empty() => json!(pick(choice, &good)),
        0..=10 => json!(pick(choice, &HOSTILE_LINES)),
        // Longer than the limit, whole or never ended.
        11 if choice.one_in(2) => json!({"repeat_line": {"text": "x", "count": 300}}),
        11 => json!("x".repeat(LINE_BYTES + 1)),
        12 if choice.one_in(2) => flood(choice),
        12 => json!({"repeat": {"text": "{\"jsonrpc\":\"2.0\",\"id\":$ID,", "count": 300}}),
        // Split UTF-8 and no UTF-8 at all.
        13 => json!({"raw_b64": *pick(choice, &["//4gbG9nIIAK", "8J+a", "gAo=", "Cg=="])}),
        14 => json!({"stderr_bytes": 20_000}),
        _ => json!({"exit": choice.choose(3)}),
    }
}

/// Many small messages, that together exceed every bound.
fn flood(choice: &mut dyn Choice) -> Value {
    let padding = "x".repeat(*pick(choice, &[300, 200, 10]));
    let text = match choice.choose(3) {
        0 => format!(r#"{{"jsonrpc":"2.0","id":"{padding}","method":"ping"}}"#),
        1 => format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"{padding}","_meta":{{"io.modelcontextprotocol/subscriptionId":$SUBID}}}}}}"#
        ),
        _ => format!(r#"{{"jsonrpc":"2.0","id":99999,"result":{{"padding":"{padding}"}}}}"#),
    };
    json!({"repeat_line": {"text": text, "count": 50 + choice.choose(200)}})
}

fn emissions(choice: &mut dyn Choice, method: &str) -> Vec<Value> {
    let count = 1 + choice.choose(3);
    (0..count).map(|_| emission(choice, method)).collect()
}

/// A server: well-behaved in one of the eras, or misbehaving in any number of ways.
///
/// # Panics
/// Never: what is generated is a valid script.
pub fn script(choice: &mut dyn Choice) -> Script {
    let legacy = *pick(choice, &LegacyVersion::ALL);
    let era = choice.choose(6);
    if choice.choose(4) == 0 {
        return match era {
            0..=2 => Script::modern(),
            3 | 4 => Script::legacy(legacy),
            _ => Script::dual(),
        };
    }
    let mut steps = Vec::new();
    for method in METHODS {
        if choice.one_in(6) {
            steps.push(json!({"on_each": method, "emit": emissions(choice, method)}));
        }
    }
    if choice.one_in(3) {
        steps.extend(scenes::lists(choice));
    }
    if choice.one_in(2) {
        steps.extend(scenes::streams(choice));
    }
    for _ in 0..choice.choose(4) {
        steps.push(process_step(choice));
    }
    // One answer that comes late.
    if choice.one_in(3) {
        let method = *pick(choice, &METHODS);
        steps.push(json!({"on": method, "as": "late"}));
        steps.push(json!({"sleep_ms": choice.choose(8_000)}));
        steps.extend(emissions(choice, method));
    }
    let respawn: Vec<Value> = steps.iter().skip(steps.len() / 2).cloned().collect();
    let era = ["modern", "modern", "modern", "legacy", "dual", "probe"][era as usize];
    let mut script = json!({"era": era, "steps": steps, "options": {"page_size": 1, "tools": ["slow", "progress", "ask", "talk"]}});
    if choice.one_in(2) {
        script["respawn"] = json!(respawn);
    }
    Script::from_json(&script.to_string())
        .unwrap_or_else(|error| panic!("generated script: {error}\n{script}"))
}

fn process_step(choice: &mut dyn Choice) -> Value {
    match choice.choose(14) {
        0 => json!({"ignore_stdin_eof": true}),
        1 => json!({"ignore_sigterm": true}),
        2 => json!({"spawn_child": *pick(choice, &["holds_pipes", "own_session"])}),
        3 => json!({"sleep_ms": choice.choose(3_000)}),
        4 => json!({"stop_reading": true}),
        5 => json!({"close_stdin_read": true}),
        6 => json!({"hang": true}),
        7 => {
            json!({"loop": {"every_ms": 1 + choice.choose(500), "count": 20, "emit": emission(choice, "")}})
        }
        // Again and again, more than is read at once.
        9 => {
            json!({"loop": {"every_ms": 1 + choice.choose(50), "count": 60, "emit": flood(choice)}})
        }
        11 => flood(choice),
        10 => json!({"exit": choice.choose(3)}),
        8 => json!({"optional_on": "tools/call", "within_ms": choice.choose(5_000)}),
        _ => emission(choice, ""),
    }
}
