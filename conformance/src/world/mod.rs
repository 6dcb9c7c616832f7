//! The World: a client, its servers, the pipes between them and time itself, all simulated.
//!
//! Nothing waits: time jumps to the next moment at which something is due. Whatever is on its way (bytes,
//! exits, write credit) waits in lanes; a schedule decides what arrives next. Every action of the client
//! is judged at the border before it takes effect, so that an invariant holds there and not in some
//! test: a broken one stops the World, and [`World::verdict`] gives it with everything that led to it.

mod border;
mod breach;
mod choice;
mod conversation;
mod journal;
mod process;
mod transcript;

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{Hash as _, Hasher};

use mcp_fake_server::Script;
use mcp_proto::wire::Json;
use mcp_proto::{
    Action, Client, Config, Duration, Ended, Event, Exit, Identity, Instant, LinkId, News,
    Operation, OperationId, PeerId, Request,
};

pub use breach::{Breach, Rule};
pub use choice::{Bytes, Choice, pick};
pub use process::Fault;
pub use transcript::{abbreviate, news as show_news, outcome as show_outcome};

use border::Border;
use breach::Broken;
use journal::{Journal, Way};
use process::{Chunk, Control, LANES, Lane, Process};

/// How the servers' output is cut into reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Splits {
    /// As it was written.
    #[default]
    AsWritten,
    /// A byte at a time.
    OneByte,
    /// As the schedule (or [`World::with_cuts`]) chooses.
    Chosen,
}

/// The simulator.
///
/// Dropping a World whose client broke a rule panics, unless [`World::verdict`] was asked.
pub struct World {
    /// The client under test.
    pub client: Client,
    now: Instant,
    /// The latest time that the client was told.
    told: Instant,
    names: Vec<String>,
    scripts: BTreeMap<String, Script>,
    unspawnable: BTreeSet<String>,
    unopened: BTreeSet<String>,
    links: BTreeMap<LinkId, Process>,
    released: Vec<LinkId>,
    border: Border,
    stamped: bool,
    stamps: u64,
    splits: Splits,
    schedule: Option<Box<dyn Choice>>,
    cuts: Option<Box<dyn Choice>>,
    odd_clock: bool,
    trusts_servers: bool,
    sent: BTreeMap<LinkId, Vec<u8>>,
    journal: Journal,
    news: VecDeque<News>,
    /// Kept only where it is asked for: it costs more than the client itself.
    fingerprint: Option<DefaultHasher>,
    breach: Option<Box<Breach>>,
}

impl World {
    /// A world with a client of this configuration. Peers run the scripts of their names; those without
    /// one cannot be spawned.
    #[must_use]
    pub fn new(config: Config, identity: Identity, scripts: Vec<(String, Script)>) -> Self {
        let border = Border::new(&config.peers);
        let names: Vec<String> = config.peers.iter().map(|peer| peer.name.clone()).collect();
        let path = |name: &str| (name == "PATH").then(|| "/bin".to_owned());
        let pinned = config.pin(&mut { path }, &mut |file| Some(file.to_owned()));
        let now = Instant::ZERO;
        Self {
            client: Client::new(pinned, identity, now),
            now,
            told: now,
            names: names.clone(),
            scripts: scripts.into_iter().collect(),
            unspawnable: BTreeSet::new(),
            unopened: BTreeSet::new(),
            links: BTreeMap::new(),
            released: Vec::new(),
            border,
            stamped: false,
            stamps: 0,
            splits: Splits::AsWritten,
            schedule: None,
            cuts: None,
            odd_clock: false,
            trusts_servers: true,
            sent: BTreeMap::new(),
            journal: Journal::new(names),
            news: VecDeque::new(),
            fingerprint: None,
            breach: None,
        }
    }

    /// Lets a schedule decide what arrives next, how much the server reads at once and when timers
    /// fire. Without one everything arrives as soon as it can, in the order of peers.
    #[must_use]
    pub fn with_schedule(mut self, schedule: impl Choice + 'static) -> Self {
        self.schedule = Some(Box::new(schedule));
        self
    }

    /// Cuts the servers' output in this way.
    #[must_use]
    pub const fn with_splits(mut self, splits: Splits) -> Self {
        self.splits = splits;
        self
    }

    /// Cuts the servers' output where this chooses, and changes nothing else.
    #[must_use]
    pub fn with_cuts(mut self, cuts: impl Choice + 'static) -> Self {
        self.splits = Splits::Chosen;
        self.cuts = Some(Box::new(cuts));
        self
    }

    /// Marks every operation with a `_meta` key of its own, so that the border knows which request is
    /// whose.
    #[must_use]
    pub fn with_stamps(mut self) -> Self {
        self.stamped = true;
        self.border.use_stamps();
        self
    }

    /// Lets the client's clock stand still, go backwards, run late and jump, as the schedule chooses.
    #[must_use]
    pub const fn with_odd_clock(mut self) -> Self {
        self.odd_clock = true;
        self
    }

    /// What a server says about the client does not count: a generated one may be of several eras at
    /// once and complain about good answers.
    #[must_use]
    pub const fn with_untrusted_servers(mut self) -> Self {
        self.trusts_servers = false;
        self
    }

    /// Keeps a digest of every action: [`World::fingerprint`].
    #[must_use]
    pub fn with_fingerprint(mut self) -> Self {
        self.fingerprint = Some(DefaultHasher::new());
        self
    }

    /// The start of this peer's process never comes to an end.
    #[must_use]
    pub fn with_endless_start(mut self, peer: &str) -> Self {
        self.unopened.insert(peer.into());
        self
    }

    /// The program of this peer does not exist.
    #[must_use]
    pub fn with_spawn_failure(mut self, peer: &str) -> Self {
        self.unspawnable.insert(peer.into());
        self
    }

    /// The present.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Opens all peers.
    pub fn connect(&mut self) {
        self.client.connect(self.now);
        self.settle();
    }

    /// Submits an operation.
    ///
    /// # Errors
    /// Those of [`Client::submit`].
    pub fn submit(&mut self, mut operation: Operation) -> Result<OperationId, mcp_proto::Error> {
        self.stamps += 1;
        let stamp = self.stamps;
        if self.stamped && operation.options.meta.is_none() {
            let meta = format!(r#"{{"{}":{stamp}}}"#, conversation::STAMP);
            operation.options.meta = Json::parse(&meta).ok();
        }
        let accepted = self.client.submit(operation.clone(), self.now);
        self.told = self.told.max(self.now);
        match &accepted {
            Ok(id) => {
                let what = request_name(&operation);
                self.note(format!("submit {id} {what}"));
                self.border.on_accepted(*id, stamp, &operation);
            }
            Err(error) => {
                self.note(format!("refused: {error}"));
                let judged = self.border.on_refused(stamp);
                self.judge(judged);
            }
        }
        self.settle();
        accepted
    }

    /// Cancels an operation.
    pub fn cancel(&mut self, operation: OperationId) {
        self.note(format!("cancel {operation}"));
        self.client.cancel(operation, self.now);
        self.told = self.told.max(self.now);
        self.settle();
        if self.breach.is_none() && !self.border.has_ended(operation) {
            let detail = format!("{operation} was cancelled and goes on");
            self.judge(Err((Rule::EndsOnce, detail)));
        }
    }

    /// Ends a listening operation.
    pub fn finish(&mut self, operation: OperationId) {
        self.note(format!("finish {operation}"));
        self.client.finish(operation, self.now);
        self.told = self.told.max(self.now);
        self.settle();
    }

    /// Does something to the process of a peer, if there is one.
    pub fn inject(&mut self, peer: &str, fault: Fault) {
        let link = self.link_of(peer);
        self.journal.add(self.now, link, format!("{fault:?}"));
        if let Some(process) = link.and_then(|link| self.links.get_mut(&link)) {
            process.inject(fault);
        }
    }

    /// Runs until the operation has ended, or nothing is due any more.
    pub fn run_until_ended(&mut self, operation: OperationId) -> Option<Ended> {
        loop {
            let position = self.news.iter().position(
                |news| matches!(news, News::Ended(ended) if ended.operation == operation),
            );
            if let Some(position) = position {
                return match self.news.remove(position) {
                    Some(News::Ended(ended)) => Some(*ended),
                    _ => None,
                };
            }
            if !self.turn() {
                return None;
            }
        }
    }

    /// Submits an operation and runs until it has ended.
    ///
    /// # Errors
    /// Those of [`Client::submit`].
    ///
    /// # Panics
    /// If the operation never ends.
    pub fn run(&mut self, operation: Operation) -> Result<Ended, mcp_proto::Error> {
        let id = self.submit(operation)?;
        match self.run_until_ended(id) {
            Some(ended) => Ok(ended),
            None => panic!("{id} never ended\n{}", self.transcript()),
        }
    }

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
        let count = u32::try_from(ready.len()).unwrap_or(u32::MAX);
        // Now and then time passes although something is on its way.
        let early = count > 0 && self.due().is_some() && self.one_in(32);
        if count == 0 || early {
            return self.pass_time();
        }
        let index = self.choose(count);
        if let Some((link, lane)) = ready.get(index as usize) {
            self.arrive(*link, *lane);
        }
        true
    }

    /// Runs until nothing is due, at most until that long from now.
    pub fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        while self.is_busy() || self.due().is_some_and(|due| due <= end) {
            if !self.turn() {
                return;
            }
        }
        self.now = self.now.max(end);
    }

    /// Closes the client and runs until nothing is left.
    pub fn close(&mut self) {
        self.note("close".into());
        self.client.close(self.now);
        self.told = self.told.max(self.now);
        self.settle();
        while !self.client.is_closed() && self.turn() {}
    }

    /// What has been delivered to the application and was not taken yet.
    pub fn take_news(&mut self) -> Vec<News> {
        self.news.drain(..).collect()
    }

    /// The operations that have neither ended nor listen.
    #[must_use]
    pub fn running(&self) -> Vec<OperationId> {
        self.border.running().collect()
    }

    /// Everything that was written to a peer in all its lives, line by line.
    #[must_use]
    pub fn sent_to(&self, peer: &str) -> String {
        let index = self.names.iter().position(|name| name == peer);
        let lives = self.sent.iter();
        lives
            .filter(|(link, _)| Some(link.peer.index()) == index)
            .map(|(_, bytes)| String::from_utf8_lossy(bytes))
            .collect()
    }

    /// Everything that happened, one line each.
    #[must_use]
    pub fn transcript(&self) -> String {
        self.journal.render(|_| true)
    }

    /// What happened between the client and one peer, without what the application did and was told.
    #[must_use]
    pub fn transcript_of(&self, peer: &str) -> String {
        let index = self.names.iter().position(|name| name == peer);
        self.journal
            .render(|link| link.is_some_and(|link| Some(link.peer.index()) == index))
    }

    /// A digest of every action in order, bytes included; 0 unless it is kept.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint.as_ref().map_or(0, Hasher::finish)
    }

    /// Whether every rule held so far.
    ///
    /// # Errors
    /// The first broken rule, with the transcript until then.
    pub fn verdict(&mut self) -> Result<(), Box<Breach>> {
        match self.breach.take() {
            Some(breach) => Err(breach),
            None => Ok(()),
        }
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
        let event = match choice.choose(9) {
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

    fn link_of(&self, peer: &str) -> Option<LinkId> {
        let index = self.names.iter().position(|name| name == peer)?;
        let links = self.links.keys().rev();
        links.copied().find(|link| link.peer.index() == index)
    }

    /// Whether something is on its way.
    fn is_busy(&self) -> bool {
        self.links.iter().any(|(link, process)| {
            LANES.into_iter().any(|lane| {
                process.is_ready(lane) && (lane != Lane::Stdout || self.client.wants_read(*link))
            })
        })
    }

    fn due(&self) -> Option<Instant> {
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
        self.now = self.now.max(due);
        if self.one_in(8) {
            let late = self.choose(2_000);
            self.now = self.now + millis(u64::from(late));
        }
        for process in self.links.values_mut() {
            process.tick(self.now);
        }
        if self
            .client
            .poll_timeout()
            .is_some_and(|due| due <= self.now)
        {
            self.tell(None, Event::TimePassed, "time");
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
            Lane::Stderr => {
                if let Some(bytes) = process.stderr.pop_front() {
                    let shown = format!("{} bytes of stderr", bytes.len());
                    let bytes = &bytes;
                    self.tell(Some(link), Event::LinkStderr { link, bytes }, &shown);
                }
            }
            Lane::Exit => {
                if let Some(exit) = process.exit.take() {
                    let event = Event::LinkExited { link, exit };
                    self.tell(Some(link), event, &exit.to_string());
                }
            }
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
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let size = self.size_of_read(rest.len());
            let (head, tail) = rest.split_at(size.min(rest.len()));
            rest = tail;
            self.tell(Some(link), Event::LinkData { link, bytes: head }, "");
            let stays = self.links.contains_key(&link);
            // Something else may come between two reads of one write.
            if stays && !rest.is_empty() && self.one_in(4) {
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
        self.settle();
    }

    /// Judges and performs actions until there are none.
    fn settle(&mut self) {
        while self.breach.is_none() {
            let Some(action) = self.client.poll_action() else {
                break;
            };
            self.record(&action);
            let judged = self.border.on_action(&action, self.told);
            if judged.is_ok() {
                self.perform(action);
            }
            self.judge(judged);
        }
        if self.breach.is_none() {
            let judged = self.border.check_timers(self.client.poll_timeout());
            self.judge(judged);
        }
    }

    fn judge(&mut self, judged: Result<(), Broken>) {
        if let (Err((rule, detail)), None) = (judged, &self.breach) {
            let transcript = self.transcript();
            self.breach = Some(Box::new(Breach {
                rule,
                detail,
                transcript,
            }));
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
            Action::Deliver(news) => self.news.push_back(news),
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

    fn note(&mut self, line: String) {
        self.journal.add(self.now, None, line);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(breach) = self.breach.take()
            && !std::thread::panicking()
        {
            panic!("{breach}");
        }
    }
}

fn request_name(operation: &Operation) -> String {
    let name = match &operation.request {
        Request::ListTools => "tools/list".into(),
        Request::ListResources => "resources/list".into(),
        Request::ListResourceTemplates => "resources/templates/list".into(),
        Request::ListPrompts => "prompts/list".into(),
        Request::CallTool(call) => format!("call {}", call.tool),
        Request::ReadResource { uri } => format!("read {uri}"),
        Request::GetPrompt { name, .. } => format!("prompt {name}"),
        Request::Complete { argument, .. } => format!("complete {argument}"),
        Request::Listen => "listen".into(),
        Request::Settle => "settle".into(),
        other => format!("{other:?}"),
    };
    match &operation.peer {
        Some(peer) => format!("{name} on {peer}"),
        None => name,
    }
}

/// A span of virtual time.
#[must_use]
pub const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}
