//! A client of one peer that is driven by hand.
#![allow(dead_code, unreachable_pub)] // each test binary uses its own part

use mcp_proto::types::{InputRequired, InputResponses};
use mcp_proto::wire::Json;
use mcp_proto::{
    Action, Client, Config, Duration, Ended, ErrorKind, Event, Identity, Instant, LinkId, News,
    Operation, OperationId, Options, Outcome, PeerConfig, PeerId, Question, Ran,
};
use serde_json::Value;

/// The first life of the peer.
pub const LINK: LinkId = LinkId {
    peer: PeerId::new(0),
    serial: 1,
};

pub struct Hand {
    pub client: Client,
    pub now: Instant,
    pub ended: Vec<Ended>,
    pub progress: usize,
    /// What the application was asked.
    pub asked: Vec<InputRequired>,
    /// The number of the latest of these questions.
    pub question: Question,
    /// The present life of the peer.
    pub link: LinkId,
}

impl Hand {
    /// A peer that is not started again when it is lost.
    pub fn new(allow_legacy: bool) -> Self {
        Self::with(Identity::default(), |peer| {
            peer.allow_legacy = allow_legacy;
            peer.restart.max_attempts = 0;
        })
    }

    pub fn with(identity: Identity, adapt: impl FnOnce(&mut PeerConfig)) -> Self {
        let mut peer = PeerConfig::stdio("srv", "srv", Vec::<String>::new());
        peer.limits.line_bytes = 1 << 16;
        adapt(&mut peer);
        let config = Config::new(vec![peer]).pin(
            &mut |name| (name == "PATH").then(|| "/bin".into()),
            &mut |_| Some("/bin/srv".into()),
        );
        let mut client = Client::new(config, identity, Instant::ZERO);
        client.connect(Instant::ZERO);
        let mut hand = Self {
            client,
            now: Instant::ZERO,
            ended: Vec::new(),
            progress: 0,
            asked: Vec::new(),
            question: Question::new(1),
            link: LINK,
        };
        hand.tell(Event::LinkOpened { link: LINK });
        hand
    }

    /// A modern peer with the tool `echo`, everything written.
    pub fn modern() -> Self {
        let mut hand = Self::new(false);
        hand.introduce(1);
        hand
    }

    /// The peer proves to be modern and lists the tool `echo`, in answer to the requests from this id on.
    pub fn introduce(&mut self, id: u64) {
        self.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{{}}}}}}"#));
        self.written();
        let id = id + 1;
        self.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","tools":[{{"name":"echo","inputSchema":{{}}}}]}}}}"#));
        self.written();
    }

    /// Tells a fact; gives the messages that are written in return.
    pub fn tell(&mut self, event: Event<'_>) -> Vec<Value> {
        self.client.handle(event, self.now);
        self.drain()
    }

    pub fn drain(&mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(action) = self.client.poll_action() {
            match action {
                Action::OpenLink { link, .. } => self.link = link,
                Action::Write { bytes, .. } => {
                    let lines = bytes
                        .split(|byte| *byte == b'\n')
                        .filter(|line| !line.is_empty());
                    messages
                        .extend(lines.map(|line| serde_json::from_slice::<Value>(line).unwrap()));
                }
                Action::Deliver(News::Ended(ended)) => self.ended.push(*ended),
                Action::Deliver(News::Progress { .. }) => self.progress += 1,
                Action::Deliver(News::InputNeeded {
                    question, input, ..
                }) => {
                    self.question = question;
                    self.asked.push(*input);
                }
                _ => {}
            }
        }
        messages
    }

    /// Answers the latest question.
    pub fn reply(
        &mut self,
        operation: OperationId,
        responses: &InputResponses,
    ) -> Result<(), mcp_proto::Error> {
        self.client
            .answer(operation, self.question, responses, self.now)
    }

    pub fn say(&mut self, line: &str) -> Vec<Value> {
        let bytes = format!("{line}\n");
        self.tell(Event::LinkData {
            link: self.link,
            bytes: bytes.as_bytes(),
        })
    }

    pub fn written(&mut self) -> Vec<Value> {
        self.tell(Event::LinkWritten {
            link: self.link,
            spent: Vec::new(),
        })
    }

    pub fn submit(&mut self, operation: Operation) -> Vec<Value> {
        self.client.submit(operation, self.now).unwrap();
        self.drain()
    }

    pub fn echo(&mut self) -> Vec<Value> {
        let call = Operation::call("echo", Json::parse("{}").ok()).on("srv");
        self.submit(call.with(Options {
            progress: true,
            ..Options::default()
        }))
    }

    pub fn wait(&mut self, span: Duration) -> Vec<Value> {
        self.now = self.now + span;
        self.tell(Event::TimePassed)
    }

    pub fn last_error(&self) -> Option<(ErrorKind, Ran)> {
        match &self.ended.last()?.outcome {
            Outcome::Failed(error) => Some((error.kind(), error.ran)),
            _ => None,
        }
    }
}

pub fn methods(messages: &[Value]) -> Vec<&str> {
    messages
        .iter()
        .filter_map(|message| message["method"].as_str())
        .collect()
}
