//! Revision 2026-07-28: every request stands alone and says its version and capabilities.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Builtin, Call, Reply, Revision, log_level};
use crate::message::{self, RpcError};
use crate::{MODERN_VERSION, Sink};

pub(super) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";
const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// An open `subscriptions/listen` request.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) id: Value,
    tools: bool,
    resources: Vec<String>,
}

impl Builtin {
    pub(super) fn modern(
        &mut self,
        id: &Value,
        method: &str,
        params: &Value,
        now: Duration,
        sink: &mut Sink,
    ) {
        if self.lenient && method == "server/discover" {
            return; // the steps are to answer it, or nobody
        }
        let reply = match validate(method, params) {
            Err(error) => Reply::Error(error),
            Ok((client_capabilities, log_level)) => {
                let call = Call {
                    id,
                    params,
                    revision: Revision::Modern,
                    client_capabilities,
                    log_level,
                    now,
                };
                match method {
                    "server/discover" => self.discover(),
                    "subscriptions/listen" => self.listen(&call, sink),
                    _ => self.serve(method, &call, sink),
                }
            }
        };
        self.reply(id, Revision::Modern, reply, sink);
    }

    /// Tells every listener that asked for it that the tools changed.
    pub(super) fn tell_tool_listeners(&self, sink: &mut Sink) {
        for listener in self.listeners.iter().filter(|listener| listener.tools) {
            let params = json!({"_meta": {SUBSCRIPTION_KEY: listener.id}});
            sink.send(&message::notification(
                "notifications/tools/list_changed",
                params,
            ));
        }
    }

    /// Tells every listener of this resource that it changed.
    pub(super) fn tell_resource_listeners(&self, uri: &str, sink: &mut Sink) {
        for listener in &self.listeners {
            if listener.resources.iter().any(|listened| listened == uri) {
                let params = json!({"uri": uri, "_meta": {SUBSCRIPTION_KEY: listener.id}});
                sink.send(&message::notification(
                    "notifications/resources/updated",
                    params,
                ));
            }
        }
    }

    /// Graceful closure: the answer to the long-lived request (basic/patterns/subscriptions).
    pub(super) fn end_listeners(&mut self, sink: &mut Sink) {
        for listener in std::mem::take(&mut self.listeners) {
            let result = json!({"_meta": {SUBSCRIPTION_KEY: listener.id}});
            sink.send(&self.result(&listener.id, Revision::Modern, result));
        }
    }

    fn discover(&self) -> Reply {
        let mut result = json!({
            "supportedVersions": [MODERN_VERSION],
            "capabilities": self.capabilities(Revision::Modern),
        });
        if let (Some(text), Value::Object(members)) = (&self.options.instructions, &mut result) {
            members.insert("instructions".into(), text.as_str().into());
        }
        Reply::Cacheable(result)
    }

    /// Opens a subscription; it honours what this server can ever send.
    fn listen(&mut self, call: &Call<'_>, sink: &mut Sink) -> Reply {
        let Some(Value::Object(filter)) = call.params.get("notifications") else {
            return Reply::Error(RpcError::invalid_params(
                "`notifications` must be an object",
            ));
        };
        let tools = filter.get("toolsListChanged") == Some(&Value::Bool(true));
        let uris = filter
            .get("resourceSubscriptions")
            .and_then(Value::as_array);
        let resources: Vec<String> = uris
            .into_iter()
            .flatten()
            .filter_map(|uri| uri.as_str().map(str::to_owned))
            .collect();
        let mut honoured = serde_json::Map::new();
        if tools {
            honoured.insert("toolsListChanged".into(), true.into());
        }
        if !resources.is_empty() {
            honoured.insert("resourceSubscriptions".into(), resources.clone().into());
        }
        let params = json!({"notifications": honoured, "_meta": {SUBSCRIPTION_KEY: call.id}});
        sink.send(&message::notification(
            "notifications/subscriptions/acknowledged",
            params,
        ));
        self.listeners.push(Listener {
            id: call.id.clone(),
            tools,
            resources,
        });
        Reply::Later
    }
}

/// The checks every request passes first (basic, `_meta`; basic/versioning).
fn validate<'a>(method: &str, params: &'a Value) -> Result<(&'a Value, Option<usize>), RpcError> {
    if method == "initialize" {
        // Older clients cannot know `_meta`; for them the method is what is unknown.
        return Err(RpcError::method_not_found(method));
    }
    let missing = |key: &str, kind: &str| {
        RpcError::invalid_params(format!("params._meta[\"{key}\"] must be {kind}"))
    };
    let version = message::meta(params, VERSION_KEY)
        .and_then(Value::as_str)
        .ok_or_else(|| missing(VERSION_KEY, "a string"))?;
    let capabilities = message::meta(params, CAPABILITIES_KEY)
        .filter(|capabilities| capabilities.is_object())
        .ok_or_else(|| missing(CAPABILITIES_KEY, "an object"))?;
    if version != MODERN_VERSION {
        let data = json!({"supported": [MODERN_VERSION], "requested": version});
        return Err(RpcError::new(-32022, "Unsupported protocol version").with_data(data));
    }
    let level = match message::meta(params, LOG_LEVEL_KEY) {
        None => None,
        Some(name) => {
            Some(log_level(name).ok_or_else(|| RpcError::invalid_params("unknown log level"))?)
        }
    };
    Ok((capabilities, level))
}
