//! One core, many threads: who polls, who waits, who is woken.
//!
//! Of the threads that wait for something one leads: it sleeps in `poll` for all links, feeds the core and
//! performs its actions, until what it waits for itself is there; then it hands the lead to another waiting
//! thread. So a call that is alone never changes threads. While nobody waits the keeper leads, and any caller
//! may take over from it.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use mcp_proto::error::Cause;
use mcp_proto::{
    Action, Ended, Error, Event, Exit, Inbox, Instant, IoFailure, KILL_GRACE, LinkId, LinkTarget,
    Operation, OperationId,
};

use crate::ledger;
use crate::sys::{self, Fd, Link, Pair, Waker};

/// In whose name those wait who wait for the client itself; the core numbers its operations from 1.
const CLIENT: OperationId = OperationId::new(0);
/// How long nobody must have led before the keeper does: about threads, and nothing that a server notices. Shorter, and it would get in the way of calls
/// that follow each other; longer, and an idle client would be late with its deadlines.
const PATIENCE: Duration = Duration::from_millis(20);
/// A pipe's usual capacity: one read then takes all that a process left behind when it ended.
const READ_BYTES: usize = 64 * 1024;

/// How the process of a link ended.
pub(crate) type LinkExit = (LinkId, Exit);

/// The lock, held.
type Held<'s> = MutexGuard<'s, State>;

/// The three directions of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(not(unix), allow(dead_code))] // nothing opens there
pub(crate) enum Half {
    /// Towards the server.
    Input,
    /// From the server.
    Output,
    /// The server's standard error.
    Errors,
}

/// The share of the application: dropped with the last handle, and everything ends with it.
#[derive(Debug)]
pub(crate) struct Owner(pub(crate) Arc<Shared>);

/// What all handles of a client and its keeper share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    keeper: Condvar,
    /// Held while everything ends, so that nobody believes that it has ended meanwhile.
    ending: Mutex<()>,
    waker: Arc<Waker>,
    epoch: std::time::Instant,
}

/// Everything that is behind the lock.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) core: mcp_proto::Client,
    /// When the lock was taken.
    pub(crate) now: Instant,
    pub(crate) inbox: Inbox<Waiter>,
    /// Who waits for the client itself.
    client: Waiter,
    links: BTreeMap<LinkId, Link>,
    streams: BTreeMap<String, Pair>,
    waker: Arc<Waker>,
    exits: (Sender<LinkExit>, Receiver<LinkExit>),
    /// For the threads that read and write the ledger.
    shared: Weak<Shared>,
    buffer: Vec<u8>,
    lead: Lead,
}

/// Who follows, waiting for one operation.
#[derive(Debug, Default)]
pub(crate) struct Waiter {
    waiting: usize,
    /// Made when somebody follows; a call that leads needs none.
    bell: Option<Arc<Condvar>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Leader {
    #[default]
    Nobody,
    Caller,
    Keeper,
}

/// Who leads, and what the others have to know of it.
#[derive(Debug, Default)]
struct Lead {
    by: Leader,
    /// Until when the leader sleeps in `poll`, if it does (the inner `None` is "for ever").
    asleep: Option<Option<Instant>>,
    /// A caller took over while the keeper slept in `poll`, where it still is.
    stranded: bool,
    /// How often somebody led.
    turns: u64,
    /// The keeper waits for the leader to leave, too.
    keeper_waits: bool,
    /// No handle is left, and the keeper has to go.
    down: bool,
}

impl Owner {
    /// Starts a client, which begins to connect, and its keeper.
    pub(crate) fn start(
        core: mcp_proto::Client,
        streams: BTreeMap<String, Pair>,
    ) -> io::Result<Self> {
        let waker = Arc::new(Waker::new()?);
        let exits = mpsc::channel();
        let gone = exits.0.clone();
        let state = |shared: &Weak<Shared>| State {
            core,
            now: Instant::ZERO,
            inbox: Inbox::default(),
            client: Waiter::default(),
            links: BTreeMap::new(),
            streams,
            waker: Arc::clone(&waker),
            exits,
            shared: shared.clone(),
            buffer: vec![0; READ_BYTES],
            lead: Lead::default(),
        };
        let owner = Self(Arc::new_cyclic(|shared| Shared {
            state: Mutex::new(state(shared)),
            keeper: Condvar::new(),
            ending: Mutex::default(),
            waker: Arc::clone(&waker),
            epoch: std::time::Instant::now(),
        }));
        let shared = Arc::clone(&owner.0);
        let thread = thread::Builder::new().name("mcp-keeper".to_owned());
        thread.spawn(move || {
            shared.keep();
            drop((shared, gone));
        })?;
        owner.0.with(|state| state.core.connect(state.now));
        Ok(owner)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Shared {
    /// Looks at the state, or gives the core a command; what the core wants then is done.
    pub(crate) fn with<T>(&self, command: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let result = command(&mut state);
        state.perform();
        state.replan();
        result
    }

    /// Submits and waits for the end, under one lock: a deadline that only the caller will watch does
    /// not wake the keeper.
    pub(crate) fn run(&self, operation: Operation) -> Result<Ended, Error> {
        let mut state = self.lock();
        let (inbox, core, now) = state.parts();
        let id = inbox.submit(core, operation, now)?;
        state.perform();
        let ended = self.wait(state, id, None, |state| {
            let (inbox, core, now) = state.parts();
            let ended = inbox.take_ended(id)?;
            inbox.release(core, id, now);
            Some(*ended)
        });
        // Nobody else knows the number, so nobody else can have taken the end.
        ended.ok_or_else(|| Error::general(Cause::Cancelled))
    }

    /// Waits in the name of `id` for what `take` finds, as leader if nobody else leads; `None` when it
    /// takes longer than `longest`.
    pub(crate) fn wait<'s, T>(
        &'s self,
        mut state: Held<'s>,
        id: OperationId,
        longest: Option<Duration>,
        mut take: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        let until = longest.map(|longest| state.now + longest);
        let (mut leads, mut tried) = (false, false);
        let found = loop {
            let found = take(&mut state);
            let late = until.is_some_and(|until| tried && until <= state.now);
            if found.is_some() || late {
                break found;
            }
            tried = true;
            leads = leads || state.take_over();
            state = if leads {
                self.lead(state, Leader::Caller, until)
            } else {
                self.follow(state, id, until)
            };
        };
        state.replan();
        self.leave(&mut state, leads);
        found
    }

    /// The keeper's life: it leads while no caller does.
    pub(crate) fn keep(&self) {
        let mut state = self.lock();
        while !state.lead.down {
            let turns = state.lead.turns;
            let led = state.lead.by != Leader::Nobody;
            state.lead.keeper_waits = led;
            let patience = if led { Duration::MAX } else { PATIENCE };
            state = self.sleep(&self.keeper, state, patience);
            if state.lead.by == Leader::Nobody && state.lead.turns == turns {
                state.lead.by = Leader::Keeper;
            }
            while !state.lead.down && state.lead.by == Leader::Keeper {
                state = self.lead(state, Leader::Keeper, None);
            }
        }
    }

    /// Ends everything in the order and time that the core sets.
    pub(crate) fn close(&self) {
        self.with(|state| state.core.close(state.now));
        let closed = |state: &mut State| state.core.is_closed().then_some(());
        self.wait(self.lock(), CLIENT, None, closed);
        self.end();
    }

    /// Lets go of all links and waits until their processes and the keeper are gone. A killed process
    /// that takes longer than the limit hangs in the kernel.
    fn end(&self) {
        let _ending = self.ending.lock();
        let mut state = self.lock();
        state.lead.down = true;
        state.links.clear();
        state.streams.clear();
        state.disturb();
        self.keeper.notify_all();
        let (_, exits) = std::mem::replace(&mut state.exits, mpsc::channel());
        drop(state);
        while exits.recv_timeout(KILL_GRACE).is_ok() {}
    }

    pub(crate) fn lock(&self) -> Held<'_> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.now = Instant::after_epoch(self.epoch.elapsed());
        state
    }

    /// One turn of the leader: sleeps until something happens, and tells the core.
    fn lead<'s>(&'s self, mut state: Held<'s>, by: Leader, until: Option<Instant>) -> Held<'s> {
        let watches = state.watches();
        let until = state.core.poll_timeout().into_iter().chain(until).min();
        let timeout = until.map(|until| until.since(state.now));
        state.lead.asleep = Some(until);
        drop(state);
        let (raised, ready) = sys::poll(&self.waker, &watches, timeout);
        let mut state = self.lock();
        if by == Leader::Keeper && std::mem::take(&mut state.lead.stranded) {
            return state;
        }
        state.lead.asleep = None;
        for ((link, half, _), _) in watches.iter().zip(ready).filter(|(_, ready)| *ready) {
            state.attend(*link, *half);
        }
        // After the reads, so that of what is ready at once the end comes last.
        if raised {
            self.waker.lower();
            while let Ok((link, exit)) = state.exits.1.try_recv() {
                state.report(Event::LinkExited { link, exit });
            }
        }
        let due = state.core.poll_timeout();
        if due.is_some_and(|due| due <= state.now) {
            state.report(Event::TimePassed);
        }
        state.perform();
        state
    }

    /// Sleeps until the leader has something for `id`, or leaves.
    fn follow<'s>(&self, mut state: Held<'s>, id: OperationId, until: Option<Instant>) -> Held<'s> {
        state.replan();
        let waiter = state.waiter(id);
        waiter.waiting += 1;
        let bell = Arc::clone(waiter.bell.get_or_insert_default());
        let timeout = until.map_or(Duration::MAX, |until| until.since(state.now));
        let mut state = self.sleep(&bell, state, timeout);
        let waiter = state.waiter(id);
        waiter.waiting = waiter.waiting.saturating_sub(1);
        state
    }

    fn sleep<'s>(&self, bell: &Condvar, state: Held<'s>, longest: Duration) -> Held<'s> {
        let waited = bell.wait_timeout(state, longest);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.now = Instant::after_epoch(self.epoch.elapsed());
        state
    }

    /// Ends a wait, as leader or follower. If nobody leads then, the youngest operation is to, which
    /// lasts longest; or the keeper.
    fn leave(&self, state: &mut State, led: bool) {
        if led {
            state.lead.by = Leader::Nobody;
            state.lead.turns += 1;
            if state.lead.stranded {
                self.waker.raise();
            }
        }
        if state.lead.by == Leader::Caller {
            return;
        }
        let waiters = state.inbox.open().rev().map(|(_, waiter)| waiter);
        let next = waiters.chain([&state.client]).find(|next| next.waiting > 0);
        match next {
            Some(next) => next.ring(),
            None if std::mem::take(&mut state.lead.keeper_waits) => self.keeper.notify_all(),
            None => {}
        }
    }
}

impl State {
    pub(crate) fn parts(&mut self) -> (&mut Inbox<Waiter>, &mut mcp_proto::Client, Instant) {
        (&mut self.inbox, &mut self.core, self.now)
    }

    fn waiter(&mut self, operation: OperationId) -> &mut Waiter {
        self.inbox.waiter(operation).unwrap_or(&mut self.client)
    }

    /// Whether anybody is left who wants to know.
    fn heard(&mut self, event: Event<'_>) -> bool {
        self.report(event);
        !self.lead.down
    }

    fn report(&mut self, event: Event<'_>) {
        self.core.handle(event, self.now);
    }

    /// Does what the core wants.
    fn perform(&mut self) {
        while let Some(action) = self.core.poll_action() {
            match action {
                Action::OpenLink { link, target } => self.open(link, &target),
                Action::Write { link, bytes } => self.write(link, |open| open.write(bytes)),
                Action::CloseInput { link } => {
                    let open = self.links.get_mut(&link);
                    open.into_iter().for_each(Link::close_input);
                    self.disturb();
                }
                Action::Terminate { link, force } => {
                    let open = self.links.get(&link).into_iter();
                    open.for_each(|open| open.terminate(force));
                }
                Action::Release { link } => {
                    self.links.remove(&link);
                    self.disturb();
                }
                Action::Deliver(news) => {
                    let waiter = self.inbox.deliver(news);
                    waiter.unwrap_or(&mut self.client).ring();
                    // Perhaps it is for the leader, which sleeps while this thread delivers.
                    self.disturb();
                }
                Action::ReadLedger { .. } | Action::AppendLedger { .. } => {
                    let shared = self.shared.clone();
                    let heard = move |fact: Event<'_>| {
                        let shared = shared.upgrade();
                        shared.is_some_and(|shared| shared.with(|state| state.heard(fact)))
                    };
                    ledger::start(action, heard).unwrap_or_else(|failed| self.report(failed));
                }
                _ => {}
            }
        }
    }

    fn open(&mut self, link: LinkId, target: &LinkTarget) {
        let opened = match target {
            LinkTarget::Process(plan) => Link::spawn(link, plan, &self.exits.0, &self.waker),
            LinkTarget::Stream { name } => match self.streams.remove(name) {
                Some(pair) => Link::adopt(pair),
                None => Err(IoFailure::no_stream()),
            },
            _ => Err(io::Error::from(io::ErrorKind::Unsupported).into()),
        };
        let event = match opened.map(|open| self.links.insert(link, open)) {
            Ok(_) => Event::LinkOpened { link },
            Err(failure) => Event::LinkFailed { link, failure },
        };
        self.report(event);
        self.disturb();
    }

    /// Writes, and tells the core what came of it.
    fn write(
        &mut self,
        link: LinkId,
        write: impl FnOnce(&mut Link) -> Option<Result<Vec<u8>, IoFailure>>,
    ) {
        let event = match self.links.get_mut(&link).map(write) {
            None => return,
            Some(None) => return self.disturb(),
            Some(Some(Ok(spent))) => Event::LinkWritten { link, spent },
            Some(Some(Err(failure))) => Event::LinkWriteFailed { link, failure },
        };
        self.report(event);
    }

    /// Moves the bytes that `poll` said can be moved.
    fn attend(&mut self, link: LinkId, half: Half) {
        if half == Half::Input {
            return self.write(link, Link::flush);
        }
        let Some(open) = self.links.get_mut(&link) else {
            return;
        };
        let event = match (open.read(half, &mut self.buffer), half) {
            (Some([]), _) => return,
            (None, Half::Errors) => Event::LinkStderrEnded { link },
            (Some(bytes), Half::Errors) => Event::LinkStderr { link, bytes },
            (Some(bytes), _) => Event::LinkData { link, bytes },
            (None, _) => Event::LinkEnded { link },
        };
        self.core.handle(event, self.now);
    }

    /// Makes a caller the leader, unless another one is. It does not wait for the keeper to wake up.
    fn take_over(&mut self) -> bool {
        if self.lead.by == Leader::Caller {
            return false;
        }
        self.lead.stranded |= self.lead.by == Leader::Keeper;
        self.lead.by = Leader::Caller;
        true
    }

    fn watches(&mut self) -> Vec<(LinkId, Half, Fd)> {
        let mut watches = Vec::with_capacity(3 * self.links.len());
        for (&link, open) in &mut self.links {
            open.reading = self.core.wants_read(link);
            watches.extend(open.watched().map(|(half, fd)| (link, half, fd)));
        }
        watches
    }

    /// Wakes the leader, if it sleeps: what it knows has changed.
    fn disturb(&self) {
        if self.lead.asleep.is_some() {
            self.waker.raise();
        }
    }

    /// Wakes the leader, if it sleeps too long or does not read what it should.
    fn replan(&self) {
        let Some(until) = self.lead.asleep else {
            return;
        };
        let due = self.core.poll_timeout();
        let sooner = due.is_some_and(|due| until.is_none_or(|until| due < until));
        let mut links = self.links.iter();
        if sooner || links.any(|(&link, open)| open.reading != self.core.wants_read(link)) {
            self.waker.raise();
        }
    }
}

impl Waiter {
    fn ring(&self) {
        self.bell.iter().for_each(|bell| bell.notify_all());
    }
}

#[cfg(test)]
mod peek;
