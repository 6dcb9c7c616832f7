//! What may be started, and exactly how (R100).

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::peer::StdioConfig;
use crate::error::Cause;
use crate::secret::{Secret, Templated};

/// A process to start, pinned: no shell, no search, no inherited variables.
///
/// The driver starts from an **empty** environment and sets exactly [`env`](Self::env). `Debug` shows
/// the command line with variables by name.
#[derive(Clone, PartialEq, Eq)]
pub struct SpawnPlan {
    /// The program's absolute path.
    pub program: String,
    /// Its arguments. They may hold secrets.
    pub args: Vec<String>,
    /// Its whole environment, sorted by name.
    pub env: Vec<(String, Secret)>,
    /// Its working directory; `None` is the host's own.
    pub cwd: Option<String>,
    shown: String,
}

impl SpawnPlan {
    /// A plan without variables, for hosts and tests that make their own.
    #[must_use]
    pub fn new<A: Into<String>>(
        program: impl Into<String>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        let program = program.into();
        let args: Vec<String> = args.into_iter().map(Into::into).collect();
        let shown = StdioConfig::new(program.clone(), args.iter().cloned()).to_string();
        Self {
            program,
            args,
            env: Vec::new(),
            cwd: None,
            shown,
        }
    }

    /// The configured command line as it may be shown.
    #[must_use]
    pub fn shown(&self) -> &str {
        &self.shown
    }
}

impl fmt::Debug for SpawnPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.env.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("SpawnPlan")
            .field("command", &self.shown)
            .field("env", &names)
            .finish_non_exhaustive()
    }
}

/// Looks for a program on a host, whose paths are POSIX's.
struct Search<'a> {
    /// Without a `/` it is looked for on `path`; with one it is relative to `cwd`.
    command: &'a str,
    /// The child's working directory; `None` is the host's own.
    cwd: Option<&'a str>,
    path: Option<&'a str>,
}

impl Search<'_> {
    /// The first of the files that the command may name for which `find` has an answer.
    fn find(&self, find: &mut dyn FnMut(&str) -> Option<String>) -> Option<String> {
        let command = self.command;
        match self.cwd {
            Some(cwd) if command.contains('/') && !command.starts_with('/') => {
                find(&file_in(cwd, command)?)
            }
            _ if command.contains('/') => find(command),
            _ => self
                .path?
                .split(':')
                .filter_map(|directory| file_in(directory, command))
                .find_map(|file| find(&file)),
        }
    }
}

/// The current directory is never searched unless it is named.
fn file_in(directory: &str, file: &str) -> Option<String> {
    let prefix = directory.strip_suffix('/').unwrap_or(directory);
    (!directory.is_empty()).then(|| [prefix, "/", file].concat())
}

/// One entry of the allow-list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpawnRule {
    /// The program.
    pub command: Templated,
    /// Its exact arguments; `None` allows any.
    pub args: Option<Vec<Templated>>,
}

impl SpawnRule {
    /// Allows a program with any arguments.
    #[must_use]
    pub fn any_args(command: impl Into<Templated>) -> Self {
        Self {
            command: command.into(),
            args: None,
        }
    }

    /// Allows a program with exactly these arguments.
    #[must_use]
    pub fn exact<A: Into<Templated>>(
        command: impl Into<Templated>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            command: command.into(),
            args: Some(args.into_iter().map(Into::into).collect()),
        }
    }

    fn allows_args(&self, args: &[Templated]) -> bool {
        self.args.as_ref().is_none_or(|allowed| {
            let allowed = allowed.iter().map(Templated::value);
            allowed.eq(args.iter().map(Templated::value))
        })
    }
}

impl StdioConfig {
    /// Decides whether this command may be started, and pins how.
    ///
    /// `allowed` is [`HarnessConfig::allow_spawn`](super::HarnessConfig::allow_spawn); `None` allows
    /// what is configured. `env` looks up a variable of the host. `find` is asked for one file after the
    /// other that the command may name, and answers with the absolute path of an executable file, or with
    /// `None` for anything else.
    ///
    /// A rule's program is looked up on the host's own `PATH`, the command on the child's: a peer that
    /// brings its own `PATH` cannot smuggle in another program of an allowed name.
    ///
    /// # Errors
    /// [`Cause::SpawnRefused`] when the command is not allowed or not found. Nothing was started.
    pub fn plan(
        &self,
        allowed: Option<&[SpawnRule]>,
        env: &mut dyn FnMut(&str) -> Option<String>,
        find: &mut dyn FnMut(&str) -> Option<String>,
    ) -> Result<SpawnPlan, Cause> {
        let host_path = env("PATH");
        let own_path = self.env.get("PATH").map(Secret::expose);
        let command = Search {
            command: self.command.value(),
            cwd: self.cwd.as_ref().map(Templated::value),
            path: own_path.or(host_path.as_deref()),
        };
        let program = command.find(find);
        let refused = |reason: &str| Cause::SpawnRefused {
            command: self.command.shown().to_owned(),
            reason: reason.to_owned(),
        };
        let program = program.ok_or_else(|| {
            let has_separator = self.command.value().contains(['/', '\\']);
            let has_arguments = self.command.value().trim().contains(' ');
            refused(match (has_separator, has_arguments) {
                (_, true) => "no program has this name; arguments belong into \"args\"",
                (true, _) => "no program that can be run stands there",
                (false, _) => "not found on PATH",
            })
        })?;
        let mut is_ruled = |rule: &SpawnRule| {
            rule.allows_args(&self.args)
                && Search {
                    command: rule.command.value(),
                    cwd: None,
                    path: host_path.as_deref(),
                }
                .find(find)
                .is_some_and(|ruled| ruled == program)
        };
        if allowed.is_some_and(|rules| !rules.iter().any(&mut is_ruled)) {
            return Err(refused(
                "the program with these arguments is not on the allow-list",
            ));
        }
        Ok(SpawnPlan {
            program,
            args: self.args.iter().map(|arg| arg.value().to_owned()).collect(),
            env: self.environment(env),
            cwd: self.cwd.as_ref().map(|cwd| cwd.value().to_owned()),
            shown: self.to_string(),
        })
    }

    /// The inherited variables, then the configured ones over them.
    fn environment(&self, env: &mut dyn FnMut(&str) -> Option<String>) -> Vec<(String, Secret)> {
        let mut all: BTreeMap<String, Secret> = BTreeMap::new();
        for name in &self.env_allow {
            // A value like this is a function exported by a shell, which some shells would run.
            if let Some(value) = env(name).filter(|value| !value.starts_with("()")) {
                all.insert(name.clone(), Secret::new(value));
            }
        }
        let own = self.env.iter();
        all.extend(own.map(|(name, value)| (name.clone(), value.clone())));
        all.into_iter().collect()
    }
}
