//! Peers and their settings, in code or from `mcpServers` JSON (R110).
//!
//! The core reads no files and no environment: [`Config::parse`] takes the text, the file's name for
//! messages, and a way to look up variables.
//!
//! ```
//! use mcp_proto::Config;
//!
//! let text = r#"{"mcpServers": {"git": {"command": "mcp-git", "args": ["--repo", "${REPO}"]}}}"#;
//! let mut env = |name: &str| (name == "REPO").then(|| "/src".to_owned());
//! let config = Config::parse(text, ".mcp.json", &mut env)?;
//! assert_eq!(config.peers[0].to_string(), "git: mcp-git --repo ${REPO}");
//!
//! let wrong = r#"{"mcpServers": {"git": {"command": "mcp-git", "args": [1]}}}"#;
//! assert_eq!(
//!     Config::parse(wrong, ".mcp.json", &mut env).unwrap_err().to_string(),
//!     ".mcp.json:1:56: mcpServers.git.args[0]: expected a string, found a number",
//! );
//! # Ok::<(), mcp_proto::config::ConfigError>(())
//! ```

mod document;
mod expand;
mod harness;
mod parse;
mod parse_peer;
mod peer;
mod redact;
mod spawn;
mod values;

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

pub use crate::secret::{Secret, Templated};
pub use document::Finding;
pub use harness::{HarnessConfig, MergePolicy};
pub use peer::{
    DEFAULT_ENV_ALLOW, HttpConfig, HttpKind, NameError, PeerConfig, Restart, StdioConfig,
    StdoutNoise, Transport, TransportKind,
};
mod pin;
pub use pin::{Pinned, PinnedPeer};
pub use spawn::{SpawnPlan, SpawnRule};

use crate::error::{Cause, Error};

/// Everything that one client is configured with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The peers, in the order of the file.
    pub peers: Vec<PeerConfig>,
    /// The names of peers that the file switches off (`"disabled": true`), in its order.
    pub disabled: Vec<String>,
    /// What concerns all peers together.
    pub harness: HarnessConfig,
    /// What is odd in the file but no error: unknown keys, settings without effect.
    pub warnings: Vec<Finding>,
}

impl Config {
    /// A configuration built in code.
    #[must_use]
    pub fn new(peers: Vec<PeerConfig>) -> Self {
        Self {
            peers,
            ..Self::default()
        }
    }

    /// Reads a configuration file. `source` is its name for messages; `env` looks up variables.
    ///
    /// Variables expand in `command`, `args`, `env`, `cwd`, `url`, `headers`, `caFile`, `ledger` and
    /// `allowSpawn`: `${VAR}` must exist, `${VAR:-default}` need not, `$${` is a literal `${`.
    ///
    /// # Errors
    /// [`ConfigError`] with everything that is wrong, each with its line, column and path. No message
    /// shows a value that came from a variable, an `env` or a `headers` entry.
    pub fn parse(
        text: &str,
        source: &str,
        env: &mut dyn FnMut(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        parse::config(text, source, env)
    }
}

/// A configuration file that cannot be used.
///
/// `Display` prints one line for each thing that is wrong, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// What is wrong; never empty.
    pub findings: Vec<Finding>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.findings.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{finding}")?;
        }
        Ok(())
    }
}

impl core::error::Error for ConfigError {}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Self::general(Cause::Config(error.to_string()))
    }
}
