//! How a negotiation ends without a result, and what would have to change.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::observation::{bounded, list_excerpt};
use super::{EraSetting, ModernError, PROBE_SETTING, Policy};
use crate::error::Cause;
use crate::time::Duration;
use crate::version::{Era, Version};
use crate::violation::Fault;

/// Why a peer cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What happened, as in every other error.
    pub cause: Cause,
    /// What would have to change for it to work: one sentence in the imperative, or empty.
    pub remedy: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)?;
        if self.remedy.is_empty() {
            return Ok(());
        }
        write!(f, "; {}", self.remedy)
    }
}

/// A deadline that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expired {
    pub(super) awaited: &'static str,
    pub(super) limit: Duration,
    /// The configuration field that has to be raised.
    pub(super) setting: &'static str,
}

impl Failure {
    /// A cause for which there is nothing to advise that the cause does not say.
    pub(super) const fn plain(cause: Cause) -> Self {
        Self {
            cause,
            remedy: String::new(),
        }
    }

    pub(super) fn violation(fault: Fault) -> Self {
        Self {
            cause: Cause::SchemaViolation(fault),
            remedy: "the server has to be corrected".to_string(),
        }
    }

    /// `era: "legacy"` for a peer that may not be talked to in that way.
    pub(super) fn legacy_setting(policy: &Policy) -> Self {
        let (missing, remedy) = if policy.allow_legacy {
            ("an older revision", "list one in legacyVersions")
        } else {
            (
                "allowLegacy: true",
                "set it, or set \"era\": \"auto\" or \"modern\"",
            )
        };
        Self {
            cause: Cause::Config(format!("era \"legacy\" needs {missing}")),
            remedy: remedy.to_string(),
        }
    }

    /// Ambiguous, and no fallback is allowed.
    pub(super) fn not_allowed(evidence: String, policy: &Policy, expired: bool) -> Self {
        let mut remedy = fallback_remedy(policy);
        if expired {
            remedy.push_str(&format!(
                "; if it only starts slowly, raise \"{PROBE_SETTING}\" ({} ms)",
                policy.probe_timeout.as_millis()
            ));
        }
        // An older server is out of the question here, whatever is allowed.
        let cause = if policy.proved_modern {
            let reason =
                format!("a modern server before, and not proved to be one now ({evidence})");
            Cause::Unavailable { reason }
        } else {
            Cause::LegacyNotAllowed { evidence }
        };
        Self { cause, remedy }
    }

    pub(super) fn timeout(expired: Expired) -> Self {
        let remedy = format!(
            "raise \"{}\" ({} ms) if the server starts slowly",
            expired.setting,
            expired.limit.as_millis()
        );
        Self {
            cause: Cause::Timeout {
                awaited: expired.awaited.to_string(),
                setting: expired.setting,
                limit: expired.limit,
            },
            remedy,
        }
    }

    /// The link ended while something was awaited.
    pub(super) fn closed(during: &str, description: &str) -> Self {
        Self {
            cause: Cause::Closed {
                detail: format!("the server closed the connection during {during}: {description}"),
                // Whoever keeps standard error adds it.
                stderr: Vec::new(),
            },
            remedy: "correct what makes the server end (run its command by hand to see more)"
                .to_string(),
        }
    }

    /// The link ended during the probe and the handshake was not allowed.
    pub(super) fn closed_on_probe(description: &str, policy: &Policy) -> Self {
        let mut failure = Self::closed("server/discover", description);
        failure.remedy.push_str(&format!(
            "; or, if it closes on every probe, {}",
            fallback_remedy(policy)
        ));
        failure
    }

    /// A modern server without a revision in common.
    pub(super) fn version(offered: &[String], listed_but_refused: bool) -> Self {
        let speaks_older = offered
            .iter()
            .any(|text| Version::parse(text).is_some_and(|version| version.era() == Era::Legacy));
        let remedy = if listed_but_refused {
            "the server refuses a revision that it lists; it has to be corrected"
        } else if speaks_older {
            "set \"era\": \"legacy\" and \"allowLegacy\": true to use an older revision"
        } else {
            "update this client or the server"
        }
        .to_string();
        Self {
            cause: Cause::Version {
                offered: bounded(offered),
            },
            remedy,
        }
    }

    /// A modern error that cannot be corrected, or was not corrected by the one attempt.
    pub(super) fn uncorrected(error: ModernError) -> Self {
        let remedy = match &error {
            ModernError::HeaderMismatch(_) => {
                "the server, or a proxy before it, changes or refuses the request headers"
                    .to_string()
            }
            ModernError::MissingCapability {
                required: Ok(required),
                ..
            } => format!(
                "the server insists on client capabilities that are not available here: {}",
                list_excerpt(required)
            ),
            ModernError::MissingCapability {
                required: Err(fault),
                ..
            } => format!("the server does not say which capability it needs ({fault})"),
            ModernError::UnsupportedVersion { .. } => {
                "update this client or the server".to_string()
            }
        };
        Self {
            cause: Cause::Rpc(error.rpc().clone()),
            remedy,
        }
    }

    /// The handshake was refused, or answered badly.
    pub(super) fn refused(cause: Cause) -> Self {
        let remedy = match &cause {
            Cause::Version { offered }
                if offered.iter().any(|text| Version::parse(text).is_some()) =>
            {
                "make that revision the newest one in legacyVersions"
            }
            Cause::Rpc(_) | Cause::SchemaViolation(_) => "the server has to be corrected",
            _ => "",
        };
        Self {
            cause,
            remedy: remedy.to_string(),
        }
    }

    /// A server that turned out modern although the configuration rules the probe out.
    pub(super) fn modern_despite_setting(error: ModernError) -> Self {
        let cause = match error {
            ModernError::UnsupportedVersion {
                supported: Ok(offered),
                ..
            } => Cause::Version {
                offered: bounded(&offered),
            },
            other => Cause::Rpc(other.rpc().clone()),
        };
        Self {
            cause,
            remedy: "the server is modern: set \"era\": \"auto\" or \"modern\"".to_string(),
        }
    }
}

/// What to change so that the handshake is tried.
fn fallback_remedy(policy: &Policy) -> String {
    if policy.proved_modern {
        return "start the client anew if the server was replaced by an older one meanwhile".into();
    }
    let mut steps = Vec::new();
    if !policy.allow_legacy {
        steps.push("set \"allowLegacy\": true");
    }
    if policy.era == EraSetting::Modern {
        steps.push("set \"era\": \"auto\"");
    }
    if !policy.legacy_available {
        steps.push("list an older revision in legacyVersions");
    }
    if steps.is_empty() {
        steps.push("set \"era\": \"legacy\"");
    }
    format!("{} if this is an older server", steps.join(" and "))
}
