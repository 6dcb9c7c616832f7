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
    use crate::types::{CallToolResult, Tool};
    use crate::violation::{Fault, Violation};
    use crate::wire::{Json, printable};

    /// How many compiled schemas are kept.
    const KEPT_MAX: usize = 64;

    /// Output schemas by tool, compiled when they are first needed; `None` where there is none to use.
    #[derive(Debug, Default)]
    pub(in super::super) struct Schemas(BTreeMap<String, Option<Box<OutputSchema>>>);

    impl Schemas {
        /// The tools are others now.
        pub(in super::super) fn clear(&mut self) {
            self.0.clear();
        }

        /// The tool's schema, and what is to be noted about it.
        fn of(
            &mut self,
            manifest: &Manifest,
            tool: &str,
        ) -> (Option<&OutputSchema>, Option<String>) {
            let mut note = None;
            if !self.0.contains_key(tool) {
                if self.0.len() >= KEPT_MAX {
                    self.0.pop_first();
                }
                let name = printable(tool.as_bytes(), 80);
                let schema = match manifest.tool(tool).map(Tool::output_schema) {
                    None => {
                        note = Some(format!(
                            "results of {name} are not validated: it is not listed"
                        ));
                        None
                    }
                    Some(None) => None,
                    Some(Some(schema)) => {
                        let schema = Json::from(schema);
                        let compiled = OutputSchema::compile(&schema, &SchemaLimits::default());
                        if let Err(refused) = &compiled {
                            note = Some(format!("results of {name} are not validated: {refused}"));
                        }
                        compiled.ok().map(Box::new)
                    }
                };
                self.0.insert(tool.into(), schema);
            }
            (self.0.get(tool).and_then(Option::as_deref), note)
        }
    }

    impl Peer {
        /// Notes in the result where it does not fit. The tool ran: its result is handed over all the same.
        pub(in super::super) fn validate(&mut self, tool: &str, result: &mut CallToolResult) {
            if result.is_error {
                return;
            }
            let (schema, note) = self.schemas.of(&self.manifest, tool);
            let mismatch = schema.and_then(|schema| match &result.structured_content {
                None => Some("structuredContent is missing".to_string()),
                Some(structured) => schema.validate(structured).err().map(|no| no.to_string()),
            });
            if let Some(note) = note {
                self.note(note);
            }
            if let Some(mismatch) = mismatch {
                let fault = Fault::new(Violation::OutputMismatch, mismatch);
                self.degrade(&fault);
                result.schema_mismatch = Some(self.redact_fault(&fault));
            }
        }
    }
}
