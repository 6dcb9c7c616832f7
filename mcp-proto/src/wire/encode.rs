//! Writing messages: one line each, straight into the caller's buffer.

use alloc::vec::Vec;
use core::fmt::{self, Write as _};

use super::id::IdToken;
use super::scan::plain_len;

/// Writes one JSON object, member by member, without building it first.
///
/// Names must differ; nothing checks that. The closing brace is written by [`ObjectWriter::end`].
///
/// ```
/// use mcp_proto::wire::ObjectWriter;
/// let mut out = Vec::new();
/// let mut object = ObjectWriter::new(&mut out);
/// object.string("name", "a \"b\"").u64("n", 1).raw("list", "[1,\n 2]");
/// object.end();
/// assert_eq!(out, br#"{"name":"a \"b\"","n":1,"list":[1, 2]}"#);
/// ```
#[derive(Debug)]
pub struct ObjectWriter<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

impl<'a> ObjectWriter<'a> {
    /// Opens an object at the end of the buffer.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self {
            out,
            is_empty: true,
        }
    }

    /// Writes a name and its colon, and gives the buffer to write the value to.
    pub fn key(&mut self, name: &str) -> &mut Vec<u8> {
        self.comma();
        push_string(self.out, name);
        self.out.push(b':');
        self.out
    }

    /// A member with a string.
    pub fn string(&mut self, name: &str, value: &str) -> &mut Self {
        push_string(self.key(name), value);
        self
    }

    /// A member with a non-negative integer.
    pub fn u64(&mut self, name: &str, value: u64) -> &mut Self {
        push_u64(self.key(name), value);
        self
    }

    /// A member with any JSON value, given as valid JSON text.
    pub fn raw(&mut self, name: &str, json: &str) -> &mut Self {
        push_single_line(self.key(name), json);
        self
    }

    /// Members of another object: its valid JSON text without the braces, which may be empty.
    pub fn members(&mut self, members: &str) -> &mut Self {
        if !members.trim_ascii().is_empty() {
            self.comma();
            push_single_line(self.out, members);
        }
        self
    }

    /// The same for members that hold no line break and are not blank unless they are empty.
    pub(crate) fn line_of_members(&mut self, members: &str) -> &mut Self {
        if !members.is_empty() {
            self.comma();
            self.out.extend_from_slice(members.as_bytes());
        }
        self
    }

    /// Opens an object as the value of a member. End it before going on with this one.
    pub fn object(&mut self, name: &str) -> ObjectWriter<'_> {
        ObjectWriter::new(self.key(name))
    }

    /// Closes the object.
    pub fn end(self) {
        self.out.push(b'}');
    }

    fn comma(&mut self) {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
    }
}

/// Opens a message: its object with the member `jsonrpc`.
pub(crate) fn message(out: &mut Vec<u8>) -> ObjectWriter<'_> {
    out.extend_from_slice(br#"{"jsonrpc":"2.0""#);
    ObjectWriter {
        out,
        is_empty: false,
    }
}

/// Closes a message and its line.
pub(crate) fn end_line(message: ObjectWriter<'_>) {
    message.out.extend_from_slice(b"}\n");
}

/// Appends a notification as one line. `params` is the valid JSON text of an object.
pub fn notification(out: &mut Vec<u8>, method: &str, params: Option<&str>) {
    let mut message = message(out);
    message.string("method", method);
    if let Some(params) = params {
        message.raw("params", params);
    }
    end_line(message);
}

/// Appends the successful response to a server's request as one line. `result` is the valid JSON text
/// of an object.
pub fn response_result(out: &mut Vec<u8>, id: IdToken<'_>, result: &str) {
    let mut message = message(out);
    message.raw("id", id.as_str()).raw("result", result);
    end_line(message);
}

/// Appends an error response to a server's request as one line.
pub fn response_error(out: &mut Vec<u8>, id: IdToken<'_>, code: i64, text: &str) {
    let mut message = message(out);
    let mut error = message.raw("id", id.as_str()).object("error");
    push_display(error.key("code"), code);
    error.string("message", text);
    error.end();
    end_line(message);
}

/// Appends a string with its quotes, escaped as JSON demands and no further.
// spec: RFC 8259, section 7
pub fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(end) = find_escape(rest) {
        let (plain, special) = rest.split_at(end);
        out.extend_from_slice(plain);
        let Some((&byte, after)) = special.split_first() else {
            break;
        };
        push_escape(out, byte);
        rest = after;
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Appends a valid JSON text without its line breaks, so that it can be part of a line. Strings cannot
/// hold a line break as it is, so nothing but white space is lost.
pub fn push_single_line(out: &mut Vec<u8>, json: &str) {
    let mut rest = json.as_bytes();
    while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
        let (before, after) = rest.split_at(end);
        out.extend_from_slice(before);
        rest = after.get(1..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
}

/// Appends a number in decimal.
pub(crate) fn push_u64(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut used = 0;
    for place in digits.iter_mut().rev() {
        // A remainder of ten fits.
        *place = b'0' + (number % 10) as u8;
        number /= 10;
        used += 1;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(digits.len() - used..).unwrap_or_default());
}

pub(crate) fn push_display(out: &mut Vec<u8>, value: impl fmt::Display) {
    struct Appender<'a>(&'a mut Vec<u8>);
    impl fmt::Write for Appender<'_> {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.extend_from_slice(text.as_bytes());
            Ok(())
        }
    }
    // Appending to a vector cannot fail.
    let _ = write!(Appender(out), "{value}");
}

/// The escape of a character that cannot stand in a string as it is: a quote, a backslash or a control
/// character.
pub(crate) fn push_escape(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => return push_u_escape(out, u16::from(byte)),
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// `\uXXXX` in lower case.
pub(crate) fn push_u_escape(out: &mut Vec<u8>, unit: u16) {
    let digit = |shift: u16| match (unit >> shift & 0xf) as u8 {
        value @ 0..=9 => b'0' + value,
        value => b'a' + value - 10,
    };
    out.extend_from_slice(&[b'\\', b'u', digit(12), digit(8), digit(4), digit(0)]);
}

/// Where the first byte stands that must be escaped.
fn find_escape(bytes: &[u8]) -> Option<usize> {
    // Most texts are printable ASCII to their end.
    let plain = plain_len(bytes, 0);
    let rest = bytes.get(plain..).filter(|rest| !rest.is_empty())?;
    let skipped = plain + plain_blocks(rest);
    let rest = bytes.get(skipped..)?;
    rest.iter()
        .position(needs_escape)
        .map(|offset| skipped + offset)
}

/// The length of the blocks of sixteen bytes at the start that hold nothing to be escaped, which
/// compilers look at with vector instructions.
fn plain_blocks(bytes: &[u8]) -> usize {
    let is_plain = |block: &&[u8]| {
        !block
            .iter()
            .fold(false, |any, byte| any | needs_escape(byte))
    };
    16 * bytes.chunks_exact(16).take_while(is_plain).count()
}

const fn needs_escape(byte: &u8) -> bool {
    *byte < 0x20 || *byte == b'"' || *byte == b'\\'
}
