//! A client's end of a [`FakeServer`] under virtual time.

#![allow(dead_code, reason = "every test file uses its own part")]

use std::time::Duration;

use mcp_fake_server::{FakeServer, Input, LegacyVersion, Output, Script};
use serde_json::{Value, json};

pub(crate) const MODERN_KEY: &str = "io.modelcontextprotocol/protocolVersion";

pub(crate) struct Peer {
    pub(crate) server: FakeServer,
    pub(crate) now: Duration,
}

impl Peer {
    pub(crate) fn new(script: Script) -> Self {
        Self {
            server: FakeServer::new(script)
                .with_env(|name| (name == "HOME").then(|| "/home".into())),
            now: Duration::ZERO,
        }
    }

    pub(crate) fn scripted(document: Value) -> Self {
        Self::new(Script::from_json(&document.to_string()).expect("a good script"))
    }

    /// A legacy peer whose session is open.
    pub(crate) fn legacy(version: LegacyVersion) -> Self {
        let mut peer = Self::new(Script::legacy(version));
        let result = peer.initialize(version.as_str(), json!({"elicitation": {}}));
        assert_eq!(result["result"]["protocolVersion"], version.as_str());
        peer.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        peer
    }

    pub(crate) fn initialize(&mut self, version: &str, capabilities: Value) -> Value {
        let client = json!({"name": "test", "version": "0"});
        self.request(
            "init",
            "initialize",
            json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": client}),
        )
    }

    pub(crate) fn send(&mut self, message: Value) {
        self.bytes(format!("{message}\n").as_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.server.handle(Input::Bytes(bytes), self.now);
    }

    pub(crate) fn eof(&mut self) {
        self.server.handle(Input::Eof, self.now);
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
        self.server.handle(Input::Tick, self.now);
    }

    /// Sends a request as it is and gives the last message that came back.
    pub(crate) fn request(&mut self, id: impl Into<Value>, method: &str, params: Value) -> Value {
        self.post(id, method, params);
        self.messages().pop().expect("an answer")
    }

    pub(crate) fn post(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        let id = id.into();
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    /// Sends a request with the modern `_meta`.
    pub(crate) fn modern(&mut self, id: impl Into<Value>, method: &str, params: Value) -> Value {
        self.post_modern(id, method, params);
        self.messages().pop().expect("an answer")
    }

    pub(crate) fn post_modern(&mut self, id: impl Into<Value>, method: &str, mut params: Value) {
        let meta = params["_meta"].take();
        params["_meta"] = json!({
            MODERN_KEY: "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        });
        for (key, value) in meta.as_object().into_iter().flatten() {
            params["_meta"][key] = value.clone();
        }
        self.post(id, method, params);
    }

    pub(crate) fn call(&mut self, id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
        self.modern(
            id,
            "tools/call",
            json!({"name": tool, "arguments": arguments}),
        )
    }

    pub(crate) fn outputs(&mut self) -> Vec<Output> {
        std::iter::from_fn(|| self.server.poll_output()).collect()
    }

    /// Everything on stdout, as text.
    pub(crate) fn stdout(&mut self) -> String {
        let outputs = self.outputs().into_iter();
        let bytes = outputs.filter_map(|output| match output {
            Output::Stdout(bytes) => Some(bytes),
            _ => None,
        });
        String::from_utf8(bytes.flatten().collect()).expect("UTF-8")
    }

    pub(crate) fn messages(&mut self) -> Vec<Value> {
        let text = self.stdout();
        text.lines()
            .map(|line| serde_json::from_str(line).expect("a JSON line"))
            .collect()
    }
}

/// The text of the first content block.
pub(crate) fn text(response: &Value) -> &str {
    response["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("no text in {response}"))
}
