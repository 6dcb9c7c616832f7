//! What is known about a peer, for people.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Peer, Phase};
use crate::negotiation::Observation;
use crate::report::{PeerReport, PeerState};

/// What was counted about one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Operations that were begun, the reading of the manifest included.
    pub operations: u64,
    /// Operations that failed.
    pub errors: u64,
    /// Violations of the protocol.
    pub violations: u64,
    /// Lines on standard output that were no message.
    pub noise_lines: u64,
    /// Answers to requests that were no longer awaited.
    pub late_answers: u64,
    /// Answers to requests that were never made.
    pub unknown_answers: u64,
    /// Notifications that concern nobody: unknown progress tokens, unexpected methods, bad parameters.
    pub dropped_notifications: u64,
    /// Requests of the server that were not answered: it does not read what is written, or it sent too
    /// much before it was known what is spoken.
    pub dropped_requests: u64,
    /// Requests that were sent again for the same operation.
    pub retries: u64,
    /// Attempts of streamed calls that were dropped before the text was complete.
    pub stream_drops: u64,
    /// Processes started (or streams taken).
    pub starts: u64,
    /// Bytes received on standard output.
    pub bytes_received: u64,
    /// Bytes handed out to be written.
    pub bytes_sent: u64,
}

/// One peer as `doctor` shows it. Free of secrets.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Diagnosis {
    /// The same as in the startup report.
    pub report: PeerReport,
    /// What was run, with values that came from variables left out.
    pub command: String,
    /// What the server says it is, unverified.
    pub server: Option<String>,
    /// What was seen while the era was found out, in order.
    pub evidence: Vec<Observation>,
    /// What was counted.
    pub counters: Counters,
    /// The last lines on standard output that were no message, secrets struck out.
    pub noise: Vec<String>,
    /// The last lines on standard error, secrets struck out.
    pub stderr: Vec<String>,
}

impl Peer {
    /// This peer's part of the startup report (R111). Names of tools are the server's own.
    #[must_use]
    pub fn report(&self) -> PeerReport {
        let state = match &self.phase {
            Phase::Ready => PeerState::Ready,
            Phase::Failed(_) | Phase::Restarting(_) => PeerState::Failed,
            Phase::Closing => PeerState::Closed,
            Phase::Idle | Phase::Connecting | Phase::Listing => PeerState::Connecting,
        };
        let mut report = PeerReport::new(&self.config.name, self.config.transport.kind(), state);
        if let Some(session) = &self.session {
            report.era = Some(session.dialect.version.era());
            report.version = Some(session.dialect.version);
            report.cache_scope = Some(session.cache_scope);
        }
        report.manifest_digest = self.manifest.digest().map(Into::into);
        report.tools = self
            .manifest
            .tools()
            .iter()
            .map(|tool| tool.name().into())
            .collect();
        report.degraded = self.degraded.as_ref().map(ToString::to_string);
        report.notes = self.notes.clone();
        let rejected = self.manifest.rejected().iter();
        report
            .notes
            .extend(rejected.map(|rejected| self.redact(&rejected.to_string())));
        report.failure = self.failure().map(Into::into);
        report
    }

    /// Everything that is known about the peer.
    #[must_use]
    pub fn diagnosis(&self) -> Diagnosis {
        let server = self
            .session
            .as_ref()
            .and_then(|session| session.server_info.as_ref());
        let stderr = self
            .link
            .as_ref()
            .map_or_else(|| self.last_stderr.clone(), |link| link.stderr_lines());
        let struck_out = |lines: Vec<String>| lines.iter().map(|line| self.redact(line)).collect();
        let mut evidence = self.negotiation.evidence().to_vec();
        for observation in &mut evidence {
            observation.finding = self.redact(&observation.finding);
        }
        Diagnosis {
            report: self.report(),
            command: self.config.transport.to_string(),
            server: server.map(|server| self.redact(&server.to_string())),
            evidence,
            counters: self.counters(),
            noise: struck_out(self.noise.lines()),
            stderr: struck_out(stderr),
        }
    }
}
