//! Child processes: start one, signal its group, watch it, leave nothing of it behind.

use std::io;
use std::process::Stdio;

use mcp_proto::config::SpawnPlan;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

pub(crate) use group::Process;

/// A process and the three pipes to it.
pub(crate) type Started = (Process, ChildStdin, ChildStdout, ChildStderr);

/// Starts a process as the leader of a group of its own, with the plan's environment and no other, and
/// without a shell. Blocks until the program is loaded, so keep it off the runtime's threads.
pub(crate) fn start(plan: &SpawnPlan) -> io::Result<Started> {
    let mut command = Command::new(&plan.program);
    command.args(&plan.args).env_clear().kill_on_drop(true);
    command.envs(plan.env.iter().map(|(name, value)| (name, value.expose())));
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(directory) = &plan.cwd {
        command.current_dir(directory);
    }
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.spawn()?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    match (Process::new(child), pipes) {
        (Some(process), (Some(stdin), Some(stdout), Some(stderr))) => {
            Ok((process, stdin, stdout, stderr))
        }
        _ => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

#[cfg(unix)]
mod group {
    use std::future::{Future, pending};

    use mcp_proto::Exit;
    use rustix::io::retry_on_intr;
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
    use tokio::process::Child;
    use tokio::runtime::Handle;
    use tokio::signal::unix::{SignalKind, signal};

    /// A child and its process group. Dropping it kills the group and reaps the child.
    ///
    /// The child is reaped nowhere else: as long as it is at least a zombie its number cannot be given
    /// to a stranger, so that a signal to the group can only ever hit the group.
    pub(crate) struct Process {
        child: Option<Child>,
        group: Pid,
        runtime: Handle,
    }

    impl Process {
        pub(super) fn new(child: Child) -> Option<Self> {
            Some(Self {
                group: Pid::from_raw(child.id()?.try_into().ok()?)?,
                child: Some(child),
                runtime: Handle::current(),
            })
        }

        /// Asks the group to end, or ends it. That fails when nobody is left, which is as good.
        pub(crate) fn terminate(&self, force: bool) {
            let signal = if force { Signal::KILL } else { Signal::TERM };
            let _ = kill_process_group(self.group, signal);
        }

        /// Completes when the child has exited, and leaves it to be reaped.
        pub(crate) fn watch(&self) -> impl Future<Output = Exit> + Send + use<> {
            let child = WaitId::Pid(self.group);
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            async move {
                // Before the first look, so that no exit falls between the two.
                let Ok(mut exits) = signal(SignalKind::child()) else {
                    return pending().await; // The end of its output will have to tell.
                };
                loop {
                    match retry_on_intr(|| waitid(child.clone(), options)) {
                        Ok(None) => drop(exits.recv().await),
                        Ok(Some(status)) => {
                            return Exit::of(status.exit_status(), status.terminating_signal());
                        }
                        Err(_) => return Exit::Unknown, // The host reaps all children by itself.
                    }
                }
            }
        }
    }

    impl Drop for Process {
        fn drop(&mut self) {
            self.terminate(true);
            if let Some(mut child) = self.child.take()
                && !matches!(child.try_wait(), Ok(Some(_)))
            {
                self.runtime.spawn(async move { child.wait().await });
            }
        }
    }
}

#[cfg(not(unix))]
mod group {
    use std::future::{Future, poll_fn};
    use std::pin::pin;
    use std::sync::{Arc, Mutex};
    use std::task::Poll;

    use mcp_proto::Exit;
    use tokio::process::Child;

    /// A child. Dropping it kills the child.
    pub(crate) struct Process(Arc<Mutex<Child>>);

    impl Process {
        pub(super) fn new(child: Child) -> Option<Self> {
            Some(Self(Arc::new(Mutex::new(child))))
        }

        /// Ends the child: there is no way to ask. That fails when it is gone, which is as good.
        pub(crate) fn terminate(&self, _force: bool) {
            let _ = self.0.lock().map(|mut child| child.start_kill());
        }

        /// Completes when the child has exited.
        pub(crate) fn watch(&self) -> impl Future<Output = Exit> + Send + use<> {
            let child = self.0.clone();
            async move {
                let status = poll_fn(|cx| match child.lock() {
                    Ok(mut child) => pin!(child.wait()).poll(cx),
                    Err(_) => Poll::Pending,
                });
                Exit::of(status.await.ok().and_then(|status| status.code()), None)
            }
        }
    }

    impl Drop for Process {
        fn drop(&mut self) {
            self.terminate(true);
        }
    }
}
