//! Digests of list entries (R21): SHA-256 over canonical JSON.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::identity::Sha256Hex;
use crate::identity::canonical::{self, Room};

/// The digest of one entry.
pub(super) fn of(raw: &RawValue) -> String {
    let mut text = Vec::new();
    write(raw, &mut text, &mut Room::new());
    Sha256Hex::of(&text).to_string()
}

/// The digest of the array of the entries, in this order.
pub(super) fn of_array<'a>(items: impl Iterator<Item = &'a RawValue>) -> String {
    let mut hash = Sha256::new_with_prefix(b"[");
    let (mut text, mut room) = (Vec::new(), Room::new());
    for (index, raw) in items.enumerate() {
        text.clear();
        if index > 0 {
            text.push(b',');
        }
        write(raw, &mut text, &mut room);
        hash.update(&text);
    }
    hash.update(b"]");
    Sha256Hex::finish(hash).to_string()
}

/// An entry without a canonical form (half a surrogate pair, a member that stands twice, …) counts as it
/// is written.
fn write<'a>(raw: &'a RawValue, out: &mut Vec<u8>, room: &mut Room<'a>) {
    if canonical::write_in(raw.get(), out, canonical::DEPTH_CEILING, room).is_err() {
        out.extend_from_slice(raw.get().as_bytes());
    }
}
