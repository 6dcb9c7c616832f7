//! Numbers in canonical JSON.

use alloc::vec::Vec;
use core::fmt::{self, Write as _};

/// A number as it stands in a text.
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    /// It has neither fraction nor exponent.
    pub(super) is_integer: bool,
}

/// The number at the start of the text, if its form is that of JSON.
// spec: RFC 8259, section 6
pub(crate) fn token(json: &str) -> Option<Token<'_>> {
    let bytes = json.as_bytes();
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut end = usize::from(bytes.first() == Some(&b'-'));
    let integer_digits = digits(end);
    if integer_digits == 0 || (integer_digits > 1 && bytes.get(end) == Some(&b'0')) {
        return None;
    }
    end += integer_digits;
    let integer_end = end;
    if bytes.get(end) == Some(&b'.') {
        let fraction_digits = digits(end + 1);
        if fraction_digits == 0 {
            return None;
        }
        end += 1 + fraction_digits;
    }
    if let Some(b'e' | b'E') = bytes.get(end) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent_digits = digits(end + 1 + sign);
        if exponent_digits == 0 {
            return None;
        }
        end += 1 + sign + exponent_digits;
    }
    Some(Token {
        text: json.get(..end)?,
        is_integer: end == integer_end,
    })
}

/// Appends a number as the double that it stands for, in the form of Python's `repr`: the fewest digits
/// that read back as the same double, always with a fraction or an exponent.
///
/// `false` when it is too large for a double.
pub(super) fn push_double(out: &mut Vec<u8>, token: &str) -> bool {
    let Some(value) = token.parse::<f64>().ok().filter(|value| value.is_finite()) else {
        return false;
    };
    let mut shortest = Shortest::default();
    // A double takes at most 24 bytes in this form: `-2.2250738585072014e-308`.
    let _ = write!(shortest, "{value:e}");
    let text = shortest.as_str();
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return false;
    };
    let Ok(exponent) = exponent.parse::<i32>() else {
        return false;
    };
    let unsigned = mantissa.strip_prefix('-').unwrap_or(mantissa);
    if unsigned.len() < mantissa.len() {
        out.push(b'-');
    }
    let (first, rest) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    match exponent {
        0..16 => push_large(out, first, rest, exponent.unsigned_abs() as usize),
        -4..0 => {
            out.extend_from_slice(b"0.");
            push_zeros(out, exponent.unsigned_abs() as usize - 1);
            out.extend_from_slice(first.as_bytes());
            out.extend_from_slice(rest.as_bytes());
        }
        _ => push_scientific(out, first, rest, exponent),
    }
    true
}

/// With the point `exponent` digits further right, and `.0` if there is nothing behind it.
fn push_large(out: &mut Vec<u8>, first: &str, rest: &str, exponent: usize) {
    out.extend_from_slice(first.as_bytes());
    match rest.as_bytes().split_at_checked(exponent) {
        Some((before, after)) if !after.is_empty() => {
            out.extend_from_slice(before);
            out.push(b'.');
            out.extend_from_slice(after);
        }
        _ => {
            out.extend_from_slice(rest.as_bytes());
            push_zeros(out, exponent.saturating_sub(rest.len()));
            out.extend_from_slice(b".0");
        }
    }
}

/// With an exponent that has a sign and at least two digits.
fn push_scientific(out: &mut Vec<u8>, first: &str, rest: &str, exponent: i32) {
    out.extend_from_slice(first.as_bytes());
    if !rest.is_empty() {
        out.push(b'.');
        out.extend_from_slice(rest.as_bytes());
    }
    let mut text = Shortest::default();
    let _ = write!(text, "e{exponent:+03}");
    out.extend_from_slice(text.as_str().as_bytes());
}

fn push_zeros(out: &mut Vec<u8>, count: usize) {
    out.extend(core::iter::repeat_n(b'0', count));
}

/// A short text on the stack.
#[derive(Default)]
struct Shortest {
    bytes: [u8; 32],
    length: usize,
}

impl Shortest {
    fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.length).unwrap_or_default();
        core::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl fmt::Write for Shortest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        let place = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}
