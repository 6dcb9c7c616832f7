//! The operating system: descriptors that never block, processes in groups of their own, `poll`.
//!
//! Nothing here knows the core; everything is told to do one thing and says what came of it.

use std::collections::BTreeMap;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use mcp_proto::config::SpawnPlan;
use mcp_proto::{Exit, IoFailure, LinkId};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use crate::engine::{Half, LinkExit};

/// A descriptor in non-blocking mode. Shared, so that it stays open (and its number is not reused)
/// while a thread polls it without holding the lock.
pub(crate) type Fd = Arc<OwnedFd>;

/// Both directions of a stream that the host supplied, reader first.
pub(crate) type Pair = (OwnedFd, OwnedFd);

/// One open link. Dropping it releases everything: pipes are closed, the process group is killed.
#[derive(Debug, Default)]
pub(crate) struct Link {
    /// Those that are open.
    halves: BTreeMap<Half, Fd>,
    /// The outstanding write, and how many bytes of it are written.
    unsent: Option<(Vec<u8>, usize)>,
    /// The process, which leads a group of its own. It is reaped once the sender is dropped and not
    /// before, so that the number names nobody else.
    process: Option<(Pid, Sender<Child>)>,
    /// Whether the core wanted to read when last asked.
    pub(crate) reading: bool,
}

impl Link {
    /// Starts the planned process. Its end is reported to `exits`, whose last sender is gone when all
    /// processes are reaped.
    pub(crate) fn spawn(
        id: LinkId,
        plan: &SpawnPlan,
        exits: &Sender<LinkExit>,
        waker: &Arc<Waker>,
    ) -> Result<Self, IoFailure> {
        let mut command = Command::new(&plan.program);
        command.args(&plan.args).env_clear().process_group(0);
        command.envs(plan.env.iter().map(|(name, value)| (name, value.expose())));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::piped());
        if let Some(cwd) = &plan.cwd {
            command.current_dir(cwd);
        }
        // The thread comes first: without it a started process could not be reaped.
        let (unreaped, child) = mpsc::channel::<Child>();
        let (exits, waker) = (exits.clone(), Arc::clone(waker));
        let thread = thread::Builder::new().name(format!("mcp-child-{id}"));
        thread.spawn(move || {
            if let Ok(mut process) = child.recv() {
                let _ = exits.send((id, exit_of(Pid::from_child(&process))));
                waker.raise();
                drop(waker);
                let _released: Result<Child, _> = child.recv();
                let _ = process.wait();
            }
        })?;
        let mut child = command.spawn()?;
        let (input, output, errors) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut link = Self::default();
        link.process = Some((Pid::from_child(&child), unreaped.clone()));
        let _ = unreaped.send(child);
        link.add(Half::Input, input.map(Into::into))?;
        link.add(Half::Output, output.map(Into::into))?;
        link.add(Half::Errors, errors.map(Into::into))?;
        Ok(link)
    }

    /// Takes a stream that the host supplied.
    pub(crate) fn adopt((reader, writer): Pair) -> Result<Self, IoFailure> {
        let mut link = Self::default();
        link.add(Half::Output, Some(reader))?;
        link.add(Half::Input, Some(writer))?;
        Ok(link)
    }

    fn add(&mut self, half: Half, fd: Option<OwnedFd>) -> io::Result<()> {
        if let Some(fd) = fd {
            rustix::io::ioctl_fionbio(&fd, true)?;
            self.halves.insert(half, Arc::new(fd));
        }
        Ok(())
    }

    /// What to wait for: the output only if it may be read, the input only if something is unsent.
    pub(crate) fn watched(&self) -> impl Iterator<Item = (Half, Fd)> {
        let halves = self.halves.iter().filter(|(half, _)| match half {
            Half::Input => self.unsent.is_some(),
            Half::Output => self.reading,
            Half::Errors => true,
        });
        halves.map(|(half, fd)| (*half, Arc::clone(fd)))
    }

    /// Reads what is there: `None` at the end of the stream, nothing if nothing is there yet.
    pub(crate) fn read<'b>(&mut self, half: Half, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        let open = self.halves.get(&half);
        match open.map(|fd| rustix::io::read(fd, &mut *buffer)) {
            Some(Ok(count)) if count > 0 => buffer.get(..count),
            None | Some(Err(Errno::AGAIN | Errno::INTR)) => Some(&[]),
            Some(_) => {
                self.halves.remove(&half);
                None
            }
        }
    }

    /// Writes of these bytes what goes without waiting, and keeps the rest for [`flush`](Self::flush).
    pub(crate) fn write(&mut self, bytes: Vec<u8>) -> Option<Result<Vec<u8>, IoFailure>> {
        self.unsent = Some((bytes, 0));
        self.flush()
    }

    /// Writes more. Once all bytes are gone their buffer comes back; `None` while some are left.
    pub(crate) fn flush(&mut self) -> Option<Result<Vec<u8>, IoFailure>> {
        let (bytes, mut written) = self.unsent.take()?;
        let Some(input) = self.halves.get(&Half::Input) else {
            return Some(Err(io::Error::from(io::ErrorKind::BrokenPipe).into()));
        };
        while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
            match retry_on_intr(|| rustix::io::write(input, rest)) {
                Ok(0) | Err(Errno::AGAIN) => {
                    self.unsent = Some((bytes, written));
                    return None;
                }
                Ok(count) => written += count,
                Err(error) => return Some(Err(io::Error::from(error).into())),
            }
        }
        Some(Ok(bytes))
    }

    /// Closes the way to the server, and forgets what was not written.
    pub(crate) fn close_input(&mut self) {
        self.unsent = None;
        if let (Some(input), None) = (self.halves.remove(&Half::Input), &self.process) {
            // The reading half keeps a socket open. On a pipe this is an error that changes nothing.
            let _ = rustix::net::shutdown(input, rustix::net::Shutdown::Write);
        }
    }

    /// Sends `SIGTERM`, or with `force` `SIGKILL`, to the process group; nothing on a stream.
    pub(crate) fn terminate(&self, force: bool) {
        if let Some((pid, _)) = &self.process {
            let signal = if force { Signal::KILL } else { Signal::TERM };
            let group = rustix::process::kill_process_group(*pid, signal);
            // It may have moved to another group. Not with a second `SIGTERM` for no reason: servers
            // take that for impatience.
            if force || group.is_err() {
                let _ = rustix::process::kill_process(*pid, signal);
            }
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.terminate(true);
    }
}

/// Ends the [`poll`] of another thread.
#[derive(Debug)]
pub(crate) struct Waker {
    reader: PipeReader,
    writer: PipeWriter,
    raised: AtomicBool,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&reader, true)?;
        let raised = AtomicBool::default();
        Ok(Self {
            reader,
            writer,
            raised,
        })
    }

    /// Ends the running `poll`, or the next one if none runs. Repeated calls cost no system call.
    pub(crate) fn raise(&self) {
        if !self.raised.swap(true, Ordering::AcqRel) {
            let _ = rustix::io::write(&self.writer, &[0]);
        }
    }

    /// Takes the signal back. Look at what it stood for afterwards, not before.
    pub(crate) fn lower(&self) {
        // Emptied before it is marked as lowered: a byte that comes in between would otherwise be
        // swallowed while `raised` says that it is still there, and nobody would be woken again.
        let _ = rustix::io::read(&self.reader, &mut [0_u8; 16]);
        self.raised.swap(false, Ordering::AcqRel);
    }
}

/// Sleeps until something can be read or written, the waker is raised or the time is over. Says
/// whether the waker was raised, and for each watch whether it is ready (or broken).
pub(crate) fn poll(
    waker: &Waker,
    watches: &[(LinkId, Half, Fd)],
    timeout: Option<Duration>,
) -> (bool, Vec<bool>) {
    let mut fds = Vec::with_capacity(watches.len() + 1);
    fds.push(PollFd::new(&waker.reader, PollFlags::IN));
    fds.extend(watches.iter().map(|(_, half, fd)| {
        let flags = match half {
            Half::Input => PollFlags::OUT,
            Half::Output | Half::Errors => PollFlags::IN,
        };
        PollFd::from_borrowed_fd(fd.as_fd(), flags)
    }));
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let polled = rustix::event::poll(&mut fds, timeout.as_ref());
    if polled.is_err_and(|error| error != Errno::INTR) {
        // The kernel is out of memory: nothing is ready, and asking again at once will not help.
        thread::sleep(Duration::from_millis(1));
    }
    let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
    (ready.next().unwrap_or(false), ready.collect())
}

/// Makes any reader and writer pollable: two threads copy between them and a pair of pipes.
pub(crate) fn pump(
    mut reader: impl Read + Send + 'static,
    mut writer: impl Write + Send + 'static,
) -> io::Result<Pair> {
    let (ours, mut into) = io::pipe()?;
    let (mut from, theirs) = io::pipe()?;
    let thread = || thread::Builder::new().name("mcp-pump".to_owned());
    thread().spawn(move || copy(&mut reader, &mut into))?;
    thread().spawn(move || copy(&mut from, &mut writer))?;
    Ok((ours.into(), theirs.into()))
}

/// As `std::io::copy`, but each piece is flushed: messages must not wait for the next ones.
fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = [0; 16 * 1024];
    loop {
        match from.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(0) => return Ok(()),
            count => to.write_all(buffer.get(..count?).unwrap_or_default())?,
        }
        to.flush()?;
    }
}

/// Blocks until the process has ended, and leaves it as a zombie: its group can still be killed.
fn exit_of(pid: Pid) -> Exit {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    match retry_on_intr(|| rustix::process::waitid(WaitId::Pid(pid), options)) {
        Ok(Some(status)) => Exit::of(status.exit_status(), status.terminating_signal()),
        // Somebody else reaped it, or the host ignores `SIGCHLD`.
        _ => Exit::Unknown,
    }
}
