//! JSON for people.

use std::borrow::Cow;

/// The longest JSON text that is set out in lines, in bytes. Nobody reads a longer one.
const BYTES_MAX: usize = 1 << 20;
/// How many times as long as it came it may become, beside [`FREE_BYTES`]: each line is indented, so what is
/// nested deeply grows with the square of its depth.
const GROWTH_MAX: usize = 8;
/// What is never too long, in bytes.
const FREE_BYTES: usize = 64 << 10;

/// The JSON text with a line for each value, members in their order; as it came if that would be too long.
pub(super) fn pretty(json: &str) -> Cow<'_, str> {
    let max = json.len() * GROWTH_MAX + FREE_BYTES;
    let lines = Lines {
        rest: json.trim(),
        out: String::new(),
        depth: 0,
        max,
    };
    let set_out = (json.len() <= BYTES_MAX).then(|| lines.set_out()).flatten();
    set_out.map_or(Cow::Borrowed(json), Cow::Owned)
}

/// The tokens go from one text to the other: no tree of values is built, and numbers stay what they are.
struct Lines<'a> {
    rest: &'a str,
    out: String,
    depth: usize,
    max: usize,
}

impl<'a> Lines<'a> {
    /// `None` if it becomes too long, or is no JSON after all.
    fn set_out(mut self) -> Option<String> {
        while let Some(token) = self.token()? {
            match token {
                "{" | "[" => self.open(token),
                "}" | "]" => {
                    self.depth = self.depth.checked_sub(1)?;
                    self.line();
                    self.out.push_str(token);
                }
                "," => {
                    self.out.push_str(token);
                    self.line();
                }
                ":" => self.out.push_str(": "),
                text if text.starts_with('"') => {
                    // Escapes that are not needed are in the way of a reader.
                    let text: String = serde_json::from_str(text).ok()?;
                    self.out.push_str(&serde_json::to_string(&text).ok()?);
                }
                other => self.out.push_str(other),
            }
            if self.out.len() > self.max {
                return None;
            }
        }
        Some(self.out)
    }

    /// Something that holds values; what is empty stays on its line.
    fn open(&mut self, token: &str) {
        self.out.push_str(token);
        let end = if token == "{" { '}' } else { ']' };
        if let Some(rest) = self.rest.strip_prefix(end) {
            self.rest = rest.trim_start();
            self.out.push(end);
        } else {
            self.depth += 1;
            self.line();
        }
    }

    fn line(&mut self) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n("  ", self.depth));
    }

    /// The next token; `Some(None)` at the end, `None` if there is no telling where it ends.
    fn token(&mut self) -> Option<Option<&'a str>> {
        let Some(first) = self.rest.chars().next() else {
            return Some(None);
        };
        let length = match first {
            '"' => string_len(self.rest)?,
            '{' | '}' | '[' | ']' | ',' | ':' => 1,
            _ => {
                let ends = |c: char| c.is_ascii_whitespace() || "{}[],:\"".contains(c);
                self.rest.find(ends).unwrap_or(self.rest.len())
            }
        };
        let (token, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest.trim_start();
        Some(Some(token))
    }
}

/// How long the string is that this begins with, with its quotation marks.
fn string_len(text: &str) -> Option<usize> {
    let mut escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map(|end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_on_lines_and_stay_what_they_are() {
        let json = r#" {"b":[1.0,1e2,123456789012345678901],"a":{"x\"]":"\u00e9\n"},"e":[ ],"f":{},"b":null} "#;
        let shown = "{\n  \"b\": [\n    1.0,\n    1e2,\n    123456789012345678901\n  ],\n  \"a\": {\n    \
                     \"x\\\"]\": \"é\\n\"\n  },\n  \"e\": [],\n  \"f\": {},\n  \"b\": null\n}";
        assert_eq!(pretty(json), shown);
    }

    #[test]
    fn it_is_what_is_usual() {
        let json = r#"{"a":[{"b":[],"c":{"d":[[1],[2,[3]]]}},"x",true,null,-1.5]}"#;
        let value: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(pretty(json), serde_json::to_string_pretty(&value).unwrap());
    }

    /// What is nested deeply would become a hundred times as long.
    #[test]
    fn what_would_become_too_long_stays_as_it_came() {
        let nested = |inner: &str| format!("{}{inner}{}", "[".repeat(118), "]".repeat(118));
        let small = nested("1");
        assert_eq!(pretty(&small).lines().count(), 237);
        let broad = nested(&vec!["1"; 100_000].join(","));
        assert_eq!(pretty(&broad), broad);
        let flat = format!("[{}]", vec!["1"; BYTES_MAX / 4].join(","));
        assert_eq!(pretty(&flat).lines().count(), BYTES_MAX / 4 + 2);
        let long = format!("[{}]", vec!["1"; BYTES_MAX].join(","));
        assert_eq!(pretty(&long), long);
        for wrong in ["{\"a", "]", "{}}"] {
            assert_eq!(pretty(wrong), wrong);
        }
    }
}
