//! From what is configured to what is opened: decided once, before any process exists.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Config, HarnessConfig, PeerConfig, Transport};
use crate::action::LinkTarget;
use crate::error::Cause;

/// A configuration whose commands are resolved: every peer with exactly what its link leads to, or why
/// nothing can be opened for it. A restart opens the same again (R16).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Pinned {
    /// The peers, in the order of the configuration.
    pub peers: Vec<PinnedPeer>,
    /// What concerns all peers together.
    pub harness: HarnessConfig,
}

/// One peer with its target.
#[derive(Clone, Debug)]
pub struct PinnedPeer {
    /// Its settings.
    pub config: PeerConfig,
    /// What its link leads to. A peer without a target fails by itself; the others go on (R2).
    pub target: Result<Arc<LinkTarget>, Cause>,
}

impl Config {
    /// Resolves every command against the host: `env` looks up a variable, `find` answers with the
    /// absolute path of an executable file, or with `None` when the path leads to none. Programs outside
    /// the allow-list are refused here (R100).
    ///
    /// ```
    /// # use mcp_proto::config::{Config, PeerConfig, StdioConfig, Transport};
    /// # let none: [&str; 0] = [];
    /// # let git = PeerConfig::new("git", Transport::Stdio(StdioConfig::new("git", none)));
    /// # let config = Config::new(vec![git]);
    /// let mut asked = Vec::new();
    /// config.pin(
    ///     &mut |name| (name == "PATH").then(|| "/usr/local/bin:/usr/bin".to_owned()),
    ///     &mut |path| {
    ///         asked.push(path.to_owned());
    ///         None
    ///     },
    /// );
    /// assert_eq!(asked, ["/usr/local/bin/git", "/usr/bin/git"]);
    /// ```
    pub fn pin(
        self,
        env: &mut dyn FnMut(&str) -> Option<String>,
        find: &mut dyn FnMut(&str) -> Option<String>,
    ) -> Pinned {
        let harness = self.harness;
        let mut names = BTreeSet::new();
        let mut pin = |config: PeerConfig| {
            let target = match &config.transport {
                _ if !names.insert(config.name.clone()) => Err(Cause::Config(format!(
                    "two servers have the name {:?}",
                    config.name
                ))),
                _ if config.validate().is_err() => Err(Cause::Config(format!(
                    "{:?} cannot be the name of a server",
                    config.name
                ))),
                Transport::Stdio(stdio) => stdio
                    .plan(harness.allow_spawn.as_deref(), env, find)
                    .map(LinkTarget::Process),
                Transport::Stream => Ok(LinkTarget::Stream {
                    name: config.name.clone(),
                }),
                Transport::Http(_) => Err(Cause::Unsupported {
                    feature: "HTTP",
                    remedy: "Give it a \"command\" if it can also be run over stdio, or set \
                             \"disabled\": true for it until a version that speaks HTTP.",
                }),
            };
            PinnedPeer {
                config,
                target: target.map(Arc::new),
            }
        };
        let peers = self.peers.into_iter().map(&mut pin).collect();
        Pinned { peers, harness }
    }
}
