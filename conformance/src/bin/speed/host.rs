//! A host that drives the core by hand: no I/O, just bytes in and bytes out.

use mcp_proto::wire::Json;
use mcp_proto::{
    Action, Client, Config, Ended, Event, Identity, Instant, LinkId, News, Operation, PeerConfig,
};

use crate::payload;

/// As much as a read from a pipe gives.
const CHUNK_BYTES: usize = 64 << 10;

/// A client of one modern server that is connected as far as its list of tools, which is not answered yet.
pub(crate) struct Host {
    client: Client,
    link: LinkId,
    now: u64,
    response: Vec<u8>,
    arguments: Json,
}

impl Host {
    /// Connects until the list of tools is asked for.
    pub(crate) fn asking() -> Self {
        let pinned = Config::new(vec![PeerConfig::stream("speed")])
            .pin(&mut |_| None, &mut |program| {
                Some(program.command.to_owned())
            });
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
        let id = self.written();
        self.set_response(id, result);
        let response = std::mem::take(&mut self.response);
        self.receive(&response);
        self.response = response;
    }

    /// Performs the one write that is due; gives the id of the request in it.
    pub(crate) fn written(&mut self) -> u64 {
        loop {
            match self.client.poll_action() {
                Some(Action::Write { link, bytes }) => {
                    let id = request_id(&bytes);
                    let now = self.tick();
                    let spent = bytes;
                    self.client.handle(Event::LinkWritten { link, spent }, now);
                    return id;
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

    fn set_response(&mut self, id: u64, result: &str) {
        use std::io::Write as _;
        self.response.clear();
        // Writing to a vector cannot fail.
        let _ = write!(
            self.response,
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}"
        );
        self.response.push(b'\n');
    }

    fn tick(&mut self) -> Instant {
        self.now += 1_000;
        Instant::from_nanos(self.now)
    }
}

/// The id in a request line.
fn request_id(line: &[u8]) -> u64 {
    let start = memchr::memmem::find(line, b"\"id\":").map_or(0, |at| at + 5);
    line[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0, |id, byte| id * 10 + u64::from(byte - b'0'))
}
