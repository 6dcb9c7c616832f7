//! Reading the members of an object without copying it, and saying where it went wrong.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use core::fmt;

use serde_json::value::RawValue;

use crate::violation::{Fault, Violation};
use crate::wire::scan::Cursor;

/// The named members of an object; all others are skipped without being looked into.
///
/// Takes time linear in the text and no memory, whatever the object holds. A named member that
/// stands twice is refused: two readers could take different ones.
pub(crate) fn pick<'a, const N: usize>(
    raw: &'a RawValue,
    names: [&str; N],
) -> Result<[Option<&'a RawValue>; N], Misread> {
    if !raw.get().starts_with('{') {
        return Err(Misread::NotObject);
    }
    let mut picked = [None; N];
    let mut twice = false;
    Cursor::new(raw.get())
        .object(|cursor, name| {
            let value = cursor.value()?;
            let index = names.iter().position(|wanted| *wanted == name);
            if let Some(slot) = index.and_then(|index| picked.get_mut(index)) {
                twice |= slot.replace(value).is_some();
            }
            Some(())
        })
        .ok_or(Misread::Unreadable)?;
    if twice {
        return Err(Misread::Duplicate);
    }
    Ok(picked)
}

/// The named member of an object; `None` when it is absent, `null` or not readable.
pub(crate) fn member<'a>(raw: &'a RawValue, name: &str) -> Option<&'a RawValue> {
    let [value] = pick(raw, [name]).ok()?;
    present(value)
}

/// The value of an optional member: `null` is absent.
pub(crate) fn present(value: Option<&RawValue>) -> Option<&RawValue> {
    value.filter(|raw| raw.get() != "null")
}

/// Hands every element of an array to `read`, in order, until it fails.
///
/// `None` when the value is no array.
pub(crate) fn each<'a, E>(
    raw: &'a RawValue,
    mut read: impl FnMut(usize, &'a RawValue) -> Result<(), E>,
) -> Option<Result<(), E>> {
    if !raw.get().starts_with('[') {
        return None;
    }
    let mut outcome = Ok(());
    let mut index = 0;
    // The text is one valid array, so that this ends early only where `read` fails.
    let _ = Cursor::new(raw.get()).array(|cursor| {
        outcome = read(index, cursor.value()?);
        index += 1;
        outcome.is_ok().then_some(())
    });
    Some(outcome)
}

/// Hands every member of an object to `read`, in order, until it fails.
///
/// Member names are decoded, duplicates are handed over as they come.
pub(crate) fn each_member<'a, E>(
    raw: &'a RawValue,
    mut read: impl FnMut(Cow<'a, str>, &'a RawValue) -> Result<(), E>,
) -> Result<Result<(), E>, Misread> {
    if !raw.get().starts_with('{') {
        return Err(Misread::NotObject);
    }
    let mut outcome = Ok(());
    let finished = Cursor::new(raw.get()).object(|cursor, name| {
        outcome = read(name, cursor.value()?);
        outcome.is_ok().then_some(())
    });
    match (outcome, finished) {
        (Ok(()), None) => Err(Misread::Unreadable),
        (outcome, _) => Ok(outcome),
    }
}

/// The characters of a JSON string; borrowed where nothing is escaped.
pub(crate) fn text(raw: &RawValue) -> Result<Cow<'_, str>, NotText> {
    let token = raw.get();
    let inner = token
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .ok_or(NotText::WrongType)?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Ok(Cow::Borrowed(inner));
    }
    serde_json::from_str::<String>(token)
        .map(Cow::Owned)
        .map_err(|_| NotText::LoneSurrogate)
}

/// Whether [`text`] would succeed, without decoding.
pub(crate) fn check_text(raw: &RawValue) -> Result<(), NotText> {
    let Some(mut rest) = raw.get().as_bytes().strip_prefix(b"\"") else {
        return Err(NotText::WrongType);
    };
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let escape = rest.get(at..).unwrap_or_default();
        let length = match escape.get(1) {
            Some(b'u') => match (unit(escape), unit(escape.get(6..).unwrap_or_default())) {
                (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
                (Some(0xD800..=0xDFFF), _) => return Err(NotText::LoneSurrogate),
                _ => 6,
            },
            _ => 2,
        };
        rest = escape.get(length..).unwrap_or_default();
    }
    Ok(())
}

/// The UTF-16 unit of the `\uXXXX` escape that `bytes` starts with.
fn unit(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    u32::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()
}

/// `true` or `false`; `None` for anything else.
pub(crate) fn boolean(raw: &RawValue) -> Option<bool> {
    match raw.get() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// A JSON number as the nearest `f64`, which is infinite for `1e400`; `None` for anything else.
pub(crate) fn number(raw: &RawValue) -> Option<f64> {
    let token = raw.get();
    // Rust's own grammar is wider (`inf`, `.5`), so the first character decides.
    token
        .starts_with(|first: char| first == '-' || first.is_ascii_digit())
        .then(|| token.parse().ok())?
}

/// Why an object could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misread {
    NotObject,
    /// A member that matters stands twice.
    Duplicate,
    /// A member name has an escape that stands for no character.
    Unreadable,
}

impl Misread {
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::NotObject => "is not an object",
            Self::Duplicate => "has a member twice",
            Self::Unreadable => "has a member name with a lone surrogate escape",
        }
    }
}

/// Why a value is no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotText {
    WrongType,
    /// Half of a surrogate pair: valid JSON that stands for no character.
    LoneSurrogate,
}

impl NotText {
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::WrongType => "is not a string",
            Self::LoneSurrogate => "has a lone surrogate escape",
        }
    }
}

/// The place of a value inside a result: `content[2].resource`.
#[derive(Clone, Copy)]
pub(crate) struct Path<'p> {
    outer: Option<&'p Self>,
    name: &'p str,
    index: Option<usize>,
}

impl<'p> Path<'p> {
    pub(crate) const fn root(name: &'p str) -> Self {
        Self {
            outer: None,
            name,
            index: None,
        }
    }

    pub(crate) const fn item(name: &'p str, index: usize) -> Self {
        Self {
            outer: None,
            name,
            index: Some(index),
        }
    }

    pub(crate) const fn member(&'p self, name: &'p str) -> Self {
        Self {
            outer: Some(self),
            name,
            index: None,
        }
    }

    /// A fault at this place: `content[2] is not an object`.
    pub(crate) fn fault(&self, violation: Violation, words: &str) -> Fault {
        Fault::new(violation, format!("{self} {words}"))
    }

    /// The member, which must be there.
    pub(crate) fn required<'a>(
        &self,
        violation: Violation,
        name: &str,
        value: Option<&'a RawValue>,
    ) -> Result<&'a RawValue, Fault> {
        present(value).ok_or_else(|| self.member(name).fault(violation, "is missing"))
    }

    /// The member, which must be there and be a string; checked, not decoded.
    pub(crate) fn required_text<'a>(
        &self,
        violation: Violation,
        name: &str,
        value: Option<&'a RawValue>,
    ) -> Result<&'a RawValue, Fault> {
        let raw = self.required(violation, name, value)?;
        match check_text(raw) {
            Ok(()) => Ok(raw),
            Err(why) => Err(self.member(name).fault(violation, why.words())),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(outer) = self.outer {
            write!(f, "{outer}.")?;
        }
        write!(f, "{}", Bounded(self.name))?;
        match self.index {
            Some(index) => write!(f, "[{index}]"),
            None => Ok(()),
        }
    }
}

/// A server's text inside a message for people: shortened, control characters escaped.
struct Bounded<'a>(&'a str);

impl fmt::Display for Bounded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const CHARS_MAX: usize = 80;
        let mut chars = self.0.chars();
        for char in chars.by_ref().take(CHARS_MAX) {
            write!(f, "{}", char.escape_debug())?;
        }
        if chars.next().is_some() {
            f.write_str("…")?;
        }
        Ok(())
    }
}

/// As [`Bounded`], in quotes.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", Bounded(self.0))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::wire::Json;

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    #[test]
    fn pick_finds_escaped_names_and_refuses_doubles() {
        let object = json(r#"{"x":[{"a":1}],"\u0061":2,"b":null}"#);
        let [a, b, c] = pick(object.as_raw(), ["a", "b", "c"]).unwrap();
        assert_eq!(a.map(RawValue::get), Some("2"));
        assert_eq!(b.map(RawValue::get), Some("null"));
        assert!(c.is_none());
        let twice = json(r#"{"a":1,"\u0061":2}"#);
        assert_eq!(pick(twice.as_raw(), ["a"]).unwrap_err(), Misread::Duplicate);
        assert!(pick(twice.as_raw(), ["b"]).is_ok());
        assert_eq!(
            pick(json("[1]").as_raw(), ["a"]).unwrap_err(),
            Misread::NotObject
        );
        assert_eq!(
            pick(json(r#"{"\ud800":1}"#).as_raw(), ["a"]).unwrap_err(),
            Misread::Unreadable
        );
    }

    #[test]
    fn numbers_are_json_numbers() {
        assert_eq!(number(json("-1.5e1").as_raw()), Some(-15.0));
        assert_eq!(number(json("1e400").as_raw()), Some(f64::INFINITY));
        for other in ["\"1\"", "null", "true", "[1]"] {
            assert_eq!(number(json(other).as_raw()), None, "{other}");
        }
    }

    #[test]
    fn paths_are_bounded_and_printable() {
        let long = "k\u{1b}".repeat(100);
        let root = Path::item("inputRequests", 3);
        let shown = root.member(&long).to_string();
        assert!(shown.starts_with("inputRequests[3].k\\u{1b}k"), "{shown}");
        assert!(shown.chars().count() < 700 && shown.ends_with('…'));
        assert!(!shown.contains('\u{1b}'));
    }

    #[test]
    fn each_stops_at_the_first_failure() {
        let list = json("[1,2,3]");
        let mut seen = Vec::new();
        let outcome = each(list.as_raw(), |index, raw| {
            seen.push((index, raw.get().to_string()));
            if index == 1 { Err("stop") } else { Ok(()) }
        });
        assert_eq!(outcome, Some(Err("stop")));
        assert_eq!(seen.len(), 2);
        assert!(each(json("{}").as_raw(), |_, _| Ok::<(), ()>(())).is_none());
    }

    proptest! {
        /// The check without decoding agrees with decoding, for every mixture of escapes.
        #[test]
        fn check_text_agrees_with_text(
            parts in proptest::collection::vec(
                prop_oneof![
                    Just("a".to_string()), Just("é".to_string()), Just("\\\\".to_string()),
                    Just("\\\"".to_string()), Just("\\n".to_string()), Just("\\ud83d\\ude00".to_string()), Just("\\ud83d".to_string()),
                    Just("\\uDE00".to_string()), Just("\\u0041".to_string()), Just("u".to_string()),
                ],
                0..12,
            )
        ) {
            let token = json(&format!("\"{}\"", parts.concat()));
            prop_assert_eq!(
                check_text(token.as_raw()),
                text(token.as_raw()).map(|_| ())
            );
        }
    }
}
