//! The border: every action is judged before it takes effect.

mod calls;
mod ending;
mod streaming;

use std::collections::{BTreeMap, BTreeSet};

use mcp_proto::negotiation::EraSetting;
use mcp_proto::types::InputRequired;
use mcp_proto::{
    Action, Config, Duration, Event, Instant, LinkId, News, Operation, OperationId, PeerConfig,
    Question, Request,
};

use super::breach::{Broken, Rule};
use super::consent::Consent;
use super::conversation::{Conversation, PeerRecord};
use super::duties::{Owed, Starts};
use super::held::Bounds;
use super::money::Books;
use super::output::Outputs;
use streaming::StreamRecord;

/// No step of a link's shutdown, and no wait for the second sign of its end, lasts longer.
const LINK_WAIT_MAX: Duration = Duration::from_secs(3);

/// Where a link is, as far as facts and actions said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
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
pub(super) struct LinkRecord {
    pub(super) life: Life,
    pub(super) conversation: Conversation,
}

#[derive(Debug)]
pub(super) struct OperationRecord {
    pub(super) stamp: u64,
    is_call: bool,
    listens: bool,
    progress: bool,
    asks: bool,
    stream: Option<StreamRecord>,
    pub(super) interactive: bool,
    /// Its call may run twice: the operator or a key says so.
    repeatable: bool,
    /// How often the application has said that it may, and what it is asked about that.
    permits: u32,
    question: Option<Question>,
    /// The application's idempotency key.
    key: Option<String>,
    /// It takes up what an earlier operation has begun, under the same stamp.
    resumes: bool,
    /// How far it is; the last progress.
    reported: Option<f64>,
    /// What the application is asked, and whether it said that it will not answer.
    pub(super) asked: Option<(Question, InputRequired)>,
    pub(super) finished: bool,
    pub(super) ended: bool,
}

/// The judge of a client's actions.
#[derive(Debug)]
pub(super) struct Border {
    peers: Vec<PeerRecord>,
    pub(super) bounds: Vec<Bounds>,
    pub(super) links: BTreeMap<LinkId, LinkRecord>,
    pub(super) operations: BTreeMap<OperationId, OperationRecord>,
    /// Stamps that must not be written any more: ended, or refused.
    over: BTreeMap<u64, &'static str>,
    /// Methods under which a stamp was written.
    pub(super) written: BTreeMap<u64, Vec<String>>,
    /// The last request for the call of a stamp: where it went, and its id.
    pub(super) calls: BTreeMap<u64, (LinkId, u64)>,
    pub(super) owed: Owed,
    starts: Vec<Starts>,
    /// What may be called twice, by peer, and whether keys travel.
    idempotent: Vec<(BTreeSet<String>, bool)>,
    /// The key in the first request for the call of a stamp.
    keys: BTreeMap<u64, Option<String>>,
    pub(super) books: Books,
    pub(super) consent: Consent,
    pub(super) outputs: Outputs,
    /// Whether stamps are in use.
    pub(super) stamps: bool,
    /// Whether servers are asked for log messages.
    logs: bool,
    /// The longest text that an operation gives the client to send.
    pub(super) longest_request: usize,
    /// Wake-ups in a row of which nothing came.
    pub(super) idle_wakes: usize,
    closed: bool,
}

impl Border {
    pub(super) fn new(config: &Config, logs: bool) -> Self {
        let peers = &config.peers;
        let record = |peer: &PeerConfig| {
            let may_initialize = peer.allow_legacy && peer.era != EraSetting::Modern;
            let key_name = peer.idempotency_meta_key.clone();
            PeerRecord::new(may_initialize, peer.limits.line_bytes, key_name)
        };
        Self {
            peers: peers.iter().map(record).collect(),
            bounds: peers
                .iter()
                .map(|peer| Bounds::new(peer.limits.clone()))
                .collect(),
            links: BTreeMap::new(),
            operations: BTreeMap::new(),
            over: BTreeMap::new(),
            written: BTreeMap::new(),
            calls: BTreeMap::new(),
            owed: Owed::new(),
            starts: peers.iter().map(Starts::new).collect(),
            idempotent: peers
                .iter()
                .map(|peer| {
                    let keys_travel = peer.idempotency_meta_key.is_some();
                    (peer.idempotent_tools.clone(), keys_travel)
                })
                .collect(),
            keys: BTreeMap::new(),
            books: Books::new(config),
            consent: Consent::new(config),
            outputs: Outputs::new(config),
            stamps: false,
            logs,
            longest_request: 0,
            idle_wakes: 0,
            closed: false,
        }
    }

    pub(super) fn use_stamps(&mut self) {
        self.stamps = true;
    }

    /// An operation was accepted.
    pub(super) fn on_accepted(&mut self, id: OperationId, stamp: u64, operation: &Operation) {
        let options = &operation.options;
        let resumes = matches!(operation.request, Request::Resume { .. });
        self.books.on_accepted(id, operation);
        self.consent.on_wanted(stamp);
        self.outputs.on_accepted(id, operation);
        let text_max = self.bounds.iter().map(Bounds::line_bytes).max();
        let text_max = text_max.unwrap_or(0);
        let record = OperationRecord {
            stamp,
            is_call: matches!(operation.request, Request::CallTool(_)),
            listens: operation.request == Request::Listen,
            asks: options.ask_retry,
            stream: options
                .stream
                .map(|streaming| StreamRecord::new(streaming, text_max)),
            // A continuation remembers whether progress was asked for.
            progress: options.progress || resumes,
            interactive: options.interactive,
            repeatable: resumes || self.may_run_twice(operation),
            permits: 0,
            question: None,
            key: options.idempotency_key.clone(),
            resumes,
            reported: None,
            asked: None,
            finished: false,
            ended: false,
        };
        if resumes {
            self.over.remove(&stamp);
        }
        self.operations.insert(id, record);
        // Generous: an operation in text holds all that it gives to be sent.
        self.longest_request = self.longest_request.max(format!("{operation:?}").len());
    }

    /// An operation was refused: nothing of it may ever leave.
    pub(super) fn on_refused(&mut self, stamp: u64, resumes: bool) -> Result<(), Broken> {
        if resumes {
            return Ok(());
        }
        self.over.insert(stamp, "refused");
        match self.written.get(&stamp) {
            Some(methods) => Err((Rule::AfterEnd, format!("refused, but sent {methods:?}"))),
            None => Ok(()),
        }
    }

    /// What the client is told, before it is.
    pub(super) fn on_fact(&mut self, fact: &Event<'_>, now: Instant) {
        if !matches!(fact, Event::TimePassed) {
            self.idle_wakes = 0;
        }
        self.books.on_fact(fact, now);
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
        if let Event::LinkData { bytes, .. } = fact {
            self.on_read(link, bytes.len());
        }
        let peer = self.peers.get_mut(link.peer.index());
        let (Some(record), Some(peer)) = (self.links.get_mut(&link), peer) else {
            return;
        };
        let listening = matches!(record.life, Life::Opening | Life::Open | Life::Signed(_));
        match fact {
            Event::LinkOpened { .. } if record.life == Life::Opening => record.life = Life::Open,
            Event::LinkFailed { .. } => record.life = Life::Released,
            Event::LinkData { bytes, .. } if listening => {
                record.conversation.on_data(bytes, peer);
                for tools in record.conversation.take_listed() {
                    self.outputs.on_listed(link.peer.index(), &tools);
                    self.consent.on_listed(link.peer.index());
                }
            }
            Event::LinkWritten { .. } => {
                record.conversation.on_written();
                self.consent.on_credit(link);
            }
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
            Action::OpenLink { link, .. } => self.on_open(*link, now),
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
            Action::ReadLedger { .. } => {
                self.books.on_ledger_wanted(now);
                Ok(())
            }
            Action::AppendLedger { .. } => Ok(()),
            other => Err((Rule::News, format!("unknown action {other:?}"))),
        }
    }

    fn on_open(&mut self, link: LinkId, now: Instant) -> Result<(), Broken> {
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
        match self.starts.get_mut(link.peer.index()) {
            Some(starts) => starts.on_open(now),
            None => Ok(()),
        }
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
        self.consent.on_write(link, bytes.len());
        for written in record.conversation.on_write(bytes, peer)? {
            self.on_written(link, &written)?;
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
            | News::CloseSource { operation, .. } => self.on_stream_news(*operation, news),
            News::RetryQuestion(question) => match self.operations.get_mut(&question.operation) {
                Some(record) if record.asks && !record.ended => {
                    record.question = Some(question.question);
                    Ok(())
                }
                _ => Err((Rule::News, format!("{question:?}, which nobody wants"))),
            },
            News::PeerChanged { peer } if peer.index() < self.peers.len() => Ok(()),
            News::InputNeeded {
                operation,
                question,
                input,
            } => self.on_asked(*operation, *question, input),
            News::InputWithdrawn {
                operation,
                question,
            } => self.on_withdrawn(*operation, *question),
            News::Log(_) if self.logs => Ok(()),
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

    /// The client has been drained: what it does from now on, it does in the knowledge of all facts.
    pub(super) fn on_drained(&mut self) {
        for link in self.links.values_mut() {
            link.conversation.settle();
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

    /// The operations that have not ended; those that listen, and those about which the application is
    /// asked, may go on for ever.
    pub(super) fn running(&self) -> impl Iterator<Item = OperationId> {
        let runs = |(id, record): (&OperationId, &OperationRecord)| {
            (!record.ended && !record.listens && record.asked.is_none()).then_some(*id)
        };
        self.operations.iter().filter_map(runs)
    }

    /// How many operations have not ended.
    pub(super) fn pending(&self) -> usize {
        let open = self.operations.values().filter(|record| !record.ended);
        open.count()
    }

    /// How many operations listen, and how many did.
    pub(super) fn listeners(&self) -> (usize, usize) {
        let all = self.operations.values().filter(|record| record.listens);
        all.fold((0, 0), |(listening, ended), record| match record.ended {
            true => (listening, ended + 1),
            false => (listening + 1, ended),
        })
    }

    /// Whether anything may still be delivered about an operation.
    pub(super) fn has_ended(&self, operation: OperationId) -> bool {
        self.operations
            .get(&operation)
            .is_some_and(|record| record.ended)
    }
}
