//! Lines on their way in.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::value::RawValue;

use super::Peer;
use super::active::{Stage, read_progress_token};
use super::requests::Owner;
use super::sending::Speech;
use crate::config::StdoutNoise;
use crate::error::{Cause, Ran};
use crate::ids::LinkId;
use crate::legacy::{self, ServerRequestReply};
use crate::negotiation::{self, HandshakeAnswer, ProbeAnswer};
use crate::operation::{LogMessage, News, ProgressUpdate};
use crate::time::Instant;
use crate::types::object::member;
use crate::types::{self, LogLevel, Progress};
use crate::version::Version;
use crate::violation::{Fault, Violation};
use crate::wire::{
    self, Answer, IdToken, Json, Line, LineBuffer, Members, Message, RejectKind, Response,
    ResponseId, depth, envelope, printable,
};

/// How many requests of a server are kept until it is known whether it may send any.
const EARLY_REQUESTS_MAX: usize = 8;
/// How long the id and the method of such a request may be.
const EARLY_BYTES: usize = 256;
/// Where the members of an envelope are looked for in a line that cannot be read.
const HEAD_BYTES: usize = 1 << 10;

impl Peer {
    /// Bytes arrived, split anywhere.
    pub(super) fn on_data(&mut self, link: LinkId, bytes: &[u8], now: Instant) {
        let Some(mut framer) = self.take_framer(link) else {
            return;
        };
        self.reach(now);
        self.counters.bytes_received = self
            .counters
            .bytes_received
            .saturating_add(bytes.len() as u64);
        let mut lines = framer.feed(bytes);
        // A line may be the last one that counts: the same as if the rest had come in another chunk.
        while self.listens_to(link)
            && let Some(line) = lines.next()
        {
            self.on_line(line, now);
            // What follows is judged as if it had come later: by then this would have been written.
            self.pump(now);
            self.flush_link();
        }
        drop(lines);
        if let Some(current) = self.link.as_mut().filter(|current| current.id == link) {
            current.framer = Some(framer);
        }
    }

    /// Whether what comes from this link counts: facts about dead links change nothing.
    fn listens_to(&self, link: LinkId) -> bool {
        let current = self.link.as_ref().filter(|current| current.id == link);
        current.is_some_and(|current| current.is_listening())
    }

    /// The output ended: what stands there without its newline may still be a whole message.
    pub(super) fn on_output_end(&mut self, link: LinkId, now: Instant) {
        let Some(mut framer) = self.take_framer(link) else {
            return;
        };
        // The beginning of a message is no broken message: the server ended in the middle of it.
        if let Some(Line::Complete(bytes)) = framer.finish()
            && envelope::read(bytes).is_ok()
        {
            self.on_line(Line::Complete(bytes), now);
        }
    }

    /// The framer of the current link, while its data count.
    fn take_framer(&mut self, link: LinkId) -> Option<LineBuffer> {
        if !self.listens_to(link) {
            return None;
        }
        self.link.as_mut()?.framer.take()
    }

    fn on_line(&mut self, line: Line<'_>, now: Instant) {
        match line {
            Line::TooLong { prefix, .. } => self.on_too_long(prefix, now),
            Line::Complete(bytes) => match envelope::read(bytes) {
                Ok(message) => {
                    self.heard_message = true;
                    if depth::exceeds(bytes, self.config.limits.depth) {
                        self.on_too_deep(&message, now);
                    } else {
                        self.on_message(message, now);
                    }
                }
                Err(rejected) if rejected.kind == RejectKind::Noise => {
                    self.on_noise(bytes, &rejected)
                }
                Err(rejected) => {
                    let named = rejected.id.filter(|_| may_answer(bytes));
                    let concerned = self.concerned(named, bytes);
                    self.on_rejected(rejected.fault, concerned, now);
                }
            },
        }
    }

    /// Nested deeper than anybody should have to read (R1).
    fn on_too_deep(&mut self, message: &Message<'_>, now: Instant) {
        let fault = Fault::new(Violation::TooDeep, String::new());
        let id = match message {
            Message::Response(response) => response.id.as_u64(),
            Message::Notification(_) | Message::Request(_) => None,
        };
        let concerned = id.filter(|id| self.is_awaited(*id));
        self.on_rejected(fault, concerned, now);
    }

    fn on_message(&mut self, message: Message<'_>, now: Instant) {
        match message {
            Message::Response(response) => self.on_response(&response, now),
            Message::Notification(notification) => {
                self.on_notification(&notification.method, notification.params, now);
            }
            Message::Request(request) => self.on_server_request(&request, now),
        }
    }

    fn on_response(&mut self, response: &Response<'_>, now: Instant) {
        let id = response.id.as_u64().filter(|id| self.is_awaited(*id));
        let Some((id, pending)) =
            id.and_then(|id| self.requests.get(id).map(|pending| (id, pending)))
        else {
            self.on_orphan(response, now);
            return;
        };
        match pending.owner {
            // Probes stay correlated until the era is known: a late answer proves something.
            Owner::Probe(attempt) => self.on_probe_answer(attempt, &response.answer, now),
            Owner::Handshake => {
                self.requests.take(id);
                self.on_handshake_answer(&response.answer, now);
            }
            Owner::Operation(operation) => {
                self.requests.take(id);
                self.on_answer(operation, &response.answer, now);
            }
            Owner::Nobody => {
                self.requests.take(id);
            }
        }
    }

    /// Whether a request of this id awaits its answer. One that still waits to be written does not: the
    /// server can only have guessed its id, and it leaves whatever is said about it.
    fn is_awaited(&self, id: u64) -> bool {
        self.requests.get(id).is_some() && !self.is_unsent(id)
    }

    fn is_unsent(&self, id: u64) -> bool {
        self.link.as_ref().is_some_and(|link| link.outbox.holds(id))
    }

    /// The request that a broken line concerns: the one that it names, else the only one there is,
    /// unless the line is visibly something other than an answer.
    fn concerned(&self, named: Option<u64>, line: &[u8]) -> Option<u64> {
        let only = || self.only_awaited().filter(|id| !self.is_unsent(*id));
        named
            .filter(|id| self.is_awaited(*id))
            .or_else(|| only().filter(|_| may_answer(line)))
    }

    /// A response to nothing that is awaited: counted and dropped, it is never matched by guess.
    fn on_orphan(&mut self, response: &Response<'_>, now: Instant) {
        let known = response
            .id
            .as_u64()
            .is_some_and(|id| self.requests.was_sent(id));
        let counter = if known {
            &mut self.counters.late_answers
        } else {
            &mut self.counters.unknown_answers
        };
        *counter = counter.saturating_add(1);
        if !known && let ResponseId::Token(id) = response.id {
            let id = printable(id.as_str().as_bytes(), 40);
            self.note(format!(
                "sent an answer with the id {id}, which no request has"
            ));
        }
        if let Answer::Error(error) = &response.answer {
            self.negotiate(negotiation::Event::ForeignError(error.into()), now);
        }
    }

    /// Text that was never meant to be a message (R62). It completes no request and proves no era.
    fn on_noise(&mut self, line: &[u8], rejected: &envelope::Rejected) {
        self.counters.noise_lines = self.counters.noise_lines.saturating_add(1);
        if line
            .get(..15)
            .is_some_and(|start| start.eq_ignore_ascii_case(b"content-length:"))
        {
            self.note(
                "frames its messages with Content-Length headers; over stdio a message is a line"
                    .into(),
            );
        }
        self.noise.push(line);
        self.noise.push(b"\n");
        let degrades = match self.config.stdout_noise {
            StdoutNoise::Tolerate => false,
            StdoutNoise::Degrade => true,
            StdoutNoise::Auto => self.heard_message,
        };
        if degrades {
            self.degrade(&Fault::new(Violation::Noise, rejected.fault.detail.clone()));
        }
    }

    /// A broken message, and the request that it concerns, if any.
    fn on_rejected(&mut self, fault: Fault, concerned: Option<u64>, now: Instant) {
        self.degrade(&fault);
        let Some((id, pending)) = concerned.and_then(|id| Some((id, self.requests.get(id)?)))
        else {
            return;
        };
        match pending.owner {
            Owner::Probe(attempt) => {
                let answer = ProbeAnswer::Malformed(fault);
                self.negotiate(negotiation::Event::ProbeAnswered { attempt, answer }, now);
            }
            Owner::Handshake => {
                let answer = HandshakeAnswer::Refused(Cause::SchemaViolation(fault));
                self.negotiate(negotiation::Event::HandshakeAnswered(answer), now);
            }
            Owner::Operation(operation) => {
                self.requests.take(id);
                let error = self.error(Cause::SchemaViolation(fault)).ran(Ran::Maybe);
                self.end_with_error(operation, error);
            }
            Owner::Nobody => {
                self.requests.take(id);
            }
        }
    }

    /// The only request whose answer is awaited, when there is exactly one: a broken message that names
    /// no request can only concern it. An open subscription awaits nothing.
    fn only_awaited(&self) -> Option<u64> {
        self.requests.only(|owner| match owner {
            Owner::Operation(operation) => self
                .operations
                .get(&operation)
                .is_some_and(|active| active.awaits_answer()),
            Owner::Probe(_) | Owner::Handshake => true,
            Owner::Nobody => false,
        })
    }

    /// A line over the limit: the reader is in step again at the next newline.
    fn on_too_long(&mut self, prefix: &[u8], now: Instant) {
        let max = self.config.limits.line_bytes as u64;
        let named = wire::salvage_id(prefix).filter(|_| may_answer(prefix));
        let Some(id) = self.concerned(named, prefix) else {
            self.counters.noise_lines = self.counters.noise_lines.saturating_add(1);
            return;
        };
        let cause = Cause::Limit {
            what: "a line of the server's output".into(),
            setting: "maxLineBytes",
            max,
        };
        match self.requests.get(id).map(|pending| pending.owner) {
            Some(Owner::Operation(operation)) => {
                self.requests.take(id);
                let error = self.error(cause).ran(Ran::Maybe);
                self.end_with_error(operation, error);
            }
            Some(Owner::Probe(_) | Owner::Handshake) => {
                self.negotiate(negotiation::Event::Unreachable(cause), now);
            }
            Some(Owner::Nobody) | None => {}
        }
    }

    /// A request of the server: forbidden in the modern era, answered in the others (R60).
    fn on_server_request(&mut self, request: &wire::Request<'_>, now: Instant) {
        let dialect = self.session.as_ref().map(|session| &session.dialect);
        match dialect {
            Some(dialect) if dialect.server_requests => {
                let version = dialect.version;
                self.answer_request(version, request.id, &request.method, request.params, now);
            }
            Some(_) => {
                let method = printable(request.method.as_bytes(), 80);
                self.degrade(&Fault::new(Violation::ServerRequest, method));
            }
            // Nothing may be answered before it is known what is spoken; it is kept until then.
            None => {
                let early = (
                    String::from(request.id.as_str()),
                    String::from(&*request.method),
                );
                let is_short = early.0.len().max(early.1.len()) <= EARLY_BYTES;
                if is_short && self.early_requests.len() < EARLY_REQUESTS_MAX {
                    self.early_requests.push(early);
                    self.answer_early_requests(now);
                } else {
                    self.counters.dropped_requests =
                        self.counters.dropped_requests.saturating_add(1);
                }
            }
        }
    }

    /// What was not declared does not exist here; `ping` does; the rest is for the application to answer.
    fn answer_request(
        &mut self,
        version: Version,
        id: IdToken<'_>,
        method: &str,
        params: Option<&RawValue>,
        now: Instant,
    ) {
        let declared = self.handshake.as_ref().map(legacy::Handshake::declared);
        let declared = declared.copied().unwrap_or_default();
        let members = params.and_then(|params| Members::parse(params.get()).ok());
        match legacy::answer_request(version, &declared, method, members.as_ref()) {
            ServerRequestReply::Result(result) => self.respond(id, Ok(result.as_str())),
            ServerRequestReply::Error { code, message } => self.respond(id, Err((code, message))),
            ServerRequestReply::Defer(deferred) => self.defer(id, deferred, method, params, now),
        }
    }

    /// Answers what was asked before it was known that the server may ask: `ping` once the handshake has
    /// been sent, everything once it is complete.
    ///
    /// spec: 2025-11-25 basic/lifecycle#initialization
    pub(super) fn answer_early_requests(&mut self, now: Instant) {
        let session = self.session.as_ref().map(|session| session.dialect.version);
        let version = match (session, &self.handshake, &self.speech) {
            (Some(version), ..) => version,
            (None, Some(handshake), Speech::Legacy) => handshake.offered(),
            _ => return,
        };
        let (due, later) = core::mem::take(&mut self.early_requests)
            .into_iter()
            .partition::<Vec<_>, _>(|(_, method)| session.is_some() || method == "ping");
        self.early_requests = later;
        for (id, method) in due {
            if let Some(id) = IdToken::parse(&id) {
                self.answer_request(version, id, &method, None, now);
            }
        }
    }

    fn on_notification(&mut self, method: &str, params: Option<&RawValue>, now: Instant) {
        let handled = match method {
            "notifications/progress" => self.on_progress(params, now),
            "notifications/message" => self.on_log(params),
            "notifications/subscriptions/acknowledged" => self.on_acknowledged(params),
            "notifications/cancelled" => {
                self.on_question_withdrawn(params, now) || self.on_subscription_ended(params)
            }
            _ => self.on_change(method, params),
        };
        if !handled {
            self.counters.dropped_notifications =
                self.counters.dropped_notifications.saturating_add(1);
        }
    }

    /// Progress of an operation (R42): finite, increasing, and for one that asked for it; else dropped.
    fn on_progress(&mut self, params: Option<&RawValue>, now: Instant) -> bool {
        let Some(progress) = params.and_then(Progress::read) else {
            return false;
        };
        let Some((operation, turn)) = read_progress_token(progress.token.get()) else {
            return false;
        };
        let sent = self
            .operations
            .get(&operation)
            .and_then(|active| active.request_id())
            .is_some_and(|request| !self.is_unsent(request));
        let Some(active) = self.operations.get_mut(&operation).filter(|_| sent) else {
            return false;
        };
        if !active.asks_progress()
            || active.turn() != turn
            || !matches!(active.stage, Stage::Requested { .. })
            || active
                .progress
                .is_some_and(|last| progress.progress <= last)
        {
            return false;
        }
        active.progress = Some(progress.progress);
        if let Some(clock) = &mut active.clock {
            clock.heard(now);
        }
        let streams = active.stream.is_some();
        let message: Option<String> = progress.message.map(Into::into);
        // What a streamed call reports is its text.
        let (message, text) = if streams {
            (None, message)
        } else {
            (message, None)
        };
        if active.options.progress && active.told.is_none_or(|told| progress.progress > told) {
            active.told = Some(progress.progress);
            let update = ProgressUpdate {
                progress: progress.progress,
                total: progress.total,
                message,
            };
            self.deliver(News::Progress {
                operation,
                progress: update,
            });
        }
        if let Some(params) = params.filter(|_| streams) {
            self.on_stream_progress(operation, text, params, now);
        }
        true
    }

    /// A log message, where a level was asked for (R42).
    fn on_log(&mut self, params: Option<&RawValue>) -> bool {
        let (Some(asked), Some(params)) = (self.identity.log_level(), params) else {
            return false;
        };
        let level = types::text_member(params, "level").and_then(|level| LogLevel::parse(&level));
        let (Some(level), Some(data)) = (level, member(params, "data")) else {
            return false;
        };
        if level >= asked {
            self.deliver(News::Log(LogMessage {
                peer: self.config.name.clone(),
                level,
                logger: types::text_member(params, "logger").map(Into::into),
                data: data.into(),
            }));
        }
        true
    }

    /// A change notification: what is cached is stale, and listeners want to know.
    fn on_change(&mut self, method: &str, params: Option<&RawValue>) -> bool {
        let is_change = types::CHANGES.contains(&method) && self.session.is_some();
        if !is_change || params.is_some_and(|params| !params.get().starts_with('{')) {
            return false;
        }
        self.invalidate(method, params);
        let subscription = params.and_then(types::subscription_id);
        let params = params.map(Json::from);
        let mut notified = Vec::new();
        for (operation, active) in &mut self.operations {
            let Stage::Listening(listening) = &mut active.stage else {
                continue;
            };
            if listening.request.is_some() && listening.request != subscription {
                continue;
            }
            listening.push(&self.config.name, method, params.as_ref());
            notified.push(*operation);
        }
        for operation in notified {
            self.deliver(News::Notified { operation });
        }
        true
    }
}

/// Whether a line that cannot be read as a message may be meant as a response: an object (or a list of
/// some) that has a member of one at its beginning, and not the `method` of something else.
fn may_answer(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    let head = line.split_at(line.len().min(HEAD_BYTES)).0;
    let has = |name: &str| memchr::memmem::find(head, name.as_bytes()).is_some();
    matches!(line.first(), Some(b'{' | b'['))
        && !has("\"method\"")
        && (has("\"result\"") || has("\"error\"") || has("\"id\"") || has("\"jsonrpc\""))
}
