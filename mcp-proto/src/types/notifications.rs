//! What notifications say.

use alloc::borrow::Cow;

use serde_json::value::RawValue;

use super::object::{member, text};
use crate::wire::IdToken;

/// The notifications that say that something listed or read before is another thing now.
pub const CHANGES: [&str; 4] = [
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/tools/list_changed",
];

/// The subscription that a notification belongs to: the id of its `subscriptions/listen` request, when
/// it is one that this client could have made.
///
/// spec: 2026-07-28 basic/patterns/subscriptions#receiving-notifications
#[must_use]
pub fn subscription_id(params: &RawValue) -> Option<u64> {
    plain_id(member(
        member(params, "_meta")?,
        "io.modelcontextprotocol/subscriptionId",
    )?)
}

/// The request that `notifications/cancelled` names.
#[must_use]
pub fn cancelled_request(params: &RawValue) -> Option<IdToken<'_>> {
    IdToken::parse(member(params, "requestId")?.get())
}

/// A text member of an object, `None` when it is absent or no text.
#[must_use]
pub fn text_member<'a>(params: &'a RawValue, name: &str) -> Option<Cow<'a, str>> {
    text(member(params, name)?).ok()
}

fn plain_id(raw: &RawValue) -> Option<u64> {
    IdToken::parse(raw.get())?.as_u64()
}
