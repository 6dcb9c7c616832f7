//! What a fake server is told to be: its era, its options and its steps.

mod base64;
mod parse;
mod step;
mod template;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

pub(crate) use step::{Emission, Matcher, Step};
pub(crate) use template::{Matched, Render};

/// The modern revision this server speaks.
pub const MODERN_VERSION: &str = "2026-07-28";

/// A revision with the `initialize` handshake, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LegacyVersion {
    /// Revision 2024-11-05.
    V2024_11_05,
    /// Revision 2025-03-26.
    V2025_03_26,
    /// Revision 2025-06-18.
    V2025_06_18,
    /// Revision 2025-11-25.
    V2025_11_25,
}

impl LegacyVersion {
    /// Every legacy revision, oldest first.
    pub const ALL: [Self; 4] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
    ];

    /// The newest legacy revision.
    pub const LATEST: Self = Self::V2025_11_25;

    /// The revision as it is written on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
        }
    }

    /// The revision with this wire name, if it is a legacy one.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|version| version.as_str() == text)
    }
}

/// Which lifecycle the built-in behaviour follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Era {
    /// Revision 2026-07-28 alone: per-request `_meta`, no `initialize`.
    Modern,
    /// One revision with the `initialize` handshake; `server/discover` is unknown.
    Legacy(LegacyVersion),
    /// Both: a request with modern `_meta` is served as modern, `initialize` opens any legacy revision.
    Dual,
}

/// How long a client may keep a result, as the modern revision's results say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheScope {
    /// For this authorization context only.
    Private,
    /// For everyone.
    Public,
}

impl CacheScope {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Public => "public",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) instructions: Option<String>,
    pub(crate) page_size: Option<usize>,
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) tool_prefix: String,
    pub(crate) ttl_ms: u64,
    pub(crate) cache_scope: CacheScope,
    pub(crate) capabilities: Option<Map<String, Value>>,
    pub(crate) respawn_state: Option<PathBuf>,
    pub(crate) transcript: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "fake".into(),
            version: "1".into(),
            instructions: None,
            page_size: None,
            tools: None,
            tool_prefix: String::new(),
            ttl_ms: 0,
            cache_scope: CacheScope::Private,
            capabilities: None,
            respawn_state: None,
            transcript: None,
        }
    }
}

/// A complete description of one fake server. See the crate documentation for the JSON form.
///
/// ```
/// use mcp_fake_server::{LegacyVersion, Script};
///
/// let plain = Script::legacy(LegacyVersion::V2025_06_18).with_name("old").with_page_size(2);
/// let silent = Script::from_json(r#"{"era":"modern","steps":[{"on":"tools/call"},{"hang":true}]}"#)?;
/// # let _ = (plain, silent);
/// # Ok::<(), mcp_fake_server::ScriptError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Script {
    pub(crate) era: Era,
    pub(crate) options: Options,
    /// The script does the handshake even if no step names it (`"era":"probe"`).
    pub(crate) own_handshake: bool,
    pub(crate) steps: Arc<[Step]>,
    pub(crate) respawn: Option<Arc<[Step]>>,
}

impl Script {
    /// A well-behaved server of revision 2026-07-28.
    pub fn modern() -> Self {
        Self::new(Era::Modern)
    }

    /// A well-behaved server of one legacy revision.
    pub fn legacy(version: LegacyVersion) -> Self {
        Self::new(Era::Legacy(version))
    }

    /// A well-behaved server of both eras.
    pub fn dual() -> Self {
        Self::new(Era::Dual)
    }

    /// Reads the JSON form.
    ///
    /// # Errors
    /// [`ScriptError`] with the path of the first member that is wrong, and what it should be.
    pub fn from_json(text: &str) -> Result<Self, ScriptError> {
        parse::script(text)
    }

    /// Replaces the steps by those of a JSON array (the `steps` member of the JSON form).
    ///
    /// # Errors
    /// As [`Script::from_json`].
    pub fn with_steps_json(mut self, steps: &str) -> Result<Self, ScriptError> {
        self.steps = parse::steps(steps)?;
        Ok(self)
    }

    /// Sets the server's name (default `fake`).
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.options.name = name.into();
        self
    }

    /// Sets the server's own version (default `1`).
    #[must_use]
    pub fn with_version(mut self, version: impl Into<String>) -> Self {
        self.options.version = version.into();
        self
    }

    /// Sets the usage instructions the server gives to models (default none).
    #[must_use]
    pub fn with_instructions(mut self, instructions: impl Into<String>) -> Self {
        self.options.instructions = Some(instructions.into());
        self
    }

    /// Pages every list after this many entries; at least one.
    #[must_use]
    pub fn with_page_size(mut self, entries: usize) -> Self {
        self.options.page_size = Some(entries.max(1));
        self
    }

    /// Chooses the tools, in this order. A name that is no fixture becomes a tool that answers `ok`.
    ///
    /// A script with steps has the tool `echo` and these; one without has these only.
    #[must_use]
    pub fn with_tools<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.options.tools = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Puts this text before every tool name.
    #[must_use]
    pub fn with_tool_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.options.tool_prefix = prefix.into();
        self
    }

    /// Sets the `ttlMs` and `cacheScope` of cacheable modern results (default 0 and private).
    #[must_use]
    pub fn with_cache(mut self, ttl_ms: u64, scope: CacheScope) -> Self {
        self.options.ttl_ms = ttl_ms;
        self.options.cache_scope = scope;
        self
    }

    /// Names the file in which the runner counts the processes of this script; the second and
    /// later ones run the `respawn` steps.
    #[must_use]
    pub fn with_respawn_state(mut self, file: impl Into<PathBuf>) -> Self {
        self.options.respawn_state = Some(file.into());
        self
    }

    /// Names a file to which the runner appends what the client sent and every failed assertion.
    #[must_use]
    pub fn with_transcript(mut self, file: impl Into<PathBuf>) -> Self {
        self.options.transcript = Some(file.into());
        self
    }

    /// The script of a restarted process: its steps are the `respawn` steps, or the same steps if
    /// the script has none.
    #[must_use]
    pub fn respawned(mut self) -> Self {
        if let Some(steps) = &self.respawn {
            self.steps = Arc::clone(steps);
        }
        self
    }

    /// The era of the built-in behaviour.
    pub fn era(&self) -> Era {
        self.era
    }

    /// Whether a restarted process has steps of its own.
    pub fn has_respawn(&self) -> bool {
        self.respawn.is_some()
    }

    /// The file that counts processes, if one was named.
    pub fn respawn_state(&self) -> Option<&Path> {
        self.options.respawn_state.as_deref()
    }

    /// The transcript file, if one was named.
    pub fn transcript(&self) -> Option<&Path> {
        self.options.transcript.as_deref()
    }

    fn new(era: Era) -> Self {
        Self {
            era,
            options: Options::default(),
            own_handshake: false,
            steps: Arc::from([]),
            respawn: None,
        }
    }

    /// Whether the server shows the small face a byte script expects: tool `echo`, no other feature.
    pub(crate) fn is_scripted(&self) -> bool {
        !self.steps.is_empty() || self.respawn.is_some()
    }

    /// Whether `server/discover` and `initialize` are left to the steps.
    pub(crate) fn handshake_is_scripted(&self) -> bool {
        self.own_handshake || self.steps.iter().any(Step::waits_for_handshake)
    }
}

/// A script that cannot be run: where it is wrong, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    path: String,
    problem: String,
}

impl ScriptError {
    /// The member that is wrong, as `steps[3].emit[0]`; empty for the whole document.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is wrong there and what was expected.
    pub fn problem(&self) -> &str {
        &self.problem
    }

    pub(crate) fn new(path: &str, problem: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            problem: problem.into(),
        }
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return write!(f, "script: {}", self.problem);
        }
        write!(f, "script: {}: {}", self.path, self.problem)
    }
}

impl std::error::Error for ScriptError {}
