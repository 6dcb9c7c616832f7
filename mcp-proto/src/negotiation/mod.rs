//! Finding out which era a server speaks (R10–R18).
//!
//! Every server is asked in the modern way first, with a *probe* (`server/discover`). A valid answer
//! or a recognised modern error proves a modern server, and from then on nothing older is tried.
//! Everything else is *ambiguous*: it proves nothing, and only a peer that is allow-listed for older
//! revisions is then sent one *handshake*, about which this module knows no more than that name. The
//! handshake proves an older server by being answered well, never by the failure that led to it.
//!
//! ```text
//!            Started      LinkUp             modern answer
//!   Idle ──▶ Opening ──▶ Probing ───────────────────────────────▶ Established(Modern)
//!               ▲          │  ▲ └─ modern error: corrected probe      ▲
//!       Respawn │   closed │  └──────────────────────────┐            │ late answer
//!               └──────────┤ ambiguous                   │ modern     │
//!                          └───────────▶ Handshaking ────┴─ error ────┤
//!                                             └──────────────▶ Established(Legacy)
//! ```
//!
//! [`Negotiation`] is pure: facts go in with [`Negotiation::handle`], wishes come out of
//! [`Negotiation::poll_command`], and [`Negotiation::deadline`] says when to come back. It knows no
//! link, no bytes and no request ids: the caller numbers nothing, it only echoes the `attempt` of the
//! probe that an answer belongs to.
//!
//! One value serves one process or endpoint: the era is a property of that, so it is kept for its
//! life, and a restart or a changed configuration starts with a new value (R16).
//!
//! spec: 2026-07-28 basic/versioning, basic/transports/stdio#backward-compatibility

mod answer;
mod dialect;
mod failure;
mod machine;
mod observation;
mod state;

pub use answer::{HandshakeAnswer, ModernError, ProbeAnswer};
pub use dialect::{Dialect, LogLevelScope, StructuredContent};
pub use failure::Failure;
pub use machine::Negotiation;
pub(crate) use observation::printable;
pub use observation::{Observation, Subject};
pub use state::{Corrections, First, State};

use alloc::string::String;
use alloc::vec::Vec;

use crate::error::{Cause, RpcError};
use crate::time::Duration;
use crate::version::Version;

/// The configuration field that holds the deadline of a probe.
pub(crate) const PROBE_SETTING: &str = "probeTimeoutMs";

/// The default of [`Policy::probe_timeout`] and [`Policy::handshake_timeout`]: 10 s, because a first
/// start through a package runner is slow and is not silence.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Which eras a peer may be talked to in: the configuration field `era` (R18).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EraSetting {
    /// Probe; fall back to the handshake where that is allowed.
    #[default]
    Auto,
    /// Probe; never fall back, even when allow-listed.
    Modern,
    /// No probe, straight to the handshake: for servers known to hang or to die on a probe.
    Legacy,
}

/// What the configuration and the transport allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Which eras to try.
    pub era: EraSetting,
    /// Whether the peer is allow-listed for older revisions. Default false.
    pub allow_legacy: bool,
    /// Whether the same command proved to be a modern server earlier in this run. Then no handshake is sent
    /// to a later life of it: a modern server that hangs or dies must not be talked down to an older
    /// revision (R13, R16). Default false.
    pub proved_modern: bool,
    /// Whether there is any older revision to fall back to: `legacyVersions` is not empty and this
    /// build has the handshake. Default true.
    pub legacy_available: bool,
    /// How long a probe may take. The first one's time covers starting the server as well.
    pub probe_timeout: Duration,
    /// How long the handshake may take, with the start of the process that it needs, if any.
    pub handshake_timeout: Duration,
    /// The configuration field that has to be raised for the handshake to be given more time. Default
    /// `probeTimeoutMs`.
    pub handshake_setting: &'static str,
    /// Whether a closed link can be replaced by a new one: true for a process that we start, false
    /// for a stream that the host handed over. Default true.
    pub respawnable: bool,
    /// Client capabilities that are implemented but not declared at first, as dotted paths
    /// (`elicitation.url`, or `elicitation` for everything below it). A server that insists on some
    /// of these gets them declared (R13).
    pub declarable: Vec<String>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            era: EraSetting::Auto,
            allow_legacy: false,
            proved_modern: false,
            legacy_available: true,
            probe_timeout: DEFAULT_TIMEOUT,
            handshake_timeout: DEFAULT_TIMEOUT,
            handshake_setting: PROBE_SETTING,
            respawnable: true,
            declarable: Vec::new(),
        }
    }
}

/// A fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Opening the link begins (the process is about to be spawned): the first deadline runs.
    Started,
    /// The link takes messages.
    LinkUp,
    /// A response with the id of probe number `attempt` (the one of [`Command::SendProbe`]), or what
    /// an HTTP exchange for it brought.
    ProbeAnswered {
        /// Which probe was answered.
        attempt: u32,
        /// With what.
        answer: ProbeAnswer,
    },
    /// A response with the id of the handshake.
    HandshakeAnswered(HandshakeAnswer),
    /// An error response whose id is absent or belongs to no request of ours. It cannot be taken for
    /// an answer; the deadline or the close decides.
    ForeignError(RpcError),
    /// The link ended.
    LinkLost {
        /// How: exit status, the end of standard error, the failed write. Shown to people in full.
        description: String,
        /// Whether the server's last words say that it wants a handshake first. That makes the
        /// failure of a peer that is not allow-listed say so; it never decides an era.
        asks_for_handshake: bool,
    },
    /// The time of [`Negotiation::deadline`] has come. Too early or without a deadline: a no-op.
    DeadlinePassed,
    /// Something went wrong that says nothing about an era: the process cannot be spawned, the
    /// network fails, HTTP 401, 403, 429 or 5xx. Ends the negotiation with this cause.
    Unreachable(Cause),
}

/// A wish, to be carried out in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Declare these client capabilities (paths out of [`Policy::declarable`]) in every request from
    /// now on.
    Declare(Vec<String>),
    /// Send `server/discover` with a new request id. An earlier probe is superseded: its answer may
    /// still be reported, and is never cancelled with a notification.
    SendProbe {
        /// The number of the probe, from 1.
        attempt: u32,
        /// The revision to declare in it.
        version: Version,
    },
    /// Send the handshake; nothing else may be sent before [`Command::Established`].
    BeginHandshake,
    /// Give up this link and open a new one; [`Event::LinkUp`] says when. Facts about the old link
    /// must not be reported any more.
    Respawn,
    /// The end: the server speaks this. For an older revision the caller now completes the handshake.
    Established(Verdict),
    /// The end: the peer cannot be used.
    Fail(Failure),
}

/// What a server was found to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A modern revision, proved by the discover answer that was reported last.
    Modern {
        /// The newest one in common.
        version: Version,
    },
    /// An older revision, proved by a well answered handshake.
    Legacy {
        /// The one that the server chose.
        version: Version,
    },
}
