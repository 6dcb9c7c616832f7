//! The standard alphabet of RFC 4648, section 4, decoding only.

/// The bytes, or `None` for a foreign character, wrong padding or a truncated group.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    let padded = text.len() - digits.len();
    if !text.len().is_multiple_of(4) || padded > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut buffer, mut bits) = (0_u32, 0);
    for digit in digits.bytes() {
        buffer = (buffer << 6 | u32::from(value(digit)?)) & 0xffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            // Truncation keeps the eight bits that are complete.
            bytes.push((buffer >> bits) as u8);
        }
    }
    Some(bytes)
}

fn value(digit: u8) -> Option<u8> {
    Some(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn decodes_the_vectors_of_rfc_4648_section_10() {
        for (text, plain) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
            ("Zm9vYmE=", "fooba"),
            ("Zm9vYmFy", "foobar"),
        ] {
            assert_eq!(decode(text).as_deref(), Some(plain.as_bytes()), "{text}");
        }
        assert_eq!(decode("//4g"), Some(vec![0xff, 0xfe, 0x20]));
        for bad in ["Zg", "Zg=", "Z===", "Zm9v!m8=", "Zm=v"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
