//! Canonical JSON: one text for each value, so that equal values have equal digests (R6).
//!
//! The text is what Python prints with `json.dumps(json.loads(text), sort_keys=True,
//! separators=(",", ":"))`, the form in which the digests of this project are defined:
//!
//! - members are sorted by the code points of their names; no white space;
//! - of characters, only U+0020 to U+007E stand for themselves; `"`, `\` and `\b \f \n \r \t` have the
//!   short escapes, all others `\uxxxx` in lower case, those beyond U+FFFF as two surrogates;
//! - integers keep their digits, however many (`-0` is `0`);
//! - a number with a fraction or an exponent is a double, in the shortest digits that read back as the
//!   same double: `1.0`, `1E2` is `100.0`, from 1e16 and below 1e-4 with an exponent (`1e+16`, `1e-05`).
//!
//! Three things that Python lets pass have no canonical form here: a member that stands twice, a number
//! that no double can hold, and half a surrogate pair.
//!
//! The text is read as it stands, not by way of `serde_json::Value`: whether that keeps the order of
//! members or the digits of numbers depends on which features of serde_json other crates switch on.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

pub(crate) use super::writer::Room;
use super::writer::run;

/// Deepest nesting that can be asked for: more than any text needs, and safe on any stack.
pub const DEPTH_CEILING: usize = 256;

/// A text that has no canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at byte {offset_bytes}")]
pub struct CanonicalError {
    /// What is in the way.
    pub problem: CanonicalProblem,
    /// Where in the text, in bytes.
    pub offset_bytes: usize,
}

/// Why a text has no canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CanonicalProblem {
    /// A member stands twice in one object.
    DuplicateMember,
    /// An escape that is half a surrogate pair and so stands for no character.
    LoneSurrogate,
    /// An array was asked for, and this is none.
    NotArray,
    /// A number that is too large for a double.
    NumberTooLarge,
    /// The text is not exactly one JSON value.
    Syntax,
    /// Arrays and objects are nested deeper than allowed.
    TooDeep,
}

impl fmt::Display for CanonicalProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DuplicateMember => "a member stands twice in one object",
            Self::LoneSurrogate => "half a surrogate pair",
            Self::NotArray => "not an array",
            Self::NumberTooLarge => "a number too large for a double",
            Self::Syntax => "not valid JSON",
            Self::TooDeep => "nested too deeply",
        })
    }
}

/// Appends the canonical form of a JSON text.
///
/// Arrays and objects may be nested `max_depth` levels deep, but never more than
/// [`DEPTH_CEILING`].
///
/// # Errors
/// [`CanonicalError`] when there is no canonical form. `out` is then as it was.
///
/// ```
/// use mcp_proto::identity::canonical;
/// let mut out = Vec::new();
/// canonical::write(r#"{ "q": "é", "a": [1E2, -0] }"#, &mut out, 128).unwrap();
/// assert_eq!(out, br#"{"a":[100.0,0],"q":"\u00e9"}"#);
/// ```
pub fn write(json: &str, out: &mut Vec<u8>, max_depth: usize) -> Result<(), CanonicalError> {
    write_in(json, out, max_depth, &mut Room::new())
}

/// The same in the room of earlier texts.
pub(crate) fn write_in<'a>(
    json: &'a str,
    out: &mut Vec<u8>,
    max_depth: usize,
    room: &mut Room<'a>,
) -> Result<(), CanonicalError> {
    run(json, out, max_depth, room, |writer| writer.value())
}

/// Appends the canonical form of a JSON object without one of its members.
///
/// Any other value is written whole.
///
/// # Errors
/// As [`write()`].
pub(crate) fn write_without(
    json: &str,
    member: &str,
    out: &mut Vec<u8>,
    max_depth: usize,
) -> Result<(), CanonicalError> {
    let room = &mut Room::new();
    run(json, out, max_depth, room, |writer| {
        writer.value_without(member)
    })
}

/// One element of an array in canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// Where the canonical form of the element is in the output.
    pub canonical: Range<usize>,
    /// The element as it stands in the text.
    pub source: &'a str,
    /// The string member `name`, if the element is an object that has one.
    pub name: Option<Cow<'a, str>>,
    /// Whether the element is an object with a member `inputSchema`.
    pub has_input_schema: bool,
}

/// Appends the canonical form of each element of a JSON array, one after the other without brackets
/// and commas, and says of each where it is and what a list of tools needs to know about it (R21, R22).
///
/// Pages of one list can be appended to the same output. Nesting is counted from the array.
///
/// # Errors
/// [`CanonicalError`] when the text is no array or there is no canonical form. `out` is then as it was,
/// though elements may have been handed out.
pub fn array_elements<'a>(
    json: &'a str,
    out: &mut Vec<u8>,
    max_depth: usize,
    mut each: impl FnMut(Element<'a>),
) -> Result<(), CanonicalError> {
    let room = &mut Room::new();
    run(json, out, max_depth, room, |writer| {
        writer.elements(&mut each)
    })
}
