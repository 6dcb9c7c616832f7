//! Validating structured results against a tool's output schema (feature `schema`, R63).
//!
//! A schema is a program that a server wrote. Before anything interprets it, its size, its references
//! and the work it can cause are bounded: the validator behind this (the `jsonschema` crate) knows no
//! such bounds, and a few lines of nested references can keep it busy for years or overflow its stack.
//!
//! - Nothing is ever fetched. A reference that leads out of the schema is refused.
//! - Dialects: 2020-12, which also is the default, and draft-07. Others are refused.
//! - `pattern` takes time in proportion to the text and to the pattern with its repetitions written out, and
//!   is charged for both; patterns with look-around or back-references are refused.
//! - `format`, `contentEncoding` and `contentMediaType` are annotations: they are not checked.
//!
//! spec: 2026-07-28 basic#json-schema-usage, server/tools#output-schema

mod cost;
mod graph;
mod pattern;

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::{Number, Value};

use crate::wire::{Json, depth, printable};
use graph::Graph;

/// How much memory one regular expression may take, in bytes; some forty of them may be compiled.
const PATTERN_BYTES: usize = 1 << 17;
/// The longest message or path of an error, in bytes.
const MESSAGE_BYTES: usize = 512;
/// How much may be copied to describe an error, in bytes.
const DETAIL_BYTES: u64 = 1 << 26;

/// Bounds on schemas and on what is validated.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaLimits {
    /// The longest schema, in bytes. Default 1 MiB.
    pub bytes: usize,
    /// The deepest nesting of arrays and objects in a schema. Default 64.
    pub depth: usize,
    /// Subschemas in one schema. Default 5,000.
    pub subschemas: usize,
    /// The longest text that is validated, in bytes; in memory it may take a hundred times as much. Default
    /// 2 MiB.
    pub instance_bytes: usize,
    /// The deepest nesting of arrays and objects in what is validated. Default 128.
    pub instance_depth: usize,
    /// Steps that one validation may take: applications of a subschema to a value, and what takes as
    /// long. Default 1,000,000, which takes about a tenth of a second at worst.
    pub steps: u64,
}

impl Default for SchemaLimits {
    fn default() -> Self {
        Self {
            bytes: 1 << 20,
            depth: 64,
            subschemas: 5_000,
            instance_bytes: 2 << 20,
            instance_depth: 128,
            steps: 1_000_000,
        }
    }
}

/// Why a schema is not used. The tool can be called all the same; its results are just not validated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaRefused {
    /// It is larger, deeper, or has more subschemas than allowed.
    #[error("the schema's {what} exceed the limit of {max}")]
    TooLarge {
        /// `bytes`, `levels`, `subschemas`.
        what: &'static str,
        /// The bound.
        max: usize,
    },
    /// `$schema` is none of the supported dialects.
    #[error("the dialect {0} is not supported; 2020-12 and draft-07 are")]
    Dialect(String),
    /// A reference leads out of the schema. Nothing was fetched.
    #[error("{0} is outside of the schema, and nothing is fetched")]
    External(String),
    /// A reference leads to nothing.
    #[error("{0} is nowhere in the schema")]
    Dangling(String),
    /// A part of the schema has an `$id` or `$schema` of its own. Such bundles are not supported.
    #[error("a part of the schema has {0} of its own")]
    Embedded(&'static str),
    /// A subschema applies itself to the same value, so there is no end to it.
    #[error("a subschema refers to itself without looking into the value")]
    Endless,
    /// It takes too much to compile: references multiply it, or it has too many patterns, each of which takes as
    /// much as hundreds of subschemas.
    #[error(
        "compiling it would take as much as more than {0} subschemas, references and patterns counted"
    )]
    TooComplex(u64),
    /// It is no valid schema of its dialect, or has a pattern that is not supported.
    #[error("not a valid schema: {0}")]
    Invalid(String),
}

/// A structured result does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaMismatch {
    /// Where: a JSON pointer into the result, bounded; empty for all of it.
    pub path: String,
    /// What does not fit, bounded and printable. It names what the schema wants, and not the value,
    /// which may be anybody's secret.
    pub message: String,
}

impl fmt::Display for SchemaMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl core::error::Error for SchemaMismatch {}

impl SchemaMismatch {
    fn whole(message: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            message: message.into(),
        }
    }
}

/// A compiled output schema. Compile it once for a manifest, and use it for every result.
///
/// ```
/// use mcp_proto::schema::{OutputSchema, SchemaLimits};
/// use mcp_proto::wire::Json;
///
/// let schema = Json::parse(r#"{"type":"object","properties":{"celsius":{"type":"number"}}}"#)?;
/// let schema = OutputSchema::compile(&schema, &SchemaLimits::default())?;
/// assert!(schema.validate(&Json::parse(r#"{"celsius":21.5}"#)?).is_ok());
/// let mismatch = schema.validate(&Json::parse(r#"{"celsius":"warm"}"#)?).unwrap_err();
/// assert_eq!(mismatch.to_string(), "/celsius: value is not of type \"number\"");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct OutputSchema {
    validator: Validator,
    graph: Graph,
    limits: SchemaLimits,
}

impl OutputSchema {
    /// Checks and compiles a schema. What it takes is bounded by the limits, whatever the schema says.
    ///
    /// # Errors
    /// [`SchemaRefused`] says why the schema is not to be used.
    pub fn compile(schema: &Json, limits: &SchemaLimits) -> Result<Self, SchemaRefused> {
        let mut schema = read_schema(schema.as_str(), limits)?;
        let draft = dialect(&schema)?;
        // Every reference is a fragment, so nothing is relative to the schema's own name. With it, the
        // schema could pass itself off as another one, a dialect's.
        if let Value::Object(members) = &mut schema {
            members.remove("$id");
        }
        let graph = Graph::build(&schema, limits.subschemas)?;
        graph.check_compilation()?;
        let patterns = PatternOptions::regex()
            .size_limit(PATTERN_BYTES)
            .dfa_size_limit(PATTERN_BYTES);
        let validator = jsonschema::options()
            .with_draft(draft)
            .offline()
            .with_pattern_options(patterns)
            .should_validate_formats(false)
            .build(&schema)
            .map_err(|error| SchemaRefused::Invalid(shown(&error.to_string())))?;
        Ok(Self {
            validator,
            graph,
            limits: limits.clone(),
        })
    }

    /// Checks a `structuredContent` (any JSON value). What it takes is bounded by the limits.
    ///
    /// # Errors
    /// [`SchemaMismatch`] says where the value does not fit, the first place if there are several; or
    /// that it is too deep or too costly to be checked, which is no better than not to fit.
    pub fn validate(&self, structured: &Json) -> Result<(), SchemaMismatch> {
        let text = structured.as_str();
        if text.len() > self.limits.instance_bytes {
            let max = self.limits.instance_bytes;
            let message = format!("longer than {max} bytes, so it was not checked");
            return Err(SchemaMismatch::whole(message));
        }
        if depth::exceeds(text, self.limits.instance_depth) {
            let max = self.limits.instance_depth;
            let message = format!("nested deeper than {max} levels, so it was not checked");
            return Err(SchemaMismatch::whole(message));
        }
        let value = read(text).map_err(SchemaMismatch::whole)?;
        let steps = self
            .graph
            .check_validation(&value, self.limits.steps)
            .map_err(SchemaMismatch::whole)?;
        if self.validator.is_valid(&value) {
            return Ok(());
        }
        // An error of `anyOf` holds those of all branches, each with a copy of its value.
        let copied = steps.saturating_mul(text.len() as u64);
        if self.graph.has_branches() && copied > DETAIL_BYTES {
            return Err(SchemaMismatch::whole(
                "does not fit the schema, and is too large to say where",
            ));
        }
        self.validator
            .validate(&value)
            .map_err(|error| SchemaMismatch {
                path: shown(error.instance_path().as_str()),
                message: shown(&error.masked().to_string()),
            })
    }
}

impl fmt::Debug for OutputSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputSchema")
            .field("subschemas", &self.graph.nodes.len())
            .finish_non_exhaustive()
    }
}

fn read_schema(text: &str, limits: &SchemaLimits) -> Result<Value, SchemaRefused> {
    let too_large = |what, max| Err(SchemaRefused::TooLarge { what, max });
    if text.len() > limits.bytes {
        return too_large("bytes", limits.bytes);
    }
    if depth::exceeds(text, limits.depth) {
        return too_large("levels", limits.depth);
    }
    read(text).map_err(SchemaRefused::Invalid)
}

/// A text whose depth was checked as the value that it is, whatever features serde_json was built with:
/// members in order, numbers of machine size.
fn read(text: &str) -> Result<Value, String> {
    let mut value: Value = serde_json::from_str(text).map_err(|error| shown(&error.to_string()))?;
    value.sort_all_objects();
    if !narrow(&mut value) {
        return Err("a number is too large".into());
    }
    Ok(value)
}

/// Makes numbers integers of 64 bits or doubles; `false` if one is too large for that.
fn narrow(value: &mut Value) -> bool {
    match value {
        Value::Number(number) => {
            let narrowed = match (number.as_u64(), number.as_i64()) {
                (Some(natural), _) => Some(natural.into()),
                (_, Some(integer)) => Some(integer.into()),
                _ => number.as_f64().and_then(Number::from_f64),
            };
            narrowed.map(|narrowed| *number = narrowed).is_some()
        }
        Value::Array(elements) => elements.iter_mut().all(narrow),
        Value::Object(members) => members.values_mut().all(narrow),
        _ => true,
    }
}

/// The dialect that a schema is written in.
fn dialect(schema: &Value) -> Result<Draft, SchemaRefused> {
    let Some(name) = schema.get("$schema") else {
        return Ok(Draft::Draft202012);
    };
    let bare = name.as_str().map(|name| {
        let name = name.strip_suffix('#').unwrap_or(name);
        let scheme = ["https://", "http://"];
        let bare = scheme.iter().find_map(|scheme| name.strip_prefix(scheme));
        bare.unwrap_or(name)
    });
    match bare {
        Some("json-schema.org/draft/2020-12/schema") => Ok(Draft::Draft202012),
        Some("json-schema.org/draft-07/schema") => Ok(Draft::Draft7),
        _ => Err(SchemaRefused::Dialect(shown(&name.to_string()))),
    }
}

fn shown(text: &str) -> String {
    printable(text.as_bytes(), MESSAGE_BYTES)
}

#[cfg(test)]
mod tests;
