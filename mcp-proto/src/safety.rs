//! What may be done twice: the one gate that every automatic retry passes (R34), and idempotency keys
//! (R33).
//!
//! A request that provably was not executed may be sent again, whatever it does. One that may have been
//! executed is sent again only if it changes nothing, or if someone who can know has said that running it
//! twice is fine: the operator, the application, or a server that is configured to honour idempotency
//! keys. What a server says about its own tools is a hint and never enough.

use alloc::string::String;
use core::fmt;
use core::mem;

use crate::config::PeerConfig;
use crate::error::Ran;
use crate::ids::Question;

mod keys;

pub use keys::{
    Claim, IdempotencyKey, KEY_BYTES_MAX, KeyError, KeyLedger, KeyReused, LogicalCall,
    arguments_hash,
};

/// How a request failed, as far as that says whether it was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Failure {
    /// No byte of it left: it was still waiting to be written.
    NotSent,
    /// The connection was refused, or never came about.
    ConnectRefused,
    /// HTTP 401, before anything ran.
    Unauthorized,
    /// HTTP 429.
    TooManyRequests,
    /// Error -32020: headers and body disagree.
    HeaderMismatch,
    /// Error -32021: a capability of the client is missing.
    MissingCapability,
    /// Error -32022: the revision is not supported.
    UnsupportedVersion,
    /// The server could not read the request, or does not know the method: -32700, -32600, -32601.
    Rejected,
    /// Any other JSON-RPC error.
    Rpc,
    /// Any other HTTP status, 503 included: a gateway sends it after the fact, too.
    HttpStatus,
    /// The connection ended after something was sent.
    ConnectionLost,
    /// No answer in time.
    Timeout,
    /// The answer broke the protocol.
    Violation,
    /// A stream ended before its text was complete.
    StreamDropped,
}

impl Failure {
    /// Every one, those that prove that nothing ran first.
    pub const ALL: [Self; 14] = [
        Self::NotSent,
        Self::ConnectRefused,
        Self::Unauthorized,
        Self::TooManyRequests,
        Self::HeaderMismatch,
        Self::MissingCapability,
        Self::UnsupportedVersion,
        Self::Rejected,
        Self::Rpc,
        Self::HttpStatus,
        Self::ConnectionLost,
        Self::Timeout,
        Self::Violation,
        Self::StreamDropped,
    ];

    /// The failure that a JSON-RPC error is.
    #[must_use]
    pub const fn of_rpc_code(code: i64) -> Self {
        match code {
            -32020 => Self::HeaderMismatch,
            -32021 => Self::MissingCapability,
            -32022 => Self::UnsupportedVersion,
            -32700 | -32600 | -32601 => Self::Rejected,
            _ => Self::Rpc,
        }
    }

    /// The failure that an HTTP status is, where its body says nothing more.
    #[must_use]
    pub const fn of_http_status(status: u16) -> Self {
        match status {
            401 => Self::Unauthorized,
            429 => Self::TooManyRequests,
            _ => Self::HttpStatus,
        }
    }

    /// Whether the request may have been executed.
    ///
    /// [`Ran::No`] says that a retry is safe, not that it is of use: a server that does not know a
    /// method will not know it the next time.
    #[must_use]
    pub const fn ran(self) -> Ran {
        match self {
            Self::NotSent
            | Self::ConnectRefused
            | Self::Unauthorized
            | Self::TooManyRequests
            | Self::HeaderMismatch
            | Self::MissingCapability
            | Self::UnsupportedVersion
            | Self::Rejected => Ran::No,
            Self::Rpc
            | Self::HttpStatus
            | Self::ConnectionLost
            | Self::Timeout
            | Self::Violation
            | Self::StreamDropped => Ran::Maybe,
        }
    }
}

/// What a request does to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestKind {
    /// It may change something: `tools/call`, and every method that this client does not know.
    Effectful,
    /// It only reads: discovery, lists, resources, prompts, completion, subscriptions.
    ReadOnly,
}

impl RequestKind {
    /// The kind of a method.
    #[must_use]
    pub fn of_method(method: &str) -> Self {
        match method {
            "completion/complete"
            | "ping"
            | "prompts/get"
            | "prompts/list"
            | "resources/list"
            | "resources/read"
            | "resources/templates/list"
            | "server/discover"
            | "subscriptions/listen"
            | "tools/list" => Self::ReadOnly,
            _ => Self::Effectful,
        }
    }
}

/// What the operator's configuration says about a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum OperatorPolicy {
    /// Nothing.
    #[default]
    Unmarked,
    /// It may run twice: `idempotentTools`.
    Idempotent,
    /// It changes nothing.
    ReadOnly,
}

impl OperatorPolicy {
    /// What a peer's configuration says about a tool, by the peer's own name of it. The server has no
    /// say in this.
    #[must_use]
    pub fn of(config: &PeerConfig, tool: &str) -> Self {
        if config.idempotent_tools.contains(tool) {
            Self::Idempotent
        } else {
            Self::Unmarked
        }
    }
}

/// What the application's decision hook says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision {
    /// There is no hook.
    #[default]
    NoHook,
    /// There is one, and it was not asked yet.
    CanAsk,
    /// It was asked, and said so.
    Said {
        /// Whether the request may be sent again.
        retry: bool,
    },
}

/// Everything that the decision depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// How the request failed.
    pub failure: Failure,
    /// What it does.
    pub request: RequestKind,
    /// What the operator says about the tool.
    pub operator: OperatorPolicy,
    /// The idempotency key, derived or the caller's.
    pub key: Option<IdempotencyKey>,
    /// Whether that key travels to a server that is configured to honour it (`idempotencyMetaKey`).
    /// Without a key it means nothing.
    pub key_travels: bool,
    /// Whether the caller itself supplied the source of the stream, and so knows what a second opening
    /// does.
    pub caller_stream: bool,
    /// What the application's hook says.
    pub decision: Decision,
    /// How many retries are left.
    pub retries_left: u32,
    /// Whether the server's own annotations call the tool idempotent or read-only. It changes the words
    /// of a refusal and nothing else.
    pub server_hints: bool,
    /// The text of a stream so far.
    pub partial_text: Option<String>,
}

impl Facts {
    /// The facts of a failure about which nothing else is known, with one retry left.
    #[must_use]
    pub const fn new(failure: Failure, request: RequestKind) -> Self {
        Self {
            failure,
            request,
            operator: OperatorPolicy::Unmarked,
            key: None,
            key_travels: false,
            caller_stream: false,
            decision: Decision::NoHook,
            retries_left: 1,
            server_hints: false,
            partial_text: None,
        }
    }

    fn refuse(&self, reason: RefusalReason) -> Verdict {
        Verdict::Refuse(RetryRefused {
            failure: self.failure,
            reason,
            key: self.key.clone(),
            key_travels: self.key_travels,
            server_hints: self.server_hints,
            partial_text: self.partial_text.clone(),
        })
    }
}

/// What is to be done about a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Send it again.
    Retry,
    /// Ask the application: only it can know whether that is safe.
    Ask,
    /// Do not send it again.
    Refuse(RetryRefused),
}

/// A retry that was not made, with what the caller needs to go on (R34).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryRefused {
    /// How the request failed.
    pub failure: Failure,
    /// Why it was not sent again.
    pub reason: RefusalReason,
    /// The idempotency key of the call, for a retry by hand.
    pub key: Option<IdempotencyKey>,
    /// Whether the server is configured to honour that key.
    pub key_travels: bool,
    /// Whether the server itself calls the tool idempotent or read-only.
    pub server_hints: bool,
    /// The text of a stream so far.
    pub partial_text: Option<String>,
}

impl RetryRefused {
    /// What would allow the retry, in one sentence for a person.
    #[must_use]
    pub const fn needs(&self) -> &'static str {
        match self.reason {
            RefusalReason::Declined => "Nothing to do: the application decided against a retry.",
            RefusalReason::NoRetriesLeft => {
                "Try again later; as many retries as are allowed were made."
            }
            RefusalReason::MayRunTwice if self.key.is_some() => {
                "Check whether the call took effect; if its server honours idempotency keys, set \
                 \"idempotencyMetaKey\" for this server to where it takes them, or if the tool may safely \
                 run twice, add it to \"idempotentTools\"."
            }
            RefusalReason::MayRunTwice if self.server_hints => {
                "Check whether the call took effect; the server's own word that the tool may run twice \
                 is not enough, so if you trust it, add the tool to \"idempotentTools\" of this server."
            }
            RefusalReason::MayRunTwice => {
                "Check whether the call took effect; if the tool may safely run twice, add it to \
                 \"idempotentTools\" of this server."
            }
        }
    }
}

impl fmt::Display for RetryRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not retried: {}", self.reason)
    }
}

impl core::error::Error for RetryRefused {}

/// Why a request was not sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum RefusalReason {
    /// The application's hook said no.
    #[error("the application decided against it")]
    Declined,
    /// It may have been executed, and nobody says that it may run twice.
    #[error("it may have been executed, and may not be safe to run twice")]
    MayRunTwice,
    /// As many retries as are allowed were made.
    #[error("no retries are left")]
    NoRetriesLeft,
}

/// Decides on one failure. The same facts always give the same verdict.
///
/// ```
/// use mcp_proto::safety::{Facts, Failure, OperatorPolicy, RequestKind, Verdict, may_retry};
/// let mut facts = Facts::new(Failure::ConnectRefused, RequestKind::Effectful);
/// assert_eq!(may_retry(&facts), Verdict::Retry);
/// facts.failure = Failure::ConnectionLost;
/// assert!(matches!(may_retry(&facts), Verdict::Refuse(_)));
/// facts.operator = OperatorPolicy::Idempotent;
/// assert_eq!(may_retry(&facts), Verdict::Retry);
/// ```
#[must_use]
pub fn may_retry(facts: &Facts) -> Verdict {
    if facts.retries_left == 0 {
        return facts.refuse(RefusalReason::NoRetriesLeft);
    }
    let is_safe = facts.failure.ran() == Ran::No
        || facts.request == RequestKind::ReadOnly
        || facts.operator != OperatorPolicy::Unmarked
        || (facts.key.is_some() && facts.key_travels)
        || facts.caller_stream;
    match facts.decision {
        _ if is_safe => Verdict::Retry,
        Decision::Said { retry: true } => Verdict::Retry,
        Decision::Said { retry: false } => facts.refuse(RefusalReason::Declined),
        Decision::CanAsk => Verdict::Ask,
        Decision::NoHook => facts.refuse(RefusalReason::MayRunTwice),
    }
}

/// What comes of a failure, with the question where there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// Send it again.
    Retry,
    /// Ask the application, and hand its answer to [`RetryGate::decided`].
    Decide {
        /// Which question.
        question: Question,
        /// How the request failed.
        failure: Failure,
    },
    /// Do not send it again.
    Refuse(RetryRefused),
}

/// The gate of one logical call: counts its retries, and waits for the application where it has to.
///
/// ```
/// use mcp_proto::safety::{Decision, Facts, Failure, RequestKind, RetryGate, Ruling};
/// let mut gate = RetryGate::new(3);
/// let mut facts = Facts::new(Failure::Timeout, RequestKind::Effectful);
/// facts.decision = Decision::CanAsk;
/// let Ruling::Decide { question, .. } = gate.failed(facts) else { panic!() };
/// assert_eq!(gate.decided(question, true), Some(Ruling::Retry));
/// assert_eq!(gate.decided(question, true), None);
/// assert_eq!(gate.retries_left(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct RetryGate {
    retries_left: u32,
    questions: u32,
    asking: Option<Facts>,
}

impl RetryGate {
    /// The gate of a call that may be retried so often.
    #[must_use]
    pub const fn new(retries: u32) -> Self {
        Self {
            retries_left: retries,
            questions: 0,
            asking: None,
        }
    }

    /// The call failed. `retries_left` of the facts does not count: the gate keeps count itself. A
    /// question that is still open is void.
    pub fn failed(&mut self, facts: Facts) -> Ruling {
        self.withdraw();
        self.rule(Facts {
            retries_left: self.retries_left,
            ..facts
        })
    }

    /// The application decided. `None` when that question is not open (any longer): nothing is to be
    /// done then.
    pub fn decided(&mut self, question: Question, retry: bool) -> Option<Ruling> {
        if question != Question::new(self.questions) {
            return None;
        }
        let facts = self.asking.take()?;
        Some(self.rule(Facts {
            decision: Decision::Said { retry },
            ..facts
        }))
    }

    /// The call is over: an open question is void, and its answer changes nothing.
    pub fn withdraw(&mut self) {
        drop(mem::take(&mut self.asking));
    }

    /// How many retries are left.
    #[must_use]
    pub const fn retries_left(&self) -> u32 {
        self.retries_left
    }

    /// The question that waits for an answer.
    #[must_use]
    pub fn open_question(&self) -> Option<Question> {
        self.asking.as_ref().map(|_| Question::new(self.questions))
    }

    fn rule(&mut self, facts: Facts) -> Ruling {
        match may_retry(&facts) {
            Verdict::Retry => {
                self.retries_left = self.retries_left.saturating_sub(1);
                Ruling::Retry
            }
            Verdict::Ask => {
                let failure = facts.failure;
                self.questions = self.questions.wrapping_add(1);
                self.asking = Some(facts);
                Ruling::Decide {
                    question: Question::new(self.questions),
                    failure,
                }
            }
            Verdict::Refuse(refused) => Ruling::Refuse(refused),
        }
    }
}

#[cfg(test)]
mod tests;
