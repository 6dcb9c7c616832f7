//! One page of a list, whatever it lists.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;
use serde_json::value::RawValue;

use super::cache_hint::CacheHint;
use super::object::{Path, each, text};
use crate::error::Cause;
use crate::violation::{Fault, Violation};
use crate::wire::{Json, Members};

/// An entry of a list: a [`Tool`](super::Tool), [`Resource`](super::Resource),
/// [`ResourceTemplate`](super::ResourceTemplate) or [`Prompt`](super::Prompt).
pub trait Entry: Sized + Serialize + sealed::Sealed {
    /// The method that lists them.
    const METHOD: &'static str;
    /// The member of the result that holds them.
    const MEMBER: &'static str;

    /// Reads the entry at a position of its page.
    ///
    /// # Errors
    /// [`Violation::EntryWithoutName`] when it is no object or lacks its identifier (R60).
    fn read(raw: &RawValue, index: usize) -> Result<Self, Fault>;

    /// The entry as the server wrote it.
    fn raw(&self) -> &Json;

    /// What it is addressed by: a name, a URI or a URI template.
    fn key(&self) -> &str;
}

pub(super) mod sealed {
    /// Lists are the protocol's, so that nobody else has entries.
    pub trait Sealed {}
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListPage<T> {
    /// The entries, in the server's order.
    pub items: Vec<T>,
    /// Where the next page starts; `None` on the last one. The empty string is a cursor like any other.
    pub next_cursor: Option<String>,
    /// For how long this page may be kept.
    pub cache: CacheHint,
}

impl<T: Entry> ListPage<T> {
    /// Reads one page of at most `items_max` entries.
    ///
    /// # Errors
    /// [`ListFault::Violation`] when the list is no array, an entry is malformed, or `nextCursor` is
    /// neither string nor null; [`ListFault::TooManyItems`] at the first entry too many.
    ///
    /// spec: 2026-07-28 server/utilities/pagination#response-format
    pub fn read(members: &Members<'_>, items_max: usize) -> Result<Self, ListFault> {
        const BROKEN: Violation = Violation::MalformedResult;
        let root = Path::root(T::MEMBER);
        let raw = members
            .present(T::MEMBER)
            .ok_or_else(|| root.fault(BROKEN, "is missing"))?;
        let mut items = Vec::new();
        each(raw, |index, raw| {
            if index >= items_max {
                return Err(ListFault::TooManyItems { max: items_max });
            }
            items.push(T::read(raw, index)?);
            Ok(())
        })
        .ok_or_else(|| root.fault(BROKEN, "is not an array"))??;
        let next_cursor = match members.present("nextCursor").map(text) {
            None => None,
            Some(Ok(cursor)) => Some(cursor.into_owned()),
            Some(Err(why)) => {
                return Err(Path::root("nextCursor").fault(BROKEN, why.words()).into());
            }
        };
        Ok(Self {
            items,
            next_cursor,
            cache: CacheHint::read(members),
        })
    }
}

/// Why a list could not be fetched as a whole. What was known before stays in force (R20).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ListFault {
    /// A page breaks the protocol.
    #[error("{0}")]
    Violation(Fault),
    /// The server gave out a cursor a second time, so that paging would never end.
    #[error("a cursor repeats")]
    CursorLoop,
    /// More pages than [`Limits::pages`](crate::Limits::pages).
    #[error("more than {max} pages")]
    TooManyPages {
        /// The bound.
        max: usize,
    },
    /// More entries than [`Limits::items`](crate::Limits::items).
    #[error("more than {max} entries")]
    TooManyItems {
        /// The bound.
        max: usize,
    },
    /// More bytes in all pages together than four of the longest lines
    /// ([`Limits::line_bytes`](crate::Limits::line_bytes)).
    #[error("more than {max} bytes")]
    TooManyBytes {
        /// The bound, in bytes.
        max: usize,
    },
}

impl ListFault {
    /// The same as the cause of an [`Error`](crate::Error); `method` is the list's.
    #[must_use]
    pub fn into_cause(self, method: &str) -> Cause {
        let (what, setting, max) = match self {
            Self::Violation(fault) => return Cause::SchemaViolation(fault),
            Self::CursorLoop => ("pages (a cursor repeats)", "maxPages", 1),
            Self::TooManyPages { max } => ("pages", "maxPages", max),
            Self::TooManyItems { max } => ("entries", "maxTools", max),
            Self::TooManyBytes { max } => ("bytes", "maxLineBytes", max),
        };
        Cause::Limit {
            what: format!("number of {what} of {method}"),
            setting,
            max: u64::try_from(max).unwrap_or(u64::MAX),
        }
    }
}

impl From<Fault> for ListFault {
    fn from(fault: Fault) -> Self {
        Self::Violation(fault)
    }
}

/// The identifier of an entry, which must be there.
pub(super) fn key<'a>(
    path: &Path<'_>,
    name: &str,
    value: Option<&'a RawValue>,
) -> Result<Cow<'a, str>, Fault> {
    let raw = path.required_text(Violation::EntryWithoutName, name, value)?;
    Ok(text(raw).unwrap_or_default())
}

/// A list entry that is a raw text and its key; `required` are the text members that every revision
/// requires, the key first.
macro_rules! entry {
    (
        $(#[$doc:meta])*
        $name:ident {
            key: $key:ident, required: [$key_name:literal $(, $other:literal)*],
            member: $member:literal, method: $method:literal
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            raw: Json,
            $key: String,
        }

        impl $name {
            #[doc = concat!("The value of `", $key_name, "`.")]
            #[must_use]
            pub fn $key(&self) -> &str {
                &self.$key
            }

            /// The name for people.
            #[must_use]
            pub fn title(&self) -> Option<Cow<'_, str>> {
                optional_text(self.member("title"))
            }

            /// What it is.
            #[must_use]
            pub fn description(&self) -> Option<Cow<'_, str>> {
                optional_text(self.member("description"))
            }

            /// Any other member (`icons`, `_meta`, …), unchanged; `None` when it is absent or `null`.
            #[must_use]
            pub fn member(&self, name: &str) -> Option<&RawValue> {
                member(self.raw.as_raw(), name)
            }
        }

        impl super::list::sealed::Sealed for $name {}

        impl Entry for $name {
            const METHOD: &'static str = $method;
            const MEMBER: &'static str = $member;

            fn read(raw: &RawValue, index: usize) -> Result<Self, Fault> {
                const BROKEN: Violation = Violation::EntryWithoutName;
                const NAMES: &[&str] = &[$key_name $(, $other)*];
                const REQUIRED: [&str; NAMES.len()] = [$key_name $(, $other)*];
                let path = Path::item($member, index);
                let values = pick(raw, REQUIRED)
                    .map_err(|why| path.fault(BROKEN, why.words()))?;
                let [key, ..] = values;
                let key = super::list::key(&path, $key_name, key)?;
                for (name, value) in REQUIRED.into_iter().zip(values) {
                    path.required_text(BROKEN, name, value)?;
                }
                Ok(Self { raw: raw.into(), $key: key.into_owned() })
            }

            fn raw(&self) -> &Json {
                &self.raw
            }

            fn key(&self) -> &str {
                &self.$key
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.raw.serialize(serializer)
            }
        }
    };
}
pub(super) use entry;
