//! One life of one byte stream.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::action::{Action, LinkTarget};
use crate::event::{Event, Exit, IoFailure};
use crate::ids::LinkId;
use crate::limits::Limits;
use crate::stdio::{Outbox, Tail};
use crate::time::{Duration, Instant};
use crate::wire::LineBuffer;

/// How long the other half of the news is awaited after the first of "output ended" and "exited", so
/// that an error can name the exit status and the last output is read.
const LOSS_GRACE: Duration = Duration::from_millis(300);
/// How long the rest of a dead server's standard error is awaited: it usually says why. A dead process
/// adds nothing, but others may hold the pipe open.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// After closing its input a server has this long to exit.
const EXIT_GRACE: Duration = Duration::from_secs(2);
/// After being asked to end (SIGTERM) it has this long.
const TERMINATE_GRACE: Duration = Duration::from_secs(2);
/// After being killed, the exit of a process is awaited this long before everything is let go: what takes
/// longer hangs in the kernel. For a driver that waits for processes which it kills by itself because
/// nobody is left who could be told.
pub const KILL_GRACE: Duration = Duration::from_secs(1);

/// Where in its life a link is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    /// Asked for, not there yet.
    Opening,
    /// Usable.
    Open,
    /// One of the two signs of the end was seen; the other is awaited until then.
    Fading(Instant),
    /// On the shutdown ladder; the next rung is taken then.
    Stopping(Rung, Instant),
    /// Over.
    Released,
}

/// Rungs of the shutdown ladder. spec: basic/transports/stdio#shutdown
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rung {
    /// It is being opened still: a process may be there at any moment, and must not be forgotten.
    Opening,
    InputClosed,
    Asked,
    Killed,
    /// It has exited; only its standard error is awaited.
    Exited,
}

/// What a fact means to the peer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LinkNews {
    /// Nothing that concerns the peer.
    Nothing,
    /// The link can be used.
    Opened,
    /// The link could not be opened.
    Failed(IoFailure),
    /// The link is lost, with the reason for people. It is already being shut down.
    Lost(String),
    /// The link is released: nothing of it is left.
    Released,
}

/// A link with its framing, its outgoing queue and what is kept for diagnosis.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) id: LinkId,
    pub(crate) outbox: Outbox,
    /// Taken out while lines are handled, so that the lines may be borrowed.
    pub(crate) framer: Option<LineBuffer>,
    pub(crate) stderr: Tail,
    is_process: bool,
    life: Life,
    output_ended: bool,
    stderr_ended: bool,
    exit: Option<Exit>,
    write_failure: Option<IoFailure>,
}

impl Link {
    /// Asks for the link.
    pub(crate) fn open(
        id: LinkId,
        target: &Arc<LinkTarget>,
        limits: &Limits,
        actions: &mut VecDeque<Action>,
    ) -> Self {
        actions.push_back(Action::OpenLink {
            link: id,
            target: Arc::clone(target),
        });
        let is_process = matches!(**target, LinkTarget::Process(_));
        Self {
            id,
            outbox: Outbox::default(),
            framer: Some(LineBuffer::new(limits.line_bytes)),
            stderr: Tail::new(limits.stderr_tail_bytes),
            is_process,
            life: Life::Opening,
            output_ended: false,
            stderr_ended: !is_process,
            exit: None,
            write_failure: None,
        }
    }

    /// Whether messages can be exchanged over it.
    pub(crate) fn is_usable(&self) -> bool {
        matches!(self.life, Life::Opening | Life::Open) && self.write_failure.is_none()
    }

    /// Whether bytes that arrive now are read: not any more once it is being shut down.
    pub(crate) fn is_listening(&self) -> bool {
        matches!(self.life, Life::Opening | Life::Open | Life::Fading(_))
    }

    pub(crate) fn is_released(&self) -> bool {
        self.life == Life::Released
    }

    /// When [`Link::on_time`] has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.life {
            Life::Fading(at) | Life::Stopping(_, at) => Some(at),
            Life::Opening | Life::Open | Life::Released => None,
        }
    }

    /// Hands out the next write, when there is credit.
    pub(crate) fn flush(&mut self, actions: &mut VecDeque<Action>) {
        if self.life != Life::Open || self.write_failure.is_some() {
            return;
        }
        if let Some(bytes) = self.outbox.take_write() {
            actions.push_back(Action::Write {
                link: self.id,
                bytes,
            });
        }
    }

    /// Takes a fact about this link other than data.
    pub(crate) fn handle(
        &mut self,
        event: Event<'_>,
        now: Instant,
        actions: &mut VecDeque<Action>,
    ) -> LinkNews {
        match event {
            Event::LinkOpened { .. } => self.on_opened(now, actions),
            Event::LinkFailed { failure, .. } => {
                self.life = Life::Released;
                LinkNews::Failed(failure)
            }
            Event::LinkStderr { bytes, .. } => {
                self.stderr.push(bytes);
                LinkNews::Nothing
            }
            Event::LinkWritten { spent, .. } => {
                self.outbox.written(spent);
                self.flush(actions);
                LinkNews::Nothing
            }
            Event::LinkWriteFailed { failure, .. } => self.on_write_failed(failure, now),
            Event::LinkEnded { .. } => {
                self.output_ended = true;
                self.on_fading(now, actions)
            }
            Event::LinkStderrEnded { .. } => {
                self.stderr_ended = true;
                match self.exit {
                    Some(_) => self.on_fading(now, actions),
                    None => LinkNews::Nothing,
                }
            }
            Event::LinkExited { exit, .. } => {
                self.exit = Some(exit);
                self.on_fading(now, actions)
            }
            _ => LinkNews::Nothing,
        }
    }

    fn on_opened(&mut self, now: Instant, actions: &mut VecDeque<Action>) -> LinkNews {
        match self.life {
            Life::Opening => {
                self.life = Life::Open;
                LinkNews::Opened
            }
            Life::Stopping(Rung::Opening, _) => {
                self.close_input(now, actions);
                LinkNews::Nothing
            }
            _ => LinkNews::Nothing,
        }
    }

    /// A broken pipe usually precedes the exit by a moment: wait for its status.
    fn on_write_failed(&mut self, failure: IoFailure, now: Instant) -> LinkNews {
        if self.write_failure.is_none() {
            self.write_failure = Some(failure);
        }
        if matches!(self.life, Life::Opening | Life::Open) {
            self.life = Life::Fading(now + LOSS_GRACE);
        }
        LinkNews::Nothing
    }

    fn on_fading(&mut self, now: Instant, actions: &mut VecDeque<Action>) -> LinkNews {
        let exited = self.exit.is_some() || !self.is_process;
        match self.life {
            Life::Opening | Life::Open | Life::Fading(_) if exited && self.output_ended => {
                if !self.stderr_ended {
                    self.life = Life::Fading(self.deadline_within(LAST_WORDS, now));
                    return LinkNews::Nothing;
                }
                let reason = self.loss_reason();
                self.release(actions);
                LinkNews::Lost(reason)
            }
            Life::Opening | Life::Open => {
                self.life = Life::Fading(now + LOSS_GRACE);
                LinkNews::Nothing
            }
            // Nobody waits for its output any more: the exit alone is enough.
            Life::Stopping(..) if exited && (self.exit.is_some() || self.output_ended) => {
                if !self.stderr_ended {
                    let until = self.deadline_within(LAST_WORDS, now);
                    self.life = Life::Stopping(Rung::Exited, until);
                    return LinkNews::Nothing;
                }
                self.release(actions);
                LinkNews::Released
            }
            Life::Fading(_) | Life::Stopping(..) | Life::Released => LinkNews::Nothing,
        }
    }

    /// So long from now, or earlier if the present deadline is.
    fn deadline_within(&self, limit: Duration, now: Instant) -> Instant {
        let limit = now + limit;
        self.deadline().map_or(limit, |due| due.min(limit))
    }

    /// Takes what is due at `now`.
    pub(crate) fn on_time(&mut self, now: Instant, actions: &mut VecDeque<Action>) -> LinkNews {
        match self.life {
            Life::Fading(at) if now >= at => {
                let reason = self.loss_reason();
                if self.exit.is_some() {
                    self.release(actions);
                } else {
                    self.shut_down(now, actions);
                }
                LinkNews::Lost(reason)
            }
            Life::Stopping(rung, at) if now >= at => self.next_rung(rung, now, actions),
            _ => LinkNews::Nothing,
        }
    }

    fn next_rung(&mut self, rung: Rung, now: Instant, actions: &mut VecDeque<Action>) -> LinkNews {
        match rung {
            Rung::InputClosed if self.is_process => {
                actions.push_back(Action::Terminate {
                    link: self.id,
                    force: false,
                });
                self.life = Life::Stopping(Rung::Asked, now + TERMINATE_GRACE);
                LinkNews::Nothing
            }
            Rung::Asked => {
                actions.push_back(Action::Terminate {
                    link: self.id,
                    force: true,
                });
                self.life = Life::Stopping(Rung::Killed, now + KILL_GRACE);
                LinkNews::Nothing
            }
            Rung::Opening | Rung::InputClosed | Rung::Killed | Rung::Exited => {
                self.release(actions);
                LinkNews::Released
            }
        }
    }

    /// Begins the shutdown ladder, unless it has begun.
    pub(crate) fn shut_down(&mut self, now: Instant, actions: &mut VecDeque<Action>) {
        match self.life {
            Life::Opening => self.life = Life::Stopping(Rung::Opening, now + EXIT_GRACE),
            Life::Open | Life::Fading(_) if self.exit.is_some() => self.release(actions),
            Life::Open | Life::Fading(_) => self.close_input(now, actions),
            Life::Stopping(..) | Life::Released => {}
        }
    }

    fn close_input(&mut self, now: Instant, actions: &mut VecDeque<Action>) {
        actions.push_back(Action::CloseInput { link: self.id });
        self.life = Life::Stopping(Rung::InputClosed, now + EXIT_GRACE);
    }

    fn release(&mut self, actions: &mut VecDeque<Action>) {
        actions.push_back(Action::Release { link: self.id });
        self.life = Life::Released;
    }

    /// Why the link is gone, for people: exit status or what else is known.
    fn loss_reason(&self) -> String {
        match (self.exit, &self.write_failure) {
            (Some(exit), _) => format!("the server {exit}"),
            (None, Some(failure)) => format!("the server closed its input ({})", failure.detail),
            (None, None) if self.is_process => String::from("the server closed its output"),
            (None, None) => String::from("the stream ended"),
        }
    }

    /// The last lines of standard error.
    pub(crate) fn stderr_lines(&self) -> Vec<String> {
        self.stderr.lines()
    }
}
