//! Who the application is.

use crate::identity::{MetaError, MetaTemplate};
use crate::legacy;
use crate::types::{InputCapabilities, LogLevel};
use crate::version::Version;
use crate::wire::Json;

/// Who the application is, as servers are told.
///
/// ```
/// use mcp_proto::{Identity, wire::Json};
/// let info = Json::parse(r#"{"name":"my-agent","version":"1.0"}"#).unwrap();
/// let capabilities = Json::parse(r#"{"elicitation":{"form":{}}}"#).unwrap();
/// assert!(Identity::new(info.clone(), capabilities).is_ok());
/// assert!(Identity::new(info, Json::parse("[]").unwrap()).is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Identity {
    client_info: Json,
    capabilities: Json,
    log_level: Option<LogLevel>,
    answers: bool,
    accepts: InputCapabilities,
}

impl Identity {
    /// An identity from two JSON objects: `clientInfo`, with at least `name` and `version`, and the
    /// `clientCapabilities` for requests of the modern era. Input requests are accepted for the
    /// capabilities that are declared here, and refused for others (R30).
    ///
    /// # Errors
    /// [`MetaError`] when one of them is no object, or has a member twice.
    pub fn new(client_info: Json, capabilities: Json) -> Result<Self, MetaError> {
        MetaTemplate::new(
            Version::LATEST,
            Some(&client_info),
            &capabilities,
            true,
            None,
        )?;
        let accepts = InputCapabilities::read(&capabilities);
        Ok(Self {
            client_info,
            capabilities,
            log_level: None,
            answers: false,
            accepts,
        })
    }

    /// The same, asking servers for log messages of this severity and above (R42). Without it they are
    /// asked for none.
    #[must_use]
    pub const fn with_log_level(mut self, level: LogLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// The same, saying whether the application answers questions while a request is open
    /// ([`Options::interactive`](crate::Options::interactive)). Servers of older revisions know no other way to
    /// ask: without this they are told that nothing can be asked for.
    #[must_use]
    pub const fn answering(mut self, answers: bool) -> Self {
        self.answers = answers;
        self
    }

    /// `clientInfo`.
    #[must_use]
    pub const fn client_info(&self) -> &Json {
        &self.client_info
    }

    /// The level that servers are asked for.
    #[must_use]
    pub const fn log_level(&self) -> Option<LogLevel> {
        self.log_level
    }

    /// What servers may ask for.
    #[must_use]
    pub const fn accepts(&self) -> InputCapabilities {
        self.accepts
    }

    /// What servers of older revisions are told; they may ask only while somebody answers.
    pub(super) fn legacy_capabilities(&self) -> Json {
        legacy::capabilities(self.answers.then_some(&self.capabilities))
    }

    /// What every request of this revision carries.
    pub(super) fn template(&self, version: Version, info: bool, alias: bool) -> MetaTemplate {
        let info = info.then_some(&self.client_info);
        let template = MetaTemplate::new(version, info, &self.capabilities, alias, self.log_level);
        // Both objects were checked when this was made.
        template.unwrap_or_else(|_| MetaTemplate::bare(version))
    }
}

impl Default for Identity {
    /// This library, without any capability.
    fn default() -> Self {
        let info =
            serde_json::json!({ "name": "mcp-harness", "version": env!("CARGO_PKG_VERSION") });
        Self {
            client_info: Json::from(info),
            capabilities: Json::from(serde_json::json!({})),
            log_level: None,
            answers: false,
            accepts: InputCapabilities::default(),
        }
    }
}
