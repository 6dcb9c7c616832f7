//! References that lead out of a JSON Schema.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;

use memchr::memmem::Finder;

use crate::types::Tool;
use crate::types::object::Quoted;

/// Looks for references that would have to be fetched. Nothing is ever fetched: a tool whose schemas
/// need it is left out, so that no validator is tempted either.
///
/// spec: 2026-07-28 basic#ref-resolution
pub(super) struct References {
    /// The end of every member name that refers, closing quote included.
    name_end: Finder<'static>,
    /// The start of an escape that can spell such a name differently.
    escape: Finder<'static>,
}

impl References {
    pub(super) fn new() -> Self {
        Self {
            name_end: Finder::new("ef\""),
            escape: Finder::new("\\u"),
        }
    }

    /// Why the tool is to be left out, if one of its schemas leads outside.
    ///
    /// Takes time linear in the schemas, without recursion. A `$ref` inside of example data counts as
    /// well: it cannot be told apart without interpreting the schema.
    pub(super) fn external(&self, tool: &Tool) -> Option<String> {
        let text = tool_text(tool);
        if self.name_end.find(text).is_none() && self.escape.find(text).is_none() {
            return None;
        }
        let schemas = [
            ("inputSchema", tool.input_schema()),
            ("outputSchema", tool.output_schema()),
        ];
        schemas.into_iter().find_map(|(member, schema)| {
            let target = external_target(schema?.get())?;
            Some(format!(
                "{member} refers to {}, which is outside of the schema",
                Quoted(&target)
            ))
        })
    }
}

fn tool_text(tool: &Tool) -> &[u8] {
    use crate::types::Entry as _;
    tool.raw().as_str().as_bytes()
}

/// The first reference in a valid JSON text that does not stay inside of it.
fn external_target(schema: &str) -> Option<Cow<'_, str>> {
    let mut rest = schema;
    while let Some((token, after)) = next_string(rest) {
        rest = after;
        let Some(value) = after.trim_start().strip_prefix(':') else {
            continue;
        };
        let value = value.trim_start();
        if !refers(&decode(token)) || !value.starts_with('"') {
            continue;
        }
        let (target, after) = next_string(value)?;
        rest = after;
        let target = decode(target);
        if !target.is_empty() && !target.starts_with('#') {
            return Some(target);
        }
    }
    None
}

fn refers(name: &str) -> bool {
    matches!(name, "$ref" | "$dynamicRef" | "$recursiveRef")
}

/// The first string token of a valid JSON text, quotes included, and what follows it.
fn next_string(text: &str) -> Option<(&str, &str)> {
    let start = memchr::memchr(b'"', text.as_bytes())?;
    let token = text.get(start..)?;
    let mut end = 1;
    loop {
        let tail = token.as_bytes().get(end..)?;
        let at = memchr::memchr2(b'"', b'\\', tail)?;
        if tail.get(at) == Some(&b'"') {
            return token.split_at_checked(end + at + 1);
        }
        end += at + 2;
    }
}

/// The characters of a string token. One that stands for no text is returned as it is written, which
/// is no name that refers and no local target.
fn decode(token: &str) -> Cow<'_, str> {
    let inner = token.trim_matches('"');
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    match serde_json::from_str(token) {
        Ok(text) => Cow::Owned(text),
        Err(_) => Cow::Borrowed(token),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fragments_stay_inside() {
        for (schema, expected) in [
            (r##"{"$ref":"#/$defs/a"}"##, None),
            (r##"{"$ref":"#"}"##, None),
            (r#"{"$ref":""}"#, None),
            (r##"{"$dynamicRef":"#meta"}"##, None),
            (r#"{"properties":{"$ref":{"type":"string"}}}"#, None),
            (r#"{"enum":["$ref","http://x/"]}"#, None),
            (
                r#"{"$schema":"http://json-schema.org/draft-07/schema#"}"#,
                None,
            ),
            (r#"{"a":[{"$ref" : "http://x/"}]}"#, Some("http://x/")),
            (
                r#"{"$ref":"file:///etc/passwd"}"#,
                Some("file:///etc/passwd"),
            ),
            (r#"{"$ref":"other.json"}"#, Some("other.json")),
            (r#"{"\u0024ref":"\u0068ttp:\/\/x"}"#, Some("http://x")),
            (r#"{"$recursiveRef":"//x"}"#, Some("//x")),
            (r#"{"x":"\"$ref\":\"http://x\""}"#, None),
        ] {
            assert_eq!(external_target(schema).as_deref(), expected, "{schema}");
        }
    }
}
