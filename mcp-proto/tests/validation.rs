//! Structured results against output schemas, as a client checks them (R63, R61).

#[cfg(not(feature = "schema"))]
use mcp_proto::ErrorKind;
use mcp_proto::{
    Action, Client, Config, Event, Identity, Instant, LinkId, News, Operation, Options, Outcome,
    PeerConfig, Reply, Violation,
};
use serde_json::{Value, json};

const NOW: Instant = Instant::ZERO;

/// A client of one peer `a` with one tool `t`, whose server is the test.
struct Driven {
    core: Client,
    link: Option<LinkId>,
    sent: Vec<Value>,
    ended: Option<Outcome>,
}

impl Driven {
    fn new(tool: Value, adapt: impl FnOnce(&mut PeerConfig)) -> Self {
        let mut peer = PeerConfig::stream("a");
        adapt(&mut peer);
        let pinned = Config::new(vec![peer]).pin(&mut |_| None, &mut |_| None);
        let mut driven = Self {
            core: Client::new(pinned, Identity::default(), NOW),
            link: None,
            sent: Vec::new(),
            ended: None,
        };
        driven.core.connect(NOW);
        driven.turn();
        driven.answer(json!({"supportedVersions": ["2026-07-28"], "capabilities": {}}));
        driven.answer(json!({"tools": [tool]}));
        assert!(driven.core.is_settled());
        driven
    }

    fn turn(&mut self) {
        while let Some(action) = self.core.poll_action() {
            match action {
                Action::OpenLink { link, .. } => {
                    self.link = Some(link);
                    self.core.handle(Event::LinkOpened { link }, NOW);
                }
                Action::Write { link, bytes: spent } => {
                    let lines = spent
                        .split(|byte| *byte == b'\n')
                        .filter(|line| !line.is_empty());
                    self.sent
                        .extend(lines.map(|line| serde_json::from_slice::<Value>(line).unwrap()));
                    self.core.handle(Event::LinkWritten { link, spent }, NOW);
                }
                Action::Deliver(News::Ended(ended)) => self.ended = Some(ended.outcome),
                _ => {}
            }
        }
    }

    /// Answers the one request that was sent.
    fn answer(&mut self, mut result: Value) {
        let [request] = &self.sent[..] else {
            panic!("{:?}", self.sent)
        };
        result["resultType"] = "complete".into();
        let line = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        self.sent.clear();
        let (link, bytes) = (self.link.unwrap(), format!("{line}\n").into_bytes());
        let bytes = &bytes;
        self.core.handle(Event::LinkData { link, bytes }, NOW);
        self.turn();
    }

    fn submit(&mut self, validate_output: bool) -> Result<(), mcp_proto::Error> {
        let call = Operation::call("t", None).on("a").with(Options {
            validate_output,
            ..Options::default()
        });
        let submitted = self.core.submit(call, NOW);
        self.turn();
        submitted.map(drop)
    }

    fn violations(&self) -> Vec<Violation> {
        let servers = self.core.degraded_servers().into_iter();
        servers.map(|server| server.fault.violation).collect()
    }
}

fn tool() -> Value {
    json!({"name": "t", "inputSchema": {}, "outputSchema": {
        "type": "object", "properties": {"celsius": {"type": "number"}}, "required": ["celsius"],
    }})
}

/// A result with this structured content, if any.
fn result(structured: Option<Value>) -> Value {
    let mut result = json!({"content": [{"type": "text", "text": "ran"}]});
    if let Some(structured) = structured {
        result["structuredContent"] = structured;
    }
    result
}

/// R63: without being asked nothing is checked.
#[test]
fn r63_nothing_is_checked_unasked() {
    let mut driven = Driven::new(tool(), |_| {});
    driven.submit(false).unwrap();
    driven.answer(result(Some(json!({"celsius": "warm"}))));
    let Some(Outcome::Complete(Reply::Call(result))) = driven.ended.take() else {
        panic!()
    };
    assert_eq!(
        (result.schema_mismatch, driven.violations()),
        (None, vec![])
    );
}

/// R63: a build that cannot validate says so before anything is sent.
#[cfg(not(feature = "schema"))]
#[test]
fn r63_asking_without_the_feature_is_refused() {
    for (by_peer, by_call) in [(true, false), (false, true)] {
        let mut driven = Driven::new(tool(), |peer| peer.validate_output = by_peer);
        let error = driven.submit(by_call).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        assert!(error.to_string().contains("\"schema\"") && !error.may_have_executed());
        assert!(driven.sent.is_empty() && driven.ended.is_none());
    }
}

/// R63, R61: what does not fit is handed over with the word that it does not, counts as a violation and
/// degrades; what fits, and what says `isError`, does not.
#[cfg(feature = "schema")]
#[test]
fn r63_a_mismatch_is_handed_over_and_degrades() {
    let warm = json!({"celsius": "warm"});
    for (by_peer, by_call) in [(true, false), (false, true)] {
        for (answer, mismatch) in [
            (result(Some(json!({"celsius": 21.5}))), None),
            (
                result(Some(warm.clone())),
                Some("/celsius: value is not of type \"number\""),
            ),
            (
                result(Some(json!(null))),
                Some("value is not of type \"object\""),
            ),
            (result(None), Some("structuredContent is missing")),
            (json!({"content": [], "isError": true}), None),
        ] {
            let mut driven = Driven::new(tool(), |peer| peer.validate_output = by_peer);
            driven.submit(by_call).unwrap();
            driven.answer(answer.clone());
            let Some(Outcome::Complete(Reply::Call(result))) = driven.ended.take() else {
                panic!("{answer}")
            };
            let fault = result.schema_mismatch.map(|fault| fault.detail);
            assert_eq!(fault.as_deref(), mismatch);
            let structured = answer.get("structuredContent").cloned();
            let handed = result
                .structured_content
                .map(|json| json.decode::<Value>().unwrap());
            assert_eq!(handed, structured);
            let violations = mismatch.map(|_| Violation::OutputMismatch);
            assert_eq!(driven.violations(), Vec::from_iter(violations));
            let metrics = &driven.core.metrics().servers[0];
            assert_eq!(metrics.available, Some(mismatch.is_none()));
            assert_eq!(metrics.violations.len(), usize::from(mismatch.is_some()));
            // Nothing was asked on the side.
            assert!(driven.sent.is_empty());
        }
    }
}

/// R63, R32: the answer to a streamed call is checked like any other.
#[cfg(feature = "schema")]
#[test]
fn r63_a_streamed_result_is_checked() {
    for (celsius, fits) in [(json!(21.5), true), (json!("warm"), false)] {
        let mut driven = Driven::new(tool(), |peer| peer.validate_output = true);
        let call = Operation::call_streaming("t", None).on("a");
        driven.core.submit(call, NOW).unwrap();
        driven.turn();
        driven.answer(result(Some(json!({"celsius": celsius}))));
        let Some(Outcome::Complete(Reply::Stream(stream))) = driven.ended.take() else {
            panic!()
        };
        let answer = stream.answer.unwrap();
        assert_eq!(answer.schema_mismatch.is_none(), fits);
        assert_eq!(driven.violations().is_empty(), fits);
    }
}

/// R63: a schema that is not to be used is noted, and the call is as good as before; without a schema there
/// is nothing to check.
#[cfg(feature = "schema")]
#[test]
fn r63_a_schema_that_is_refused_is_noted() {
    let odd = json!({"name": "t", "outputSchema": {"$schema": "https://example.com/mine"}});
    for (tool, noted) in [
        (odd, true),
        (json!({"name": "t", "inputSchema": {}}), false),
    ] {
        let mut driven = Driven::new(tool, |_| {});
        driven.submit(true).unwrap();
        driven.answer(result(Some(json!({"x": 1}))));
        assert!(matches!(
            driven.ended.take(),
            Some(Outcome::Complete(Reply::Call(result))) if result.schema_mismatch.is_none()
        ));
        assert_eq!(driven.violations(), []);
        let notes = driven.core.report().peers[0].notes.join("\n");
        assert_eq!(
            notes.contains("results of t are not validated"),
            noted,
            "{notes}"
        );
    }
}

/// R63, R21: a schema is that of the tool's present descriptor.
#[cfg(feature = "schema")]
#[test]
fn r63_a_changed_schema_takes_effect() {
    let mut driven = Driven::new(tool(), |peer| peer.validate_output = true);
    let call = |driven: &mut Driven| {
        driven.submit(false).unwrap();
        driven.answer(result(Some(json!({"celsius": "warm"}))));
        let Some(Outcome::Complete(Reply::Call(result))) = driven.ended.take() else {
            panic!()
        };
        result.schema_mismatch.is_some()
    };
    assert!(call(&mut driven));
    driven
        .core
        .submit(Operation::list_tools().on("a"), NOW)
        .unwrap();
    driven.turn();
    driven.answer(json!({"tools": [{"name": "t", "outputSchema": {"type": "object"}}]}));
    assert!(!call(&mut driven));
    assert_eq!(driven.violations(), [Violation::OutputMismatch]);
}
