//! Strings in canonical JSON: printable ASCII, everything else escaped.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use super::canonical::CanonicalProblem;
use crate::wire::encode::{push_escape, push_u_escape};
use crate::wire::scan::plain_len;

/// Appends a text as a canonical string with its quotes.
pub(super) fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text;
    while let Some((plain, special)) = rest.split_at_checked(plain_len(rest.as_bytes(), 0)) {
        out.extend_from_slice(plain.as_bytes());
        let mut chars = special.chars();
        let Some(char) = chars.next() else {
            break;
        };
        push_char(out, char);
        rest = chars.as_str();
    }
    out.push(b'"');
}

/// The characters of a valid string body.
pub(super) struct Unescaped<'a>(pub(super) &'a str);

impl Iterator for Unescaped<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let char = self.0.chars().next()?;
        let (char, length_bytes) = match self.0.strip_prefix('\\') {
            Some(rest) => {
                let (char, length_bytes) = unescape(rest).ok()?;
                (char, 1 + length_bytes)
            }
            None => (char, char.len_utf8()),
        };
        self.0 = self.0.get(length_bytes..)?;
        Some(char)
    }
}

/// The string at this place of a valid text.
pub(super) fn string_at(json: &str, at: usize) -> Option<Cow<'_, str>> {
    let body = json.get(at..)?.strip_prefix('"')?;
    let mut end = 0;
    loop {
        end += plain_len(body.as_bytes(), end);
        match body.as_bytes().get(end)? {
            b'"' => break,
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
    let body = body.get(..end)?;
    Some(if memchr::memchr(b'\\', body.as_bytes()).is_some() {
        Cow::Owned(Unescaped(body).collect::<String>())
    } else {
        Cow::Borrowed(body)
    })
}

/// What an escape stands for and how long it is, without its backslash.
pub(super) fn unescape(rest: &str) -> Result<(char, usize), CanonicalProblem> {
    let char = match rest.as_bytes().first() {
        Some(b'u') => return unescape_unit(rest),
        Some(&byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        _ => return Err(CanonicalProblem::Syntax),
    };
    Ok((char, 1))
}

/// `uXXXX`, or `uXXXX\uXXXX` for a character beyond U+FFFF.
fn unescape_unit(rest: &str) -> Result<(char, usize), CanonicalProblem> {
    let unit = |from: usize| {
        let digits = rest.get(from..from + 4)?;
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then(|| u16::from_str_radix(digits, 16).ok())?
    };
    let first = unit(1).ok_or(CanonicalProblem::Syntax)?;
    if let Some(char) = char::from_u32(first.into()) {
        return Ok((char, 5));
    }
    let second = rest
        .get(5..7)
        .filter(|text| *text == "\\u")
        .and_then(|_| unit(7));
    let pair = [first, second.ok_or(CanonicalProblem::LoneSurrogate)?];
    match char::decode_utf16(pair).next() {
        Some(Ok(char)) => Ok((char, 11)),
        _ => Err(CanonicalProblem::LoneSurrogate),
    }
}

pub(super) fn push_char(out: &mut Vec<u8>, char: char) {
    match char {
        '"' | '\\' | '\0'..='\x1f' => push_escape(out, char as u8),
        ' '..='~' => out.push(char as u8),
        _ => {
            for unit in char.encode_utf16(&mut [0; 2]) {
                push_u_escape(out, *unit);
            }
        }
    }
}
