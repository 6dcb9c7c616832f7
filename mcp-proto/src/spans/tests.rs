// Only with std a subscriber can be set for one test.
#![cfg(feature = "std")]

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use std::sync::Mutex;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::*;
use crate::error::RpcError;
use crate::operation::Reply;
use crate::types::CallToolResult;
use crate::wire::Members;

type Fields = BTreeMap<&'static str, String>;

/// Keeps the fields of every span, in the order in which they were opened.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Fields>>>);

struct Keep<'a>(&'a mut Fields);

impl Visit for Keep<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), alloc::format!("{value:?}"));
    }
}

impl Subscriber for Collector {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::from([("span", span.metadata().name().into())]);
        if let Some(parent) = span.parent() {
            fields.insert("parent", alloc::format!("{}", parent.into_u64()));
        }
        span.record(&mut Keep(&mut fields));
        let mut spans = self.0.lock().unwrap();
        spans.push(fields);
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut spans = self.0.lock().unwrap();
        values.record(&mut Keep(&mut spans[span.into_u64() as usize - 1]));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn facts(target: Target<'_>) -> CallFacts<'_> {
    CallFacts {
        peer: "git",
        method: match target {
            Target::Resource(_) => "resources/read",
            Target::Prompt(_) => "prompts/get",
            Target::Tool(_) => "tools/call",
            Target::None => "tools/list",
        },
        target,
        request_id: Some(7),
        version: Some(Version::V2026_07_28),
        transport: TransportKind::Stdio,
    }
}

/// The fields of the spans of these calls, one a line.
fn collect(calls: &[(CallFacts<'_>, Outcome)]) -> String {
    let collector = Collector::default();
    tracing::subscriber::with_default(collector.clone(), || {
        for (facts, outcome) in calls {
            CallSpan::open(facts).close(outcome);
        }
    });
    let mut text = String::new();
    for fields in collector.0.lock().unwrap().iter() {
        for (name, value) in fields {
            text.push_str(&alloc::format!("{name}: {value}\n"));
        }
        text.push('\n');
    }
    text
}

fn answered(text: &str) -> Outcome {
    let members = Members::parse(text).unwrap();
    Outcome::Complete(Reply::Call(CallToolResult::read(&members).unwrap()))
}

/// R51: names and attributes of the conventions; what is said is bounded and printable, and nothing of
/// the arguments or the result is in it.
#[test]
fn r51_spans_follow_the_conventions() {
    let rpc = Cause::Rpc(RpcError {
        code: -32602,
        message: "no such thing\u{1b}[2J".into(),
        data: None,
    });
    let other = CallFacts {
        request_id: None,
        version: None,
        transport: TransportKind::Stream,
        ..facts(Target::None)
    };
    let failed = |cause| Outcome::Failed(Error::new("git", cause));
    let good = answered(r#"{"content":[{"type":"text","text":"private"}]}"#);
    let bad = answered(r#"{"content":[],"isError":true}"#);
    let http = CallFacts {
        transport: TransportKind::Http,
        ..facts(Target::Prompt("greet\n"))
    };
    insta::assert_snapshot!(collect(&[
        (facts(Target::Tool("diff")), good),
        (facts(Target::Tool("diff")), bad),
        (facts(Target::Resource("file:///a")), failed(rpc)),
        (http, failed(Cause::Cancelled)),
        (other, Outcome::Complete(Reply::Settled)),
    ]));
}

#[test]
fn r51_names_are_bounded() {
    let long = "x".repeat(10_000);
    let text = collect(&[(
        facts(Target::Tool(&long)),
        Outcome::Complete(Reply::Settled),
    )]);
    assert!(text.contains("otel.name: tools/call xxx"));
    assert!(text.len() < 1_000, "{}", text.len());
}

/// Without a subscriber there is no span, and closing one does nothing.
#[test]
fn r51_nobody_listens() {
    let span = CallSpan::open(&facts(Target::None));
    assert!(span.span().is_disabled());
    span.close(&Outcome::Complete(Reply::Settled));
}

/// The application's span is the parent, wherever the request is sent from.
#[test]
fn r51_a_parent_is_given() {
    let collector = Collector::default();
    tracing::subscriber::with_default(collector.clone(), || {
        let root = CallSpan::open(&facts(Target::None));
        let _child = CallSpan::open_under(&facts(Target::None), root.span());
    });
    let spans = collector.0.lock().unwrap();
    let parents: Vec<_> = spans.iter().map(|fields| fields.get("parent")).collect();
    assert_eq!(parents, [None, Some(&String::from("1"))]);
}
