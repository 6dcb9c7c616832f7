//! One server: the machines of this crate, wired together.
//!
//! A [`Peer`] can be driven alone by a host that manages its own servers; [`Client`](crate::Client)
//! drives many.

mod active;
mod answers;
mod asked;
mod buffered;
mod connect;
mod deadlines;
mod diagnosis;
mod identity;
mod inbound;
mod input;
mod last_words;
mod links;
mod listening;
mod lists;
mod metering;
mod operations;
mod pinning;
mod requests;
mod retries;
mod secrets;
mod sending;
mod sources;
mod spanning;
mod streaming;
mod validation;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::action::{Action, LinkTarget};
use crate::cache::ResponseCache;
use crate::config::{PeerConfig, PinnedPeer};
use crate::error::{CLIENT_CLOSED, Cause, Error};
use crate::event::Event;
use crate::identity::{CallerMeta, MetaError, TraceId};
use crate::ids::{OperationId, PeerId};
use crate::manifest::Manifest;
use crate::metrics::ServerMetrics;
use crate::negotiation::Negotiation;
use crate::operation::{Ended, News, Options, Outcome, Request};
use crate::recovery::Recovery;
use crate::stdio::{Link, Tail};
use crate::time::Instant;
use crate::types::{DiscoverResult, Tool};
use crate::unread::Unread;
use crate::violation::Fault;

pub use buffered::BufferedBytes;
pub(crate) use buffered::notification_bytes;
pub use diagnosis::{Counters, Diagnosis};
pub use identity::Identity;
pub use pinning::QuarantinedTool;

use active::Active;
use connect::Session;
use pinning::Pins;
use requests::Requests;
pub(crate) use spanning::Context;

use sending::Speech;
#[cfg(feature = "tracing")]
use spanning::Spans;
use validation::Schemas;

/// The operation under which a peer reads its own manifest when it connects.
const MANIFEST: OperationId = OperationId::new(0);
/// Bounds of what is kept of lists and reads.
const CACHE_ENTRIES_MAX: usize = 256;
const CACHE_BYTES_MAX: usize = 16 << 20;

/// Where a peer is. The failure of a peer whose link still stands keeps its session.
#[derive(Debug)]
enum Phase {
    /// Not connected yet.
    Idle,
    /// The era is being found out.
    Connecting,
    /// The session stands and the first manifest is being read.
    Listing,
    /// Settled, and well.
    Ready,
    /// Settled, and not well.
    Failed(Error),
    /// Settled, and lost; [`Recovery`] says when it is started again.
    Restarting(Error),
    /// Being closed, or closed.
    Closing,
}

/// One server.
#[derive(Debug)]
pub struct Peer {
    id: PeerId,
    config: Arc<PeerConfig>,
    target: Result<Arc<LinkTarget>, Cause>,
    identity: Arc<Identity>,
    trace_id: TraceId,
    run_root: String,
    phase: Phase,
    /// It was ready or has failed at least once: from then on nobody waits for it to connect.
    has_settled: bool,
    /// It was ready at least once: from then on it is brought back when it is lost.
    was_ready: bool,
    /// It spoke a modern revision in an earlier life, or does in this one.
    proved_modern: bool,
    recovery: Recovery,
    link: Option<Link>,
    /// Links on the shutdown ladder whose place has been taken, or not.
    fading: Vec<Link>,
    serial: u32,
    negotiation: Negotiation,
    handshake: Option<crate::legacy::Handshake>,
    /// What the handshake agreed on, until the negotiation has decided for it.
    handshaken: Option<Session>,
    /// Requests of the server (id and method) that came before it was known what is spoken.
    early_requests: Vec<(String, String)>,
    discovered: Option<DiscoverResult>,
    session: Option<Session>,
    speech: Speech,
    requests: Requests,
    operations: BTreeMap<OperationId, Box<Active>>,
    /// Those of them that have not begun, in order.
    queue: VecDeque<OperationId>,
    manifest: Manifest,
    pins: Pins,
    schemas: Schemas,
    #[cfg(feature = "tracing")]
    spans: Spans,
    /// Notifications that were not taken when their listening operation ended; of the latest ones.
    unread: Unread,
    cache: ResponseCache,
    degraded: Option<Fault>,
    /// The server has broken the protocol in its present life.
    degraded_life: bool,
    counters: Counters,
    metrics: ServerMetrics,
    /// The latest time at which something happened here.
    now: Instant,
    noise: Tail,
    notes: Vec<String>,
    heard_message: bool,
    last_stderr: Vec<String>,
    calls: u64,
    /// The peer has just settled: what waits in the queue has waited long enough for that.
    just_settled: bool,
    wake: Option<Instant>,
    actions: VecDeque<Action>,
}

impl Peer {
    /// A peer that is not connected yet. `run_root` is the configured root of trace ids, 64 hexadecimal
    /// digits; without one it is derived from the peer's name and command (R6).
    #[must_use]
    pub fn new(
        id: PeerId,
        peer: PinnedPeer,
        identity: Arc<Identity>,
        run_root: Option<&str>,
    ) -> Self {
        let (config, target) = (Arc::new(peer.config), peer.target);
        let trace_id = sending::trace_id(&config, run_root);
        let run_root = sending::run_root(&config, run_root);
        let negotiation = Negotiation::new(connect::policy(&config, false));
        let noise = Tail::new(config.limits.noise_tail_bytes);
        Self {
            id,
            trace_id,
            run_root,
            phase: Phase::Idle,
            has_settled: false,
            was_ready: false,
            proved_modern: false,
            recovery: Recovery::new(config.restart, trace_id.entropy(), &*config.name),
            link: None,
            fading: Vec::new(),
            serial: 0,
            negotiation,
            handshake: None,
            handshaken: None,
            early_requests: Vec::new(),
            discovered: None,
            session: None,
            speech: Speech::Legacy,
            target,
            queue: VecDeque::new(),
            notes: Vec::new(),
            requests: Requests::default(),
            operations: BTreeMap::new(),
            manifest: Manifest::new(),
            pins: Pins::default(),
            schemas: Schemas::default(),
            #[cfg(feature = "tracing")]
            spans: Spans::default(),
            unread: Unread::default(),
            cache: ResponseCache::new(CACHE_ENTRIES_MAX, CACHE_BYTES_MAX),
            degraded: None,
            degraded_life: false,
            counters: Counters::default(),
            metrics: ServerMetrics::default(),
            now: Instant::ZERO,
            noise,
            heard_message: false,
            last_stderr: Vec::new(),
            calls: 0,
            just_settled: false,
            wake: None,
            actions: VecDeque::new(),
            config,
            identity,
        }
    }

    /// Which peer this is.
    #[must_use]
    pub const fn id(&self) -> PeerId {
        self.id
    }

    /// The configured name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &PeerConfig {
        &self.config
    }

    /// Whether handshake and first manifest are in, or have failed. A peer that is lost later and started
    /// again stays settled.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        self.has_settled || matches!(self.phase, Phase::Closing)
    }

    /// Whether the peer is settled and well.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready)
    }

    /// Why the peer failed, while it counts as failed.
    #[must_use]
    pub const fn failure(&self) -> Option<&Error> {
        match &self.phase {
            Phase::Failed(error) | Phase::Restarting(error) => Some(error),
            _ => None,
        }
    }

    /// Whether operations can be served now: the peer is settled and its link stands, though its
    /// listing may have failed.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        matches!(self.phase, Phase::Ready | Phase::Failed(_)) && self.is_linked()
    }

    /// Whether the server says that it has what this request is about. What it does not declare may be
    /// there nevertheless (R18).
    pub(crate) fn declares(&self, request: &Request) -> bool {
        self.session.as_ref().is_some_and(|session| match request {
            Request::ListPrompts | Request::GetPrompt { .. } => session.has_prompts,
            Request::ListResources
            | Request::ListResourceTemplates
            | Request::ReadResource { .. } => session.has_resources,
            _ => true,
        })
    }

    /// Whether the peer reads its manifest.
    pub(crate) fn is_listing(&self) -> bool {
        self.operations.contains_key(&MANIFEST)
    }

    /// Reads the manifest again if reading it has failed. The peer stays settled: who does not ask for
    /// what it may have need not wait.
    pub(crate) fn retry_listing(&mut self, now: Instant) -> bool {
        let retries = matches!(self.phase, Phase::Failed(_)) && self.is_linked();
        if retries {
            self.reach(now);
            self.read_manifest(now);
            self.flush();
        }
        retries
    }

    /// Whether the peer is closed and nothing of it is left.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closing) && self.link.is_none() && self.fading.is_empty()
    }

    /// The tools that can be called, sorted by name.
    #[must_use]
    pub fn tools(&self) -> &[Tool] {
        self.manifest.tools()
    }

    /// Whether the manifest has been read, be it empty.
    #[must_use]
    pub const fn knows_tools(&self) -> bool {
        self.manifest.is_known()
    }

    /// Accepts an operation under a number that was never used for this peer. It ends with exactly one
    /// [`News::Ended`], whatever happens. `call_index` is the ordinal of a tool call in its run (R6);
    /// without one the peer counts its own.
    ///
    /// # Errors
    /// Nothing was and nothing will be sent: a bound is exceeded ([`Cause::Limit`]), the parameters are
    /// not of the kind they must be or a reserved `_meta` name was given ([`Cause::Usage`]), or the peer has failed or is closed ([`Cause::Unavailable`]).
    pub fn submit(
        &mut self,
        operation: OperationId,
        request: Request,
        mut options: Options,
        call_index: Option<u64>,
        now: Instant,
    ) -> Result<(), Error> {
        self.reach(now);
        crate::operation::check(&request, &options).map_err(|cause| self.error(cause))?;
        let (request, resumed) =
            input::unfold(request, &mut options).map_err(|cause| self.error(cause))?;
        self.check_acceptable(&request)?;
        let validates = self.validates(&request, &options)?;
        let meta = self.caller_meta(&options)?;
        // What is taken up has its place in the run already.
        let call_index = match &request {
            Request::CallTool(_) if resumed.is_none() => Some(call_index.unwrap_or(self.calls)),
            _ => None,
        };
        self.calls = self.calls.saturating_add(u64::from(call_index.is_some()));
        let mut active = Active::new(request, options, meta, call_index);
        active.resumed = resumed.map(Box::new);
        active.validates = validates;
        active.context = Context::current();
        self.admit(operation, Box::new(active), now);
        self.flush();
        Ok(())
    }

    /// What the application puts into `_meta`: its own members, and its idempotency key for a server that
    /// is configured to honour one (R34).
    fn caller_meta(&self, options: &Options) -> Result<Option<CallerMeta>, Error> {
        let misuse = |error: MetaError| self.error(Cause::Usage(error.to_string()));
        let own = options
            .meta
            .as_ref()
            .map(CallerMeta::parse)
            .transpose()
            .map_err(misuse)?;
        match (&options.idempotency_key, &self.config.idempotency_meta_key) {
            (Some(value), Some(name)) => {
                let own = own.unwrap_or_default();
                own.with(name, value).map(Some).map_err(misuse)
            }
            _ => Ok(own),
        }
    }

    /// Cancels an operation (R40): it ends at once, with [`Cause::Cancelled`]; whether it may have been
    /// executed stands in the error. A streamed call ends with its text so far. Unknown and ended operations are ignored.
    pub fn cancel(&mut self, operation: OperationId, now: Instant) {
        self.reach(now);
        let active = self.operations.get(&operation);
        if active.is_some_and(|active| active.options.stream.is_some()) {
            self.cancel_stream(operation, now);
        } else if operation != MANIFEST {
            self.abandon(operation, Cause::Cancelled, "cancelled by the application");
        }
        self.pump(now);
        self.flush();
    }

    /// Takes in a fact about one of this peer's links, or that time has passed. Infallible: what a server
    /// does wrong is data. Drain [`Peer::poll_action`] afterwards; a spurious call changes nothing.
    pub fn handle(&mut self, event: Event<'_>, now: Instant) {
        match event {
            Event::TimePassed => self.on_time(now),
            Event::LinkData { link, bytes } => self.on_data(link, bytes, now),
            // Its client's business.
            Event::LedgerRead { .. }
            | Event::LedgerEnded
            | Event::LedgerAppended
            | Event::LedgerFailed { .. } => {}
            Event::LinkOpened { link }
            | Event::LinkFailed { link, .. }
            | Event::LinkStderr { link, .. }
            | Event::LinkStderrEnded { link }
            | Event::LinkWritten { link, .. }
            | Event::LinkWriteFailed { link, .. }
            | Event::LinkEnded { link }
            | Event::LinkExited { link, .. } => self.on_link(link, event, now),
        }
        self.pump(now);
        self.flush();
    }

    /// The next wish. Drain until `None` after every command and every fact.
    pub fn poll_action(&mut self) -> Option<Action> {
        let action = self.actions.pop_front();
        if let Some(Action::Write { bytes, .. }) = &action {
            let sent = bytes.len() as u64;
            self.counters.bytes_sent = self.counters.bytes_sent.saturating_add(sent);
        }
        action
    }

    /// When [`Event::TimePassed`] is due if nothing happens before; it may be early, never late. Changes
    /// with every command and every fact.
    #[must_use]
    pub const fn poll_timeout(&self) -> Option<Instant> {
        self.wake
    }

    /// Closes the peer in bounded time: what is pending ends with [`Cause::Closed`], the link goes down
    /// the shutdown ladder. Poll until [`Peer::is_closed`].
    pub fn close(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Closing) {
            return;
        }
        self.reach(now);
        self.phase = Phase::Closing;
        self.recovery.stop();
        self.end_all(now, || Cause::Closed {
            detail: String::from(CLIENT_CLOSED),
            stderr: Vec::new(),
        });
        self.retire_link(now);
        self.flush();
    }

    fn deliver(&mut self, news: News) {
        self.actions.push_back(Action::Deliver(news));
    }

    /// The last word about an operation, which is out of the table already.
    fn deliver_end(&mut self, operation: OperationId, active: &mut Active, outcome: Outcome) {
        let tool = match &mut active.request {
            Request::CallTool(call) => Some(core::mem::take(&mut call.tool)),
            _ => None,
        };
        let peer = Some(self.config.name.clone());
        let ended = Ended {
            operation,
            peer,
            tool,
            outcome,
        };
        self.deliver(News::Ended(Box::new(ended)));
    }

    fn error(&self, cause: Cause) -> Error {
        Error::new(self.name(), self.redact_cause(cause))
    }

    /// The digest of the current manifest (R21), once there is one.
    #[must_use]
    pub fn manifest_digest(&self) -> Option<&str> {
        self.manifest.digest()
    }
}

/// What an operation concerns, for messages: `answer to tools/call`.
fn awaited(method: &str) -> String {
    alloc::format!("answer to {method}")
}
