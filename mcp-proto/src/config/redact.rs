//! Texts without secrets.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{PeerConfig, Transport};
use crate::secret::{Secret, Templated};
use crate::wire::printable;

impl PeerConfig {
    /// The text with every secret of this peer struck out: values of `env` and `headers`, and what
    /// variables expanded to. What is shorter than four bytes is no secret, and striking it out would
    /// only hide the text. A secret that is cut short by `…` is struck out too.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        let mut secrets: Vec<String> = self.secrets().into_iter().flat_map(spellings).collect();
        // The longest first: one may be part of another.
        secrets.sort_by_key(|secret| core::cmp::Reverse(secret.len()));
        let strike_out = |text, secret: &String| strike_out(text, secret);
        secrets.iter().fold(text.into(), strike_out)
    }

    fn secrets(&self) -> Vec<&str> {
        let (words, values): (Vec<&Templated>, Vec<&Secret>) = match &self.transport {
            Transport::Stdio(stdio) => {
                let words = stdio.args.iter().chain([&stdio.command]).chain(&stdio.cwd);
                (words.collect(), stdio.env.values().collect())
            }
            Transport::Http(http) => {
                let values = http.headers.iter().map(|(_, value)| value);
                (Vec::from([&http.url]), values.collect())
            }
            Transport::Stream => return Vec::new(),
        };
        let mut secrets: Vec<&str> = words.into_iter().flat_map(Templated::expansions).collect();
        for value in values {
            secrets.push(value.expose());
            secrets.extend(value.expansions());
            // `Bearer <token>`, lines of a key: the parts are as secret as the whole.
            let parts = value.expose().split_whitespace();
            secrets.extend(parts.filter(|part| part.len() >= SHORTEST_PART_BYTES));
            secrets.extend(password(value.expose()));
        }
        secrets.retain(|secret| secret.len() >= SHORTEST_SECRET_BYTES);
        secrets
    }
}

/// The password in a URL: `postgres://user:password@host`.
///
/// spec: RFC 3986, section 3.2.1
fn password(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    Some(user.split_once(':')?.1)
}

/// A secret as it is, and as it looks when a server prints it inside of JSON, with or without letters beyond
/// ASCII, or as a literal of a programming language; and as this client shows what is invisible in it.
fn spellings(secret: &str) -> Vec<String> {
    let mut spellings = Vec::from([String::from(secret)]);
    let quoted = serde_json::to_string(secret).unwrap_or_default();
    let json = quoted
        .get(1..quoted.len().saturating_sub(1))
        .unwrap_or_default();
    let mut ascii = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter.is_ascii() {
            ascii.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            ascii.push_str(&format!("\\u{unit:04x}"));
        }
    }
    let debug: String = secret.escape_debug().collect();
    let literal = debug.replace("\\'", "'");
    let shown = printable(secret.as_bytes(), usize::MAX);
    for other in [
        json.replace("\\\"", "\""),
        json.into(),
        ascii,
        debug,
        literal,
        shown,
    ] {
        if !other.is_empty() && !spellings.contains(&other) {
            spellings.push(other);
        }
    }
    spellings
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

    /// Each variable by itself, wherever it stood, and the password of a URL.
    #[test]
    fn what_is_within_a_value_is_struck_out() {
        let env = &mut |name: &str| Some(format!("s3cr3t-{name}"));
        let text = r#"{"mcpServers":{"a":{"command":"x","args":["u${A}:${B}"],
            "env":{"D":"postgres://app:${C}@host/db","E":"amqp://u:litera1@h"}}}}"#;
        let config = crate::Config::parse(text, "x.json", env).unwrap();
        for (text, expected) in [
            ("got s3cr3t-A and s3cr3t-B", "got *** and ***"),
            ("us3cr3t-A:s3cr3t-B", "u***"),
            ("login s3cr3t-C failed", "login *** failed"),
            ("litera1", "***"),
            ("host db app", "host db app"),
        ] {
            assert_eq!(config.peers[0].redact(text), expected);
        }
    }

    /// However a server writes it down.
    #[test]
    fn escaped_forms_are_struck_out() {
        let mut peer = peer();
        let Transport::Stdio(stdio) = &mut peer.transport else {
            panic!()
        };
        let secret = "p@ss\"wörd\\12\n345";
        stdio.env.insert("D".to_string(), secret.into());
        for text in [
            secret,
            r#"p@ss\"wörd\\12\n345"#,
            r#"p@ss\"w\u00f6rd\\12\n345"#,
            r#"p@ss"wörd\\12\n345"#,
        ] {
            assert_eq!(peer.redact(&format!("a {text} b")), "a *** b");
        }
        assert_eq!(peer.redact(r"gr\u00f6\u00dfe-\u00e4"), "***");
        let Transport::Stdio(stdio) = &mut peer.transport else {
            panic!()
        };
        let odd = "it's \u{200b}\"a\\b\"";
        stdio.env.insert("E".to_string(), odd.into());
        for text in [
            format!("{odd:?}"),
            odd.escape_debug().to_string(),
            printable(odd.as_bytes(), 99),
        ] {
            let shown = peer.redact(&text);
            assert_eq!(shown.trim_matches('"'), "***", "{text}");
        }
    }

    /// A server decides how long a text is and what is in it.
    #[test]
    fn a_large_text_is_left_to_plain_search() {
        let text = "Bear…".repeat(LONGEST_CUT_BYTES);
        assert_eq!(peer().redact(&text), text);
    }
}
