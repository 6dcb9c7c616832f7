//! JSON objects as the wire layer hands them over.
#![allow(dead_code, unreachable_pub)]

use std::borrow::Cow;

use mcp_proto::wire::Members;
use serde_json::value::RawValue;

/// The members of an object text, in its order.
pub fn members(text: &str) -> Members<'_> {
    let entries: std::collections::BTreeMap<String, &RawValue> =
        serde_json::from_str(text).unwrap();
    let mut members = Members::default();
    for (name, value) in entries {
        assert!(members.insert(Cow::Owned(name), value));
    }
    members
}
