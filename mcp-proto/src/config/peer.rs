//! One peer: how it is reached and how far it is trusted.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::cost::NanoUsd;
use crate::limits::Limits;
use crate::negotiation::EraSetting;
use crate::secret::{Secret, Templated};
use crate::time::Duration;
use crate::version::{Era, Version};

/// The variables that a child process inherits unless `envAllow` says otherwise: what programs need in
/// order to run at all, and nothing that usually holds a secret. Names that do not exist on a system
/// are simply absent.
pub const DEFAULT_ENV_ALLOW: [&str; 21] = [
    "APPDATA",
    "HOME",
    "HOMEDRIVE",
    "HOMEPATH",
    "LANG",
    "LC_ALL",
    "LOCALAPPDATA",
    "LOGNAME",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "SHELL",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "USER",
    "USERNAME",
    "USERPROFILE",
];

/// The longest name of a peer, in characters.
const LONGEST_NAME_CHARS: usize = 64;

/// One peer. Construct it with a transport, then set what differs from the defaults:
///
/// ```
/// use mcp_proto::config::{HttpConfig, PeerConfig, StdioConfig};
///
/// let mut git = PeerConfig::stdio("git", "mcp-git", ["--repo", "/src"]);
/// git.allow_legacy = true;
/// let build = PeerConfig::new("build", StdioConfig::new("mcp-build", ["-q"]).env("KEY", "hunter2"));
/// let api = HttpConfig::new("https://example.com/mcp").header("Authorization", "Bearer hunter2");
/// let api = PeerConfig::new("api", api);
/// assert_eq!(build.to_string(), "build: mcp-build -q");
/// assert!(!format!("{api:?}{build:?}").contains("hunter2"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerConfig {
    /// The name: stable, unique, and the prefix of qualified tool names. See [`PeerConfig::validate`].
    pub name: String,
    /// How it is reached.
    pub transport: Transport,
    /// `allowLegacy`: whether revisions with a handshake may be spoken. Default `false`.
    pub allow_legacy: bool,
    /// `era`: which eras are tried. Default: found out.
    pub era: EraSetting,
    /// `legacyVersions`: the legacy revisions that are accepted, newest first. Default: all.
    pub legacy_versions: Vec<Version>,
    /// `legacy.sessionHeader`: whether a session that a legacy server hands out is used. `None`
    /// (default): exactly when `allow_legacy` is set.
    pub legacy_session: Option<bool>,
    /// `probeTimeoutMs`: from the wish to start the peer to its first answer. Default 10 s.
    pub probe_timeout: Duration,
    /// `timeoutMs`: how long a request may go without a sign of life. Default 60 s.
    pub timeout: Duration,
    /// `absoluteTimeoutMs`: how long a request may take, progress or not. Default 600 s, or
    /// `timeoutMs` where that is longer.
    pub absolute_timeout: Duration,
    /// `maxContinuationRetries`: attempts after the first one for a dropped stream. Default 3.
    pub max_continuation_retries: u32,
    /// `validateCapabilities`: whether a tool must stand in the manifest to be called. Default `true`.
    pub validate_capabilities: bool,
    /// `validateOutput`: whether structured results are checked against the tools' output schemas. Needs the
    /// feature `schema`. Default `false`.
    pub validate_output: bool,
    /// `pinTools`: whether a changed or new tool waits for the application's consent. Default `false`.
    pub pin_tools: bool,
    /// `refuseDegraded`: whether calls are refused once the peer broke the protocol. Default `false`.
    pub refuse_degraded: bool,
    /// `stdoutNoise`: what text on standard output that is no message means.
    pub stdout_noise: StdoutNoise,
    /// `authContext`: whose credentials these are; private cache entries are never shared across
    /// contexts. Default: none.
    pub auth_context: Option<String>,
    /// `costUsd`: what one call of a tool costs. Default: not known, and counted as nothing.
    pub cost: Option<NanoUsd>,
    /// `toolCostsUsd`: the same for single tools (the peer's own names), where it differs.
    pub tool_costs: BTreeMap<String, NanoUsd>,
    /// `idempotentTools`: tools that may safely run twice (the peer's own names). Default: none; what
    /// the server says about its tools is not enough.
    pub idempotent_tools: BTreeSet<String>,
    /// `idempotencyMetaKey`: the `_meta` key under which this server honours idempotency keys.
    pub idempotency_meta_key: Option<String>,
    /// `checkpointMetaKey`: the `_meta` key under which this server takes resumption tokens.
    pub checkpoint_meta_key: Option<String>,
    /// `sendClientInfo`: whether the client tells its name and version. Default `true`.
    pub send_client_info: bool,
    /// `compatCapabilitiesAlias`: whether `_meta` also carries `client.capabilities`. Default `true`.
    pub compat_capabilities_alias: bool,
    /// `maxLineBytes`, `maxBodyBytes`, `maxDepth`, `maxPages`, `maxTools`, `maxInFlight`,
    /// `maxInputRounds`: bounds on what the server may make grow.
    pub limits: Limits,
    /// `restart`: how a lost peer is brought back.
    pub restart: Restart,
}

impl PeerConfig {
    /// A peer with default settings.
    #[must_use]
    pub fn new(name: impl Into<String>, transport: impl Into<Transport>) -> Self {
        Self {
            name: name.into(),
            transport: transport.into(),
            allow_legacy: false,
            era: EraSetting::Auto,
            legacy_versions: Version::ALL
                .into_iter()
                .filter(|version| version.era() == Era::Legacy)
                .collect(),
            legacy_session: None,
            probe_timeout: Duration::from_secs(10),
            timeout: Duration::from_secs(60),
            absolute_timeout: Duration::from_secs(600),
            max_continuation_retries: 3,
            validate_capabilities: true,
            validate_output: false,
            pin_tools: false,
            refuse_degraded: false,
            stdout_noise: StdoutNoise::Auto,
            auth_context: None,
            cost: None,
            tool_costs: BTreeMap::new(),
            idempotent_tools: BTreeSet::new(),
            idempotency_meta_key: None,
            checkpoint_meta_key: None,
            send_client_info: true,
            compat_capabilities_alias: true,
            limits: Limits::default(),
            restart: Restart::default(),
        }
    }

    /// A child process that speaks over its standard input and output.
    #[must_use]
    pub fn stdio<A: Into<Templated>>(
        name: impl Into<String>,
        command: impl Into<Templated>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        Self::new(name, StdioConfig::new(command, args))
    }

    /// A ready byte stream that the host supplies under this name.
    #[must_use]
    pub fn stream(name: impl Into<String>) -> Self {
        Self::new(name, Transport::Stream)
    }

    /// An HTTP endpoint.
    #[must_use]
    pub fn http(name: impl Into<String>, url: impl Into<Templated>) -> Self {
        Self::new(name, HttpConfig::new(url))
    }

    /// What one call of this tool (the peer's own name) costs, if that is known.
    #[must_use]
    pub fn cost_of(&self, tool: &str) -> Option<NanoUsd> {
        self.tool_costs.get(tool).copied().or(self.cost)
    }

    /// Whether the name can stand before the `/` of a qualified tool name: 1 to 64 characters, none of
    /// them `/` or a control character.
    ///
    /// # Errors
    /// [`NameError`], which says what the name must not have.
    pub fn validate(&self) -> Result<(), NameError> {
        validate_name(&self.name)
    }
}

/// The name, and the command line or endpoint as it may be shown.
impl fmt::Display for PeerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.transport)
    }
}

pub(super) fn validate_name(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        Err(NameError::Empty)
    } else if name.contains('/') {
        Err(NameError::Slash)
    } else if name.chars().any(char::is_control) {
        Err(NameError::Control)
    } else if name.chars().count() > LONGEST_NAME_CHARS {
        Err(NameError::TooLong)
    } else {
        Ok(())
    }
}

/// What a peer's name must not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// It holds a control character.
    #[error("a server's name has no control characters")]
    Control,
    /// It is empty.
    #[error("a server's name is not empty")]
    Empty,
    /// It holds a `/`.
    #[error("a server's name has no \"/\": it separates server and tool in \"<server>/<tool>\"")]
    Slash,
    /// It has more than 64 characters.
    #[error("a server's name has at most {LONGEST_NAME_CHARS} characters")]
    TooLong,
}

/// How a peer is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// By HTTP.
    Http(HttpConfig),
    /// As a child process, over its standard input and output.
    Stdio(StdioConfig),
    /// Over a byte stream that the host supplies.
    Stream,
}

impl Transport {
    /// Which of them it is.
    #[must_use]
    pub const fn kind(&self) -> TransportKind {
        match self {
            Self::Http(_) => TransportKind::Http,
            Self::Stdio(_) => TransportKind::Stdio,
            Self::Stream => TransportKind::Stream,
        }
    }
}

impl From<HttpConfig> for Transport {
    fn from(http: HttpConfig) -> Self {
        Self::Http(http)
    }
}

impl From<StdioConfig> for Transport {
    fn from(stdio: StdioConfig) -> Self {
        Self::Stdio(stdio)
    }
}

/// The command line or endpoint as it may be shown.
impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(http) => http.fmt(f),
            Self::Stdio(stdio) => stdio.fmt(f),
            Self::Stream => f.write_str("stream supplied by the host"),
        }
    }
}

/// The word for a transport, as in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TransportKind {
    /// `http`
    Http,
    /// `stdio`
    Stdio,
    /// `stream`
    Stream,
}

impl TransportKind {
    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Stdio => "stdio",
            Self::Stream => "stream",
        }
    }
}

impl fmt::Display for TransportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A child process. No shell is involved: the arguments arrive as they stand.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StdioConfig {
    /// The program: a name to be found on `PATH`, or a path.
    pub command: Templated,
    /// Its arguments.
    pub args: Vec<Templated>,
    /// Variables that are set for it.
    pub env: BTreeMap<String, Secret>,
    /// `envAllow`: variables that it inherits. Default [`DEFAULT_ENV_ALLOW`].
    pub env_allow: BTreeSet<String>,
    /// Its working directory. Default: the host's own.
    pub cwd: Option<Templated>,
}

impl StdioConfig {
    /// A command with its arguments.
    #[must_use]
    pub fn new<A: Into<Templated>>(
        command: impl Into<Templated>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            command: command.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            env_allow: DEFAULT_ENV_ALLOW.iter().map(ToString::to_string).collect(),
            cwd: None,
        }
    }

    /// Sets a variable for the child.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Lets the child inherit these variables instead of [`DEFAULT_ENV_ALLOW`].
    #[must_use]
    pub fn env_allow<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.env_allow = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the child's working directory.
    #[must_use]
    pub fn cwd(mut self, directory: impl Into<Templated>) -> Self {
        self.cwd = Some(directory.into());
        self
    }
}

/// The command line as it may be shown: variables by name, words with spaces in quotes.
impl fmt::Display for StdioConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_word(f, self.command.shown())?;
        for arg in &self.args {
            f.write_str(" ")?;
            write_word(f, arg.shown())?;
        }
        Ok(())
    }
}

fn write_word(f: &mut fmt::Formatter<'_>, word: &str) -> fmt::Result {
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && c != '"';
    if !word.is_empty() && word.chars().all(plain) {
        f.write_str(word)
    } else {
        write!(f, "{word:?}")
    }
}

/// An HTTP endpoint.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpConfig {
    /// The endpoint. It may hold secrets (a password, a query), which are never shown.
    pub url: Templated,
    /// Headers that go with every request, in the order of the file.
    pub headers: Vec<(String, Secret)>,
    /// `type`: how the endpoint speaks.
    pub kind: HttpKind,
    /// `allowInsecureHttp`: whether plain `http:` may leave this machine. Default `false`.
    pub allow_insecure: bool,
    /// `caFile`: certificates to trust beside the system's own, in PEM form.
    pub ca_file: Option<Templated>,
}

impl HttpConfig {
    /// An endpoint.
    #[must_use]
    pub fn new(url: impl Into<Templated>) -> Self {
        Self {
            url: url.into(),
            headers: Vec::new(),
            kind: HttpKind::Streamable,
            allow_insecure: false,
            ca_file: None,
        }
    }

    /// Adds a header to every request.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

impl fmt::Debug for HttpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpConfig")
            .field("url", &format_args!("{self}"))
            .field("headers", &self.headers)
            .field("kind", &self.kind)
            .field("allow_insecure", &self.allow_insecure)
            .field("ca_file", &self.ca_file)
            .finish()
    }
}

/// The endpoint as it may be shown: without user, password, query and fragment.
impl fmt::Display for HttpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.url.shown();
        let end = shown.find(['?', '#']).unwrap_or(shown.len());
        let (address, secret) = shown.split_at(end);
        let (scheme, rest) = match address.find("://") {
            Some(colon) => address.split_at(colon + 3),
            None => ("", address),
        };
        let authority = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(authority);
        f.write_str(scheme)?;
        match authority.rsplit_once('@') {
            Some((_, host)) => write!(f, "***@{host}")?,
            None => f.write_str(authority)?,
        }
        f.write_str(path)?;
        f.write_str(if secret.is_empty() { "" } else { "?***" })
    }
}

/// How an HTTP endpoint speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum HttpKind {
    /// `http` or `streamable-http`: one endpoint for everything.
    #[default]
    Streamable,
    /// `sse`: the deprecated transport with an event stream beside the endpoint; legacy peers only.
    Sse,
}

/// What text on standard output that is no message means (R62).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum StdoutNoise {
    /// Tolerated before the first message, a violation after it.
    #[default]
    Auto,
    /// `degrade`: a violation always.
    Degrade,
    /// `tolerate`: counted only.
    Tolerate,
}

/// How a lost peer is brought back (R90).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restart {
    /// `maxAttempts`: attempts in a row before giving up; 0 never restarts. Default 5.
    pub max_attempts: u32,
    /// `backoffMs`: the wait before the first attempt; it doubles. Default 500 ms.
    pub backoff: Duration,
    /// `backoffMaxMs`: the longest wait. Default 30 s.
    pub backoff_max: Duration,
}

impl Default for Restart {
    fn default() -> Self {
        Self {
            max_attempts: 5,
            backoff: Duration::from_millis(500),
            backoff_max: Duration::from_secs(30),
        }
    }
}
