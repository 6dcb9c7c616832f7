//! The World: a client, its servers, the pipes between them and time itself, all simulated.
//!
//! Nothing waits: time jumps to the next moment at which something is due. Whatever is on its way (bytes,
//! exits, write credit) waits in lanes; a schedule decides what arrives next. Every action of the client
//! is judged at the border before it takes effect, so that an invariant holds there and not in some
//! test: a broken one stops the World, and [`World::verdict`] gives it with everything that led to it.

mod asked;
mod border;
mod breach;
mod choice;
mod consent;
mod conversation;
mod duties;
mod held;
mod journal;
mod ledger;
mod money;
mod output;
mod process;
mod run;
mod setup;
mod streaming;
mod transcript;

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::Hasher;

use mcp_fake_server::Script;
use mcp_proto::continuation::Source;
use mcp_proto::types::{InputRequired, InputResponses};
use mcp_proto::wire::Json;
use mcp_proto::{
    Client, Config, Continuation, Duration, Ended, Identity, Instant, LinkId, News, Operation,
    OperationId, Question, Request,
};

pub use breach::{Breach, Rule};
pub use choice::{Bytes, Choice, pick};
pub use ledger::LedgerFault;
pub use process::Fault;
pub use transcript::{abbreviate, news as show_news, outcome as show_outcome};

use border::Border;
use breach::Broken;
use journal::Journal;
use ledger::Ledger;
use process::Process;

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
    ledger: Ledger,
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
    /// What operations ended with because they needed input.
    continuations: Vec<Continuation>,
    /// The sources that were to be opened.
    sources: Vec<(OperationId, Source)>,
    /// What it was asked about retries.
    retry_questions: Vec<(OperationId, Question)>,
    /// Whether anything came of the last fact.
    acted: bool,
    /// How often the client has been drained.
    settled: u8,
    /// Turns since time last passed.
    still: u32,
    /// Kept only where it is asked for: it costs more than the client itself.
    fingerprint: Option<DefaultHasher>,
    breach: Option<Box<Breach>>,
}

impl World {
    /// A world with a client of this configuration. Peers run the scripts of their names; those without
    /// one cannot be spawned.
    #[must_use]
    pub fn new(config: Config, identity: Identity, scripts: Vec<(String, Script)>) -> Self {
        let border = Border::new(&config, identity.log_level().is_some());
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
            ledger: Ledger::default(),
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
            continuations: Vec::new(),
            sources: Vec::new(),
            retry_questions: Vec::new(),
            acted: false,
            settled: 0,
            still: 0,
            fingerprint: None,
            breach: None,
        }
    }

    /// What stands in the ledger's file; `None` when there is none.
    #[must_use]
    pub fn ledger(&self) -> Option<String> {
        let contents = self.ledger.contents.as_ref()?;
        Some(String::from_utf8_lossy(contents).into_owned())
    }

    /// The present.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Opens all peers.
    pub fn connect(&mut self) {
        self.client.connect(self.now);
        self.told = self.told.max(self.now);
        self.settle();
    }

    /// Submits an operation.
    ///
    /// # Errors
    /// Those of [`Client::submit`].
    pub fn submit(&mut self, mut operation: Operation) -> Result<OperationId, mcp_proto::Error> {
        self.stamps += 1;
        let mut stamp = self.stamps;
        let mut resumes = false;
        if let Request::Resume { continuation, .. } = &operation.request {
            // It goes on under the stamp that it had.
            stamp = stamp_of(continuation).unwrap_or(stamp);
            resumes = true;
        }
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
                let judged = self.border.on_refused(stamp, resumes);
                self.judge(judged);
                let judged = self.border.books.on_refused(&operation, error);
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
        self.border.on_finish(operation);
        self.client.finish(operation, self.now);
        self.told = self.told.max(self.now);
        self.settle();
    }

    /// Answers what the application is asked about an operation.
    ///
    /// # Errors
    /// Those of [`Client::answer`].
    pub fn answer(
        &mut self,
        operation: OperationId,
        responses: &InputResponses,
    ) -> Result<(), mcp_proto::Error> {
        let asked = self.border.question(operation);
        let question = asked.unwrap_or(Question::new(1));
        let answered = self.client.answer(operation, question, responses, self.now);
        self.told = self.told.max(self.now);
        let how = if answered.is_ok() { "" } else { ", refused" };
        self.note(format!(
            "answer {operation} {}{how}",
            responses.to_json().as_str()
        ));
        let judged = self.border.on_answered(operation, responses, &answered);
        self.judge(judged);
        self.settle();
        answered
    }

    /// Says what came of the latest question about an operation, or of the one `before` it.
    pub fn reply(
        &mut self,
        operation: OperationId,
        before: u32,
        responses: Option<&InputResponses>,
    ) {
        let latest = self.border.question(operation).map_or(1, Question::number);
        let question = Question::new(latest.wrapping_sub(before));
        self.client.reply(operation, question, responses, self.now);
        self.told = self.told.max(self.now);
        let said = responses.map_or_else(|| "nothing".into(), |said| said.to_json().to_string());
        self.note(format!("reply {operation} {question} {said}"));
        self.border.on_replied(operation, question, responses);
        self.settle();
    }

    /// What the application is asked, oldest operation first.
    pub fn asked(&self) -> impl DoubleEndedIterator<Item = (OperationId, &InputRequired)> {
        self.border.asked()
    }

    /// What operations ended with because they needed input, oldest first.
    #[must_use]
    pub fn continuations(&self) -> &[Continuation] {
        &self.continuations
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
            if let Some(ended) = self.take_end(operation) {
                return Some(ended);
            }
            if !self.turn() {
                return None;
            }
        }
    }

    /// The same, but no longer than that long from now.
    pub fn run_until_ended_within(
        &mut self,
        operation: OperationId,
        span: Duration,
    ) -> Option<Ended> {
        let end = self.now + span;
        loop {
            if let Some(ended) = self.take_end(operation) {
                return Some(ended);
            }
            let goes_on = self.is_busy() || self.due().is_some_and(|due| due <= end);
            if !goes_on || !self.turn() {
                self.now = self.now.max(end);
                return None;
            }
        }
    }

    fn take_end(&mut self, operation: OperationId) -> Option<Ended> {
        let is_end =
            |news: &News| matches!(news, News::Ended(ended) if ended.operation == operation);
        let position = self.news.iter().position(is_end)?;
        match self.news.remove(position) {
            Some(News::Ended(ended)) => Some(*ended),
            _ => None,
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

    fn link_of(&self, peer: &str) -> Option<LinkId> {
        let index = self.names.iter().position(|name| name == peer)?;
        let links = self.links.keys().rev();
        links.copied().find(|link| link.peer.index() == index)
    }

    fn note(&mut self, line: String) {
        self.journal.add(self.now, None, line);
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

/// The stamp of the operation that a continuation goes on with.
fn stamp_of(continuation: &Continuation) -> Option<u64> {
    let meta = continuation.request().meta()?.to_text();
    let meta: serde_json::Value = serde_json::from_str(&meta).ok()?;
    meta[conversation::STAMP].as_u64()
}

fn request_name(operation: &Operation) -> String {
    let name = match &operation.request {
        Request::ListTools => "tools/list".into(),
        Request::ListResources => "resources/list".into(),
        Request::ListResourceTemplates => "resources/templates/list".into(),
        Request::ListPrompts => "prompts/list".into(),
        Request::CallTool(call) if operation.options.stream.is_some() => {
            format!("stream {}", call.tool)
        }
        Request::CallTool(call) => format!("call {}", call.tool),
        Request::ReadResource { uri } => format!("read {uri}"),
        Request::GetPrompt { name, .. } => format!("prompt {name}"),
        Request::Complete { argument, .. } => format!("complete {argument}"),
        Request::Resume { .. } => "resume".into(),
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
