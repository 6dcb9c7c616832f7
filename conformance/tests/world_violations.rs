//! What a violation does (R60, R61), to the call, the peer and its numbers (R51), and what is none.

mod world_support;

use conformance::world::{Fault, World, millis};
use mcp_proto::metrics::{DownReason, ServerSnapshot};
use mcp_proto::wire::Json;
use mcp_proto::{ErrorKind, Operation, Options, Outcome, PeerConfig, Ran, Reply, Violation as V};
use world_support::*;

/// Answers to a call that break the protocol, each as the server's line.
const BROKEN_ANSWERS: [(V, &str); 23] = [
    (V::NotJson, r#"{"jsonrpc":"2.0","id":$ID,"result":"#),
    (V::NotUtf8, ""),
    (
        V::Batch,
        r#"[{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[]}}]"#,
    ),
    (
        V::DuplicateMember,
        r#"{"jsonrpc":"2.0","id":$ID,"id":$ID,"result":{}}"#,
    ),
    (V::WrongJsonrpc, r#"{"jsonrpc":"1.0","id":$ID,"result":{}}"#),
    (
        V::WrongJsonrpc,
        r#"{"id":$ID,"result":{"resultType":"complete","content":[]}}"#,
    ),
    (
        V::BothResultAndError,
        r#"{"jsonrpc":"2.0","id":$ID,"result":{},"error":{"code":1,"message":"m"}}"#,
    ),
    (V::NeitherResultNorError, r#"{"jsonrpc":"2.0","id":$ID}"#),
    (
        V::ResultNotObject,
        r#"{"jsonrpc":"2.0","id":$ID,"result":[1]}"#,
    ),
    (
        V::MalformedError,
        r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":"1","message":"m"}}"#,
    ),
    (
        V::MalformedError,
        r#"{"jsonrpc":"2.0","id":$ID,"error":"no"}"#,
    ),
    (V::WrongId, r#"{"jsonrpc":"2.0","id":true,"result":{}}"#),
    (
        V::MalformedContent,
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[7]}}"#,
    ),
    (
        V::MalformedContent,
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[{"type":"image","data":"x"}]}}"#,
    ),
    (
        V::MalformedResult,
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[],"isError":"no"}}"#,
    ),
    (
        V::MalformedResult,
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete"}}"#,
    ),
    (
        V::ResultTypeMissing,
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}"#,
    ),
    (
        V::ResultTypeUnknown,
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"partial","content":[]}}"#,
    ),
    (
        V::ResultTypeUnknown,
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"COMPLETE","content":[]}}"#,
    ),
    (
        V::InputRequiredInvalid,
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required"}}"#,
    ),
    (
        V::InputNotDeclared,
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list","params":{}}}}}"#,
    ),
    (
        V::DuplicateMember,
        r#"{"jsonrpc":"2.0","id":$ID,"result":{},"result":{}}"#,
    ),
    (V::TooDeep, "deep"),
];

/// What no call fails of, and yet breaks the protocol.
const BROKEN_BESIDE: [(V, &str); 2] = [
    (
        V::ServerRequest,
        r#"{"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{}}"#,
    ),
    (V::Noise, "debug: called"),
];

fn step_of(line: &str) -> String {
    match line {
        // The answer's text is no UTF-8: {"jsonrpc":"2.0","id":"<0xff>"}
        "" => r#"{"raw_b64":"eyJqc29ucnBjIjoiMi4wIiwicmVzdWx0Ijp7fSwiaWQiOiL/In0K"}"#.into(),
        "deep" => {
            let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
            let line = format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"x":{deep}}}}}"#);
            Json::encode(&line).unwrap().to_string()
        }
        line => Json::encode(line).unwrap().to_string(),
    }
}

/// A server that answers a first call so, a second one well, and dies of the third; its next life is well.
fn server(adapt: impl FnOnce(&mut PeerConfig), first: &str) -> World {
    let mut peer = peer("srv");
    adapt(&mut peer);
    let good = r#"{"on":"tools/call"},"«OK_RESULT»""#;
    let text = format!(
        r#"{{"era":"modern","steps":[{{"on":"tools/call"}},{first},{good},{{"on":"tools/call"}},{{"exit":1}}],"respawn":[{good},{{"hang":true}}]}}"#
    );
    let mut world = world(peer, script(&text));
    settle(&mut world);
    world
}

fn metrics(world: &World) -> ServerSnapshot {
    world.client.metrics().servers.remove(0)
}

fn availability(world: &World) -> (Option<bool>, Option<DownReason>) {
    let metrics = metrics(world);
    (metrics.available, metrics.down_reason)
}

/// Errors by kind, in one line.
fn errors(world: &World) -> String {
    let errors = metrics(world).errors_by_kind;
    let shown: Vec<_> = errors
        .iter()
        .map(|error| format!("{} {}", error.kind, error.count))
        .collect();
    shown.join(", ")
}

fn degraded_servers(world: &World) -> Vec<(String, V)> {
    let servers = world.client.degraded_servers().into_iter();
    servers
        .map(|server| (server.name, server.fault.violation))
        .collect()
}

/// R60, R61, R51: each violation is a typed error where a call fails of it, counts as one error, makes the
/// server unavailable until its next life, and stays its reason for the rest of the task.
#[test]
fn r61_every_violation_degrades() {
    let failing = BROKEN_ANSWERS.iter().map(|broken| (broken, true));
    let beside = BROKEN_BESIDE.iter().map(|broken| (broken, false));
    for (&(violation, line), fails) in failing.chain(beside) {
        let mut first = step_of(line);
        if !fails {
            first.push_str(r#","«OK_RESULT»""#);
        }
        let mut world = server(|_| {}, &first);
        assert_eq!(availability(&world), (Some(true), None), "{line}");
        assert_eq!(degraded_servers(&world), []);
        if fails {
            let error = assert_fails(&mut world, echo(), ErrorKind::SchemaViolation, Ran::Maybe);
            let mcp_proto::error::Cause::SchemaViolation(fault) = error.cause else {
                panic!("{error}")
            };
            assert_eq!(fault.violation, violation, "{line}");
        } else {
            assert_eq!(call(&mut world).text(), "ok", "{line}");
        }
        let is_degraded = [("srv".to_owned(), violation)];
        let down = (Some(false), Some(DownReason::Degraded));
        let check = |world: &World| {
            assert_eq!(degraded_servers(world), is_degraded, "{line}");
            let violations = metrics(world).violations;
            let counted: Vec<_> = violations
                .iter()
                .map(|one| (one.violation, one.count))
                .collect();
            assert_eq!(counted, [(violation, 1)], "{line}");
            assert_eq!(counters(world).violations, 1);
        };
        check(&world);
        assert_eq!(availability(&world), down, "{line}");
        assert_eq!(
            (metrics(&world).errors, errors(&world)),
            (1, "schemaViolation 1".into())
        );
        // Later success clears nothing.
        assert_eq!(call(&mut world).text(), "ok", "{line}");
        check(&world);
        assert_eq!(availability(&world), down, "{line}");
        // Nor does another life, in which the server is available again.
        assert_fails(&mut world, echo(), ErrorKind::Closed, Ran::Maybe);
        assert_eq!(availability(&world), down);
        assert_eq!(call(&mut world).text(), "ok", "{line}");
        check(&world);
        assert_eq!(availability(&world), (Some(true), None), "{line}");
        let metrics = metrics(&world);
        assert_eq!((metrics.calls, metrics.latency.count), (4, 4));
        // The call that was lost with its connection, and the connection.
        assert_eq!(errors(&world), "closed 2, schemaViolation 1", "{line}");
        close(world);
    }
}

/// R60, R61: so do violations before the first call, in a list or in the probe.
#[test]
fn r61_a_violation_while_connecting_degrades() {
    let list = |rest: &str| {
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"resultType":"complete",{rest}}}}}"#);
        let line = Json::encode(&line).unwrap();
        format!(r#"[{{"on_each":"tools/list","emit":{line}}}]"#)
    };
    let twice = r#""tools":[{"name":"a","inputSchema":{}},{"name":"a","inputSchema":{}}]"#;
    let lists = [
        (V::MalformedResult, list(r#""tools":{}"#), true),
        (
            V::EntryWithoutName,
            list(r#""tools":[{"name":""},{"title":"x"}]"#),
            true,
        ),
        (V::EntryWithoutName, list(r#""tools":["x"]"#), true),
        (V::DuplicateTool, list(twice), false),
    ];
    for (violation, steps, fails) in lists {
        let mut world = modern(&steps);
        settle(&mut world);
        assert_eq!(
            degraded_servers(&world),
            [("srv".to_owned(), violation)],
            "{steps}"
        );
        let down = (Some(false), Some(DownReason::Degraded));
        assert_eq!(availability(&world), down, "{steps}");
        let state = world.client.report().peers[0].state;
        assert_eq!(
            state == mcp_proto::report::PeerState::Failed,
            fails,
            "{steps}"
        );
        let lists = metrics(&world).violations[0].count;
        assert_eq!(
            errors(&world),
            format!("schemaViolation {lists}"),
            "{steps}"
        );
        close(world);
    }
    let broken = r#"[{"on":"server/discover"},"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"resultType\":\"complete\",\"supportedVersions\":7}}"]"#;
    let mut world = probe(peer("srv"), broken);
    settle(&mut world);
    assert_eq!(degraded_servers(&world).len(), 1);
    assert_eq!(
        availability(&world),
        (Some(false), Some(DownReason::Degraded))
    );
    close(world);
}

/// R61: errors of the server, `isError`, silence and cancellation are no violations: they count as errors,
/// and the server stays available.
#[test]
fn r61_what_is_no_violation_does_not_degrade() {
    let brief = || {
        echo().with(Options {
            idle_timeout: Some(millis(50)),
            ..Options::default()
        })
    };
    let is_error = r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[],"isError":true}}"#;
    let cases = [
        (
            step_of(r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32602,"message":"no"}}"#),
            "rpc 1",
        ),
        (
            step_of(
                r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"unauthorized"}}"#,
            ),
            "rpc 1",
        ),
        (step_of(is_error), "toolError 1"),
        (r#"{"hang":true}"#.into(), "timeout 1"),
    ];
    for (first, counted) in cases {
        let mut world = server(|_| {}, &first);
        let ended = run(&mut world, brief());
        let failed = matches!(ended.outcome, Outcome::Failed(_));
        assert_eq!(failed, !counted.starts_with("toolError"), "{first}");
        assert_eq!(errors(&world), counted);
        assert_eq!(degraded_servers(&world), []);
        assert_eq!(availability(&world), (Some(true), None), "{first}");
        assert_eq!(metrics(&world).calls, 1);
        close(world);
    }
    let mut world = server(|_| {}, r#"{"hang":true}"#);
    let cancelled = world.submit(echo()).unwrap();
    world.run_for(millis(10));
    world.cancel(cancelled);
    assert_eq!(
        (degraded_servers(&world), errors(&world)),
        (vec![], "cancelled 1".into())
    );
    assert_eq!(availability(&world), (Some(true), None));
    close(world);
}

/// R51: what never reached the server is none of its calls; how long a call took is core time.
#[test]
fn r51_calls_and_latency() {
    let slow = r#"{"sleep_ms":20},"«OK_RESULT»""#;
    let mut world = server(|_| {}, slow);
    let missing = Operation::call("nope", None).on("srv");
    assert_fails(&mut world, missing, ErrorKind::CapabilityMissing, Ran::No);
    assert_eq!((metrics(&world).calls, metrics(&world).errors), (0, 0));
    call(&mut world);
    let latency = metrics(&world).latency;
    assert_eq!((latency.count, latency.sum_micros), (1, 20_000));
    let sent = world.sent_to("srv").len() as u64;
    assert_eq!(metrics(&world).bytes_sent, sent);
    assert!(metrics(&world).bytes_received > 0);
    let text = world.client.metrics().to_prometheus();
    assert!(text.contains("mcp_client_up{server=\"srv\"} 1\n"), "{text}");
    close(world);
}

/// R51: loss makes a server unavailable, failed attempts keep it so, and a repeated call counts as a retry.
#[test]
fn r51_loss_and_return() {
    let mut world = server(
        |peer| peer.idempotent_tools = ["echo".to_owned()].into(),
        r#"{"exit":1}"#,
    );
    let operation = world.submit(echo()).unwrap();
    while availability(&world).0 == Some(true) && world.turn() {}
    assert_eq!(availability(&world), (Some(false), Some(DownReason::Lost)));
    let ended = world.run_until_ended(operation).unwrap();
    assert!(matches!(ended.outcome, Outcome::Complete(Reply::Call(_))));
    assert_eq!(availability(&world), (Some(true), None));
    let metrics = metrics(&world);
    assert_eq!((metrics.retries, metrics.calls, metrics.starts), (1, 1, 2));
    assert_eq!(
        (errors(&world), metrics.availability_changes),
        ("closed 1".into(), 3)
    );
    close(world);

    let mut world = World::new(
        mcp_proto::Config::new(vec![peer("srv")]),
        mcp_proto::Identity::default(),
        vec![],
    );
    world.connect();
    settle(&mut world);
    assert_eq!(
        availability(&world),
        (Some(false), Some(DownReason::NotConnected))
    );
    assert_eq!(errors(&world), "spawnRefused 1");
    close(world);
}

/// R61: a degraded server that cannot be brought back stays degraded for its first reason.
#[test]
fn r61_failed_connects_clear_nothing() {
    let text = r#"{"era":"modern","steps":[{"on":"tools/call"},"{\"jsonrpc\":\"2.0\",\"id\":$ID}",{"hang":true}],"respawn":[{"exit":3}]}"#;
    let mut world = world(peer("srv"), script(text));
    assert_fails(&mut world, echo(), ErrorKind::SchemaViolation, Ran::Maybe);
    world.inject("srv", Fault::Kill);
    world.run_for(millis(200_000));
    let first = [("srv".to_owned(), V::NeitherResultNorError)];
    assert_eq!(degraded_servers(&world), first);
    assert_eq!(
        availability(&world),
        (Some(false), Some(DownReason::Degraded))
    );
    assert_eq!(errors(&world), "closed 6, schemaViolation 1");
    close(world);
}

/// R61: with `refuseDegraded` nothing that would use an answer is sent, what was accepted before included;
/// what is there can still be listed.
#[test]
fn r61_a_degraded_server_is_refused() {
    let text = r#"{"era":"modern","steps":[{"on":"tools/call"},{"sleep_ms":5},"{\"jsonrpc\":\"2.0\",\"id\":$ID}"]}"#;
    let mut srv = peer("srv");
    (srv.refuse_degraded, srv.limits.in_flight) = (true, 1);
    let mut world = world(srv, script(text));
    settle(&mut world);
    let calls: Vec<_> = (0..3).map(|_| world.submit(echo()).unwrap()).collect();
    let kinds: Vec<_> = calls
        .into_iter()
        .map(|call| match world.run_until_ended(call).unwrap().outcome {
            Outcome::Failed(error) => (error.kind(), error.ran),
            other => panic!("{other:?}"),
        })
        .collect();
    let refused = (ErrorKind::Degraded, Ran::No);
    assert_eq!(
        kinds,
        [(ErrorKind::SchemaViolation, Ran::Maybe), refused, refused]
    );
    let reference = Json::parse(r#"{"type":"ref/prompt","name":"greet"}"#).unwrap();
    for operation in [
        echo(),
        Operation::read("file:///a").on("srv"),
        Operation::prompt("greet", None).on("srv"),
        Operation::complete("srv", reference, "name", "A"),
    ] {
        assert_fails(&mut world, operation, refused.0, refused.1);
    }
    for operation in [Operation::list_tools(), Operation::list_prompts()] {
        let ended = run(&mut world, operation.on("srv"));
        assert!(matches!(ended.outcome, Outcome::Complete(_)), "{ended:?}");
    }
    let sent = close(world).sent_to("srv");
    assert_eq!(sent.matches(r#""method":"tools/call""#).count(), 1);
    for method in ["resources/read", "prompts/get", "completion/complete"] {
        assert!(!sent.contains(method), "{method}");
    }
}
