//! Forms: what an elicitation has filled in, and whether it fits (R30).

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::value::RawValue;

use super::content::optional_text;
use super::form_text::TextFormat;
use super::input_response::{InputResponse, json};
use super::object::{Path, boolean, each, number, pick, present, text};
use crate::violation::{Fault, Violation};
use crate::wire::{Json, Members, ObjectWriter};

const BROKEN: Violation = Violation::InputRequiredInvalid;

/// A form: flat, of primitive fields.
///
/// spec: 2026-07-28 client/elicitation#requested-schema
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Form {
    /// Why the server asks.
    pub message: String,
    /// The fields, in the server's order.
    pub fields: Vec<FormField>,
}

/// One field of a form.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FormField {
    /// The name under which its value goes back.
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Whether it must be filled in.
    pub required: bool,
    /// What it takes.
    pub kind: FieldKind,
    /// What it holds unless something else is given. Only one that the field itself would take; a
    /// default that does not fit is as good as none.
    pub default: Option<Json>,
}

/// What a field takes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FieldKind {
    /// A boolean.
    Boolean,
    /// One of some strings.
    Choice {
        /// The strings.
        options: Vec<FormOption>,
    },
    /// Some of some strings.
    Choices {
        /// The strings.
        options: Vec<FormOption>,
        /// How many at least.
        min_items: Option<u64>,
        /// How many at most.
        max_items: Option<u64>,
    },
    /// A number.
    Number {
        /// Whether it must be whole.
        is_integer: bool,
        /// The smallest.
        minimum: Option<f64>,
        /// The largest.
        maximum: Option<f64>,
    },
    /// A string.
    Text {
        /// How many characters at least.
        min_length: Option<u64>,
        /// How many characters at most.
        max_length: Option<u64>,
        /// What it must look like.
        format: Option<TextFormat>,
    },
    /// Something that the restricted schema does not provide for; any primitive value is taken.
    Unknown,
}

/// One string to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormOption {
    /// What goes back.
    pub value: String,
    /// What people see.
    pub title: Option<String>,
}

/// An answer that does not fit what was asked. The caller's mistake; nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place} {words}")]
pub struct ResponseFault {
    /// Where: the name of a field, or of a member of the response.
    pub place: String,
    /// What is wrong with it.
    pub words: String,
}

impl ResponseFault {
    pub(super) fn new(place: impl Into<String>, words: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            words: words.into(),
        }
    }
}

impl Form {
    pub(super) fn read(message: String, schema: &RawValue, path: &Path<'_>) -> Result<Self, Fault> {
        let [properties, required] = pick(schema, ["properties", "required"])
            .map_err(|why| path.fault(BROKEN, why.words()))?;
        let mut fields: Vec<FormField> = Vec::new();
        if let Some(properties) = present(properties) {
            let place = path.member("properties");
            // A member that stands twice is refused here.
            let members = Members::parse(properties.get())
                .map_err(|_| place.fault(BROKEN, "is not an object with unique members"))?;
            fields.extend(members.iter().map(|(name, raw)| FormField::read(name, raw)));
        }
        let mut names: Vec<String> = Vec::new();
        if let Some(required) = present(required) {
            let read = each(required, |_, raw| {
                text(raw).map(|name| names.push(name.into_owned()))
            });
            if !matches!(read, Some(Ok(()))) {
                let place = path.member("required");
                return Err(place.fault(BROKEN, "is not an array of strings"));
            }
        }
        names.sort_unstable();
        for field in &mut fields {
            field.required = names.binary_search(&field.name).is_ok();
        }
        Ok(Self { message, fields })
    }

    /// The defaults of all fields that have one, as an object: what to fill the form with.
    #[must_use]
    pub fn defaults(&self) -> Json {
        self.object(|field| field.default.as_ref())
    }

    /// The answer *accepted*, with these values (a JSON object); fields that are not given have their
    /// default.
    ///
    /// # Errors
    /// [`ResponseFault`] when a value does not fit its field, one without a default is missing, or one
    /// was not asked for.
    pub fn accept(&self, values: &Json) -> Result<InputResponse, ResponseFault> {
        let given = self.check(values, true)?;
        let content = self.object(|field| {
            let value = given.iter().find(|(name, _)| *name == field.name);
            value.map(|(_, value)| value).or(field.default.as_ref())
        });
        Ok(InputResponse::accepted(Some(&content)))
    }

    /// The values of an answer, checked against the fields.
    pub(super) fn check(
        &self,
        values: &Json,
        with_defaults: bool,
    ) -> Result<Vec<(String, Json)>, ResponseFault> {
        let mut given: Vec<(String, Json)> = Vec::new();
        let members = Members::parse(values.as_str())
            .map_err(|error| ResponseFault::new("content", error.to_string()))?;
        for (name, value) in members.iter().filter(|(_, value)| value.get() != "null") {
            let field = self.fields.iter().find(|field| field.name == name);
            let field = field.ok_or_else(|| ResponseFault::new(name, "was not asked for"))?;
            field
                .kind
                .check(value)
                .map_err(|words| ResponseFault::new(name, words))?;
            given.push((name.to_owned(), value.into()));
        }
        let missing = self.fields.iter().find(|field| {
            field.required
                && !(with_defaults && field.default.is_some())
                && !given.iter().any(|(name, _)| *name == field.name)
        });
        match missing {
            Some(field) => Err(ResponseFault::new(&field.name, "is missing")),
            None => Ok(given),
        }
    }

    fn object<'a>(&'a self, value: impl Fn(&'a FormField) -> Option<&'a Json>) -> Json {
        let mut out = Vec::new();
        let mut object = ObjectWriter::new(&mut out);
        for field in &self.fields {
            if let Some(value) = value(field) {
                object.raw(&field.name, value.as_str());
            }
        }
        object.end();
        json(out)
    }
}

impl FormField {
    fn read(name: &str, raw: &RawValue) -> Self {
        let names = ["title", "description", "default"];
        let [title, description, default] = pick(raw, names).unwrap_or_default();
        let kind = FieldKind::read(raw).unwrap_or(FieldKind::Unknown);
        let owned = |value| optional_text(value).map(|text| text.into_owned());
        let default = present(default).filter(|default| kind.check(default).is_ok());
        Self {
            name: name.to_owned(),
            title: owned(title),
            description: owned(description),
            required: false,
            default: default.map(Json::from),
            kind,
        }
    }
}

impl FieldKind {
    /// `None` for what the restricted schema does not provide for.
    fn read(raw: &RawValue) -> Option<Self> {
        let [kind, one_of, options, names, items] =
            pick(raw, ["type", "oneOf", "enum", "enumNames", "items"]).ok()?;
        let [
            min_length,
            max_length,
            format,
            minimum,
            maximum,
            min_items,
            max_items,
        ] = pick(
            raw,
            [
                "minLength",
                "maxLength",
                "format",
                "minimum",
                "maximum",
                "minItems",
                "maxItems",
            ],
        )
        .ok()?;
        let count = |value: Option<&RawValue>| value.and_then(|raw| raw.get().parse().ok());
        Some(match &*text(kind?).ok()? {
            "boolean" => Self::Boolean,
            kind @ ("integer" | "number") => Self::Number {
                is_integer: kind == "integer",
                minimum: minimum.and_then(number),
                maximum: maximum.and_then(number),
            },
            "string" if one_of.is_some() => Self::Choice {
                options: titled(one_of?)?,
            },
            "string" if options.is_some() => Self::Choice {
                options: untitled(options?, names)?,
            },
            "string" => Self::Text {
                min_length: count(min_length),
                max_length: count(max_length),
                format: optional_text(format).and_then(|format| TextFormat::parse(&format)),
            },
            "array" => {
                let [options, any_of] = pick(items?, ["enum", "anyOf"]).ok()?;
                Self::Choices {
                    options: match any_of {
                        Some(any_of) => titled(any_of)?,
                        None => untitled(options?, None)?,
                    },
                    min_items: count(min_items),
                    max_items: count(max_items),
                }
            }
            _ => return None,
        })
    }

    /// What is wrong with a value, in words that follow the field's name.
    fn check(&self, raw: &RawValue) -> Result<(), String> {
        let fits = match self {
            Self::Boolean => boolean(raw).is_some(),
            Self::Choice { options } => {
                text(raw).is_ok_and(|chosen| options.iter().any(|option| option.value == chosen))
            }
            Self::Choices {
                options,
                min_items,
                max_items,
            } => {
                let mut count = 0_u64;
                let all = each(raw, |_, raw| {
                    count += 1;
                    let chosen = text(raw).map_err(|_| ())?;
                    let is_option = options.iter().any(|option| option.value == chosen);
                    is_option.then_some(()).ok_or(())
                });
                all == Some(Ok(()))
                    && min_items.is_none_or(|min| min <= count)
                    && max_items.is_none_or(|max| count <= max)
            }
            Self::Number {
                is_integer,
                minimum,
                maximum,
            } => number(raw).is_some_and(|value| {
                value.is_finite()
                    && (!is_integer || value % 1.0 == 0.0)
                    && minimum.is_none_or(|minimum| minimum <= value)
                    && maximum.is_none_or(|maximum| value <= maximum)
            }),
            Self::Text {
                min_length,
                max_length,
                format,
            } => text(raw).is_ok_and(|value| {
                let length = u64::try_from(value.chars().count()).unwrap_or(u64::MAX);
                min_length.is_none_or(|min| min <= length)
                    && max_length.is_none_or(|max| length <= max)
                    && format.is_none_or(|format| format.accepts(&value))
            }),
            Self::Unknown => {
                let is_text = |raw| text(raw).is_ok();
                let texts = each(raw, |_, raw| is_text(raw).then_some(()).ok_or(()));
                is_text(raw)
                    || boolean(raw).is_some()
                    || number(raw).is_some_and(f64::is_finite)
                    || texts == Some(Ok(()))
            }
        };
        if fits { Ok(()) } else { Err(self.words()) }
    }

    /// What is expected.
    fn words(&self) -> String {
        let between = |min: Option<String>, max: Option<String>, unit: &str| match (min, max) {
            (Some(min), Some(max)) => format!(" between {min} and {max}{unit}"),
            (Some(min), None) => format!(" of at least {min}{unit}"),
            (None, Some(max)) => format!(" of at most {max}{unit}"),
            (None, None) => String::new(),
        };
        let count = |value: &Option<u64>| value.map(|value| value.to_string());
        let bound = |value: &Option<f64>| value.map(|value| value.to_string());
        match self {
            Self::Boolean => "must be true or false".into(),
            Self::Choice { .. } => "must be one of the options".into(),
            Self::Choices {
                min_items,
                max_items,
                ..
            } => {
                let range = between(count(min_items), count(max_items), " of them");
                format!("must be an array of options{range}")
            }
            Self::Number {
                is_integer,
                minimum,
                maximum,
            } => {
                let kind = if *is_integer {
                    "a whole number"
                } else {
                    "a number"
                };
                format!(
                    "must be {kind}{}",
                    between(bound(minimum), bound(maximum), "")
                )
            }
            Self::Text {
                min_length,
                max_length,
                format,
            } => {
                let range = between(count(min_length), count(max_length), " characters");
                let look = format.map_or("", TextFormat::words);
                format!("must be a string{range}{look}")
            }
            Self::Unknown => {
                "must be a string, a number, true, false or an array of strings".into()
            }
        }
    }
}

/// `[{"const": …, "title": …}, …]`
fn titled(raw: &RawValue) -> Option<Vec<FormOption>> {
    let mut options = Vec::new();
    each(raw, |_, raw| {
        let [value, title] = pick(raw, ["const", "title"]).map_err(|_| ())?;
        options.push(FormOption {
            value: optional_text(value).ok_or(())?.into_owned(),
            title: optional_text(title).map(|title| title.into_owned()),
        });
        Ok::<_, ()>(())
    })?
    .ok()?;
    Some(options)
}

/// `["…", …]`, with their titles beside them in the older form.
fn untitled(raw: &RawValue, names: Option<&RawValue>) -> Option<Vec<FormOption>> {
    let mut titles = Vec::new();
    if let Some(names) = names {
        each(names, |_, raw| {
            titles.push(optional_text(Some(raw)).map(|title| title.into_owned()));
            Ok::<_, ()>(())
        });
    }
    let mut titles = titles.into_iter();
    let mut options = Vec::new();
    each(raw, |_, raw| {
        options.push(FormOption {
            value: text(raw).map_err(|_| ())?.into_owned(),
            title: titles.next().flatten(),
        });
        Ok::<_, ()>(())
    })?
    .ok()?;
    Some(options)
}
