//! Every step of the script language, and what is said about scripts that are wrong.

mod common;

use common::{Peer, text};
use mcp_fake_server::{ChildKind, Output, Script};
use serde_json::{Value, json};

/// A script that does its own handshake, so that it starts at once.
fn probe(steps: Value) -> Peer {
    Peer::scripted(json!({"era": "probe", "steps": steps}))
}

fn call(peer: &mut Peer, id: impl Into<Value>, text: &str) {
    peer.post_modern(
        id,
        "tools/call",
        json!({"name": "echo", "arguments": {"text": text}}),
    );
}

#[test]
fn output_steps_write_exactly_their_bytes() {
    let mut peer = probe(json!([
        "banner",
        {"raw": "a"},
        {"raw_b64": "//4="},
        {"repeat": {"text": "ab", "count": 2}},
        {"repeat_line": {"text": "l", "count": 2}},
        {"stderr": "oops\n"},
        {"stderr_b64": "/w=="},
        {"stderr_bytes": 81},
        {"exit": 7},
        "never",
    ]));
    let noise = format!("{}\n\n", ".".repeat(79)).into_bytes();
    assert_eq!(
        peer.outputs(),
        [
            Output::Stdout(b"banner\n".to_vec()),
            Output::Stdout(b"a".to_vec()),
            Output::Stdout(vec![0xff, 0xfe]),
            Output::Stdout(b"abab".to_vec()),
            Output::Stdout(b"l\nl\n".to_vec()),
            Output::Stderr(b"oops\n".to_vec()),
            Output::Stderr(vec![0xff]),
            Output::Stderr(noise),
            Output::Exit(7),
        ]
    );
}

#[test]
fn process_steps_become_outputs() {
    let mut peer = probe(json!([
        {"ignore_sigterm": true},
        {"spawn_child": "holds_pipes"},
        {"spawn_child": "own_session"},
        {"stop_reading": true},
        {"close_stdin_read": true},
        {"close_stdout": true},
        {"kill": true},
        "never",
    ]));
    assert_eq!(
        peer.outputs(),
        [
            Output::IgnoreSigterm,
            Output::SpawnChild {
                kind: ChildKind::HoldsPipes
            },
            Output::SpawnChild {
                kind: ChildKind::OwnSession
            },
            Output::StopReading,
            Output::CloseStdin,
            Output::CloseStdout,
            Output::Kill,
        ]
    );
    call(&mut peer, 1, "unread");
    peer.eof();
    assert_eq!(
        (peer.outputs(), peer.server.received()),
        (vec![], &[] as &[Value])
    );
}

#[test]
fn on_waits_and_placeholders_name_what_came() {
    let mut peer = probe(json!([
        {"on": "tools/call", "as": "a"},
        {"on": "tools/call", "as": "b"},
        {"on": "notifications/cancelled", "as": "c"},
        "$ID $ID(a) $ID(b) $ID(c) $ID_STR $ARG(a) $PTOKEN $SUBID $N $N",
        "$N",
    ]));
    peer.post_modern("s", "subscriptions/listen", json!({"notifications": {}}));
    assert_eq!(
        peer.messages().len(),
        1,
        "the built-in behaviour acknowledges"
    );
    call(&mut peer, "x", "a\"");
    let params = json!({"name": "echo", "_meta": {"progressToken": 5}});
    peer.post_modern(2, "tools/call", params);
    assert_eq!(peer.stdout(), "");
    peer.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled"}));
    assert_eq!(peer.stdout(), "2 \"x\" 2 null \"2\" a\\\" 5 \"s\" 1 1\n2\n");
    // The steps are over: the built-in behaviour answers.
    call(&mut peer, 3, "later");
    assert_eq!(text(&peer.messages()[0]), "later");
}

#[test]
fn where_narrows_what_a_step_waits_for() {
    let mut peer = probe(json!([
        {"on": "tools/list", "where": {"params.cursor": "", "params._meta.io.modelcontextprotocol/protocolVersion": "2026-07-28"}},
        "found",
        {"on": "tools/list", "where": {"params.cursor": null}},
        "absent",
    ]));
    let listed = peer.modern(1, "tools/list", json!({}));
    assert_eq!(
        listed["result"]["tools"],
        json!([{"name": "echo", "inputSchema": {"type": "object"}}])
    );
    peer.post_modern(2, "tools/list", json!({"cursor": ""}));
    assert_eq!(peer.stdout(), "found\n");
    peer.post_modern(3, "tools/list", json!({}));
    assert_eq!(peer.stdout(), "absent\n");
}

#[test]
fn the_handshake_comes_before_the_steps() {
    let document = |era: &str| json!({"era": era, "options": {"tools": ["own"]}, "steps": ["first", {"on": "tools/call"}, "second"]});
    let mut peer = Peer::scripted(document("modern"));
    assert_eq!(peer.outputs(), [], "nothing before discovery");
    peer.post_modern(1, "server/discover", json!({}));
    let out = peer.stdout();
    let (discovered, first) = out.split_once('\n').expect("two lines");
    let discovered: Value = serde_json::from_str(discovered).expect("JSON");
    assert_eq!(
        discovered["result"]["capabilities"],
        json!({"tools": {"listChanged": true}})
    );
    assert_eq!(first, "first\n");
    let listed = peer.modern(2, "tools/list", json!({}));
    assert_eq!(
        listed["result"]["tools"][1],
        json!({"name": "own", "inputSchema": {"type": "object"}})
    );

    // Without discovery the first message starts them, and still meets them.
    let mut peer = Peer::scripted(document("modern"));
    call(&mut peer, 1, "x");
    assert_eq!(peer.stdout(), "first\nsecond\n");

    let mut peer = Peer::scripted(document("legacy"));
    assert_eq!(
        peer.request(1, "server/discover", json!({}))["error"]["code"],
        -32601
    );
    peer.initialize_quietly();
    assert_eq!(peer.stdout().lines().last(), Some("first"));
}

impl Peer {
    fn initialize_quietly(&mut self) {
        let client = json!({"name": "test", "version": "0"});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        self.post("init", "initialize", params);
    }
}

#[test]
fn a_scripted_handshake_is_left_to_the_script() {
    let mut peer = Peer::scripted(json!({
        "era": "legacy",
        "steps": [{"on": "server/discover"}, "«METHOD_NOT_FOUND»", {"on": "initialize"}, "«GOOD_INIT»"],
    }));
    assert_eq!(
        peer.modern(1, "server/discover", json!({}))["error"]["message"],
        "Method not found"
    );
    assert_eq!(
        peer.initialize("2025-11-25", json!({}))["result"]["serverInfo"]["name"],
        "fake"
    );
    // No `notifications/initialized` is asked for: the script is in charge of the order.
    assert_eq!(
        peer.request(3, "tools/list", json!({}))["result"]["tools"][0]["name"],
        "echo"
    );
    peer.post(4, "server/discover", json!({}));
    assert_eq!(peer.outputs(), [], "no step answers it again");
}

#[test]
fn sleep_keeps_what_the_script_waits_for_next() {
    let mut peer = probe(
        json!([{"sleep_ms": 50}, "slept", {"on": "tools/call"}, "called $ID", {"sleep_ms": 50}, "end"]),
    );
    call(&mut peer, 1, "kept");
    assert_eq!(
        peer.modern(2, "tools/list", json!({}))["id"],
        2,
        "not waited for: answered at once"
    );
    call(&mut peer, 3, "kept too, in vain");
    peer.wait(50);
    assert_eq!(peer.stdout(), "slept\ncalled 1\n");
    peer.wait(50);
    let out = peer.stdout();
    let (end, answer) = out.split_once('\n').expect("two lines");
    assert_eq!(end, "end");
    assert!(answer.contains("kept too, in vain"), "{answer}");
}

#[test]
fn loops_count_and_timers_are_exact() {
    let mut peer = probe(
        json!([{"loop": {"every_ms": 10, "emit": "l$N", "count": 3}}, "done", {"loop": {"every_ms": 20, "emit": ["e$N", {"raw": "."}]}}, "never"]),
    );
    assert_eq!(peer.stdout(), "l1\n");
    // One late tick does what three punctual ones do: the second loop starts at 20 ms.
    peer.wait(50);
    assert_eq!(peer.stdout(), "l2\nl3\ndone\ne1\n.e2\n.");
    assert_eq!(
        peer.server.poll_timeout().map(|due| due.as_millis()),
        Some(60)
    );
    call(&mut peer, 1, "still served");
    assert_eq!(text(&peer.messages()[0]), "still served");
}

#[test]
fn optional_on_goes_on_without_a_match() {
    let steps = json!([
        {"optional_on": "tools/list", "within_ms": 300, "as": "l"},
        "went on",
        {"if_seen": "l", "emit": ["seen $ID(l)"]},
    ]);
    let mut peer = probe(steps.clone());
    peer.wait(299);
    assert_eq!(peer.stdout(), "");
    peer.wait(1);
    assert_eq!(peer.stdout(), "went on\n");
    let mut peer = probe(steps);
    peer.post_modern(4, "tools/list", json!({}));
    assert_eq!(peer.stdout(), "went on\nseen 4\n");
}

#[test]
fn on_each_answers_until_a_step_waits_for_the_same() {
    let mut peer = probe(json!([
        {"on_each": "tools/list", "emit": ["$ID:$N"]},
        {"on": "tools/call"},
        {"sleep_ms": 1},
        "call $ID",
        {"on": "tools/list"},
        "step $ID",
        {"on_each": "tools/list", "emit": [], "where": {"params.cursor": "quiet"}},
    ]));
    for id in [1, 2] {
        peer.post_modern(id, "tools/list", json!({}));
    }
    assert_eq!(peer.stdout(), "1:1\n2:2\n");
    call(&mut peer, 3, "");
    peer.post_modern(7, "tools/list", json!({}));
    peer.wait(1);
    assert_eq!(peer.stdout(), "7:3\ncall 3\n", "its id is its own");
    peer.post_modern(4, "tools/list", json!({}));
    assert_eq!(peer.stdout(), "step 4\n");
    peer.post_modern(5, "tools/list", json!({"cursor": "quiet"}));
    peer.post_modern(6, "tools/list", json!({}));
    assert_eq!(peer.stdout(), "6:4\n");
}

#[test]
fn on_response_waits_for_that_id() {
    let mut peer =
        probe(json!([{"raw": ""}, {"on_response": "srv-1"}, "one", {"on_response": 2}, "two"]));
    peer.send(json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    peer.send(json!({"jsonrpc": "2.0", "id": "srv-1", "error": {"code": 1, "message": ""}}));
    assert_eq!(peer.stdout(), "one\n");
    peer.send(json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    assert_eq!(peer.stdout(), "two\n");
    assert_eq!(peer.server.failures(), [] as [&str; 0]);
}

#[test]
fn hang_is_silent_and_survives_the_end_of_input() {
    let mut peer = Peer::scripted(
        json!({"era": "modern", "steps": [{"on": "tools/call"}, {"hang": true}, "never"]}),
    );
    peer.post_modern(
        1,
        "tools/call",
        json!({"name": "slow", "arguments": {"ms": 5}}),
    );
    call(&mut peer, 2, "x");
    peer.wait(1_000);
    peer.eof();
    assert_eq!((peer.outputs(), peer.server.poll_timeout()), (vec![], None));
}

#[test]
fn the_end_of_input_ends_the_process_unless_told_otherwise() {
    let mut peer = Peer::new(Script::modern());
    peer.bytes(b"{\"half\":");
    peer.eof();
    peer.eof();
    assert_eq!(peer.outputs(), [Output::Exit(0)]);
    let mut peer = probe(json!([{"ignore_stdin_eof": true}, {"sleep_ms": 10}, "alive"]));
    peer.eof();
    peer.wait(10);
    assert_eq!(peer.stdout(), "alive\n");
}

/// Runs steps against a conversation; gives the broken assertions and the exit code at the end.
fn judge(steps: Value, talk: impl FnOnce(&mut Peer)) -> (Vec<String>, Option<i32>) {
    let mut peer = probe(steps);
    talk(&mut peer);
    peer.eof();
    let exit = peer.outputs().into_iter().find_map(|output| match output {
        Output::Exit(code) => Some(code),
        _ => None,
    });
    (peer.server.failures().to_vec(), exit)
}

fn broken(what: &str, code: i32) -> (Vec<String>, Option<i32>) {
    (vec![what.to_owned()], Some(code))
}

#[test]
fn assertions_hold_or_are_reported() {
    let good = (vec![], Some(0));
    let list = |peer: &mut Peer| peer.post_modern("l", "tools/list", json!({}));
    let ping = |peer: &mut Peer| peer.post_modern("p", "ping", json!({}));

    let forbid = json!([{"on": "ping"}, {"forbid": "ping"}]);
    assert_eq!(
        judge(forbid.clone(), |peer| {
            ping(peer);
            list(peer);
        }),
        good
    );
    let verdict = judge(forbid, |peer| {
        ping(peer);
        peer.post_modern("q", "ping", json!({}));
    });
    assert_eq!(
        verdict,
        broken("the client sent ping, which is forbidden", 99)
    );

    let order = json!([{"forbid_before": ["tools/list", "ping"]}]);
    assert_eq!(
        judge(order.clone(), |peer| {
            ping(peer);
            list(peer);
        }),
        good
    );
    assert_eq!(
        judge(order, |peer| {
            list(peer);
            ping(peer);
        }),
        broken("the client sent tools/list before ping", 99)
    );
    let late = json!([{"on": "tools/list"}, {"forbid_before": ["tools/list", "ping"]}]);
    assert_eq!(
        judge(late, list),
        broken("the client sent tools/list before ping", 99)
    );

    let next =
        json!([{"sleep_ms": 5}, {"expect_next": "ping", "else_exit": 4, "as": "p"}, "$ID(p)"]);
    assert_eq!(
        judge(next.clone(), |peer| {
            ping(peer);
            peer.wait(5);
            assert_eq!(peer.stdout(), "\"p\"\n");
        }),
        good
    );
    let verdict = judge(next, |peer| {
        list(peer);
        ping(peer);
        peer.wait(5);
    });
    assert_eq!(
        verdict,
        broken(
            "steps[1]: expected ping next, the client sent tools/list",
            4
        )
    );
    let lenient = json!([{"expect_next": "ping"}]);
    assert_eq!(
        judge(lenient, list),
        broken(
            "steps[0]: expected ping next, the client sent tools/list",
            99
        )
    );

    let quiet = json!([{"assert_no_input_ms": 20}, {"on": "ping"}, "pong"]);
    assert_eq!(
        judge(quiet.clone(), |peer| {
            peer.wait(20);
            ping(peer);
            assert_eq!(peer.stdout(), "pong\n");
        }),
        good
    );
    let verdict = judge(quiet, |peer| {
        peer.wait(19);
        ping(peer);
    });
    assert_eq!(
        verdict,
        broken(
            "steps[0]: the client sent ping where it had to be silent",
            99
        )
    );
}

#[test]
fn a_restarted_process_runs_its_own_steps() {
    let script = Script::from_json(r#"{"era":"probe","steps":[{"exit":1}],"respawn":["again"]}"#)
        .expect("a good script");
    assert_eq!(Peer::new(script.clone()).outputs(), [Output::Exit(1)]);
    assert_eq!(Peer::new(script.respawned()).stdout(), "again\n");
    let same = Script::modern()
        .with_steps_json(r#"[{"exit":2}]"#)
        .expect("good steps");
    assert!(!same.has_respawn());
    assert_eq!(same.respawned().era(), mcp_fake_server::Era::Modern);
}

#[test]
fn r110_broken_scripts_say_where_and_what() {
    let broken = [
        r#"[]"#,
        r#"{"stpes":[]}"#,
        r#"{"era":"future"}"#,
        r#"{"era":1}"#,
        r#"{"era":"legacy","protocol_version":"2026-07-28"}"#,
        r#"{"protocol_version":"2025-11-25"}"#,
        r#"{"options":{"pagesize":1}}"#,
        r#"{"options":{"page_size":0}}"#,
        r#"{"options":{"tools":["a",1]}}"#,
        r#"{"options":{"cache_scope":"shared"}}"#,
        r#"{"steps":{}}"#,
        r#"{"steps":["ok",7]}"#,
        r#"{"steps":["ok",{}]}"#,
        r#"{"steps":["ok",{"on":1}]}"#,
        r#"{"steps":["ok",{"on":"a","within_ms":5}]}"#,
        r#"{"steps":["ok",{"on":"a","raw":"b"}]}"#,
        r#"{"steps":["ok",{"on":"a","where":[]}]}"#,
        r#"{"steps":["ok",{"optional_on":"a","within_ms":-1}]}"#,
        r#"{"steps":["ok",{"raw_b64":"?"}]}"#,
        r#"{"steps":["ok",{"repeat":{"text":"x"}}]}"#,
        r#"{"steps":["ok",{"repeat":{"count":1000000000,"text":"x"}}]}"#,
        r#"{"steps":["ok",{"stderr_bytes":1000000000}]}"#,
        r#"{"steps":["ok",{"exit":256}]}"#,
        r#"{"steps":["ok",{"hang":false}]}"#,
        r#"{"steps":["ok",{"spawn_child":"daemon"}]}"#,
        r#"{"steps":["ok",{"loop":{"emit":"x","every_ms":0}}]}"#,
        r#"{"steps":["ok",{"loop":{"emit":"x","every_ms":1,"times":2}}]}"#,
        r#"{"steps":["ok",{"on_each":"a"}]}"#,
        r#"{"steps":["ok",{"emit":[{"sleep_ms":1}],"on_each":"a"}]}"#,
        r#"{"steps":["ok",{"emit":["x","$ID(z)"],"on_each":"a"}]}"#,
        r#"{"steps":["ok",{"emit":"x","if_seen":"z"}]}"#,
        r#"{"steps":["ok",{"forbid_before":["a"]}]}"#,
        r#"{"steps":["ok",{"on_response":null}]}"#,
        r#"{"steps":["ok","$ID(z)"]}"#,
        r#"{"steps":["ok","$ARG(z"]}"#,
        r#"{"steps":["ok","«GOOD»"]}"#,
        r#"{"respawn":[{"sleep":1}]}"#,
        r#"{"era":"#,
    ];
    let mut report = String::new();
    for document in broken {
        let error = Script::from_json(document).expect_err("a broken script");
        report.push_str(&format!("{document}\n    {error}\n"));
    }
    insta::assert_snapshot!(report);
}
