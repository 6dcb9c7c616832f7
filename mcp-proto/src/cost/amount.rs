//! Amounts of money, exactly.

use alloc::format;
use core::fmt;

use serde::{Serialize, Serializer};

use crate::identity::number;

/// Decimal places of an amount.
const PLACES: i64 = 9;
const NANOS_PER_USD: u64 = 1_000_000_000;

/// An amount in billionths of a US dollar, from 0 to about 18 billion dollars.
///
/// Sums saturate at [`NanoUsd::MAX`], so their order never matters. The text form is the exact decimal
/// amount in dollars, without zeros at its end; it reads back as the same amount.
///
/// ```
/// use mcp_proto::cost::NanoUsd;
///
/// let price = NanoUsd::read("2.5e-3").amount;
/// assert_eq!(price, NanoUsd::from_nanos(2_500_000));
/// assert_eq!(price.saturating_add(price).to_string(), "0.005");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NanoUsd(u64);

/// What was read where an amount was expected. There always is an amount: a cost that makes no sense
/// counts as zero, and the warning says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostReading {
    /// The amount.
    pub amount: NanoUsd,
    /// What is to be said about it.
    pub warning: Option<CostWarning>,
}

/// What was wrong with a cost, or with keeping it. Nothing fails of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum CostWarning {
    /// Below zero; counted as 0.
    #[error("the cost is negative and counts as 0")]
    Negative,
    /// No number, or NaN; counted as 0.
    #[error("the cost is not a number and counts as 0")]
    NotANumber,
    /// Infinite; counted as 0.
    #[error("the cost is infinite and counts as 0")]
    Infinite,
    /// More than [`NanoUsd::MAX`]; counted as 0.
    #[error("the cost exceeds {} USD and counts as 0", NanoUsd::MAX)]
    TooLarge,
    /// More than nine decimal places; rounded to the nearest nano-dollar, halves upwards.
    #[error("the cost has more than nine decimal places and was rounded")]
    Rounded,
    /// The sum has reached [`NanoUsd::MAX`] and stays there.
    #[error("the sum has reached {} USD and grows no further", NanoUsd::MAX)]
    Saturated,
    /// More names than are told apart; the cost counts in sums, but under no name of its own.
    #[error("too many different names to tell costs apart; this one is counted with others")]
    TooManyNames,
}

impl NanoUsd {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// The largest amount, at which sums saturate.
    pub const MAX: Self = Self(u64::MAX);

    /// So many billionths of a dollar.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The amount in billionths of a dollar.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The sum, at most [`NanoUsd::MAX`].
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// This part of the amount, rounded down.
    #[must_use]
    pub const fn percent(self, percent: u8) -> Self {
        let share = self.0 as u128 * percent as u128 / 100;
        // More than 100 percent may be more than there is room for.
        Self(if share > u64::MAX as u128 {
            u64::MAX
        } else {
            share as u64
        })
    }

    /// Reads an amount in dollars: a JSON number, digit by digit and never through a floating-point
    /// value. White space around it is allowed.
    ///
    /// Takes time linear in the text, however large its exponent.
    #[must_use]
    pub fn read(text: &str) -> CostReading {
        let text = text.trim();
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        if ["inf", "infinity"]
            .iter()
            .any(|word| unsigned.eq_ignore_ascii_case(word))
        {
            let negative = unsigned.len() < text.len();
            return CostReading::zero(if negative {
                CostWarning::Negative
            } else {
                CostWarning::Infinite
            });
        }
        match number::token(text) {
            Some(token) if token.text.len() == text.len() => read_number(unsigned, text),
            _ => CostReading::zero(CostWarning::NotANumber),
        }
    }
}

/// Reads a number of JSON's form, given without and with its sign.
fn read_number(unsigned: &str, text: &str) -> CostReading {
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || integer.bytes().chain(fraction.bytes());
    let Some(leading_zeros) = digits().position(|digit| digit != b'0') else {
        return NanoUsd::ZERO.into();
    };
    if unsigned.len() < text.len() {
        return CostReading::zero(CostWarning::Negative);
    }
    // How many of the digits stand before the point when nano-dollars are counted.
    let whole = length(integer.len())
        .saturating_add(read_exponent(exponent))
        .saturating_add(PLACES);
    let mut position = length(leading_zeros);
    let mut rest = digits().skip(leading_zeros);
    let mut nanos: u64 = 0;
    // At most 21 rounds, for the first digit is not zero: by then the amount is too large.
    while position < whole {
        let digit = rest.next().unwrap_or(b'0') - b'0';
        let longer = nanos.checked_mul(10);
        match longer.and_then(|nanos| nanos.checked_add(digit.into())) {
            Some(longer) => nanos = longer,
            None => return CostReading::zero(CostWarning::TooLarge),
        }
        position += 1;
    }
    if rest.clone().all(|digit| digit == b'0') {
        return NanoUsd(nanos).into();
    }
    let half = position == whole && rest.next() >= Some(b'5');
    match nanos.checked_add(half.into()) {
        Some(nanos) => CostReading {
            amount: NanoUsd(nanos),
            warning: Some(CostWarning::Rounded),
        },
        None => CostReading::zero(CostWarning::TooLarge),
    }
}

/// The exponent of a number of JSON's form, saturated.
fn read_exponent(text: &str) -> i64 {
    let (digits, negative) = match text.strip_prefix('-') {
        Some(digits) => (digits, true),
        None => (text.strip_prefix('+').unwrap_or(text), false),
    };
    let size = digits.bytes().fold(0_i64, |size, digit| {
        size.saturating_mul(10)
            .saturating_add(i64::from(digit - b'0'))
    });
    if negative { -size } else { size }
}

/// A length of a text in memory, which an `i64` always has room for.
fn length(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

impl CostReading {
    const fn zero(warning: CostWarning) -> Self {
        Self {
            amount: NanoUsd::ZERO,
            warning: Some(warning),
        }
    }
}

impl From<NanoUsd> for CostReading {
    fn from(amount: NanoUsd) -> Self {
        Self {
            amount,
            warning: None,
        }
    }
}

impl From<&str> for CostReading {
    /// As [`NanoUsd::read`].
    fn from(text: &str) -> Self {
        NanoUsd::read(text)
    }
}

impl From<f64> for CostReading {
    /// Dollars. A float stands for the shortest decimal number that reads back as it: `0.1` is exactly
    /// ten cents.
    fn from(dollars: f64) -> Self {
        NanoUsd::read(&format!("{dollars:e}"))
    }
}

impl fmt::Display for NanoUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (dollars, nanos) = (self.0 / NANOS_PER_USD, self.0 % NANOS_PER_USD);
        if nanos == 0 {
            return write!(f, "{dollars}");
        }
        let fraction = format!("{nanos:09}");
        write!(f, "{dollars}.{}", fraction.trim_end_matches('0'))
    }
}

impl Serialize for NanoUsd {
    /// As a string, because readers of JSON numbers round them.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};

    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> (u64, Option<CostWarning>) {
        let reading = NanoUsd::read(text);
        (reading.amount.as_nanos(), reading.warning)
    }

    /// R50: negative, NaN, infinite → 0 with a warning.
    #[test]
    fn r50_what_is_no_cost_counts_as_zero_and_says_why() {
        use CostWarning::*;
        for (text, warning) in [
            ("-1", Negative),
            ("-1e-30", Negative),
            ("-inf", Negative),
            ("NaN", NotANumber),
            ("-NaN", NotANumber),
            ("", NotANumber),
            ("-", NotANumber),
            ("1.", NotANumber),
            (".5", NotANumber),
            ("01", NotANumber),
            ("1e", NotANumber),
            ("1 2", NotANumber),
            ("0x10", NotANumber),
            ("null", NotANumber),
            ("Infinity", Infinite),
            ("inf", Infinite),
            ("1e11", TooLarge),
            ("18446744073.709551616", TooLarge),
            ("18446744073.7095516155", TooLarge),
            ("1e99999999999999999999999", TooLarge),
        ] {
            assert_eq!(read(text), (0, Some(warning)), "{text}");
        }
        for (value, warning) in [
            (-0.01, Negative),
            (f64::NAN, NotANumber),
            (f64::INFINITY, Infinite),
            (f64::NEG_INFINITY, Negative),
            (f64::MAX, TooLarge),
        ] {
            assert_eq!(
                CostReading::from(value),
                CostReading::zero(warning),
                "{value}"
            );
        }
    }

    #[test]
    fn r50_amounts_are_exact() {
        for (text, nanos) in [
            ("0", 0),
            ("-0.0", 0),
            ("0e999999999999999999999", 0),
            ("1", 1_000_000_000),
            (" 0.1 ", 100_000_000),
            ("1e-9", 1),
            ("0.0000000010", 1),
            ("1000000000e-18", 1),
            ("1.5E+3", 1_500_000_000_000),
            ("18446744073.709551615", u64::MAX),
            ("18446744073709551615e-9", u64::MAX),
        ] {
            assert_eq!(read(text), (nanos, None), "{text}");
        }
        for (text, nanos) in [
            ("4e-10", 0),
            ("5e-10", 1),
            ("1e-99999999999999999999", 0),
            ("9e-11", 0),
            ("0.0000000014999", 1),
            ("0.0000000015", 2),
        ] {
            assert_eq!(read(text), (nanos, Some(CostWarning::Rounded)), "{text}");
        }
        assert_eq!(CostReading::from(0.1).amount.as_nanos(), 100_000_000);
        assert_eq!(CostReading::from(0.1), NanoUsd::read("0.1"));
        assert_eq!(NanoUsd::MAX.percent(200), NanoUsd::MAX);
        assert_eq!(NanoUsd::MAX.percent(100), NanoUsd::MAX);
        assert_eq!(NanoUsd::from_nanos(9).percent(80).as_nanos(), 7);
    }

    proptest! {
        /// What is printed reads back as the same amount, in every spelling of the number.
        #[test]
        fn r50_text_is_exact(nanos: u64, shift in -40_i32..40) {
            let amount = NanoUsd::from_nanos(nanos);
            prop_assert_eq!(NanoUsd::read(&amount.to_string()), amount.into());
            let zeros: String = core::iter::repeat_n('0', shift.unsigned_abs() as usize).collect();
            let other = if shift < 0 {
                format!("{nanos}{zeros}e{}", shift - 9)
            } else {
                format!("0.{zeros}{nanos:020}e{}", shift + 11)
            };
            prop_assert_eq!(NanoUsd::read(&other), amount.into());
        }

        #[test]
        fn r50_no_text_is_worse_than_a_warning(text in "[-+0-9.eE naif]{0,12}") {
            let reading = NanoUsd::read(&text);
            let valid = serde_json::from_str::<f64>(&text).is_ok();
            prop_assert_eq!(reading.warning == Some(CostWarning::NotANumber), !valid
                && !text.trim().trim_start_matches('-').eq_ignore_ascii_case("inf"));
        }
    }
}
