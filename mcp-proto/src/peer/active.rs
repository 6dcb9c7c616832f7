//! Operations that one peer is working on.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Context;
use super::streaming::Stream;
use crate::cache::Ticket;
use crate::continuation::{Continuation, InputRounds};
use crate::error::Error;
use crate::identity::{CallerMeta, Params, ProgressToken, TraceContext};
use crate::ids::OperationId;
use crate::legacy::Deferred;
use crate::manifest::Listing;
use crate::operation::{Notification, Options, Request};
use crate::safety::RetryGate;
use crate::time::{Duration, Instant};
use crate::types::{InputRequest, InputResponses, Prompt, Resource, ResourceTemplate, Tool};
use crate::wire::{IdToken, Json};

/// One operation, from its acceptance by the peer to its outcome.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) request: Request,
    pub(super) options: Options,
    pub(super) meta: Option<CallerMeta>,
    /// The ordinal of a tool call in its run (R6); `None` for control messages.
    pub(super) call_index: Option<u64>,
    pub(super) stage: Stage,
    pub(super) clock: Option<Clock>,
    /// When its first request was handed to the link; the time for which the application was asked does not
    /// count.
    pub(super) handed_over: Option<Instant>,
    /// What was sent, so that a retry can keep its `_meta` (R7).
    pub(super) sent: Option<Sent>,
    /// It was submitted before the first listing was in, which therefore is news enough for it.
    pub(super) shares_listing: bool,
    /// The right to keep the answer (R70).
    pub(super) ticket: Option<Ticket>,
    /// A retry for [`UNSUPPORTED_PROTOCOL_VERSION`](crate::negotiation) was made already (R12).
    pub(super) version_retried: bool,
    /// A retry for [`HEADER_MISMATCH`](crate::negotiation) was made already (R13).
    pub(super) header_retried: bool,
    /// How often the manifest was read for it.
    pub(super) refreshes: u8,
    /// An earlier request for it may have been executed, whatever becomes of later ones.
    pub(super) may_have_run: bool,
    /// What a server of an older revision asks in the middle of it. The deadlines stand still.
    pub(super) asked: Option<Box<Asked>>,
    /// How often the application was asked for input.
    pub(super) questions: u32,
    /// Decides about retries and counts them, once there was something to decide.
    pub(super) gate: Option<Box<RetryGate>>,
    /// How the request failed about which the application is asked.
    pub(super) error: Option<Box<Error>>,
    /// A streamed call that has begun.
    pub(super) stream: Option<Box<Stream>>,
    /// The rounds of questions, once the server has asked (R30).
    pub(super) rounds: Option<Box<InputRounds>>,
    /// What it takes up, until it begins (R31).
    pub(super) resumed: Option<Box<Resumed>>,
    /// On whose behalf it is traced.
    pub(super) context: Context,
    /// Its result is checked against the tool's output schema (R63).
    pub(super) validates: bool,
    /// The last progress that the present request reported; later ones must exceed it.
    pub(super) progress: Option<f64>,
    /// The furthest progress that the application was told of, by whatever request.
    pub(super) told: Option<f64>,
}

/// A request of the server that the application answers.
#[derive(Debug)]
pub(super) struct Asked {
    /// Its id, in the server's words.
    pub(super) id: String,
    pub(super) deferred: Deferred,
    pub(super) request: InputRequest,
    pub(super) since: Instant,
}

/// A request that was asked about earlier, and the answers.
#[derive(Debug)]
pub(super) struct Resumed {
    pub(super) continuation: Continuation,
    pub(super) responses: InputResponses,
}

/// The one request of an operation as it was sent.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) method: &'static str,
    pub(super) params: Params,
    pub(super) trace: TraceContext,
}

/// Where an operation is.
#[derive(Debug)]
pub(super) enum Stage {
    /// Waits for the peer to settle, or for a place in flight.
    Queued,
    /// A tool call waits for a fresh manifest, and then for its turn as [`Stage::Queued`].
    AwaitManifest,
    /// The application is asked for input. The deadlines stand still.
    AwaitInput {
        /// When it was asked.
        since: Instant,
    },
    /// The server needs more time; the request is sent again then.
    AwaitRetry {
        /// When.
        until: Instant,
    },
    /// The application decides whether it may be sent again.
    AwaitDecision,
    /// A streamed call without a request: between two attempts, or its source is the application's.
    Streaming,
    /// Its request is on its way.
    Requested {
        /// The id of the request.
        request: u64,
    },
    /// A list is being read page by page.
    Paging {
        /// The id of the current page's request.
        request: u64,
        /// The pages so far.
        pages: Pages,
    },
    /// Notifications are collected.
    Listening(Listening),
}

/// A list that is being read, with the right to keep it (tools are kept in the manifest).
#[derive(Debug)]
pub(super) enum Pages {
    Tools(Listing<Tool>),
    Resources(Listing<Resource>, Option<Ticket>),
    Templates(Listing<ResourceTemplate>, Option<Ticket>),
    Prompts(Listing<Prompt>, Option<Ticket>),
}

impl Pages {
    /// Whether the first page is still awaited.
    pub(super) const fn is_empty(&self) -> bool {
        match self {
            Self::Tools(listing) => listing.is_empty(),
            Self::Resources(listing, _) => listing.is_empty(),
            Self::Templates(listing, _) => listing.is_empty(),
            Self::Prompts(listing, _) => listing.is_empty(),
        }
    }
}

/// An open subscription.
#[derive(Debug, Default)]
pub(super) struct Listening {
    /// The id of the open `subscriptions/listen`; `None` where the revision needs no request.
    pub(super) request: Option<u64>,
    /// Notifications that the application has not taken yet.
    pub(super) queue: VecDeque<Notification>,
    /// The size of their parameters.
    pub(super) queued_bytes: usize,
    /// How many came in all.
    pub(super) count: u64,
    /// The server has accepted the subscription; it may be silent from then on.
    pub(super) acknowledged: bool,
}

impl Listening {
    pub(super) fn push(&mut self, peer: &str, method: &str, params: Option<&Json>) {
        self.count = self.count.saturating_add(1);
        let bytes = params.map_or(0, |params| params.as_str().len());
        self.queued_bytes = self.queued_bytes.saturating_add(bytes);
        self.queue.push_back(Notification {
            peer: peer.into(),
            method: method.into(),
            params: params.cloned(),
        });
    }

    pub(super) fn take(&mut self) -> Vec<Notification> {
        self.queued_bytes = 0;
        self.queue.drain(..).collect()
    }
}

/// The two deadlines of an operation (R41).
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    idle: Duration,
    absolute: Duration,
    started: Instant,
    heard: Instant,
}

/// Which deadline has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Expired {
    pub(super) setting: &'static str,
    pub(super) limit: Duration,
}

impl Clock {
    pub(super) const fn start(idle: Duration, absolute: Duration, now: Instant) -> Self {
        Self {
            idle,
            absolute,
            started: now,
            heard: now,
        }
    }

    /// The clock of an operation with these options, `idle` and `absolute` being the peer's settings.
    pub(super) fn of(options: &Options, idle: Duration, absolute: Duration, now: Instant) -> Self {
        let total = options.total_timeout.unwrap_or(Duration::MAX);
        let idle = options.idle_timeout.unwrap_or(idle).min(total);
        let absolute = options.absolute_timeout.unwrap_or(absolute).min(total);
        Self::start(idle, absolute, now)
    }

    /// From now on silence is fine: only the cap of the whole operation counts, if it has one.
    pub(super) fn silent(self, options: &Options) -> Option<Self> {
        options.total_timeout.map(|total| Self {
            idle: total,
            absolute: total,
            ..self
        })
    }

    /// Progress extends the idle deadline, never the absolute one.
    pub(super) const fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    /// Time that passed without counting.
    pub(super) fn stood_still(&mut self, since: Instant, now: Instant) {
        self.started = self.started + now.since(since);
        self.heard = now;
    }

    pub(super) fn deadline(&self) -> Instant {
        self.idle_deadline().min(self.started + self.absolute)
    }

    /// The longest silence.
    pub(super) const fn idle(&self) -> Duration {
        self.idle
    }

    /// Until when it may be silent.
    pub(super) fn idle_deadline(&self) -> Instant {
        self.heard + self.idle
    }

    /// What is left of the longest duration.
    pub(super) fn absolute_left(&self, now: Instant) -> Duration {
        self.absolute.saturating_sub(now.since(self.started))
    }

    pub(super) fn expired(&self, now: Instant) -> Option<Expired> {
        if now >= self.started + self.absolute {
            return Some(Expired {
                setting: "absoluteTimeoutMs",
                limit: self.absolute,
            });
        }
        (now >= self.heard + self.idle).then_some(Expired {
            setting: "timeoutMs",
            limit: self.idle,
        })
    }
}

impl Active {
    /// An operation that has not begun.
    pub(super) const fn new(
        request: Request,
        options: Options,
        meta: Option<CallerMeta>,
        call_index: Option<u64>,
    ) -> Self {
        Self {
            request,
            options,
            meta,
            call_index,
            stage: Stage::Queued,
            clock: None,
            handed_over: None,
            sent: None,
            shares_listing: false,
            ticket: None,
            version_retried: false,
            header_retried: false,
            refreshes: 0,
            may_have_run: false,
            asked: None,
            questions: 0,
            gate: None,
            error: None,
            stream: None,
            rounds: None,
            resumed: None,
            context: Context::none(),
            validates: false,
            progress: None,
            told: None,
        }
    }

    /// The id of the request that is on its way, if any.
    pub(super) const fn request_id(&self) -> Option<u64> {
        match &self.stage {
            Stage::Requested { request } | Stage::Paging { request, .. } => Some(*request),
            Stage::Listening(listening) => listening.request,
            Stage::Queued
            | Stage::AwaitManifest
            | Stage::AwaitInput { .. }
            | Stage::AwaitRetry { .. }
            | Stage::AwaitDecision
            | Stage::Streaming => None,
        }
    }

    /// When it is looked at again if nothing happens before.
    pub(super) fn due(&self) -> Option<Instant> {
        if self.asked.is_some() {
            return None;
        }
        if let Some(stream) = &self.stream {
            return self.stream_due(stream);
        }
        let deadline = self.clock.map(|clock| clock.deadline());
        match self.stage {
            Stage::AwaitInput { .. } => None,
            Stage::AwaitRetry { until } => Some(deadline.map_or(until, |due| due.min(until))),
            _ => deadline,
        }
    }

    /// The deadline that has passed, unless the deadlines stand still. A stream keeps its own.
    pub(super) fn expired(&self, now: Instant) -> Option<Expired> {
        match self.stage {
            _ if self.asked.is_some() || self.stream.is_some() => None,
            Stage::AwaitInput { .. } => None,
            _ => self.clock?.expired(now),
        }
    }

    /// Whether the server is to report progress.
    pub(super) const fn asks_progress(&self) -> bool {
        self.options.progress || self.stream.is_some()
    }

    /// Which token its progress carries, beside the number of the operation.
    pub(super) fn turn(&self) -> u32 {
        self.stream.as_ref().map_or(0, |stream| stream.turn)
    }

    /// Whether a message from the server is due: all but an accepted subscription wait for one.
    pub(super) const fn awaits_answer(&self) -> bool {
        !matches!(&self.stage, Stage::Listening(listening) if listening.acknowledged)
    }

    /// Whether this is the subscription that a request opened.
    pub(super) fn listens_with(&self, request: u64) -> bool {
        matches!(&self.stage, Stage::Listening(listening) if listening.request == Some(request))
    }

    /// Whether it is a call of such a tool.
    pub(super) fn calls(&self, is_such: impl FnOnce(&str) -> bool) -> bool {
        matches!(&self.request, Request::CallTool(call) if is_such(&call.tool))
    }

    /// The method that is awaited, for messages.
    pub(super) fn method(&self) -> &'static str {
        match &self.request {
            Request::ListTools => "tools/list",
            Request::ListResources => "resources/list",
            Request::ListResourceTemplates => "resources/templates/list",
            Request::ListPrompts => "prompts/list",
            Request::CallTool(_) => match self.stage {
                Stage::AwaitManifest => "tools/list",
                _ => "tools/call",
            },
            Request::ReadResource { .. } => "resources/read",
            Request::GetPrompt { .. } => "prompts/get",
            Request::Complete { .. } => "completion/complete",
            Request::Resume { continuation, .. } => continuation.request().method().as_str(),
            Request::Listen => "subscriptions/listen",
            Request::Settle => "connection",
        }
    }
}

/// The token under which progress of an operation is reported: its number, unique within the client. An
/// attempt whose predecessor may still be heard of has one of its own, `7.1` after `7`.
pub(super) fn progress_token(operation: OperationId, turn: u32) -> Token {
    match turn {
        0 => Token::Number(operation.number()),
        turn => Token::Text(format!("{}.{turn}", operation.number())),
    }
}

/// A progress token of ours.
#[derive(Debug)]
pub(super) enum Token {
    Number(u64),
    Text(String),
}

impl Token {
    pub(super) fn as_progress(&self) -> ProgressToken<'_> {
        match self {
            Self::Number(number) => ProgressToken::Number(*number),
            Self::Text(text) => ProgressToken::Text(text),
        }
    }
}

/// The operation and the turn of a token, as the server wrote it.
pub(super) fn read_progress_token(token: &str) -> Option<(OperationId, u32)> {
    let text = token
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let (number, turn) = match text {
        Some(text) => {
            let (number, turn) = text.split_once('.')?;
            (
                number.parse().ok()?,
                turn.parse().ok().filter(|turn| *turn > 0)?,
            )
        }
        None => (IdToken::parse(token).and_then(IdToken::as_u64)?, 0),
    };
    Some((OperationId::new(number), turn))
}
