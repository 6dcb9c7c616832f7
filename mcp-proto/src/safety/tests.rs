use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::identity::Sha256Hex;
use crate::types::{Entry, Tool};
use crate::wire::Json;

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::given(text).unwrap()
}

/// One way in which a retry may come to be allowed, by name.
type Policy = (&'static str, fn(&mut Facts));

/// The columns of the table. Each alone; what may be combined is in the property below.
const POLICIES: [Policy; 13] = [
    ("nothing", |_| {}),
    ("server hints", |facts| facts.server_hints = true),
    ("idempotentTools", |facts| {
        facts.operator = OperatorPolicy::Idempotent
    }),
    ("marked read-only", |facts| {
        facts.operator = OperatorPolicy::ReadOnly
    }),
    ("key", |facts| facts.key = Some(key("k"))),
    ("key travels", |facts| {
        facts.key = Some(key("k"));
        facts.key_travels = true;
    }),
    ("caller's stream", |facts| facts.caller_stream = true),
    ("hook", |facts| facts.decision = Decision::CanAsk),
    ("hook yes", |facts| {
        facts.decision = Decision::Said { retry: true }
    }),
    ("hook no", |facts| {
        facts.decision = Decision::Said { retry: false }
    }),
    ("no retries left", |facts| facts.retries_left = 0),
    ("idempotent, hook no", |facts| {
        facts.operator = OperatorPolicy::Idempotent;
        facts.decision = Decision::Said { retry: false };
    }),
    ("hook yes, none left", |facts| {
        facts.decision = Decision::Said { retry: true };
        facts.retries_left = 0;
    }),
];

const fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Retry => "retry",
        Verdict::Ask => "ask",
        Verdict::Refuse(refused) => match refused.reason {
            RefusalReason::Declined => "declined",
            RefusalReason::MayRunTwice => "unsafe",
            RefusalReason::NoRetriesLeft => "spent",
        },
    }
}

/// R34: every failure under every policy, for calls and for requests that only read.
#[test]
fn r34_every_failure_under_every_policy() {
    let mut table = String::new();
    for (index, (name, _)) in POLICIES.iter().enumerate() {
        table.push_str(&format!("({index}) {name}\n"));
    }
    for request in [RequestKind::Effectful, RequestKind::ReadOnly] {
        table.push_str(&format!("\n{:22}", format!("{request:?}")));
        for index in 0..POLICIES.len() {
            table.push_str(&format!("{:10}", format!("({index})")));
        }
        for failure in Failure::ALL {
            table.push_str(&format!("\n  {:20}", format!("{failure:?}")));
            for (_, set) in POLICIES {
                let mut facts = Facts::new(failure, request);
                set(&mut facts);
                table.push_str(&format!("{:10}", word(&may_retry(&facts))));
            }
        }
        table.push('\n');
    }
    let lines: Vec<_> = table.lines().map(str::trim_end).collect();
    let table = lines.join("\n");
    insta::assert_snapshot!("every_failure_under_every_policy", table);
}

fn facts() -> impl Strategy<Value = Facts> {
    let decision = prop_oneof![
        Just(Decision::NoHook),
        Just(Decision::CanAsk),
        any::<bool>().prop_map(|retry| Decision::Said { retry }),
    ];
    let operator = prop_oneof![
        4 => Just(OperatorPolicy::Unmarked),
        1 => Just(OperatorPolicy::Idempotent),
        1 => Just(OperatorPolicy::ReadOnly),
    ];
    let flags = (
        any::<bool>(),
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.2),
        any::<bool>(),
    );
    let request = prop_oneof![3 => Just(RequestKind::Effectful), 1 => Just(RequestKind::ReadOnly)];
    (
        prop::sample::select(&Failure::ALL[..]),
        request,
        operator,
        decision,
        flags,
        0..3_u32,
    )
        .prop_map(
            |(failure, request, operator, decision, flags, retries_left)| {
                let (has_key, key_travels, caller_stream, server_hints) = flags;
                Facts {
                    operator,
                    key: has_key.then(|| key("k")),
                    key_travels,
                    caller_stream,
                    decision,
                    retries_left,
                    server_hints,
                    partial_text: Some("half".into()),
                    ..Facts::new(failure, request)
                }
            },
        )
}

proptest! {
    /// R34: what the server says of its own tools never decides anything, whatever else is known.
    #[test]
    fn r34_server_hints_decide_nothing(facts in facts()) {
        let verdict = |server_hints| word(&may_retry(&Facts { server_hints, ..facts.clone() }));
        prop_assert_eq!(verdict(true), verdict(false));
    }

    /// R34: what may have been executed is never sent again without one of the five reasons; and a
    /// refusal carries what the caller needs.
    #[test]
    fn r34_nothing_runs_twice_without_a_reason(facts in facts()) {
        match may_retry(&facts) {
            Verdict::Retry => {
                let is_allowed = facts.failure.ran() == Ran::No
                    || facts.request == RequestKind::ReadOnly
                    || facts.operator != OperatorPolicy::Unmarked
                    || facts.key.is_some() && facts.key_travels
                    || facts.caller_stream
                    || facts.decision == Decision::Said { retry: true };
                prop_assert!(is_allowed && facts.retries_left > 0);
            }
            Verdict::Ask => prop_assert_eq!(facts.decision, Decision::CanAsk),
            Verdict::Refuse(refused) => {
                prop_assert_eq!(refused.failure, facts.failure);
                prop_assert_eq!(refused.partial_text.as_deref(), Some("half"));
                prop_assert_eq!(&refused.key, &facts.key);
                prop_assert!(refused.needs().ends_with('.'));
                // Safe and yet refused only because the retries are spent.
                let is_spent = refused.reason == RefusalReason::NoRetriesLeft;
                prop_assert!(is_spent || facts.failure.ran() == Ran::Maybe);
                prop_assert_eq!(is_spent, facts.retries_left == 0);
            }
        }
    }

    /// R34: the gate of one call: at most as many retries as are allowed, one answer for each question,
    /// and nothing comes of an answer to another one.
    #[test]
    fn r34_gate_counts_and_asks_once(
        retries in 0..4_u32,
        steps in prop::collection::vec((facts(), 0..4_u8, any::<bool>()), 0..30),
    ) {
        let mut gate = RetryGate::new(retries);
        let (mut made, mut questions) = (0, Vec::new());
        for (facts, step, retry) in steps {
            let open = gate.open_question();
            let ruling = match step {
                0 => { gate.withdraw(); None }
                1 => {
                    let stale = questions.iter().rev().find(|question| Some(**question) != open);
                    prop_assert_eq!(stale.and_then(|question| gate.decided(*question, retry)), None);
                    prop_assert_eq!(gate.open_question(), open);
                    None
                }
                2 => {
                    let newest = questions.last().copied();
                    let ruling = newest.and_then(|question| gate.decided(question, retry));
                    prop_assert_eq!(ruling.is_some(), open.is_some());
                    prop_assert_eq!(gate.open_question(), None);
                    if open.is_some() { prop_assert_eq!(ruling == Some(Ruling::Retry), retry); }
                    ruling
                }
                // Most facts ask nothing.
                _ if retry => {
                    let asking = Facts::new(Failure::Timeout, RequestKind::Effectful);
                    Some(gate.failed(Facts { decision: Decision::CanAsk, ..asking }))
                }
                _ => Some(gate.failed(facts)),
            };
            match ruling {
                Some(Ruling::Retry) => made += 1,
                Some(Ruling::Decide { question, .. }) => {
                    prop_assert!(!questions.contains(&question));
                    prop_assert_eq!(gate.open_question(), Some(question));
                    questions.push(question);
                }
                Some(Ruling::Refuse(_)) | None => {}
            }
            prop_assert_eq!(gate.retries_left(), retries - made);
        }
    }

    /// R33: a key stands for one tool and one set of arguments of a peer; memory is bounded, and what is
    /// forgotten is what was used longest ago.
    #[test]
    fn r33_ledger_against_a_model(
        keys_max in 0..5_usize,
        uses in prop::collection::vec((0..6_u8, 0..2_u8, 0..2_u8, 0..2_u8), 0..60),
    ) {
        let mut ledger = KeyLedger::new(keys_max);
        let mut model: BTreeMap<_, _> = BTreeMap::new();
        let mut recent = VecDeque::new();
        for (number, peer, tool, arguments) in uses {
            let (owner, call) = ((number, peer), (tool, arguments));
            let expected = match model.get(&owner) {
                Some(known) if *known != call => Err(KeyReused { key: key(&number.to_string()) }),
                Some(_) => Ok(Claim::Again),
                None => Ok(Claim::New),
            };
            if expected.is_ok() {
                recent.retain(|known| *known != owner);
                recent.push_back(owner);
                model.insert(owner, call);
                while recent.len() > keys_max {
                    model.remove(&recent.pop_front().unwrap());
                }
            }
            let hash = Sha256Hex::of(&[arguments]);
            let (peer, tool) = (peer.to_string(), tool.to_string());
            prop_assert_eq!(ledger.claim(&key(&number.to_string()), &peer, &tool, &hash), expected);
            prop_assert_eq!((ledger.len(), ledger.is_empty()), (model.len(), model.is_empty()));
        }
    }
}

/// R34: annotations in the manifest do not reach the operator's policy; the configuration does.
#[test]
fn r34_policy_comes_from_the_operator_alone() {
    let tool = r#"{"name":"rm","inputSchema":{},"annotations":{"readOnlyHint":true,"idempotentHint":true}}"#;
    let tool = Tool::read(Json::parse(tool).unwrap().as_raw(), 0).unwrap();
    let mut config = PeerConfig::stdio("files", "mcp-files", ["/data"]);
    assert_eq!(
        OperatorPolicy::of(&config, tool.name()),
        OperatorPolicy::Unmarked
    );
    config.idempotent_tools.insert("rm".into());
    assert_eq!(
        OperatorPolicy::of(&config, "rm"),
        OperatorPolicy::Idempotent
    );
    assert_eq!(OperatorPolicy::of(&config, "RM"), OperatorPolicy::Unmarked);
}

/// R34: what each kind of error and status proves, and what each method does.
#[test]
fn r34_what_is_proved_not_to_have_run() {
    let ran = |code| Failure::of_rpc_code(code).ran();
    for code in [-32020, -32021, -32022, -32600, -32601, -32700] {
        assert_eq!(ran(code), Ran::No, "{code}");
    }
    for code in [-32602, -32603, -32000, -32019, -32023, 0, 1] {
        assert_eq!(ran(code), Ran::Maybe, "{code}");
    }
    for (status, expected) in [
        (401, Ran::No),
        (429, Ran::No),
        (403, Ran::Maybe),
        (500, Ran::Maybe),
        (503, Ran::Maybe),
    ] {
        assert_eq!(Failure::of_http_status(status).ran(), expected, "{status}");
    }
    assert_eq!(
        RequestKind::of_method("resources/read"),
        RequestKind::ReadOnly
    );
    assert_eq!(RequestKind::of_method("tools/call"), RequestKind::Effectful);
    assert_eq!(
        RequestKind::of_method("tools/listen"),
        RequestKind::Effectful
    );
}

/// R34: a refusal says what would allow the retry.
#[test]
fn r34_refusals_for_people() {
    let mut text = String::new();
    for (name, set) in POLICIES {
        let mut facts = Facts::new(Failure::ConnectionLost, RequestKind::Effectful);
        set(&mut facts);
        if let Verdict::Refuse(refused) = may_retry(&facts) {
            text.push_str(&format!("{name}: {refused}\n    {}\n", refused.needs()));
        }
    }
    insta::assert_snapshot!("what_a_refusal_says", text);
}

/// R33: the derived key depends on each of the five and on nothing else.
#[test]
fn r33_derived_keys() {
    let hash = arguments_hash(Some(r#"{"b":1.0, "a":[]}"#)).unwrap();
    let same = arguments_hash(Some(r#"{"a":[],"b":1.00}"#)).unwrap();
    assert_eq!(hash, same);
    let none = arguments_hash(None).unwrap();
    assert_eq!(none, arguments_hash(Some("{ }")).unwrap());
    assert!(arguments_hash(Some(r#"{"a":1,"a":2}"#)).is_err());
    let root = "a".repeat(64);
    let call = LogicalCall {
        run_root: &root,
        peer: "files",
        tool: "write",
        arguments_hash: &hash,
        call_index: 3,
    };
    let derived = IdempotencyKey::derived(&call);
    // SHA-256 of {"domain":"mcp.idempotency","fields":{…}} as the requirement's id(domain, fields, 16).
    assert_eq!(derived.as_str(), "247c3cce849ffed8f0d4a4264d8a5f60");
    let others = [
        LogicalCall {
            run_root: "b",
            ..call
        },
        LogicalCall {
            peer: "other",
            ..call
        },
        LogicalCall {
            tool: "read",
            ..call
        },
        LogicalCall {
            arguments_hash: &none,
            ..call
        },
        LogicalCall {
            call_index: 4,
            ..call
        },
    ];
    for other in others {
        assert_ne!(IdempotencyKey::derived(&other), derived, "{other:?}");
    }
    assert_eq!(IdempotencyKey::given(""), Err(KeyError::Empty));
    assert!(IdempotencyKey::given("x".repeat(256)).is_ok());
    assert_eq!(
        IdempotencyKey::given("x".repeat(257)),
        Err(KeyError::TooLong)
    );
}
