//! What holds for every conversation.

mod common;

use std::time::Duration;

use common::Peer;
use mcp_fake_server::{FakeServer, Input, LegacyVersion, Output, Script};
use proptest::prelude::*;
use serde_json::json;

fn scripts() -> Vec<Script> {
    let script = json!({
        "era": "probe",
        "steps": [
            "hello",
            {"on_each": "ping", "emit": ["pong $ID $N"]},
            {"on": "tools/call", "as": "a"},
            {"sleep_ms": 7},
            "called $ID(a) $ARG(a)",
            {"optional_on": "tools/list", "within_ms": 9},
            {"loop": {"every_ms": 3, "emit": "l$N", "count": 4}},
            {"expect_next": "tools/call"},
            {"stderr_bytes": 5},
        ],
    });
    vec![
        Script::modern(),
        Script::legacy(LegacyVersion::V2025_03_26),
        Script::dual().with_page_size(3),
        Script::from_json(&script.to_string()).expect("a good script"),
    ]
}

/// Client lines of every kind: good, late, broken.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    });
    let tools = prop::sample::select(vec![
        "echo",
        "slow",
        "progress",
        "touch_list",
        "ask",
        "exit",
        "fail",
    ]);
    let arguments = json!({"text": "\u{e9}\"", "ms": 5, "steps": 3, "everyMs": 2});
    let call_meta = meta.clone();
    let call = (0..50_u32, tools).prop_map(move |(id, tool)| {
        let params = json!({"name": tool, "arguments": arguments, "_meta": call_meta});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
    });
    let methods = prop::sample::select(vec![
        "server/discover",
        "ping",
        "tools/list",
        "prompts/list",
        "subscriptions/listen",
    ]);
    let request = (0..50_u32, methods).prop_map(move |(id, method)| {
        let params = json!({"_meta": meta, "notifications": {"toolsListChanged": true}});
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
    });
    let init = Just(
        json!({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": {
        "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {}}})
        .to_string(),
    );
    let other = prop::sample::select(vec![
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#
            .to_owned(),
        r#"{"jsonrpc":"2.0","id":"fake-1","result":{"action":"cancel"}}"#.to_owned(),
        "{\"id\":1".to_owned(),
        "[]".to_owned(),
        String::new(),
    ]);
    prop_oneof![
        4 => call.prop_map(String::into_bytes),
        3 => request.prop_map(String::into_bytes),
        1 => init.prop_map(String::into_bytes),
        2 => other.prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>().prop_filter("a line", |byte| *byte != b'\n'), 0..20),
    ]
}

/// Bytes in pieces, each followed by some milliseconds, then the end.
fn play(script: Script, pieces: &[(&[u8], u64)]) -> (Vec<Output>, Vec<String>, usize) {
    let mut server = FakeServer::new(script);
    let mut outputs = Vec::new();
    let mut now = Duration::ZERO;
    for (bytes, millis) in pieces {
        server.handle(Input::Bytes(bytes), now);
        outputs.extend(std::iter::from_fn(|| server.poll_output()));
        now += Duration::from_millis(*millis);
    }
    server.handle(Input::Eof, now);
    outputs.extend(std::iter::from_fn(|| server.poll_output()));
    (
        outputs,
        server.failures().to_vec(),
        server.raw_lines().len(),
    )
}

proptest! {
    /// How the client's bytes are split changes nothing.
    #[test]
    fn any_split_of_the_input_gives_the_same_outputs(
        talk in prop::collection::vec((line(), 0..12_u64), 0..12),
        sizes in prop::collection::vec(1..9_usize, 1..40),
    ) {
        let lines: Vec<(Vec<u8>, u64)> = talk
            .into_iter()
            .map(|(mut line, wait)| { line.push(b'\n'); (line, wait) })
            .collect();
        for script in scripts() {
            let whole: Vec<(&[u8], u64)> = lines.iter().map(|(line, wait)| (line.as_slice(), *wait)).collect();
            let mut sizes = sizes.iter().copied().cycle();
            let mut split = Vec::new();
            for (line, wait) in &lines {
                let mut rest = line.as_slice();
                while !rest.is_empty() {
                    let size = sizes.next().unwrap_or(1).min(rest.len());
                    let (head, tail) = rest.split_at(size);
                    split.push((head, if tail.is_empty() { *wait } else { 0 }));
                    rest = tail;
                }
            }
            prop_assert_eq!(play(script.clone(), &whole), play(script, &split));
        }
    }

    /// One late tick does what punctual ticks do, and afterwards nothing is due.
    #[test]
    fn late_timers_fire_in_the_order_of_their_times(
        lines in prop::collection::vec(line(), 0..12),
        late in 1..60_u64,
    ) {
        for script in scripts() {
            let mut punctual = Peer::new(script.clone());
            let mut tardy = Peer::new(script);
            for line in &lines {
                punctual.bytes(line);
                punctual.bytes(b"\n");
                tardy.bytes(line);
                tardy.bytes(b"\n");
            }
            let end = Duration::from_millis(late);
            while let Some(due) = punctual.server.poll_timeout().filter(|due| *due <= end) {
                punctual.server.handle(Input::Tick, due);
            }
            tardy.server.handle(Input::Tick, end);
            prop_assert_eq!(punctual.outputs(), tardy.outputs());
            prop_assert_eq!(punctual.server.failures(), tardy.server.failures());
            prop_assert!(tardy.server.poll_timeout().is_none_or(|due| due > end));
        }
    }
}
