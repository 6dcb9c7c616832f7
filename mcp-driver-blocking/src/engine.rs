//! One core, many threads: who polls, who waits, who is woken.
//!
//! Of the threads that wait for something one leads: it sleeps in `poll` for all links, feeds the core and
//! performs its actions, until what it waits for itself is there; then it hands the lead to another waiting
//! thread. So a call that is alone never changes threads. While nobody waits the keeper leads, and any caller
//! may take over from it.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_proto::{
    Action, Ended, Error, Event, Exit, Instant, IoFailure, IoKind, LinkId, LinkTarget, News,
    Operation, OperationId, ProgressUpdate,
};

use crate::Core;
use crate::sys::{self, Fd, Link, Pair, Waker};

/// Whom the news about the client itself are for; the core numbers its operations from 1.
pub(crate) const CLIENT: OperationId = OperationId::new(0);
/// How long nobody must have led before the keeper does. Shorter, and it would get in the way of calls
/// that follow each other; longer, and an idle client would be late with its deadlines.
const PATIENCE: Duration = Duration::from_millis(20);
/// Unread progress reports that are kept per operation; the oldest go first.
const PROGRESS_KEPT: usize = 1024;
/// A pipe's usual capacity: one read then takes all that a process left behind when it ended.
const READ_BYTES: usize = 64 * 1024;

/// How the process of a link ended.
pub(crate) type LinkExit = (LinkId, Exit);

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

/// What all handles of a client share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    keeper: Condvar,
    waker: Arc<Waker>,
    epoch: std::time::Instant,
}

/// Everything that is behind the lock.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) core: Core,
    /// When the lock was taken.
    pub(crate) now: Instant,
    /// One for each operation whose end is awaited.
    pub(crate) slots: BTreeMap<OperationId, Slot>,
    links: BTreeMap<LinkId, Link>,
    streams: BTreeMap<String, Pair>,
    waker: Arc<Waker>,
    exits: (Sender<LinkExit>, Receiver<LinkExit>),
    buffer: Vec<u8>,
    lead: Lead,
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

/// What was delivered for one operation, and who waits for it.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    pub(crate) ended: Option<Box<Ended>>,
    pub(crate) progress: VecDeque<ProgressUpdate>,
    pub(crate) notified: bool,
    /// The end was delivered (and perhaps taken).
    pub(crate) over: bool,
    waiting: usize,
    /// Made when somebody follows; a call that leads needs none.
    bell: Option<Arc<Condvar>>,
}

impl Shared {
    /// `core` is made with the time at which it comes into being.
    pub(crate) fn new(
        core: impl FnOnce(Instant) -> Core,
        streams: BTreeMap<String, Pair>,
    ) -> io::Result<Self> {
        let waker = Arc::new(Waker::new()?);
        let state = State {
            core: core(Instant::ZERO),
            now: Instant::ZERO,
            slots: BTreeMap::new(),
            links: BTreeMap::new(),
            streams,
            waker: Arc::clone(&waker),
            exits: mpsc::channel(),
            buffer: vec![0; READ_BYTES],
            lead: Lead::default(),
        };
        let (state, keeper) = (Mutex::new(state), Condvar::new());
        let epoch = std::time::Instant::now();
        Ok(Self {
            state,
            keeper,
            waker,
            epoch,
        })
    }

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
    pub(crate) fn run(&self, operation: Operation) -> Result<Option<Ended>, Error> {
        let mut state = self.lock();
        let id = state.submit(operation)?;
        state.perform();
        let ended = self.wait(state, id, None, |state| {
            let ended = state.slots.get_mut(&id)?.ended.take()?;
            state.slots.remove(&id);
            Some(*ended)
        });
        Ok(ended)
    }

    /// Waits in the name of `id` for what `take` finds, as leader if nobody else leads; `None` when it
    /// takes longer than `longest`.
    pub(crate) fn wait<'s, T>(
        &'s self,
        mut state: MutexGuard<'s, State>,
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
            state.lead.keeper_waits = state.lead.by != Leader::Nobody;
            state = if state.lead.keeper_waits {
                self.keeper
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner)
            } else {
                let waited = self.keeper.wait_timeout(state, PATIENCE);
                waited.unwrap_or_else(PoisonError::into_inner).0
            };
            if state.lead.by != Leader::Nobody || state.lead.turns != turns {
                continue;
            }
            state.lead.by = Leader::Keeper;
            while !state.lead.down && state.lead.by == Leader::Keeper {
                state = self.lead(state, Leader::Keeper, None);
            }
        }
    }

    /// Lets go of all links and sends the keeper home.
    pub(crate) fn shut_down(&self) {
        let mut state = self.lock();
        state.lead.down = true;
        state.links.clear();
        state.streams.clear();
        state.disturb();
        self.keeper.notify_all();
    }

    /// Waits for killed processes to be gone; one that takes longer than this hangs in the kernel.
    pub(crate) fn wait_until_reaped(&self, longest: Duration) {
        let (_, exits) = std::mem::replace(&mut self.lock().exits, mpsc::channel());
        while exits.recv_timeout(longest).is_ok() {}
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.now = Instant::after_epoch(self.epoch.elapsed());
        state
    }

    /// One turn of the leader: sleeps until something happens, and tells the core.
    fn lead<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        by: Leader,
        until: Option<Instant>,
    ) -> MutexGuard<'s, State> {
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
        // After the reads: what a process said before it ended comes before its end.
        if raised {
            self.waker.lower();
            while let Ok((link, exit)) = state.exits.1.try_recv() {
                state.report(Event::LinkExited { link, exit });
            }
        }
        if state
            .core
            .poll_timeout()
            .is_some_and(|due| due <= state.now)
        {
            state.report(Event::TimePassed);
        }
        state
    }

    /// Sleeps until the leader has something for `id`, or leaves.
    fn follow<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        id: OperationId,
        until: Option<Instant>,
    ) -> MutexGuard<'s, State> {
        state.replan();
        let slot = state.slots.entry(id).or_default();
        slot.waiting += 1;
        let bell = Arc::clone(slot.bell.get_or_insert_default());
        let timeout = until.map_or(Duration::MAX, |until| until.since(state.now));
        let waited = bell.wait_timeout(state, timeout);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.now = Instant::after_epoch(self.epoch.elapsed());
        state.slots.entry(id).and_modify(|slot| slot.waiting -= 1);
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
        let mut slots = state.slots.values().rev();
        match slots.find(|slot| slot.waiting > 0 && !slot.over) {
            Some(slot) => slot.bell.iter().for_each(|bell| bell.notify_all()),
            None if std::mem::take(&mut state.lead.keeper_waits) => self.keeper.notify_all(),
            None => {}
        }
    }
}

impl State {
    /// Accepts an operation and makes room for what will be delivered for it.
    pub(crate) fn submit(&mut self, operation: Operation) -> Result<OperationId, Error> {
        let id = self.core.submit(operation, self.now)?;
        self.slots.insert(id, Slot::default());
        Ok(id)
    }

    #[cfg(test)]
    pub(crate) fn leader_sleeps_for_ever(&self) -> bool {
        self.lead.asleep == Some(None)
    }

    fn report(&mut self, event: Event<'_>) {
        self.core.handle(event, self.now);
        self.perform();
    }

    /// Does what the core wants.
    fn perform(&mut self) {
        while let Some(action) = self.core.poll_action() {
            match action {
                Action::OpenLink { link, target } => self.open(link, &target),
                Action::Write { link, bytes } => {
                    if let Some(open) = self.links.get_mut(&link) {
                        let written = open.write(bytes);
                        self.written(link, written);
                    }
                }
                Action::CloseInput { link } => {
                    if let Some(open) = self.links.get_mut(&link) {
                        open.close_input();
                        self.disturb();
                    }
                }
                Action::Terminate { link, force } => {
                    if let Some(open) = self.links.get(&link) {
                        open.terminate(force);
                    }
                }
                Action::Release { link } => {
                    self.links.remove(&link);
                    self.disturb();
                }
                Action::Deliver(news) => self.deliver(news),
                // A kind that this driver does not know; the core gives up waiting for it in time.
                _ => {}
            }
        }
    }

    fn open(&mut self, link: LinkId, target: &LinkTarget) {
        let opened = match target {
            LinkTarget::Process(plan) => Link::spawn(link, plan, &self.exits.0, &self.waker),
            LinkTarget::Stream { name } => match self.streams.remove(name) {
                Some(pair) => Link::adopt(pair),
                None => Err(io::Error::new(
                    io::ErrorKind::NotFound,
                    "the host supplied no stream for this server, or it was used up",
                )),
            },
            _ => Err(io::ErrorKind::Unsupported.into()),
        };
        let event = match opened {
            Ok(open) => {
                self.links.insert(link, open);
                self.disturb();
                Event::LinkOpened { link }
            }
            Err(error) => Event::LinkFailed {
                link,
                failure: failure(&error),
            },
        };
        self.core.handle(event, self.now);
    }

    fn written(&mut self, link: LinkId, written: Option<io::Result<Vec<u8>>>) {
        let event = match written {
            None => return self.disturb(),
            Some(Ok(spent)) => Event::LinkWritten { link, spent },
            Some(Err(error)) => Event::LinkWriteFailed {
                link,
                failure: failure(&error),
            },
        };
        self.core.handle(event, self.now);
    }

    /// Moves the bytes that `poll` said can be moved.
    fn attend(&mut self, link: LinkId, half: Half) {
        let Some(open) = self.links.get_mut(&link) else {
            return;
        };
        if half == Half::Input {
            let written = open.flush();
            self.written(link, written);
            return self.perform();
        }
        let event = match (open.read(half, &mut self.buffer), half) {
            (Some([]), _) | (None, Half::Errors) => return,
            (Some(bytes), Half::Errors) => Event::LinkStderr { link, bytes },
            (Some(bytes), _) => Event::LinkData { link, bytes },
            (None, _) => Event::LinkEnded { link },
        };
        self.core.handle(event, self.now);
        self.perform();
    }

    fn deliver(&mut self, news: News) {
        let id = match &news {
            News::Ended(ended) => ended.operation,
            News::Progress { operation, .. } | News::Notified { operation } => *operation,
            _ => CLIENT,
        };
        let Some(slot) = self.slots.get_mut(&id) else {
            return self.disturb();
        };
        match news {
            News::Ended(ended) => (slot.ended, slot.over) = (Some(ended), true),
            News::Progress { progress, .. } => {
                slot.progress.push_back(progress);
                let surplus = slot.progress.len().saturating_sub(PROGRESS_KEPT);
                slot.progress.drain(..surplus);
            }
            _ => slot.notified = true,
        }
        slot.bell.iter().for_each(|bell| bell.notify_all());
        // Perhaps it is the leader's, which sleeps while this thread delivers.
        self.disturb();
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

/// The failure in the core's terms.
fn failure(error: &io::Error) -> IoFailure {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => IoKind::NotFound,
        io::ErrorKind::PermissionDenied => IoKind::PermissionDenied,
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => IoKind::BrokenPipe,
        _ => IoKind::Other,
    };
    IoFailure {
        kind,
        detail: error.to_string(),
    }
}
