//! Byte streams: what the core calls links. They perform its actions and report facts to a [`Host`],
//! and know nothing about what the bytes mean.
//!
//! A link has a task that reads, one that writes what could not be written at once, and for a process
//! two more: one drains standard error, one waits for the exit. All end when the link is released.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::io;
use std::mem::take;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use mcp_proto::{Action, Event, Exit, IoFailure, LinkId, LinkTarget};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::ledger;
use crate::process::{self, Process, Started};

/// Room for one read of a server's output: a full pipe on Linux.
const OUTPUT_BYTES: usize = 64 * 1024;
/// Room for one read of standard error.
const STDERR_BYTES: usize = 4 * 1024;

/// A byte stream that the application supplies.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Whom links report to: the client, or a test.
pub(crate) trait Host: Send + Sync + Sized + 'static {
    /// Takes one step on the links, reports the fact that came of it, and performs what follows.
    fn turn<'a, T>(self: &Arc<Self>, step: impl FnOnce(&mut Links) -> (Option<Event<'a>>, T)) -> T;

    /// Ready when the link may be read on; else the task is woken by [`Links::resume`].
    fn poll_readable(&self, link: LinkId, cx: &mut Context<'_>) -> Poll<()>;

    /// Whether anybody is left who can be told anything.
    fn is_wanted(&self) -> bool;

    /// Reports a fact.
    fn report(self: &Arc<Self>, fact: Event<'_>) {
        self.turn(|_| (Some(fact), ()));
    }
}

/// All links of one client.
pub(crate) struct Links {
    links: BTreeMap<LinkId, Link>,
    /// Streams that wait to be opened, by the name of their peer.
    streams: BTreeMap<String, Box<dyn Stream>>,
    /// Whom to wake once the lock is released.
    pub(crate) wakes: Vec<Waker>,
    runtime: Handle,
}

/// One life of one link; empty while its process is being started.
#[derive(Default)]
struct Link {
    input: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    /// The write that is outstanding, and how much of it is done.
    outgoing: Option<(Vec<u8>, usize)>,
    /// The writing task, when it cannot go on.
    writer: Option<Waker>,
    /// The reading task, when it may not go on.
    reader: Option<Waker>,
    process: Option<Process>,
    tasks: JoinSet<()>,
}

impl Links {
    pub(crate) fn new(streams: BTreeMap<String, Box<dyn Stream>>, runtime: Handle) -> Self {
        Self {
            links: BTreeMap::new(),
            streams,
            wakes: Vec::new(),
            runtime,
        }
    }

    /// Lets go of everything, which ends with being dropped.
    pub(crate) fn clear(&mut self) -> impl Sized + use<> {
        (take(&mut self.links), take(&mut self.streams))
    }

    /// Performs an action, and returns the fact that is known at once. `eager` writes are tried here
    /// and now, others leave with the next turn of the runtime. Nobody is woken here.
    pub(crate) fn perform<H: Host>(
        &mut self,
        action: Action,
        eager: bool,
        host: &Arc<H>,
    ) -> Option<Event<'static>> {
        match action {
            Action::OpenLink { link, target } => return self.open(link, target, host),
            Action::ReadLedger { .. } | Action::AppendLedger { .. } => {
                let host = Arc::downgrade(host);
                let tell = move |fact: Event<'_>| {
                    let host = host.upgrade().filter(|host| host.is_wanted());
                    host.map(|host| host.report(fact)).is_some()
                };
                return ledger::start(action, tell).err();
            }
            Action::Write { link: id, bytes } => {
                let link = self.links.get_mut(&id)?;
                link.outgoing = Some((bytes, 0));
                let cx = &mut Context::from_waker(Waker::noop());
                if eager && let Poll::Ready(fact) = link.poll_write(id, cx) {
                    return fact;
                }
                // The writing task takes over, with a waker that wakes something.
                self.wakes.extend(link.writer.take());
            }
            Action::CloseInput { link } => {
                let link = self.links.get_mut(&link)?;
                link.outgoing = None;
                if let Some(mut input) = link.input.take() {
                    let shutdown = async move { drop(input.shutdown().await) };
                    link.tasks.spawn_on(shutdown, &self.runtime);
                }
            }
            Action::Terminate { link, force } => {
                self.links.get(&link)?.process.as_ref()?.terminate(force);
            }
            Action::Release { link } => {
                self.links.remove(&link);
            }
            _ => {}
        }
        None
    }

    fn open<H: Host>(
        &mut self,
        id: LinkId,
        target: Arc<LinkTarget>,
        host: &Arc<H>,
    ) -> Option<Event<'static>> {
        let mut link = Link::default();
        if let LinkTarget::Stream { name } = &*target {
            let Some(stream) = self.streams.remove(name) else {
                let failure = IoFailure::no_stream();
                return Some(Event::LinkFailed { link: id, failure });
            };
            let (output, input) = tokio::io::split(stream);
            link.connect(id, output, input, host, &self.runtime);
            self.links.insert(id, link);
            return Some(Event::LinkOpened { link: id });
        }
        self.links.insert(id, link);
        let host = host.clone();
        self.runtime.spawn_blocking(move || {
            let started = match &*target {
                LinkTarget::Process(plan) => process::start(plan),
                _ => Err(io::ErrorKind::Unsupported.into()),
            };
            host.turn(|links| (links.started(id, started, &host), ()));
        });
        None
    }

    /// Answers the opening of a process. If the link was released meanwhile, the process ends with
    /// being dropped here.
    fn started<H: Host>(
        &mut self,
        id: LinkId,
        started: io::Result<Started>,
        host: &Arc<H>,
    ) -> Option<Event<'static>> {
        let link = self.links.get_mut(&id)?;
        match started {
            Ok((process, stdin, stdout, stderr)) => {
                link.connect(id, stdout, stdin, host, &self.runtime);
                let (tasks, runtime) = (&mut link.tasks, &self.runtime);
                tasks.spawn_on(read_stderr(host.clone(), id, stderr), runtime);
                tasks.spawn_on(watch(host.clone(), id, process.watch()), runtime);
                link.process = Some(process);
                Some(Event::LinkOpened { link: id })
            }
            Err(error) => {
                self.links.remove(&id);
                let failure = IoFailure::from(&error);
                Some(Event::LinkFailed { link: id, failure })
            }
        }
    }

    /// Lets a reading task wait until [`resume`](Self::resume) finds that it may go on.
    pub(crate) fn pause(&mut self, link: LinkId, cx: &Context<'_>) {
        if let Some(link) = self.links.get_mut(&link) {
            link.reader = Some(cx.waker().clone());
        }
    }

    /// Collects the waiting tasks of links that may be read again.
    pub(crate) fn resume(&mut self, readable: impl Fn(LinkId) -> bool) {
        for (id, link) in &mut self.links {
            if link.reader.is_some() && readable(*id) {
                self.wakes.extend(link.reader.take());
            }
        }
    }
}

impl Link {
    fn connect<H: Host>(
        &mut self,
        id: LinkId,
        output: impl AsyncRead + Send + Unpin + 'static,
        input: impl AsyncWrite + Send + Unpin + 'static,
        host: &Arc<H>,
        runtime: &Handle,
    ) {
        self.input = Some(Box::new(input));
        let tasks = &mut self.tasks;
        tasks.spawn_on(read_output(host.clone(), id, output), runtime);
        tasks.spawn_on(write_input(host.clone(), id), runtime);
    }

    /// Goes on with the outstanding write: ready with the fact that came of it, or with `None` when
    /// the input is closed.
    fn poll_write(&mut self, link: LinkId, cx: &mut Context<'_>) -> Poll<Option<Event<'static>>> {
        let Some(input) = &mut self.input else {
            return Poll::Ready(None);
        };
        let Some((bytes, written)) = &mut self.outgoing else {
            return Poll::Pending;
        };
        let result = ready!(poll_write_all(input, bytes, written, cx));
        let mut spent = take(bytes);
        self.outgoing = None;
        Poll::Ready(Some(match result {
            Ok(()) => {
                spent.clear();
                Event::LinkWritten { link, spent }
            }
            Err(error) => {
                self.input = None;
                let failure = IoFailure::from(&error);
                Event::LinkWriteFailed { link, failure }
            }
        }))
    }
}

/// Ready when all bytes are with the operating system.
fn poll_write_all(
    input: &mut (impl AsyncWrite + Unpin),
    bytes: &[u8],
    written: &mut usize,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    while let Some(rest @ [_, ..]) = bytes.get(*written..) {
        match ready!(Pin::new(&mut *input).poll_write(cx, rest))? {
            0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            count => *written += count,
        }
    }
    Pin::new(input).poll_flush(cx)
}

/// Writes what could not be written at once, until the input is closed.
async fn write_input<H: Host>(host: Arc<H>, id: LinkId) {
    let mut step = |cx: &mut Context<'_>| {
        host.turn(|links| {
            let Some(link) = links.links.get_mut(&id) else {
                return (None, Poll::Ready(false));
            };
            let Poll::Ready(fact) = link.poll_write(id, cx) else {
                link.writer = Some(cx.waker().clone());
                return (None, Poll::Pending);
            };
            let open = fact.is_some();
            (fact, Poll::Ready(open))
        })
    };
    while poll_fn(&mut step).await {}
}

/// Reads a server's output to its end, as fast as the core takes it in.
async fn read_output<H: Host>(host: Arc<H>, link: LinkId, mut output: impl AsyncRead + Unpin) {
    let mut buffer = vec![0; OUTPUT_BYTES];
    while let Ok(count @ 1..) = output.read(&mut buffer).await {
        host.report(Event::LinkData {
            link,
            bytes: &buffer[..count],
        });
        poll_fn(|cx| host.poll_readable(link, cx)).await;
    }
    host.report(Event::LinkEnded { link });
}

/// Reads standard error to its end. Nothing is paused: a full pipe blocks the server.
async fn read_stderr<H: Host>(host: Arc<H>, link: LinkId, mut stderr: impl AsyncRead + Unpin) {
    let mut buffer = vec![0; STDERR_BYTES];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        host.report(Event::LinkStderr {
            link,
            bytes: &buffer[..count],
        });
    }
    host.report(Event::LinkStderrEnded { link });
}

/// Reports the exit of a process.
async fn watch<H: Host>(host: Arc<H>, link: LinkId, exit: impl Future<Output = Exit>) {
    let exit = exit.await;
    host.report(Event::LinkExited { link, exit });
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
