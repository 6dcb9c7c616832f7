//! Settings that concern all peers together: the `harness` object.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::spawn::SpawnRule;
use crate::cost::NanoUsd;
use crate::secret::Templated;

/// The settings in `harness`. Every one of them is optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HarnessConfig {
    /// `mergePolicy`: what happens when two peers have a tool of the same name.
    pub merge_policy: MergePolicy,
    /// `runRootHash`: the root of all derived ids, 64 lowercase hexadecimal digits. Without it each
    /// peer's ids derive from its name and address.
    pub run_root_hash: Option<String>,
    /// `taskId`: what costs are booked on. Default: `default`.
    pub task_id: Option<String>,
    /// `ledger`: the file (JSON Lines) that costs are appended to, and where what was spent earlier stands.
    pub ledger: Option<Templated>,
    /// `budgetUsd`: what the task may spend, together with what the ledger says that it spent before. A
    /// call that may exceed it is refused before anything is sent.
    pub budget: Option<NanoUsd>,
    /// `allowSpawn`: the only programs that may be started. Without it, exactly the commands of the
    /// file may.
    pub allow_spawn: Option<Vec<SpawnRule>>,
    /// `stalenessOnError`: whether an expired list may serve while the peer fails. Default `false`.
    pub staleness_on_error: bool,
    /// `sharePublicCache`: whether lists that a server calls public are shared between authorization
    /// contexts. Default `false`.
    pub share_public_cache: bool,
}

/// What happens when two peers have a tool of the same name (R80).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum MergePolicy {
    /// Every owner's tool is qualified as `<peer>/<tool>`, and the bare name leads nowhere.
    #[default]
    PrefixOnCollision,
}

impl MergePolicy {
    /// The word in configuration and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PrefixOnCollision => "prefix-on-collision",
        }
    }
}

impl fmt::Display for MergePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
