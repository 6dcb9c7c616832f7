//! JSON whose values know where they stand.
//!
//! `serde_json` checks the syntax once and then lends each value as a piece of the text; the position
//! of a piece is its offset in the whole. So positions cost nothing until something is wrong.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// What is wrong with a file that holds nothing, and what to write instead.
const EMPTY: &str = "the file is empty; write at least {\"mcpServers\": {}}";

/// Something wrong, or merely odd, in a configuration file. It never quotes a value that may be secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The file's name as the caller gave it.
    pub source: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The path inside the document, such as `mcpServers.git.args[0]`; empty for the document itself.
    pub path: String,
    /// What is wrong, and what to write instead.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.source, self.line, self.column)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// One value: its piece of the text, and the path to it.
#[derive(Clone, Debug)]
pub(super) struct Node<'t> {
    raw: &'t RawValue,
    pub(super) path: String,
}

/// One member of an object.
#[derive(Clone, Debug)]
pub(super) struct Member<'t> {
    pub(super) name: String,
    /// The name as it stands in the text, quotes included.
    name_text: &'t str,
    pub(super) value: Node<'t>,
}

/// An object whose members are taken out one by one; what was never asked for is left over.
#[derive(Clone, Debug)]
pub(super) struct Object<'t> {
    members: Vec<Member<'t>>,
    asked: Vec<&'static str>,
}

impl<'t> Object<'t> {
    /// Removes a member. `null` is as good as absent: generated files write it for what is not set.
    pub(super) fn take(&mut self, name: &'static str) -> Option<Member<'t>> {
        self.asked.push(name);
        let index = self.members.iter().position(|member| member.name == name)?;
        let member = self.members.remove(index);
        (member.value.text() != "null").then_some(member)
    }

    /// Every member that nobody took, and every name that was asked for.
    pub(super) fn leftover(self) -> (Vec<Member<'t>>, Vec<&'static str>) {
        (self.members, self.asked)
    }
}

impl<'t> Node<'t> {
    /// The text of the value.
    pub(super) fn text(&self) -> &'t str {
        self.raw.get()
    }

    /// Its type, with the article, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self.text().as_bytes().first() {
            Some(b'{') => "an object",
            Some(b'[') => "an array",
            Some(b'"') => "a string",
            Some(b't' | b'f') => "a boolean",
            Some(b'n') => "null",
            _ => "a number",
        }
    }

    fn child(&self, name: &str, raw: &'t RawValue) -> Self {
        let plain = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'$'));
        let path = match (plain, self.path.is_empty()) {
            (true, true) => name.to_owned(),
            (true, false) => format!("{}.{name}", self.path),
            (false, _) => format!("{}[{name:?}]", self.path),
        };
        Self { raw, path }
    }

    fn element(&self, index: usize, raw: &'t RawValue) -> Self {
        Self {
            raw,
            path: format!("{}[{index}]", self.path),
        }
    }
}

/// Reads one document and collects everything that is wrong in it.
#[derive(Debug)]
pub(super) struct Reader<'t> {
    source: &'t str,
    text: &'t str,
    pub(super) errors: Vec<Finding>,
    pub(super) warnings: Vec<Finding>,
}

impl<'t> Reader<'t> {
    /// A reader of `text`, and the whole document, unless it is no JSON.
    pub(super) fn open(source: &'t str, text: &'t str) -> (Self, Option<Node<'t>>) {
        // Editors on Windows write a byte order mark; JSON has none.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut reader = Self {
            source,
            text,
            errors: Vec::new(),
            warnings: Vec::new(),
        };
        if text.trim().is_empty() {
            reader.errors.push(Finding {
                source: source.to_owned(),
                line: 1,
                column: 1,
                path: String::new(),
                message: EMPTY.to_owned(),
            });
            return (reader, None);
        }
        match serde_json::from_str::<&RawValue>(text) {
            Ok(raw) => {
                let path = String::new();
                (reader, Some(Node { raw, path }))
            }
            Err(error) => {
                reader.syntax_error(&error);
                (reader, None)
            }
        }
    }

    /// Records an error at a value.
    pub(super) fn error(&mut self, node: &Node<'_>, message: impl Into<String>) {
        let finding = self.finding(node.text(), &node.path, message.into());
        self.errors.push(finding);
    }

    /// Records an error at the name of a member.
    pub(super) fn name_error(&mut self, member: &Member<'_>, message: impl Into<String>) {
        let finding = self.finding(member.name_text, &member.value.path, message.into());
        self.errors.push(finding);
    }

    /// Records a warning at the name of a member.
    pub(super) fn warn(&mut self, member: &Member<'_>, message: impl Into<String>) {
        let finding = self.finding(member.name_text, &member.value.path, message.into());
        self.warnings.push(finding);
    }

    /// Records that a value has the wrong type.
    pub(super) fn expected(&mut self, what: &str, node: &Node<'_>) {
        self.error(node, format!("expected {what}, found {}", node.kind()));
    }

    /// The members of an object; a name that stands twice is an error.
    pub(super) fn object(&mut self, node: &Node<'t>) -> Option<Object<'t>> {
        let Ok(Pairs(pairs)) = serde_json::from_str(node.text()) else {
            self.expected("an object", node);
            return None;
        };
        let mut members: Vec<Member<'t>> = Vec::with_capacity(pairs.len());
        for (name, value) in pairs {
            let Ok(decoded) = serde_json::from_str::<String>(name.get()) else {
                self.error(node, "a member's name is no valid text (a lone surrogate)");
                continue;
            };
            let member = Member {
                value: node.child(&decoded, value),
                name: decoded,
                name_text: name.get(),
            };
            match members.iter().find(|known| known.name == member.name) {
                Some(first) => {
                    let (first, _) = self.position(first.name_text);
                    let (second, _) = self.position(member.name_text);
                    let message = format!(
                        "{:?} stands twice, on line {first} and on line {second}; remove or rename one",
                        member.name
                    );
                    self.name_error(&member, message);
                }
                None => members.push(member),
            }
        }
        let asked = Vec::new();
        Some(Object { members, asked })
    }

    /// The members of an object that is a map: its names are the user's.
    pub(super) fn map(&mut self, node: &Node<'t>) -> Option<Vec<Member<'t>>> {
        self.object(node).map(|object| object.members)
    }

    /// The names of a value's members, without a word about what is wrong with it.
    pub(super) fn keys(&self, node: &Node<'t>) -> Vec<String> {
        let Pairs(pairs) = serde_json::from_str(node.text()).unwrap_or_default();
        let names = pairs.into_iter().map(|(name, _)| name.get());
        names
            .filter_map(|name| serde_json::from_str(name).ok())
            .collect()
    }

    /// The elements of an array.
    pub(super) fn array(&mut self, node: &Node<'t>) -> Option<Vec<Node<'t>>> {
        let Ok(Elements(elements)) = serde_json::from_str(node.text()) else {
            self.expected("an array", node);
            return None;
        };
        let nodes = elements.into_iter().enumerate();
        Some(nodes.map(|(index, raw)| node.element(index, raw)).collect())
    }

    /// A string.
    pub(super) fn string(&mut self, node: &Node<'t>) -> Option<String> {
        if node.kind() != "a string" {
            self.expected("a string", node);
            return None;
        }
        let text = serde_json::from_str(node.text()).ok();
        if text.is_none() {
            self.error(node, "no valid text (a lone surrogate)");
        }
        text
    }

    /// An array of strings.
    pub(super) fn strings(&mut self, node: &Node<'t>) -> Option<Vec<String>> {
        let elements = self.array(node)?;
        // Every element is looked at, so that every wrong one is reported.
        let texts: Vec<_> = elements
            .iter()
            .map(|element| self.string(element))
            .collect();
        texts.into_iter().collect()
    }

    /// `true` or `false`.
    pub(super) fn boolean(&mut self, node: &Node<'t>) -> Option<bool> {
        match node.text() {
            "true" => Some(true),
            "false" => Some(false),
            _ => {
                self.expected("true or false", node);
                None
            }
        }
    }

    /// A whole number of at least `least`, without fraction or exponent.
    pub(super) fn whole(&mut self, node: &Node<'t>, least: u64) -> Option<u64> {
        if node.kind() != "a number" {
            self.expected("a whole number", node);
            return None;
        }
        match node.text().parse::<u64>() {
            Ok(number) if number >= least => Some(number),
            _ => {
                let found = node.text();
                self.error(
                    node,
                    format!("expected a whole number of at least {least}, found {found}"),
                );
                None
            }
        }
    }

    fn syntax_error(&mut self, error: &serde_json::Error) {
        let text = error.to_string();
        let message = text.split(" at line ").next().unwrap_or(&text);
        let line = self.text.lines().nth(error.line().saturating_sub(1));
        let bytes = line.unwrap_or_default().as_bytes();
        let reached = bytes.get(..error.column()).unwrap_or(bytes);
        // Counted in characters: every byte but the continuation bytes of UTF-8.
        let column = reached.iter().filter(|byte| **byte & 0xC0 != 0x80).count();
        let hint = match reached.last() {
            Some(b'/' | b'#') => "; JSON has no comments",
            Some(b'}') if message.starts_with("key") => "; is there a comma too many before it?",
            _ => "",
        };
        self.errors.push(Finding {
            source: self.source.to_owned(),
            line: error.line().max(1),
            column: column.max(1),
            path: String::new(),
            message: format!("not valid JSON: {message}{hint}"),
        });
    }

    fn finding(&self, piece: &str, path: &str, message: String) -> Finding {
        let (line, column) = self.position(piece);
        Finding {
            source: self.source.to_owned(),
            line,
            column,
            path: path.to_owned(),
            message,
        }
    }

    /// Line and column of a piece of the text.
    fn position(&self, piece: &str) -> (usize, usize) {
        let offset = piece
            .as_ptr()
            .addr()
            .saturating_sub(self.text.as_ptr().addr());
        let before = self.text.get(..offset).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count()
            + 1;
        (line, column)
    }
}

/// The members of an object in the order of the text, duplicates included, names undecoded.
#[derive(Default)]
struct Pairs<'t>(Vec<(&'t RawValue, &'t RawValue)>);

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// The elements of an array.
struct Elements<'t>(Vec<&'t RawValue>);

impl<'de> Deserialize<'de> for Elements<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items;
        impl<'de> Visitor<'de> for Items {
            type Value = Elements<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut elements = Vec::new();
                while let Some(element) = seq.next_element()? {
                    elements.push(element);
                }
                Ok(Elements(elements))
            }
        }
        deserializer.deserialize_seq(Items)
    }
}
