use alloc::string::{String, ToString};
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::error::{Error, RpcError};
use crate::operation::Reply;
use crate::types::CallToolResult;
use crate::violation::Fault;
use crate::wire::{Json, Members};

fn at(seconds: u64) -> Instant {
    Instant::after_epoch(Duration::from_secs(seconds))
}

fn answered(text: &str) -> Outcome {
    let members = Members::parse(text).unwrap();
    Outcome::Complete(Reply::Call(CallToolResult::read(&members).unwrap()))
}

fn failed(cause: Cause) -> Outcome {
    Outcome::Failed(Error::new("git", cause))
}

fn violated() -> Outcome {
    let fault = Fault::new(Violation::MalformedContent, "content[0]");
    failed(Cause::SchemaViolation(fault))
}

fn busy() -> ServerMetrics {
    let mut metrics = ServerMetrics::default();
    metrics.connected(at(1));
    let millis = Duration::from_millis;
    metrics.call_ended(&answered(r#"{"content":[]}"#), millis(10));
    metrics.call_ended(&answered(r#"{"content":[],"isError":true}"#), millis(20));
    let rpc = RpcError {
        code: -32602,
        message: "no".into(),
        data: None,
    };
    metrics.call_ended(&failed(Cause::Rpc(rpc)), millis(30));
    metrics.violation(Violation::MalformedContent);
    metrics.call_ended(&violated(), millis(2_500));
    metrics.violation(Violation::Noise);
    metrics.failed(ErrorKind::Closed);
    metrics.went_down(DownReason::Degraded, at(2));
    metrics
}

fn counters() -> Counters {
    Counters {
        late_answers: 1,
        unknown_answers: 2,
        dropped_notifications: 4,
        dropped_requests: 8,
        bytes_received: 77,
        bytes_sent: 1_000,
        retries: 1,
        stream_drops: 5,
        starts: 1,
        noise_lines: 3,
        ..Counters::default()
    }
}

/// R51: a violation or failure of any kind counts as an error, and once.
#[test]
fn r51_everything_that_goes_wrong_is_one_error() {
    let snapshot = busy().snapshot("git", &counters());
    let kinds: Vec<_> = snapshot
        .errors_by_kind
        .iter()
        .map(|error| (error.kind, error.count))
        .collect();
    let expected = [
        ("closed", 1),
        ("rpc", 1),
        ("schemaViolation", 2),
        ("toolError", 1),
    ];
    assert_eq!(kinds, expected);
    assert_eq!((snapshot.calls, snapshot.errors), (4, 5));
    assert_eq!(snapshot.drops, 15);
    let mut good = ServerMetrics::default();
    good.call_ended(&answered(r#"{"content":[]}"#), Duration::ZERO);
    let good = good.snapshot("git", &Counters::default());
    assert_eq!((good.calls, good.errors, good.violations.len()), (1, 0, 0));
}

/// R51: availability flips on degradation and on loss, and recovers on a successful reconnect.
#[test]
fn r51_availability() {
    let mut metrics = ServerMetrics::default();
    let mut seen = Vec::from([metrics.availability()]);
    let mut step = |change: &dyn Fn(&mut ServerMetrics)| {
        change(&mut metrics);
        seen.push(metrics.availability());
    };
    step(&|metrics| metrics.connected(at(1)));
    step(&|metrics| metrics.connected(at(2)));
    step(&|metrics| metrics.went_down(DownReason::Degraded, at(3)));
    step(&|metrics| metrics.call_ended(&answered(r#"{"content":[]}"#), Duration::ZERO));
    step(&|metrics| metrics.went_down(DownReason::Lost, at(4)));
    step(&|metrics| metrics.connected(at(5)));
    step(&|metrics| metrics.went_down(DownReason::Lost, at(6)));
    let up = |seconds| Availability::Up { since: at(seconds) };
    let down = |seconds, reason| Availability::Down {
        since: at(seconds),
        reason,
    };
    let degraded = down(3, DownReason::Degraded);
    let expected = [
        Availability::Unknown,
        up(1),
        up(1),
        degraded,
        degraded,
        degraded,
        up(5),
        down(6, DownReason::Lost),
    ];
    assert_eq!(seen, expected);
    let snapshot = metrics.snapshot("git", &Counters::default());
    assert_eq!(snapshot.availability_changes, 4);
}

fn snapshot() -> MetricsSnapshot {
    let idle = ServerMetrics::default().snapshot("a \"quoted\"\\\n name", &Counters::default());
    MetricsSnapshot::new([busy().snapshot("git", &counters()), idle])
}

/// R51.
#[test]
fn r51_prometheus() {
    insta::assert_snapshot!(snapshot().to_prometheus());
}

/// R51: every member; sorted by name, whatever the order was.
#[test]
fn r51_json() {
    let mut servers = snapshot().servers;
    servers.reverse();
    let again = MetricsSnapshot::new(servers);
    assert_eq!(again, snapshot());
    let json = Json::encode(&again).unwrap().to_string();
    insta::assert_snapshot!(json.replace("},{\"server\"", "},\n{\"server\""));
}

/// One sample of the text format: a name, labels, a value.
type Sample = (String, Vec<(String, String)>, String);

/// Reads a sample as the format's definition says, independently of the writer.
fn parse(line: &str) -> Sample {
    let (name, mut rest) = line.split_once('{').unwrap();
    let mut labels = Vec::new();
    while let Some((label, after)) = rest.split_once("=\"") {
        let mut value = String::new();
        let mut chars = after.chars();
        loop {
            match chars.next().unwrap() {
                '"' => break,
                '\\' => value.push(match chars.next().unwrap() {
                    'n' => '\n',
                    char @ ('\\' | '"') => char,
                    char => panic!("unknown escape {char}"),
                }),
                char => value.push(char),
            }
        }
        labels.push((label.trim_start_matches(',').to_string(), value));
        rest = chars.as_str();
        if rest.starts_with('}') {
            break;
        }
    }
    (name.into(), labels, rest.strip_prefix("} ").unwrap().into())
}

proptest! {
    /// R51: whatever the servers are called, the text parses back to their names and numbers.
    #[test]
    fn r51_prometheus_parses_back(
        names in proptest::collection::btree_set("(?s).{0,12}|[\\\\\"\n,{}=]{0,6}", 1..4),
    ) {
        let servers = names.iter().map(|name| busy().snapshot(name, &counters()));
        let text = MetricsSnapshot::new(servers).to_prometheus();
        prop_assert!(text.ends_with('\n'));
        let samples: Vec<Sample> =
            text.split_terminator('\n').filter(|line| !line.starts_with('#')).map(parse).collect();
        for (name, labels, value) in &samples {
            prop_assert!(names.contains(&labels[0].1));
            prop_assert_eq!(labels[0].0.as_str(), "server");
            prop_assert!(value.parse::<f64>().is_ok(), "{} {}", name, value);
        }
        let of = |wanted: &str| -> Vec<(String, String)> {
            let found = samples.iter().filter(|(name, ..)| name == wanted);
            found.map(|(_, labels, value)| (labels[0].1.clone(), value.clone())).collect()
        };
        let expected = |value: &str| -> Vec<(String, String)> {
            names.iter().map(|name| (name.clone(), value.to_string())).collect()
        };
        prop_assert_eq!(of("mcp_client_calls_total"), expected("4"));
        prop_assert_eq!(of("mcp_client_up"), expected("0"));
        prop_assert_eq!(of("mcp_client_call_duration_seconds_sum"), expected("2.560000"));
    }
}
