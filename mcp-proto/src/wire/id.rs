//! Request ids as they stand on the wire.

use core::fmt;

/// The id of a request in the exact words of its sender, so that it can be echoed unchanged: the JSON
/// text of a string (with its quotes) or of an integer.
///
/// `92` and `"92"` are different ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdToken<'a>(&'a str);

impl<'a> IdToken<'a> {
    /// The id, if the JSON text is one: a string or an integer, without a fraction or an exponent.
    ///
    /// spec: 2026-07-28 basic#requests ("MUST include a string or integer ID")
    #[must_use]
    pub fn parse(json: &'a str) -> Option<Self> {
        let digits = json.strip_prefix('-').unwrap_or(json);
        let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        (is_integer || json.starts_with('"')).then_some(Self(json))
    }

    /// The JSON text.
    #[must_use]
    pub const fn as_str(self) -> &'a str {
        self.0
    }

    /// The number, if this is a plain non-negative integer that fits: the only form in which this
    /// client's own ids come back.
    #[must_use]
    pub fn as_u64(self) -> Option<u64> {
        plain_u64(self.0.as_bytes())
    }
}

impl fmt::Display for IdToken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The id of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseId<'a> {
    /// There is no member `id`.
    Absent,
    /// `null`: what JSON-RPC wants when the request's id could not be read.
    Null,
    /// A string or an integer.
    Token(IdToken<'a>),
}

impl ResponseId<'_> {
    /// The number of the request that is answered, if it can be one of this client's.
    #[must_use]
    pub fn as_u64(self) -> Option<u64> {
        match self {
            Self::Token(token) => token.as_u64(),
            Self::Absent | Self::Null => None,
        }
    }
}

/// Looks for the top-level member `id` in a line that is no valid JSON or that was cut off, so that
/// the call which it was meant for can be failed at once instead of by its deadline.
///
/// Finds plain non-negative integers only. It is a guess about bytes that mean nothing, and good
/// enough for that: the worst a server can do is to fail another call of its own.
///
/// ```
/// use mcp_proto::wire::salvage_id;
/// assert_eq!(salvage_id(br#"{"jsonrpc":"2.0","id":7,"result":{"x":NaN}}"#), Some(7));
/// assert_eq!(salvage_id(br#"{"result":{"id":7},"#), None);
/// ```
#[must_use]
pub fn salvage_id(line: &[u8]) -> Option<u64> {
    let rest = line.trim_ascii_start().strip_prefix(b"{")?;
    let mut id = None;
    for (name, value) in (TopLevelMembers { rest, depth: 1 }) {
        match name {
            // A request of the server's own answers nothing.
            b"method" => return None,
            b"id" => id = id.or_else(|| leading_u64(value)),
            _ => {}
        }
    }
    id
}

/// The names of an object's members, each with all that follows its colon, as far as the bytes make
/// sense.
struct TopLevelMembers<'a> {
    rest: &'a [u8],
    depth: usize,
}

impl<'a> Iterator for TopLevelMembers<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        while let Some((&byte, after)) = self.rest.split_first() {
            self.rest = after;
            match byte {
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.checked_sub(1).filter(|&depth| depth > 0)?,
                b'"' => {
                    let text = string_body(after)?;
                    self.rest = after.get(text.len() + 1..)?;
                    let value = self.rest.trim_ascii_start().strip_prefix(b":");
                    if let (1, Some(value)) = (self.depth, value) {
                        return Some((text, value.trim_ascii_start()));
                    }
                }
                _ => {}
            }
        }
        None
    }
}

/// The bytes up to the quote that closes a string.
fn string_body(bytes: &[u8]) -> Option<&[u8]> {
    let mut end = 0;
    loop {
        let rest = bytes.get(end..)?;
        let offset = memchr::memchr2(b'"', b'\\', rest)?;
        end += offset;
        if rest.get(offset) == Some(&b'"') {
            return bytes.get(..end);
        }
        end += 2;
    }
}

/// The integer at the start, if what ends it is there: a number that was cut off is another number.
fn leading_u64(bytes: &[u8]) -> Option<u64> {
    let end = bytes.iter().position(|byte| !byte.is_ascii_digit())?;
    let (digits, rest) = bytes.split_at_checked(end)?;
    matches!(
        rest.first(),
        Some(b',' | b'}' | b' ' | b'\t' | b'\r' | b'\n')
    )
    .then(|| plain_u64(digits))
    .flatten()
}

/// Digits without sign or leading zero.
fn plain_u64(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || (digits.len() > 1 && digits.first() == Some(&b'0')) {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| byte - b'0')?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}
