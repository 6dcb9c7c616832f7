//! From nothing to a session: link, negotiation, handshake, first manifest.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::last_words::LastWords;
use super::requests::Owner;
use super::sending::{Extra, Speech};
use super::{MANIFEST, Peer, Phase};
use crate::config::{PeerConfig, StdioConfig, Transport};
use crate::error::{Cause, Error};
use crate::event::{IoFailure, IoKind};
use crate::identity::Params;
use crate::ids::LinkId;
use crate::legacy;
use crate::negotiation::{
    self, Command, Dialect, HandshakeAnswer, Negotiation, Policy, ProbeAnswer, Verdict,
};
use crate::operation::{News, Options, Request};
use crate::stdio::Link;
use crate::time::Instant;
use crate::types::{CacheScope, DiscoverFault, DiscoverResult, Implementation};
use crate::version::Version;
use crate::violation::{Fault, Violation};
use crate::wire::{Answer, printable};

/// What was agreed with the server. In the modern era nothing of it is state of the connection (R8): it
/// is what the server said about itself.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) dialect: Dialect,
    pub(super) server_info: Option<Implementation>,
    pub(super) cache_scope: CacheScope,
    pub(super) has_prompts: bool,
    pub(super) has_resources: bool,
    /// Whether the server has log messages whose level can be set.
    pub(super) has_logging: bool,
}

impl Session {
    fn of_legacy(legacy: &legacy::LegacySession) -> Self {
        Self {
            dialect: legacy.dialect(),
            server_info: Implementation::read(legacy.server_info.as_raw()).ok(),
            cache_scope: CacheScope::Private,
            has_prompts: legacy.declares("prompts"),
            has_resources: legacy.declares("resources"),
            has_logging: legacy.declares("logging"),
        }
    }
}

/// What the configuration says about eras.
pub(super) fn policy(config: &PeerConfig, proved_modern: bool) -> Policy {
    // A probe may be cut short for servers that never answer one; a handshake is a request like any
    // other.
    let patience = config.probe_timeout.max(negotiation::DEFAULT_TIMEOUT);
    let (handshake_timeout, handshake_setting) = if config.timeout < patience {
        (config.timeout, "timeoutMs")
    } else {
        (patience, negotiation::PROBE_SETTING)
    };
    Policy {
        era: config.era,
        allow_legacy: config.allow_legacy,
        proved_modern,
        legacy_available: !config.legacy_versions.is_empty(),
        probe_timeout: config.probe_timeout,
        handshake_timeout,
        handshake_setting,
        respawnable: matches!(config.transport, Transport::Stdio(_)),
        declarable: Vec::new(),
    }
}

impl Peer {
    /// Opens the link and begins to find out the era. Does nothing when that has begun already.
    pub fn connect(&mut self, now: Instant) {
        if !matches!(self.phase, Phase::Idle) {
            return;
        }
        self.start_connecting(now);
    }

    /// Starts anew. Nothing of an earlier life is known of this one (R16), but its manifest stays in force
    /// until there is another.
    pub(super) fn start_connecting(&mut self, now: Instant) {
        self.reach(now);
        self.phase = Phase::Connecting;
        self.degraded_life = false;
        self.negotiation = Negotiation::new(policy(&self.config, self.proved_modern));
        (self.handshake, self.handshaken) = (None, None);
        (self.discovered, self.session) = (None, None);
        if let Err(error) = self.open_link() {
            self.fail(error, now);
            return;
        }
        self.negotiation.handle(negotiation::Event::Started, now);
        self.drive_negotiation(now);
        self.pump(now);
        self.flush();
    }

    fn open_link(&mut self) -> Result<(), Error> {
        let target = self.target.clone().map_err(|cause| self.error(cause))?;
        self.serial = self.serial.saturating_add(1);
        self.counters.starts = self.counters.starts.saturating_add(1);
        self.heard_message = false;
        self.early_requests.clear();
        let id = LinkId {
            peer: self.id,
            serial: self.serial,
        };
        self.link = Some(Link::open(
            id,
            &target,
            &self.config.limits,
            &mut self.actions,
        ));
        Ok(())
    }

    /// Sends the current link down the shutdown ladder; it keeps its own time there.
    pub(super) fn retire_link(&mut self, now: Instant) {
        self.requests.clear();
        self.close_negotiation_spans();
        if let Some(mut link) = self.link.take() {
            link.shut_down(now, &mut self.actions);
            self.last_stderr = link.stderr_lines();
            if !link.is_released() {
                self.fading.push(link);
            }
        }
    }

    fn is_negotiating(&self) -> bool {
        matches!(self.phase, Phase::Connecting)
    }

    pub(super) fn negotiation_deadline(&self) -> Option<Instant> {
        self.negotiation
            .deadline()
            .filter(|_| self.is_negotiating())
    }

    pub(super) fn on_opened(&mut self, now: Instant) {
        self.negotiate(negotiation::Event::LinkUp, now);
    }

    pub(super) fn on_open_failed(&mut self, failure: IoFailure, now: Instant) {
        self.link = None;
        let reason = match (failure.kind, &self.config.transport) {
            // The operating system does not say which of the two it did not find.
            (IoKind::NotFound, Transport::Stdio(StdioConfig { cwd: Some(cwd), .. })) => {
                format!(
                    "it, or its \"cwd\" {cwd:?}, is not there ({})",
                    failure.detail
                )
            }
            (IoKind::NotFound, _) => format!("not found ({})", failure.detail),
            _ => failure.detail,
        };
        let command = match &self.config.transport {
            Transport::Stdio(stdio) => stdio.command.shown().into(),
            other => other.to_string(),
        };
        let cause = Cause::SpawnRefused { command, reason };
        self.negotiate(negotiation::Event::Unreachable(cause), now);
    }

    /// The link is lost. What was in flight on it fails at once (R90).
    pub(super) fn on_lost(&mut self, reason: String, now: Instant) {
        self.last_stderr = self.link.as_ref().map_or_else(Vec::new, Link::stderr_lines);
        let words = LastWords::of(&self.last_stderr);
        let detail = match &words.telling {
            // Secrets are struck out here as well: the negotiation keeps what it is told.
            Some(line) => format!("{reason}; its last words: {}", self.redact(line)),
            None => reason,
        };
        let said = words.lines.join("\n");
        let cause = Cause::Closed {
            detail: detail.clone(),
            stderr: words.lines,
        };
        if !self.is_negotiating() {
            self.interrupt_all(&cause, now);
        }
        self.fading
            .extend(self.link.take().filter(|link| !link.is_released()));
        self.requests.clear();
        self.close_negotiation_spans();
        if self.is_negotiating() {
            let asks_for_handshake = legacy::last_words_ask_for_handshake(&said);
            let event = negotiation::Event::LinkLost {
                description: detail,
                asks_for_handshake,
            };
            self.negotiate(event, now);
            return;
        }
        if matches!(self.phase, Phase::Closing) {
            return;
        }
        let error = self.error(cause);
        self.give_up_or_restart(error, now);
    }

    /// Whether a peer that is lost is started again: not one that never was well, and not a stream, which
    /// can be taken only once.
    pub(super) fn restarts(&self) -> bool {
        self.was_ready
            && self.config.restart.max_attempts > 0
            && matches!(self.config.transport, Transport::Stdio(_))
            && !matches!(self.phase, Phase::Closing)
    }

    /// The peer cannot be used, now or any more. While it may come back, what has not been sent waits.
    fn give_up_or_restart(&mut self, error: Error, now: Instant) {
        self.meter_failure(&error);
        let restarts = self.restarts() && self.recovery.lost(now).is_some();
        if restarts {
            self.phase = Phase::Restarting(error);
        } else {
            self.end_all(now, || error.cause.clone());
            self.phase = Phase::Failed(error);
        }
        self.settle();
        self.rearm();
    }

    /// Nobody needs to wait for the peer to connect any longer.
    pub(super) fn settle(&mut self) {
        self.has_settled = true;
        self.just_settled = true;
        self.meter_phase();
        self.deliver(News::PeerChanged { peer: self.id });
    }

    pub(super) fn expire_negotiation(&mut self, now: Instant) {
        if self
            .negotiation_deadline()
            .is_some_and(|deadline| now >= deadline)
        {
            self.negotiate(negotiation::Event::DeadlinePassed, now);
        }
    }

    /// Tells the negotiation a fact, while there is one.
    pub(super) fn negotiate(&mut self, event: negotiation::Event, now: Instant) {
        if self.is_negotiating() {
            let before = self.negotiation.dropped_late();
            self.negotiation.handle(event, now);
            let dropped = self.negotiation.dropped_late().saturating_sub(before);
            self.counters.late_answers = self.counters.late_answers.saturating_add(dropped);
            self.drive_negotiation(now);
        }
    }

    fn drive_negotiation(&mut self, now: Instant) {
        while let Some(command) = self.negotiation.poll_command() {
            match command {
                Command::Declare(_) => {}
                Command::SendProbe { attempt, version } => {
                    self.take_back_handshake();
                    self.adopt(version);
                    let owner = Owner::Probe(attempt);
                    self.send_control(owner, "server/discover", None, Extra::default());
                }
                Command::BeginHandshake => self.begin_handshake(now),
                Command::Respawn => {
                    self.retire_link(now);
                    if let Err(error) = self.open_link() {
                        self.fail(error, now);
                    }
                }
                Command::Established(verdict) => self.establish(verdict, now),
                Command::Fail(failure) => {
                    // Some violations are seen by the negotiation alone (R61).
                    if let Cause::SchemaViolation(fault) = &failure.cause
                        && self.degraded.is_none()
                    {
                        self.degrade(fault);
                    }
                    let remedy = self.redact(&failure.remedy);
                    let mut cause = failure.cause;
                    if let Cause::Closed { stderr, .. } = &mut cause {
                        *stderr = LastWords::of(&self.last_stderr).lines;
                    }
                    let error = self.error(cause).advise(&remedy);
                    self.fail(error, now);
                }
            }
        }
    }

    /// A probe follows a handshake only when the server has proved to be modern: a handshake that was
    /// not written by then never is (R13).
    fn take_back_handshake(&mut self) {
        for (request, owner) in self.requests.of_negotiation() {
            let unsent = self
                .link
                .as_ref()
                .is_some_and(|link| link.outbox.holds(request));
            if owner == Owner::Handshake && unsent {
                self.take_back(request);
            }
        }
    }

    /// Forgets a request of the negotiation; if it was not written yet, it never is. Nothing is
    /// cancelled (R15).
    fn take_back(&mut self, request: u64) {
        self.requests.take(request);
        if let Some(link) = &mut self.link {
            link.outbox.withdraw(request);
        }
    }

    /// Speaks a modern revision from now on.
    pub(super) fn adopt(&mut self, version: Version) {
        let alias = self.config.compat_capabilities_alias;
        let template = self
            .identity
            .template(version, self.config.send_client_info, alias);
        self.speech = Speech::Modern(template);
    }

    fn begin_handshake(&mut self, now: Instant) {
        let capabilities = self.identity.legacy_capabilities();
        let versions = &self.config.legacy_versions;
        match legacy::Handshake::new(versions, &capabilities, self.identity.client_info()) {
            Ok(handshake) => {
                self.speech = Speech::Legacy;
                let request = handshake.request();
                self.handshake = Some(handshake);
                self.send_message(Owner::Handshake, &request);
                self.answer_early_requests(now);
            }
            Err(error) => {
                let error = self.error(Cause::Config(error.to_string()));
                self.fail(error, now);
            }
        }
    }

    fn declares_logging(&self) -> bool {
        self.session
            .as_ref()
            .is_some_and(|session| session.has_logging)
    }

    fn send_message(&mut self, owner: Owner, message: &legacy::Message) {
        let params = message
            .params
            .as_ref()
            .and_then(|params| Params::parse(params).ok());
        let params = params.map(|(params, _)| params);
        self.send_control(owner, message.method, params.as_ref(), Extra::default());
    }

    /// A response to probe number `attempt`.
    pub(super) fn on_probe_answer(&mut self, attempt: u32, answer: &Answer<'_>, now: Instant) {
        let answer = match answer {
            Answer::Error(error) => ProbeAnswer::classify_error(error.into()),
            Answer::Result(members) => match DiscoverResult::read(members) {
                Ok(discovered) => {
                    let supported_versions = discovered.supported_versions.clone();
                    self.discovered = Some(discovered);
                    ProbeAnswer::Discovered { supported_versions }
                }
                Err(DiscoverFault::Empty) => ProbeAnswer::Empty,
                Err(DiscoverFault::Malformed(fault)) => {
                    self.degrade(&fault);
                    ProbeAnswer::Malformed(fault)
                }
            },
        };
        self.negotiate(negotiation::Event::ProbeAnswered { attempt, answer }, now);
    }

    /// A response to the handshake.
    pub(super) fn on_handshake_answer(&mut self, answer: &Answer<'_>, now: Instant) {
        let Some(handshake) = &self.handshake else {
            return;
        };
        let judged = match answer {
            Answer::Error(error) => Err(legacy::Handshake::read_error(error.into())),
            Answer::Result(members) => handshake.read_result(members),
        };
        let answer = match judged {
            Ok(legacy) => {
                let version = legacy.version;
                self.handshaken = Some(Session::of_legacy(&legacy));
                HandshakeAnswer::Accepted { version }
            }
            Err(fault) => {
                if let legacy::HandshakeFault::Violation(fault) = &fault {
                    self.degrade(fault);
                }
                fault.into_answer()
            }
        };
        self.negotiate(negotiation::Event::HandshakeAnswered(answer), now);
    }

    /// The era is known. For an older revision the handshake is completed first: a server may die of any
    /// request that comes earlier.
    fn establish(&mut self, verdict: Verdict, now: Instant) {
        for (request, _) in self.requests.of_negotiation() {
            self.take_back(request);
        }
        self.close_negotiation_spans();
        match verdict {
            Verdict::Modern { version } => {
                let Some(discovered) = self.discovered.take() else {
                    return;
                };
                self.proved_modern = true;
                self.adopt(version);
                // What was answered in the belief that it speaks an older revision.
                if let Some(link) = &mut self.link {
                    link.outbox.withdraw_all();
                }
                if let Some((_, method)) = self.early_requests.first() {
                    let method = printable(method.as_bytes(), 80);
                    self.degrade(&Fault::new(Violation::ServerRequest, method));
                    self.early_requests.clear();
                }
                self.session = Some(Session {
                    dialect: Dialect::MODERN,
                    server_info: discovered.server_info,
                    cache_scope: discovered.cache.scope,
                    has_prompts: discovered.capabilities.prompts.is_some(),
                    has_resources: discovered.capabilities.resources.is_some(),
                    has_logging: true,
                });
            }
            Verdict::Legacy { .. } => {
                self.session = self.handshaken.take();
                let message = legacy::Handshake::initialized();
                self.notify(message.method, None);
                self.answer_early_requests(now);
                if let Some(level) = self
                    .identity
                    .log_level()
                    .filter(|_| self.declares_logging())
                {
                    self.send_message(Owner::Nobody, &legacy::set_level(level.as_str()));
                }
            }
        }
        self.phase = Phase::Listing;
        self.read_manifest(now);
    }

    /// Reads the manifest under the peer's own operation, unless that is under way.
    pub(super) fn read_manifest(&mut self, now: Instant) {
        if self.operations.contains_key(&MANIFEST) {
            return;
        }
        let active = super::Active::new(Request::ListTools, Options::default(), None, None);
        self.start(MANIFEST, active.into(), now);
    }

    /// The peer cannot be used: its link goes, what waits for it ends.
    pub(super) fn fail(&mut self, error: Error, now: Instant) {
        self.give_up_or_restart(error, now);
        self.retire_link(now);
    }
}
