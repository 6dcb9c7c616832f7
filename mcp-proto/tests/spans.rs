//! Spans of a client's requests (feature `tracing`, R51).
#![cfg(feature = "tracing")]

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use mcp_proto::{Action, Client, Config, Event, Identity, Instant, LinkId, Operation, PeerConfig};
use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};

const NOW: Instant = Instant::ZERO;

type Fields = BTreeMap<&'static str, String>;

/// Keeps the fields of every span, in the order in which they were opened, and notes when one is closed.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Fields>>>);

struct Keep<'a>(&'a mut Fields);

impl Visit for Keep<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Subscriber for Collector {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::new();
        span.record(&mut Keep(&mut fields));
        let mut kept = self.0.lock().unwrap();
        kept.push(fields);
        Id::from_u64(kept.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut kept = self.0.lock().unwrap();
        values.record(&mut Keep(&mut kept[span.into_u64() as usize - 1]));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &tracing::Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}

    fn try_close(&self, span: Id) -> bool {
        let mut kept = self.0.lock().unwrap();
        kept[span.into_u64() as usize - 1].insert("closed", "yes".into());
        true
    }
}

/// A client of one peer `a`, whose server is the test.
struct Driven {
    core: Client,
    link: Option<LinkId>,
    sent: Vec<Value>,
}

impl Driven {
    fn turn(&mut self) {
        while let Some(action) = self.core.poll_action() {
            match action {
                Action::OpenLink { link, .. } => {
                    self.link = Some(link);
                    self.core.handle(Event::LinkOpened { link }, NOW);
                }
                Action::Write { link, bytes: spent } => {
                    let lines = spent.split(|byte| *byte == b'\n');
                    let lines = lines.filter(|line| !line.is_empty());
                    self.sent
                        .extend(lines.map(|line| serde_json::from_slice::<Value>(line).unwrap()));
                    self.core.handle(Event::LinkWritten { link, spent }, NOW);
                }
                _ => {}
            }
        }
    }

    fn answer(&mut self, (member, value): (&str, Value)) {
        let request = self.sent.remove(0);
        let line = json!({"jsonrpc": "2.0", "id": request["id"], member: value});
        let (link, bytes) = (self.link.unwrap(), format!("{line}\n").into_bytes());
        let bytes = &bytes;
        self.core.handle(Event::LinkData { link, bytes }, NOW);
        self.turn();
    }

    fn submit(&mut self, operation: Operation) -> mcp_proto::OperationId {
        let id = self.core.submit(operation, NOW).unwrap();
        self.turn();
        id
    }
}

/// R51: every request has one span, closed with the outcome of what it was for; neither arguments nor results
/// are in it.
#[test]
fn r51_every_request_has_a_span() {
    let collector = Collector::default();
    tracing::subscriber::with_default(collector.clone(), || {
        let config = Config::new(vec![PeerConfig::stream("a")]);
        let pinned = config.pin(&mut |_| None, &mut |_| None);
        let mut driven = Driven {
            core: Client::new(pinned, Identity::default(), NOW),
            link: None,
            sent: Vec::new(),
        };
        driven.core.connect(NOW);
        driven.turn();
        let complete = |mut result: Value| {
            result["resultType"] = "complete".into();
            ("result", result)
        };
        driven.answer(complete(
            json!({"supportedVersions": ["2026-07-28"], "capabilities": {}}),
        ));
        driven.answer(complete(json!({"tools": [{"name": "t"}]})));
        let arguments = mcp_proto::wire::Json::parse(r#"{"password":"hunter2"}"#).ok();
        driven.submit(Operation::call("t", arguments).on("a"));
        driven.answer(complete(json!({"content": [], "isError": true})));
        driven.submit(Operation::prompt("p", None).on("a"));
        driven.answer((
            "error",
            json!({"code": -32602, "message": "unknown prompt"}),
        ));
        driven.submit(Operation::list_prompts().on("a"));
        driven.answer(complete(json!({"prompts": [], "nextCursor": "2"})));
        driven.answer(complete(json!({"prompts": []})));
        let read = driven.submit(Operation::read("file:///x").on("a"));
        driven.core.cancel(read, NOW);
    });
    let kept = collector.0.lock().unwrap();
    let shown: Vec<String> = kept
        .iter()
        .map(|span| {
            let field = |name| span.get(name).map_or("-", String::as_str);
            format!(
                "{} #{} {} {}",
                field("otel.name"),
                field("jsonrpc.request.id"),
                field("error.type"),
                field("closed"),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            "server/discover #1 - yes",
            "tools/list #2 - yes",
            "tools/call t #3 tool_error yes",
            "prompts/get p #4 -32602 yes",
            "prompts/list #5 - yes",
            "prompts/list #6 - yes",
            "resources/read #7 cancelled yes",
        ]
    );
    assert!(!format!("{kept:?}").contains("hunter2"));
}
