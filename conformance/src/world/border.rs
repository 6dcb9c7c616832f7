//! The border: every action is judged before it takes effect.

mod streaming;

use std::collections::BTreeMap;

use mcp_proto::negotiation::EraSetting;
use mcp_proto::{
    Action, Duration, Ended, ErrorKind, Event, Instant, LinkId, News, OperationId, Outcome,
    PeerConfig, Ran, Reply, Request,
};

use super::breach::{Broken, Rule};
use super::conversation::{Conversation, PeerRecord};
use streaming::StreamRecord;

/// No step of a link's shutdown, and no wait for the second sign of its end, lasts longer.
const LINK_WAIT_MAX: Duration = Duration::from_secs(3);

/// Where a link is, as far as facts and actions said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Opening,
    Open,
    /// A sign of its end was seen at that time.
    Signed(Instant),
    InputClosed(Instant),
    Asked(Instant),
    Killed(Instant),
    Released,
}

#[derive(Debug)]
struct LinkRecord {
    life: Life,
    conversation: Conversation,
}

#[derive(Debug)]
struct OperationRecord {
    stamp: u64,
    is_call: bool,
    listens: bool,
    progress: bool,
    asks: bool,
    stream: Option<StreamRecord>,
    /// How far it is; the last progress.
    reported: Option<f64>,
    ended: bool,
}

/// The judge of a client's actions.
#[derive(Debug)]
pub(super) struct Border {
    peers: Vec<PeerRecord>,
    links: BTreeMap<LinkId, LinkRecord>,
    operations: BTreeMap<OperationId, OperationRecord>,
    /// Stamps that must not be written any more: ended, or refused.
    over: BTreeMap<u64, &'static str>,
    /// Methods under which a stamp was written.
    written: BTreeMap<u64, Vec<String>>,
    /// Whether stamps are in use.
    stamps: bool,
    closed: bool,
}

impl Border {
    pub(super) fn new(peers: &[PeerConfig]) -> Self {
        let record = |peer: &PeerConfig| {
            let may_initialize = peer.allow_legacy && peer.era != EraSetting::Modern;
            PeerRecord::new(may_initialize, peer.limits.line_bytes)
        };
        Self {
            peers: peers.iter().map(record).collect(),
            links: BTreeMap::new(),
            operations: BTreeMap::new(),
            over: BTreeMap::new(),
            written: BTreeMap::new(),
            stamps: false,
            closed: false,
        }
    }

    pub(super) fn use_stamps(&mut self) {
        self.stamps = true;
    }

    /// An operation was accepted.
    pub(super) fn on_accepted(
        &mut self,
        id: OperationId,
        stamp: u64,
        operation: &mcp_proto::Operation,
    ) {
        let record = OperationRecord {
            stamp,
            is_call: matches!(operation.request, Request::CallTool(_)),
            listens: operation.request == Request::Listen,
            progress: operation.options.progress,
            asks: operation.options.ask_retry,
            stream: operation.options.stream.map(StreamRecord::new),
            reported: None,
            ended: false,
        };
        self.operations.insert(id, record);
    }

    /// An operation was refused: nothing of it may ever leave.
    pub(super) fn on_refused(&mut self, stamp: u64) -> Result<(), Broken> {
        self.over.insert(stamp, "refused");
        match self.written.get(&stamp) {
            Some(methods) => Err((Rule::AfterEnd, format!("refused, but sent {methods:?}"))),
            None => Ok(()),
        }
    }

    /// What the client is told, before it is.
    pub(super) fn on_fact(&mut self, fact: &Event<'_>, now: Instant) {
        let link = match fact {
            Event::LinkOpened { link }
            | Event::LinkFailed { link, .. }
            | Event::LinkData { link, .. }
            | Event::LinkWritten { link, .. }
            | Event::LinkWriteFailed { link, .. }
            | Event::LinkEnded { link }
            | Event::LinkExited { link, .. } => *link,
            _ => return,
        };
        let peer = self.peers.get_mut(link.peer.index());
        let (Some(record), Some(peer)) = (self.links.get_mut(&link), peer) else {
            return;
        };
        let listening = matches!(record.life, Life::Opening | Life::Open | Life::Signed(_));
        match fact {
            Event::LinkOpened { .. } if record.life == Life::Opening => record.life = Life::Open,
            Event::LinkFailed { .. } => record.life = Life::Released,
            Event::LinkData { bytes, .. } if listening => record.conversation.on_data(bytes, peer),
            Event::LinkWritten { .. } => record.conversation.on_written(),
            Event::LinkEnded { .. } if listening => record.conversation.on_end(peer),
            _ => {}
        }
        let sign = matches!(
            fact,
            Event::LinkWriteFailed { .. } | Event::LinkEnded { .. } | Event::LinkExited { .. }
        );
        if sign && matches!(record.life, Life::Opening | Life::Open) {
            record.life = Life::Signed(now);
        }
    }

    /// Judges an action.
    pub(super) fn on_action(&mut self, action: &Action, now: Instant) -> Result<(), Broken> {
        if self.closed {
            return Err((Rule::ClosedLast, format!("{action:?} after it")));
        }
        match action {
            Action::OpenLink { link, .. } => self.on_open(*link),
            Action::Write { link, bytes } => self.on_write(*link, bytes),
            Action::CloseInput { link } => self.on_rung(*link, |life| match life {
                Life::Open | Life::Signed(_) => Some(Life::InputClosed(now)),
                _ => None,
            }),
            Action::Terminate { link, force: false } => self.on_rung(*link, |life| match life {
                Life::InputClosed(_) => Some(Life::Asked(now)),
                _ => None,
            }),
            Action::Terminate { link, force: true } => self.on_rung(*link, |life| match life {
                Life::Asked(_) => Some(Life::Killed(now)),
                _ => None,
            }),
            Action::Release { link } => self.on_rung(*link, |life| match life {
                Life::Open | Life::Released => None,
                _ => Some(Life::Released),
            }),
            Action::Deliver(news) => self.on_news(news),
            // Judged where the file is.
            Action::ReadLedger { .. } | Action::AppendLedger { .. } => Ok(()),
            other => Err((Rule::News, format!("unknown action {other:?}"))),
        }
    }

    fn on_open(&mut self, link: LinkId) -> Result<(), Broken> {
        let before = self.links.keys().filter(|other| other.peer == link.peer);
        let expected = before.map(|other| other.serial).max().unwrap_or(0) + 1;
        if link.serial != expected || link.peer.index() >= self.peers.len() {
            return Err((Rule::FreshSerial, format!("{link}, not serial {expected}")));
        }
        let record = LinkRecord {
            life: Life::Opening,
            conversation: Conversation::default(),
        };
        self.links.insert(link, record);
        Ok(())
    }

    fn on_write(&mut self, link: LinkId, bytes: &[u8]) -> Result<(), Broken> {
        let peer = self.peers.get_mut(link.peer.index());
        let (Some(record), Some(peer)) = (self.links.get_mut(&link), peer) else {
            return Err((
                Rule::DeadLink,
                format!("a write to {link}, which never was"),
            ));
        };
        if record.life != Life::Open {
            return Err((
                Rule::DeadLink,
                format!("a write to {link} ({:?})", record.life),
            ));
        }
        if record.conversation.is_blocked() {
            return Err((Rule::WriteCredit, format!("a second write to {link}")));
        }
        for written in record.conversation.on_write(bytes, peer)? {
            if let Some(how) = self.over.get(&written.stamp) {
                let detail = format!("{} of an operation that {how}", written.method);
                return Err((Rule::AfterEnd, detail));
            }
            let methods = self.written.entry(written.stamp).or_default();
            methods.push(written.method);
        }
        Ok(())
    }

    fn on_rung(&mut self, link: LinkId, step: impl Fn(Life) -> Option<Life>) -> Result<(), Broken> {
        let Some(record) = self.links.get_mut(&link) else {
            return Err((Rule::DeadLink, format!("{link} never was")));
        };
        match step(record.life) {
            Some(next) => {
                record.life = next;
                Ok(())
            }
            None => Err((Rule::Ladder, format!("{link} is {:?}", record.life))),
        }
    }

    fn on_news(&mut self, news: &News) -> Result<(), Broken> {
        match news {
            News::Ended(ended) => self.on_ended(ended),
            News::Progress {
                operation,
                progress,
            } => self.on_progress(*operation, progress.progress),
            News::Notified { operation } => match self.operations.get(operation) {
                Some(record) if record.listens && !record.ended => Ok(()),
                _ => Err((Rule::News, format!("{operation} does not listen"))),
            },
            News::StreamUpdate { operation, .. }
            | News::OpenSource { operation, .. }
            | News::CloseSource { operation, .. } => {
                let record = self.operations.get_mut(operation);
                let record = record.filter(|record| !record.ended);
                match record.and_then(|record| record.stream.as_mut()) {
                    Some(stream) => stream.on_news(news),
                    None => Err((Rule::News, format!("{operation} does not stream"))),
                }
            }
            News::RetryQuestion(question) => match self.operations.get(&question.operation) {
                Some(record) if record.asks && !record.ended => Ok(()),
                _ => Err((Rule::News, format!("{question:?}, which nobody wants"))),
            },
            News::PeerChanged { peer } if peer.index() < self.peers.len() => Ok(()),
            News::Log(message) => Err((Rule::News, format!("nobody asked for {message:?}"))),
            News::Closed => self.on_closed(),
            other => Err((Rule::News, format!("{other:?}"))),
        }
    }

    fn on_progress(&mut self, operation: OperationId, progress: f64) -> Result<(), Broken> {
        let record = self.operations.get_mut(&operation);
        let Some(record) = record.filter(|record| record.progress && !record.ended) else {
            let detail = format!("{operation} does not run, or did not ask");
            return Err((Rule::Progress, detail));
        };
        if self.stamps && !self.written.contains_key(&record.stamp) {
            return Err((Rule::Progress, format!("{operation} was not sent yet")));
        }
        if !progress.is_finite() || record.reported.is_some_and(|last| progress <= last) {
            let detail = format!("{operation}: {progress} after {:?}", record.reported);
            return Err((Rule::Progress, detail));
        }
        record.reported = Some(progress);
        Ok(())
    }

    fn on_ended(&mut self, ended: &Ended) -> Result<(), Broken> {
        let operation = ended.operation;
        let Some(record) = self.operations.get_mut(&operation) else {
            return Err((Rule::EndsOnce, format!("{operation} was never accepted")));
        };
        if record.ended {
            return Err((Rule::EndsOnce, format!("{operation} ends a second time")));
        }
        record.ended = true;
        if let Some(stream) = &record.stream {
            stream.on_ended(&ended.outcome)?;
        }
        self.over.insert(record.stamp, "ended");
        if !(self.stamps && record.is_call) {
            return Ok(());
        }
        let written = self.written.get(&record.stamp);
        let called = written.is_some_and(|methods| methods.iter().any(|sent| sent == "tools/call"));
        let (rule, verdict) = match &ended.outcome {
            Outcome::Complete(Reply::Stream(result)) if result.cancelled => return Ok(()),
            Outcome::Complete(_) | Outcome::InputRequired(_) => (Rule::Unasked, Ran::Maybe),
            // The server itself says that it did not carry it out.
            Outcome::Failed(error) if error.kind() == ErrorKind::Rpc => return Ok(()),
            Outcome::Failed(error) => (Rule::Verdict, error.ran),
        };
        if called == (verdict == Ran::Maybe) {
            return Ok(());
        }
        let outcome = super::transcript::outcome(&ended.outcome);
        let sent = if called { "was" } else { "was not" };
        Err((rule, format!("{operation} {sent} written and {outcome}")))
    }

    fn on_closed(&mut self) -> Result<(), Broken> {
        self.closed = true;
        if let Some((link, record)) = self
            .links
            .iter()
            .find(|(_, link)| link.life != Life::Released)
        {
            return Err((Rule::ClosedLast, format!("{link} is {:?}", record.life)));
        }
        match self.operations.iter().find(|(_, record)| !record.ended) {
            Some((operation, _)) => Err((Rule::ClosedLast, format!("{operation} has not ended"))),
            None => Ok(()),
        }
    }

    /// Every wait has a deadline that is not too far off: checked whenever the client has been drained.
    pub(super) fn check_timers(&self, due: Option<Instant>) -> Result<(), Broken> {
        for (link, record) in &self.links {
            let (Life::Signed(since)
            | Life::InputClosed(since)
            | Life::Asked(since)
            | Life::Killed(since)) = record.life
            else {
                continue;
            };
            if due.is_none_or(|due| due > since + LINK_WAIT_MAX) {
                let detail = format!("{link} is {:?}, the next deadline {due:?}", record.life);
                return Err((Rule::Timer, detail));
            }
        }
        Ok(())
    }

    /// The operations that have not ended; those that listen may go on for ever.
    pub(super) fn running(&self) -> impl Iterator<Item = OperationId> {
        let runs = |(id, record): (&OperationId, &OperationRecord)| {
            (!record.ended && !record.listens).then_some(*id)
        };
        self.operations.iter().filter_map(runs)
    }

    /// Whether anything may still be delivered about an operation.
    pub(super) fn has_ended(&self, operation: OperationId) -> bool {
        self.operations
            .get(&operation)
            .is_some_and(|record| record.ended)
    }
}
