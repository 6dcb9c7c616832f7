//! Raw JSON that is kept as text until someone knows its type.

use alloc::borrow::{Cow, ToOwned};
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::scan::Cursor;

/// One JSON value as its original text.
///
/// The client never rewrites what passes through it: numbers keep their digits, objects their order
/// and unknown members stay. Equality is equality of text.
#[derive(Clone)]
pub struct Json(Box<RawValue>);

/// The text is not one JSON value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not valid JSON: {0}")]
pub struct InvalidJson(String);

impl Json {
    /// Takes a JSON text as it is.
    ///
    /// # Errors
    /// [`InvalidJson`] when the text is not exactly one JSON value.
    pub fn parse(text: &str) -> Result<Self, InvalidJson> {
        let raw: &RawValue =
            serde_json::from_str(text).map_err(|error| InvalidJson(error.to_string()))?;
        Ok(Self(raw.to_owned()))
    }

    /// Serializes a value.
    ///
    /// # Errors
    /// [`InvalidJson`] when the value cannot be written as JSON (a map with non-string keys, …).
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Self, InvalidJson> {
        serde_json::value::to_raw_value(value)
            .map(Self)
            .map_err(|error| InvalidJson(error.to_string()))
    }

    /// The text, without surrounding white space.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The text as serde's raw value.
    #[must_use]
    pub fn as_raw(&self) -> &RawValue {
        &self.0
    }

    /// Reads the value as a type of the caller's.
    ///
    /// # Errors
    /// [`InvalidJson`] when the value does not have that type.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, InvalidJson> {
        serde_json::from_str(self.as_str()).map_err(|error| InvalidJson(error.to_string()))
    }

    /// Reads the value as a type that borrows from the text.
    ///
    /// # Errors
    /// [`InvalidJson`] when the value does not have that type.
    pub fn view<'a, T: Deserialize<'a>>(&'a self) -> Result<T, InvalidJson> {
        serde_json::from_str(self.as_str()).map_err(|error| InvalidJson(error.to_string()))
    }
}

impl From<&RawValue> for Json {
    fn from(raw: &RawValue) -> Self {
        Self(raw.to_owned())
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        // A `Value` is valid JSON by construction, so the fallback never runs.
        Self(serde_json::value::to_raw_value(&value).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self)
    }
}

/// The members of one JSON object, borrowed from the text and not looked into.
///
/// Read in the same pass that reads the envelope, so that a large result is scanned once however
/// many of its members are wanted later.
#[derive(Clone, Debug, Default)]
pub struct Members<'a> {
    entries: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a> Members<'a> {
    /// Reads an object.
    ///
    /// # Errors
    /// [`InvalidJson`] for anything but an object, and for one in which a member stands twice.
    pub fn parse(text: &'a str) -> Result<Self, InvalidJson> {
        let mut cursor = Cursor::new(text);
        match Self::read(&mut cursor) {
            Some((members, false)) if cursor.is_at_end() => Ok(members),
            Some((_, true)) => Err(InvalidJson("a member stands twice in one object".into())),
            _ => Err(InvalidJson("not an object".into())),
        }
    }

    /// Reads an object that comes next; also tells whether a member stands twice.
    #[inline]
    pub(crate) fn read(cursor: &mut Cursor<'a>) -> Option<(Self, bool)> {
        let mut entries = Vec::with_capacity(FEW / 2);
        cursor.object(|cursor, name| {
            entries.push((name, cursor.value()?));
            Some(())
        })?;
        let members = Self { entries };
        let duplicate = members.has_duplicates();
        Some((members, duplicate))
    }

    /// Adds a member; `false` when one of that name is there already (nothing is added then).
    ///
    /// Looks through all members: an object of unknown size is better read with
    /// [`Members::parse`].
    pub fn insert(&mut self, name: Cow<'a, str>, value: &'a RawValue) -> bool {
        if self.entries.iter().any(|(known, _)| *known == name) {
            return false;
        }
        self.entries.push((name, value));
        true
    }

    /// The value of a member as it stands, JSON `null` included.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.entries
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| *value)
    }

    /// The value of a member, `None` when it is absent or `null`.
    #[must_use]
    pub fn present(&self, name: &str) -> Option<&'a RawValue> {
        self.get(name).filter(|value| value.get() != "null")
    }

    /// The members in the order of the text.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.entries
            .iter()
            .map(|(name, value)| (name.as_ref(), *value))
    }

    /// How many members there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the object is `{}`.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn has_duplicates(&self) -> bool {
        if self.entries.len() <= FEW {
            let mut rest = self.entries.as_slice();
            while let Some(((name, _), after)) = rest.split_first() {
                if after.iter().any(|(other, _)| other == name) {
                    return true;
                }
                rest = after;
            }
            return false;
        }
        let mut names: Vec<&str> = self.entries.iter().map(|(name, _)| name.as_ref()).collect();
        names.sort_unstable();
        !names.is_sorted_by(|one, next| one < next)
    }
}

/// Up to so many members are compared with each other; more are sorted.
const FEW: usize = 8;

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    /// As [`Members::parse`].
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Self::parse(raw.get()).map_err(D::Error::custom)
    }
}

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.entries.iter().map(|(name, value)| (name, value)))
    }
}
