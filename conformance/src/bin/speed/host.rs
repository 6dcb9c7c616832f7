//! A host that drives the core by hand: no I/O, just bytes in and bytes out.

use mcp_proto::wire::Json;
use mcp_proto::{
    Action, Client, Config, Ended, Event, Identity, Instant, LinkId, News, Operation, PeerConfig,
};

use crate::payload;

/// What every message of this client and every answer to it begins with.
const HEAD: &[u8] = br#"{"jsonrpc":"2.0","id":"#;
/// As much as a read from a pipe gives.
const CHUNK_BYTES: usize = 64 << 10;

/// A client of one modern server that is connected as far as its list of tools, which is not answered yet.
pub(crate) struct Host {
    client: Client,
    link: LinkId,
    now: u64,
    /// The id of the last request, as it was written.
    id: Vec<u8>,
    response: Vec<u8>,
    arguments: Json,
}

impl Host {
    /// Connects until the list of tools is asked for.
    pub(crate) fn asking() -> Self {
        let pinned = Config::new(vec![PeerConfig::stream("speed")])
            .pin(&mut |_| None, &mut |program| Some(program.to_owned()));
        let mut client = Client::new(pinned, Identity::default(), Instant::ZERO);
        client.connect(Instant::ZERO);
        let Some(Action::OpenLink { link, .. }) = client.poll_action() else {
            panic!("the client opens a link");
        };
        client.handle(Event::LinkOpened { link }, Instant::ZERO);
        let arguments = Json::parse(payload::ARGUMENTS).expect("valid JSON");
        let mut host = Self {
            client,
            link,
            now: 0,
            id: Vec::new(),
            response: Vec::new(),
            arguments,
        };
        host.reply(payload::DISCOVERED);
        host
    }

    /// Connects; the server has ten tools.
    pub(crate) fn connected() -> Self {
        let mut host = Self::asking();
        host.reply(&payload::tools_result(10, 6_000));
        assert!(host.client.is_settled());
        host
    }

    /// Takes bytes of the server.
    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        let now = self.tick();
        for bytes in bytes.chunks(CHUNK_BYTES) {
            let link = self.link;
            self.client.handle(Event::LinkData { link, bytes }, now);
        }
    }

    /// Submits the call under its canonical name.
    pub(crate) fn call(&mut self) {
        let call = Operation::call(payload::TOOL, Some(self.arguments.clone()));
        let now = self.tick();
        self.client.submit(call, now).expect("the tool is there");
    }

    /// Answers what has been asked with this result.
    pub(crate) fn reply(&mut self, result: &str) {
        self.written();
        let mut response = std::mem::take(&mut self.response);
        response.clear();
        let (id, result) = (self.id.as_slice(), result.as_bytes());
        for part in [HEAD, id, br#","result":"#, result, b"}\n"] {
            response.extend_from_slice(part);
        }
        self.receive(&response);
        self.response = response;
    }

    /// The id of the last request.
    pub(crate) fn id(&self) -> &str {
        std::str::from_utf8(&self.id).expect("digits")
    }

    /// Performs the one write that is due and takes note of the id in it.
    pub(crate) fn written(&mut self) {
        loop {
            match self.client.poll_action() {
                Some(Action::Write { link, bytes }) => {
                    let id = bytes.strip_prefix(HEAD).expect("a request");
                    let digits = id.iter().take_while(|byte| byte.is_ascii_digit());
                    self.id.clear();
                    self.id.extend(digits);
                    let now = self.tick();
                    let spent = bytes;
                    self.client.handle(Event::LinkWritten { link, spent }, now);
                    return;
                }
                Some(_) => {}
                None => panic!("nothing is written"),
            }
        }
    }

    /// The end of the operation that has just been answered.
    pub(crate) fn ended(&mut self) -> Box<Ended> {
        loop {
            match self.client.poll_action() {
                Some(Action::Deliver(News::Ended(ended))) => return ended,
                Some(_) => {}
                None => panic!("nothing has ended"),
            }
        }
    }

    /// When the driver would have to wake the client.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.client.poll_timeout()
    }

    fn tick(&mut self) -> Instant {
        self.now += 1_000;
        Instant::from_nanos(self.now)
    }
}
