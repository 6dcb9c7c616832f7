//! Who the application is.

use alloc::vec::Vec;

use crate::types::object::member;
use crate::types::{InputMethod, LogLevel};
use crate::wire::Json;

/// Who the application is, as servers are told.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Identity {
    /// `clientInfo`: a JSON object with at least `name` and `version`.
    pub client_info: Json,
    /// `clientCapabilities` for requests of the modern era: a JSON object, `{}` for none.
    pub capabilities: Json,
    /// The least severe log messages that servers shall send; `None` asks for none (R42).
    pub log_level: Option<LogLevel>,
    declared: Vec<InputMethod>,
}

impl Identity {
    /// An identity from two JSON objects. Input requests are accepted for the capabilities declared
    /// here, and refused for others (R30).
    #[must_use]
    pub fn new(client_info: Json, capabilities: Json) -> Self {
        let names = [
            ("elicitation", InputMethod::Elicitation),
            ("roots", InputMethod::Roots),
            ("sampling", InputMethod::Sampling),
        ];
        let declared = names
            .into_iter()
            .filter(|(name, _)| member(capabilities.as_raw(), name).is_some())
            .map(|(_, method)| method)
            .collect();
        Self {
            client_info,
            capabilities,
            log_level: None,
            declared,
        }
    }

    /// Whether input of this kind was declared.
    #[must_use]
    pub fn declares(&self, method: InputMethod) -> bool {
        self.declared.contains(&method)
    }
}

impl Default for Identity {
    /// This library without any capability.
    fn default() -> Self {
        let info =
            serde_json::json!({ "name": "mcp-harness", "version": env!("CARGO_PKG_VERSION") });
        Self::new(Json::from(info), Json::from(serde_json::json!({})))
    }
}
