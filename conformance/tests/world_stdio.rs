//! What comes over standard output, byte by byte (R60, R61, R62, R100).

mod world_support;

use mcp_proto::config::StdoutNoise;
use mcp_proto::{ErrorKind, Operation, Ran, Request, Violation};
use world_support::*;

const ANSWER: &str = r#""«OK_RESULT»""#;

/// A server that emits this before it answers a call.
fn before_the_answer(emitted: &str) -> conformance::world::World {
    modern(&format!(r#"[{{"on":"tools/call"}},{emitted},{ANSWER}]"#))
}

/// R62: text that is no message is counted and kept, answers nothing and is never glued to the answer.
#[test]
fn noise_is_counted_and_answers_nothing() {
    for (lines, emitted) in [
        (1, r#""Fake server v1.2.3 running on stdio""#),
        (1, r#""🚀 Starting 🚀🚀""#),
        (1, r#""\u001b[32m[info]\u001b[39m handling\u001b[0m""#),
        (3, r#""{ device: 'a1',","  size: { w: 1 },","}""#),
        (
            1,
            r#""{\"level\":\"info\",\"msg\":\"a log record in JSON\"}""#,
        ),
        (1, r#"{"raw_b64":"//4gbG9nIIAK"}"#),
        (300, r#"{"repeat_line":{"text":"debug","count":300}}"#),
    ] {
        let mut world = before_the_answer(emitted);
        assert_eq!(call(&mut world).text(), "ok", "{emitted}");
        assert_eq!(counters(&world).noise_lines, lines, "{emitted}");
        assert_eq!(degraded(&world), Some(Violation::Noise), "{emitted}");
        let noise = world.client.diagnoses()[0].noise.join("\n");
        assert!(!noise.is_empty() && !noise.contains('\u{1b}'), "{noise:?}");
        close(world);
    }
}

/// R62: noise before the first message is a banner; with `"tolerate"` it is later as well.
#[test]
fn banners_do_not_degrade() {
    let banner = r#"["Welcome",{"on":"server/discover"},"Ready!","«GOOD_DISCOVER»"]"#;
    let mut world = probe(peer("srv"), banner);
    assert_eq!(call(&mut world).text(), "hi");
    assert_eq!((counters(&world).noise_lines, degraded(&world)), (2, None));
    close(world);

    let mut world = modern_with(
        |peer| peer.stdout_noise = StdoutNoise::Tolerate,
        &format!(r#"[{{"on":"tools/call"}},"noise",{ANSWER}]"#),
    );
    assert_eq!(call(&mut world).text(), "ok");
    assert_eq!((counters(&world).noise_lines, degraded(&world)), (1, None));
    close(world);
}

/// R100: a byte order mark, CRLF and blank lines are no violation.
#[test]
fn byte_order_mark_and_line_ends_are_accepted() {
    let steps = r#"[{"on":"server/discover"},{"raw":"\ufeff"},"«GOOD_DISCOVER»\r",{"on":"tools/call"},{"raw":"\r\n\n  \n"},"«OK_RESULT»\r"]"#;
    let mut world = probe(allowed("srv"), steps);
    let list = run(&mut world, Operation::new(Request::ListTools).on("srv"));
    assert!(matches!(list.outcome, mcp_proto::Outcome::Complete(_)));
    assert_eq!(call(&mut world).text(), "ok");
    assert_eq!((counters(&world).noise_lines, degraded(&world)), (0, None));
    close(world);
}

/// R60, R61: each way of breaking the envelope or the result fails the call at once, typed, degrades the
/// peer with the first reason, and harms no later call.
#[test]
fn every_violation_fails_its_call_at_once_and_no_other() {
    use Violation as V;
    for (violation, line) in [
        (
            V::Batch,
            r#"[{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[]},"error":null}]"#,
        ),
        (
            V::DuplicateMember,
            r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"content":[]}}"#,
        ),
        (
            V::BothResultAndError,
            r#"{"jsonrpc":"2.0","id":$ID,"result":{},"error":null}"#,
        ),
        (V::NeitherResultNorError, r#"{"jsonrpc":"2.0","id":$ID}"#),
        (
            V::MalformedError,
            r#"{"jsonrpc":"2.0","id":$ID,"error":"it failed"}"#,
        ),
        (
            V::MalformedError,
            r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":"1","message":"x"}}"#,
        ),
        (
            V::ResultNotObject,
            r#"{"jsonrpc":"2.0","id":$ID,"result":"ok"}"#,
        ),
        (
            V::ResultNotObject,
            r#"{"jsonrpc":"2.0","id":$ID,"result":null}"#,
        ),
        (
            V::WrongJsonrpc,
            r#"{"id":$ID,"result":{"resultType":"complete","content":[]}}"#,
        ),
        (V::WrongJsonrpc, r#"{"jsonrpc":"1.0","id":$ID,"result":{}}"#),
        (
            V::NotJson,
            r#"{"jsonrpc":"2.0","id":$ID,"result":{"value":NaN}}"#,
        ),
        (
            V::ResultTypeMissing,
            r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}"#,
        ),
        (
            V::ResultTypeMissing,
            r#"{"jsonrpc":"2.0","id":$ID,"result":{"temperature":21}}"#,
        ),
        (
            V::ResultTypeUnknown,
            r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"partial","content":[]}}"#,
        ),
        (
            V::MalformedResult,
            r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","structuredContent":{}}}"#,
        ),
        (
            V::MalformedResult,
            r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","toolResult":"x"}}"#,
        ),
        (
            V::MalformedResult,
            r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[],"isError":"no"}}"#,
        ),
        (
            V::MalformedContent,
            r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":["x"]}}"#,
        ),
        (
            V::MalformedContent,
            r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[{"type":"text"}]}}"#,
        ),
        (
            V::InputRequiredInvalid,
            r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required"}}"#,
        ),
        (
            V::InputNotDeclared,
            r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list","params":{}}}}}"#,
        ),
    ] {
        let line = serde_json::Value::from(line).to_string();
        let mut world = modern(&format!(
            r#"[{{"on":"tools/call"}},{line},{{"on":"tools/call"}},{ANSWER}]"#
        ));
        assert_fails(&mut world, echo(), ErrorKind::SchemaViolation, Ran::Maybe);
        assert_eq!(degraded(&world), Some(violation), "{line}");
        assert_eq!(world.now().as_nanos(), 0, "{line}");
        assert_eq!(call(&mut world).text(), "ok", "{line}");
        assert_eq!(degraded(&world), Some(violation), "sticky: {line}");
        close(world);
    }
}

/// R61: the first reason sticks, whatever else is broken later.
#[test]
fn the_first_violation_sticks() {
    let mut world = modern(
        r#"[{"on":"tools/call"},"{\"jsonrpc\":\"2.0\",\"id\":$ID}",
            {"on":"tools/call"},"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":7}"]"#,
    );
    for _ in 0..2 {
        assert_fails(&mut world, echo(), ErrorKind::SchemaViolation, Ran::Maybe);
        assert_eq!(degraded(&world), Some(Violation::NeitherResultNorError));
    }
    assert_eq!(counters(&world).violations, 2);
    close(world);
}

/// R61: calls to a degraded peer are refused where the configuration says so, before anything is sent.
#[test]
fn a_degraded_peer_can_be_refused() {
    let mut world = modern_with(
        |peer| peer.refuse_degraded = true,
        r#"[{"on":"tools/call"},"{\"jsonrpc\":\"2.0\",\"id\":$ID}"]"#,
    );
    assert_fails(&mut world, echo(), ErrorKind::SchemaViolation, Ran::Maybe);
    assert_fails(&mut world, echo(), ErrorKind::Degraded, Ran::No);
    let sent = close(world).sent_to("srv");
    assert_eq!(sent.matches(r#""method":"tools/call""#).count(), 1);
}

/// R61: JSON-RPC errors and `isError` results do not degrade; code, message and data arrive unchanged.
#[test]
fn errors_of_the_server_do_not_degrade() {
    let mut world = modern(
        r#"[{"on":"tools/call"},"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{\"code\":-32001,\"message\":\"no\",\"data\":{\"a\":1}}}",
            {"on":"tools/call"},"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"resultType\":\"complete\",\"content\":[],\"isError\":true}}"]"#,
    );
    let error = assert_fails(&mut world, echo(), ErrorKind::Rpc, Ran::Maybe);
    let mcp_proto::error::Cause::Rpc(rpc) = error.cause else {
        unreachable!()
    };
    assert_eq!(
        (rpc.code, rpc.message.as_str(), rpc.data.unwrap().as_str()),
        (-32001, "no", r#"{"a":1}"#)
    );
    assert!(call(&mut world).is_error);
    assert_eq!(degraded(&world), None);
    close(world);
}

/// R11, R81: an answer whose id is not ours in type and value answers nothing: the call waits on, and
/// the right answer still counts.
#[test]
fn answers_are_matched_by_type_and_value() {
    for id in ["$ID_STR", "0", "424242", r#"\"abc\""#, "-1"] {
        let emitted = format!(
            r#""{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"resultType\":\"complete\",\"content\":[]}}}}""#
        );
        let mut world = before_the_answer(&emitted);
        assert_eq!(call(&mut world).text(), "ok", "{id}");
        assert_eq!(counters(&world).unknown_answers, 1, "{id}");
        close(world);
    }
    // Alone, it is no answer either.
    let mut world = modern(
        r#"[{"on":"tools/call"},"{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"resultType\":\"complete\",\"content\":[]}}"]"#,
    );
    assert_fails(&mut world, echo(), ErrorKind::Timeout, Ran::Maybe);
    close(world);
}

/// R81: the second of two answers is counted and dropped.
#[test]
fn the_first_answer_counts() {
    let mut world = modern(
        r#"[{"on":"tools/call"},"«OK_RESULT»","{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{\"code\":0,\"message\":\"second\"}}"]"#,
    );
    assert_eq!(call(&mut world).text(), "ok");
    world.run_for(conformance::world::millis(1));
    assert_eq!((counters(&world).late_answers, degraded(&world)), (1, None));
    close(world);
}

/// R60: an error without an id, or with `null`, answers nobody.
#[test]
fn an_error_without_an_id_answers_nobody() {
    for id in ["", r#"\"id\":null,"#] {
        let emitted = format!(
            r#""{{\"jsonrpc\":\"2.0\",{id}\"error\":{{\"code\":-32600,\"message\":\"?\"}}}}""#
        );
        let mut world = before_the_answer(&emitted);
        assert_eq!(call(&mut world).text(), "ok");
        assert_eq!(
            (counters(&world).unknown_answers, degraded(&world)),
            (1, None)
        );
        close(world);
    }
}

/// R1: a long line within the limit arrives whole.
#[test]
fn two_hundred_kilobytes_arrive_whole() {
    let mut world = modern(
        r#"[{"on":"tools/call"},{"raw":"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\""},{"repeat":{"text":"x","count":200000}},{"raw":"\"}]}}\n"}]"#,
    );
    assert_eq!(call(&mut world).text().len(), 200_000);
    close(world);
}

/// R1: a line over the limit fails the call that it answers, typed and at once; its tail is not taken
/// for messages, and the next call is served.
#[test]
fn a_line_over_the_limit_fails_its_call_alone() {
    let mut world = modern_with(
        |peer| peer.limits.line_bytes = 2_000,
        r#"[{"on":"tools/call"},{"raw":"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\""},{"repeat":{"text":"x","count":5000}},{"raw":"\"}]}}\n"},{"on":"tools/call"},"«OK_RESULT»"]"#,
    );
    let error = assert_fails(&mut world, echo(), ErrorKind::Limit, Ran::Maybe);
    assert!(error.to_string().contains("2000"), "{error}");
    assert_eq!(world.now().as_nanos(), 0);
    assert_eq!(call(&mut world).text(), "ok");
    assert_eq!(counters(&world).noise_lines, 0);
    close(world);
}

/// R100: the last line may lack its line feed.
#[test]
fn an_unterminated_last_line_counts() {
    let mut world = modern(r#"[{"on":"tools/call"},{"raw":"«OK_RESULT»"},{"exit":0}]"#);
    assert_eq!(call(&mut world).text(), "ok");
    close(world);
}

/// R100: characters split over reads arrive whole, whatever the cut.
#[test]
fn split_characters_arrive_whole() {
    let steps = r#"[{"on":"tools/call"},"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"天気 🚀 é\"}]}}"]"#;
    let mut world = modern(steps).with_splits(conformance::world::Splits::OneByte);
    assert_eq!(call(&mut world).text(), "天気 🚀 é");
    close(world);
}

/// R60: half of a surrogate pair in a text is a malformed block, at once, and the connection survives.
#[test]
fn a_lone_surrogate_is_survived() {
    let mut world = modern(
        r#"[{"on":"tools/call"},"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"cut \\ud83d\"}]}}",{"on":"tools/call"},"«OK_RESULT»"]"#,
    );
    assert_fails(&mut world, echo(), ErrorKind::SchemaViolation, Ran::Maybe);
    assert_eq!(degraded(&world), Some(Violation::MalformedContent));
    assert_eq!(call(&mut world).text(), "ok");
    close(world);
}

/// R60: LSP framing is noise; the message inside is one all the same.
#[test]
fn content_length_framing_is_noise() {
    let mut world = before_the_answer(r#""Content-Length: 89\r","\r""#);
    assert_eq!(call(&mut world).text(), "ok");
    assert_eq!(counters(&world).noise_lines, 1);
    close(world);
}

/// R60: a request of the server is a violation in the modern era, and is never answered.
#[test]
fn a_modern_server_may_not_ask() {
    let mut world =
        before_the_answer(r#""{\"jsonrpc\":\"2.0\",\"id\":\"s1\",\"method\":\"roots/list\"}""#);
    assert_eq!(call(&mut world).text(), "ok");
    assert_eq!(degraded(&world), Some(Violation::ServerRequest));
    assert!(!close(world).sent_to("srv").contains("s1"));
}

/// R60: an older server may ask: `ping` is answered, the rest does not exist, ids keep their type.
#[test]
fn an_older_server_is_answered() {
    let mut world = legacy(
        r#"[{"on":"tools/call","as":"call"},
            "{\"jsonrpc\":\"2.0\",\"id\":\"s1\",\"method\":\"roots/list\"}",{"on_response":"s1"},
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}",{"on_response":7},
            "{\"jsonrpc\":\"2.0\",\"id\":$ID(call),\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"ok\"}]}}"]"#,
    );
    assert_eq!(call(&mut world).text(), "ok");
    assert_eq!(degraded(&world), None);
    let sent = close(world).sent_to("srv");
    assert!(
        sent.contains(r#""id":"s1","error":{"code":-32601"#),
        "{sent}"
    );
    assert!(
        sent.contains(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#),
        "{sent}"
    );
}

/// R17: the missing `resultType` of an older server means complete.
#[test]
fn an_older_result_has_no_type() {
    let mut world = legacy(r#"[{"on":"tools/call"},"«OK_RESULT_LEGACY»"]"#);
    assert_eq!(call(&mut world).text(), "ok");
    assert_eq!(degraded(&world), None);
    close(world);
}

/// R60: an error that answers a notification concerns nobody.
#[test]
fn an_error_in_answer_to_initialized_is_ignored() {
    let steps = r#"[{"on":"server/discover"},"«METHOD_NOT_FOUND»",{"on":"initialize"},"«GOOD_INIT»",
        {"on":"notifications/initialized"},"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32601,\"message\":\"Method not found\"}}"]"#;
    let mut world = probe(allowed("srv"), steps);
    assert_eq!(call(&mut world).text(), "hi");
    assert_eq!(
        (counters(&world).unknown_answers, degraded(&world)),
        (1, None)
    );
    close(world);
}

/// R60, R62: what is visibly no answer fails no call, however broken it is: the answer still counts.
#[test]
fn a_broken_line_that_is_no_answer_fails_no_call() {
    let lines = [
        // A notification with a token that JSON does not have.
        r#""{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progress\":NaN}}""#,
        // The same cut short, with an id that is not its own.
        r#""{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"id\":3,""#,
        // A request whose id is none.
        r#""{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}""#,
        r#""[]""#,
        // Text over the limit, and a notification over it.
        r#"{"repeat_line":{"text":"x","count":5000}}"#,
        r#"{"raw":"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"id\":3,\"data\":\""},{"repeat_line":{"text":"x","count":5000}}"#,
    ];
    for line in lines {
        let steps = format!(r#"[{{"on":"tools/call"}},{line},"«OK_RESULT»"]"#);
        let mut world = modern_with(|peer| peer.limits.line_bytes = 4_096, &steps);
        assert_eq!(call(&mut world).text(), "ok", "{line}");
        close(world);
    }
}

/// R90: a server that ends in the middle of a line has ended; it has not broken the protocol.
#[test]
fn the_beginning_of_a_last_line_is_no_violation() {
    let steps =
        r#"[{"on":"tools/call"},{"raw":"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"resu"},{"exit":3}]"#;
    let mut world = modern(steps);
    let error = assert_fails(&mut world, echo(), ErrorKind::Closed, Ran::Maybe);
    assert!(error.to_string().contains("status 3"), "{error}");
    assert_eq!(degraded(&world), None);
    close(world);
}

/// R1: the depth limit holds for the whole message, wherever it is nested.
#[test]
fn depth_is_limited_everywhere() {
    let deep = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let answers = [
        r#"\"error\":{\"code\":1,\"message\":\"m\",\"data\":DEEP}"#,
        r#"\"result\":{\"resultType\":\"complete\",\"content\":[],\"structuredContent\":DEEP}"#,
        r#"\"result\":{\"resultType\":\"complete\",\"content\":[],\"_meta\":{\"x\":DEEP}}"#,
        r#"\"result\":{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"t\",\"x\":DEEP}]}"#,
    ];
    for answer in answers {
        for (depth, is_deep) in [(100, false), (129, true), (50_000, true)] {
            let answer = answer.replace("DEEP", &deep(depth));
            let steps =
                format!(r#"[{{"on":"tools/call"}},"{{\"jsonrpc\":\"2.0\",\"id\":$ID,{answer}}}"]"#);
            let mut world = modern(&steps);
            let ended = run(&mut world, echo());
            let violated = matches!(&ended.outcome, mcp_proto::Outcome::Failed(error)
                if error.kind() == ErrorKind::SchemaViolation);
            assert_eq!(violated, is_deep, "{depth}: {:.300}", format!("{ended:?}"));
            assert_eq!(degraded(&world), is_deep.then_some(Violation::TooDeep));
            close(world);
        }
    }
}

/// R60: an older server may ping before its handshake is answered, and everything else it asked for by
/// then is answered once that is complete.
#[test]
fn an_older_server_may_ask_before_the_session_stands() {
    let steps = r#"[{"on":"server/discover"},"{\"jsonrpc\":\"2.0\",\"id\":\"early\",\"method\":\"ping\"}","«METHOD_NOT_FOUND»",{"on":"initialize","as":"i"},"{\"jsonrpc\":\"2.0\",\"id\":\"now\",\"method\":\"ping\"}",{"on_response":"now"},"{\"jsonrpc\":\"2.0\",\"id\":\"later\",\"method\":\"roots/list\"}","{\"jsonrpc\":\"2.0\",\"id\":$ID(i),\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"fake\",\"version\":\"1\"}}}"]"#;
    let mut world = probe(allowed("srv"), steps);
    settle(&mut world);
    let sent = world.sent_to("srv");
    let at = |text: &str| {
        sent.find(text)
            .unwrap_or_else(|| panic!("{text} is missing in {sent}"))
    };
    let (early, now) = (r#""id":"early","result":{}"#, r#""id":"now","result":{}"#);
    assert!(
        at("\"initialize\"") < at(early) && at(early) < at(now),
        "{sent}"
    );
    assert!(
        at("notifications/initialized") < at(r#""id":"later","error":{"code":-32601"#),
        "{sent}"
    );
    close(world);
}

/// R14: a short probe deadline does not cut the handshake short.
#[test]
fn a_slow_handshake_after_a_short_probe_is_awaited() {
    let steps = r#"[{"on":"server/discover"},{"on":"initialize"},{"sleep_ms":2000},"«GOOD_INIT»"]"#;
    let mut peer = allowed("srv");
    peer.probe_timeout = mcp_proto::Duration::from_millis(300);
    let mut world = probe(peer, steps);
    settle(&mut world);
    assert!(
        world.client.peers().next().unwrap().is_ready(),
        "{}",
        world.transcript()
    );
    close(world);
}
