//! Whether what was seen is what was expected.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::case::{Case, CasePeer};
use super::facts::Played;
use super::step::{Step, Task};

/// How much of a value is shown.
const SHOWN_CHARS: usize = 400;

/// Every way in which what was seen differs from what the case expects; empty when it holds.
#[must_use]
pub fn judge(case: &Case, played: &Played) -> Vec<String> {
    let mut problems = played.complaints.clone();
    for (index, step) in case.client.iter().enumerate() {
        let seen = played.steps.get(index).unwrap_or(&Value::Null);
        let op = step.line.get("op").and_then(Value::as_str).unwrap_or("");
        let at = format!("client[{index}] {op}");
        if seen.is_null() {
            problems.push(format!("{at}: it never ended"));
        } else {
            self::step(step, seen, &at, &mut problems);
        }
    }
    for expected in &case.peers {
        peer(expected, played, &mut problems);
    }
    problems
}

fn step(step: &Step, seen: &Value, at: &str, problems: &mut Vec<String>) {
    let mut expected = step.expect.clone();
    let mut seen = seen.clone();
    if matches!(step.task, Task::Report) {
        let took = seen["tookMs"].take();
        seen = peer_of(&seen, super::case::PEER);
        seen["tookMs"] = took;
    } else {
        let outcome = match expected.get("error") {
            None => "complete",
            Some(error) if error["kind"] == "cancelled" => "cancelled",
            Some(_) => "error",
        };
        expected.entry("outcome").or_insert_with(|| outcome.into());
        for list in ["events", "progress"] {
            if seen[list].is_null() {
                seen[list] = json!([]);
            }
        }
        if matches!(&step.task, Task::Operation(doing) if doing.is_call())
            && expected["outcome"] == "complete"
        {
            expected.entry("isError").or_insert_with(|| false.into());
        }
        derive(&mut seen);
    }
    if seen["tookMs"].is_null() {
        expected.remove("tookMs");
    }
    let reported: Vec<f64> = seen["progress"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_f64)
        .collect();
    if !reported.is_sorted_by(|one, next| one < next) {
        problems.push(format!("{at}: progress does not increase: {reported:?}"));
    }
    for text in ["message", "remedy"] {
        printable(
            &seen["error"][text],
            &format!("{at}: error.{text}"),
            problems,
        );
    }
    compare(&expected.into(), &seen, at, problems);
}

/// Members that say the same more shortly.
fn derive(seen: &mut Value) {
    let texts = |content: &Value| {
        let blocks = content.as_array().into_iter().flatten();
        let texts = blocks.filter_map(|block| block["text"].as_str());
        texts.collect::<Vec<_>>().join("\n")
    };
    if seen["content"].is_array() {
        seen["text"] = texts(&seen["content"]).into();
    }
    for (list, key) in [
        ("tools", "name"),
        ("prompts", "name"),
        ("resources", "uri"),
        ("resourceTemplates", "uriTemplate"),
    ] {
        if let Some(list) = seen[list].as_array() {
            seen["names"] = list.iter().map(|entry| entry[key].clone()).collect();
        }
    }
}

fn peer(peer: &CasePeer, played: &Played, problems: &mut Vec<String>) {
    let mut expected = peer.expect.clone();
    let failed = expected
        .get("failure")
        .is_some_and(|failure| !failure.is_null());
    let state = if failed { "failed" } else { "ready" };
    let defaults = [
        ("state", json!(state)),
        ("failure", Value::Null),
        ("degraded", Value::Null),
        ("notes", json!([])),
    ];
    for (name, value) in defaults {
        expected.entry(name).or_insert(value);
    }
    if played.report.is_null() {
        expected
            .retain(|name, _| ["messages", "methods", "never", "sent"].contains(&name.as_str()));
    }
    let mut seen = peer_of(&played.report, &peer.name);
    match played.details.get(&peer.name) {
        Some(Value::Object(details)) => details.iter().for_each(|(name, value)| {
            seen[name] = value.clone();
        }),
        // This front does not show them.
        _ => ["counters", "evidence", "noise", "stderr"]
            .iter()
            .for_each(|name| drop(expected.remove(*name))),
    }
    let lines = played.sent.get(&peer.name).cloned().unwrap_or_default();
    never(&expected, &lines, &peer.name, problems);
    expected.remove("never");
    wire(&expected, &lines, &mut seen);
    for name in ["notes", "noise", "stderr", "evidence"] {
        for text in seen[name].as_array().into_iter().flatten() {
            printable(text, &format!("{}: {name}", peer.name), problems);
        }
    }
    printable(
        &seen["degraded"],
        &format!("{}: degraded", peer.name),
        problems,
    );
    compare(&expected.into(), &seen, &peer.name, problems);
}

/// A peer's part of a report, with what may be left out there.
fn peer_of(report: &Value, name: &str) -> Value {
    let peers = report["peers"].as_array().into_iter().flatten();
    let found = peers.into_iter().find(|peer| peer["name"] == name);
    let mut peer = found.cloned().unwrap_or_else(|| json!({}));
    for list in ["notes", "tools"] {
        if peer.get(list).is_none() {
            peer[list] = json!([]);
        }
    }
    peer["collisions"] = report["collisions"].clone();
    peer
}

/// Texts that no line to the server may hold.
fn never(expected: &Map<String, Value>, lines: &[String], peer: &str, problems: &mut Vec<String>) {
    let texts = expected.get("never").and_then(Value::as_array);
    for text in texts.into_iter().flatten().filter_map(Value::as_str) {
        if let Some(line) = lines.iter().find(|line| line.contains(text)) {
            problems.push(format!("{peer}: {text:?} was sent: {}", cut(line)));
        }
    }
}

/// `methods` in the order in which they were sent, and `sent`: how often each was.
fn wire(expected: &Map<String, Value>, lines: &[String], seen: &mut Value) {
    let messages = lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| Value::from(line.as_str())));
    let messages: Vec<Value> = messages.collect();
    let methods: Vec<&str> = messages
        .iter()
        .map(|message: &Value| message["method"].as_str().unwrap_or("response"))
        .collect();
    seen["methods"] = json!(methods);
    let asked = expected.get("sent").and_then(Value::as_object);
    for method in asked.into_iter().flatten().map(|(method, _)| method) {
        let count = methods.iter().filter(|sent| *sent == method).count();
        seen["sent"][method] = count.into();
    }
    seen["messages"] = messages.into();
}

/// Words for people have no control characters: they go to terminals.
fn printable(text: &Value, at: &str, problems: &mut Vec<String>) {
    if let Some(text) = text
        .as_str()
        .filter(|text| text.chars().any(char::is_control))
    {
        problems.push(format!("{at} has control characters: {text:?}"));
    }
}

/// Objects: what is expected is there, the rest does not matter. Lists: element by element. An object
/// whose names begin with `$` is a condition. `null` is the same as nothing.
fn compare(expected: &Value, seen: &Value, at: &str, problems: &mut Vec<String>) {
    match (expected, seen) {
        (Value::Object(conditions), _) if conditions.keys().any(|key| key.starts_with('$')) => {
            for (name, value) in conditions {
                condition(name, value, seen, at, problems);
            }
        }
        (Value::Object(members), Value::Object(_)) => {
            for (name, member) in members {
                let seen = seen.get(name).unwrap_or(&Value::Null);
                compare(member, seen, &format!("{at}.{name}"), problems);
            }
        }
        (Value::Array(expected), Value::Array(seen)) if expected.len() == seen.len() => {
            for (index, (expected, seen)) in expected.iter().zip(seen).enumerate() {
                compare(expected, seen, &format!("{at}[{index}]"), problems);
            }
        }
        _ if same(expected, seen) => {}
        _ => differs(expected, seen, at, problems),
    }
}

/// 1 and 1.0 are the same number.
fn same(one: &Value, other: &Value) -> bool {
    one == other
        || one
            .as_f64()
            .is_some_and(|number| Some(number) == other.as_f64())
}

fn condition(name: &str, value: &Value, seen: &Value, at: &str, problems: &mut Vec<String>) {
    let contains = |part: &Value| match (seen, part) {
        (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
        (Value::Array(items), part) => items.iter().any(|item| {
            let mut different = Vec::new();
            compare(part, item, "", &mut different);
            different.is_empty()
        }),
        _ => false,
    };
    let parts = || match value {
        Value::Array(parts) => parts.clone(),
        part => vec![part.clone()],
    };
    let length = match seen {
        Value::String(text) => Some(text.chars().count()),
        Value::Array(items) => Some(items.len()),
        _ => None,
    };
    let fits = |alternative: &Value| {
        let mut different = Vec::new();
        compare(alternative, seen, "", &mut different);
        different.is_empty()
    };
    let holds = match name {
        "$any" => parts().iter().any(fits),
        "$contains" => parts().iter().all(contains),
        "$lacks" => !parts().iter().any(contains),
        "$length" => length.is_some_and(|length| json!(length) == *value),
        "$max" => seen
            .as_f64()
            .is_some_and(|seen| Some(seen) <= value.as_f64()),
        "$min" => seen
            .as_f64()
            .is_some_and(|seen| Some(seen) >= value.as_f64()),
        _ => false,
    };
    if !holds {
        differs(&json!({ name: value }), seen, at, problems);
    }
}

fn differs(expected: &Value, seen: &Value, at: &str, problems: &mut Vec<String>) {
    let mut problem = String::new();
    // Writing to a string never fails.
    let _ = write!(problem, "{at}: expected {}", cut(&expected.to_string()));
    let _ = write!(problem, ", got {}", cut(&seen.to_string()));
    problems.push(problem);
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}… ({} bytes)", &text[..at], text.len()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(expected: Value, seen: Value) -> usize {
        let mut problems = Vec::new();
        compare(&expected, &seen, "it", &mut problems);
        problems.len()
    }

    #[test]
    fn objects_are_compared_as_far_as_expected_and_lists_as_a_whole() {
        assert_eq!(problems(json!({"a": 1}), json!({"a": 1.0, "b": 2})), 0);
        assert_eq!(problems(json!({"a": null}), json!({})), 0);
        assert_eq!(problems(json!({"a": null, "b": 1}), json!({"a": 0})), 2);
        assert_eq!(
            problems(json!([1, {"a": 1}]), json!([1, {"a": 1, "b": 2}])),
            0
        );
        assert_eq!(problems(json!([1]), json!([1, 2])), 1);
        assert_eq!(problems(json!({"a": {}}), json!({"a": 1})), 1);
    }

    #[test]
    fn conditions_hold_or_do_not() {
        for (condition, holds, fails) in [
            (json!({"$contains": "b"}), json!("abc"), json!("ac")),
            (json!({"$contains": ["a", "c"]}), json!("abc"), json!("ab")),
            (
                json!({"$contains": {"x": 1}}),
                json!([{"x": 1}]),
                json!([{"x": 2}]),
            ),
            (json!({"$lacks": ["x", "b"]}), json!("ac"), json!("ab")),
            (json!({"$any": [1, null]}), json!(null), json!(2)),
            (json!({"$length": 2}), json!("é!"), json!("é")),
            (json!({"$length": 2}), json!([1, 2]), json!(2)),
            (json!({"$max": 3}), json!(3), json!(4)),
            (json!({"$min": 3}), json!(3), json!(null)),
            (json!({"$min": 1, "$max": 2}), json!(2), json!(3)),
        ] {
            assert_eq!(problems(condition.clone(), holds), 0, "{condition}");
            assert_ne!(problems(condition.clone(), fails), 0, "{condition}");
        }
        assert_ne!(problems(json!({"$contians": "a"}), json!("a")), 0);
    }
}
