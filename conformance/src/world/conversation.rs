//! What one link carries, message by message, judged by an observer that knows nothing of the core.
//!
//! The observer frames and parses both directions on its own, with plain `serde_json` values. Where it
//! has to know what the client believes (was that a proof?), it only uses conditions that are necessary
//! for good, or sufficient for bad; what lies between is the client's decision.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::breach::{Broken, Rule};

/// The `_meta` key under which the World stamps operations.
pub(super) const STAMP: &str = "world/operation";
const PREFIX: &str = "io.modelcontextprotocol/";
const MODERN_VERSION: &str = "2026-07-28";
const LEGACY_VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const MODERN_ERRORS: std::ops::RangeInclusive<i64> = -32022..=-32020;
/// Ids stay exact in JavaScript.
const LARGEST_ID: u64 = 1 << 53;

/// What holds for all lives of one peer.
#[derive(Debug)]
pub(super) struct PeerRecord {
    may_initialize: bool,
    /// Longer lines do not count.
    line_bytes: usize,
    used_ids: BTreeSet<u64>,
    proved_modern: bool,
    /// Where idempotency keys travel.
    key_name: Option<String>,
}

impl PeerRecord {
    pub(super) const fn new(
        may_initialize: bool,
        line_bytes: usize,
        key_name: Option<String>,
    ) -> Self {
        Self {
            may_initialize,
            line_bytes,
            used_ids: BTreeSet::new(),
            proved_modern: false,
            key_name,
        }
    }
}

/// One request of the client.
#[derive(Debug)]
struct Asked {
    method: String,
    answered: bool,
    /// It was answered with an error that says that it was not carried out.
    refused: bool,
    /// Answered while nothing waited to be written: no cancellation can be on its way.
    settled: bool,
    cancelled: bool,
}

/// A request with the World's stamp left for the server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) id: u64,
    pub(super) stamp: u64,
    pub(super) method: String,
    /// Of a call: the tool.
    pub(super) tool: Option<String>,
    /// The idempotency key, where the peer is told one.
    pub(super) key: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Conversation {
    asked: BTreeMap<u64, Asked>,
    /// Ids of the server's requests that are not answered yet.
    server_asked: Vec<Value>,
    partial: Vec<u8>,
    listed: Vec<Value>,
    /// Requests whose answers are in the present read: something before those may have led to cancelling them.
    settling: Vec<u64>,
    /// Whether a write is outstanding.
    blocked: bool,
    /// Whether the stream is past the place where a byte order mark may stand.
    begun: bool,
    discovered: bool,
    initializing: bool,
    handshake_good: bool,
    initialized: bool,
}

impl Conversation {
    /// The client writes these bytes. Gives the stamped requests among them.
    pub(super) fn on_write(
        &mut self,
        bytes: &[u8],
        peer: &mut PeerRecord,
    ) -> Result<Vec<Written>, Broken> {
        let Some(body) = bytes.strip_suffix(b"\n") else {
            return Err((
                Rule::Framing,
                "a write does not end with a line feed".into(),
            ));
        };
        self.blocked = true;
        let mut written = Vec::new();
        for line in body.split(|byte| *byte == b'\n') {
            let Ok(Value::Object(message)) = serde_json::from_slice(line) else {
                return Err((Rule::Framing, shown("no JSON object", line)));
            };
            let judged = self.on_message(&message, peer);
            written.extend(judged.map_err(|(rule, detail)| (rule, shown(&detail, line)))?);
        }
        Ok(written)
    }

    fn on_message(
        &mut self,
        message: &Map<String, Value>,
        peer: &mut PeerRecord,
    ) -> Result<Option<Written>, Broken> {
        let framing = |detail: &str| Err((Rule::Framing, detail.to_owned()));
        if message.get("jsonrpc") != Some(&Value::from("2.0")) {
            return framing("jsonrpc is not 2.0");
        }
        let allowed: &[&str] = match (message.get("method"), message.get("result")) {
            (Some(Value::String(_)), _) => &["jsonrpc", "id", "method", "params"],
            (Some(_), _) => return framing("the method is no string"),
            (None, Some(_)) => &["jsonrpc", "id", "result"],
            (None, None) => &["jsonrpc", "id", "error"],
        };
        if let Some(key) = message.keys().find(|key| !allowed.contains(&key.as_str())) {
            return framing(&format!("{key} does not belong there"));
        }
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            self.on_response(message)?;
            return Ok(None);
        };
        let nothing = Map::new();
        let params = match message.get("params") {
            None => &nothing,
            Some(Value::Object(params)) => params,
            Some(_) => return framing("params are no object"),
        };
        match message.get("id") {
            None => self.on_notification(method, params).map(|()| None),
            Some(id) => self.on_request(id, method, params, peer),
        }
    }

    fn on_request(
        &mut self,
        id: &Value,
        method: &str,
        params: &Map<String, Value>,
        peer: &mut PeerRecord,
    ) -> Result<Option<Written>, Broken> {
        let Some(id) = id.as_u64().filter(|id| (1..LARGEST_ID).contains(id)) else {
            return Err((Rule::RequestId, format!("{id} is no small positive id")));
        };
        if !peer.used_ids.insert(id) {
            return Err((Rule::RequestId, format!("{id} was used before")));
        }
        match method {
            "server/discover" if self.initialized => {
                return Err((Rule::BeforeEra, "a probe within a legacy session".into()));
            }
            "server/discover" => check_modern_meta(params)?,
            "initialize" => self.on_initialize(params, peer)?,
            _ if self.initialized => check_legacy_meta(params)?,
            _ if self.discovered => check_modern_meta(params)?,
            _ if self.handshake_good => {
                return Err((Rule::Initialized, format!("{method} comes before it")));
            }
            _ => return Err((Rule::BeforeEra, format!("{method} before the era is known"))),
        }
        let asked = Asked {
            method: method.into(),
            answered: false,
            refused: false,
            settled: false,
            cancelled: false,
        };
        self.asked.insert(id, asked);
        let meta = params.get("_meta").unwrap_or(&Value::Null);
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let key = peer.key_name.as_ref().and_then(|name| text(&meta[name]));
        Ok(meta[STAMP].as_u64().map(|stamp| Written {
            id,
            stamp,
            method: method.into(),
            tool: (method == "tools/call")
                .then(|| text(params.get("name")?))
                .flatten(),
            key,
        }))
    }

    fn on_initialize(
        &mut self,
        params: &Map<String, Value>,
        peer: &PeerRecord,
    ) -> Result<(), Broken> {
        let wrong = |detail: &str| Err((Rule::Handshake, detail.to_owned()));
        if !peer.may_initialize {
            return wrong("the peer is not allow-listed");
        }
        if peer.proved_modern {
            return wrong("the peer has proved to be modern");
        }
        if self.initializing {
            return wrong("a second one on this link");
        }
        let version = params.get("protocolVersion").and_then(Value::as_str);
        if !version.is_some_and(|version| LEGACY_VERSIONS.contains(&version)) {
            return wrong("protocolVersion is no older revision");
        }
        let object = |name: &str| params.get(name).is_some_and(Value::is_object);
        if !(object("capabilities") && object("clientInfo")) {
            return wrong("capabilities or clientInfo are missing");
        }
        self.initializing = true;
        check_legacy_meta(params)
    }

    fn on_notification(&mut self, method: &str, params: &Map<String, Value>) -> Result<(), Broken> {
        if method == "notifications/initialized" {
            if !self.handshake_good || self.initialized {
                let detail = "without a good answer, or a second time";
                return Err((Rule::Initialized, detail.into()));
            }
            self.initialized = true;
            return check_legacy_meta(params);
        }
        if self.handshake_good && !self.initialized && !self.discovered {
            return Err((Rule::Initialized, format!("{method} comes before it")));
        }
        if self.initialized {
            check_legacy_meta(params)?;
        } else {
            check_trace_only(params)?;
        }
        match method {
            "notifications/cancelled" => self.on_cancelled(params.get("requestId")),
            _ => Err((Rule::Framing, format!("{method} is not for clients"))),
        }
    }

    fn on_cancelled(&mut self, id: Option<&Value>) -> Result<(), Broken> {
        let asked = id.and_then(Value::as_u64);
        let Some(asked) = asked.and_then(|id| self.asked.get_mut(&id)) else {
            return Err((Rule::Cancelled, "a request that was not written".into()));
        };
        let forbidden = matches!(asked.method.as_str(), "server/discover" | "initialize");
        if forbidden || asked.settled || asked.cancelled {
            let detail = format!("{} is answered, cancelled or no call", asked.method);
            return Err((Rule::Cancelled, detail));
        }
        asked.cancelled = true;
        Ok(())
    }

    fn on_response(&mut self, message: &Map<String, Value>) -> Result<(), Broken> {
        // Before a session stands nothing but a ping is answered, and no server without a handshake.
        let is_pong = message.get("result") == Some(&Value::Object(Map::new()));
        if !(self.initialized || self.initializing && is_pong) {
            return Err((Rule::Response, "there is no legacy session".into()));
        }
        let id = message.get("id").unwrap_or(&Value::Null);
        match self.server_asked.iter().position(|asked| asked == id) {
            Some(position) => {
                self.server_asked.remove(position);
                Ok(())
            }
            None => Err((Rule::Response, format!("nothing was asked as {id}"))),
        }
    }

    /// The write is done.
    pub(super) fn on_written(&mut self) {
        self.blocked = false;
    }

    /// The client has heard all of it: nothing that comes before those answers may lead to a cancellation any more.
    pub(super) fn settle(&mut self) {
        for id in std::mem::take(&mut self.settling) {
            if let Some(asked) = self.asked.get_mut(&id) {
                asked.settled = true;
            }
        }
    }

    /// Whether a write is outstanding.
    pub(super) const fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// The tools that the server has listed since this was asked last, answer by answer.
    pub(super) fn take_listed(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.listed)
    }

    /// The server's bytes reach the client.
    pub(super) fn on_data(&mut self, bytes: &[u8], peer: &mut PeerRecord) {
        let mut chunks = bytes.split(|byte| *byte == b'\n');
        let last = chunks.next_back().unwrap_or_default();
        for chunk in chunks {
            let mut line = std::mem::take(&mut self.partial);
            line.extend_from_slice(chunk);
            self.on_line(&line, peer);
        }
        self.partial.extend_from_slice(last);
    }

    /// The server's output ends: a last line may lack its line feed.
    pub(super) fn on_end(&mut self, peer: &mut PeerRecord) {
        let line = std::mem::take(&mut self.partial);
        self.on_line(&line, peer);
    }

    fn on_line(&mut self, line: &[u8], peer: &mut PeerRecord) {
        let begins = !std::mem::replace(&mut self.begun, true);
        let line = match line.strip_prefix(b"\xef\xbb\xbf") {
            Some(line) if begins => line,
            _ => line,
        };
        if line.strip_suffix(b"\r").unwrap_or(line).len() > peer.line_bytes {
            return;
        }
        let Ok(Value::Object(message)) = serde_json::from_slice(line) else {
            return;
        };
        let id = message.get("id");
        if message.contains_key("method") {
            self.server_asked.extend(id.cloned());
            return;
        }
        let number = id.and_then(Value::as_u64);
        let Some(asked) = number.and_then(|id| self.asked.get_mut(&id)) else {
            return;
        };
        let first = !asked.answered;
        asked.answered = true;
        // A line with two ids answers neither; one inside of the result makes no difference here.
        let two_ids = line.windows(5).filter(|part| *part == b"\"id\":").count() > 1;
        if !self.blocked && !two_ids {
            self.settling.extend(number);
        }
        let (result, code) = (message.get("result"), message.get("error"));
        let code = code.and_then(|error| error["code"].as_i64());
        // Only the first answer counts.
        asked.refused |= first && matches!(code, Some(-32700 | -32601 | -32600 | -32022..=-32020));
        match (asked.method.as_str(), result, code) {
            ("server/discover", Some(result), None) if is_discovery(result) => {
                self.discovered = true;
                peer.proved_modern |= first;
            }
            ("server/discover" | "initialize", None, Some(code))
                if MODERN_ERRORS.contains(&code) && first =>
            {
                // With data that are as they should be, it is a proof.
                let data = &message["error"]["data"];
                let listed = |list: &Value| {
                    list.as_array()
                        .is_some_and(|list| !list.is_empty() && list.iter().all(Value::is_string))
                };
                peer.proved_modern |= code == -32022 && listed(&data["supported"]);
            }
            ("tools/list", Some(result), None) => self.listed.push(result["tools"].clone()),
            ("initialize", Some(result), None) => self.handshake_good |= is_good_handshake(result),
            _ => {}
        }
    }

    /// Whether a request with this id was written and answered.
    pub(super) fn is_answered(&self, id: u64) -> bool {
        self.asked.get(&id).is_some_and(|asked| asked.answered)
    }

    /// Whether the server said that it did not carry a request out.
    pub(super) fn is_refused(&self, id: u64) -> bool {
        self.asked.get(&id).is_some_and(|asked| asked.refused)
    }

    /// Whether nothing more is to be said about a request: it is answered or cancelled.
    pub(super) fn is_over(&self, id: u64) -> bool {
        let asked = self.asked.get(&id);
        asked.is_some_and(|asked| asked.answered || asked.cancelled)
    }

    /// Whether a request with this id was written and is not answered.
    #[cfg(test)]
    fn awaits(&self, id: u64) -> bool {
        self.asked.get(&id).is_some_and(|asked| !asked.answered)
    }
}

/// A discover answer that nobody can doubt.
fn is_discovery(result: &Value) -> bool {
    let versions = result["supportedVersions"].as_array();
    result["resultType"] == "complete"
        && result["capabilities"].is_object()
        && versions.is_some_and(|versions| {
            versions.iter().all(Value::is_string)
                && versions.iter().any(|version| version == MODERN_VERSION)
        })
}

/// What an older server must have answered at least.
fn is_good_handshake(result: &Value) -> bool {
    let named = |name: &str| {
        result["serverInfo"][name]
            .as_str()
            .is_some_and(|text| !text.is_empty())
    };
    let version = result["protocolVersion"].as_str();
    version.is_some_and(|version| LEGACY_VERSIONS.contains(&version))
        && result["capabilities"].is_object()
        && named("name")
        && named("version")
}

fn check_modern_meta(params: &Map<String, Value>) -> Result<(), Broken> {
    let wrong = |detail: &str| Err((Rule::ModernMeta, detail.to_owned()));
    let Some(Value::Object(meta)) = params.get("_meta") else {
        return wrong("no _meta");
    };
    let key = |name: &str| meta.get(&format!("{PREFIX}{name}"));
    if key("protocolVersion") != Some(&MODERN_VERSION.into()) {
        return wrong("protocolVersion");
    }
    if !key("clientCapabilities").is_some_and(Value::is_object) {
        return wrong("clientCapabilities");
    }
    if !key("clientInfo").is_none_or(|info| info["name"].is_string() && info["version"].is_string())
    {
        return wrong("clientInfo");
    }
    match meta.get("traceparent").and_then(Value::as_str) {
        Some(parent) if is_traceparent(parent) => Ok(()),
        _ => wrong("traceparent"),
    }
}

/// W3C Trace Context, version 00, sampled, no id all zero.
fn is_traceparent(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let hex = |part: &str, len: usize| {
        part.len() == len
            && part
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            && part.bytes().any(|byte| byte != b'0')
    };
    matches!(parts[..], ["00", trace, span, "01"] if hex(trace, 32) && hex(span, 16))
}

/// Notifications of the modern era carry trace keys only (R5).
fn check_trace_only(params: &Map<String, Value>) -> Result<(), Broken> {
    let meta = params.get("_meta").and_then(Value::as_object);
    match meta.and_then(|meta| {
        meta.keys()
            .find(|key| !matches!(key.as_str(), "traceparent" | "baggage"))
    }) {
        Some(key) => Err((Rule::ModernMeta, format!("{key} on a notification"))),
        None => Ok(()),
    }
}

fn check_legacy_meta(params: &Map<String, Value>) -> Result<(), Broken> {
    let meta = params.get("_meta").and_then(Value::as_object);
    let modern = |key: &&String| {
        key.starts_with(PREFIX) || matches!(key.as_str(), "traceparent" | "baggage" | "client")
    };
    match meta.and_then(|meta| meta.keys().find(modern)) {
        Some(key) => Err((Rule::LegacyMeta, format!("{key} in an older revision"))),
        None => Ok(()),
    }
}

fn shown(detail: &str, line: &[u8]) -> String {
    format!("{detail}: {}", super::transcript::abbreviate(line))
}

#[cfg(test)]
mod tests;
