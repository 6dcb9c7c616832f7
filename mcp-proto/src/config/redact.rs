//! Texts without secrets.

use alloc::string::String;
use alloc::vec::Vec;

use super::{PeerConfig, Transport};
use crate::secret::{Secret, Templated};

impl PeerConfig {
    /// The text with every secret of this peer struck out: values of `env` and `headers`, and what
    /// variables expanded to. What is shorter than four bytes is no secret, and striking it out would
    /// only hide the text. A secret that is cut short by `…` is struck out too.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        self.secrets().into_iter().fold(text.into(), strike_out)
    }

    /// The secrets, the longest first: one may be part of another.
    fn secrets(&self) -> Vec<&str> {
        let (mut secrets, whole): (Vec<&str>, Vec<&str>) = match &self.transport {
            Transport::Stdio(stdio) => {
                let words = stdio.args.iter().chain([&stdio.command]).chain(&stdio.cwd);
                let expanded = words.filter_map(Templated::expansion);
                let values = stdio.env.values().map(Secret::expose);
                (expanded.collect(), values.collect())
            }
            Transport::Http(http) => {
                let values = http.headers.iter().map(|(_, value)| value.expose());
                (http.url.expansion().into_iter().collect(), values.collect())
            }
            Transport::Stream => return Vec::new(),
        };
        // `Bearer <token>`, lines of a key: the parts are as secret as the whole.
        let parts = whole.iter().flat_map(|value| value.split_whitespace());
        secrets.extend(parts.filter(|part| part.len() >= SHORTEST_PART_BYTES));
        secrets.extend(whole);
        secrets.retain(|secret| secret.len() >= SHORTEST_SECRET_BYTES);
        secrets.sort_by_key(|secret| core::cmp::Reverse(secret.len()));
        secrets
    }
}

/// What is shorter is no secret.
const SHORTEST_SECRET_BYTES: usize = 4;
/// Shorter words within a secret are none by themselves: `Bearer`.
const SHORTEST_PART_BYTES: usize = 8;

/// Longer texts are not ours: what this client cuts short is shorter.
const LONGEST_CUT_BYTES: usize = 16 << 10;
/// No excerpt is longer, so no more of a secret's beginning stands in one.
const LONGEST_BEGINNING_BYTES: usize = 400;

/// Replaces a secret by `***`, and its beginning where `…` has cut it short.
fn strike_out(mut text: String, secret: &str) -> String {
    if text.contains(secret) {
        text = text.replace(secret, "***");
    }
    if text.len() > LONGEST_CUT_BYTES {
        return text;
    }
    let beginning = |text: &str| {
        (SHORTEST_SECRET_BYTES..secret.len().min(LONGEST_BEGINNING_BYTES))
            .rev()
            .filter_map(|len| secret.get(..len))
            .find_map(|part| text.strip_suffix(part).map(str::len))
    };
    let mut from = text.len();
    while let Some(cut) = text.get(..from).and_then(|head| head.rfind('…')) {
        if let Some(start) = text.get(..cut).and_then(beginning) {
            text.replace_range(start..cut, "***");
            from = start;
        } else {
            from = cut;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::config::StdioConfig;

    fn peer() -> PeerConfig {
        let mut stdio = StdioConfig::new("server", ["--plain"]);
        let secrets = [("A", "Bearer s3cr3t-t0ken"), ("B", "xyz"), ("C", "größe-ä")];
        for (name, value) in secrets {
            stdio.env.insert(name.to_string(), value.into());
        }
        stdio
            .args
            .push(Templated::expanded("-k=v4riable;", "-k=${KEY};"));
        PeerConfig::new("srv", stdio)
    }

    #[test]
    fn the_whole_its_parts_and_its_beginnings_are_struck_out() {
        for (text, expected) in [
            ("a Bearer s3cr3t-t0ken b", "a *** b"),
            ("s3cr3t-t0ken, s3cr3t-t0ken", "***, ***"),
            ("-k=v4riable; v4riable", "-k=***; ***"),
            ("cut s3cr3t…", "cut ***…"),
            ("cut größ…, cut s3cr3t-t…", "cut ***…, cut ***…"),
            // Too little to tell; a word that is no secret; what nobody configured.
            ("cut s3c…", "cut s3c…"),
            ("Bearer xyz --plain", "Bearer xyz --plain"),
        ] {
            assert_eq!(peer().redact(text), expected);
        }
    }

    /// A server decides how long a text is and what is in it.
    #[test]
    fn a_large_text_is_left_to_plain_search() {
        let text = "Bear…".repeat(LONGEST_CUT_BYTES);
        assert_eq!(peer().redact(&text), text);
    }
}
