//! Many peers: commands, routing, fan-out.

mod asking;
mod costs;
mod gather;
mod health;
mod ledger;
mod listening;
mod names;
mod news;
mod owner;
mod pinning;
mod streaming;
mod waiting;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::action::Action;
use crate::config::Pinned;
use crate::error::{Cause, Error};
use crate::event::Event;
use crate::ids::{LinkId, OperationId, PeerId};
use crate::operation::{Operation, Outcome, Request};
use crate::peer::{Context, Diagnosis, Identity, Peer};
use crate::report::Report;
use crate::safety::KeyLedger;
use crate::time::Instant;
use crate::unread::Unread;

pub use costs::Costs;
pub use health::DegradedServer;

use costs::Accounts;
use gather::Gathering;
use names::ToolNames;
use waiting::Until;

/// A client of any number of servers.
///
/// Commands are methods; facts go in through [`Client::handle`]; wishes come out of
/// [`Client::poll_action`]. Drain the actions after every command and every fact, and report
/// [`Event::TimePassed`] when [`Client::poll_timeout`] is reached.
#[derive(Debug)]
pub struct Client {
    peers: Vec<Peer>,
    by_name: BTreeMap<String, PeerId>,
    entries: BTreeMap<OperationId, Entry>,
    /// Notifications that were not taken when their listening operation ended; of the latest ones.
    unread: Unread,
    /// The operations that are [`Entry::Unsettled`], oldest first.
    unsettled: Vec<OperationId>,
    /// When the listening operations end whose time is limited, and until when lists are waited for that
    /// hold up others; soonest first.
    deadlines: BTreeSet<(Instant, OperationId)>,
    names: ToolNames,
    accounts: Accounts,
    last_operation: u64,
    next_call: u64,
    keys: KeyLedger,
    phase: Phase,
    now: Instant,
    actions: VecDeque<Action>,
}

/// Where the client is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    Closing,
    Closed,
}

/// Where an operation of the application is.
#[derive(Debug)]
enum Entry {
    /// A peer has it under the same number.
    Direct(PeerId),
    /// It waits; a call has its place in the run already.
    Unsettled {
        operation: Box<Operation>,
        call_index: Option<u64>,
        until: Until,
        context: Context,
    },
    /// Several peers work for it.
    Gathering(Box<Gathering>),
    /// It is a part of that other operation.
    Part { of: OperationId, peer: PeerId },
}

impl Client {
    /// A client of the configured peers, whose commands are resolved ([`Config::pin`](crate::Config::pin)).
    /// Nothing is opened before [`Client::connect`].
    #[must_use]
    pub fn new(config: Pinned, identity: Identity, now: Instant) -> Self {
        let identity = Arc::new(identity);
        let accounts = Accounts::new(&config.harness);
        let run_root = config.harness.run_root_hash;
        let peers: Vec<Peer> = config
            .peers
            .into_iter()
            .zip(0..)
            .map(|(peer, index)| {
                Peer::new(
                    PeerId::new(index),
                    peer,
                    Arc::clone(&identity),
                    run_root.as_deref(),
                )
            })
            .collect();
        Self {
            // The first of a name has it; others fail by themselves.
            by_name: peers
                .iter()
                .rev()
                .map(|peer| (peer.name().to_string(), peer.id()))
                .collect(),
            peers,
            entries: BTreeMap::new(),
            unread: Unread::default(),
            unsettled: Vec::new(),
            deadlines: BTreeSet::new(),
            names: ToolNames::default(),
            accounts,
            last_operation: 0,
            next_call: 0,
            keys: KeyLedger::new(streaming::KEYS_MAX),
            phase: Phase::Open,
            now,
            actions: VecDeque::new(),
        }
    }

    /// Opens the links of all peers at once. Each settles by itself; a failing one harms no other.
    pub fn connect(&mut self, now: Instant) {
        let now = self.clamp(now);
        if self.phase == Phase::Open {
            self.accounts.begin(now, &mut self.actions);
            self.peers.iter_mut().for_each(|peer| peer.connect(now));
            self.drain();
        }
    }

    /// Accepts an operation. It ends with exactly one [`News::Ended`](crate::News::Ended), which may be among the actions
    /// already when this returns.
    ///
    /// # Errors
    /// Nothing was and nothing will be sent: there is no such peer or the parameters are not of the kind
    /// they must be ([`Cause::Usage`]), there is no or more than one such tool, a bound is exceeded, or the peer cannot take operations.
    pub fn submit(&mut self, operation: Operation, now: Instant) -> Result<OperationId, Error> {
        let now = self.clamp(now);
        self.check_open()?;
        crate::operation::check(&operation.request, &operation.options).map_err(Error::general)?;
        let id = self.next_operation();
        let call_index =
            matches!(operation.request, Request::CallTool(_)).then_some(self.next_call);
        self.next_call = self
            .next_call
            .saturating_add(u64::from(call_index.is_some()));
        let held = !self.peers.is_empty() && self.accounts.holds(&operation.request);
        match &operation.peer {
            Some(name) => {
                let peer = self.peer_id(name)?;
                // Behind operations that wait to be routed, so that the order stays what it is: one of
                // them may be for this peer.
                if !held && (self.unsettled.is_empty() || self.peer_is_settled(peer)) {
                    self.hand_over(id, peer, operation, call_index, now)?;
                } else {
                    self.postpone(id, operation, call_index, Until::Settled)?;
                }
            }
            None if !held && self.may_route(&operation.request) => {
                self.route(id, operation, call_index, now)?;
            }
            None => self.postpone(id, operation, call_index, Until::Settled)?,
        }
        // Whoever took it has been drained.
        self.after_news();
        Ok(id)
    }

    /// Cancels an operation from wherever it is (R40). It ends at once with [`Cause::Cancelled`]; one
    /// that has ended is left alone.
    pub fn cancel(&mut self, operation: OperationId, now: Instant) {
        let now = self.clamp(now);
        match self.entries.get(&operation) {
            Some(Entry::Direct(peer)) => {
                let peer = *peer;
                self.with_peer(peer, |peer| peer.cancel(operation, now));
            }
            Some(entry @ (Entry::Unsettled { .. } | Entry::Gathering(_))) => {
                let outcome = streaming::cancelled(entry);
                let unread = self.take_notifications(operation);
                self.drop_parts(operation, now);
                self.unread.keep(operation, unread);
                self.end(operation, outcome);
            }
            Some(Entry::Part { .. }) | None => {}
        }
        self.drain();
    }

    /// Ends everything in bounded time: what is pending ends with [`Cause::ClientClosed`], every link goes down
    /// its shutdown ladder, and [`News::Closed`](crate::News::Closed) is the last action. Repeating it changes nothing.
    pub fn close(&mut self, now: Instant) {
        let now = self.clamp(now);
        if self.phase != Phase::Open {
            return;
        }
        self.phase = Phase::Closing;
        let own: Vec<OperationId> = self
            .entries
            .iter()
            .filter(|(_, entry)| matches!(entry, Entry::Unsettled { .. } | Entry::Gathering(_)))
            .map(|(operation, _)| *operation)
            .collect();
        for operation in own {
            let unread = self.take_notifications(operation);
            self.forget_parts(operation);
            self.unread.keep(operation, unread);
            self.end(
                operation,
                Outcome::Failed(Error::general(Cause::ClientClosed)),
            );
        }
        self.peers.iter_mut().for_each(|peer| peer.close(now));
        self.drain();
    }

    /// Takes in a fact. Infallible: what a server does wrong is data (R1). Any number of facts may go in
    /// before actions are drained; a spurious one changes nothing, and a `now` that goes backwards counts
    /// as no time at all.
    pub fn handle(&mut self, event: Event<'_>, now: Instant) {
        let now = self.clamp(now);
        let link = match &event {
            Event::TimePassed => {
                self.let_time_pass(now);
                // What was waited for until now may have let something begin that has no time left.
                if self.poll_timeout().is_some_and(|due| due <= now) {
                    self.let_time_pass(now);
                }
                return;
            }
            Event::LedgerRead { .. }
            | Event::LedgerEnded
            | Event::LedgerAppended
            | Event::LedgerFailed { .. } => return self.on_ledger(&event),
            Event::LinkOpened { link }
            | Event::LinkFailed { link, .. }
            | Event::LinkData { link, .. }
            | Event::LinkStderr { link, .. }
            | Event::LinkStderrEnded { link }
            | Event::LinkWritten { link, .. }
            | Event::LinkWriteFailed { link, .. }
            | Event::LinkEnded { link }
            | Event::LinkExited { link, .. } => *link,
        };
        match event {
            // Line by line, so that what follows from one has happened before the next: however a stream
            // is cut, the same comes of it.
            Event::LinkData { bytes, .. } => {
                for bytes in Pieces(bytes) {
                    self.tell(link.peer, Event::LinkData { link, bytes }, now);
                }
            }
            event => self.tell(link.peer, event, now),
        }
    }

    fn let_time_pass(&mut self, now: Instant) {
        for peer in &mut self.peers {
            peer.handle(Event::TimePassed, now);
        }
        self.drain_all();
        self.expire_gatherings(now);
        self.accounts.on_time(now);
        self.after_news();
    }

    fn tell(&mut self, peer: PeerId, event: Event<'_>, now: Instant) {
        if let Some(machine) = self.peers.get_mut(peer.index()) {
            let state = |peer: &Peer| (peer.is_settled(), peer.is_listing());
            let before = state(machine);
            machine.handle(event, now);
            let settles = state(machine) != before;
            self.drain_peer(peer);
            // Looking through what waits costs as much as there is; a line alone sets nothing free.
            if settles || self.phase != Phase::Open {
                self.after_news();
            }
        }
    }

    /// The next wish. Perform them in order, and poll until `None` after every command and every fact.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`Event::TimePassed`] is due if nothing happens before. It may be early (the fact is then
    /// without effect), never late, and is `None` when nothing is awaited. It may change with every
    /// command and every fact.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let listening = self.deadlines.first().map(|(deadline, _)| *deadline);
        let peers = self.peers.iter().filter_map(Peer::poll_timeout);
        let ledger = self.accounts.deadline();
        peers.chain(listening).chain(ledger).min()
    }

    /// Whether this link may be read now. While it is `false` the driver just does not read it; ask again
    /// after [`Client::take_notifications`].
    #[must_use]
    pub fn wants_read(&self, link: LinkId) -> bool {
        self.peers
            .get(link.peer.index())
            .is_none_or(|peer| peer.wants_read(link))
    }

    /// Whether every peer is ready or has failed.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.peers.iter().all(Peer::is_settled)
    }

    /// Whether [`News::Closed`](crate::News::Closed) has been queued: no link is left.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// The peers, in the order of the configuration.
    pub fn peers(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter()
    }

    /// The startup report (R111): sorted, without times, ids and secrets.
    #[must_use]
    pub fn report(&self) -> Report {
        let catalog = names::tool_catalog(&self.peers);
        let peers = self.peers.iter().map(|peer| {
            let mut report = peer.report();
            for tool in &mut report.tools {
                if let Some(name) = catalog.canonical(peer.id(), tool) {
                    *tool = name.to_string();
                }
            }
            report
        });
        Report::new(peers.collect(), &catalog)
    }

    /// What is known about each peer, for people.
    #[must_use]
    pub fn diagnoses(&self) -> Vec<Diagnosis> {
        self.peers.iter().map(Peer::diagnosis).collect()
    }

    /// How many bytes are held of what came and of what waits to leave, all peers together; see
    /// [`Peer::buffered_bytes`]. A diagnostic: counting looks at everything.
    #[must_use]
    pub fn buffered_bytes(&self) -> usize {
        let peers = self.peers.iter().map(|peer| peer.buffered_bytes().total());
        peers.fold(self.unread.buffered_bytes(), usize::saturating_add)
    }

    /// The configured name of a peer.
    #[must_use]
    pub fn peer_name(&self, peer: PeerId) -> Option<&str> {
        self.peers.get(peer.index()).map(Peer::name)
    }

    fn check_open(&self) -> Result<(), Error> {
        if self.phase == Phase::Open {
            return Ok(());
        }
        let reason = "the client is closed".into();
        Err(Error::general(Cause::Unavailable { reason }))
    }

    fn clamp(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.now
    }

    fn next_operation(&mut self) -> OperationId {
        self.last_operation = self.last_operation.saturating_add(1);
        OperationId::new(self.last_operation)
    }

    fn peer_id(&self, name: &str) -> Result<PeerId, Error> {
        self.by_name.get(name).copied().ok_or_else(|| {
            let known: Vec<&str> = self.by_name.keys().map(String::as_str).collect();
            let message = alloc::format!(
                "no server is named {name:?}; configured: {}",
                known.join(", ")
            );
            Error::general(Cause::Usage(message))
        })
    }

    fn peer_mut(&mut self, peer: PeerId) -> Option<&mut Peer> {
        self.peers.get_mut(peer.index())
    }

    /// Lets a peer do something and takes what comes of it.
    fn with_peer(&mut self, peer: PeerId, act: impl FnOnce(&mut Peer)) {
        if let Some(machine) = self.peers.get_mut(peer.index()) {
            act(machine);
            self.drain_peer(peer);
        }
    }

    /// Gives an operation to the peer that serves it.
    fn hand_over(
        &mut self,
        id: OperationId,
        peer: PeerId,
        operation: Operation,
        call_index: Option<u64>,
        now: Instant,
    ) -> Result<(), Error> {
        self.claim_key(peer, &operation)?;
        let Some(machine) = self.peers.get_mut(peer.index()) else {
            return Ok(());
        };
        self.accounts
            .admit(id, machine.config(), &operation, call_index)?;
        machine
            .submit(id, operation.request, operation.options, call_index, now)
            .inspect_err(|_| self.accounts.forget(id))?;
        self.entries.insert(id, Entry::Direct(peer));
        self.drain_peer(peer);
        Ok(())
    }
}

/// The bytes up to and with each newline, and what is left.
struct Pieces<'a>(&'a [u8]);

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', self.0).map_or(self.0.len(), |at| at.saturating_add(1));
        let (piece, rest) = self.0.split_at(end.min(self.0.len()));
        self.0 = rest;
        Some(piece)
    }
}
