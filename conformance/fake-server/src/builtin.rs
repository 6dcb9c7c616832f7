//! The well-behaved server that answers whatever no step does.

mod fixtures;
mod jobs;
mod legacy;
mod methods;
mod modern;
mod tools;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::message::{self, Kind, RpcError};
use crate::script::Options;
use crate::{Era, LegacyVersion, Script, Sink};
use jobs::{Jobs, Work};
use legacy::Session;
use modern::Listener;

/// Looks up a variable of the process's environment.
pub(crate) type Env = Box<dyn Fn(&str) -> Option<String> + Send>;

/// The revision one request is served under; the order is that of publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Revision {
    Legacy(LegacyVersion),
    Modern,
}

/// What a request is answered with.
enum Reply {
    /// A result that may be cached in the modern era.
    Cacheable(Value),
    Error(RpcError),
    /// The answer comes later, or never.
    Later,
    Result(Value),
}

/// One request, and what the answer depends on.
struct Call<'a> {
    id: &'a Value,
    params: &'a Value,
    revision: Revision,
    /// What the client declared, for this request or for the session.
    client_capabilities: &'a Value,
    /// The least severe log message the client asked for, as an index of `LOG_LEVELS`.
    log_level: Option<usize>,
    now: Duration,
}

/// Log levels of RFC 5424, section 6.2.1, least severe first.
const LOG_LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

pub(crate) struct Builtin {
    era: Era,
    options: Options,
    /// Whether only the small face of a byte script is shown.
    scripted: bool,
    /// Whether the steps do the handshake, so that its order cannot be judged here.
    lenient: bool,
    session: Session,
    listeners: Vec<Listener>,
    subscribed: BTreeSet<String>,
    added_tools: usize,
    jobs: Jobs,
    asked: BTreeMap<String, Value>,
    requests_sent: u64,
    env: Env,
}

impl Builtin {
    pub(crate) fn new(script: Script) -> Self {
        Self {
            era: script.era,
            scripted: script.is_scripted(),
            lenient: script.handshake_is_scripted(),
            session: Session::default(),
            listeners: Vec::new(),
            subscribed: BTreeSet::new(),
            added_tools: 0,
            jobs: Jobs::default(),
            asked: BTreeMap::new(),
            requests_sent: 0,
            env: Box::new(|_| None),
            options: script.options,
        }
    }

    pub(crate) fn set_env(&mut self, env: Env) {
        self.env = env;
    }

    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.jobs.deadline()
    }

    pub(crate) fn run_due(&mut self, now: Duration, sink: &mut Sink) {
        while let Some(message) = self.jobs.due(now) {
            sink.send(&message);
        }
    }

    /// Follows what the client says, even if a step answers it.
    pub(crate) fn observe(&mut self, message: &Value) {
        match message::method(message) {
            Some("notifications/initialized") => self.session.initialized(),
            Some("notifications/cancelled") => {
                if let Some(id) = message::params(message).get("requestId") {
                    self.jobs.cancel(id);
                    self.listeners.retain(|listener| listener.id != *id);
                    self.asked.retain(|_, call| call != id);
                }
            }
            _ => {}
        }
    }

    /// Answers one message.
    pub(crate) fn handle(&mut self, message: &Value, now: Duration, sink: &mut Sink) {
        match Kind::of(message) {
            Kind::Request { id, method } => {
                let params = message::params(message);
                match self.era {
                    Era::Modern => self.modern(id, method, params, now, sink),
                    Era::Dual if is_modern(method, params) => {
                        self.modern(id, method, params, now, sink);
                    }
                    Era::Dual | Era::Legacy(_) => self.legacy(id, method, params, now, sink),
                }
            }
            Kind::Response { id } => self.answered(id, message, sink),
            Kind::Notification | Kind::Malformed => {}
        }
    }

    /// Sends the reply to a request in the shape of its revision.
    fn reply(&self, id: &Value, revision: Revision, reply: Reply, sink: &mut Sink) {
        match reply {
            Reply::Later => {}
            Reply::Error(error) => sink.send(&message::error(Some(id), error)),
            Reply::Result(result) => sink.send(&self.result(id, revision, result)),
            Reply::Cacheable(mut result) => {
                if let (Revision::Modern, Value::Object(members)) = (revision, &mut result) {
                    members.insert("ttlMs".into(), self.options.ttl_ms.into());
                    members.insert(
                        "cacheScope".into(),
                        self.options.cache_scope.as_str().into(),
                    );
                }
                sink.send(&self.result(id, revision, result));
            }
        }
    }

    /// A whole response; modern results say their type and who sent them.
    fn result(&self, id: &Value, revision: Revision, mut result: Value) -> Value {
        if let (Revision::Modern, Value::Object(members)) = (revision, &mut result) {
            members
                .entry("resultType")
                .or_insert_with(|| "complete".into());
            let meta = members.entry("_meta").or_insert_with(|| Map::new().into());
            if let Value::Object(meta) = meta {
                meta.insert(
                    "io.modelcontextprotocol/serverInfo".into(),
                    self.server_info(),
                );
            }
        }
        message::result(id, result)
    }

    fn server_info(&self) -> Value {
        json!({"name": self.options.name, "version": self.options.version})
    }

    /// What the server says it can do.
    fn capabilities(&self, revision: Revision) -> Value {
        if let Some(given) = &self.options.capabilities {
            return given.clone().into();
        }
        if self.scripted {
            return match revision {
                Revision::Modern => json!({"tools": {"listChanged": true}}),
                Revision::Legacy(_) => json!({"tools": {}}),
            };
        }
        let mut capabilities = json!({
            "logging": {},
            "prompts": {},
            "resources": {"subscribe": true},
            "tools": {"listChanged": true},
        });
        // Revision 2024-11-05 has completion without a capability for it.
        if revision > Revision::Legacy(LegacyVersion::V2024_11_05)
            && let Value::Object(members) = &mut capabilities
        {
            members.insert("completions".into(), json!({}));
        }
        capabilities
    }

    /// Plans work for a request that is answered later.
    fn later(&mut self, call: &Call<'_>, at: Duration, work: Work) -> Reply {
        self.jobs.add(call.id.clone(), at, work);
        Reply::Later
    }
}

/// How a dual-era server tells the eras apart: modern requests carry their version (basic/versioning).
fn is_modern(method: &str, params: &Value) -> bool {
    method == "server/discover" || message::meta(params, modern::VERSION_KEY).is_some()
}

fn log_level(name: &Value) -> Option<usize> {
    let name = name.as_str()?;
    LOG_LEVELS.iter().position(|level| *level == name)
}
