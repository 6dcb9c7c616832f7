//! How deeply a JSON text is nested (R1).

/// Whether arrays and objects are nested deeper than `max` levels anywhere in a JSON text.
///
/// `[]` is one level deep. Brackets inside strings do not count. The text should be valid JSON; of one
/// that is not, the answer means nothing but is still given.
///
/// ```
/// use mcp_proto::wire::depth;
/// assert!(!depth::exceeds(r#"{"a":["[[["]}"#, 2));
/// assert!(depth::exceeds(r#"{"a":["[[["]}"#, 1));
/// ```
#[must_use]
pub fn exceeds(text: &str, max: usize) -> bool {
    let bytes = text.as_bytes();
    // Most messages have fewer opening brackets than they may have levels.
    if bytes.len() <= max || memchr::memchr2_iter(b'{', b'[', bytes).nth(max).is_none() {
        return false;
    }
    let (mut rest, mut depth) = (bytes, 0_usize);
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth > max {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => rest = after_string(rest),
            _ => {}
        }
    }
    false
}

/// What follows the string whose body begins here.
fn after_string(mut bytes: &[u8]) -> &[u8] {
    loop {
        let Some(offset) = memchr::memchr2(b'"', b'\\', bytes) else {
            return &[];
        };
        let escaped = usize::from(bytes.get(offset) == Some(&b'\\'));
        bytes = bytes.get(offset + 1 + escaped..).unwrap_or_default();
        if escaped == 0 {
            return bytes;
        }
    }
}
