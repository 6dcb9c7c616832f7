//! Results for people.

use std::io::IsTerminal;

use mcp_proto::types::{
    CallToolResult, Content, GetPromptResult, ReadResourceResult, ResourceBody, ResourceView,
};
use mcp_proto::wire::printable;

use super::one_line;
use super::pretty::pretty;

/// Where a text is shown. A program gets it as it is; for a terminal it is made harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    Program,
    Terminal,
}

impl Reader {
    /// Who reads this stream.
    pub(crate) fn of(stream: &impl IsTerminal) -> Self {
        if stream.is_terminal() {
            Self::Terminal
        } else {
            Self::Program
        }
    }

    fn verbatim(self, text: &str) -> String {
        match self {
            Self::Program => text.to_owned(),
            Self::Terminal => harmless(text),
        }
    }
}

/// What a tool says: its text, one line for each other block, and its structured content where there is
/// no text.
pub(crate) fn text(result: &CallToolResult, reader: Reader) -> String {
    let mut shown = String::new();
    let mut has_text = false;
    for content in &result.content {
        let view = content.view();
        has_text |= matches!(view, Content::Text { .. });
        push_line(&mut shown, &block(&view, reader));
    }
    if let Some(structured) = result.structured_content.as_ref().filter(|_| !has_text) {
        push_line(&mut shown, &reader.verbatim(&pretty(structured.as_str())));
    }
    shown
}

/// One content block.
fn block(content: &Content<'_>, reader: Reader) -> String {
    match content {
        Content::Text { text } => reader.verbatim(text),
        Content::Image { data, mime_type } => media("image", mime_type, data),
        Content::Audio { data, mime_type } => media("audio", mime_type, data),
        Content::Resource(view) => resource(view),
        Content::ResourceLink { uri, name, .. } => one_line(&format!("[link {uri} ({name})]")),
        Content::Unknown { kind, raw } => one_line(&format!("[{kind}, {} bytes]", raw.get().len())),
        _ => "[content of an unknown kind]".to_owned(),
    }
}

/// What a resource holds.
pub(crate) fn contents(result: &ReadResourceResult, reader: Reader) -> String {
    let mut shown = String::new();
    for part in &result.contents {
        let view = part.view();
        let part = match &view.body {
            ResourceBody::Text(text) => reader.verbatim(text),
            ResourceBody::Blob(_) => resource(&view),
        };
        push_line(&mut shown, &part);
    }
    shown
}

/// The messages of a prompt, each under who says it.
pub(crate) fn prompt(result: &GetPromptResult, reader: Reader) -> String {
    let mut shown = String::new();
    for message in &result.messages {
        let said = block(&message.content(), reader);
        push_line(&mut shown, &format!("{}: {said}", message.role().as_str()));
    }
    shown
}

fn resource(view: &ResourceView<'_>) -> String {
    match &view.body {
        ResourceBody::Text(text) => one_line(&format!(
            "[resource {}, {} bytes of text]",
            view.uri,
            text.len()
        )),
        ResourceBody::Blob(blob) => {
            let kind = view.mime_type.as_deref().unwrap_or("unknown type");
            let bytes = decoded_len(blob);
            one_line(&format!("[resource {}, {kind}, {bytes} bytes]", view.uri))
        }
    }
}

fn media(kind: &str, mime_type: &str, data: &str) -> String {
    one_line(&format!(
        "[{kind} {mime_type}, {} bytes]",
        decoded_len(data)
    ))
}

/// How many bytes a Base64 text stands for.
// spec: RFC 4648, section 4
fn decoded_len(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

/// The text with its lines and tabs, and all other control characters escaped.
fn harmless(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            shown.push('\n');
        }
        let line = line.strip_suffix('\r').unwrap_or(line);
        for (index, cell) in line.split('\t').enumerate() {
            if index > 0 {
                shown.push('\t');
            }
            shown.push_str(&printable(cell.as_bytes(), usize::MAX));
        }
    }
    shown
}

/// Appends a text and ends its last line.
fn push_line(shown: &mut String, text: &str) {
    shown.push_str(text);
    if !text.is_empty() && !text.ends_with('\n') {
        shown.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_sees_lines_and_tabs_and_nothing_that_commands_it() {
        assert_eq!(
            harmless("a\tb\r\n\u{1b}[2Jc\u{7}\n"),
            "a\tb\n\\u{1b}[2Jc\\u{7}\n"
        );
    }

    #[test]
    fn base64_is_counted_without_its_padding() {
        for (base64, bytes) in [
            ("", 0),
            ("QQ==", 1),
            ("QUI=", 2),
            ("QUJD", 3),
            ("QUJDRA==", 4),
        ] {
            assert_eq!(decoded_len(base64), bytes, "{base64}");
        }
    }
}
