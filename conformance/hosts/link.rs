//! One process or stream: its bytes, its signals, its end.

use std::future::Future;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::task::{Context, Poll, ready};

use async_io::Async;
use futures_lite::{AsyncRead, AsyncWrite};
use mcp_proto::config::SpawnPlan;
use mcp_proto::{Client, Event, Exit, Instant, IoFailure, LinkId};
use rustix::process::{Pid, Signal, kill_process_group};

/// A process or a stream. Dropping it lets go of everything.
pub(crate) struct Link {
    input: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    output: Option<Pin<Box<dyn AsyncRead + Send>>>,
    errors: Option<Pin<Box<dyn AsyncRead + Send>>>,
    exit: Option<Pin<Box<dyn Future<Output = io::Result<ExitStatus>> + Send>>>,
    /// The outstanding write, and how much of it is done.
    pub(crate) unsent: Option<(Vec<u8>, usize)>,
    /// The process group. Its number stays taken while a member lives; if the last one ends, the core
    /// has the link released at once.
    group: Option<Pid>,
    socket: Option<UnixStream>,
}

impl Link {
    /// Starts exactly what is planned, in a process group of its own.
    pub(crate) fn spawn(plan: &SpawnPlan) -> io::Result<Self> {
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
    pub(crate) fn adopt(stream: UnixStream) -> io::Result<Self> {
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

    pub(crate) fn close_input(&mut self) {
        (self.input, self.unsent) = (None, None);
        // The reading half keeps a socket open.
        let _ = self
            .socket
            .as_ref()
            .map(|socket| socket.shutdown(Shutdown::Write));
    }

    pub(crate) fn terminate(&self, force: bool) {
        let signal = if force { Signal::KILL } else { Signal::TERM };
        // It fails when nobody is left, which is as good.
        let _ = self.group.map(|group| kill_process_group(group, signal));
    }
}

impl Link {
    /// Moves what can be moved without waiting, registers for the rest, and tells the core. Whether anything
    /// moved.
    pub(crate) fn advance(
        &mut self,
        link: LinkId,
        core: &mut Client,
        now: Instant,
        chunk: &mut [u8],
        cx: &mut Context<'_>,
    ) -> bool {
        let mut moved = false;
        let mut tell = |core: &mut Client, event: Event<'_>| {
            core.handle(event, now);
            moved = true;
        };
        match self.write(cx) {
            Poll::Ready(Ok(spent)) => tell(core, Event::LinkWritten { link, spent }),
            Poll::Ready(Err(error)) => {
                let failure = IoFailure::from(&error);
                tell(core, Event::LinkWriteFailed { link, failure });
            }
            Poll::Pending => {}
        }
        if core.wants_read(link)
            && let Poll::Ready(count) = read(&mut self.output, chunk, cx)
        {
            match chunk.get(..count) {
                None | Some([]) => tell(core, Event::LinkEnded { link }),
                Some(bytes) => tell(core, Event::LinkData { link, bytes }),
            }
        }
        if let Poll::Ready(count) = read(&mut self.errors, chunk, cx) {
            match chunk.get(..count) {
                None | Some([]) => tell(core, Event::LinkStderrEnded { link }),
                Some(bytes) => tell(core, Event::LinkStderr { link, bytes }),
            }
        }
        if let Some(exit) = &mut self.exit
            && let Poll::Ready(status) = exit.as_mut().poll(cx)
        {
            self.exit = None;
            let exit = exit_of(status.ok());
            tell(core, Event::LinkExited { link, exit });
        }
        moved
    }
}

impl Drop for Link {
    /// Kills what is left of the group. `async-process` reaps the child when its future is dropped.
    fn drop(&mut self) {
        self.terminate(true);
    }
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
