//! `doctor`: per server what was run, what came back, and what to do about it.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use mcp_proto::action::LinkTarget;
use mcp_proto::config::{StdioConfig, Templated, Transport};
use mcp_proto::metrics::ServerSnapshot;
use mcp_proto::report::PeerState;
use mcp_proto::wire::{Json, ObjectWriter};
use mcp_proto::{Config, Diagnosis, Era, Operation, Request, Version};

use crate::args::Global;
use crate::exit::{Exit, Failure};
use crate::output::{self, json, one_line};
use crate::program::quoted;
use crate::session::{self, Session};

/// How many of the last lines of a server are shown to people.
const LINES_MAX: usize = 20;

/// What is known about a server beside its diagnosis.
#[derive(Clone, Copy)]
struct Beside<'a> {
    /// How long it took to become ready or to fail.
    after: Option<Duration>,
    metrics: Option<&'a ServerSnapshot>,
    started: Option<&'a Started>,
}

/// How a server is started. What came from a variable may be a secret: the variable is shown.
pub(crate) struct Started {
    /// The command as a shell takes it, or the address.
    command: String,
    /// Where it is run, if the configuration says so.
    cwd: Option<String>,
    /// The file that its command names, where the command does not say so itself.
    program: Option<String>,
}

/// Connects every server and shows everything that is known about it.
pub(crate) fn run(
    session: &dyn Session,
    global: &Global,
    names: &[String],
    started: &BTreeMap<String, Started>,
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
            started: started.get(name),
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

/// How each server is started, by its name.
pub(crate) fn started(config: &Config) -> BTreeMap<String, Started> {
    let pinned = config
        .clone()
        .pin(&mut |name| env::var(name).ok(), &mut executable);
    let started = pinned.peers.iter().map(|peer| {
        let started = match (&peer.config.transport, peer.target.as_deref()) {
            (Transport::Stdio(stdio), target) => Started {
                command: typed(stdio),
                cwd: stdio.cwd.as_ref().map(|cwd| cwd.shown().to_owned()),
                program: target.ok().and_then(|target| program(stdio, target)),
            },
            (other, _) => Started {
                command: other.to_string(),
                cwd: None,
                program: None,
            },
        };
        (peer.config.name.clone(), started)
    });
    started.collect()
}

/// The command as it would be typed.
fn typed(stdio: &StdioConfig) -> String {
    let words = [&stdio.command].into_iter().chain(&stdio.args);
    let words: Vec<String> = words.map(|word| quoted(word.shown())).collect();
    words.join(" ")
}

/// The file that the command leads to, where that is not what the command says, nor came from a variable.
fn program(stdio: &StdioConfig, target: &LinkTarget) -> Option<String> {
    let LinkTarget::Process(plan) = target else {
        return None;
    };
    let variable =
        stdio.command.is_expanded() || stdio.cwd.as_ref().is_some_and(Templated::is_expanded);
    let differs = !variable && plan.program != stdio.command.value();
    differs.then(|| plan.program.clone())
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
    line("ran", command(diagnosis, beside));
    let started = beside.started;
    if let Some(cwd) = started.and_then(|started| started.cwd.as_deref()) {
        line("cwd", cwd);
    }
    if let Some(program) = started.and_then(|started| started.program.as_deref()) {
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
    let noise_lines = usize::try_from(diagnosis.counters.noise_lines).unwrap_or(usize::MAX);
    for (label, lines, total) in [
        ("stdout", &diagnosis.noise, noise_lines),
        ("stderr", &diagnosis.stderr, diagnosis.stderr.len()),
    ] {
        let last = lines.len().min(LINES_MAX);
        if let before @ 1.. = total.saturating_sub(last) {
            line(label, &format!("[{before} more lines before these]"));
        }
        for said in lines.iter().skip(lines.len() - last) {
            line(label, said);
        }
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

/// What was run.
fn command<'a>(diagnosis: &'a Diagnosis, beside: Beside<'a>) -> &'a str {
    let started = beside.started.map(|started| started.command.as_str());
    started.unwrap_or(&diagnosis.command)
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
    object.string("command", command(diagnosis, beside));
    let started = beside.started;
    if let Some(cwd) = started.and_then(|started| started.cwd.as_deref()) {
        object.string("cwd", cwd);
    }
    if let Some(program) = started.and_then(|started| started.program.as_deref()) {
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
