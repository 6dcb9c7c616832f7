//! What strings of a form must look like.

/// A format of the restricted schema. Each is checked as far as it catches slips, not as far as the
/// standards go: the server decides.
///
/// spec: 2026-07-28 client/elicitation#requested-schema
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextFormat {
    /// `date`: `2026-07-28`.
    Date,
    /// `date-time`: `2026-07-28T12:00:00Z`, or with an offset.
    DateTime,
    /// `email`: something on both sides of one `@`.
    Email,
    /// `uri`: a scheme and something after it.
    Uri,
}

impl TextFormat {
    /// The format of this name; formats that are unknown check nothing.
    pub(super) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "date" => Self::Date,
            "date-time" => Self::DateTime,
            "email" => Self::Email,
            "uri" => Self::Uri,
            _ => return None,
        })
    }

    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Date => " that is a date like 2026-07-28",
            Self::DateTime => " that is a time like 2026-07-28T12:00:00Z",
            Self::Email => " that is an e-mail address",
            Self::Uri => " that is a URI",
        }
    }

    /// Whether a text looks like one.
    #[must_use]
    pub fn accepts(self, text: &str) -> bool {
        match self {
            Self::Date => is_date(text),
            // spec: RFC 3339, section 5.6
            Self::DateTime => text
                .split_once(['T', 't'])
                .is_some_and(|(date, time)| is_date(date) && is_time(time)),
            Self::Email => {
                !text.contains(char::is_whitespace)
                    && text.split_once('@').is_some_and(|(user, host)| {
                        !user.is_empty() && !host.is_empty() && !host.contains('@')
                    })
            }
            // spec: RFC 3986, section 3
            Self::Uri => text.split_once(':').is_some_and(|(scheme, rest)| {
                scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                    && scheme.bytes().all(|byte| {
                        byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
                    })
                    && !rest.is_empty()
                    && !rest.contains(|c: char| c.is_whitespace() || c.is_control())
            }),
        }
    }
}

/// The value of exactly so many digits.
fn digits(text: &str, count: usize) -> Option<u32> {
    let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

fn is_date(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let mut next = |count| parts.next().and_then(|part| digits(part, count));
    let (Some(year), Some(month), Some(day)) = (next(4), next(2), next(2)) else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=last).contains(&day)
}

fn is_time(text: &str) -> bool {
    let (time, offset) = match text.find(['Z', 'z', '+', '-']) {
        Some(at) => text.split_at(at),
        None => return false,
    };
    let is_offset = matches!(offset, "Z" | "z")
        || offset
            .get(1..)
            .is_some_and(|offset| is_clock(offset, 2).is_some());
    let (clock, fraction) = match time.split_once('.') {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (time, None),
    };
    is_offset
        && is_clock(clock, 3).is_some()
        && fraction.is_none_or(|fraction| {
            !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit())
        })
}

/// Hours, minutes and, where there are three parts, seconds, of which a leap second is the 61st.
fn is_clock(text: &str, parts: usize) -> Option<()> {
    let limits = [23, 59, 60];
    let mut count = 0;
    for (part, limit) in text.split(':').zip(limits) {
        digits(part, 2).filter(|value| *value <= limit)?;
        count += 1;
    }
    (count == parts && text.split(':').count() == parts).then_some(())
}
