use mcp_proto::continuation::StreamUpdate;
use mcp_proto::safety::{Decision, Facts, Failure, RequestKind, RetryGate, Ruling};
use mcp_proto::streaming::Streaming;
use mcp_proto::types::InputRequired;
use mcp_proto::wire::{Json, Members};
use mcp_proto::{Action, Config, Event, Instant, Options, PeerConfig, PeerId};
use serde_json::json;

use super::super::{Life, LinkRecord};
use super::*;

const LINK: LinkId = LinkId {
    peer: PeerId::new(0),
    serial: 1,
};
const ID: OperationId = OperationId::new(1);
const STAMP: u64 = 1;

/// A border whose only link has found out that its server is modern, and one call.
fn border(adapt: impl FnOnce(&mut PeerConfig, &mut Options)) -> Border {
    let mut peer = PeerConfig::stdio("a", "a", Vec::<String>::new());
    let mut options = Options::default();
    adapt(&mut peer, &mut options);
    let mut border = Border::new(&Config::new(vec![peer]), false);
    border.use_stamps();
    let record = LinkRecord {
        life: Life::Open,
        conversation: Default::default(),
    };
    border.links.insert(LINK, record);
    write(&mut border, 1, "server/discover", json!({})).unwrap();
    answer(
        &mut border,
        1,
        r#"{"resultType":"complete","capabilities":{},"supportedVersions":["2026-07-28"]}"#,
    );
    border.on_accepted(ID, STAMP, &Operation::call("t", None).with(options));
    border
}

fn write(border: &mut Border, id: u64, method: &str, own: serde_json::Value) -> Result<(), Broken> {
    let trace = format!("00-{:032x}-{:016x}-01", 1, 1);
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "traceparent": trace,
    });
    for (name, value) in own.as_object().into_iter().flatten() {
        meta[name] = value.clone();
    }
    let params = json!({"name": "t", "_meta": meta});
    let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let bytes = format!("{message}\n").into_bytes();
    let judged = border.on_action(&Action::Write { link: LINK, bytes }, Instant::ZERO);
    let spent = Vec::new();
    border.on_fact(&Event::LinkWritten { link: LINK, spent }, Instant::ZERO);
    judged
}

fn call(border: &mut Border, id: u64, key: Option<&str>) -> Result<(), Broken> {
    let mut meta = json!({"world/operation": STAMP});
    if let Some(key) = key {
        meta["key"] = json!(key);
    }
    write(border, id, "tools/call", meta)
}

fn answer(border: &mut Border, id: u64, result: &str) {
    let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n");
    let bytes = line.as_bytes();
    border.on_fact(&Event::LinkData { link: LINK, bytes }, Instant::ZERO);
}

fn news(border: &mut Border, news: News) -> Result<(), Broken> {
    border.on_action(&Action::Deliver(news), Instant::ZERO)
}

/// The application is asked whether the call may run again.
fn asks_to_retry(border: &mut Border) -> Question {
    let mut facts = Facts::new(
        Failure::ConnectionLost,
        RequestKind::of_method("tools/call"),
    );
    facts.decision = Decision::CanAsk;
    let Ruling::Decide { question, .. } = RetryGate::new(3).failed(facts) else {
        panic!("the application decides about calls");
    };
    let record = border.operations.get_mut(&ID).unwrap();
    record.question = Some(question);
    question
}

/// A call is repeated where the operator, a travelling key or an answer allows it, and nowhere else.
#[test]
fn repeating_a_call_without_permission_is_a_breach() {
    type Adapt = fn(&mut PeerConfig, &mut Options);
    let cases: [(Adapt, bool); 6] = [
        (|_, _| {}, false),
        (|_, options| options.ask_retry = true, false),
        (
            |_, options| options.stream = Some(Streaming::default()),
            false,
        ),
        (
            |peer, _| peer.idempotency_meta_key = Some("key".into()),
            false,
        ),
        (|peer, _| _ = peer.idempotent_tools.insert("t".into()), true),
        (
            |peer, options| {
                peer.idempotency_meta_key = Some("key".into());
                options.stream = Some(Streaming::default());
            },
            true,
        ),
    ];
    for (place, (adapt, allowed)) in cases.into_iter().enumerate() {
        let mut border = border(adapt);
        call(&mut border, 2, None).unwrap();
        let again = call(&mut border, 3, None);
        assert_eq!(again.is_ok(), allowed, "{place}");
        assert!(allowed || again.unwrap_err().0 == Rule::Repeated);
    }
    let mut answered = border(|_, _| {});
    call(&mut answered, 2, None).unwrap();
    answer(&mut answered, 2, "{}");
    call(&mut answered, 3, None).unwrap();
}

/// While the application decides nothing is sent; its yes is good for one request.
#[test]
fn not_waiting_for_a_decision_is_a_breach() {
    let asking = |_: &mut PeerConfig, options: &mut Options| options.ask_retry = true;
    for (retry, allowed) in [(true, true), (false, false)] {
        let mut border = border(asking);
        call(&mut border, 2, None).unwrap();
        let question = asks_to_retry(&mut border);
        assert_eq!(call(&mut border, 3, None).unwrap_err().0, Rule::Repeated);
        border.on_decided(ID, question, retry);
        assert_eq!(call(&mut border, 4, None).is_ok(), allowed);
        assert_eq!(call(&mut border, 5, None).unwrap_err().0, Rule::Repeated);
    }
}

/// A key is the application's own, the same each time, and told only where it travels.
#[test]
fn another_key_is_a_breach() {
    let cases = [
        (true, None, Some("k"), Some("k"), true),
        (true, None, Some("k"), Some("l"), false),
        (true, None, Some("k"), None, false),
        (true, Some("own"), Some("own"), Some("own"), true),
        (true, Some("own"), Some("k"), Some("k"), false),
        (true, Some("own"), None, None, false),
        (false, Some("own"), None, None, true),
    ];
    for (travels, given, first, second, right) in cases {
        let mut border = border(|peer, options| {
            peer.idempotent_tools.insert("t".into());
            peer.idempotency_meta_key = travels.then(|| "key".into());
            options.idempotency_key = given.map(Into::into);
        });
        let judged = call(&mut border, 2, first).and_then(|()| call(&mut border, 3, second));
        assert_eq!(
            judged.is_ok(),
            right,
            "{travels} {given:?} {first:?} {second:?}"
        );
        assert!(right || judged.unwrap_err().0 == Rule::Key);
    }
}

/// Nothing is sent for a stream whose source is the application's.
#[test]
fn sending_what_the_application_streams_is_a_breach() {
    let mut own = border(|_, options| {
        options.stream = Some(Streaming {
            from: mcp_proto::streaming::StreamFrom::Application,
            ..Streaming::default()
        });
    });
    assert_eq!(call(&mut own, 2, None).unwrap_err().0, Rule::Stream);
}

/// Between two rounds the text of a stream stays as it is; while a request is under way it may grow, although
/// an older server asks in the midst of it.
#[test]
fn text_between_rounds_is_a_breach() {
    let text = || News::StreamUpdate {
        operation: ID,
        update: StreamUpdate::Text("x".into()),
    };
    for (answered, allowed) in [(false, true), (true, false)] {
        let mut border = border(|_, options| {
            options.interactive = true;
            options.stream = Some(Streaming::default());
        });
        call(&mut border, 2, None).unwrap();
        news(&mut border, text()).unwrap();
        if answered {
            answer(&mut border, 2, "{}");
        }
        let state = Json::parse("\"s\"").unwrap();
        let mut members = Members::default();
        members.insert("requestState".into(), state.as_raw());
        let input = Box::new(InputRequired::read(&members).unwrap());
        news(
            &mut border,
            News::InputNeeded {
                operation: ID,
                question: Question::new(1),
                input,
            },
        )
        .unwrap();
        let judged = news(&mut border, text());
        assert_eq!(judged.is_ok(), allowed);
        assert!(allowed || judged.unwrap_err().0 == Rule::Asked);
    }
}
