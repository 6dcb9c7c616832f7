//! Calls under way: progress, deadlines, cancellation (R40–R42).

mod world_support;

use conformance::world::{World, millis};
use mcp_proto::wire::Json;
use mcp_proto::{Duration, ErrorKind, News, Operation, Options, Ran, Request};
use world_support::*;

fn with_progress() -> Operation {
    echo().with(Options {
        progress: true,
        ..Options::default()
    })
}

fn progress(world: &mut World) -> Vec<f64> {
    let news = world.take_news().into_iter();
    news.filter_map(|news| match news {
        News::Progress { progress, .. } => Some(progress.progress),
        _ => None,
    })
    .collect()
}

fn report(token: &str, progress: &str) -> String {
    format!(
        r#""{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{token},\"progress\":{progress}}}}}""#
    )
}

/// R42: only progress that is finite, increases and belongs to this call is reported; the rest is
/// counted and harms nothing.
#[test]
fn progress_increases_or_is_dropped() {
    let steps: Vec<String> = [
        ("$PTOKEN", "1"),
        ("$PTOKEN", "1"),
        ("$PTOKEN", "0.5"),
        ("$PTOKEN", r#"\"half\""#),
        ("$PTOKEN", "-3"),
        ("424242", "9"),
        (r#"\"$N\""#, "9"),
        ("null", "9"),
        ("$PTOKEN", "2.5"),
        ("$PTOKEN", "1e999"),
    ]
    .into_iter()
    .map(|(token, value)| report(token, value))
    .collect();
    let mut world = modern(&format!(
        r#"[{{"on":"tools/call"}},{},"«OK_RESULT»",{}]"#,
        steps.join(","),
        report("$PTOKEN", "100")
    ));
    let operation = world.submit(with_progress()).unwrap();
    assert!(world.run_until_ended(operation).is_some());
    world.run_for(millis(1));
    assert_eq!(progress(&mut world), [1.0, 2.5]);
    assert_eq!(degraded(&world), None);
    assert_eq!(counters(&world).dropped_notifications, 8 + 1);
    close(world);
}

/// R42: nobody asked, so nothing is reported.
#[test]
fn progress_that_nobody_asked_for_is_dropped() {
    let mut world = modern(&format!(
        r#"[{{"on":"tools/call"}},{},"«OK_RESULT»"]"#,
        report("1", "1")
    ));
    let operation = world.submit(echo()).unwrap();
    assert!(world.run_until_ended(operation).is_some());
    assert_eq!(progress(&mut world), Vec::<f64>::new());
    assert!(!world.sent_to("srv").contains("progressToken"));
    close(world);
}

/// R41: progress extends the idle deadline and never the absolute one.
#[test]
fn endless_progress_ends_at_the_absolute_deadline() {
    let report = report("$PTOKEN", "$N");
    let mut world = modern_with(
        |peer| {
            peer.timeout = Duration::from_secs(5);
            peer.absolute_timeout = Duration::from_secs(30);
        },
        &format!(r#"[{{"on":"tools/call"}},{{"loop":{{"every_ms":1000,"emit":{report}}}}}]"#),
    );
    settle(&mut world);
    let error = assert_fails(&mut world, with_progress(), ErrorKind::Timeout, Ran::Maybe);
    assert_eq!(world.now().to_string(), "30.000000s");
    assert!(
        error.remedy().contains("absoluteTimeoutMs"),
        "{}",
        error.remedy()
    );
    assert_eq!(progress(&mut world).len(), 30);
    world.run_for(millis(10));
    assert!(world.sent_to("srv").contains("notifications/cancelled"));
    close(world);
}

/// R41: silence ends at the idle deadline, at exactly that time.
#[test]
fn silence_ends_at_the_idle_deadline() {
    let mut world = modern(r#"[{"on":"tools/call"}]"#);
    let quick = echo().with(Options {
        idle_timeout: Some(millis(1_500)),
        ..Options::default()
    });
    let error = assert_fails(&mut world, quick, ErrorKind::Timeout, Ran::Maybe);
    assert_eq!(world.now().to_string(), "1.500000s");
    assert!(error.remedy().contains("timeoutMs"), "{}", error.remedy());
    assert_eq!(degraded(&world), None);
    insta::assert_snapshot!(close(world).transcript());
}

/// R40: a cancelled call ends at once, the server is told, and its late answer or error is dropped.
#[test]
fn a_late_answer_to_a_cancelled_call_is_dropped() {
    for late in [
        r#""«OK_RESULT»""#,
        r#""{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{\"code\":0,\"message\":\"cancelled\"}}""#,
    ] {
        let mut world = modern(&format!(
            r#"[{{"on":"tools/call","as":"call"}},{{"on":"notifications/cancelled"}},{late}]"#
        ));
        settle(&mut world);
        let operation = world.submit(echo()).unwrap();
        world.run_for(millis(10));
        world.cancel(operation);
        let ended = world.run_until_ended(operation).unwrap();
        let mcp_proto::Outcome::Failed(error) = ended.outcome else {
            panic!("{ended:?}")
        };
        assert_eq!(
            (error.kind(), error.ran),
            (ErrorKind::Cancelled, Ran::Maybe)
        );
        world.run_for(millis(10));
        assert_eq!(counters(&world).late_answers, 1);
        assert_eq!(degraded(&world), None);
        assert_eq!(call(&mut world).text(), "hi");
        close(world);
    }
}

/// R40: cancelling an older server's call sends the same notification and ends nothing else.
#[test]
fn cancelling_one_call_leaves_the_others_alone() {
    let mut world = world(
        allowed("srv"),
        conformance::fake_server::Script::legacy(conformance::fake_server::LegacyVersion::LATEST),
    );
    let slow = || Operation::call("slow", Json::parse(r#"{"ms":2000}"#).ok()).on("srv");
    settle(&mut world);
    let (first, second) = (world.submit(slow()).unwrap(), world.submit(slow()).unwrap());
    world.run_for(millis(100));
    world.cancel(first);
    assert!(matches!(
        world.run_until_ended(second).unwrap().outcome,
        mcp_proto::Outcome::Complete(_)
    ));
    assert_eq!(
        world
            .sent_to("srv")
            .matches("notifications/cancelled")
            .count(),
        1
    );
    close(world);
}

/// R40: what was not written yet is taken back silently and was not executed.
#[test]
fn an_unwritten_call_is_taken_back_silently() {
    let mut world = modern("[]");
    settle(&mut world);
    world.inject("srv", conformance::world::Fault::StopReading);
    let large = Operation::call(
        "echo",
        Json::parse(&format!(r#"{{"text":"{}"}}"#, "x".repeat(2_000_000))).ok(),
    )
    .on("srv");
    let stuck = world.submit(large).unwrap();
    let waiting = world.submit(echo()).unwrap();
    world.run_for(millis(10));
    world.cancel(waiting);
    let ended = world.run_until_ended(waiting).unwrap();
    let mcp_proto::Outcome::Failed(error) = ended.outcome else {
        panic!("{ended:?}")
    };
    assert_eq!((error.kind(), error.ran), (ErrorKind::Cancelled, Ran::No));
    // The one that fills the pipe times out; whether it ran cannot be known.
    let ended = world.run_until_ended(stuck).unwrap();
    let mcp_proto::Outcome::Failed(error) = ended.outcome else {
        panic!("{ended:?}")
    };
    assert_eq!((error.kind(), error.ran), (ErrorKind::Timeout, Ran::Maybe));
    let world = close(world);
    assert_eq!(
        world
            .sent_to("srv")
            .matches(r#""method":"tools/call""#)
            .count(),
        1
    );
}

/// R1, R41: calls to a server that never reads time out, each by itself; those that were never written
/// say so.
#[test]
fn a_server_that_never_reads_blocks_nobody() {
    let mut world = modern("[]");
    settle(&mut world);
    world.inject("srv", conformance::world::Fault::StopReading);
    let large = Json::parse(&format!(r#"{{"text":"{}"}}"#, "x".repeat(2_000_000)));
    let large = Operation::call("echo", large.ok()).on("srv");
    let calls: Vec<_> = [large, echo(), echo()]
        .map(|operation| world.submit(operation).unwrap())
        .into();
    let verdicts: Vec<_> = calls
        .into_iter()
        .map(|call| match world.run_until_ended(call).unwrap().outcome {
            mcp_proto::Outcome::Failed(error) => (error.kind(), error.ran),
            other => panic!("{other:?}"),
        })
        .collect();
    let timeout = |ran| (ErrorKind::Timeout, ran);
    assert_eq!(
        verdicts,
        [timeout(Ran::Maybe), timeout(Ran::No), timeout(Ran::No)]
    );
    assert_eq!(world.now().to_string(), "60.000000s");
    close(world);
}

/// R1: a call is never kept waiting by open subscriptions, however many places there are.
#[test]
fn subscriptions_take_no_place_in_flight() {
    let scripts = vec![("srv".into(), conformance::fake_server::Script::modern())];
    let mut narrow = peer("srv");
    narrow.limits.in_flight = 1;
    let mut world = World::new(
        mcp_proto::Config::new(vec![narrow]),
        mcp_proto::Identity::default(),
        scripts,
    );
    world.connect();
    settle(&mut world);
    for _ in 0..3 {
        world
            .submit(Operation::new(Request::Listen).on("srv"))
            .unwrap();
    }
    assert_eq!(call(&mut world).text(), "hi");
    close(world);
}

/// R7, R12: a version error inline is retried once, with a new id and the same `_meta`.
#[test]
fn a_version_error_inline_is_retried_once() {
    let refusal = r#""{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{\"code\":-32022,\"message\":\"v\",\"data\":{\"supported\":[\"2026-07-28\"]}}}""#;
    let refuse = format!(r#"{{"on":"tools/call"}},{refusal}"#);
    let mut world = modern(&format!(
        r#"[{refuse},{{"on":"tools/call"}},"«OK_RESULT»",{refuse},{refuse}]"#
    ));
    assert_eq!(call(&mut world).text(), "ok");
    assert_fails(&mut world, echo(), ErrorKind::Rpc, Ran::No);
    let sent = close(world).sent_to("srv");
    let calls: Vec<(u64, String)> = sent
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|message| message["method"] == "tools/call")
        .map(|message| {
            (
                message["id"].as_u64().unwrap(),
                message["params"].to_string(),
            )
        })
        .collect();
    assert_eq!(calls.len(), 4);
    assert_eq!(calls[0].1, calls[1].1);
    assert_eq!(calls[2].1, calls[3].1);
    assert!(calls.windows(2).all(|pair| pair[0].0 < pair[1].0));
}

/// R81: two calls whose answers come in the other order each get their own.
#[test]
fn answers_out_of_order_reach_their_callers() {
    let answer = |name: &str| {
        format!(
            r#""{{\"jsonrpc\":\"2.0\",\"id\":$ID({name}),\"result\":{{\"resultType\":\"complete\",\"content\":[{{\"type\":\"text\",\"text\":\"{name}\"}}]}}}}""#
        )
    };
    let mut world = modern(&format!(
        r#"[{{"on":"tools/call","as":"a"}},{{"on":"tools/call","as":"b"}},{},{}]"#,
        answer("b"),
        answer("a")
    ));
    settle(&mut world);
    let (a, b) = (world.submit(echo()).unwrap(), world.submit(echo()).unwrap());
    for (operation, text) in [(a, "a"), (b, "b")] {
        let ended = world.run_until_ended(operation).unwrap();
        let mcp_proto::Outcome::Complete(mcp_proto::Reply::Call(result)) = ended.outcome else {
            panic!()
        };
        assert_eq!(result.text(), text);
    }
    close(world);
}

/// R34: an idempotency key travels under the name that the server is configured to honour, beside the
/// application's own `_meta`, and nowhere else.
#[test]
fn an_idempotency_key_travels_where_it_is_honoured() {
    for honoured in [true, false] {
        let mut world = modern_with(
            |peer| peer.idempotency_meta_key = honoured.then(|| "com.example/key".into()),
            r#"[{"on":"tools/call"},"«OK_RESULT»"]"#,
        );
        let options = Options {
            idempotency_key: Some("k\"1".into()),
            meta: Json::parse(r#"{"com.example/own":1}"#).ok(),
            ..Options::default()
        };
        run(&mut world, echo().with(options));
        let sent = world.sent_to("srv");
        assert!(sent.contains(r#""com.example/own":1"#), "{sent}");
        assert_eq!(
            sent.contains(r#""com.example/key":"k\"1""#),
            honoured,
            "{sent}"
        );
        assert_eq!(sent.contains("k\\\"1"), honoured, "{sent}");
        close(world);
    }
}
