//! Bytes from a server made fit for a person's eyes.

use alloc::string::String;

const ELLIPSIS: char = '…';

/// The bytes as text that is safe to print, in at most `max_bytes` bytes.
///
/// Control characters are escaped, and so are invisible ones that could reorder or hide text; invalid
/// UTF-8 becomes U+FFFD. What does not fit is cut at a character and replaced by `…`.
///
/// ```
/// use mcp_proto::wire::printable;
/// assert_eq!(printable(b"\x1b[31mred\n", 100), "\\u{1b}[31mred\\n");
/// assert_eq!(printable("größer".as_bytes(), 8), "größer");
/// assert_eq!(printable("größer als".as_bytes(), 8), "grö…");
/// ```
#[must_use]
pub fn printable(bytes: &[u8], max_bytes: usize) -> String {
    let mut text = String::new();
    let mut cut = 0;
    // No byte disappears, so the bytes after these would not fit anyway.
    let candidates = bytes.get(..max_bytes.saturating_add(4)).unwrap_or(bytes);
    for chunk in candidates.utf8_chunks() {
        let invalid = (!chunk.invalid().is_empty()).then_some(char::REPLACEMENT_CHARACTER);
        for char in chunk.valid().chars().chain(invalid) {
            match char {
                '"' | '\'' | '\\' => text.push(char),
                _ => text.extend(char.escape_debug()),
            }
            if text.len() > max_bytes {
                text.truncate(cut);
                if cut + ELLIPSIS.len_utf8() <= max_bytes {
                    text.push(ELLIPSIS);
                }
                return text;
            }
            if text.len() + ELLIPSIS.len_utf8() <= max_bytes {
                cut = text.len();
            }
        }
    }
    text
}
