//! Operations on the wire: continuations (R30), and what is refused before anything is sent.

use std::collections::VecDeque;

use mcp_proto::error::Cause;
use mcp_proto::operation::{arguments, encode};
use mcp_proto::types::InputRequired;
use mcp_proto::wire::{Json, Members};
use mcp_proto::{
    Action, Client, Config, ErrorKind, Event, Identity, Instant, LinkId, News, Operation, Options,
    Outcome, PeerConfig, Reply, Request,
};
use serde_json::{Value, json};

const NOW: Instant = Instant::ZERO;

/// A client of the one peer `a`, whose server is the test.
struct Driven {
    core: Client,
    link: Option<LinkId>,
    /// What was sent and not looked at yet, one message each.
    sent: VecDeque<String>,
    news: VecDeque<News>,
}

impl Driven {
    /// A client that is settled.
    fn ready() -> Self {
        let config = Config::new(vec![PeerConfig::stream("a")]);
        let pinned = config.pin(&mut |_| None, &mut |_| None);
        let mut driven = Self {
            core: Client::new(pinned, Identity::default(), NOW),
            link: None,
            sent: VecDeque::new(),
            news: VecDeque::new(),
        };
        driven.core.connect(NOW);
        driven.turn();
        let capabilities = json!({"tools": {}, "resources": {}, "prompts": {}});
        driven.answer(
            "server/discover",
            json!({"supportedVersions": ["2026-07-28"], "capabilities": capabilities}),
        );
        let tool = json!({"name": "t", "inputSchema": {"type": "object"}});
        driven.answer("tools/list", json!({"tools": [tool]}));
        assert!(driven.core.is_settled() && driven.sent.is_empty());
        driven
    }

    fn turn(&mut self) {
        while let Some(action) = self.core.poll_action() {
            match action {
                Action::OpenLink { link, .. } => {
                    self.link = Some(link);
                    self.core.handle(Event::LinkOpened { link }, NOW);
                }
                Action::Write { link, bytes } => {
                    let text = String::from_utf8(bytes.clone()).unwrap();
                    self.sent.extend(text.lines().map(str::to_owned));
                    let spent = bytes;
                    self.core.handle(Event::LinkWritten { link, spent }, NOW);
                }
                Action::Deliver(news) => self.news.push_back(news),
                _ => {}
            }
        }
    }

    /// The next message, which must be a request of this method: its id and the text of all of it.
    #[track_caller]
    fn next(&mut self, method: &str) -> (Value, String) {
        let text = self.sent.pop_front().expect("a message");
        let message: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(message["method"], method, "{text}");
        (message["id"].clone(), text)
    }

    /// Answers the next message, and gives its text.
    #[track_caller]
    fn answer(&mut self, method: &str, mut result: Value) -> String {
        let (id, text) = self.next(method);
        result["resultType"] = "complete".into();
        let line = json!({"jsonrpc": "2.0", "id": id, "result": result});
        let bytes = format!("{line}\n").into_bytes();
        let link = self.link.unwrap();
        self.core.handle(
            Event::LinkData {
                link,
                bytes: &bytes,
            },
            NOW,
        );
        self.turn();
        text
    }

    fn submit(&mut self, operation: Operation) {
        self.core.submit(operation, NOW).unwrap();
        self.turn();
    }

    fn outcome(&mut self) -> Outcome {
        loop {
            if let News::Ended(ended) = self.news.pop_front().expect("an end") {
                return ended.outcome;
            }
        }
    }
}

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

/// A state whose text is not the only way to write it.
const STATE: &str = r#""\u0041\/é\n""#;
const RESPONSES: &str = r#"{"k":  {"action":"accept"}}"#;

fn required() -> InputRequired {
    let text = format!(r#"{{"requestState":{STATE}}}"#);
    InputRequired::read(&Members::parse(&text).unwrap()).unwrap()
}

fn continued(operation: Operation) -> Operation {
    operation.answering(&required(), json(RESPONSES))
}

fn contents(text: &str) -> Value {
    json!({"contents": [{"uri": "x:y", "text": text}], "ttlMs": 60_000, "cacheScope": "public"})
}

/// R30: the original parameters, the responses, and the state byte by byte.
#[test]
fn calls_reads_and_prompts_are_continued() {
    let some = || Some(json(r#"{"n":1.0}"#));
    let cases = [
        (
            Operation::call("t", some()),
            "tools/call",
            r#""arguments":{"n":1.0},"name":"t""#,
        ),
        (Operation::read("x:y"), "resources/read", r#""uri":"x:y""#),
        (
            Operation::prompt("p", some()),
            "prompts/get",
            r#""name":"p","arguments":{"n":1.0}"#,
        ),
    ];
    for (operation, method, original) in cases {
        let mut driven = Driven::ready();
        driven.submit(operation.clone().on("a"));
        let (_, text) = driven.next(method);
        assert!(text.contains(original), "{text}");
        assert!(!text.contains("inputResponses") && !text.contains("requestState"));

        driven.submit(continued(operation.on("a")));
        let (_, text) = driven.next(method);
        let responses = format!(r#""inputResponses":{RESPONSES}"#);
        let state = format!(r#""requestState":{STATE}"#);
        for member in original.split(",\"").chain([&*responses, &*state]) {
            assert!(text.contains(member), "{member} in {text}");
        }
    }
}

/// R30: nothing but the request that is continued is sent where there is only one server to ask.
#[test]
fn a_state_is_attached_to_its_own_request_only() {
    let mut driven = Driven::ready();
    driven.submit(continued(Operation::read("x:y")));
    let read = driven.answer("resources/read", contents("told"));
    assert!(read.contains(STATE) && read.contains(RESPONSES), "{read}");
    assert!(matches!(
        driven.outcome(),
        Outcome::Complete(Reply::Read(_))
    ));
}

/// R70: a retry with input is neither answered from memory nor kept.
#[test]
fn a_continued_read_passes_the_cache_by() {
    let mut driven = Driven::ready();
    let read = || Operation::read("x:y").on("a");
    driven.submit(continued(read()));
    driven.answer("resources/read", contents("with input"));
    driven.submit(read());
    driven.answer("resources/read", contents("without"));
    driven.submit(read());
    assert!(driven.sent.is_empty(), "this one is kept");
    driven.submit(continued(read()));
    driven.answer("resources/read", contents("with input"));
}

/// The error names the field; nothing is sent, and nothing ends.
#[test]
fn what_is_not_of_the_right_kind_is_refused() {
    let with = |input_responses: Option<&str>, request_state: Option<&str>| Options {
        input_responses: input_responses.map(json),
        request_state: request_state.map(json),
        ..Options::default()
    };
    let complete = |reference, context: Option<&str>| {
        Operation::new(Request::Complete {
            reference: json(reference),
            argument: "x".into(),
            value: String::new(),
            context: context.map(json),
        })
    };
    let only = "input_responses and request_state go with calls, reads and prompts only";
    let cases = [
        (
            Operation::call("t", Some(json("[1]"))),
            "arguments must be a JSON object",
        ),
        (
            Operation::call("t", Some(json("null"))),
            "arguments must be a JSON object",
        ),
        (
            Operation::prompt("p", Some(json("\"{}\""))),
            "arguments must be a JSON object",
        ),
        (complete("7", None), "reference must be a JSON object"),
        (complete("{}", Some("[]")), "context must be a JSON object"),
        (
            Operation::call("t", None).with(with(Some("[]"), None)),
            "input_responses must be a JSON object",
        ),
        (
            Operation::read("x:y").with(with(None, Some("{}"))),
            "request_state must be a JSON string",
        ),
        (
            Operation::list_tools().with(with(None, Some("\"s\""))),
            only,
        ),
        (Operation::listen(None).with(with(Some("{}"), None)), only),
        (Operation::settle().with(with(Some("{}"), None)), only),
        (complete("{}", None).with(with(Some("{}"), None)), only),
    ];
    let mut driven = Driven::ready();
    driven.news.clear();
    for (operation, message) in cases {
        for operation in [operation.clone().on("a"), operation] {
            let error = driven.core.submit(operation, NOW).unwrap_err();
            assert_eq!(error.cause, Cause::Usage(message.into()));
            assert!(!error.may_have_executed());
            driven.turn();
            assert!(driven.sent.is_empty() && driven.news.is_empty());
        }
    }
    driven.submit(Operation::call("t", Some(json(" {} "))).on("a"));
    assert_eq!(driven.sent.len(), 1);
}

#[test]
fn arguments_are_an_object_or_none() {
    let text = |json: Option<Json>| json.map(|json| json.to_string());
    assert_eq!(text(arguments(&()).unwrap()), None);
    assert_eq!(text(arguments(&None::<u8>).unwrap()), None);
    assert_eq!(text(arguments(&json!({})).unwrap()), Some("{}".into()));
    let usage = "arguments must be a JSON object".into();
    assert_eq!(arguments(&[1]).unwrap_err().cause, Cause::Usage(usage));

    let no_json = std::collections::BTreeMap::from([([1], 2)]);
    let error = encode(&no_json).unwrap_err();
    assert!(matches!(error.cause, Cause::Usage(_)));
    assert!(!error.may_have_executed());
}

/// R1: what waits for servers to be ready is bounded, and the bound says so; nothing is lost by being refused.
#[test]
fn r1_what_waits_for_servers_is_bounded() {
    let mut peer = PeerConfig::stream("a");
    (peer.limits.queued, peer.limits.in_flight) = (2, 1);
    let pinned = Config::new(vec![peer]).pin(&mut |_| None, &mut |_| None);
    let mut core = Client::new(pinned, Identity::default(), Instant::ZERO);
    core.connect(Instant::ZERO);
    let submit = |core: &mut Client, on: Option<&str>| {
        let mut call = Operation::call("t", None);
        call.peer = on.map(Into::into);
        core.submit(call, Instant::ZERO)
    };
    let first = submit(&mut core, None).unwrap();
    submit(&mut core, Some("a")).unwrap();
    submit(&mut core, None).unwrap();
    for on in [None, Some("a")] {
        let error = submit(&mut core, on).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        assert!(!error.may_have_executed());
    }
    core.cancel(first, Instant::ZERO);
    submit(&mut core, None).unwrap();
}
