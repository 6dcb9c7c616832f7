//! Scenes of generated servers: streams in pieces, over several rounds, and lists of tools that change.

use serde_json::{Value, json};

use super::CHECKPOINT;
use crate::world::{Choice, pick};

/// What the text pieces of a stream say, in order.
const WORDS: [&str; 4] = ["one ", "two ", "thrée ", "four"];

/// A server's turn in a call of `talk`: pieces of its text, and how they end.
fn turn(choice: &mut dyn Choice) -> Vec<Value> {
    let count = choice.choose(5) as usize;
    let mut steps: Vec<Value> = WORDS[..count.min(WORDS.len())]
        .iter()
        .enumerate()
        .map(|(at, word)| piece(choice, at, word))
        .collect();
    if choice.one_in(8) {
        // More than the text may be.
        steps.push(piece(choice, 5, &"x".repeat(3_900)));
    }
    if choice.one_in(6) {
        steps.push(json!({"sleep_ms": choice.choose(6_000)}));
    }
    let said = WORDS[..count.min(WORDS.len())].concat();
    match choice.choose(9) {
        0 | 1 => steps.push(answer(&said)),
        2 => steps.push(answer(&format!("{said}and more"))),
        3 => steps.push(answer("another text")),
        4 | 5 => steps.push(json!(super::server::ASKS)),
        6 => steps.push(json!({"exit": choice.choose(2)})),
        7 => steps.push(json!(WAITS)),
        _ => {}
    }
    steps
}

/// Comes again without having asked anything.
const WAITS: &str =
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","requestState":"later"}}"#;

fn piece(choice: &mut dyn Choice, at: usize, text: &str) -> Value {
    let mut params = json!({"progress": at + 1, "message": text});
    match choice.choose(4) {
        0 => params["_meta"] = json!({CHECKPOINT: format!("t{at}")}),
        1 if at > 0 => params["_meta"] = json!({CHECKPOINT: "t0"}),
        _ => {}
    }
    let mut line = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
    // A placeholder is no string: whatever the client sent has to come back.
    line["params"]["progressToken"] = json!("TOKEN");
    json!(line.to_string().replace("\"TOKEN\"", "$PTOKEN"))
}

fn answer(text: &str) -> Value {
    let content = json!([{"type": "text", "text": text}]);
    let result = json!({"resultType": "complete", "content": content});
    json!(format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{result}}}"#))
}

/// The steps of a server that streams: some turns in order, and one for whatever comes after them.
pub(super) fn streams(choice: &mut dyn Choice) -> Vec<Value> {
    let talk = json!({"params.name": "talk"});
    // Only what is said at once may be said again and again.
    let mut after = turn(choice);
    after.retain(|step| step.get("sleep_ms").is_none());
    if after.is_empty() {
        after.push(answer("at last"));
    }
    let mut steps = vec![json!({"on_each": "tools/call", "where": talk, "emit": after})];
    for _ in 0..choice.choose(4) {
        steps.push(json!({"on": "tools/call", "where": talk}));
        steps.extend(turn(choice));
    }
    steps
}

/// What `sums` says it answers with.
const SUMS: &str = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
/// Output schemas that are refused: no schema, nothing but itself, too much work.
const REFUSED: [&str; 3] = [
    r#"{"type":7}"#,
    r##"{"$ref":"#"}"##,
    r##"{"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},"b":{"allOf":[{"$ref":"#/$defs/c"},{"$ref":"#/$defs/c"}]},"c":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}"##,
];
/// What a call of either is answered with.
const STRUCTURED: [&str; 5] = [
    r#""structuredContent":{"n":1},"#,
    r#""structuredContent":{"n":"x"},"#,
    "",
    r#""structuredContent":null,"#,
    r#""structuredContent":{"n":2},"isError":true,"#,
];

/// The steps of a server whose list names tools with output schemas, and may be another one each time.
pub(super) fn lists(choice: &mut dyn Choice) -> Vec<Value> {
    let mut steps = Vec::new();
    let changes = choice.one_in(2);
    let description = if changes { "v$N" } else { "v" };
    let vague = *pick(choice, &REFUSED);
    let plain = ["echo", "slow", "ask", "talk"];
    let plain = plain.map(|name| {
        format!(
            r#"{{"name":"{name}","inputSchema":{{"type":"object"}},"description":"{description}"}}"#
        )
    });
    let with = |name: &str, schema: &str| {
        format!(r#"{{"name":"{name}","inputSchema":{{}},"outputSchema":{schema}}}"#)
    };
    let mut tools = Vec::from(plain);
    tools.extend([with("sums", SUMS), with("vague", vague)]);
    if choice.one_in(3) {
        tools.push(r#"{"name":"new-$N","inputSchema":{}}"#.into());
    }
    let tools = tools.join(",");
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"resultType":"complete","tools":[{tools}]}}}}"#
    );
    steps.push(json!({"on_each": "tools/list", "emit": line}));
    let structured = *pick(choice, &STRUCTURED);
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":$ID,"result":{{{structured}"resultType":"complete","content":[]}}}}"#
    );
    for name in ["sums", "vague"] {
        steps.push(json!({"on_each": "tools/call", "where": {"params.name": name}, "emit": line}));
    }
    if choice.one_in(2) {
        let every = 1 + choice.choose(900);
        steps.push(
            json!({"loop": {"every_ms": every, "count": 1 + choice.choose(6), "emit": ANNOUNCES}}),
        );
    }
    steps
}

/// Something changed, whatever it was.
const ANNOUNCES: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
