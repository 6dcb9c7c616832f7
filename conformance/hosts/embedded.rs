//! A client for any async runtime: how to embed the core. This file is the host; `link` has the bytes of one
//! process or stream, `ledger` those of the one file.
//!
//! [`mcp_proto::Client`] decides everything; a host moves bytes. What a host owes the core is this:
//!
//! 1. **Perform every [`Action`], in order**, after every command and every fact ([`State::perform`]).
//! 2. **Report what happens** as an [`Event`] with the time it happened: bytes, the end of a stream,
//!    the end of a process, a finished write ([`Link::advance`]).
//! 3. **Report [`Event::TimePassed`]** when [`Client::poll_timeout`] is reached ([`State::keep_time`]).
//! 4. **Do not read** a link while [`Client::wants_read`] says no, and always read standard error.
//! 5. **Keep the promise of `Release`**: pipes closed, process group killed, process reaped.
//!
//! This host has no executor of its own. [`start`] gives a handle for the application and a future that
//! does all the work; spawn the future wherever futures run (async-std, smol, a thread with `block_on`).
//! One lock holds the core and its links, and no wait happens while it is held.

#[path = "ledger.rs"]
mod ledger;
#[path = "link.rs"]
mod link;

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use async_io::Timer;
use mcp_proto::{
    Action, Client, Config, Ended, Error, Event, Identity, Inbox, Instant, IoFailure, LinkId,
    LinkTarget, Notification, Operation, OperationId,
};

use ledger::Ledger;
use link::Link;

/// Room for one read: a full pipe on Linux.
const CHUNK_BYTES: usize = 64 * 1024;

/// Ready streams by the name of their peer.
pub(crate) type Streams = BTreeMap<String, UnixStream>;

/// Starts a client. Nothing moves until the future is polled.
pub(crate) fn start(
    config: Config,
    identity: Identity,
    streams: Streams,
) -> (Host, impl Future<Output = ()> + Send + 'static) {
    let pinned = config.pin(&mut |name| std::env::var(name).ok(), &mut find_program);
    let mut core = Client::new(pinned, identity, Instant::ZERO);
    core.connect(Instant::ZERO);
    let host = Host(Arc::new(Mutex::new(State {
        core,
        inbox: Inbox::default(),
        epoch: std::time::Instant::now(),
        streams,
        links: BTreeMap::new(),
        alarm: (None, Timer::never()),
        chunk: vec![0; CHUNK_BYTES],
        ledger: Ledger::default(),
        driver: None,
        waiting: Vec::new(),
        abandoned: false,
    })));
    let state = Arc::clone(&host.0);
    (host, poll_fn(move |cx| lock(&state).poll(cx)))
}

/// The application's handle. Dropping it without [`Host::close`] kills every process.
pub(crate) struct Host(Arc<Mutex<State>>);

impl Host {
    /// Starts an operation. What is delivered for it waits in the [`Inbox`].
    pub(crate) fn submit(&self, operation: Operation) -> Result<OperationId, Error> {
        self.command(|state, now| state.inbox.submit(&mut state.core, operation, now))
    }

    /// How an operation ended.
    pub(crate) async fn ended(&self, operation: OperationId) -> Ended {
        *self.until(|state| state.inbox.take_ended(operation)).await
    }

    /// Ends everything in bounded time.
    pub(crate) async fn close(&self) {
        self.command(|state, now| state.core.close(now));
        self.until(|state| state.core.is_closed().then_some(()))
            .await;
    }

    /// The next change notifications of a listening operation; none once it has ended.
    pub(crate) async fn notifications(&self, operation: OperationId) -> Vec<Notification> {
        let taken = self.until(|state| {
            let taken = state.core.take_notifications(operation);
            let over = state.inbox.is_over(operation);
            (!taken.is_empty() || over).then_some(taken)
        });
        let taken = taken.await;
        self.command(|_, _| ()); // A link may be read again.
        taken
    }

    /// Does something at the present time and lets the driver perform what follows.
    pub(crate) fn command<T>(&self, command: impl FnOnce(&mut State, Instant) -> T) -> T {
        let mut state = lock(&self.0);
        let now = state.now();
        let outcome = command(&mut state, now);
        state.driver.take().into_iter().for_each(Waker::wake);
        outcome
    }

    /// Waits until something has a value; it is asked again after whatever was delivered.
    pub(crate) async fn until<T>(&self, mut value: impl FnMut(&mut State) -> Option<T>) -> T {
        poll_fn(|cx| {
            let mut state = lock(&self.0);
            match value(&mut state) {
                Some(value) => Poll::Ready(value),
                None => {
                    state.waiting.push(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        state.links.clear();
        state.abandoned = true;
        state.driver.take().into_iter().for_each(Waker::wake);
    }
}

/// Everything behind the lock.
pub(crate) struct State {
    pub(crate) core: Client,
    /// What was delivered for the application's operations.
    pub(crate) inbox: Inbox<()>,
    epoch: std::time::Instant,
    streams: Streams,
    links: BTreeMap<LinkId, Link>,
    /// The core's next deadline, and the timer that is set to it.
    alarm: (Option<Instant>, Timer),
    chunk: Vec<u8>,
    ledger: Ledger,
    driver: Option<Waker>,
    waiting: Vec<Waker>,
    abandoned: bool,
}

impl State {
    /// One round of the driver: perform what is wished, then take in what has happened.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.perform();
        if self.abandoned || self.core.is_closed() {
            return Poll::Ready(());
        }
        self.driver = Some(cx.waker().clone());
        let now = self.now();
        let booked = self.ledger.report(&mut self.core, now, cx);
        if self.move_bytes(cx) | self.keep_time(cx) | booked {
            // Another round, but not at once: others want the lock and the thread as well.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    fn now(&self) -> Instant {
        Instant::after_epoch(self.epoch.elapsed())
    }

    fn perform(&mut self) {
        while let Some(action) = self.core.poll_action() {
            match action {
                Action::OpenLink { link, target } => self.open(link, &target),
                Action::Write { link, bytes } => {
                    self.with(link, |link| link.unsent = Some((bytes, 0)))
                }
                Action::CloseInput { link } => self.with(link, Link::close_input),
                Action::Terminate { link, force } => self.with(link, |link| link.terminate(force)),
                Action::Release { link } => drop(self.links.remove(&link)),
                Action::Deliver(news) => {
                    self.inbox.deliver(news);
                    self.waiting.drain(..).for_each(Waker::wake);
                }
                other => self.ledger.perform(other),
            }
        }
    }

    fn with(&mut self, link: LinkId, act: impl FnOnce(&mut Link)) {
        if let Some(life) = self.links.get_mut(&link) {
            act(life);
        }
    }

    fn open(&mut self, link: LinkId, target: &LinkTarget) {
        let opened = match target {
            LinkTarget::Process(plan) => Link::spawn(plan),
            LinkTarget::Stream { name } => match self.streams.remove(name) {
                Some(stream) => Link::adopt(stream),
                None => Err(io::Error::new(io::ErrorKind::NotFound, "no stream is left")),
            },
            _ => Err(io::ErrorKind::Unsupported.into()),
        };
        let event = match opened {
            Ok(opened) => {
                self.links.insert(link, opened);
                Event::LinkOpened { link }
            }
            Err(error) => Event::LinkFailed {
                link,
                failure: IoFailure::from(&error),
            },
        };
        let now = self.now();
        self.core.handle(event, now);
    }

    /// Moves what can be moved without waiting, on all links; whether anything moved.
    fn move_bytes(&mut self, cx: &mut Context<'_>) -> bool {
        let now = self.now();
        let mut moved = false;
        for (&link, life) in &mut self.links {
            moved |= life.advance(link, &mut self.core, now, &mut self.chunk, cx);
        }
        moved
    }

    /// Sets the timer to the core's deadline; whether that has been reached.
    fn keep_time(&mut self, cx: &mut Context<'_>) -> bool {
        let (set_to, timer) = &mut self.alarm;
        let due = self.core.poll_timeout();
        if *set_to != due {
            *set_to = due;
            *timer = due.map_or_else(Timer::never, |due| {
                Timer::at(self.epoch + due.since(Instant::ZERO))
            });
        }
        let reached = Pin::new(timer).poll(cx).is_ready();
        if reached {
            *set_to = None;
            let now = self.now();
            self.core.handle(Event::TimePassed, now);
        }
        reached
    }
}

/// The absolute path of a file that can be executed.
fn find_program(path: &str) -> Option<String> {
    let path = std::path::absolute(path).ok()?;
    let metadata = path.metadata().ok()?;
    let executable = metadata.is_file() && metadata.permissions().mode() & 0o111 != 0;
    executable.then(|| path.to_str().map(str::to_owned))?
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
