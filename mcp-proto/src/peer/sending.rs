//! Messages on their way out.

use alloc::string::String;

use super::requests::Owner;
use super::{Context, Peer};
use crate::config::{PeerConfig, Transport};
use crate::identity::{
    self, CallerMeta, CanonicalError, MetaTemplate, ModernRequest, Params, ProgressToken,
    TraceContext, TraceId,
};
use crate::secret::Templated;
use crate::wire::{IdToken, Json, encode};

/// Behind how many messages that wait to be written no request of a server is answered any more.
const QUEUED_MAX: usize = 1024;

/// How requests are written: the only two ways there are. A modern one always carries its `_meta`.
#[derive(Debug)]
pub(super) enum Speech {
    /// With `_meta` on every request.
    Modern(MetaTemplate),
    /// As older revisions want it.
    Legacy,
}

/// What goes into `_meta` beside the trace, and where its span belongs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Extra<'a> {
    pub(super) progress_token: Option<ProgressToken<'a>>,
    pub(super) caller_meta: Option<&'a CallerMeta>,
    /// On whose behalf it is traced.
    pub(super) context: Option<&'a Context>,
}

/// The trace id of a run, or of this peer alone when no run root is configured (R6). The command or
/// endpoint enters as it is written in the configuration, so that no variable's value does.
pub(super) fn trace_id(config: &PeerConfig, run_root: Option<&str>) -> TraceId {
    identity::trace_id(&self::run_root(config, run_root))
}

/// The root of a run, or of this peer alone.
pub(super) fn run_root(config: &PeerConfig, run_root: Option<&str>) -> String {
    let own = |url: &str| identity::default_run_root(&config.name, url);
    let root = match (run_root, &config.transport) {
        (Some(root), _) => return root.into(),
        (None, Transport::Stdio(stdio)) => {
            let args: alloc::vec::Vec<&str> = stdio.args.iter().map(Templated::shown).collect();
            let url = identity::stdio_url(stdio.command.shown(), &args);
            own(&url)
        }
        (None, Transport::Http(http)) => own(http.url.shown()),
        (None, Transport::Stream) => own("stream:"),
    };
    root.as_str().into()
}

impl Peer {
    /// Writes one request and remembers who gets the answer.
    pub(super) fn send(
        &mut self,
        owner: Owner,
        method: &'static str,
        params: Option<&Params>,
        trace: TraceContext,
        extra: Extra<'_>,
    ) -> u64 {
        let id = self.requests.insert(owner, method);
        self.open_span(owner, id, method, params, extra.context);
        let Some(link) = &mut self.link else {
            return id;
        };
        let speech = &self.speech;
        let caller_meta = extra.caller_meta;
        let progress_token = extra.progress_token;
        link.outbox.push(Some(id), |out| match speech {
            Speech::Modern(template) => {
                let trace = Some(trace);
                template.encode(
                    out,
                    &ModernRequest {
                        id,
                        method,
                        params,
                        caller_meta,
                        trace,
                        progress_token,
                    },
                );
            }
            Speech::Legacy => {
                identity::encode_legacy(out, id, method, params, caller_meta, progress_token);
            }
        });
        id
    }

    /// Writes a request that is no tool call: its span counts separately (R6).
    pub(super) fn send_control(
        &mut self,
        owner: Owner,
        method: &'static str,
        params: Option<&Params>,
        extra: Extra<'_>,
    ) -> u64 {
        let trace = self.control_trace(method);
        self.send(owner, method, params, trace, extra)
    }

    /// The trace context of the next control message.
    pub(super) fn control_trace(&mut self, method: &str) -> TraceContext {
        let ordinal = self.requests.next_control();
        let span = identity::control_span_id(&self.config.name, method, ordinal);
        TraceContext::for_control(self.trace_id, span)
    }

    /// The trace context of the tool call with this index in its run. Fails when the arguments have no
    /// canonical form: a member that stands twice, or too deep a nesting.
    pub(super) fn call_trace(
        &self,
        params: &Params,
        call_index: u64,
    ) -> Result<TraceContext, CanonicalError> {
        let content = identity::content_hash("tools/call", Some(params.as_str()))?;
        let span = identity::span_id(&content, call_index);
        Ok(TraceContext::for_call(self.trace_id, span, call_index))
    }

    /// Writes a notification. In the modern era it carries trace keys only (R5).
    pub(super) fn notify(&mut self, method: &'static str, params: Option<&Params>) {
        let trace = match &self.speech {
            Speech::Modern(_) => Some(self.control_trace(method)),
            Speech::Legacy => None,
        };
        if let Some(link) = &mut self.link {
            link.outbox.push(None, |out| {
                identity::encode_notification(out, method, params, trace)
            });
        }
    }

    /// Takes a request back: out of the queue if it was not written yet, else by telling the server.
    /// `true` when it provably was not executed.
    ///
    /// spec: basic/patterns/cancellation, basic/transports/stdio#cancellation
    pub(super) fn withdraw(&mut self, request: u64, reason: &str) -> bool {
        self.requests.take(request);
        let Some(link) = &mut self.link else {
            return false;
        };
        if link.outbox.withdraw(request) {
            return true;
        }
        if link.is_usable() {
            let reason = Json::from(serde_json::Value::from(reason));
            let params = Params::build(|object| {
                object
                    .u64("requestId", request)
                    .raw("reason", reason.as_str());
            });
            self.notify("notifications/cancelled", Some(&params));
        }
        false
    }

    /// Whether a request of the server can be answered. One that asks and does not read gets no more answers than
    /// the bound on a line allows, and none behind [`QUEUED_MAX`] messages.
    pub(super) fn may_respond(&self) -> bool {
        self.link.as_ref().is_none_or(|link| {
            link.outbox.queued_bytes() <= self.config.limits.line_bytes
                && link.outbox.queued_messages() <= QUEUED_MAX
        })
    }

    /// Answers a request of the server (older revisions only), if that [can be](Self::may_respond).
    pub(super) fn respond(&mut self, id: IdToken<'_>, answer: Result<&str, (i64, &str)>) {
        if !self.may_respond() {
            self.counters.dropped_requests = self.counters.dropped_requests.saturating_add(1);
        } else if let Some(link) = &mut self.link {
            link.outbox.push(None, |out| match answer {
                Ok(result) => encode::response_result(out, id, result),
                Err((code, message)) => encode::response_error(out, id, code, message),
            });
        }
    }
}
