//! What the server has to offer, as each revision describes it.

use serde_json::{Map, Value, json};

use super::Revision;
use crate::LegacyVersion;

const AUDIO_SINCE: Revision = Revision::Legacy(LegacyVersion::V2025_03_26);
const ANNOTATIONS_SINCE: Revision = Revision::Legacy(LegacyVersion::V2025_03_26);
const LINKS_SINCE: Revision = Revision::Legacy(LegacyVersion::V2025_06_18);
const STRUCTURED_SINCE: Revision = Revision::Legacy(LegacyVersion::V2025_06_18);
const ELICITATION_SINCE: Revision = Revision::Legacy(LegacyVersion::V2025_06_18);
const TITLES_SINCE: Revision = Revision::Legacy(LegacyVersion::V2025_06_18);

pub(super) const README: &str = "fake://text/readme";
const PIXEL: &str = "fake://blob/pixel";
pub(super) const TEMPLATE: &str = "fake://notes/{id}";

/// A transparent PNG of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
/// A WAV header without samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// The built-in tools in the order they are listed.
pub(super) const TOOLS: [&str; 14] = [
    "echo",
    "add",
    "fail",
    "rpc_error",
    "slow",
    "progress",
    "big",
    "content",
    "ask",
    "env",
    "touch_list",
    "touch_resource",
    "end_listen",
    "exit",
];

/// Whether results and tools of this revision may be structured.
pub(super) fn has_structured_content(revision: Revision) -> bool {
    revision >= STRUCTURED_SINCE
}

/// Whether the revision has the tool; the others cannot be expressed in it.
pub(super) fn has_tool(name: &str, revision: Revision) -> bool {
    match name {
        "ask" => revision >= ELICITATION_SINCE,
        "end_listen" => revision == Revision::Modern,
        _ => true,
    }
}

/// A tool of any name with the least schema there is.
pub(super) fn plain_tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

/// The descriptor of a built-in tool, or `None` for another name.
pub(super) fn tool(name: &str, exposed: &str, revision: Revision) -> Option<Value> {
    let (description, required, optional, reads_only): (&str, &[Field], &[Field], bool) = match name
    {
        "echo" => ("Gives the text back", &[("text", "string")], &[], true),
        "add" => (
            "Adds two numbers",
            &[("a", "number"), ("b", "number")],
            &[],
            true,
        ),
        "fail" => ("Always fails", &[], &[], true),
        "rpc_error" => (
            "Answers with a protocol error",
            &[],
            &[("code", "integer"), ("message", "string")],
            true,
        ),
        "slow" => ("Answers late", &[("ms", "integer")], &[], true),
        "progress" => (
            "Reports progress",
            &[("steps", "integer")],
            &[("everyMs", "integer")],
            true,
        ),
        "big" => ("Answers with much text", &[("bytes", "integer")], &[], true),
        "content" => ("Answers with every type of content", &[], &[], true),
        "ask" => ("Asks the user for a name", &[], &[], true),
        "env" => (
            "Reads an environment variable",
            &[("name", "string")],
            &[],
            true,
        ),
        "touch_list" => ("Adds a tool", &[], &[], false),
        "touch_resource" => ("Changes a resource", &[("uri", "string")], &[], false),
        "end_listen" => ("Ends every subscription", &[], &[], false),
        "exit" => ("Ends the server", &[], &[("code", "integer")], false),
        _ => return None,
    };
    let mut tool = Map::new();
    tool.insert("name".into(), exposed.into());
    tool.insert("description".into(), description.into());
    tool.insert("inputSchema".into(), schema(required, optional));
    if revision >= ANNOTATIONS_SINCE {
        tool.insert("annotations".into(), json!({"readOnlyHint": reads_only}));
    }
    if revision >= TITLES_SINCE {
        tool.insert("title".into(), description.into());
    }
    if name == "add" && has_structured_content(revision) {
        tool.insert("outputSchema".into(), schema(&[("sum", "number")], &[]));
    }
    Some(tool.into())
}

type Field = (&'static str, &'static str);

fn schema(required: &[Field], optional: &[Field]) -> Value {
    let properties: Map<String, Value> = required
        .iter()
        .chain(optional)
        .map(|(name, kind)| ((*name).to_owned(), json!({"type": kind})))
        .collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if let (false, Value::Object(members)) = (required.is_empty(), &mut schema) {
        let names: Vec<&str> = required.iter().map(|(name, _)| *name).collect();
        members.insert("required".into(), names.into());
    }
    schema
}

/// One content block of every type the revision has.
pub(super) fn content_blocks(revision: Revision) -> Vec<Value> {
    let mut blocks = vec![
        json!({"type": "text", "text": "text"}),
        json!({"type": "image", "data": PNG, "mimeType": "image/png"}),
    ];
    if revision >= AUDIO_SINCE {
        blocks.push(json!({"type": "audio", "data": WAV, "mimeType": "audio/wav"}));
    }
    if let Some(contents) = resource_contents(README) {
        blocks.push(json!({"type": "resource", "resource": contents}));
    }
    if revision >= LINKS_SINCE {
        blocks.push(json!({"type": "resource_link", "uri": PIXEL, "name": "pixel", "mimeType": "image/png"}));
    }
    blocks
}

pub(super) fn resources(revision: Revision) -> Vec<Value> {
    vec![
        titled(
            json!({"uri": README, "name": "readme", "description": "A text", "mimeType": "text/plain"}),
            "Read me",
            revision,
        ),
        titled(
            json!({"uri": PIXEL, "name": "pixel", "description": "An image", "mimeType": "image/png"}),
            "Pixel",
            revision,
        ),
    ]
}

pub(super) fn resource_templates(revision: Revision) -> Vec<Value> {
    vec![titled(
        json!({"uriTemplate": TEMPLATE, "name": "note", "description": "A note", "mimeType": "text/plain"}),
        "Note",
        revision,
    )]
}

pub(super) fn resource_contents(uri: &str) -> Option<Value> {
    match uri {
        README => Some(json!({"uri": uri, "mimeType": "text/plain", "text": "Read me.\n"})),
        PIXEL => Some(json!({"uri": uri, "mimeType": "image/png", "blob": PNG})),
        _ => {
            let id = uri.strip_prefix("fake://notes/")?;
            let text = format!("Note {id}");
            (!id.is_empty()).then(|| json!({"uri": uri, "mimeType": "text/plain", "text": text}))
        }
    }
}

pub(super) fn prompts(revision: Revision) -> Vec<Value> {
    vec![
        titled(
            json!({"name": "greeting", "description": "Greets the user"}),
            "Greeting",
            revision,
        ),
        titled(
            json!({
                "name": "review",
                "description": "Reviews code",
                "arguments": [
                    {"name": "code", "description": "What to review", "required": true},
                    {"name": "style", "description": "How to say it", "required": false},
                ],
            }),
            "Review",
            revision,
        ),
    ]
}

fn titled(mut entry: Value, title: &str, revision: Revision) -> Value {
    if let (true, Value::Object(members)) = (revision >= TITLES_SINCE, &mut entry) {
        members.insert("title".into(), title.into());
    }
    entry
}
