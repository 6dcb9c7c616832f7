use alloc::format;

use proptest::prelude::*;

use super::super::ResumableMethod;
use super::*;
use crate::identity::Sha256Hex;
use crate::types::InputResponse;
use crate::version::Version;
use crate::wire::{Json, Members};

pub(in super::super) fn at(millis: u64) -> Instant {
    Instant::after_epoch(Duration::from_millis(millis))
}

pub(in super::super) fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

pub(in super::super) fn pin(peer: &str) -> PeerPin {
    PeerPin {
        peer: peer.into(),
        version: Version::LATEST,
        endpoint: Sha256Hex::of(peer.as_bytes()),
    }
}

fn pending(peer: &str, params: &str) -> PendingRequest {
    let (params, meta) = Params::parse(&json(params)).unwrap();
    PendingRequest::new(pin(peer), ResumableMethod::CallTool, params).with_meta(meta)
}

pub(in super::super) fn policy() -> InputPolicy {
    InputPolicy {
        rounds_max: 3,
        capabilities: InputCapabilities::read(&json(r#"{"elicitation":{},"roots":{}}"#)),
        backoff: Backoff {
            first: Duration::from_millis(100),
            max: Duration::from_millis(200),
            entropy: 0,
        },
    }
}

fn rounds() -> InputRounds {
    InputRounds::new(
        policy(),
        pending("git", r#"{"name":"push","arguments":{"n":1.00}}"#),
    )
}

pub(in super::super) fn input(text: &str) -> InputRequired {
    InputRequired::read(&Members::parse(text).unwrap()).unwrap()
}

/// Asks for roots under each key, with a state.
pub(in super::super) fn asking(keys: &[&str], state: Option<&str>) -> InputRequired {
    let requests: Vec<_> = keys
        .iter()
        .map(|key| format!(r#""{key}":{{"method":"roots/list"}}"#))
        .collect();
    let state = state.map_or(String::new(), |state| format!(r#","requestState":{state}"#));
    input(&format!(
        r#"{{"inputRequests":{{{}}}{state}}}"#,
        requests.join(",")
    ))
}

pub(in super::super) fn answers(keys: &[&str]) -> InputResponses {
    let response = || InputResponse::roots(&[]);
    keys.iter()
        .fold(InputResponses::new(), |all, key| all.with(*key, response()))
}

/// R30: the original parameters with the answers and the state of this round, byte by byte, and with
/// nothing of the round before.
#[test]
fn r30_retry_carries_this_round_alone() {
    let mut rounds = rounds();
    let step = rounds.required(asking(&["a", "b"], Some(r#""s\u00e9\/1""#)), at(0));
    assert!(
        matches!(&step, Some(InputStep::Ask(asked)) if asked.len() == 2),
        "{step:?}"
    );
    let params = rounds.answered(&answers(&["b", "a"]), at(5)).unwrap();
    assert_eq!(
        params.as_str(),
        r#"{"name":"push","arguments":{"n":1.00},"inputResponses":{"b":{"roots":[]},"a":{"roots":[]}},"requestState":"s\u00e9\/1"}"#
    );
    // The second round has no state, so none goes back.
    rounds.required(asking(&["c"], None), at(6)).unwrap();
    let params = rounds.answered(&answers(&["c"]), at(7)).unwrap();
    assert_eq!(
        params.as_str(),
        r#"{"name":"push","arguments":{"n":1.00},"inputResponses":{"c":{"roots":[]}}}"#
    );
    // What an operation brought along from an earlier round is not sent along either.
    let old = r#"{"name":"x","requestState":"old","inputResponses":{}}"#;
    assert_eq!(pending("git", old).base().as_str(), r#"{"name":"x"}"#);
}

/// R30: an answer with state alone is sent again by itself, after waits that grow up to a bound and
/// begin anew when something was asked.
#[test]
fn r30_state_alone_waits() {
    let mut rounds = InputRounds::new(
        InputPolicy {
            rounds_max: 10,
            ..policy()
        },
        pending("git", r#"{"name":"x"}"#),
    );
    let mut now = at(0);
    let mut waited = |rounds: &mut InputRounds, longest: u64, from: u64| {
        now = now.max(at(from));
        let step = rounds.required(input(r#"{"requestState":"s"}"#), now);
        let Some(InputStep::RetryAfter(wait)) = step else {
            panic!("{step:?}")
        };
        let longest = Duration::from_millis(longest);
        assert!(longest / 2 <= wait && wait <= longest, "{wait:?}");
        assert_eq!(rounds.poll_timeout(), Some(now + wait));
        assert_eq!(
            rounds.time_passed(now + (wait - Duration::from_nanos(1))),
            None
        );
        now = now + wait;
        let params = rounds.time_passed(now).unwrap();
        assert_eq!(params.as_str(), r#"{"name":"x","requestState":"s"}"#);
        assert_eq!(
            (rounds.time_passed(now), rounds.poll_timeout()),
            (None, None)
        );
    };
    for longest in [100, 200, 200] {
        waited(&mut rounds, longest, 0);
    }
    rounds.required(asking(&["a"], None), at(900)).unwrap();
    rounds.answered(&answers(&["a"]), at(901)).unwrap();
    waited(&mut rounds, 100, 901);
    assert_eq!(rounds.thinking_time(at(5_000)), Duration::from_millis(1));
}

/// R30: what a server must not ask ends it, with the violation.
#[test]
fn r30_refusals() {
    let refused = |input: InputRequired| {
        let mut rounds = rounds();
        let step = rounds.required(input, at(0));
        assert!(rounds.is_over() && rounds.continuation().is_none());
        match step {
            Some(InputStep::Refuse(fault)) => (fault.violation, fault.detail),
            other => panic!("{other:?}"),
        }
    };
    let request = |method: &str, params: &str| {
        input(&format!(
            r#"{{"requestState":"s","inputRequests":{{"q":{{"method":"{method}","params":{params}}}}}}}"#
        ))
    };
    assert_eq!(
        refused(request("sampling/createMessage", r#"{"messages":[]}"#)),
        (
            Violation::InputNotDeclared,
            "inputRequests.q sampling/createMessage".into()
        )
    );
    let url = r#"{"message":"m","mode":"url","url":"https://x/"}"#;
    assert_eq!(
        refused(request("elicitation/create", url)).0,
        Violation::InputNotDeclared
    );
    assert_eq!(
        refused(request("elicitation/create", r#"{"message":"m"}"#)),
        (
            Violation::InputRequiredInvalid,
            "inputRequests.q.params.requestedSchema is missing".into()
        )
    );
    let mut neither = asking(&["a"], None);
    neither.requests.clear();
    assert_eq!(
        refused(neither),
        (
            Violation::InputRequiredInvalid,
            "there is neither an input request nor a requestState".into()
        )
    );
}

/// R1, R30: no more rounds than allowed, whatever kind they are of.
#[test]
fn r30_rounds_are_limited() {
    let mut rounds = rounds();
    for round in 1..=3 {
        let keys: &[&str] = if round == 2 { &[] } else { &["a"] };
        rounds
            .required(asking(keys, Some(r#""s""#)), at(0))
            .unwrap();
        match rounds.poll_timeout() {
            Some(due) => assert!(rounds.time_passed(due).is_some()),
            None => assert!(rounds.answered(&answers(keys), at(0)).is_ok()),
        }
    }
    let step = rounds.required(asking(&["a"], None), at(1));
    assert_eq!(step, Some(InputStep::Limit { rounds_max: 3 }));
    assert!(rounds.is_over() && !rounds.end(at(2)));
}

/// R30: an answer that does not fit leaves the question open.
#[test]
fn r30_answers_are_checked() {
    let mut rounds = rounds();
    let key = |key: &str| key.to_string();
    assert_eq!(
        rounds.answered(&answers(&[]), at(0)),
        Err(InputError::NotAsking)
    );
    rounds.required(asking(&["a", "b"], None), at(10)).unwrap();
    let error = rounds.answered(&answers(&["a"]), at(20)).unwrap_err();
    assert_eq!(error, InputError::Missing { key: key("b") });
    let error = rounds
        .answered(&answers(&["a", "b", "c"]), at(20))
        .unwrap_err();
    assert_eq!(error, InputError::Unasked { key: key("c") });
    let wrong = answers(&["a"]).with("b", InputResponse::decline());
    let error = rounds.answered(&wrong, at(30)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the answer to \"b\" does not fit: roots must be an array"
    );
    assert_eq!(rounds.asked().len(), 2);
    assert!(rounds.answered(&answers(&["a", "b"]), at(40)).is_ok());
    assert_eq!(rounds.asked().len(), 0);
    // R41: the deadlines stood still for as long as was thought, wrong answers included.
    assert_eq!(rounds.thinking_time(at(99)), Duration::from_millis(30));
}

#[derive(Clone, Debug)]
enum Fact {
    /// The server asks under so many keys, or only has a state.
    Required(u8, bool),
    Undeclared,
    Answered,
    AnsweredWrong,
    Pass(u64),
    Due,
    Store,
    End,
}

fn facts() -> impl Strategy<Value = (usize, Fact)> {
    let fact = prop_oneof![
        8 => (0..3_u8, any::<bool>()).prop_map(|(keys, state)| Fact::Required(keys, state)),
        1 => Just(Fact::Undeclared),
        8 => Just(Fact::Answered),
        2 => Just(Fact::AnsweredWrong),
        4 => (0..300_u64).prop_map(Fact::Pass),
        4 => Just(Fact::Due),
        4 => Just(Fact::Store),
        1 => prop::bool::weighted(0.3).prop_map(|end| if end { Fact::End } else { Fact::Due }),
    ];
    (0..3_usize, fact)
}

/// One request and what an observer knows of it.
struct Call {
    rounds: InputRounds,
    params: String,
    /// What the last answer of the server asked for, until it is sent.
    asked: Vec<String>,
    state: Option<String>,
    required: u32,
    ends: u32,
    asked_at: Option<Instant>,
    thought: Duration,
}

impl Call {
    fn new(index: usize) -> Self {
        let params = format!(r#"{{"name":"tool{index}"}}"#);
        Self {
            rounds: InputRounds::new(policy(), pending("git", &params)),
            params,
            asked: Vec::new(),
            state: None,
            required: 0,
            ends: 0,
            asked_at: None,
            thought: Duration::ZERO,
        }
    }

    fn required(&mut self, input: InputRequired, now: Instant) -> Result<(), TestCaseError> {
        let was_over = self.rounds.is_over();
        let keys: Vec<_> = input
            .requests
            .iter()
            .map(|request| request.key.clone())
            .collect();
        let state = input
            .state
            .as_ref()
            .map(|state| state.as_json().to_string());
        let Some(step) = self.rounds.required(input, now) else {
            return Ok(());
        };
        prop_assert!(!was_over, "nothing follows the end");
        self.required += 1;
        match step {
            InputStep::Ask(_) => {
                prop_assert!(!keys.is_empty());
                self.asked_at = Some(now);
            }
            InputStep::RetryAfter(wait) => {
                prop_assert!(keys.is_empty());
                prop_assert!(
                    Duration::from_millis(50) <= wait && wait <= Duration::from_millis(200)
                );
                prop_assert_eq!(self.rounds.poll_timeout(), Some(now + wait));
            }
            InputStep::Refuse(_) => self.ends += 1,
            InputStep::Limit { .. } => {
                prop_assert_eq!(self.required, policy().rounds_max + 1);
                self.ends += 1;
            }
        }
        (self.asked, self.state) = (keys, state);
        Ok(())
    }

    /// What is sent is this request, with the answers and the state of this round, and nothing else.
    fn sent(&mut self, params: &Params, now: Instant) -> Result<(), TestCaseError> {
        let members = Members::parse(params.as_str()).unwrap();
        let mut keys = Vec::new();
        if let Some(responses) = members.get("inputResponses") {
            let responses = Members::parse(responses.get()).unwrap();
            keys.extend(responses.iter().map(|(key, _)| key.to_string()));
        }
        prop_assert_eq!(&keys, &self.asked);
        let state = members.get("requestState").map(|raw| raw.get().to_string());
        prop_assert_eq!(&state, &self.state);
        let base = self.params.trim_end_matches('}');
        prop_assert!(params.as_str().starts_with(base));
        if let Some(since) = self.asked_at.take() {
            self.thought += now.since(since);
        }
        Ok(())
    }
}

proptest! {
    /// R1, R30, R31: whatever happens to parallel requests in whatever order, stored and taken up in
    /// between or not, each goes its own way: nothing of one goes with another, each round's answers and
    /// state go back once, rounds are counted, waits end, and each ends once.
    #[test]
    fn r30_parallel_requests_keep_apart(facts in prop::collection::vec(facts(), 0..80)) {
        let mut calls: Vec<_> = (0..3).map(Call::new).collect();
        let mut now = at(0);
        for (step, (index, fact)) in facts.into_iter().enumerate() {
            let call = &mut calls[index];
            match fact {
                Fact::Required(count, state) => {
                    let keys: Vec<_> = (0..count).map(|key| format!("c{index}s{step}k{key}")).collect();
                    let keys: Vec<_> = keys.iter().map(|key| &**key).collect();
                    let state = (state || count == 0).then(|| format!(r#""c{index}s{step}""#));
                    call.required(asking(&keys, state.as_deref()), now)?;
                }
                Fact::Undeclared => {
                    let input = input(r#"{"inputRequests":{"q":{"method":"sampling/createMessage","params":{"messages":[]}}}}"#);
                    call.required(input, now)?;
                }
                Fact::Answered => {
                    let keys: Vec<_> = call.rounds.asked().iter().map(|request| request.key.clone()).collect();
                    let keys: Vec<_> = keys.iter().map(|key| &**key).collect();
                    match call.rounds.answered(&answers(&keys), now) {
                        Ok(params) => call.sent(&params, now)?,
                        Err(error) => prop_assert_eq!(error, InputError::NotAsking),
                    }
                }
                Fact::AnsweredWrong => {
                    let before = call.rounds.asked().len();
                    prop_assert!(call.rounds.answered(&answers(&["foreign"]), now).is_err());
                    prop_assert_eq!(call.rounds.asked().len(), before);
                }
                Fact::Pass(millis) => {
                    now = now + Duration::from_millis(millis);
                    if let Some(params) = call.rounds.time_passed(now) { call.sent(&params, now)?; }
                }
                Fact::Due => if let Some(due) = call.rounds.poll_timeout() {
                    now = now.max(due);
                    let params = call.rounds.time_passed(now);
                    call.sent(&params.unwrap(), now)?;
                    prop_assert_eq!(call.rounds.poll_timeout(), None);
                },
                Fact::Store => if let Some(continuation) = call.rounds.continuation() {
                    let restored = Continuation::from_json(&continuation.to_json());
                    prop_assert_eq!(restored.as_ref(), Ok(&continuation));
                    let rounds = call.rounds.rounds();
                    let (resumed, _) = InputRounds::resume(policy(), continuation, &pin("git"), now).unwrap();
                    call.rounds = resumed;
                    prop_assert_eq!(call.rounds.rounds(), rounds);
                    // The new process knows nothing of what the old one waited for.
                    call.thought = Duration::ZERO;
                    call.asked_at = call.asked_at.map(|_| now);
                },
                Fact::End => if call.rounds.end(now) {
                    call.ends += 1;
                    if let Some(since) = call.asked_at.take() { call.thought += now.since(since); }
                },
            }
            prop_assert_eq!(call.ends == 1, call.rounds.is_over());
            prop_assert_eq!(call.rounds.rounds(), call.required);
            let thinking = call.asked_at.map_or(Duration::ZERO, |since| now.since(since));
            prop_assert_eq!(call.rounds.thinking_time(now), call.thought + thinking);
        }
        for call in &mut calls {
            prop_assert_eq!(call.rounds.end(now), call.ends == 0);
            prop_assert!(!call.rounds.end(now) && call.rounds.poll_timeout().is_none());
        }
    }
}
