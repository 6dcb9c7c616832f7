//! A client for any async runtime, in one file: how to embed the core.
//!
//! [`mcp_proto::Client`] decides everything; a host moves bytes. What a host owes the core is this:
//!
//! 1. **Perform every [`Action`], in order**, after every command and every fact ([`State::perform`]).
//! 2. **Report what happens** as an [`Event`] with the time it happened: bytes, the end of a stream,
//!    the end of a process, a finished write ([`State::move_bytes`]).
//! 3. **Report [`Event::TimePassed`]** when [`Client::poll_timeout`] is reached ([`State::keep_time`]).
//! 4. **Do not read** a link while [`Client::wants_read`] says no, and always read standard error.
//! 5. **Keep the promise of `Release`**: pipes closed, process group killed, process reaped.
//!
//! This host has no executor of its own. [`start`] gives a handle for the application and a future that
//! does all the work; spawn the future wherever futures run (async-std, smol, a thread with `block_on`).
//! One lock holds the core and its links, and no wait happens while it is held.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use async_io::{Async, Timer};
use futures_lite::{AsyncRead, AsyncWrite};
use mcp_proto::config::{SpawnPlan, Templated};
use mcp_proto::continuation::StreamUpdate;
use mcp_proto::cost::LedgerLine;
use mcp_proto::{
    Action, Client, Config, Ended, Error, Event, Exit, Identity, Instant, IoFailure, LinkId,
    LinkTarget, News, Notification, Operation, OperationId, ProgressUpdate,
};
use rustix::process::{Pid, Signal, kill_process_group};

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
        epoch: std::time::Instant::now(),
        streams,
        links: BTreeMap::new(),
        alarm: (None, Timer::never()),
        chunk: vec![0; CHUNK_BYTES],
        ended: BTreeMap::new(),
        progress: BTreeMap::new(),
        texts: BTreeMap::new(),
        books: Arc::default(),
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
    /// Starts an operation; its end is kept until [`Host::ended`] fetches it.
    pub(crate) fn submit(&self, operation: Operation) -> Result<OperationId, Error> {
        self.command(|state, now| {
            let id = state.core.submit(operation, now)?;
            state.ended.insert(id, None);
            Ok(id)
        })
    }

    /// How an operation ended.
    pub(crate) async fn ended(&self, operation: OperationId) -> Ended {
        let taken = |state: &mut State| state.ended.get_mut(&operation).and_then(Option::take);
        let ended = self.until(taken).await;
        self.command(|state, _| state.ended.remove(&operation));
        ended
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
            let listens = matches!(state.ended.get(&operation), Some(None));
            (!taken.is_empty() || !listens).then_some(taken)
        });
        let taken = taken.await;
        self.command(|_, _| ()); // A link may be read again.
        taken
    }

    /// Takes the progress reports of an operation that came so far.
    pub(crate) fn progress(&self, operation: OperationId) -> Vec<ProgressUpdate> {
        lock(&self.0)
            .progress
            .remove(&operation)
            .unwrap_or_default()
    }

    /// Takes the text that the updates of a streamed call gave so far.
    pub(crate) fn text(&self, operation: OperationId) -> String {
        lock(&self.0).texts.remove(&operation).unwrap_or_default()
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
    epoch: std::time::Instant,
    streams: Streams,
    links: BTreeMap<LinkId, Link>,
    /// The core's next deadline, and the timer that is set to it.
    alarm: (Option<Instant>, Timer),
    chunk: Vec<u8>,
    /// Operations whose end was not fetched, with their ends once they have come.
    ended: BTreeMap<OperationId, Option<Ended>>,
    progress: BTreeMap<OperationId, Vec<ProgressUpdate>>,
    /// The texts of streamed calls.
    texts: BTreeMap<OperationId, String>,
    /// What came of jobs with the ledger's file, and whom to wake then.
    books: Arc<Mutex<Books>>,
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
        if self.move_bytes(cx) | self.keep_time(cx) | self.read_books(cx) {
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
                Action::ReadLedger { path, .. } => self.keep_books(move || read_ledger(&path)),
                Action::AppendLedger { path, line } => {
                    self.keep_books(move || append_ledger(&path, &line));
                }
                Action::Deliver(news) => self.deliver(news),
                _ => {} // A later version's wish: it is as if it failed.
            }
        }
    }

    /// Does something with the ledger's file on a thread of its own, and wakes the driver for what came of
    /// it.
    fn keep_books(&self, job: impl FnOnce() -> io::Result<Booked> + Send + 'static) {
        let books = Arc::clone(&self.books);
        std::thread::spawn(move || {
            let done = job();
            let mut books = books.lock().unwrap_or_else(PoisonError::into_inner);
            books.0.push(done);
            books.1.take().into_iter().for_each(Waker::wake);
        });
    }

    /// Reports what came of it; whether anything did.
    fn read_books(&mut self, cx: &Context<'_>) -> bool {
        let now = self.now();
        let mut books = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        books.1 = Some(cx.waker().clone());
        let facts = std::mem::take(&mut books.0);
        drop(books);
        for fact in &facts {
            match fact {
                Ok(Booked::Read(bytes)) => {
                    self.core.handle(Event::LedgerRead { bytes }, now);
                    self.core.handle(Event::LedgerEnded, now);
                }
                Ok(Booked::Appended) => self.core.handle(Event::LedgerAppended, now),
                Err(error) => {
                    let failure = IoFailure::from(error);
                    self.core.handle(Event::LedgerFailed { failure }, now);
                }
            }
        }
        !facts.is_empty()
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

    fn deliver(&mut self, news: News) {
        match news {
            News::Ended(ended) => drop(self.ended.insert(ended.operation, Some(*ended))),
            News::Progress {
                operation,
                progress,
            } => {
                self.progress.entry(operation).or_default().push(progress);
            }
            News::StreamUpdate { operation, update } => {
                let text = self.texts.entry(operation).or_default();
                match update {
                    StreamUpdate::Text(more) => text.push_str(&more),
                    StreamUpdate::Rewind { length_bytes } => text.truncate(length_bytes),
                    _ => {}
                }
            }
            _ => {} // Log messages, changes of the report: this host only wakes whoever waits.
        }
        self.waiting.drain(..).for_each(Waker::wake);
    }

    /// Moves what can be moved without waiting, and registers for the rest. Whether anything moved.
    fn move_bytes(&mut self, cx: &mut Context<'_>) -> bool {
        let now = self.now();
        let (core, chunk) = (&mut self.core, &mut self.chunk);
        let mut moved = false;
        for (&link, life) in &mut self.links {
            let mut tell = |core: &mut Client, event: Event<'_>| {
                core.handle(event, now);
                moved = true;
            };
            match life.write(cx) {
                Poll::Ready(Ok(spent)) => tell(core, Event::LinkWritten { link, spent }),
                Poll::Ready(Err(error)) => {
                    tell(
                        core,
                        Event::LinkWriteFailed {
                            link,
                            failure: IoFailure::from(&error),
                        },
                    );
                }
                Poll::Pending => {}
            }
            if core.wants_read(link)
                && let Poll::Ready(count) = read(&mut life.output, chunk, cx)
            {
                match chunk.get(..count) {
                    None | Some([]) => tell(core, Event::LinkEnded { link }),
                    Some(bytes) => tell(core, Event::LinkData { link, bytes }),
                }
            }
            if let Poll::Ready(count) = read(&mut life.errors, chunk, cx) {
                match chunk.get(..count) {
                    None | Some([]) => tell(core, Event::LinkStderrEnded { link }),
                    Some(bytes) => tell(core, Event::LinkStderr { link, bytes }),
                }
            }
            if let Some(exit) = &mut life.exit
                && let Poll::Ready(status) = exit.as_mut().poll(cx)
            {
                life.exit = None;
                let exit = exit_of(status.ok());
                tell(core, Event::LinkExited { link, exit });
            }
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

/// A process or a stream. Dropping it lets go of everything.
struct Link {
    input: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    output: Option<Pin<Box<dyn AsyncRead + Send>>>,
    errors: Option<Pin<Box<dyn AsyncRead + Send>>>,
    exit: Option<Pin<Box<dyn Future<Output = io::Result<ExitStatus>> + Send>>>,
    /// The outstanding write, and how much of it is done.
    unsent: Option<(Vec<u8>, usize)>,
    /// The process group. Its number stays taken while a member lives; if the last one ends, the core
    /// has the link released at once.
    group: Option<Pid>,
    socket: Option<UnixStream>,
}

impl Link {
    /// Starts exactly what is planned, in a process group of its own.
    fn spawn(plan: &SpawnPlan) -> io::Result<Self> {
        let mut command = std::process::Command::new(&plan.program);
        command.args(&plan.args).env_clear().process_group(0);
        command.envs(plan.env.iter().map(|(name, value)| (name, value.expose())));
        if let Some(cwd) = &plan.cwd {
            command.current_dir(cwd);
        }
        let mut command = async_process::Command::from(command);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        Ok(Self {
            group: i32::try_from(child.id()).ok().and_then(Pid::from_raw),
            input: child.stdin.take().map(|pipe| Box::pin(pipe) as _),
            output: child.stdout.take().map(|pipe| Box::pin(pipe) as _),
            errors: child.stderr.take().map(|pipe| Box::pin(pipe) as _),
            exit: Some(Box::pin(async move { child.status().await })),
            unsent: None,
            socket: None,
        })
    }

    /// Takes a ready stream.
    fn adopt(stream: UnixStream) -> io::Result<Self> {
        Ok(Self {
            input: Some(Box::pin(Async::new(stream.try_clone()?)?)),
            output: Some(Box::pin(Async::new(stream.try_clone()?)?)),
            socket: Some(stream),
            errors: None,
            exit: None,
            unsent: None,
            group: None,
        })
    }

    /// Goes on with the outstanding write; ready once, with the buffer to be filled again.
    fn write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Vec<u8>>> {
        let (Some(input), Some((bytes, done))) = (&mut self.input, &mut self.unsent) else {
            return Poll::Pending;
        };
        while let Some(rest) = bytes.get(*done..).filter(|rest| !rest.is_empty()) {
            match ready!(input.as_mut().poll_write(cx, rest)) {
                Ok(count) if count > 0 => *done += count,
                refused => {
                    self.unsent = None;
                    let zero = || io::Error::from(io::ErrorKind::WriteZero);
                    return Poll::Ready(Err(refused.err().unwrap_or_else(zero)));
                }
            }
        }
        let spent = self.unsent.take().map(|(bytes, _)| bytes);
        Poll::Ready(Ok(spent.unwrap_or_default()))
    }

    fn close_input(&mut self) {
        (self.input, self.unsent) = (None, None);
        // The reading half keeps a socket open.
        let _ = self
            .socket
            .as_ref()
            .map(|socket| socket.shutdown(Shutdown::Write));
    }

    fn terminate(&self, force: bool) {
        let signal = if force { Signal::KILL } else { Signal::TERM };
        // It fails when nobody is left, which is as good.
        let _ = self.group.map(|group| kill_process_group(group, signal));
    }
}

impl Drop for Link {
    /// Kills what is left of the group. `async-process` reaps the child when its future is dropped.
    fn drop(&mut self) {
        self.terminate(true);
    }
}

/// What came of jobs with the ledger's file, and whom to wake for that.
type Books = (Vec<io::Result<Booked>>, Option<Waker>);

/// What was done with the ledger's file.
enum Booked {
    Read(Vec<u8>),
    Appended,
}

fn read_ledger(path: &Templated) -> io::Result<Booked> {
    if !std::fs::metadata(path.value())?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    std::fs::read(path.value()).map(Booked::Read)
}

fn append_ledger(path: &Templated, line: &LedgerLine) -> io::Result<Booked> {
    if std::fs::metadata(path.value()).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.append(true).create(true).open(path.value())?;
    file.write_all(&line.bytes)?;
    if line.sync {
        file.sync_data()?;
    }
    Ok(Booked::Appended)
}

/// Reads what is there. After the end, ready once with 0, there is nothing to read from any more.
fn read(
    source: &mut Option<Pin<Box<dyn AsyncRead + Send>>>,
    chunk: &mut [u8],
    cx: &mut Context<'_>,
) -> Poll<usize> {
    let Some(open) = source else {
        return Poll::Pending;
    };
    let count = ready!(open.as_mut().poll_read(cx, chunk)).unwrap_or(0);
    if count == 0 {
        *source = None;
    }
    Poll::Ready(count)
}

fn exit_of(status: Option<ExitStatus>) -> Exit {
    Exit::of(
        status.and_then(|status| status.code()),
        status.and_then(|status| status.signal()),
    )
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
