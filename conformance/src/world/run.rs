//! What happens next, and what comes of it.

use std::hash::Hash as _;

use mcp_proto::{Action, Duration, Event, Exit, Instant, LinkId, News, Outcome, PeerId};

use super::breach::Rule;
use super::journal::Way;
use super::process::{Chunk, Control, LANES, Lane, Process};
use super::{Choice, Splits, World, millis, pick, show_news};

/// More turns than anything generated takes without time passing.
const STILL_MAX: u32 = 200_000;

impl World {
    /// Lets one thing happen: something arrives, or else time passes to the next moment at which
    /// something is due. `false` when nothing is left to happen, or a rule is broken.
    pub fn turn(&mut self) -> bool {
        if self.breach.is_some() {
            return false;
        }
        let mut ready = Vec::new();
        for (link, process) in &self.links {
            let readable = self.client.wants_read(*link);
            ready.extend(LANES.into_iter().filter_map(|lane| {
                let held = lane == Lane::Stdout && !readable;
                (process.is_ready(lane) && !held).then_some((*link, lane))
            }));
        }
        self.still += 1;
        if self.still > STILL_MAX {
            let detail = format!("{STILL_MAX} turns at {}", self.now);
            self.judge(Err((Rule::Timer, detail)));
            return false;
        }
        let ledger = usize::from(self.ledger.is_ready());
        let count = u32::try_from(ready.len() + ledger).unwrap_or(u32::MAX);
        // Now and then time passes although something is on its way.
        let early = count > 0 && self.due().is_some() && self.one_in(32);
        if count == 0 || early {
            return self.pass_time();
        }
        let index = self.choose(count);
        if let Some((link, lane)) = ready.get(index as usize) {
            self.arrive(*link, *lane);
        } else {
            self.arrive_ledger();
        }
        true
    }

    /// Tells the client a fact about a link that is gone, and judges that it changes nothing (P3).
    pub fn inject_stale(&mut self, choice: &mut dyn Choice) {
        let mut candidates = self.released.clone();
        let peers = u32::try_from(self.names.len()).unwrap_or(0);
        let peer = PeerId::new(choice.choose(peers + 1));
        candidates.push(LinkId { peer, serial: 99 });
        let link = *pick(choice, &candidates);
        let failure = || mcp_proto::IoFailure {
            kind: mcp_proto::IoKind::Other,
            detail: "late".into(),
        };
        let event = match choice.choose(10) {
            0 => Event::LinkEnded { link },
            1 => Event::LinkData {
                link,
                bytes: b"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}\n",
            },
            2 => Event::LinkStderr { link, bytes: b"x" },
            3 => Event::LinkWritten {
                link,
                spent: Vec::new(),
            },
            4 => Event::LinkWriteFailed {
                link,
                failure: failure(),
            },
            5 => Event::LinkExited {
                link,
                exit: Exit::Code(1),
            },
            6 => Event::LinkOpened { link },
            7 => Event::LinkFailed {
                link,
                failure: failure(),
            },
            8 => Event::LinkStderrEnded { link },
            // No time passes either.
            _ if self.client.poll_timeout().is_none_or(|due| due > self.told) => Event::TimePassed,
            _ => return,
        };
        let shown = format!("{event:?}");
        let before = format!("{:?}", self.client);
        self.client.handle(event, self.told);
        if format!("{:?}", self.client) != before {
            self.judge(Err((Rule::StaleFact, shown)));
        }
    }

    /// Whether something is on its way.
    pub(super) fn is_busy(&self) -> bool {
        let links = self.links.iter().any(|(link, process)| {
            LANES.into_iter().any(|lane| {
                process.is_ready(lane) && (lane != Lane::Stdout || self.client.wants_read(*link))
            })
        });
        links || self.ledger.is_ready()
    }

    pub(super) fn due(&self) -> Option<Instant> {
        let servers = self.links.values().filter_map(Process::due);
        servers.chain(self.client.poll_timeout()).min()
    }

    fn choose(&mut self, n: u32) -> u32 {
        self.schedule.as_mut().map_or(0, |choice| choice.choose(n))
    }

    fn one_in(&mut self, n: u32) -> bool {
        self.schedule
            .as_mut()
            .is_some_and(|choice| choice.one_in(n))
    }

    /// Time passes to when something is due, or somewhat later.
    fn pass_time(&mut self) -> bool {
        let Some(due) = self.due() else {
            return false;
        };
        self.still = if due > self.now { 0 } else { self.still };
        self.now = self.now.max(due);
        if self.one_in(8) {
            let late = self.choose(2_000);
            self.now = self.now + millis(u64::from(late));
        }
        for process in self.links.values_mut() {
            process.tick(self.now);
        }
        if let Some(due) = self.client.poll_timeout().filter(|due| *due <= self.now) {
            self.tell(None, Event::TimePassed, "time");
            // An odd clock may have said that it is not time yet.
            if due <= self.told {
                let judged = self.border.on_wake(self.acted);
                self.judge(judged);
            }
            let stuck = self.client.poll_timeout().filter(|due| *due <= self.told);
            if let Some(due) = stuck.filter(|_| self.breach.is_none()) {
                let detail = format!("still due at {due} after the time {}", self.told);
                self.judge(Err((Rule::Timer, detail)));
            }
        }
        true
    }

    /// The head of a lane reaches its end.
    fn arrive(&mut self, link: LinkId, lane: Lane) {
        let Some(process) = self.links.get_mut(&link) else {
            return;
        };
        match lane {
            Lane::Control => match process.control.pop_front() {
                Some(Control::Opened) => {
                    self.tell(Some(link), Event::LinkOpened { link }, "opened");
                }
                Some(Control::Failed(failure)) => {
                    let shown = format!("not opened: {}", failure.detail);
                    self.tell(Some(link), Event::LinkFailed { link, failure }, &shown);
                }
                Some(Control::Written(spent)) => {
                    self.tell(Some(link), Event::LinkWritten { link, spent }, "");
                }
                Some(Control::WriteFailed(failure)) => {
                    let shown = format!("write failed: {}", failure.detail);
                    self.tell(Some(link), Event::LinkWriteFailed { link, failure }, &shown);
                }
                None => {}
            },
            Lane::Input => self.let_read(link),
            Lane::Stdout => self.arrive_output(link),
            Lane::Stderr => match process.stderr.pop_front() {
                Some(Chunk::Bytes(bytes)) => {
                    let shown = format!("{} bytes of stderr", bytes.len());
                    let bytes = &bytes;
                    self.tell(Some(link), Event::LinkStderr { link, bytes }, &shown);
                }
                Some(Chunk::End) => self.tell(Some(link), Event::LinkStderrEnded { link }, ""),
                None => {}
            },
            Lane::Exit => {
                if let Some(exit) = process.exit.take() {
                    let event = Event::LinkExited { link, exit };
                    self.tell(Some(link), event, &exit.to_string());
                }
            }
        }
    }

    /// A fact about the ledger's file reaches the client.
    fn arrive_ledger(&mut self) {
        if let Some(fact) = self.ledger.arrive() {
            self.tell(None, fact.event(), "");
        }
    }

    fn let_read(&mut self, link: LinkId) {
        let waiting = self.links.get(&link).map_or(0, Process::input_len);
        let most = match self.choose(4) {
            3 => 1,
            2 => 1 + self.choose(u32::try_from(waiting).unwrap_or(u32::MAX)) as usize,
            _ => waiting,
        };
        let Some(process) = self.links.get_mut(&link) else {
            return;
        };
        process.read(most, self.now);
        if let Some(complaint) = process.complaint().filter(|_| self.trusts_servers) {
            let broken = (Rule::Server, complaint.to_owned());
            self.judge(Err(broken));
        }
    }

    /// One write of the server arrives, cut into reads. Unless a schedule decides otherwise nothing
    /// happens between those.
    fn arrive_output(&mut self, link: LinkId) {
        let Some(process) = self.links.get_mut(&link) else {
            return;
        };
        let bytes = match process.stdout.pop_front() {
            None => return,
            Some(Chunk::End) => {
                self.tell(Some(link), Event::LinkEnded { link }, "output ended");
                return;
            }
            Some(Chunk::Bytes(bytes)) => bytes,
        };
        self.journal
            .add_lines(self.now, link, Way::ToClient, &bytes);
        if self.schedule.is_none() {
            self.border.on_read(link, bytes.len());
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let size = self.size_of_read(rest.len());
            let (head, tail) = rest.split_at(size.min(rest.len()));
            rest = tail;
            self.tell(Some(link), Event::LinkData { link, bytes: head }, "");
            let stays = self.links.contains_key(&link);
            // Something else may come between two reads of one write, and so it does when the client wants
            // no more of it now. Without a schedule a write arrives as a whole, however it is cut: where the
            // client stops reading would depend on that.
            let held = self.schedule.is_some() && !self.client.wants_read(link);
            if stays && !rest.is_empty() && (held || self.one_in(4)) {
                let kept = Chunk::Bytes(rest.to_vec());
                if let Some(process) = self.links.get_mut(&link) {
                    process.stdout.push_front(kept);
                }
                return;
            }
            if !stays || self.breach.is_some() {
                return;
            }
        }
    }

    /// How much of so many bytes arrives in one read.
    fn size_of_read(&mut self, waiting: usize) -> usize {
        let cuts = match self.splits {
            Splits::AsWritten => return waiting,
            Splits::OneByte => return 1,
            Splits::Chosen => self.cuts.as_mut().or(self.schedule.as_mut()),
        };
        match cuts.map(|cuts| (cuts.choose(4), cuts)) {
            Some((3, _)) => 1,
            Some((2, cuts)) => 1 + cuts.choose(u32::try_from(waiting).unwrap_or(u32::MAX)) as usize,
            _ => waiting,
        }
    }

    /// Tells the client a fact, and performs what it wants done.
    fn tell(&mut self, link: Option<LinkId>, event: Event<'_>, shown: &str) {
        if self.breach.is_some() {
            return;
        }
        let mut at = self.now;
        if self.odd_clock {
            at = match self.choose(16) {
                15 => Instant::ZERO,
                14 => self.told,
                13 => Instant::from_nanos(self.told.as_nanos() / 2),
                12 if self.one_in(8) => {
                    self.now = self.now + Duration::from_secs(400 * 86_400);
                    self.now
                }
                _ => at,
            };
        }
        if !shown.is_empty() {
            self.journal.add(self.now, link, shown.into());
        }
        self.told = self.told.max(at);
        self.border.on_fact(&event, self.told);
        self.client.handle(event, at);
        self.acted = false;
        self.settle();
    }

    /// Judges and performs actions until there are none.
    pub(super) fn settle(&mut self) {
        while self.breach.is_none() {
            let Some(action) = self.client.poll_action() else {
                break;
            };
            self.acted = true;
            self.record(&action);
            let mut judged = self.border.on_action(&action, self.told);
            judged = judged.and_then(|()| self.judge_ledger(&action));
            if judged.is_ok() {
                self.perform(action);
            }
            self.judge(judged);
        }
        self.border.on_drained();
        if self.breach.is_none() {
            let judged = self.border.check_timers(self.client.poll_timeout());
            self.judge(judged);
            let judged = self.border.check_owed();
            self.judge(judged);
            if self.acted {
                let judged = self.border.books.check(&self.client);
                self.judge(judged);
            }
            let judged = self.border.consent.look(&self.client, self.acted);
            self.judge(judged);
            // Counting takes longer than a read of some bytes does.
            self.settled = self.settled.wrapping_add(1);
            if self.acted || self.settled.is_multiple_of(8) {
                let judged = self.border.check_buffers(&self.client);
                self.judge(judged);
            }
        }
    }

    fn judge_ledger(&mut self, action: &Action) -> Result<(), (Rule, String)> {
        let charged = self.border.books.charged();
        match action {
            Action::Deliver(News::Closed) => self.ledger.on_closed(charged),
            _ => self.ledger.judge(action, charged),
        }
    }

    fn record(&mut self, action: &Action) {
        if let Some(fingerprint) = &mut self.fingerprint {
            match action {
                Action::Write { link, bytes } => {
                    (link.peer, link.serial, bytes).hash(fingerprint);
                }
                other => format!("{other:?}").hash(fingerprint),
            }
        }
        let (link, shown) = match action {
            Action::Write { link, bytes } => {
                self.journal
                    .add_lines(self.now, *link, Way::ToServer, bytes);
                return;
            }
            Action::Deliver(News::PeerChanged { peer }) => (
                LinkId {
                    peer: *peer,
                    serial: 0,
                },
                "→ changed",
            ),
            Action::Deliver(news) => {
                self.journal
                    .add(self.now, None, format!("→ {}", show_news(news)));
                return;
            }
            Action::OpenLink { link, .. } => (*link, "→ open"),
            Action::CloseInput { link } => (*link, "→ close input"),
            Action::Terminate { link, force: false } => (*link, "→ terminate"),
            Action::Terminate { link, .. } => (*link, "→ kill"),
            Action::Release { link } => (*link, "→ release"),
            _ => return,
        };
        self.journal.add(self.now, Some(link), shown.into());
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::OpenLink { link, .. } => {
                let process = self.start(link);
                self.links.insert(link, process);
            }
            Action::Write { link, bytes } => {
                self.sent.entry(link).or_default().extend(&bytes);
                if let Some(process) = self.links.get_mut(&link) {
                    process.write(bytes);
                }
            }
            Action::CloseInput { link } => {
                if let Some(process) = self.links.get_mut(&link) {
                    process.close_input();
                }
            }
            Action::Terminate { link, force } => {
                if let Some(process) = self.links.get_mut(&link) {
                    process.signal(force);
                }
            }
            Action::Release { link } => {
                self.links.remove(&link);
                self.released.push(link);
            }
            Action::ReadLedger { .. } => self.ledger.perform_read(),
            Action::AppendLedger { line, .. } => self.ledger.perform_append(&line),
            Action::Deliver(news) => {
                self.remember(&news);
                self.news.push_back(news);
            }
            _ => {}
        }
    }

    /// What the application will want to say something about.
    fn remember(&mut self, news: &News) {
        match news {
            News::Ended(ended) => {
                if let Outcome::InputRequired(pending) = &ended.outcome {
                    self.continuations.push(pending.continuation.clone());
                }
            }
            News::OpenSource { operation, request } => {
                self.sources.push((*operation, request.source));
            }
            News::RetryQuestion(asked) => {
                self.retry_questions.push((asked.operation, asked.question));
            }
            _ => {}
        }
    }

    fn start(&self, link: LinkId) -> Process {
        let name = self.names.get(link.peer.index());
        let name = name.map_or("", String::as_str);
        match self.scripts.get(name) {
            _ if self.unopened.contains(name) => Process::nothing(self.now),
            Some(script) if !self.unspawnable.contains(name) => {
                let script = script.clone();
                let script = if link.serial > 1 {
                    script.respawned()
                } else {
                    script
                };
                Process::spawn(script, self.now)
            }
            _ => Process::refused(self.now),
        }
    }
}
