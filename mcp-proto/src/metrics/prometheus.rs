//! The text format of Prometheus, version 0.0.4.
//!
//! Names begin with `mcp_client_`, counters end with `_total`, times are in seconds and sizes in bytes
//! (prometheus.io: "Metric and label naming", "Exposition formats").

use alloc::format;
use alloc::string::String;
use core::fmt::{self, Write as _};

use super::snapshot::{MetricsSnapshot, ServerSnapshot};
use crate::violation::Violation;

const MICROS_PER_SECOND: u64 = 1_000_000;

/// A family with one sample for each server.
struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: fn(&ServerSnapshot) -> u64,
}

const fn counter(
    name: &'static str,
    help: &'static str,
    value: fn(&ServerSnapshot) -> u64,
) -> Family {
    Family {
        name,
        kind: "counter",
        help,
        value,
    }
}

const PLAIN: [Family; 8] = [
    counter(
        "mcp_client_calls_total",
        "Tool calls that were sent and have ended.",
        |server| server.calls,
    ),
    counter(
        "mcp_client_retries_total",
        "Requests that were sent again.",
        |server| server.retries,
    ),
    counter(
        "mcp_client_noise_lines_total",
        "Lines on standard output that were no message.",
        |server| server.noise_lines,
    ),
    counter(
        "mcp_client_starts_total",
        "Processes started or streams taken.",
        |server| server.starts,
    ),
    counter(
        "mcp_client_received_bytes_total",
        "Bytes read from the server.",
        |server| server.bytes_received,
    ),
    counter(
        "mcp_client_sent_bytes_total",
        "Bytes written to the server.",
        |server| server.bytes_sent,
    ),
    counter(
        "mcp_client_stream_drops_total",
        "Attempts of streamed calls that were dropped before the text was complete.",
        |server| server.stream_drops,
    ),
    counter(
        "mcp_client_availability_changes_total",
        "How often the server became available or ceased to be.",
        |server| server.availability_changes,
    ),
];

impl MetricsSnapshot {
    /// The snapshot as Prometheus scrapes it. Serve it as `text/plain; version=0.0.4`.
    ///
    /// Every family is there even when there is nothing to count, except for kinds of errors and
    /// violations that never occurred and for the availability of a server that is still connecting.
    #[must_use]
    pub fn to_prometheus(&self) -> String {
        let mut text = String::new();
        // Writing to a String does not fail.
        let _ = self.write_prometheus(&mut text);
        text
    }

    fn write_prometheus(&self, out: &mut String) -> fmt::Result {
        for family in &PLAIN {
            head(out, family.name, family.kind, family.help)?;
            for server in &self.servers {
                let (name, value) = (family.name, (family.value)(server));
                writeln!(
                    out,
                    "{name}{{server=\"{}\"}} {value}",
                    Label(&server.server)
                )?;
            }
        }
        self.write_kinds(out)?;
        self.write_up(out)?;
        self.write_latency(out)
    }

    /// What has a second label.
    fn write_kinds(&self, out: &mut String) -> fmt::Result {
        let name = "mcp_client_errors_total";
        head(out, name, "counter", "Violations and failures of any kind.")?;
        for server in &self.servers {
            for error in &server.errors_by_kind {
                labelled(out, name, server, ("kind", error.kind), error.count)?;
            }
        }
        let name = "mcp_client_violations_total";
        head(out, name, "counter", "What the server did wrong.")?;
        for server in &self.servers {
            for one in &server.violations {
                labelled(
                    out,
                    name,
                    server,
                    ("violation", &name_of(one.violation)),
                    one.count,
                )?;
            }
        }
        let name = "mcp_client_drops_total";
        head(
            out,
            name,
            "counter",
            "Messages of the server that were dropped.",
        )?;
        for server in &self.servers {
            for (reason, count) in [
                ("late_answer", server.late_answers),
                ("notification", server.dropped_notifications),
                ("request", server.dropped_requests),
                ("unknown_answer", server.unknown_answers),
            ] {
                labelled(out, name, server, ("reason", reason), count)?;
            }
        }
        Ok(())
    }

    fn write_up(&self, out: &mut String) -> fmt::Result {
        let name = "mcp_client_up";
        head(
            out,
            name,
            "gauge",
            "Whether the server is available: 1 or 0.",
        )?;
        for server in &self.servers {
            if let Some(available) = server.available {
                let (server, value) = (Label(&server.server), u8::from(available));
                writeln!(out, "{name}{{server=\"{server}\"}} {value}")?;
            }
        }
        Ok(())
    }

    fn write_latency(&self, out: &mut String) -> fmt::Result {
        let name = "mcp_client_call_duration_seconds";
        head(out, name, "summary", "How long tool calls took.")?;
        for server in &self.servers {
            let latency = &server.latency;
            let label = Label(&server.server);
            for (quantile, micros) in [
                ("0.5", latency.p50_micros),
                ("0.95", latency.p95_micros),
                ("0.99", latency.p99_micros),
            ] {
                write!(out, "{name}{{server=\"{label}\",quantile=\"{quantile}\"}} ")?;
                match latency.count {
                    0 => out.write_str("NaN\n")?,
                    _ => writeln!(out, "{}", Seconds(micros))?,
                }
            }
            let sum = Seconds(latency.sum_micros);
            writeln!(out, "{name}_sum{{server=\"{label}\"}} {sum}")?;
            writeln!(out, "{name}_count{{server=\"{label}\"}} {}", latency.count)?;
        }
        Ok(())
    }
}

/// The two lines before the samples of a family.
fn head(out: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

fn labelled(
    out: &mut String,
    name: &str,
    server: &ServerSnapshot,
    (label, value): (&str, &str),
    count: u64,
) -> fmt::Result {
    let (server, value) = (Label(&server.server), Label(value));
    writeln!(
        out,
        "{name}{{server=\"{server}\",{label}=\"{value}\"}} {count}"
    )
}

/// The variant's name: a word, as labels are.
fn name_of(violation: Violation) -> String {
    format!("{violation:?}")
}

/// The value of a label: backslash, double quote and line feed are escaped, nothing else is.
struct Label<'a>(&'a str);

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for char in self.0.chars() {
            match char {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                _ => f.write_char(char)?,
            }
        }
        Ok(())
    }
}

/// Microseconds, exactly, in seconds.
struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, micros) = (self.0 / MICROS_PER_SECOND, self.0 % MICROS_PER_SECOND);
        write!(f, "{seconds}.{micros:06}")
    }
}
