//! The subschemas of a schema, and which of them is applied to what.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::{Map, Value};

use super::pattern::places;
use super::{SchemaRefused, shown};

/// The longest pattern, in bytes.
const PATTERN_LENGTH: usize = 1 << 12;

/// The place of a subschema in [`Graph`].
pub(super) type Index = usize;

/// All subschemas, the root first. Where keywords of dialects differ, both are meant: the graph says
/// what may be applied at most.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Subschema>,
}

/// What one subschema applies, and to what.
#[derive(Clone, Debug, Default)]
pub(super) struct Subschema {
    /// To the same value, as a part of this schema.
    pub(super) in_place: Vec<Index>,
    /// To the same value, by reference.
    pub(super) references: Vec<Index>,
    /// To the member of that name.
    pub(super) properties: BTreeMap<String, Index>,
    /// To any member.
    pub(super) members: Vec<Index>,
    /// To the name of any member.
    pub(super) names: Vec<Index>,
    /// To the element at that place.
    pub(super) prefix: Vec<Index>,
    /// To any element.
    pub(super) elements: Vec<Index>,
    /// Whether `unevaluated…` looks at everything a second time.
    pub(super) unevaluated: bool,
    /// Whether an error of this schema holds those of its branches.
    pub(super) branches: bool,
    /// With how much `enum`, `const` and `required` compare.
    pub(super) comparisons: u64,
    /// How many patterns are matched with a string or the names of members.
    pub(super) patterns: u64,
    /// In how many places of them a text may be at once.
    pub(super) places: u64,
    /// Whether all elements are compared with each other.
    pub(super) unique: bool,
}

impl Subschema {
    fn match_with(&mut self, pattern: &str) -> Result<(), SchemaRefused> {
        check_pattern(pattern)?;
        self.patterns = self.patterns.saturating_add(1);
        self.places = self.places.saturating_add(places(pattern));
        Ok(())
    }

    /// What is applied to the same value.
    pub(super) fn same_value(&self) -> impl Iterator<Item = Index> {
        self.in_place.iter().chain(&self.references).copied()
    }

    /// The parts that are applied to what the value is made of.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Index> {
        let members = self.properties.values().chain(&self.members);
        let elements = self.prefix.iter().chain(&self.elements);
        members.chain(&self.names).chain(elements)
    }
}

/// How large a value is: one for each part, more for long texts.
pub(super) fn size(value: &Value) -> u64 {
    match value {
        Value::String(text) => 1 + text.len() as u64 / 64,
        Value::Array(elements) => elements.iter().map(size).fold(1, u64::saturating_add),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| 1 + name.len() as u64 / 64 + size(value))
            .fold(1, u64::saturating_add),
        _ => 1,
    }
}

/// Reading a schema into a graph.
struct Builder<'a> {
    root: &'a Value,
    graph: Graph,
    max: usize,
    /// The subschemas that were met, by where they are in memory.
    known: BTreeMap<usize, Index>,
    unread: VecDeque<(Index, &'a Value)>,
    anchors: BTreeMap<&'a str, Vec<Index>>,
    /// References to be followed once all anchors are known.
    named: Vec<(Index, &'a str)>,
}

impl Graph {
    /// Reads a schema whose depth was checked, following every reference.
    pub(super) fn build(root: &Value, max: usize) -> Result<Self, SchemaRefused> {
        let mut builder = Builder {
            root,
            graph: Self::default(),
            max,
            known: BTreeMap::new(),
            unread: VecDeque::new(),
            anchors: BTreeMap::new(),
            named: Vec::new(),
        };
        builder.node(root)?;
        while let Some((index, schema)) = builder.unread.pop_front() {
            if let Value::Object(members) = schema {
                let subschema = builder.read(index, members)?;
                if let Some(place) = builder.graph.nodes.get_mut(index) {
                    *place = subschema;
                }
            }
        }
        builder.link_anchors()?;
        Ok(builder.graph)
    }

    /// Whether some error may hold others.
    pub(super) fn has_branches(&self) -> bool {
        self.nodes.iter().any(|node| node.branches)
    }
}

impl<'a> Builder<'a> {
    /// The place of a subschema, which is read later if it is new.
    fn node(&mut self, schema: &'a Value) -> Result<Index, SchemaRefused> {
        let address = core::ptr::from_ref(schema).addr();
        if let Some(index) = self.known.get(&address) {
            return Ok(*index);
        }
        let index = self.graph.nodes.len();
        if index >= self.max {
            return Err(SchemaRefused::TooLarge {
                what: "subschemas",
                max: self.max,
            });
        }
        self.graph.nodes.push(Subschema::default());
        self.known.insert(address, index);
        self.unread.push_back((index, schema));
        Ok(index)
    }

    fn read(
        &mut self,
        index: Index,
        schema: &'a Map<String, Value>,
    ) -> Result<Subschema, SchemaRefused> {
        let mut node = Subschema::default();
        // What is applied to nothing.
        let mut definitions = Vec::new();
        for (keyword, value) in schema {
            match keyword.as_str() {
                "anyOf" | "oneOf" => {
                    node.branches = true;
                    self.add(value, &mut node.in_place)?;
                }
                "allOf" | "not" | "if" | "then" | "else" => self.add(value, &mut node.in_place)?,
                "dependentSchemas" | "dependencies" => {
                    self.add_values(value, &mut node.in_place)?
                }
                "properties" => {
                    for (name, value) in value.as_object().into_iter().flatten() {
                        node.properties.insert(name.clone(), self.node(value)?);
                    }
                }
                "patternProperties" => {
                    self.add_values(value, &mut node.members)?;
                    for pattern in value.as_object().into_iter().flatten() {
                        node.match_with(pattern.0)?;
                    }
                }
                "additionalProperties" => self.add(value, &mut node.members)?,
                "propertyNames" => {
                    node.branches = true;
                    self.add(value, &mut node.names)?;
                }
                "unevaluatedProperties" => {
                    node.unevaluated = true;
                    self.add(value, &mut node.members)?;
                }
                "prefixItems" => self.add(value, &mut node.prefix)?,
                "items" if value.is_array() => self.add(value, &mut node.prefix)?,
                "items" | "additionalItems" | "contains" => self.add(value, &mut node.elements)?,
                "unevaluatedItems" => {
                    node.unevaluated = true;
                    self.add(value, &mut node.elements)?;
                }
                "$defs" | "definitions" => self.add_values(value, &mut definitions)?,
                "contentSchema" => self.add(value, &mut definitions)?,
                "$ref" | "$dynamicRef" => self.refer(index, value, &mut node)?,
                "$anchor" | "$dynamicAnchor" => self.anchor(index, value),
                "$id" => self.identify(index, value)?,
                "$schema" if index > 0 => return Err(SchemaRefused::Embedded("$schema")),
                "enum" | "const" | "required" => node.comparisons += size(value),
                "pattern" => {
                    node.match_with(value.as_str().unwrap_or_default())?;
                }
                "uniqueItems" => node.unique = value == &Value::Bool(true),
                _ => {}
            }
        }
        Ok(node)
    }

    /// A schema, or several in an array.
    fn add(&mut self, value: &'a Value, to: &mut Vec<Index>) -> Result<(), SchemaRefused> {
        match value {
            Value::Array(schemas) => {
                for schema in schemas {
                    to.push(self.node(schema)?);
                }
            }
            Value::Object(_) | Value::Bool(_) => to.push(self.node(value)?),
            _ => {}
        }
        Ok(())
    }

    /// The schemas that are values of an object; `dependencies` also has arrays of names.
    fn add_values(&mut self, value: &'a Value, to: &mut Vec<Index>) -> Result<(), SchemaRefused> {
        for (_, value) in value.as_object().into_iter().flatten() {
            if !value.is_array() {
                self.add(value, to)?;
            }
        }
        Ok(())
    }

    fn refer(
        &mut self,
        index: Index,
        value: &'a Value,
        node: &mut Subschema,
    ) -> Result<(), SchemaRefused> {
        // Anything but a string is found out when the schema is compiled.
        let Some(reference) = value.as_str() else {
            return Ok(());
        };
        let Some(fragment) = reference.strip_prefix('#').or_else(|| {
            // An empty reference means the document.
            reference.is_empty().then_some("")
        }) else {
            return Err(SchemaRefused::External(shown(reference)));
        };
        if !fragment.is_empty() && !fragment.starts_with('/') {
            self.named.push((index, fragment));
            return Ok(());
        }
        let pointer = percent_decoded(fragment);
        let target = pointer.and_then(|pointer| self.root.pointer(&pointer));
        let Some(target) = target else {
            return Err(SchemaRefused::Dangling(shown(reference)));
        };
        node.references.push(self.node(target)?);
        Ok(())
    }

    fn anchor(&mut self, index: Index, name: &'a Value) {
        if let Some(name) = name.as_str() {
            self.anchors.entry(name).or_default().push(index);
        }
    }

    /// An `$id` of a part: in draft-07 it may be an anchor.
    fn identify(&mut self, index: Index, id: &'a Value) -> Result<(), SchemaRefused> {
        let Some(id) = id.as_str() else {
            return Ok(());
        };
        match id.strip_prefix('#') {
            Some(name) => self.anchors.entry(name).or_default().push(index),
            None => return Err(SchemaRefused::Embedded("$id")),
        }
        Ok(())
    }

    /// References by name. A dynamic one may lead to any anchor of that name, so all of them count.
    fn link_anchors(&mut self) -> Result<(), SchemaRefused> {
        for (from, name) in &self.named {
            let Some(targets) = self.anchors.get(name) else {
                return Err(SchemaRefused::Dangling(shown(&["#", *name].concat())));
            };
            if let Some(node) = self.graph.nodes.get_mut(*from) {
                node.references.extend(targets);
            }
        }
        Ok(())
    }
}

fn check_pattern(pattern: &str) -> Result<(), SchemaRefused> {
    if pattern.len() > PATTERN_LENGTH {
        let message = "a pattern is longer than 4 KiB";
        return Err(SchemaRefused::Invalid(message.to_string()));
    }
    Ok(())
}

/// The text with `%41` decoded; `None` when that is no UTF-8.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        let code = match byte {
            b'%' => after
                .get(..2)
                .and_then(|code| core::str::from_utf8(code).ok()),
            _ => None,
        };
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(decoded) => {
                bytes.push(decoded);
                rest = after.get(2..).unwrap_or_default();
            }
            None => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).ok()
}
