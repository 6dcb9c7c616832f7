//! Digests of list entries. The only place of the manifest that knows what canonical JSON is.

use alloc::format;
use alloc::string::String;

use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

/// SHA-256 in lower-case hex over the canonical JSON of one value.
pub(super) fn of(raw: &RawValue) -> String {
    let mut text = String::new();
    write_canonical(raw, &mut text);
    hex(&Sha256::digest(&text))
}

/// The same over the array of the values.
pub(super) fn of_array<'a>(items: impl Iterator<Item = &'a RawValue>) -> String {
    let mut hash = Sha256::new();
    let mut text = String::new();
    hash.update("[");
    for (index, raw) in items.enumerate() {
        text.clear();
        if index > 0 {
            text.push(',');
        }
        write_canonical(raw, &mut text);
        hash.update(&text);
    }
    hash.update("]");
    hex(&hash.finalize())
}

/// Sorted members, no spaces, ASCII only. A value that cannot be read (a lone surrogate escape, or
/// nested too deeply for the parser) counts as it is written.
fn write_canonical(raw: &RawValue, out: &mut String) {
    match serde_json::from_str(raw.get()) {
        Ok(value) => write_value(&value, out),
        Err(_) => out.push_str(raw.get()),
    }
}

fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&format!("{value}")),
        Value::String(text) => write_text(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let sorted: alloc::collections::BTreeMap<_, _> = members.iter().collect();
            out.push('{');
            for (index, (name, item)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_text(name, out);
                out.push(':');
                write_value(item, out);
            }
            out.push('}');
        }
    }
}

fn write_text(text: &str, out: &mut String) {
    let mut units = [0; 2];
    for char in format!("{}", Value::from(text)).chars() {
        if char.is_ascii() {
            out.push(char);
            continue;
        }
        for unit in char.encode_utf16(&mut units) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
