//! A broken invariant, as data.

use std::fmt;

/// What must hold of everything that leaves the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Rule {
    /// The news `Closed` come once and last, when no link and no operation is left.
    ClosedLast,
    /// Writes, closes and signals go to links that live.
    DeadLink,
    /// Every accepted operation ends exactly once.
    EndsOnce,
    /// What is answered was asked: no operation completes before its request was written.
    Unasked,
    /// A request is never written after the application was told that its operation ended or was
    /// refused.
    AfterEnd,
    /// "Not executed" is only said of requests that were not written, or that the server refused;
    /// "may have been executed" only of those that were written.
    Verdict,
    /// Every link has a serial that was never used, one more than the last.
    FreshSerial,
    /// One JSON-RPC message on each line, ended by a line feed, no other line break.
    Framing,
    /// `initialize` goes only to peers that are allow-listed, never after a proof of the modern era.
    Handshake,
    /// `notifications/initialized` comes once, after a good answer and before all else.
    Initialized,
    /// Before the era is known nothing but probe and handshake is sent.
    BeforeEra,
    /// Requests of the modern era carry `_meta` with the keys that the specification requires.
    ModernMeta,
    /// Messages of older revisions carry no key of the modern era.
    LegacyMeta,
    /// Request ids are small positive integers, never used twice.
    RequestId,
    /// `notifications/cancelled` is only for requests that were written, are unanswered and are not
    /// cancelled yet; never for probes and handshakes. Calls that ended early are cancelled.
    Cancelled,
    /// A server that is lost again and again is given up.
    Restart,
    /// Responses answer a request of the server, once, and do not exist in the modern era.
    Response,
    /// Input is closed, then the process is asked, then killed, then released; nothing follows.
    Ladder,
    /// Progress concerns an operation that runs and asked for it, and always increases.
    Progress,
    /// Other news concern something that exists.
    News,
    /// At most one write per link is outstanding.
    WriteCredit,
    /// Handling a deadline makes progress, and every wait has one.
    Timer,
    /// The ledger is read once, before it is appended to; one append at a time, whole lines, one for each
    /// call that is charged.
    Ledger,
    /// A fact about a dead link, or time that does not pass, changes nothing.
    StaleFact,
    /// A call that may have been executed is sent again only where the operator or a key allows it.
    Repeated,
    /// What the client holds is bounded by the limits.
    Bounded,
    /// Only an interactive operation that was sent asks the application, once at a time; until it is
    /// answered nothing is sent for it and its deadlines stand still; an answer counts if and only if
    /// something is asked and it fits.
    Asked,
    /// The text of a stream is what its updates say, and bounded; a source of the application's is opened once at
    /// a time, under one key, from the last checkpoint with the text that this covers, and closed at the end.
    Stream,
    /// An idempotency key travels only where that is configured; it is the application's where that gives one, and
    /// the same in all requests of a call.
    Key,
    /// Every call that may have run is charged once, at its price; what exceeds the budget is not sent.
    Money,
    /// A tool that is new or another one is neither in force nor called before it is accepted.
    Consent,
    /// A mismatch with an output schema is noted where validation is wanted, and nowhere else.
    Output,
    /// What a server may assert about its client (the script's assertions).
    Server,
}

/// A broken rule, with everything that led to it.
#[derive(Clone, Debug)]
pub struct Breach {
    /// Which rule.
    pub rule: Rule,
    /// How.
    pub detail: String,
    /// What happened until then, one line each.
    pub transcript: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, detail, .. } = self;
        write!(f, "{rule:?}: {detail}\n{}", self.transcript)
    }
}

impl std::error::Error for Breach {}

/// A rule and how it was broken, before the transcript is added.
pub(super) type Broken = (Rule, String);
