//! Messages that only older revisions have, and the notifications that tell of changes.

use alloc::string::{String, ToString};

use serde_json::{Map, Value};

use crate::wire::{Json, Members};

/// A method with its parameters; whoever sends it adds the envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The method.
    pub method: &'static str,
    /// The parameters, left out of the message when `None`.
    pub params: Option<Json>,
}

/// Asks for log messages of this level and above, for the rest of the session
/// (`logging/setLevel`). Only for servers that declare `logging`, and only when a level was asked
/// for (R42).
#[must_use]
pub fn set_level(level: &str) -> Message {
    with("logging/setLevel", "level", level)
}

/// Asks for updates of one resource. Only for servers that declare `resources.subscribe`.
#[must_use]
pub fn subscribe(uri: &str) -> Message {
    with("resources/subscribe", "uri", uri)
}

/// Ends [`subscribe`].
#[must_use]
pub fn unsubscribe(uri: &str) -> Message {
    with("resources/unsubscribe", "uri", uri)
}

/// Tells the server that the roots are others now. Only for clients that declared
/// `roots.listChanged`.
#[must_use]
pub const fn roots_changed() -> Message {
    Message {
        method: "notifications/roots/list_changed",
        params: None,
    }
}

/// Something on the server changed: the same events as those of a modern subscription (R91).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The list of prompts.
    Prompts,
    /// The list of resources or of their templates.
    Resources,
    /// The list of tools.
    Tools,
    /// One resource that was subscribed to.
    Resource {
        /// Its URI.
        uri: String,
    },
}

impl Change {
    /// Reads a notification; `None` when it tells of no change, or not of which.
    #[must_use]
    pub fn from_notification(method: &str, params: Option<&Members<'_>>) -> Option<Self> {
        match method {
            "notifications/prompts/list_changed" => Some(Self::Prompts),
            "notifications/resources/list_changed" => Some(Self::Resources),
            "notifications/tools/list_changed" => Some(Self::Tools),
            "notifications/resources/updated" => {
                let uri = params?.get("uri")?;
                serde_json::from_str(uri.get())
                    .ok()
                    .map(|uri| Self::Resource { uri })
            }
            _ => None,
        }
    }
}

fn with(method: &'static str, name: &str, value: &str) -> Message {
    let mut params = Map::new();
    params.insert(name.to_string(), Value::String(value.to_string()));
    Message {
        method,
        params: Some(Json::from(Value::Object(params))),
    }
}
