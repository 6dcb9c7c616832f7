//! The rows without I/O.

use std::hint::black_box;

use mcp_proto::wire::{Answer, Message, envelope};
use mcp_proto::{Outcome, Reply};
use serde::de::IgnoredAny;

use crate::host::Host;
use crate::measure::{Measure, Plan, prepared, repeat};
use crate::report::{Row, Target};
use crate::{payload, theirs};

/// Measures them.
pub(crate) fn measure(plan: &Plan) -> Vec<Row> {
    let rows: [(&str, Measure); 5] = [
        ("core_call", core_call),
        ("envelope_small", envelope_small),
        ("envelope_tools_list", envelope_tools_list),
        ("list_1000", list_1000),
        ("structured_1mb", structured_1mb),
    ];
    rows.into_iter()
        .filter(|(work, _)| plan.wants(work))
        .map(|(work, row)| row(plan, work))
        .collect()
}

/// One call through the core: routed by its canonical name, encoded with `_meta` and trace, its answer
/// decoded and delivered. The floor writes a fixed request and reads the answer past.
fn core_call(plan: &Plan, work: &'static str) -> Row {
    let result = payload::small_result();
    let line = payload::response("100000", &result);
    let mut host = Host::connected();
    let call = || {
        host.call();
        black_box(host.deadline());
        host.reply(&result);
        black_box(host.ended());
    };
    let (ready, mut request) = (payload::request(), Vec::new());
    let floor = move || {
        request.clear();
        request.extend_from_slice(ready.as_bytes());
        black_box(&request);
        skip_line(&line);
    };
    let target = Target::Micros(1.2);
    plan.row(work, target, repeat(call), None, Some(repeat(floor)))
}

fn envelope_small(plan: &Plan, work: &'static str) -> Row {
    envelope_row(plan, work, &payload::small_result())
}

fn envelope_tools_list(plan: &Plan, work: &'static str) -> Row {
    envelope_row(plan, work, &payload::tools_result(100, 74_000))
}

/// One response line to an envelope. The floor reads past the line.
fn envelope_row(plan: &Plan, work: &'static str, result: &str) -> Row {
    let line = payload::response("100000", result);
    let text = line.trim_end();
    let ours = || match envelope::read(black_box(text.as_bytes())) {
        Ok(Message::Response(response)) => {
            let Answer::Result(members) = &response.answer else {
                panic!("the answer is a result");
            };
            black_box(members.len());
        }
        _ => panic!("the line is a response"),
    };
    let rmcp = || drop(black_box(theirs::decode(black_box(text.as_bytes()))));
    let floor = || skip_line(&line);
    let target = Target::OverFloor(1.25);
    plan.row(
        work,
        target,
        repeat(ours),
        Some(repeat(rmcp)),
        Some(repeat(floor)),
    )
}

/// A thousand tools from received bytes to the first routed call, digest included; rmcp only decodes them.
fn list_1000(plan: &Plan, work: &'static str) -> Row {
    let result = payload::tools_result(1_000, 624_000);
    let line = payload::response("100000", &result);
    let ours = prepared(
        || {
            let mut host = Host::asking();
            host.written();
            let line = payload::response(host.id(), &result);
            (host, line)
        },
        |(host, line)| {
            host.receive(line.as_bytes());
            host.call();
        },
    );
    let rmcp = || drop(black_box(theirs::decode(line.trim_end().as_bytes())));
    let floor = || skip_line(&line);
    let target = Target::OverRmcp(3.0);
    plan.row(work, target, ours, Some(repeat(rmcp)), Some(repeat(floor)))
}

/// A call's result with a megabyte of structured content, from received bytes to the application; rmcp
/// only decodes it.
fn structured_1mb(plan: &Plan, work: &'static str) -> Row {
    let result = payload::structured_result(1_000_000);
    let line = payload::response("100000", &result);
    let mut host = Host::connected();
    let ours = move |count| {
        let mut total = std::time::Duration::ZERO;
        for _ in 0..count {
            host.call();
            host.written();
            let line = payload::response(host.id(), &result);
            let begun = std::time::Instant::now();
            host.receive(line.as_bytes());
            let ended = host.ended();
            total += begun.elapsed();
            assert!(matches!(ended.outcome, Outcome::Complete(Reply::Call(_))));
        }
        total
    };
    let rmcp = || drop(black_box(theirs::decode(line.trim_end().as_bytes())));
    let floor = || skip_line(&line);
    let target = Target::OverRmcp(10.0);
    plan.row(
        work,
        target,
        Box::new(ours),
        Some(repeat(rmcp)),
        Some(repeat(floor)),
    )
}

/// Finds the end of a line and reads past its JSON.
fn skip_line(line: &str) {
    let bytes = black_box(line.as_bytes());
    let end = memchr::memchr(b'\n', bytes).expect("the line ends");
    let skipped: Result<IgnoredAny, _> = serde_json::from_slice(&bytes[..end]);
    assert!(black_box(skipped).is_ok());
}
