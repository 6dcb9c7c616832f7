//! `doctor`: per server what was run, what came back, and what to do about it.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use mcp_proto::action::LinkTarget;
use mcp_proto::config::{Templated, Transport};
use mcp_proto::metrics::ServerSnapshot;
use mcp_proto::report::PeerState;
use mcp_proto::wire::{Json, ObjectWriter};
use mcp_proto::{Config, Diagnosis, Era, Operation, Request, Version};

use crate::args::Global;
use crate::exit::{Exit, Failure};
use crate::output::{self, json, one_line};
use crate::session::{self, Session};

/// What is known about a server beside its diagnosis.
#[derive(Clone, Copy)]
struct Beside<'a> {
    /// How long it took to become ready or to fail.
    after: Option<Duration>,
    metrics: Option<&'a ServerSnapshot>,
    /// The file that its command names, where the command does not say so itself.
    program: Option<&'a str>,
}

/// Connects every server and shows everything that is known about it.
pub(crate) fn run(
    session: &dyn Session,
    global: &Global,
    names: &[String],
    programs: &BTreeMap<String, String>,
) -> Result<Exit, Failure> {
    let settled = settle_each(session, names);
    session::settle(session)?;
    let mut diagnoses = session.diagnoses();
    diagnoses.sort_by(|a, b| a.report.name.cmp(&b.report.name));
    let metrics = session.metrics();
    let beside = |diagnosis: &Diagnosis| {
        let name = &diagnosis.report.name;
        Beside {
            after: settled.get(name).copied(),
            metrics: metrics.servers.iter().find(|server| server.server == *name),
            program: programs.get(name).map(String::as_str),
        }
    };
    if global.json {
        let documents: Vec<Vec<u8>> = diagnoses
            .iter()
            .map(|diagnosis| json::document(|object| write(object, diagnosis, beside(diagnosis))))
            .collect();
        output::print_json(json::document(|object| {
            json::objects(object, "peers", &documents);
        }));
    } else {
        for (index, diagnosis) in diagnoses.iter().enumerate() {
            let gap = if index == 0 { "" } else { "\n" };
            output::print(&format!("{gap}{}", text(diagnosis, beside(diagnosis))));
        }
    }
    let failed = |diagnosis: &Diagnosis| diagnosis.report.state == PeerState::Failed;
    Ok(if diagnoses.iter().any(failed) {
        Exit::PeerFailed
    } else {
        Exit::Good
    })
}

/// The files that commands lead to, by server, where that is not what the commands say. What came from a
/// variable may be a secret and is not shown.
pub(crate) fn programs(config: &Config) -> BTreeMap<String, String> {
    let pinned = config
        .clone()
        .pin(&mut |name| env::var(name).ok(), &mut executable);
    let shown = pinned.peers.iter().filter_map(|peer| {
        let Transport::Stdio(stdio) = &peer.config.transport else {
            return None;
        };
        let LinkTarget::Process(plan) = peer.target.as_deref().ok()? else {
            return None;
        };
        let variable =
            stdio.command.is_expanded() || stdio.cwd.as_ref().is_some_and(Templated::is_expanded);
        let differs = !variable && plan.program != stdio.command.value();
        differs.then(|| (peer.config.name.clone(), plan.program.clone()))
    });
    shown.collect()
}

/// The absolute path of a file that can be executed.
fn executable(path: &str) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    #[cfg(unix)]
    let runs = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let runs = true;
    let absolute = std::path::absolute(path).ok()?;
    let path = absolute.to_str().filter(|_| runs && metadata.is_file());
    path.map(str::to_owned)
}

/// How long each server took to become ready or to fail.
fn settle_each(session: &dyn Session, names: &[String]) -> BTreeMap<String, Duration> {
    let started = Instant::now();
    let wait = |name: &String| {
        session::run(session, Operation::new(Request::Settle).on(name.clone()));
        started.elapsed()
    };
    thread::scope(|scope| {
        let waits: Vec<_> = names
            .iter()
            .map(|name| (name, scope.spawn(move || wait(name))))
            .collect();
        waits
            .into_iter()
            .filter_map(|(name, wait)| Some((name.clone(), wait.join().ok()?)))
            .collect()
    })
}

/// What to do, in one sentence.
fn remedy(diagnosis: &Diagnosis) -> String {
    let report = &diagnosis.report;
    if let Some(failure) = &report.failure {
        return failure.remedy.clone();
    }
    if report.degraded.is_some() {
        return "Report the violation to the server's author: its answers break the protocol."
            .to_owned();
    }
    if diagnosis.counters.noise_lines > 0 {
        return "Make the server write its logs to standard error: standard output is for messages."
            .to_owned();
    }
    "Nothing to do.".to_owned()
}

fn text(diagnosis: &Diagnosis, beside: Beside<'_>) -> String {
    let report = &diagnosis.report;
    let mut shown = String::new();
    let mut line = |label: &str, value: &str| {
        // Writing to a string never fails. A stack trace keeps its indentation.
        let indent = value.len() - value.trim_start().len();
        let _ = writeln!(shown, "  {label:<10}{:indent$}{}", "", one_line(value));
    };
    line("ran", &diagnosis.command);
    if let Some(program) = beside.program {
        line("program", program);
    }
    if let Some(server) = &diagnosis.server {
        line("server", server);
    }
    let state = match beside.after {
        Some(after) => format!("{} after {} ms", report.state.as_str(), after.as_millis()),
        None => report.state.as_str().to_owned(),
    };
    line("state", &state);
    if let (Some(era), Some(version)) = (report.era, report.version) {
        line("era", &format!("{} ({})", era.as_str(), version.as_str()));
    }
    if report.state == PeerState::Ready {
        line("tools", &report.tools.len().to_string());
    }
    for observation in &diagnosis.evidence {
        line("evidence", &observation.to_string());
    }
    for noise in &diagnosis.noise {
        line("stdout", noise);
    }
    for stderr in &diagnosis.stderr {
        line("stderr", stderr);
    }
    line("counted", &counted(diagnosis));
    if let Some(metrics) = beside.metrics {
        line("available", &availability(metrics));
    }
    for note in &report.notes {
        line("note", note);
    }
    if let Some(degraded) = &report.degraded {
        line("degraded", degraded);
    }
    if let Some(failure) = &report.failure {
        line(
            "failure",
            &format!("{} ({})", failure.message, failure.kind),
        );
    }
    line("remedy", &remedy(diagnosis));
    format!("{}\n{shown}", one_line(&report.name))
}

/// Whether the server can be relied on, and how long calls took where there were any.
fn availability(metrics: &ServerSnapshot) -> String {
    let state = match (metrics.available, metrics.down_reason) {
        (Some(true), _) => "yes".to_owned(),
        (Some(false), Some(reason)) => format!("no ({})", reason.as_str()),
        _ => "unknown".to_owned(),
    };
    let latency = metrics.latency;
    if latency.count == 0 {
        return state;
    }
    let millis = |micros: u64| micros / 1_000;
    format!(
        "{state}; {} calls, half of them within {} ms, 95 % within {} ms",
        latency.count,
        millis(latency.p50_micros),
        millis(latency.p95_micros)
    )
}

/// What was counted and is not zero, but for operations: those are the doctor's own.
fn counted(diagnosis: &Diagnosis) -> String {
    let parts: Vec<String> = counters(diagnosis)
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    if parts.is_empty() {
        return "nothing".to_owned();
    }
    parts.join(", ")
}

fn counters(diagnosis: &Diagnosis) -> [(&'static str, u64); 7] {
    let counters = &diagnosis.counters;
    [
        ("starts", counters.starts),
        ("bytesReceived", counters.bytes_received),
        ("violations", counters.violations),
        ("noiseLines", counters.noise_lines),
        ("lateAnswers", counters.late_answers),
        ("unknownAnswers", counters.unknown_answers),
        ("droppedNotifications", counters.dropped_notifications),
    ]
}

fn write(object: &mut ObjectWriter<'_>, diagnosis: &Diagnosis, beside: Beside<'_>) {
    let report = &diagnosis.report;
    object.string("name", &report.name);
    object.string("command", &diagnosis.command);
    if let Some(program) = beside.program {
        object.string("program", program);
    }
    object.string("state", report.state.as_str());
    if let Some(after) = beside.after {
        object.u64(
            "settledMs",
            u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
        );
    }
    if let Some(era) = report.era.map(Era::as_str) {
        object.string("era", era);
    }
    if let Some(version) = report.version.map(Version::as_str) {
        object.string("version", version);
    }
    if let Some(server) = &diagnosis.server {
        object.string("server", server);
    }
    let evidence: Vec<String> = diagnosis.evidence.iter().map(ToString::to_string).collect();
    json::strings(object, "evidence", &evidence);
    json::strings(object, "stdoutNoise", &diagnosis.noise);
    json::strings(object, "stderr", &diagnosis.stderr);
    json::strings(object, "notes", &report.notes);
    let mut counted = object.object("counters");
    for (name, count) in counters(diagnosis) {
        counted.u64(name, count);
    }
    counted.end();
    if let Some(degraded) = &report.degraded {
        object.string("degraded", degraded);
    }
    if let Some(failure) = report
        .failure
        .as_ref()
        .and_then(|failure| Json::encode(failure).ok())
    {
        object.raw("failure", failure.as_str());
    }
    object.string("remedy", &remedy(diagnosis));
    let metrics = beside
        .metrics
        .and_then(|metrics| Json::encode(metrics).ok());
    if let Some(metrics) = metrics {
        object.raw("metrics", metrics.as_str());
    }
}
