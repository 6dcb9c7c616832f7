//! What calls cost, within which budget, and what of it reaches the ledger (R50).

mod world_support;

use conformance::fake_server::Script;
use conformance::world::{LedgerFault, World, millis};
use mcp_proto::cost::{CostWarning, Dimension};
use mcp_proto::{Config, ErrorKind, Identity, Operation, Options, Outcome, PeerConfig, Ran, Reply};
use world_support::*;

const STEPS: &str = r#"[{"on_each":"tools/call","emit":"«OK_RESULT»"}]"#;

/// A world of one peer whose calls cost a quarter of a dollar, with these `harness` settings.
fn priced(adapt: impl FnOnce(&mut PeerConfig), harness: &str, steps: &str) -> World {
    let text = format!(
        r#"{{"mcpServers":{{"srv":{{"command":"srv","costUsd":0.25,"toolCostsUsd":{{"free":0}}}}}},"harness":{harness}}}"#
    );
    let mut config = Config::parse(&text, "x.json", &mut |_| None).unwrap();
    assert_eq!(config.warnings, []);
    adapt(&mut config.peers[0]);
    let text = format!(r#"{{"era":"modern","steps":{steps},"respawn":{STEPS}}}"#);
    World::new(
        config,
        Identity::default(),
        vec![("srv".into(), script(&text))],
    )
}

fn started(harness: &str, steps: &str) -> World {
    let mut world = priced(|_| {}, harness, steps);
    world.connect();
    settle(&mut world);
    world
}

/// Calls and dollars of the task, by the meter.
fn spent(world: &World) -> (u64, String) {
    let costs = world.client.costs();
    let calls = costs.meter().call_count(costs.task(), "srv");
    let cost = costs.meter().cost_for(costs.task(), "srv");
    assert_eq!(cost, costs.meter().task_total(costs.task()));
    (calls, cost.to_string())
}

fn notes(world: &World) -> String {
    world.client.costs().notes().join("\n")
}

const LEDGER: &str = r#"{"ledger":"spend.jsonl","taskId":"t-1"}"#;

/// R50: calls that ran are charged, failed ones as well, whatever the server says of them; what was refused
/// before it was sent, or by the server before it did anything, is not.
#[test]
fn r50_what_ran_is_charged_once() {
    let is_error = r#""{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"resultType\":\"complete\",\"content\":[],\"isError\":true}}""#;
    let steps = format!(
        r#"[{{"on":"tools/call"}},"«OK_RESULT»",{{"on":"tools/call"}},{is_error},{{"on":"tools/call"}},"«METHOD_NOT_FOUND»",{{"on":"tools/call"}},"{{\"jsonrpc\":\"2.0\",\"id\":$ID}}",{{"on":"tools/call"}},{{"hang":true}}]"#
    );
    let mut world = started(LEDGER, &steps);
    assert_eq!(spent(&world), (0, "0".into()));
    call(&mut world);
    call(&mut world);
    assert_eq!(spent(&world), (2, "0.5".into()));
    assert_fails(&mut world, echo(), ErrorKind::Rpc, Ran::No);
    assert_eq!(spent(&world), (2, "0.5".into()));
    assert_fails(&mut world, echo(), ErrorKind::SchemaViolation, Ran::Maybe);
    let missing = Operation::call("nope", None).on("srv");
    assert_fails(&mut world, missing, ErrorKind::CapabilityMissing, Ran::No);
    assert_eq!(spent(&world), (3, "0.75".into()));
    let brief = |cost: f64| {
        echo().with(Options {
            idle_timeout: Some(millis(50)),
            cost: Some(cost.into()),
            ..Options::default()
        })
    };
    assert_fails(&mut world, brief(0.0625), ErrorKind::Timeout, Ran::Maybe);
    assert_eq!(spent(&world), (4, "0.8125".into()));
    assert_fails(&mut world, brief(-1.0), ErrorKind::Timeout, Ran::Maybe);
    assert_eq!(spent(&world), (5, "0.8125".into()));
    assert_eq!(
        notes(&world),
        format!("srv/echo: {}", CostWarning::Negative)
    );
    insta::assert_snapshot!(close(world).ledger().unwrap());
}

/// R50, R34: a call that is repeated in another life of the server is one call.
#[test]
fn r50_a_repeated_call_is_charged_once() {
    let mut world = priced(
        |peer| peer.idempotent_tools = ["echo".to_owned()].into(),
        LEDGER,
        r#"[{"on":"tools/call"},{"exit":1}]"#,
    );
    world.connect();
    let ended = run(&mut world, echo());
    assert!(matches!(ended.outcome, Outcome::Complete(Reply::Call(_))));
    assert_eq!(world.client.diagnoses()[0].counters.retries, 1);
    assert_eq!(spent(&world), (1, "0.25".into()));
    assert_eq!(close(world).ledger().unwrap().lines().count(), 1);
}

/// R50, R30: questions are part of the call; the round that ends it is charged.
#[test]
fn r50_a_call_of_several_rounds_is_charged_once() {
    let asks = r#""{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"resultType\":\"input_required\",\"requestState\":\"s\"}}""#;
    let steps = format!(
        r#"[{{"on":"tools/call"}},{asks},{{"on":"tools/call"}},{asks},{{"on":"tools/call"}},"«OK_RESULT»"]"#
    );
    let mut world = started(LEDGER, &steps);
    call(&mut world);
    assert_eq!(spent(&world), (1, "0.25".into()));
    close(world);
}

/// R50: what the ledger says was spent before counts; calls are stopped before anything is sent, those
/// known to be free are not; calls under way count at their price.
#[test]
fn r50_a_budget_stops_calls() {
    let harness = r#"{"ledger":"spend.jsonl","taskId":"t-1","budgetUsd":1e0}"#;
    let before = "{\"task\":\"t-1\",\"usd\":0.25}\n{\"task\":\"t-2\",\"usd\":9}\n";
    let mut world = priced(|_| {}, harness, STEPS).with_ledger(before);
    world.connect();
    world.run_for(millis(1));
    let calls: Vec<_> = (0..5).map(|_| world.submit(echo())).collect();
    let stopped: Vec<bool> = calls.iter().map(Result::is_err).collect();
    assert_eq!(stopped, [false, false, false, true, true]);
    for call in calls.into_iter().flatten() {
        let ended = world.run_until_ended(call).unwrap();
        assert!(matches!(ended.outcome, Outcome::Complete(_)));
    }
    let error = assert_fails(&mut world, echo(), ErrorKind::Limit, Ran::No);
    let shown = error.to_string();
    assert!(
        shown.contains("budget") && shown.contains("1 of 1 USD"),
        "{shown}"
    );
    assert!(error.remedy().contains("budgetUsd"), "{}", error.remedy());
    let free = Operation::call("free", None).on("srv");
    assert_fails(&mut world, free, ErrorKind::CapabilityMissing, Ran::No);
    let costless = echo().with(Options {
        cost: Some(0.0.into()),
        ..Options::default()
    });
    assert!(matches!(
        run(&mut world, costless).outcome,
        Outcome::Complete(_)
    ));
    assert!(
        notes(&world).contains("of its budget of 1 USD"),
        "{}",
        notes(&world)
    );
    let ledger = world.client.costs().ledger();
    assert_eq!(ledger.total(Dimension::Task, "t-1").cost.to_string(), "1");
    assert_eq!(ledger.sum().cost.to_string(), "10");
    let world = close(world);
    assert_eq!(
        world
            .sent_to("srv")
            .matches(r#""method":"tools/call""#)
            .count(),
        4
    );
    assert_eq!(world.ledger().unwrap().lines().count(), 6);
}

/// R50: the same for calls that wait until the ledger is read.
#[test]
fn r50_calls_that_wait_for_the_ledger_are_within_the_budget() {
    let harness = r#"{"ledger":"spend.jsonl","budgetUsd":0.5}"#;
    let before = r#"{"task":"default","usd":"0.1"}"#;
    let mut world = priced(|_| {}, harness, STEPS).with_ledger(before);
    let calls: Vec<_> = (0..3).map(|_| world.submit(echo()).unwrap()).collect();
    world.connect();
    let mut kinds = Vec::new();
    for call in calls {
        kinds.push(match world.run_until_ended(call).unwrap().outcome {
            Outcome::Failed(error) => Some(error.kind()),
            _ => None,
        });
    }
    let limit = Some(ErrorKind::Limit);
    assert_eq!(kinds, [None, limit, limit]);
    close(world);
}

/// R50: the price of a call that fails before it is sent is free again.
#[test]
fn r50_what_was_reserved_is_released() {
    let mut world = started(r#"{"budgetUsd":0.25}"#, STEPS);
    for _ in 0..3 {
        let missing = Operation::call("nope", None).on("srv");
        assert_fails(&mut world, missing, ErrorKind::CapabilityMissing, Ran::No);
    }
    call(&mut world);
    assert_fails(&mut world, echo(), ErrorKind::Limit, Ran::No);
    assert_eq!(close(world).ledger(), None);
}

/// R50: calls wait for the ledger to be read only where there is a budget, and not for long.
#[test]
fn r50_a_ledger_that_hangs_holds_up_calls_for_a_moment() {
    let budget = r#"{"ledger":"spend.jsonl","budgetUsd":100}"#;
    for (harness, waited) in [(budget, 2_000), (LEDGER, 0)] {
        let mut world = priced(|_| {}, harness, STEPS).with_ledger_fault(LedgerFault::Stuck);
        world.connect();
        let list = run(&mut world, Operation::list_tools());
        assert!(matches!(list.outcome, Outcome::Complete(_)));
        assert_eq!(world.now().as_nanos(), 0);
        let calls = [echo(), Operation::call("echo", None)];
        let calls = calls.map(|call| world.submit(call).unwrap());
        for call in calls {
            let ended = world.run_until_ended(call).unwrap();
            assert!(matches!(ended.outcome, Outcome::Complete(_)), "{ended:?}");
        }
        assert_eq!(world.now().as_nanos(), waited * 1_000_000, "{harness}");
        assert_eq!(notes(&world).contains("not read within 2 s"), waited > 0);
        assert_eq!(spent(&world), (2, "0.5".into()));
        let before = world.now();
        let closed = close(world);
        assert!(
            closed.now().since(before) <= millis(1_100),
            "closing is bounded"
        );
    }
}

/// R50, R41: a client that has closed waits for nothing, also if it had to wait for its last line.
#[test]
fn r50_once_the_last_line_is_written_nothing_is_due() {
    let mut world = started(LEDGER, STEPS);
    call(&mut world);
    let world = close(world);
    assert_eq!(world.client.poll_timeout(), None);
    assert_eq!(world.ledger().unwrap().lines().count(), 1);
}

/// R50: a ledger that cannot be read, or written, fails no call; what could not be written is counted, and
/// no line is glued to half of another.
#[test]
fn r50_a_ledger_failure_is_noted_and_swallowed() {
    let budget = r#"{"ledger":"spend.jsonl","budgetUsd":100}"#;
    for fault in [LedgerFault::Unreadable, LedgerFault::Full] {
        let mut world = priced(|_| {}, budget, STEPS)
            .with_ledger("{\"usd\":1,\"task\":\"def")
            .with_ledger_fault(fault);
        world.connect();
        settle(&mut world);
        for _ in 0..2 {
            call(&mut world);
        }
        world.run_for(millis(1));
        assert_eq!(spent(&world), (2, "0.5".into()));
        let health = world.client.costs().ledger().health().clone();
        let unreadable = fault == LedgerFault::Unreadable;
        assert_eq!(health.append_failures, if unreadable { 0 } else { 2 });
        assert_eq!(health.torn_end, !unreadable);
        let words = if unreadable {
            "cannot be read"
        } else {
            "not appended"
        };
        assert!(notes(&world).contains(words), "{}", notes(&world));
        assert!(notes(&world).contains("no space left"));
        close(world);
    }
}

/// R50: what another process left behind in the middle of a line is damaged alone.
#[test]
fn r50_a_torn_line_is_survived() {
    let mut world =
        priced(|_| {}, LEDGER, STEPS).with_ledger("{\"task\":\"t-1\",\"usd\":5}\n{\"ta");
    world.connect();
    call(&mut world);
    world.run_for(millis(1));
    let costs = world.client.costs().ledger();
    assert_eq!(costs.total(Dimension::Task, "t-1").cost.to_string(), "5.25");
    assert!(costs.health().torn_end);
    let written = close(world).ledger().unwrap();
    let good = written
        .lines()
        .filter(|line| serde_json::from_str::<serde_json::Value>(line).is_ok());
    assert_eq!((good.count(), written.lines().count()), (2, 3), "{written}");
}

/// R50: without prices every call counts, at nothing; reads and lists are no calls.
#[test]
fn r50_calls_without_a_price_count() {
    let config = Config::new(vec![peer("srv")]);
    let scripts = vec![("srv".to_owned(), Script::modern())];
    let mut world = World::new(config, Identity::default(), scripts);
    world.connect();
    settle(&mut world);
    call(&mut world);
    run(&mut world, Operation::list_resources().on("srv"));
    assert_eq!(spent(&world), (1, "0".into()));
    assert_eq!(world.client.costs().task(), "default");
    close(world);
}
