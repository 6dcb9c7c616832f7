//! What each server must look like and answer.

use serde_json::{Value, json};

use crate::site::Site;

/// A server's part of the report.
pub(crate) struct Expected {
    name: &'static str,
    /// Era and version; `None` for the server that must be refused.
    speaks: Option<(&'static str, &'static str)>,
    /// Canonical names, sorted.
    tools: &'static [&'static str],
}

impl Expected {
    pub(crate) fn check(&self, report: &Value) -> Result<(), String> {
        let peers = report
            .get("peers")
            .and_then(Value::as_array)
            .ok_or("no peers")?;
        let peer = peers
            .iter()
            .find(|peer| peer.get("name") == Some(&json!(self.name)));
        let peer = peer.ok_or_else(|| format!("{} is missing", self.name))?;
        let same = |member: &str, expected: Value| match peer.get(member).unwrap_or(&Value::Null) {
            found if *found == expected => Ok(()),
            found => Err(format!(
                "{}: {member} is {found} instead of {expected}",
                self.name
            )),
        };
        same("transport", json!("stdio"))?;
        let Some((era, version)) = self.speaks else {
            same("state", json!("failed"))?;
            let kind = peer.pointer("/failure/kind");
            return match kind {
                Some(kind) if *kind == json!("legacyNotAllowed") => Ok(()),
                other => Err(format!("{}: failure.kind is {other:?}", self.name)),
            };
        };
        same("state", json!("ready"))?;
        same("era", json!(era))?;
        same("version", json!(version))?;
        same("cacheScope", json!("private"))?;
        same("degraded", Value::Null)?;
        same("tools", json!(self.tools))
    }
}

/// One call and what must come of it.
pub(crate) struct Check {
    /// The peer, or empty for a canonical name.
    pub(crate) peer: &'static str,
    pub(crate) tool: &'static str,
    pub(crate) arguments: Value,
    pub(crate) expect: Expect,
}

/// What must come of a call.
pub(crate) enum Expect {
    /// This structured content.
    Structured(Value),
    /// This value at this place of the structured content.
    StructuredAt(&'static str, Value),
    /// This text in the first block.
    Text(String),
    /// `isError`, and this within the first text block.
    ErrorText(&'static str),
    /// This kind of error, and nothing sent.
    Refused(&'static str),
}

impl Expect {
    pub(crate) fn check(&self, answer: &Value) -> Result<(), String> {
        let at = |place: &str| answer.pointer(place).cloned().unwrap_or(Value::Null);
        let same = |place: &str, expected: &Value| match at(place) {
            found if found == *expected => Ok(()),
            found => Err(format!("{place} is {found} instead of {expected}")),
        };
        match self {
            Self::Structured(expected) => {
                same("/isError", &json!(false))?;
                same("/structuredContent", expected)
            }
            Self::StructuredAt(place, expected) => {
                same("/isError", &json!(false))?;
                same(&format!("/structuredContent{place}"), expected)
            }
            Self::Text(expected) => {
                same("/isError", &json!(false))?;
                same("/content/0/text", &json!(expected))
            }
            Self::ErrorText(part) => {
                same("/isError", &json!(true))?;
                match at("/content/0/text").as_str() {
                    Some(text) if text.contains(part) => Ok(()),
                    other => Err(format!("the text is {other:?} and not about {part:?}")),
                }
            }
            Self::Refused(kind) => {
                same("/outcome", &json!("error"))?;
                same("/error/kind", &json!(kind))
            }
        }
    }
}

const MODERN: Option<(&str, &str)> = Some(("modern", "2026-07-28"));
const LEGACY: Option<(&str, &str)> = Some(("legacy", "2025-11-25"));

/// The report of all of them at once. `add` stands in two servers and is qualified in both.
pub(crate) fn reports(_site: &Site) -> Vec<Expected> {
    vec![
        Expected {
            name: "time",
            speaks: MODERN,
            tools: &["convert_time", "get_current_time"],
        },
        Expected {
            name: "git",
            speaks: MODERN,
            tools: &[
                "git_add",
                "git_branch",
                "git_checkout",
                "git_commit",
                "git_create_branch",
                "git_diff",
                "git_diff_staged",
                "git_diff_unstaged",
                "git_log",
                "git_reset",
                "git_show",
                "git_status",
            ],
        },
        Expected {
            name: "fastmcp",
            speaks: MODERN,
            tools: &["describe", "fail", "fastmcp/add"],
        },
        Expected {
            name: "mcp",
            speaks: MODERN,
            tools: &["count", "divide", "greet", "grow", "mcp/add"],
        },
        Expected {
            name: "everything",
            speaks: LEGACY,
            tools: &[
                "echo",
                "get-annotated-message",
                "get-env",
                "get-resource-links",
                "get-resource-reference",
                "get-structured-content",
                "get-sum",
                "get-tiny-image",
                "gzip-file-as-resource",
                "simulate-research-query",
                "toggle-simulated-logging",
                "toggle-subscriber-updates",
                "trigger-long-running-operation",
            ],
        },
        Expected {
            name: "filesystem",
            speaks: LEGACY,
            tools: &[
                "create_directory",
                "directory_tree",
                "edit_file",
                "get_file_info",
                "list_allowed_directories",
                "list_directory",
                "list_directory_with_sizes",
                "move_file",
                "read_file",
                "read_media_file",
                "read_multiple_files",
                "read_text_file",
                "search_files",
                "write_file",
            ],
        },
        Expected {
            name: "memory",
            speaks: LEGACY,
            tools: &[
                "add_observations",
                "create_entities",
                "create_relations",
                "delete_entities",
                "delete_observations",
                "delete_relations",
                "open_nodes",
                "read_graph",
                "search_nodes",
            ],
        },
        Expected {
            name: "refused",
            speaks: None,
            tools: &[],
        },
    ]
}

/// At least two calls of each server, one of them with structured content where the server has any.
pub(crate) fn calls(site: &Site) -> Vec<Check> {
    let repository = json!(site.repository());
    let file = site.files().join("hello.txt");
    let own = |peer, tool, arguments, expect| Check {
        peer,
        tool,
        arguments,
        expect,
    };
    let canonical = |tool, arguments, expect| Check {
        peer: "",
        tool,
        arguments,
        expect,
    };
    let entities = json!([
        {"name": "Ada", "entityType": "person", "observations": ["wrote notes"]},
        {"name": "Engine", "entityType": "machine", "observations": []},
    ]);
    vec![
        canonical(
            "mcp/add",
            json!({"a": 2, "b": 40}),
            Expect::Structured(json!({"result": 42})),
        ),
        own(
            "mcp",
            "divide",
            json!({"a": 17, "b": 5}),
            Expect::Structured(json!({"quotient": 3, "remainder": 2})),
        ),
        own(
            "mcp",
            "divide",
            json!({"a": 1, "b": 0}),
            Expect::ErrorText("division by zero"),
        ),
        canonical(
            "add",
            json!({"a": 1, "b": 1}),
            Expect::Refused("ambiguousTool"),
        ),
        canonical(
            "fastmcp/add",
            json!({"a": 2, "b": 40}),
            Expect::Structured(json!({"result": 42})),
        ),
        own(
            "fastmcp",
            "describe",
            json!({"text": "héllo big world"}),
            Expect::Structured(json!({"words": 3, "chars": 15})),
        ),
        own(
            "fastmcp",
            "fail",
            json!({"reason": "on purpose"}),
            Expect::ErrorText("on purpose"),
        ),
        own(
            "time",
            "convert_time",
            json!({"source_timezone": "Asia/Tokyo", "time": "09:30", "target_timezone": "Asia/Kolkata"}),
            Expect::StructuredAt("/time_difference", json!("-3.5h")),
        ),
        canonical(
            "get_current_time",
            json!({"timezone": "UTC"}),
            Expect::StructuredAt("/timezone", json!("UTC")),
        ),
        canonical(
            "git_log",
            json!({"repo_path": repository, "max_count": 1}),
            Expect::Text(
                "Commit history:\nCommit: 765624289c452d4aa3c98220aa4d7c3824dacb74\nAuthor: Ada\n\
             Date: 2026-01-02 03:04:05+00:00\nMessage: first\n\n"
                    .into(),
            ),
        ),
        own(
            "git",
            "git_branch",
            json!({"repo_path": repository, "branch_type": "local"}),
            Expect::Text("* main".into()),
        ),
        canonical(
            "echo",
            json!({"message": "héllo"}),
            Expect::Text("Echo: héllo".into()),
        ),
        own(
            "everything",
            "get-structured-content",
            json!({"location": "Chicago"}),
            Expect::Structured(
                json!({"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}),
            ),
        ),
        own(
            "everything",
            "nope",
            json!({}),
            Expect::Refused("capabilityMissing"),
        ),
        own(
            "filesystem",
            "read_text_file",
            json!({"path": file}),
            Expect::Structured(json!({"content": "one\ntwo\nthree\n"})),
        ),
        own(
            "filesystem",
            "read_text_file",
            json!({"path": "/etc/passwd"}),
            Expect::ErrorText("Access denied"),
        ),
        own(
            "memory",
            "create_entities",
            json!({"entities": entities}),
            Expect::Structured(json!({"entities": entities})),
        ),
        canonical(
            "read_graph",
            json!({}),
            Expect::StructuredAt("/entities/0/name", json!("Ada")),
        ),
        canonical("no_such_tool", json!({}), Expect::Refused("toolNotFound")),
    ]
}
