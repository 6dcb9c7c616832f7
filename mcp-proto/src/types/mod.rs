//! The protocol's data types, by feature.
//!
//! What passes through the client is kept as the server wrote it: an entry of a list, a content
//! block or a structured result is a [`Json`](crate::wire::Json) text whose unknown members, number
//! digits and member order survive. Each is checked once, when it arrives (a server's mistake is a
//! [`Fault`] with the place of it), and looked into on demand through views that borrow from the text.
//!
//! One rule holds everywhere: an optional member that is `null` is absent, a required one that is
//! `null` is missing.

mod cache_hint;
mod completion;
mod content;
mod discovery;
mod elicitation;
mod form;
mod form_text;
mod input;
mod input_response;
mod list;
mod notifications;
pub(crate) mod object;
mod progress;
mod prompts;
mod resources;
mod sampling;
mod tools;

pub use cache_hint::{CacheHint, CacheScope, TTL_MAX};
pub use completion::CompleteResult;
pub use content::{Content, ContentBlock};
pub use discovery::{
    DiscoverFault, DiscoverResult, Implementation, ListCapability, ResourcesCapability,
    ServerCapabilities,
};
pub use elicitation::{Elicitation, url_host};
pub use form::{FieldKind, Form, FormField, FormOption, ResponseFault};
pub use form_text::TextFormat;
pub use input::{InputCapabilities, InputMethod, InputRequest, InputRequired, RequestState};
pub use input_response::{InputResponse, InputResponses, Root};
pub use list::{Entry, ListFault, ListPage};
pub use notifications::{CHANGES, cancelled_request, subscription_id, text_member};
pub use progress::{LogLevel, Progress};
pub use prompts::{GetPromptResult, Prompt, PromptArgument, PromptMessage, Role};
pub use resources::{
    ReadResourceResult, Resource, ResourceBody, ResourceContents, ResourceTemplate, ResourceView,
};
pub use sampling::{Priorities, SamplingMessage, SamplingRequest};
pub use tools::{CallToolResult, OutputCheck, Tool, ToolAnnotations};

use alloc::format;

use crate::Era;
use crate::violation::{Fault, Violation};
use crate::wire::Members;
use object::{Quoted, text};

/// What kind of result a response carries.
///
/// spec: 2026-07-28 schema, `ResultType`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultType {
    /// The final result of the request.
    Complete,
    /// The server needs input first (R30); see [`InputRequired`].
    InputRequired,
}

/// Reads `resultType`.
///
/// # Errors
/// In the modern era [`Violation::ResultTypeMissing`] when it is absent; in the legacy era an absent
/// one means complete (R17). In both eras [`Violation::ResultTypeUnknown`] for anything that the core
/// protocol does not define, and [`Violation::InputRequiredInvalid`] for a legacy `input_required`.
pub fn result_type(members: &Members<'_>, era: Era) -> Result<ResultType, Fault> {
    let Some(raw) = members.present("resultType") else {
        return match era {
            Era::Modern => Err(Fault::new(
                Violation::ResultTypeMissing,
                "resultType is missing",
            )),
            Era::Legacy => Ok(ResultType::Complete),
        };
    };
    let Ok(word) = text(raw) else {
        return Err(Fault::new(
            Violation::ResultTypeUnknown,
            "resultType is not a string",
        ));
    };
    match (&*word, era) {
        ("complete", _) => Ok(ResultType::Complete),
        ("input_required", Era::Modern) => Ok(ResultType::InputRequired),
        ("input_required", Era::Legacy) => Err(Fault::new(
            Violation::InputRequiredInvalid,
            "this revision has no input_required results",
        )),
        _ => Err(Fault::new(
            Violation::ResultTypeUnknown,
            format!("resultType is {}", Quoted(&word)),
        )),
    }
}

#[cfg(test)]
pub(crate) mod tests;
