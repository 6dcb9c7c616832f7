//! The revisions with the `initialize` handshake.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Builtin, Call, Reply, Revision, log_level, tools};
use crate::message::{self, RpcError};
use crate::{Era, LegacyVersion, Sink};

/// The one session of a legacy server process.
#[derive(Debug, Default)]
pub(super) struct Session {
    phase: Phase,
    version: Option<LegacyVersion>,
    client_capabilities: Value,
    log_level: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    New,
    Answered,
    Ready,
}

impl Session {
    pub(super) fn initialized(&mut self) {
        if self.phase == Phase::Answered {
            self.phase = Phase::Ready;
        }
    }
}

impl Builtin {
    pub(super) fn legacy(
        &mut self,
        id: &Value,
        method: &str,
        params: &Value,
        now: Duration,
        sink: &mut Sink,
    ) {
        if self.lenient && (method == "initialize" || method == "server/discover") {
            return; // the steps are to answer it, or nobody
        }
        let revision = Revision::Legacy(self.session_version());
        let reply = match method {
            "initialize" => self.initialize(params),
            "ping" => Reply::Result(json!({})),
            "server/discover" => Reply::Error(RpcError::method_not_found(method)),
            _ if self.session.phase != Phase::Ready && !self.lenient => {
                Reply::Error(RpcError::new(
                    -32600,
                    format!("{method} before the session was initialized"),
                ))
            }
            "logging/setLevel" => self.set_level(params),
            "resources/subscribe" => self.subscribe(params, true),
            "resources/unsubscribe" => self.subscribe(params, false),
            _ => {
                let capabilities = self.session.client_capabilities.clone();
                let call = Call {
                    id,
                    params,
                    revision,
                    client_capabilities: &capabilities,
                    log_level: self.session.log_level,
                    now,
                };
                self.serve(method, &call, sink)
            }
        };
        self.reply(id, revision, reply, sink);
    }

    /// The client's response to a request of ours.
    pub(super) fn answered(&mut self, id: &Value, message: &Value, sink: &mut Sink) {
        let Some(call) = id.as_str().and_then(|id| self.asked.remove(id)) else {
            return;
        };
        let answer = match message.get("result") {
            Some(result) => tools::greeting(result),
            None => tools::failure("the client refused to ask"),
        };
        let revision = Revision::Legacy(self.session_version());
        sink.send(&self.result(&call, revision, answer));
    }

    /// Sends a request to the client on behalf of a call.
    pub(super) fn ask_client(
        &mut self,
        call: &Call<'_>,
        method: &str,
        params: Value,
        sink: &mut Sink,
    ) {
        self.requests_sent += 1;
        let id = format!("fake-{}", self.requests_sent);
        sink.send(&message::request(&id.as_str().into(), method, params));
        self.asked.insert(id, call.id.clone());
    }

    /// Tells a client with an open session that the tools changed.
    pub(super) fn tell_session_tools(&self, sink: &mut Sink) {
        let open = match self.era {
            Era::Legacy(_) => self.lenient || self.session.phase == Phase::Ready,
            Era::Dual | Era::Modern => self.session.phase == Phase::Ready,
        };
        if open {
            sink.send(&message::notification(
                "notifications/tools/list_changed",
                Value::Null,
            ));
        }
    }

    /// Tells a client that subscribed to this resource that it changed.
    pub(super) fn tell_session_resource(&self, uri: &str, sink: &mut Sink) {
        if self.subscribed.contains(uri) {
            sink.send(&message::notification(
                "notifications/resources/updated",
                json!({"uri": uri}),
            ));
        }
    }

    fn session_version(&self) -> LegacyVersion {
        match (self.session.version, self.era) {
            (Some(version), _) | (None, Era::Legacy(version)) => version,
            (None, Era::Dual | Era::Modern) => LegacyVersion::LATEST,
        }
    }

    /// Agrees on a version: the requested one if it is supported, else one that is
    /// (2025-11-25, basic/lifecycle).
    fn initialize(&mut self, params: &Value) -> Reply {
        let Some(requested) = params.get("protocolVersion").and_then(Value::as_str) else {
            return Reply::Error(RpcError::invalid_params(
                "`protocolVersion` must be a string",
            ));
        };
        let object = |key: &str| params.get(key).filter(|value| value.is_object());
        let (Some(capabilities), Some(_)) = (object("capabilities"), object("clientInfo")) else {
            return Reply::Error(RpcError::invalid_params(
                "`capabilities` and `clientInfo` must be objects",
            ));
        };
        if self.session.phase != Phase::New {
            return Reply::Error(RpcError::new(-32600, "the session is initialized already"));
        }
        let version = match self.era {
            Era::Legacy(version) => version,
            Era::Dual | Era::Modern => {
                LegacyVersion::parse(requested).unwrap_or(LegacyVersion::LATEST)
            }
        };
        self.session = Session {
            phase: Phase::Answered,
            version: Some(version),
            client_capabilities: capabilities.clone(),
            log_level: None,
        };
        let mut result = json!({
            "protocolVersion": version.as_str(),
            "capabilities": self.capabilities(Revision::Legacy(version)),
            "serverInfo": self.server_info(),
        });
        if let (Some(text), Value::Object(members)) = (&self.options.instructions, &mut result) {
            members.insert("instructions".into(), text.as_str().into());
        }
        Reply::Result(result)
    }

    fn set_level(&mut self, params: &Value) -> Reply {
        match params.get("level").and_then(log_level) {
            Some(level) => {
                self.session.log_level = Some(level);
                Reply::Result(json!({}))
            }
            None => Reply::Error(RpcError::invalid_params("unknown log level")),
        }
    }

    fn subscribe(&mut self, params: &Value, on: bool) -> Reply {
        let Some(uri) = params.get("uri").and_then(Value::as_str) else {
            return Reply::Error(RpcError::invalid_params("`uri` must be a string"));
        };
        if on {
            self.subscribed.insert(uri.to_owned());
        } else {
            self.subscribed.remove(uri);
        }
        Reply::Result(json!({}))
    }
}
