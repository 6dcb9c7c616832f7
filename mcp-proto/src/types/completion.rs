//! Completion: what a server suggests for an argument.

use alloc::string::String;
use alloc::vec::Vec;

use super::object::{Path, boolean, each, number, pick, present, text};
use crate::violation::{Fault, Violation};
use crate::wire::{Json, Members};

/// The answer to `completion/complete`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompleteResult {
    /// The suggestions, in the server's order. The protocol allows 100; more are kept as they are.
    pub values: Vec<String>,
    /// How many there are in all, if the server says so with a whole number.
    pub total: Option<u64>,
    /// Whether there are more than these.
    pub has_more: bool,
    /// `completion`, unchanged.
    pub raw: Json,
}

impl CompleteResult {
    /// Reads the result.
    ///
    /// # Errors
    /// [`Violation::MalformedResult`] when `completion` is no object with an array of strings in
    /// `values`, or another member has a wrong type.
    pub fn read(members: &Members<'_>) -> Result<Self, Fault> {
        const BROKEN: Violation = Violation::MalformedResult;
        let path = Path::root("completion");
        let raw = members
            .present("completion")
            .ok_or_else(|| path.fault(BROKEN, "is missing"))?;
        let [values, total, has_more] = pick(raw, ["values", "total", "hasMore"])
            .map_err(|why| path.fault(BROKEN, why.words()))?;
        let list = path.required(BROKEN, "values", values)?;
        let mut values = Vec::new();
        each(list, |index, raw| match text(raw) {
            Ok(value) => {
                values.push(value.into_owned());
                Ok(())
            }
            Err(why) => Err(Path::item("completion.values", index).fault(BROKEN, why.words())),
        })
        .ok_or_else(|| path.member("values").fault(BROKEN, "is not an array"))??;
        let total = present(total);
        if total.is_some_and(|raw| number(raw).is_none()) {
            return Err(path.member("total").fault(BROKEN, "is not a number"));
        }
        let has_more = match present(has_more).map(boolean) {
            None => false,
            Some(Some(flag)) => flag,
            Some(None) => return Err(path.member("hasMore").fault(BROKEN, "is not a boolean")),
        };
        Ok(Self {
            values,
            total: total.and_then(|raw| raw.get().parse().ok()),
            has_more,
            raw: raw.into(),
        })
    }
}
