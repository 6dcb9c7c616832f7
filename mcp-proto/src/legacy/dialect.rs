//! The facts about each older revision.

use crate::negotiation::{Dialect, LogLevelScope, StructuredContent};
use crate::version::Version;

/// The facts about a revision; those of a modern one are [`Dialect::MODERN`].
#[must_use]
pub fn dialect(version: Version) -> Dialect {
    let mut dialect = Dialect::MODERN;
    if version == dialect.version {
        return dialect;
    }
    dialect.version = version;
    dialect.request_meta = false;
    dialect.result_type_required = false;
    dialect.server_requests = true;
    dialect.input_required = false;
    dialect.listen = false;
    dialect.cache_hints = false;
    dialect.log_level = LogLevelScope::Connection;
    dialect.resource_not_found = -32002;
    dialect.structured_content = StructuredContent::Object;
    if version <= Version::V2025_03_26 {
        dialect.content_types = &["audio", "image", "resource", "text"];
        dialect.structured_content = StructuredContent::Absent;
        dialect.completion_context = false;
    }
    if version <= Version::V2024_11_05 {
        dialect.content_types = &["image", "resource", "text"];
        dialect.completions_declared = false;
    }
    dialect
}
