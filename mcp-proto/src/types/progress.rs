//! Progress and log levels.

use alloc::borrow::Cow;
use core::fmt;

use serde_json::value::RawValue;

use super::object::{number, pick, present, text};

/// One `notifications/progress` (R42).
///
/// ```
/// use mcp_proto::{types::Progress, wire::Json};
/// let params = Json::parse(r#"{"progressToken":7,"progress":1,"total":4}"#)?;
/// let progress = Progress::read(params.as_raw()).expect("well formed");
/// assert_eq!((progress.token.get(), progress.fraction()), ("7", Some(0.25)));
/// # Ok::<(), mcp_proto::wire::InvalidJson>(())
/// ```
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// The token as the server wrote it: a string or a number.
    pub token: &'a RawValue,
    /// How far it is: finite, not negative.
    pub progress: f64,
    /// The value of `progress` at the end, if known: finite.
    pub total: Option<f64>,
    /// Words for a person.
    pub message: Option<Cow<'a, str>>,
}

impl<'a> Progress<'a> {
    /// Reads the notification's `params`.
    ///
    /// `None` when the token is neither string nor number, `progress` is missing, negative, not finite
    /// or no number, or another member has a wrong type: such a notification is counted and dropped.
    #[must_use]
    pub fn read(params: &'a RawValue) -> Option<Self> {
        let members = pick(params, ["progressToken", "progress", "total", "message"]);
        let [token, progress, total, message] = members.ok()?;
        let token = token.filter(|raw| raw.get().starts_with('"') || number(raw).is_some())?;
        let progress = progress.and_then(number)?;
        let total = present(total).map(number);
        let message = present(message).map(text).transpose().ok()?;
        let total = match total {
            Some(total) => Some(total.filter(|total| total.is_finite())?),
            None => None,
        };
        (progress.is_finite() && progress >= 0.0).then_some(Self {
            token,
            progress,
            total,
            message,
        })
    }

    /// The part that is done, from 0 to 1; `None` without a positive total.
    #[must_use]
    pub fn fraction(&self) -> Option<f64> {
        let total = self.total.filter(|total| *total > 0.0)?;
        Some((self.progress / total).clamp(0.0, 1.0))
    }
}

/// The severity of a log message (RFC 5424), least severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // the words of RFC 5424
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    /// Every level, least severe first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// The level written exactly so.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == word)
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
