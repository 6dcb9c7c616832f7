//! Structured results against the tools' output schemas (feature `schema`, R63).

use super::Peer;
use crate::error::{Cause, Error};
use crate::operation::{Options, Request};

#[cfg(feature = "schema")]
pub(super) use compiled::Schemas;

/// Without the feature nothing is validated, and asking for it is refused.
#[cfg(not(feature = "schema"))]
#[derive(Debug, Default)]
pub(super) struct Schemas(());

#[cfg(not(feature = "schema"))]
impl Schemas {
    #[allow(clippy::unused_self)] // as with the feature
    pub(super) const fn clear(&mut self) {}
}

#[cfg(not(feature = "schema"))]
impl Peer {
    /// Not reached: who asks for it is refused.
    #[allow(clippy::unused_self)] // as with the feature
    pub(super) const fn validate(&mut self, _: &str, _: &mut crate::types::CallToolResult) {}
}

impl Peer {
    /// Whether the result of this call is to be validated.
    ///
    /// # Errors
    /// [`Cause::Usage`]: it is, and this build cannot.
    pub(super) fn validates(&self, request: &Request, options: &Options) -> Result<bool, Error> {
        let asked = options.validate_output || self.config.validate_output;
        let validates = asked && matches!(request, Request::CallTool(_));
        if validates && cfg!(not(feature = "schema")) {
            let message =
                "results cannot be validated: this was built without the feature \"schema\"";
            return Err(self.error(Cause::Usage(message.into())));
        }
        Ok(validates)
    }
}

#[cfg(feature = "schema")]
mod compiled {
    use alloc::boxed::Box;
    use alloc::collections::BTreeMap;
    use alloc::format;
    use alloc::string::{String, ToString};

    use super::Peer;
    use crate::manifest::Manifest;
    use crate::schema::{OutputSchema, SchemaLimits};
    use crate::types::{CallToolResult, OutputCheck};
    use crate::violation::{Fault, Violation};
    use crate::wire::{Json, printable};

    /// How many compiled schemas are kept.
    const KEPT_MAX: usize = 16;

    /// Output schemas by tool, compiled when they are first needed, or why there is none to use.
    #[derive(Debug, Default)]
    pub(in super::super) struct Schemas(BTreeMap<String, Result<Box<OutputSchema>, String>>);

    impl Schemas {
        /// The tools are others now.
        pub(in super::super) fn clear(&mut self) {
            self.0.clear();
        }

        /// The tool's schema.
        fn of(&mut self, manifest: &Manifest, tool: &str) -> Result<&OutputSchema, &str> {
            if !self.0.contains_key(tool) {
                if self.0.len() >= KEPT_MAX {
                    self.0.pop_first();
                }
                self.0.insert(tool.into(), compile(manifest, tool));
            }
            match self.0.get(tool) {
                Some(Ok(schema)) => Ok(schema),
                Some(Err(reason)) => Err(reason),
                None => Err("it was dropped"), // Not reached: it has just been put there.
            }
        }
    }

    fn compile(manifest: &Manifest, tool: &str) -> Result<Box<OutputSchema>, String> {
        let listed = manifest.tool(tool).ok_or("the tool is not listed")?;
        let schema = listed
            .output_schema()
            .ok_or("the tool has no output schema")?;
        let compiled = OutputSchema::compile(&Json::from(schema), &SchemaLimits::default());
        compiled
            .map(Box::new)
            .map_err(|refused| format!("its output schema is not used: {refused}"))
    }

    impl Peer {
        /// Notes in the result where it does not fit. The tool ran: its result is handed over all the same.
        pub(in super::super) fn validate(&mut self, tool: &str, result: &mut CallToolResult) {
            if result.is_error {
                return;
            }
            let schema = self.schemas.of(&self.manifest, tool);
            let schema = match schema.map_err(ToString::to_string) {
                Ok(schema) => schema,
                Err(reason) => {
                    let reason = self.redact(&reason);
                    let name = printable(tool.as_bytes(), 80);
                    self.note(format!("results of {name} are not validated: {reason}"));
                    result.output_check = OutputCheck::Impossible(reason);
                    return;
                }
            };
            let checked = match &result.structured_content {
                None => Err("structuredContent is missing".to_string()),
                Some(structured) => schema.validate(structured).map_err(|no| no.to_string()),
            };
            result.output_check = match checked {
                Ok(()) => OutputCheck::Fits,
                Err(mismatch) => {
                    let fault = Fault::new(Violation::OutputMismatch, mismatch);
                    self.degrade(&fault);
                    OutputCheck::Mismatch(self.redact_fault(&fault))
                }
            };
        }
    }
}
