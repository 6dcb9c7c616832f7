use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::super::input::tests::{answers, asking, at, input, json, pin, policy};
use super::super::{InputPolicy, InputRounds, InputStep};
use super::*;
use crate::config::{HttpConfig, PeerConfig, StdioConfig, Templated};
use crate::time::Duration;
use crate::types::InputCapabilities;
use crate::wire::{Members, ObjectWriter};

const TRACEPARENT: &str = "00-b9c785d65b1f009a88fdef43b9b1b2df-72bf61596651a0ab-01";

/// A stored request with everything in it.
fn full() -> Continuation {
    let (params, _) = Params::parse(&json(
        r#"{"name":"push","arguments":{"n":1.00,"é":"\ud800"}}"#,
    ))
    .unwrap();
    let meta = CallerMeta::parse(&json(r#"{"com.example/tenant": 7}"#)).unwrap();
    let request = PendingRequest::new(pin("git"), ResumableMethod::CallTool, params)
        .with_meta(Some(meta))
        .with_trace(TraceContext::restore(TRACEPARENT, Some(1)).unwrap())
        .with_progress(true)
        .with_key(Some(IdempotencyKey::given("k").unwrap()));
    let mut rounds = InputRounds::new(policy(), request);
    let input = input(
        r#"{"_meta":{"x":1},"requestState":"a\u00e9\ud800","inputRequests":{"q":{"method":"roots/list","more":1}}}"#,
    );
    rounds.required(input, at(0)).unwrap();
    rounds.continuation().unwrap()
}

/// R31: another process with a fresh client goes on where the first one stopped: the same question, the
/// same request, the same `_meta` facts (R7).
#[test]
fn r31_resumes_elsewhere() {
    let stored = full().to_json();
    insta::assert_snapshot!("a_stored_continuation", stored);
    let continuation = Continuation::from_json(&stored).unwrap();
    assert_eq!(continuation, full());
    // Through serde, and laid out anew, too.
    let value: serde_json::Value = serde_json::from_str(&stored).unwrap();
    let pretty = serde_json::to_string_pretty(&value).unwrap();
    assert_eq!(
        serde_json::from_str::<Continuation>(&pretty).unwrap(),
        full()
    );
    assert_eq!(serde_json::to_string(&continuation).unwrap(), stored);
    let trace = continuation.request().trace().unwrap();
    assert_eq!(
        (trace.traceparent(), trace.call_index()),
        (TRACEPARENT, Some(1))
    );
    let (mut resumed, step) =
        InputRounds::resume(policy(), continuation, &pin("git"), at(7)).unwrap();
    assert!(matches!(step, InputStep::Ask(asked) if asked[0].key == "q"));
    assert_eq!(
        (resumed.rounds(), resumed.thinking_time(at(9))),
        (1, Duration::from_millis(2))
    );
    let params = resumed.answered(&answers(&["q"]), at(9)).unwrap();
    assert_eq!(
        params.as_str(),
        r#"{"name":"push","arguments":{"n":1.00,"é":"\ud800"},"inputResponses":{"q":{"roots":[]}},"requestState":"a\u00e9\ud800"}"#
    );
}

/// R30, R31: not with another peer, nor with this one under another configuration or revision; a client
/// that declares less refuses as it would have at first; rounds go on counting.
#[test]
fn r31_resume_is_refused() {
    let resume = |pin: &PeerPin, policy| InputRounds::resume(policy, full(), pin, at(0));
    let refused = |pin: &PeerPin| resume(pin, policy()).err().map(|error| error.to_string());
    assert_eq!(refused(&pin("git")), None);
    let other = pin("bank");
    assert_eq!(
        refused(&other).unwrap(),
        r#"the request was made to "git", not to "bank""#
    );
    let moved = PeerPin {
        endpoint: other.endpoint,
        ..pin("git")
    };
    assert!(matches!(
        resume(&moved, policy()),
        Err(ResumeRefused::OtherEndpoint { .. })
    ));
    let older = PeerPin {
        version: Version::V2025_11_25,
        ..pin("git")
    };
    assert!(matches!(
        resume(&older, policy()),
        Err(ResumeRefused::OtherVersion { .. })
    ));
    let bare = InputPolicy {
        capabilities: InputCapabilities::default(),
        ..policy()
    };
    assert!(matches!(
        resume(&pin("git"), bare).unwrap().1,
        InputStep::Refuse(_)
    ));
    let strict = InputPolicy {
        rounds_max: 0,
        ..policy()
    };
    assert_eq!(
        resume(&pin("git"), strict).unwrap().1,
        InputStep::Limit { rounds_max: 0 }
    );
}

/// R31: what is no continuation is told from one that is damaged, and from one of another time.
#[test]
fn r31_damage_is_found() {
    let stored = full().to_json();
    let error = |text: &str| Continuation::from_json(text).unwrap_err();
    assert!(matches!(error(""), ContinuationError::Unreadable(_)));
    assert!(matches!(
        error(stored.split_at(stored.len() - 1).0),
        ContinuationError::Unreadable(_)
    ));
    assert_eq!(error("{}"), ContinuationError::NotContinuation);
    assert_eq!(
        error(r#"{"format":"x","version":1}"#),
        ContinuationError::NotContinuation
    );
    let later = stored.replace(r#""version":1"#, r#""version":2"#);
    assert_eq!(error(&later), ContinuationError::Version { found: 2 });
    assert_eq!(
        error(&stored.replace("push", "pull")),
        ContinuationError::Damaged
    );
    let more = stored.replace(r#""rounds""#, r#""more":1,"rounds""#);
    assert!(matches!(error(&more), ContinuationError::Unreadable(_)));
    // Where someone took the trouble to write a fitting digest, each member is checked all the same.
    let mut table = String::new();
    for (member, value) in [
        ("protocolVersion", json(r#""2025-11-25""#)),
        ("endpoint", json(r#""abc""#)),
        ("method", json(r#""tools/list""#)),
        ("params", json(r#""[]""#)),
        ("params", json(r#""{\"_meta\":{}}""#)),
        ("params", json(r#""{ \n}""#)),
        ("params", json(r#""{\"requestState\":\"s\"}""#)),
        (
            "params",
            json(&format!(
                r#""{{\"a\":{}{}}}""#,
                "[".repeat(200),
                "]".repeat(200)
            )),
        ),
        ("meta", json(r#""{\"traceparent\":1}""#)),
        ("traceparent", json(r#""00-0-0-01""#)),
        ("traceparent", json("null")),
        ("idempotencyKey", json(r#""""#)),
        (
            "inputRequests",
            json(r#""{\"q\":{\"method\":\"tools/call\"}}""#),
        ),
        ("requestState", json(r#""7""#)),
        ("requestState", json(r#""\"a""#)),
    ] {
        let error = Continuation::from_json(&forged(&stored, member, &value)).unwrap_err();
        assert!(
            matches!(error, ContinuationError::Invalid { .. }),
            "{member}: {error}"
        );
        table.push_str(&format!("{error}\n"));
    }
    insta::assert_snapshot!("what_is_wrong_with_a_forged_continuation", table);
}

/// The same with another value, under a digest that fits.
fn forged(stored: &str, member: &str, value: &Json) -> String {
    let members = Members::parse(stored).unwrap();
    let write = |digest: &str| {
        let mut out = Vec::new();
        let mut object = ObjectWriter::new(&mut out);
        for (name, old) in members.iter() {
            match name {
                "digest" => object.string(name, digest),
                _ if name == member => object.raw(name, value.as_str()),
                _ => object.raw(name, old.get()),
            };
        }
        object.end();
        String::from_utf8(out).unwrap()
    };
    // Over the members as they are written, which is not how they came.
    let bare: serde_json::Value = serde_json::from_str(&write("")).unwrap();
    let mut out = Vec::new();
    let mut object = ObjectWriter::new(&mut out);
    for (name, _) in members.iter() {
        object.raw(name, &bare[name].to_string());
    }
    object.end();
    write(Sha256Hex::of(&out).as_str())
}

/// R31: no secret of the configuration is in a stored request, and neither does its pin depend on one;
/// what else is configured differently makes another pin.
#[test]
fn r31_pins_and_secrets() {
    let of = |config: &PeerConfig| PeerPin::of(config, Version::LATEST);
    let stdio = |token: &str| {
        let token = Templated::expanded(token, "${TOKEN}");
        StdioConfig::new("mcp-git", [token]).env("KEY", "hunter2")
    };
    let git = PeerConfig::new("git", stdio("hunter2"));
    assert_eq!(of(&git), of(&PeerConfig::new("git", stdio("hunter3"))));
    let http = |url: &str| HttpConfig::new(url).header("Authorization", "Bearer hunter2");
    let mut others = vec![
        PeerConfig::new("other", stdio("hunter2")),
        PeerConfig::new("git", StdioConfig::new("mcp-git", ["-q"])),
        PeerConfig::new("git", stdio("").cwd("/src")),
        PeerConfig::new("git", http("https://example.com/a")),
        PeerConfig::new("git", http("https://example.com/b")),
        PeerConfig::new("git", crate::config::Transport::Stream),
        git.clone(),
    ];
    let mut alice = git.clone();
    alice.auth_context = Some("alice".into());
    others.push(alice);
    let mut pins: Vec<_> = others.iter().map(|config| of(config).endpoint).collect();
    pins.sort_unstable();
    pins.dedup();
    assert_eq!(pins.len(), others.len());
    let (params, _) = Params::parse(&json(r#"{"name":"x"}"#)).unwrap();
    let request = PendingRequest::new(of(&git), ResumableMethod::CallTool, params);
    let mut rounds = InputRounds::new(policy(), request);
    rounds
        .required(asking(&["a"], Some(r#""opaque""#)), at(0))
        .unwrap();
    let continuation = rounds.continuation().unwrap();
    assert!(!continuation.to_json().contains("hunter"));
    assert!(!format!("{continuation:?}").contains("opaque"));
}

proptest! {
    /// R31: through serde and back is the same value, whatever characters are in it.
    #[test]
    fn r31_round_trip_is_identity(
        peer in ".{1,8}", value in ".{0,8}", state in prop::option::of(".{0,8}"), key in prop::option::of("[a-z]{1,8}"),
        rounds in any::<u32>(), call_index in prop::option::of(any::<u64>()), progress: bool,
    ) {
        let params = Json::encode(&alloc::collections::BTreeMap::from([("name", value)])).unwrap();
        let (params, _) = Params::parse(&params).unwrap();
        let trace = TraceContext::restore(TRACEPARENT, call_index).unwrap();
        let request = PendingRequest::new(pin(&peer), ResumableMethod::ReadResource, params)
            .with_trace(trace)
            .with_progress(progress)
            .with_key(key.map(|key| IdempotencyKey::given(key).unwrap()));
        let state = state.map(|state| Json::encode(&state).unwrap().to_string());
        let input = asking(&["a", "é\\\""], state.as_deref());
        let continuation = Continuation::new(request, rounds, input);
        let stored = serde_json::to_string(&continuation).unwrap();
        prop_assert_eq!(serde_json::from_str::<Continuation>(&stored).unwrap(), continuation);
    }

    /// R31: one changed byte gives a typed error, or the same value where the byte meant nothing.
    #[test]
    fn r31_no_damage_goes_unnoticed(place in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let stored = full().to_json();
        let mut bytes = stored.into_bytes();
        let place = place.index(bytes.len());
        bytes[place] = byte;
        let read = core::str::from_utf8(&bytes).map(Continuation::from_json);
        if let Ok(Ok(read)) = read {
            prop_assert_eq!(read, full());
        }
    }

    /// R31: no text makes it panic.
    #[test]
    fn r31_any_text_is_an_error(text in ".{0,60}") {
        prop_assert!(Continuation::from_json(&text).is_err());
    }
}
