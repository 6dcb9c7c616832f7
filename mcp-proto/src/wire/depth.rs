//! How deeply a JSON text is nested (R1).

use super::scan::plain_len;

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
pub fn exceeds(json: impl AsRef<[u8]>, max: usize) -> bool {
    let bytes = json.as_ref();
    // Every level takes two bytes at least, and most messages have fewer brackets than levels allowed.
    if bytes.len() / 2 <= max || !has_more_brackets(bytes, max) {
        return false;
    }
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth > max {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => at = after_string(bytes, at),
            _ => {}
        }
    }
    false
}

/// Whether there are more than `max` opening brackets, in strings or not.
fn has_more_brackets(bytes: &[u8], max: usize) -> bool {
    let mut count = 0;
    // So short that a byte can hold the count, which lets the compiler use all lanes of a vector.
    bytes.chunks(128).any(|chunk| {
        let is_bracket = |byte: &u8| u8::from(matches!(byte, b'{' | b'['));
        count += usize::from(chunk.iter().map(is_bracket).sum::<u8>());
        count > max
    })
}

/// Where the text goes on after the string whose body begins here.
#[inline]
fn after_string(bytes: &[u8], mut at: usize) -> usize {
    loop {
        at += plain_len(bytes, at);
        match bytes.get(at) {
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
            None => return at,
        }
    }
}
