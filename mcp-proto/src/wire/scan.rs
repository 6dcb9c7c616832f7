//! Walking through an object without opening its values.
//!
//! serde_json's own map access does the same, at nearly twice the cost for the short messages that most
//! are. Values are still read, and checked, by serde_json.

use alloc::borrow::Cow;

use serde::Deserialize as _;
use serde_json::value::RawValue;

/// A place in a JSON text. Methods that return `None` have met something that is not as it should be;
/// the cursor is of no use afterwards.
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Reads an object that comes next. `member` is called after the colon of each member and reads its
    /// value.
    #[inline]
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, Cow<'a, str>) -> Option<()>,
    ) -> Option<()> {
        self.eat(b'{')?;
        if self.peek() != Some(b'}') {
            loop {
                let name = self.name()?;
                self.eat(b':')?;
                member(self, name)?;
                match self.peek()? {
                    b',' => self.at += 1,
                    b'}' => break,
                    _ => return None,
                }
            }
        }
        self.at += 1;
        Some(())
    }

    /// Reads an array that comes next. `element` is called before each element and reads it.
    #[inline]
    pub(crate) fn array(&mut self, mut element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.eat(b'[')?;
        if self.peek() != Some(b']') {
            loop {
                element(self)?;
                match self.peek()? {
                    b',' => self.at += 1,
                    b']' => break,
                    _ => return None,
                }
            }
        }
        self.at += 1;
        Some(())
    }

    /// Reads any value that comes next.
    #[inline]
    pub(crate) fn value(&mut self) -> Option<&'a RawValue> {
        let first = self.peek()?;
        let rest = self.text.get(self.at..)?;
        // The commonest values of all need no second reader.
        match first {
            b't' if rest.starts_with("true") => {
                self.at += 4;
                return Some(RawValue::TRUE);
            }
            b'f' if rest.starts_with("false") => {
                self.at += 5;
                return Some(RawValue::FALSE);
            }
            _ => {}
        }
        let mut deserializer = serde_json::Deserializer::from_str(rest);
        let value = <&RawValue>::deserialize(&mut deserializer).ok()?;
        self.at += value.get().len();
        Some(value)
    }

    /// Reads any value that comes next, as its text. Cheaper than [`Cursor::value`] for a string without
    /// escapes and for a plain integer.
    #[inline]
    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let first = self.peek()?;
        let bytes = self.text.as_bytes();
        let (start, after) = (self.at, self.at + 1);
        let end = match first {
            b'"' => {
                let end = after + plain_len(bytes, after);
                (bytes.get(end) == Some(&b'"')).then_some(end + 1)
            }
            b'1'..=b'9' => {
                let digits = bytes
                    .get(after..)?
                    .iter()
                    .take_while(|byte| byte.is_ascii_digit());
                let end = after + digits.count();
                matches!(bytes.get(end), Some(b',' | b'}')).then_some(end)
            }
            _ => None,
        };
        match end {
            Some(end) => {
                self.at = end;
                self.text.get(start..end)
            }
            None => self.value().map(RawValue::get),
        }
    }

    /// Whether nothing but white space is left.
    pub(crate) fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    /// The next byte that is no white space.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at)? {
                b' ' | b'\n' | b'\t' | b'\r' => self.at += 1,
                byte => return Some(*byte),
            }
        }
    }

    #[inline]
    fn eat(&mut self, expected: u8) -> Option<()> {
        if self.peek()? != expected {
            return None;
        }
        self.at += 1;
        Some(())
    }

    #[inline(always)] // twice in the whole crate, and 5 % of reading a short message
    fn name(&mut self) -> Option<Cow<'a, str>> {
        self.eat(b'"')?;
        let start = self.at;
        let mut is_escaped = false;
        loop {
            self.at += plain_len(self.text.as_bytes(), self.at);
            match self.text.as_bytes().get(self.at)? {
                b'"' => break,
                b'\\' => {
                    is_escaped = true;
                    self.at += 2;
                }
                0x7f.. => self.at += 1,
                _ => return None,
            }
        }
        let name = self.text.get(start..self.at)?;
        self.at += 1;
        if is_escaped {
            let quoted = self.text.get(start - 1..self.at)?;
            return serde_json::from_str(quoted).ok().map(Cow::Owned);
        }
        Some(Cow::Borrowed(name))
    }
}

/// How many bytes from here on are printable ASCII other than `"` and `\`.
///
/// Eight at a time; the last ones are looked at together with some before them, which are known.
#[inline]
pub(crate) fn plain_len(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let mut length = 0;
    while let Some(word) = rest.get(length..).and_then(<[u8]>::first_chunk) {
        if let Some(place) = first_special(*word) {
            return length + place;
        }
        length += 8;
    }
    if let Some(word) = rest.last_chunk() {
        return first_special(*word).map_or(rest.len(), |place| rest.len() - 8 + place);
    }
    let is_plain = |byte: &u8| matches!(byte, 0x20..=0x7e) && !matches!(byte, b'"' | b'\\');
    rest.iter().take_while(|byte| is_plain(byte)).count()
}

/// The place of the first byte that is special.
///
/// Subtracting and adding in every lane of a word sets the lane's highest bit where the byte is special.
/// A carry can only disturb lanes after one that is.
#[inline]
fn first_special(word: [u8; 8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let word = u64::from_le_bytes(word);
    let quote = word ^ (ONES * 0x22);
    let backslash = word ^ (ONES * 0x5c);
    let special = (word.wrapping_sub(ONES * 0x20) & !word)
        | (quote.wrapping_sub(ONES) & !quote)
        | (backslash.wrapping_sub(ONES) & !backslash)
        | word.wrapping_add(ONES)
        | word;
    let special = special & HIGH;
    (special != 0).then(|| special.trailing_zeros() as usize / 8)
}
