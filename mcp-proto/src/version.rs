//! Protocol revisions and eras.

use core::fmt;

/// Whether a server speaks the stateless protocol or an older, handshake-based one.
///
/// spec: 2026-07-28 basic/versioning#terminology
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Era {
    /// Revisions that establish a session with a handshake (2025-11-25 and earlier).
    Legacy,
    /// Revisions that carry version, identity and capabilities on every request.
    Modern,
}

impl Era {
    /// The word used in reports: `modern` or `legacy`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A protocol revision that this client implements, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Version {
    /// 2024-11-05, the first revision.
    V2024_11_05,
    /// 2025-03-26.
    V2025_03_26,
    /// 2025-06-18.
    V2025_06_18,
    /// 2025-11-25, the last one with a handshake.
    V2025_11_25,
    /// 2026-07-28, the first stateless one.
    V2026_07_28,
}

impl Version {
    /// Every revision, newest first: the order of preference.
    pub const ALL: [Self; 5] = [
        Self::V2026_07_28,
        Self::V2025_11_25,
        Self::V2025_06_18,
        Self::V2025_03_26,
        Self::V2024_11_05,
    ];

    /// The newest modern revision: what the first request asks for.
    pub const LATEST: Self = Self::V2026_07_28;

    /// The revision as it is written on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The revision written exactly so, if this client implements it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|version| version.as_str() == text)
    }

    /// The era that the revision belongs to.
    #[must_use]
    pub fn era(self) -> Era {
        if self >= Self::V2026_07_28 {
            Era::Modern
        } else {
            Era::Legacy
        }
    }

    /// The newest modern revision of this client that stands in `offered`.
    #[must_use]
    pub fn newest_mutual_modern<S: AsRef<str>>(offered: &[S]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .filter(|version| version.era() == Era::Modern)
            .find(|version| offered.iter().any(|text| text.as_ref() == version.as_str()))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
