//! What to do about each error, in one sentence.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use crate::error::{CLIENT_CLOSED, Cause, Error, RpcError};

impl Error {
    /// What to do about it, in one sentence.
    #[must_use]
    pub fn remedy(&self) -> String {
        match &self.advice {
            Some(advice) => advice.as_ref().into(),
            None => self.cause.remedy(),
        }
    }
}

impl Cause {
    /// What to do about it, in one sentence for a person. Settings are named as in the configuration
    /// file, commands as of the `mcp-harness` binary.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::SchemaViolation(_) => {
                "Report this to the server's author; until it is fixed, set \
                 \"refuseDegraded\": true for this server if its answers must not be used."
                    .to_owned()
            }
            Self::Rpc(error) => rpc_remedy(error).to_owned(),
            Self::Closed { detail, .. } if detail == CLIENT_CLOSED => {
                "Start another client; this one was closed by the application.".to_owned()
            }
            Self::Closed { .. } => {
                "Run the server's command by hand and see what it prints before it ends.".to_owned()
            }
            Self::Timeout { setting, limit, .. } => format!(
                "Set {setting:?} for this server to more than {} if the server is merely slow, as on a \
                 first start that downloads it.",
                limit.as_millis()
            ),
            Self::Limit { setting, max, .. } => format!(
                "Set {setting:?} for this server to more than {max} if that much is expected of it."
            ),
            Self::Version { .. } => "Update the server or this client, so that both implement one \
                 revision."
                .to_owned(),
            Self::LegacyNotAllowed { .. } => {
                "Set \"allowLegacy\": true for this server if you trust it \
                 and know that it speaks an older revision."
                    .to_owned()
            }
            Self::ToolNotFound {
                suggestion, failed, ..
            } => match (suggestion, failed.remedy()) {
                (Some(name), _) => format!(
                    "Call {name:?} if that was meant; `mcp-harness tools` lists every tool."
                ),
                (None, Some(remedy)) => remedy,
                (None, None) => "List the tools with `mcp-harness tools`.".to_owned(),
            },
            Self::NotListed {
                what,
                suggestion,
                failed,
                ..
            } => match (suggestion, failed.remedy()) {
                (Some(name), _) => format!(
                    "Write {name:?} if that was meant; `mcp-harness {what}s` lists every {what}."
                ),
                (None, Some(remedy)) => remedy,
                (None, None) => format!(
                    "List what there is with `mcp-harness {what}s`, or name the server: \
                     <server>/<{what}>."
                ),
            },
            Self::CapabilityMissing { .. } => {
                "List the server's tools with `mcp-harness tools`; if it \
                 hides some of them on purpose, set \"validateCapabilities\": false for it."
                    .to_owned()
            }
            Self::Quarantined { .. } => {
                "Look at the tool's present descriptor. If it is what it should be, accept it \
                 (`accept_tools`), or start the client anew, which trusts what is listed then."
                    .to_owned()
            }
            Self::AmbiguousTool { canonical, .. } | Self::Ambiguous { canonical, .. } => {
                match canonical.as_slice() {
                    [] => "Name the server: <server>/<name>.".to_owned(),
                    names => format!("Write one of {} instead.", names.join(", ")),
                }
            }
            Self::Unavailable { .. } => {
                "Connect again when the reason that the message names is gone.".to_owned()
            }
            Self::NoPeer(failed) => failed.remedy().unwrap_or_else(|| {
                "Add a server to \"mcpServers\" in the configuration.".to_owned()
            }),
            Self::Unsupported { remedy, .. } => (*remedy).to_owned(),
            Self::SpawnRefused { .. } => "Check that \"command\" is spelt right and installed (an \
                 absolute path is safest), and that \"allowSpawn\", where it is given, lists it."
                .to_owned(),
            Self::Degraded(_) => {
                "Begin a new task, or set \"refuseDegraded\": false for this server to \
                 call it all the same."
                    .to_owned()
            }
            Self::Cancelled => "Nothing to do: the application asked for it.".to_owned(),
            Self::RetryRefused(refusal) => refusal.refused.needs().to_owned(),
            Self::StreamDropped(dropped) => dropped.remedy().to_owned(),
            Self::Config(_) => {
                "Correct the configuration at the place that the message names.".to_owned()
            }
            Self::Usage(_) => "Correct the request; nothing was sent.".to_owned(),
        }
    }
}

/// spec: 2026-07-28 basic/index, error codes.
const fn rpc_remedy(error: &RpcError) -> &'static str {
    match error.code {
        -32601 => "Check that the server offers this at all: it does not know the method.",
        -32602 => "Correct the name or the arguments: compare them with what the server lists.",
        -32603 => "See the server's own log: it failed inside.",
        _ => "Act on the server's message; the request reached it and it refused.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::continuation::{DropReason, StreamDropped};
    use crate::error::{DroppedStream, FailedPeers, Listable, RefusedRetry};
    use crate::safety::{Facts, Failure, RequestKind, Verdict, may_retry};
    use crate::time::Duration;
    use crate::violation::{Fault, Violation};
    use alloc::boxed::Box;
    use alloc::string::ToString;
    use alloc::vec::Vec;
    use core::fmt::Write as _;

    /// R3, R14: every cause says what to do, in one sentence. `kind: message / remedy`.
    #[test]
    fn every_cause_has_a_remedy() {
        let mut text = String::new();
        for cause in causes() {
            let error = Error::new("git", cause);
            let remedy = error.remedy();
            assert!(remedy.ends_with('.') && !remedy.contains("  "), "{remedy}");
            assert_eq!(format!("{error:#}"), format!("{error}; to do: {remedy}"));
            let _ = writeln!(text, "{}: {error}\n    {remedy}", error.kind());
        }
        insta::assert_snapshot!(text);
    }

    fn causes() -> Vec<Cause> {
        let rpc = |code, message: &str| {
            let message = message.to_string();
            Cause::Rpc(RpcError {
                code,
                message,
                data: None,
            })
        };
        let fault = || Fault::new(Violation::MalformedContent, "content[0].text is missing");
        let closed = || Cause::Closed {
            detail: "exited with status 1".into(),
            stderr: Vec::new(),
        };
        let failed = |names: &[&str]| {
            let errors: Vec<Error> = names
                .iter()
                .map(|name| Error::new(*name, closed()))
                .collect();
            Box::new(FailedPeers::new(errors.iter(), 6))
        };
        let refused = || {
            let mut facts = Facts::new(Failure::ConnectionLost, RequestKind::Effectful);
            facts.server_hints = true;
            let Verdict::Refuse(refused) = may_retry(&facts) else {
                panic!()
            };
            Cause::RetryRefused(Box::new(RefusedRetry {
                refused,
                error: Error::new("git", closed()),
                token: None,
            }))
        };
        let dropped = |reason| {
            Cause::StreamDropped(Box::new(DroppedStream {
                stream: StreamDropped {
                    reason,
                    token: None,
                    partial_text: "half".into(),
                    checkpoint_bytes: 0,
                    key: "k".into(),
                    attempts: 4,
                    degrades: true,
                },
                last: Some(Error::new("git", closed())),
            }))
        };
        let not_found = |suggestion: Option<&str>, failed| Cause::ToolNotFound {
            tool: "serch".into(),
            suggestion: suggestion.map(ToOwned::to_owned),
            failed,
        };
        alloc::vec![
            Cause::SchemaViolation(fault()),
            rpc(-32601, "Method not found"),
            rpc(-32602, "Unknown tool"),
            rpc(-32603, "boom"),
            rpc(7, "disk full"),
            closed(),
            Cause::Timeout {
                awaited: "answer to server/discover".into(),
                setting: "probeTimeoutMs",
                limit: Duration::from_secs(10),
            },
            Cause::Limit {
                what: "line".into(),
                setting: "maxLineBytes",
                max: 16 << 20
            },
            Cause::Version {
                offered: alloc::vec!["2030-01-01".into()]
            },
            Cause::LegacyNotAllowed {
                evidence: "it answered with error -32601".into()
            },
            not_found(None, failed(&[])),
            not_found(Some("search"), failed(&[])),
            not_found(None, failed(&["git"])),
            not_found(Some("search"), failed(&["git", "web"])),
            Cause::NotListed {
                what: Listable::Resource,
                name: "file:///x".into(),
                suggestion: None,
                failed: failed(&[]),
            },
            Cause::NotListed {
                what: Listable::Prompt,
                name: "greet".into(),
                suggestion: None,
                failed: failed(&["web", "git"]),
            },
            Cause::NotListed {
                what: Listable::Prompt,
                name: "greet".into(),
                suggestion: Some("greeting".into()),
                failed: failed(&["web"]),
            },
            Cause::Ambiguous {
                what: Listable::Resource,
                name: "file:///x".into(),
                canonical: alloc::vec!["a/file:///x".into(), "b/file:///x".into()],
            },
            Cause::NoPeer(failed(&["a"])),
            Cause::NoPeer(failed(&["f", "e", "d", "c", "b", "a"])),
            Cause::NoPeer(failed(&[])),
            Cause::Unsupported {
                feature: "HTTP",
                remedy: "Use stdio.",
            },
            Cause::CapabilityMissing {
                tool: "rm".into(),
                manifest_digest: "4f53cda1".into()
            },
            Cause::Quarantined {
                tool: "rm".into(),
                manifest_digest: "4f53cda1".into()
            },
            Cause::AmbiguousTool {
                tool: "search".into(),
                canonical: alloc::vec!["a/search".into(), "b/search".into()],
            },
            Cause::Unavailable {
                reason: "gave up after 5 attempts".into()
            },
            Cause::SpawnRefused {
                command: "mcp-gti".into(),
                reason: "not found on PATH".into()
            },
            Cause::Degraded(fault()),
            Cause::Cancelled,
            refused(),
            dropped(DropReason::Exhausted),
            dropped(DropReason::Deadline),
            dropped(DropReason::PeerLost),
            dropped(DropReason::TextLimit),
            Cause::Config("x.json:1:1: expected an object".into()),
            Cause::Usage("no operation named \"cal\"".into()),
        ]
    }
}
