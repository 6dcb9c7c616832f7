//! Digests, and ids derived from them: pure functions of what they name (R6).

use alloc::borrow::{Cow, ToOwned};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use sha2::{Digest, Sha256};

use super::canonical::{self, CanonicalError, Element};
use super::text::push_string;
use crate::wire::encode::push_u64;

/// A SHA-256 digest as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256Hex([u8; 64]);

impl Sha256Hex {
    /// The digest of some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::finish(Sha256::new_with_prefix(bytes))
    }

    /// A digest that is known already, if the text is one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_hex = text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        text.as_bytes().try_into().ok().filter(|_| is_hex).map(Self)
    }

    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0).unwrap_or_default()
    }

    pub(crate) fn finish(hasher: Sha256) -> Self {
        let mut digits = [0; 64];
        for (pair, byte) in digits.as_chunks_mut().0.iter_mut().zip(hasher.finalize()) {
            *pair = [hex_digit(byte >> 4), hex_digit(byte & 0xf)];
        }
        Self(digits)
    }
}

impl fmt::Display for Sha256Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Sha256Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The content hash of a request: SHA-256 over the canonical form of
/// `{"method": …, "params": …}`, where the params are those without `_meta`, or `{}`.
///
/// `params` is the JSON text of an object; a member `_meta` of it does not count.
///
/// # Errors
/// [`CanonicalError`] when the params have no canonical form.
///
/// ```
/// use mcp_proto::identity::content_hash;
/// assert_eq!(
///     content_hash("tools/list", None)?.as_str(),
///     "6e62c4a988ed6bb3a19c350ac8a6797a8dad59f3152cfce71e4caf16dc452255",
/// );
/// # Ok::<_, mcp_proto::identity::CanonicalError>(())
/// ```
pub fn content_hash(method: &str, params: Option<&str>) -> Result<Sha256Hex, CanonicalError> {
    let params = params.unwrap_or("{}");
    let mut text = Vec::with_capacity(params.len() + method.len() + 32);
    text.extend_from_slice(b"{\"method\":");
    push_string(&mut text, method);
    text.extend_from_slice(b",\"params\":");
    canonical::write_without(params, "_meta", &mut text, canonical::DEPTH_CEILING)?;
    text.push(b'}');
    Ok(Sha256Hex::of(&text))
}

/// The digest of a list: SHA-256 over the canonical form of the array of its elements, which are sorted
/// by name first (those without one to the front, those of one name by their text) (R21).
///
/// `canonical` is the output that [`canonical::array_elements`] gave the elements their places in.
pub fn digest_sorted(canonical: &[u8], elements: &mut [Element<'_>]) -> Sha256Hex {
    let bytes_of =
        |element: &Element<'_>| canonical.get(element.canonical.clone()).unwrap_or_default();
    elements.sort_unstable_by(|one, next| {
        // Names compare by code point: that is the order of their UTF-8 bytes.
        let by_name = one.name.cmp(&next.name);
        by_name.then_with(|| bytes_of(one).cmp(bytes_of(next)))
    });
    let mut hasher = Sha256::new_with_prefix(b"[");
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            hasher.update(b",");
        }
        hasher.update(bytes_of(element));
    }
    hasher.update(b"]");
    Sha256Hex::finish(hasher)
}

/// The value of a field that an id is derived from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'a> {
    /// A string.
    Text(&'a str),
    /// An integer.
    Number(u64),
}

/// `id(domain, fields, n)`: the first `length_bytes` bytes (at most 32) of the SHA-256 over the canonical
/// form of `{"domain": …, "fields": {…}}`, in lower-case hexadecimal.
///
/// The order of the fields does not matter. Their names must differ.
#[must_use]
pub fn derive_id(domain: &str, fields: &[(&str, Field<'_>)], length_bytes: usize) -> String {
    let digest = derive(domain, fields);
    let digits = digest.as_str();
    digits
        .get(..length_bytes.saturating_mul(2))
        .unwrap_or(digits)
        .to_owned()
}

fn derive(domain: &str, fields: &[(&str, Field<'_>)]) -> Sha256Hex {
    let mut fields = Cow::Borrowed(fields);
    if !fields.is_sorted_by_key(|(name, _)| *name) {
        fields.to_mut().sort_unstable_by_key(|(name, _)| *name);
    }
    let mut text = Vec::with_capacity(160);
    text.extend_from_slice(b"{\"domain\":");
    push_string(&mut text, domain);
    text.extend_from_slice(b",\"fields\":{");
    for (index, (name, value)) in fields.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        push_string(&mut text, name);
        text.push(b':');
        match value {
            Field::Text(value) => push_string(&mut text, value),
            Field::Number(value) => push_u64(&mut text, *value),
        }
    }
    text.extend_from_slice(b"}}");
    Sha256Hex::of(&text)
}

/// The first `DIGITS` digits of a derived id that are not all zero, which W3C Trace Context forbids.
///
/// Should they be, the id is derived again with one field more, `attempt`, which counts 1, 2, ….
pub(super) fn derive_nonzero<const DIGITS: usize>(
    domain: &str,
    fields: &[(&str, Field<'_>)],
) -> [u8; DIGITS] {
    first_nonzero(|attempt| match attempt {
        0 => derive(domain, fields),
        _ => derive(
            domain,
            &[fields, &[("attempt", Field::Number(attempt))]].concat(),
        ),
    })
}

fn first_nonzero<const DIGITS: usize>(mut digest: impl FnMut(u64) -> Sha256Hex) -> [u8; DIGITS] {
    let mut attempt = 0;
    loop {
        let digits = digest(attempt).0;
        match digits.first_chunk() {
            Some(prefix) if prefix.iter().any(|digit| *digit != b'0') => return *prefix,
            _ => attempt += 1,
        }
    }
}

/// The run root of a peer for which none is configured: SHA-256 over the canonical form of
/// `{"server": name, "url": url}`.
#[must_use]
pub fn default_run_root(name: &str, url: &str) -> Sha256Hex {
    let mut text = Vec::with_capacity(name.len() + url.len() + 32);
    text.extend_from_slice(b"{\"server\":");
    push_string(&mut text, name);
    text.extend_from_slice(b",\"url\":");
    push_string(&mut text, url);
    text.push(b'}');
    Sha256Hex::of(&text)
}

/// What stands for the URL of a peer on standard input and output: `stdio:` and the canonical form of
/// `[command, args…]`. Its environment never enters.
#[must_use]
pub fn stdio_url<S: AsRef<str>>(command: &str, args: &[S]) -> String {
    let mut text = Vec::new();
    push_string(&mut text, command);
    for arg in args {
        text.push(b',');
        push_string(&mut text, arg.as_ref());
    }
    format!("stdio:[{}]", String::from_utf8_lossy(&text))
}

/// Without a branch, so that many are made at once.
const fn hex_digit(value: u8) -> u8 {
    const LETTERS: u8 = b'a' - b'9' - 1;
    b'0' + value + LETTERS * (value > 9) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R6: ids of nothing but zeros are derived again.
    #[test]
    fn zero_ids_are_derived_again() {
        let mut attempts = Vec::new();
        let id: [u8; 16] = first_nonzero(|attempt| {
            attempts.push(attempt);
            let mut digits = [b'0'; 64];
            // A digit behind the prefix does not count.
            let place = if attempt < 2 { 16 } else { 15 };
            digits[place] = b'7';
            Sha256Hex(digits)
        });
        assert_eq!(&id, b"0000000000000007");
        assert_eq!(attempts, [0, 1, 2]);
    }
}
