//! A core that is small enough to see through: `number text` lines out, the same lines back.
//!
//! Same methods as `mcp_proto::Client`. A call on peer N goes to link N; the line `number answer` ends
//! operation `number` with the answer as its tool name. `% number` is progress of it, `* text` a
//! notification. What happened otherwise is in `facts`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use mcp_proto::error::Cause;
use mcp_proto::{
    Action, Diagnosis, Ended, Error, Event, Identity, Instant, LinkId, LinkTarget, News,
    Notification, Operation, OperationId, Outcome, PeerId, ProgressUpdate, Ran, Reply, Report,
    Request,
};

/// How long a link may take to end after its input was closed.
const GRACE: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(crate) struct Toy {
    pub(crate) facts: Vec<String>,
    pub(crate) stderr_bytes: usize,
    /// Links that must not be read.
    pub(crate) muted: bool,
    targets: Vec<Arc<LinkTarget>>,
    actions: VecDeque<Action>,
    links: BTreeMap<LinkId, ToyLink>,
    operations: BTreeMap<OperationId, (Request, Option<Instant>)>,
    notifications: Vec<Notification>,
    submitted: u64,
    closing: Option<Instant>,
    closed: bool,
}

#[derive(Debug, Default)]
struct ToyLink {
    settled: bool,
    writing: bool,
    queue: Vec<u8>,
    line: Vec<u8>,
}

pub(crate) fn link(index: u32) -> LinkId {
    LinkId {
        peer: PeerId::new(index),
        serial: 1,
    }
}

impl Toy {
    pub(crate) fn new(_: mcp_proto::config::Pinned, _: Identity, _: Instant) -> Self {
        Self::default()
    }

    pub(crate) fn of(targets: impl IntoIterator<Item = LinkTarget>) -> Self {
        Self {
            targets: targets.into_iter().map(Arc::new).collect(),
            ..Self::default()
        }
    }

    pub(crate) fn connect(&mut self, _: Instant) {
        for (index, target) in (0..).zip(&self.targets) {
            let target = Arc::clone(target);
            self.links.insert(link(index), ToyLink::default());
            self.actions.push_back(Action::OpenLink {
                link: link(index),
                target,
            });
        }
    }

    pub(crate) fn submit(
        &mut self,
        operation: Operation,
        now: Instant,
    ) -> Result<OperationId, Error> {
        if self.closing.is_some() {
            return Err(Error::general(Cause::Usage("closed".to_owned())));
        }
        self.submitted += 1;
        let id = OperationId::new(self.submitted);
        let due = operation.options.absolute_timeout.map(|limit| now + limit);
        if let Request::CallTool(call) = &operation.request {
            let peer: u32 = operation.peer.as_deref().unwrap_or("0").parse().unwrap();
            let open = self.links.get_mut(&link(peer)).unwrap();
            open.queue
                .extend(format!("{} {}\n", id.number(), call.tool).bytes());
            self.write(link(peer));
        }
        self.operations.insert(id, (operation.request, due));
        self.settle();
        Ok(id)
    }

    pub(crate) fn cancel(&mut self, id: OperationId, _: Instant) {
        self.end(id, None, Outcome::Failed(Error::general(Cause::Cancelled)));
    }

    pub(crate) fn finish(&mut self, id: OperationId, _: Instant) {
        let reply = Reply::Listened { notifications: 7 };
        self.end(id, None, Outcome::Complete(reply));
    }

    pub(crate) fn take_notifications(&mut self, _: OperationId) -> Vec<Notification> {
        std::mem::take(&mut self.notifications)
    }

    pub(crate) fn close(&mut self, now: Instant) {
        if self.closing.is_some() {
            return;
        }
        self.closing = Some(now + GRACE);
        let ids: Vec<_> = self.operations.keys().copied().collect();
        for id in ids {
            self.cancel(id, now);
        }
        for &link in self.links.keys() {
            self.actions.push_back(Action::CloseInput { link });
        }
        self.close_if_empty();
    }

    pub(crate) fn handle(&mut self, event: Event<'_>, now: Instant) {
        match event {
            Event::LinkData { link, bytes } => self.read(link, bytes),
            Event::LinkStderr { bytes, .. } => self.stderr_bytes += bytes.len(),
            Event::LinkWritten { link, spent } => {
                assert!(!spent.is_empty(), "the buffer comes back");
                self.links.get_mut(&link).unwrap().writing = false;
                self.write(link);
            }
            Event::LinkOpened { link } => {
                self.links.get_mut(&link).unwrap().settled = true;
                self.write(link);
                self.settle();
            }
            Event::TimePassed => self.time_passed(now),
            Event::LinkFailed { link, failure } => {
                self.facts
                    .push(format!("{link} failed: {:?}", failure.kind));
                self.links.remove(&link);
                self.settle();
                self.close_if_empty();
            }
            Event::LinkWriteFailed { link, failure } => {
                self.facts
                    .push(format!("{link} write failed: {:?}", failure.kind));
            }
            Event::LinkEnded { link } => self.facts.push(format!("{link} ended")),
            Event::LinkExited { link, exit } => {
                self.facts.push(format!("{link} {exit}"));
                self.release(link);
            }
            _ => {}
        }
    }

    pub(crate) fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let due = self.operations.values().filter_map(|(_, due)| *due);
        due.chain(self.closing.filter(|_| !self.closed)).min()
    }

    pub(crate) fn wants_read(&self, _: LinkId) -> bool {
        !self.muted
    }

    pub(crate) fn report(&self) -> Report {
        unreachable!("the toy reports nothing")
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(crate) fn diagnoses(&self) -> Vec<Diagnosis> {
        Vec::new()
    }

    fn write(&mut self, link: LinkId) {
        let open = self.links.get_mut(&link).unwrap();
        if open.settled && !open.writing && !open.queue.is_empty() {
            open.writing = true;
            let bytes = std::mem::take(&mut open.queue);
            self.actions.push_back(Action::Write { link, bytes });
        }
    }

    fn read(&mut self, link: LinkId, bytes: &[u8]) {
        for byte in bytes {
            let Some(open) = self.links.get_mut(&link) else {
                return;
            };
            if *byte != b'\n' {
                open.line.push(*byte);
                continue;
            }
            let line = String::from_utf8(std::mem::take(&mut open.line)).unwrap();
            let (first, rest) = line.split_once(' ').unwrap_or((&line, ""));
            if let Ok(number) = first.parse() {
                let outcome = Outcome::Complete(Reply::Settled);
                self.end(OperationId::new(number), Some(rest.to_owned()), outcome);
            } else {
                self.announce(first, rest);
            }
        }
    }

    fn announce(&mut self, mark: &str, text: &str) {
        let listener = self
            .operations
            .iter()
            .find(|(_, (request, _))| *request == Request::Listen);
        let news = match (mark, listener) {
            ("%", _) => News::Progress {
                operation: OperationId::new(text.parse().unwrap()),
                progress: ProgressUpdate::new(1.0),
            },
            ("*", Some((&operation, _))) => {
                self.notifications.push(Notification {
                    peer: "0".to_owned(),
                    method: text.to_owned(),
                    params: None,
                });
                News::Notified { operation }
            }
            _ => return self.facts.push(format!("{mark} {text}")),
        };
        self.actions.push_back(Action::Deliver(news));
    }

    fn time_passed(&mut self, now: Instant) {
        let over = |(id, (_, due)): (&OperationId, &(Request, Option<Instant>))| {
            due.is_some_and(|due| due <= now).then_some(*id)
        };
        let late: Vec<_> = self.operations.iter().filter_map(over).collect();
        for id in late {
            let cause = Cause::Usage("late".to_owned());
            self.end(
                id,
                None,
                Outcome::Failed(Error::general(cause).ran(Ran::Maybe)),
            );
        }
        if self.closing.is_some_and(|due| due <= now) {
            let links: Vec<_> = self.links.keys().copied().collect();
            for link in links {
                self.facts.push(format!("{link} had to be killed"));
                self.actions
                    .push_back(Action::Terminate { link, force: true });
                self.release(link);
            }
        }
    }

    fn settle(&mut self) {
        if self.links.values().all(|open| open.settled) {
            let settles = self.operations.iter();
            let settles = settles.filter(|(_, (request, _))| *request == Request::Settle);
            let ids: Vec<_> = settles.map(|(id, _)| *id).collect();
            for id in ids {
                self.end(id, None, Outcome::Complete(Reply::Settled));
            }
        }
    }

    fn end(&mut self, operation: OperationId, tool: Option<String>, outcome: Outcome) {
        if self.operations.remove(&operation).is_some() {
            let ended = Ended {
                operation,
                peer: None,
                tool,
                outcome,
            };
            self.actions
                .push_back(Action::Deliver(News::Ended(Box::new(ended))));
        }
    }

    fn release(&mut self, link: LinkId) {
        if self.links.remove(&link).is_some() {
            self.actions.push_back(Action::Release { link });
        }
        self.close_if_empty();
    }

    fn close_if_empty(&mut self) {
        if self.closing.is_some() && self.links.is_empty() && !self.closed {
            self.closed = true;
            self.actions.push_back(Action::Deliver(News::Closed));
        }
    }
}
