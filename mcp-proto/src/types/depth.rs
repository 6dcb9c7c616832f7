//! How deep a JSON text nests.

/// Whether arrays and objects nest deeper than `max` levels; a scalar has depth 0.
///
/// The text must be valid JSON. Stops at the first bracket that is too deep.
pub(super) fn exceeds(text: &str, max: usize) -> bool {
    let mut bytes = text.as_bytes();
    let mut depth = 0_usize;
    while let Some((first, rest)) = bytes.split_first() {
        bytes = rest;
        match first {
            b'"' => bytes = after_string(rest),
            b'[' | b'{' => {
                depth += 1;
                if depth > max {
                    return true;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// What follows a string whose opening quote was read already.
fn after_string(mut bytes: &[u8]) -> &[u8] {
    while let Some(at) = memchr::memchr2(b'"', b'\\', bytes) {
        let escaped = bytes.get(at) == Some(&b'\\');
        let next = if escaped { at + 2 } else { at + 1 };
        bytes = bytes.get(next..).unwrap_or_default();
        if !escaped {
            return bytes;
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn brackets_in_strings_do_not_count() {
        assert!(!exceeds(r#""[[[[\"[[""#, 0));
        assert!(!exceeds(r#"{"[":"]","a\\":{}}"#, 2));
        assert!(exceeds(r#"{"[":"]","a\\":{}}"#, 1));
        assert!(!exceeds("1", 0));
    }

    proptest! {
        /// R1: the count is exact, so that the limit is the limit.
        #[test]
        fn exact(depth in 0_usize..300, siblings in 0_usize..3) {
            let text = format!(
                "[{}{}{}]",
                "[],".repeat(siblings),
                "[".repeat(depth),
                if depth == 0 { "0".into() } else { "]".repeat(depth) },
            );
            let actual = (1 + depth).max(if siblings > 0 { 2 } else { 1 });
            prop_assert!(exceeds(&text, actual - 1));
            prop_assert!(!exceeds(&text, actual));
        }
    }
}
