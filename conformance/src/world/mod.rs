//! The World: a client, its servers and time itself, all simulated.
//!
//! Nothing waits: time jumps to the next moment at which something is due. Every action of the client is
//! checked before it takes effect, so that an invariant holds at the border and not in some test.

use std::collections::{BTreeMap, VecDeque};

use mcp_fake_server::{FakeServer, Input, Output, Script};
use mcp_proto::config::Config;
use mcp_proto::{
    Action, Client, Duration, Ended, Event, Exit, Identity, Instant, LinkId, News, Operation,
    OperationId,
};

/// How a process is made: a script for each peer, by its name, and one for each later life.
pub type Servers = BTreeMap<String, Script>;

/// The simulator.
pub struct World {
    /// The client under test.
    pub client: Client,
    now: Instant,
    servers: Vec<(String, Script)>,
    links: BTreeMap<LinkId, Life>,
    transcript: Vec<String>,
    news: VecDeque<News>,
}

/// One process.
struct Life {
    server: FakeServer,
    born: Instant,
    reading: bool,
    exited: bool,
}

impl World {
    /// A world with a client of this configuration, whose peers (in its order) run these scripts.
    #[must_use]
    pub fn new(config: Config, identity: Identity, servers: Vec<(String, Script)>) -> Self {
        let pinned = config.pin(&mut |_| None, &mut |program| {
            Some(format!("/bin/{}", program.command))
        });
        let now = Instant::ZERO;
        Self {
            client: Client::new(pinned, identity, now),
            now,
            servers,
            links: BTreeMap::new(),
            transcript: Vec::new(),
            news: VecDeque::new(),
        }
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
    pub fn submit(&mut self, operation: Operation) -> Result<OperationId, mcp_proto::Error> {
        let id = self.client.submit(operation, self.now);
        self.settle();
        id
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
            if !self.step() {
                return None;
            }
        }
    }

    /// Submits an operation and runs until it has ended.
    pub fn run(&mut self, operation: Operation) -> Result<Ended, mcp_proto::Error> {
        let id = self.submit(operation)?;
        self.run_until_ended(id).ok_or_else(|| {
            mcp_proto::Error::general(mcp_proto::error::Cause::Usage(
                "the operation never ended".into(),
            ))
        })
    }

    /// Lets time pass to the next moment at which something is due; `false` when nothing is.
    pub fn step(&mut self) -> bool {
        let servers = self
            .links
            .values()
            .filter(|life| !life.exited)
            .filter_map(|life| life.server.poll_timeout().map(|due| life.born + due));
        let Some(next) = servers.chain(self.client.poll_timeout()).min() else {
            return false;
        };
        self.now = self.now.max(next);
        self.note(format!("{} time passed", self.now));
        self.client.handle(Event::TimePassed, self.now);
        let links: Vec<LinkId> = self.links.keys().copied().collect();
        for link in links {
            self.feed(link, None);
        }
        self.settle();
        true
    }

    /// Closes the client and runs until nothing is left.
    pub fn close(&mut self) {
        self.client.close(self.now);
        self.settle();
        while !self.client.is_closed() && self.step() {}
    }

    /// What has been delivered to the application so far and was not taken yet.
    pub fn take_news(&mut self) -> Vec<News> {
        self.news.drain(..).collect()
    }

    /// Everything that happened, one line each.
    #[must_use]
    pub fn transcript(&self) -> String {
        self.transcript.join("\n")
    }

    fn note(&mut self, line: String) {
        self.transcript.push(line);
    }

    /// Performs actions until there are none.
    fn settle(&mut self) {
        while let Some(action) = self.client.poll_action() {
            self.perform(action);
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::OpenLink { link, .. } => {
                self.note(format!("{} → open {link}", self.now));
                let Some((_, script)) = self.servers.get(link.peer.index()) else {
                    return;
                };
                let script = if link.serial > 1 {
                    script.clone().respawned()
                } else {
                    script.clone()
                };
                let server = FakeServer::new(script);
                let life = Life {
                    server,
                    born: self.now,
                    reading: true,
                    exited: false,
                };
                self.links.insert(link, life);
                self.client.handle(Event::LinkOpened { link }, self.now);
                self.feed(link, None);
            }
            Action::Write { link, bytes } => {
                for line in String::from_utf8_lossy(&bytes).lines() {
                    self.note(format!("{} {link} ⇒ {line}", self.now));
                }
                let reading = self
                    .links
                    .get(&link)
                    .is_some_and(|life| life.reading && !life.exited);
                if reading {
                    self.client.handle(
                        Event::LinkWritten {
                            link,
                            spent: Vec::new(),
                        },
                        self.now,
                    );
                    self.feed(link, Some(Input::Bytes(&bytes)));
                }
            }
            Action::CloseInput { link } => {
                self.note(format!("{} → close input of {link}", self.now));
                self.feed(link, Some(Input::Eof));
            }
            Action::Terminate { link, force } => {
                self.note(format!(
                    "{} → terminate {link}{}",
                    self.now,
                    if force { " (kill)" } else { "" }
                ));
                if force {
                    self.exit(link, Exit::Signal(9));
                }
            }
            Action::Release { link } => {
                self.note(format!("{} → release {link}", self.now));
                self.links.remove(&link);
            }
            Action::Deliver(news) => {
                self.note(format!("{} → {news:?}", self.now));
                self.news.push_back(news);
            }
            other => self.note(format!("{} → {other:?}", self.now)),
        }
    }

    /// Gives a server its input and takes what comes out.
    fn feed(&mut self, link: LinkId, input: Option<Input<'_>>) {
        let Some(life) = self.links.get_mut(&link).filter(|life| !life.exited) else {
            return;
        };
        let age = self.now.since(life.born);
        life.server.handle(input.unwrap_or(Input::Tick), age);
        while let Some(output) = self
            .links
            .get_mut(&link)
            .and_then(|life| life.server.poll_output())
        {
            match output {
                Output::Stdout(bytes) => {
                    for line in String::from_utf8_lossy(&bytes).lines() {
                        self.note(format!("{} {link} ⇐ {line}", self.now));
                    }
                    self.client.handle(
                        Event::LinkData {
                            link,
                            bytes: &bytes,
                        },
                        self.now,
                    );
                }
                Output::Stderr(bytes) => {
                    self.client.handle(
                        Event::LinkStderr {
                            link,
                            bytes: &bytes,
                        },
                        self.now,
                    );
                }
                Output::Exit(code) => self.exit(link, Exit::Code(code)),
                Output::StopReading | Output::CloseStdin => {
                    if let Some(life) = self.links.get_mut(&link) {
                        life.reading = false;
                    }
                }
                _ => {}
            }
        }
    }

    fn exit(&mut self, link: LinkId, exit: Exit) {
        if let Some(life) = self.links.get_mut(&link).filter(|life| !life.exited) {
            life.exited = true;
            self.note(format!("{} {link} {exit}", self.now));
            self.client.handle(Event::LinkEnded { link }, self.now);
            self.client
                .handle(Event::LinkExited { link, exit }, self.now);
        }
    }
}

/// A span of virtual time.
#[must_use]
pub const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}
