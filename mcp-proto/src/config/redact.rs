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

/// Replaces a secret by `***`, and its beginning where `…` has cut it short.
fn strike_out(mut text: String, secret: &str) -> String {
    if text.contains(secret) {
        text = text.replace(secret, "***");
    }
    let beginning = |text: &str| {
        (SHORTEST_SECRET_BYTES..secret.len())
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
