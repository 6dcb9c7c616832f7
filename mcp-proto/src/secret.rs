//! Values that must not be seen.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// A value that never shows itself: `Debug` and `Display` print `***`.
///
/// ```
/// use mcp_proto::Secret;
/// let token = Secret::new("hunter2");
/// assert_eq!(format!("{token} {token:?}"), "*** ***");
/// assert_eq!(token.expose(), "hunter2");
/// ```
#[derive(Clone, Default)]
pub struct Secret {
    value: String,
    /// What variables in it stood for: as secret as the whole.
    expansions: Vec<String>,
}

impl Secret {
    /// Hides a value.
    #[must_use]
    pub fn new(value: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            expansions: Vec::new(),
        }
    }

    /// Hides the value of a text with variables, and what each of them stood for.
    pub(crate) fn of(text: &Templated) -> Self {
        Self {
            value: text.value.clone(),
            expansions: text.expansions().map(Into::into).collect(),
        }
    }

    /// What variables in it stood for.
    pub(crate) fn expansions(&self) -> impl Iterator<Item = &str> {
        self.expansions.iter().map(String::as_str)
    }

    /// The value itself, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.value
    }
}

/// However a value came about, it is the same.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for Secret {}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        Self::new(value)
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self::new(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A text that may have been written with variables: what it stands for, and how it may be shown.
///
/// What came from a variable may be a secret (`--token ${TOKEN}`), so `Debug` and `Display` print the
/// text as it was written, with the variables' names in it and their defaults left out.
///
/// ```
/// use mcp_proto::secret::Templated;
/// let arg = Templated::expanded("--token=hunter2", "--token=${TOKEN}");
/// assert_eq!(arg.to_string(), "--token=${TOKEN}");
/// assert_eq!(arg.value(), "--token=hunter2");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Templated {
    value: String,
    template: Option<String>,
    /// What each variable stood for, where that is known.
    expansions: Vec<String>,
}

impl Templated {
    /// A text without variables, which may be shown.
    #[must_use]
    pub fn literal(value: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            template: None,
            expansions: Vec::new(),
        }
    }

    /// A text that was made from `template`, which is shown in its stead.
    #[must_use]
    pub fn expanded(value: impl Into<String>, template: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            template: Some(template.into()),
            expansions: Vec::new(),
        }
    }

    /// The same where it is known what each variable stood for.
    pub(crate) fn with_expansions(mut self, expansions: Vec<String>) -> Self {
        self.expansions = expansions;
        self
    }

    /// The text with its variables' values in it. It may hold secrets.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// What variables stood for: each of them, and all of it from the first to the last.
    pub(crate) fn expansions(&self) -> impl Iterator<Item = &str> {
        let each = self.expansions.iter().map(String::as_str);
        self.expansion().into_iter().chain(each)
    }

    /// The value without what the template begins and ends with. `None` where no variable stood in it.
    fn expansion(&self) -> Option<&str> {
        let template = self.template.as_deref()?;
        let literal = |part: &str| part.find('$').unwrap_or(part.len());
        let before = template.split_at(literal(template)).0;
        let rest = self.value.strip_prefix(before).unwrap_or(&self.value);
        let after = template.rsplit_once('}').map_or("", |(_, after)| after);
        Some(rest.strip_suffix(after).unwrap_or(rest))
    }

    /// The text as it may be shown, and as it is the same on every machine.
    #[must_use]
    pub fn shown(&self) -> &str {
        self.template.as_deref().unwrap_or(&self.value)
    }

    /// Whether a variable stood in it.
    #[must_use]
    pub const fn is_expanded(&self) -> bool {
        self.template.is_some()
    }
}

impl From<&str> for Templated {
    fn from(value: &str) -> Self {
        Self::literal(value)
    }
}

impl From<String> for Templated {
    fn from(value: String) -> Self {
        Self::literal(value)
    }
}

impl fmt::Debug for Templated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.shown(), f)
    }
}

impl fmt::Display for Templated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown())
    }
}
