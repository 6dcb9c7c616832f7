//! How much work a schema can cause, counted before the work is done.
//!
//! The counts are upper bounds: every branch is counted, whether or not an earlier one decides.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use serde_json::Value;

use super::SchemaRefused;
use super::graph::{Graph, Index, Subschema, size};

/// How many subschemas may be compiled, repetitions included.
const COMPILATIONS: u64 = 20_000;
/// How many subschemas may lie on each other for one value: the validator needs stack for each.
const LEVELS_IN_PLACE: usize = 64;
/// How many subschemas may lie on each other over all levels of a value.
const LEVELS: usize = 256;
/// How deep the count may go by itself.
const LEVELS_OF_COUNTING: usize = 512;
/// What compiling a regular expression takes, in time and memory, as so many subschemas.
const PATTERN_COMPILATIONS: u64 = 500;
/// So many bytes of a text are matched with one place of a pattern in one step.
const PLACES_PER_STEP: u64 = 8;
/// So many bytes of a text are measured in one step.
const BYTES_PER_STEP: u64 = 1024;

impl Graph {
    /// Refuses what has no end, or would take too long to compile.
    ///
    /// Compiling takes a step for each subschema, once for each reference's target, and once more for
    /// everything below an `unevaluatedProperties` or `unevaluatedItems`: nested, they multiply.
    pub(super) fn check_compilation(&self) -> Result<(), SchemaRefused> {
        let mut counts = Counts {
            graph: self,
            in_place: vec![Count::Unknown; self.nodes.len()],
            compiled: vec![Count::Unknown; self.nodes.len()],
            marked: vec![Count::Unknown; self.nodes.len()],
        };
        for index in 0..self.nodes.len() {
            counts.levels(index, 0)?;
        }
        let targets = self.nodes.iter().flat_map(|node| &node.references);
        let mut targets: Vec<Index> = targets.copied().chain([0]).collect();
        targets.sort_unstable();
        targets.dedup();
        let mut steps: u64 = 0;
        for target in targets {
            steps = steps.saturating_add(counts.compiled(target, 0)?);
        }
        if steps > COMPILATIONS {
            return Err(too_complex());
        }
        Ok(())
    }

    /// How many steps it may take to validate a value.
    ///
    /// # Errors
    /// What to say when they are more than allowed.
    pub(super) fn check_validation(&self, value: &Value, max_steps: u64) -> Result<u64, String> {
        let mut walk = Walk {
            graph: self,
            left: max_steps,
        };
        match walk.visit(0, value, 0) {
            Some(()) => Ok(max_steps - walk.left),
            None => Err(format!(
                "checking it may take more than {max_steps} steps or {LEVELS} levels, so it was not checked"
            )),
        }
    }
}

const fn too_complex() -> SchemaRefused {
    SchemaRefused::TooComplex(COMPILATIONS)
}

/// What is known of a count.
#[derive(Clone, Copy)]
enum Count {
    Unknown,
    /// It is being counted: to need it now means to go in circles.
    Begun,
    Known(u64),
}

/// The counts for compiling, each of them made once.
struct Counts<'g> {
    graph: &'g Graph,
    /// How many subschemas lie on each other for one value.
    in_place: Vec<Count>,
    compiled: Vec<Count>,
    /// For an `unevaluated…` above.
    marked: Vec<Count>,
}

impl Counts<'_> {
    fn levels(&mut self, index: Index, above: usize) -> Result<u64, SchemaRefused> {
        match self.in_place.get(index) {
            Some(Count::Known(levels)) => return Ok(*levels),
            Some(Count::Begun) => return Err(SchemaRefused::Endless),
            _ => {}
        }
        let graph = self.graph;
        let mut levels = 0;
        set(&mut self.in_place, index, Count::Begun);
        for below in graph
            .nodes
            .get(index)
            .into_iter()
            .flat_map(|node| node.same_value())
        {
            // The recursion is as deep as the chain, or stops here.
            if above >= LEVELS_IN_PLACE {
                return Err(too_many_levels());
            }
            levels = self.levels(below, above + 1)?.max(levels);
        }
        levels += 1;
        if levels > LEVELS_IN_PLACE as u64 {
            return Err(too_many_levels());
        }
        set(&mut self.in_place, index, Count::Known(levels));
        Ok(levels)
    }

    fn compiled(&mut self, index: Index, above: usize) -> Result<u64, SchemaRefused> {
        let graph = self.graph;
        let Some(node) = graph.nodes.get(index) else {
            return Ok(0);
        };
        if let Some(known) = begin(&mut self.compiled, index, above)? {
            return Ok(known);
        }
        let mut steps = node.compilations();
        for part in node.in_place.iter().chain(node.parts()) {
            steps = steps.saturating_add(self.compiled(*part, above + 1)?);
        }
        if node.unevaluated {
            steps = steps.saturating_add(self.marked(index, above + 1)?);
        }
        set(&mut self.compiled, index, Count::Known(steps));
        Ok(steps)
    }

    fn marked(&mut self, index: Index, above: usize) -> Result<u64, SchemaRefused> {
        let graph = self.graph;
        let Some(node) = graph.nodes.get(index) else {
            return Ok(0);
        };
        if let Some(known) = begin(&mut self.marked, index, above)? {
            return Ok(known);
        }
        let mut steps = node.compilations();
        // Of `properties` only the names are needed.
        let rest = node.members.iter().chain(&node.elements);
        for part in node.in_place.iter().chain(rest) {
            steps = steps.saturating_add(self.compiled(*part, above + 1)?);
        }
        for below in node.same_value() {
            steps = steps.saturating_add(self.marked(below, above + 1)?);
        }
        set(&mut self.marked, index, Count::Known(steps));
        Ok(steps)
    }
}

impl Subschema {
    /// How many steps compiling it takes, without its parts.
    const fn compilations(&self) -> u64 {
        self.patterns
            .saturating_mul(PATTERN_COMPILATIONS)
            .saturating_add(1)
    }
}

/// The count, if it is known; otherwise it is begun.
fn begin(counts: &mut [Count], index: Index, above: usize) -> Result<Option<u64>, SchemaRefused> {
    match counts.get(index) {
        Some(Count::Known(count)) => Ok(Some(*count)),
        Some(Count::Unknown) if above <= LEVELS_OF_COUNTING => {
            set(counts, index, Count::Begun);
            Ok(None)
        }
        _ => Err(too_complex()),
    }
}

fn set(counts: &mut [Count], index: Index, count: Count) {
    if let Some(place) = counts.get_mut(index) {
        *place = count;
    }
}

const fn too_many_levels() -> SchemaRefused {
    SchemaRefused::TooLarge {
        what: "levels of references",
        max: LEVELS_IN_PLACE,
    }
}

/// A validation that decides nothing and only counts.
struct Walk<'g> {
    graph: &'g Graph,
    left: u64,
}

impl Walk<'_> {
    /// Applies a subschema to a value; `None` when there are too many steps.
    fn visit(&mut self, index: Index, value: &Value, level: usize) -> Option<()> {
        let graph = self.graph;
        let node = graph.nodes.get(index)?;
        if level > LEVELS {
            return None;
        }
        self.charge(1 + node.comparisons)?;
        for below in node.same_value() {
            self.visit(below, value, level + 1)?;
        }
        if node.unevaluated {
            self.mark(index, value, level + 1)?;
        }
        match value {
            Value::String(text) => self.charge_text(node, text)?,
            Value::Array(elements) => {
                if node.unique {
                    self.charge(size(value))?;
                }
                for (place, element) in elements.iter().enumerate() {
                    for below in node.prefix.get(place).into_iter().chain(&node.elements) {
                        self.visit(*below, element, level + 1)?;
                    }
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    self.charge_text(node, name)?;
                    for below in node.properties.get(name).into_iter().chain(&node.members) {
                        self.visit(*below, member, level + 1)?;
                    }
                    for below in &node.names {
                        self.visit(*below, &Value::String(name.clone()), level + 1)?;
                    }
                }
            }
            _ => {}
        }
        Some(())
    }

    /// What an `unevaluated…` has looked at again, to find out what else has looked at the value.
    fn mark(&mut self, index: Index, value: &Value, level: usize) -> Option<()> {
        let graph = self.graph;
        let node = graph.nodes.get(index)?;
        self.charge(1)?;
        for below in node.same_value() {
            self.visit(below, value, level + 1)?;
            self.mark(below, value, level + 1)?;
        }
        Some(())
    }

    /// A text is measured, and matched with the patterns of a subschema.
    fn charge_text(&mut self, node: &Subschema, text: &str) -> Option<()> {
        let bytes = text.len() as u64;
        let matching = bytes.saturating_mul(node.places) / PLACES_PER_STEP;
        let steps = matching.saturating_add(bytes / BYTES_PER_STEP);
        self.charge(steps.saturating_add(node.patterns))
    }

    fn charge(&mut self, steps: u64) -> Option<()> {
        self.left = self.left.checked_sub(steps)?;
        Some(())
    }
}
