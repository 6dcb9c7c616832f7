//! Emitted text: literals, placeholders and abbreviations.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::message;

/// Text with placeholders, ready to be rendered.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    Literal(String),
    Id,
    IdOf(String),
    IdAsString,
    ProgressToken,
    SubscriptionId,
    ArgumentOf(String),
    Counter,
    Message,
}

/// What placeholders need to remember of a message that a step matched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Matched {
    message: Value,
    id: Value,
    progress_token: Value,
    text: String,
}

/// Where placeholders take their values from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Render<'a> {
    pub(crate) last: &'a Matched,
    pub(crate) named: &'a BTreeMap<String, Matched>,
    pub(crate) subscription_id: &'a Value,
    pub(crate) n: u64,
}

impl Template {
    /// Reads text; the error is the problem alone, the caller knows the path.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = expand(text)?;
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text.as_str();
        while let Some(at) = rest.find('$') {
            let (before, from) = rest.split_at(at);
            literal.push_str(before);
            if let Some((part, after)) = placeholder(from)? {
                parts.push(Part::Literal(std::mem::take(&mut literal)));
                parts.push(part);
                rest = after;
            } else {
                literal.push('$');
                rest = from.strip_prefix('$').unwrap_or_default();
            }
        }
        literal.push_str(rest);
        parts.push(Part::Literal(literal));
        Ok(Self { parts })
    }

    /// The names of steps the text refers to.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::IdOf(name) | Part::ArgumentOf(name) => Some(name.as_str()),
            _ => None,
        })
    }

    pub(crate) fn uses_counter(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Counter))
    }

    pub(crate) fn render(&self, with: Render<'_>) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Id => text.push_str(&with.last.id.to_string()),
                Part::IdOf(name) => text.push_str(&with.of(name).id.to_string()),
                Part::IdAsString => text.push_str(&as_json_string(&with.last.id)),
                Part::ProgressToken => text.push_str(&with.last.progress_token.to_string()),
                Part::SubscriptionId => text.push_str(&with.subscription_id.to_string()),
                Part::ArgumentOf(name) => text.push_str(&string_content(&with.of(name).text)),
                Part::Message => text.push_str(&with.last.message.to_string()),
                Part::Counter => text.push_str(&with.n.to_string()),
            }
        }
        text
    }
}

impl Matched {
    pub(crate) fn new(message: &Value) -> Self {
        let params = message::params(message);
        Self {
            message: message.clone(),
            id: message.get("id").cloned().unwrap_or_default(),
            progress_token: message::progress_token(params).cloned().unwrap_or_default(),
            text: params
                .pointer("/arguments/text")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .into(),
        }
    }
}

impl<'a> Render<'a> {
    /// A name whose step was passed without a match stands for nothing: `null` and empty text.
    fn of(self, name: &str) -> &'a Matched {
        self.named.get(name).unwrap_or(&NOTHING)
    }
}

static NOTHING: Matched = Matched {
    message: Value::Null,
    id: Value::Null,
    progress_token: Value::Null,
    text: String::new(),
};

/// The placeholder at the start of `text` (which starts with `$`) and what follows it.
fn placeholder(text: &str) -> Result<Option<(Part, &str)>, String> {
    if let Some(rest) = text.strip_prefix("$ID(") {
        return named(rest, "$ID").map(|(name, rest)| Some((Part::IdOf(name), rest)));
    }
    if let Some(rest) = text.strip_prefix("$ARG(") {
        return named(rest, "$ARG").map(|(name, rest)| Some((Part::ArgumentOf(name), rest)));
    }
    // Longest first: `$ID` is the start of `$ID_STR`.
    let plain = [
        ("$ID_STR", Part::IdAsString),
        ("$ID", Part::Id),
        ("$MESSAGE", Part::Message),
        ("$PTOKEN", Part::ProgressToken),
        ("$SUBID", Part::SubscriptionId),
        ("$N", Part::Counter),
    ];
    Ok(plain
        .into_iter()
        .find_map(|(key, part)| Some((part, text.strip_prefix(key)?))))
}

fn named<'a>(rest: &'a str, key: &str) -> Result<(String, &'a str), String> {
    rest.split_once(')')
        .map(|(name, rest)| (name.to_owned(), rest))
        .ok_or_else(|| format!("{key}( has no closing parenthesis"))
}

/// The id's text as a JSON string: 7 becomes "7", a string stays what it is.
fn as_json_string(id: &Value) -> String {
    match id {
        Value::String(_) => id.to_string(),
        other => Value::from(other.to_string()).to_string(),
    }
}

/// What stands between the quotes of this text's JSON string.
fn string_content(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or_default()
        .to_owned()
}

const OK: &str = r#"{"resultType":"complete","content":[{"type":"text","text":"ok"}]}"#;

const ABBREVIATIONS: [(&str, &str); 6] = [
    ("OK", OK),
    (
        "OK_RESULT",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[{"type":"text","text":"ok"}]}}"#,
    ),
    (
        "OK_RESULT_LEGACY",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"ok"}]}}"#,
    ),
    (
        "GOOD_DISCOVER",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fake","version":"1"}}}}"#,
    ),
    (
        "GOOD_INIT",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}}"#,
    ),
    (
        "METHOD_NOT_FOUND",
        r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"Method not found"}}"#,
    ),
];

/// Replaces `«NAME»`; other text between guillemets is left alone unless it looks like a name.
fn expand(text: &str) -> Result<String, String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('«') {
        expanded.push_str(before);
        let name = after.split_once('»').map(|(name, _)| name);
        match name {
            Some(name) if is_abbreviation(name) => {
                let found = ABBREVIATIONS.iter().find(|(key, _)| *key == name);
                let Some((_, value)) = found else {
                    let known: Vec<&str> = ABBREVIATIONS.iter().map(|(key, _)| *key).collect();
                    return Err(format!(
                        "unknown abbreviation «{name}»; known: {}",
                        known.join(", ")
                    ));
                };
                expanded.push_str(value);
                rest = after.split_once('»').map_or("", |(_, rest)| rest);
            }
            _ => {
                expanded.push('«');
                rest = after;
            }
        }
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn is_abbreviation(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn render(text: &str) -> String {
        let last = Matched::new(&json!({"id": 7, "params": {"_meta": {"progressToken": "t"}}}));
        let named = Matched::new(&json!({"id": "x\"", "params": {"arguments": {"text": "a\nb"}}}));
        Template::parse(text)
            .map(|template| {
                template.render(Render {
                    last: &last,
                    named: &BTreeMap::from([("a".to_owned(), named)]),
                    subscription_id: &json!(42),
                    n: 3,
                })
            })
            .unwrap_or_else(|problem| problem)
    }

    #[test]
    fn placeholders_become_json() {
        assert_eq!(render("$ID $ID_STR $PTOKEN $SUBID $N"), r#"7 "7" "t" 42 3"#);
        assert_eq!(
            render("$MESSAGE"),
            r#"{"id":7,"params":{"_meta":{"progressToken":"t"}}}"#
        );
        assert_eq!(render("$ID(a) [$ARG(a)]"), r#""x\"" [a\nb]"#);
        assert_eq!(render("$ID(gone) [$ARG(gone)]"), "null []");
        assert_eq!(
            render(r##"{"$ref":"#/$defs/N","$schema":1} $"##),
            r##"{"$ref":"#/$defs/N","$schema":1} $"##
        );
        assert_eq!(render("$ID(a"), "$ID( has no closing parenthesis");
    }

    #[test]
    fn abbreviations_stand_for_whole_messages() {
        assert_eq!(
            render("«METHOD_NOT_FOUND»"),
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found"}}"#
        );
        assert_eq!(render("«OK»"), OK);
        assert_eq!(render("« un mot » «"), "« un mot » «");
        assert_eq!(
            render("«OKAY»"),
            "unknown abbreviation «OKAY»; known: OK, OK_RESULT, OK_RESULT_LEGACY, GOOD_DISCOVER, GOOD_INIT, METHOD_NOT_FOUND"
        );
        for (name, value) in ABBREVIATIONS {
            let text = value.replace("$ID", "1");
            assert!(serde_json::from_str::<Value>(&text).is_ok(), "{name}");
        }
    }
}
