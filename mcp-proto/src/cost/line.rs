//! One line of the ledger.

use alloc::borrow::Cow;
use alloc::format;
use alloc::vec::Vec;

use serde_json::value::RawValue;

use super::amount::{CostReading, CostWarning, NanoUsd};
use super::tally::bounded;
use crate::wire::Members;
use crate::wire::encode::{push_string, push_u64};

/// The model label of every call of a tool, in a ledger that may also hold what models cost.
pub const MODEL_LABEL: &str = "mcp-server";
/// The tag of every call of a tool.
pub const TAG: &str = "mcp_server";

/// One call to be recorded.
#[derive(Clone, Copy, Debug)]
pub struct Spend<'a> {
    /// The task that it belongs to.
    pub task: &'a str,
    /// The configured name of the server.
    pub server: &'a str,
    /// The server's own name of the tool.
    pub tool: &'a str,
    /// What it cost.
    pub cost: CostReading,
    /// Its place in the run, from 0, if that is known: the number that its span id derives from.
    pub call: Option<u64>,
    /// When it ended, in milliseconds since 1970, if the host wants that in the ledger. The core has no
    /// clock.
    pub time_unix_ms: Option<u64>,
}

impl Spend<'_> {
    /// Its line with a line feed: a JSON object, members sorted by name, the amount in dollars as an
    /// exact decimal number.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        if let Some(call) = self.call {
            out.extend_from_slice(b"\"call\":");
            push_u64(out, call);
            out.push(b',');
        }
        let mut member = |name: &str, value: &str| {
            out.extend_from_slice(name.as_bytes());
            push_string(out, bounded(value));
        };
        member("\"model\":", MODEL_LABEL);
        member(",\"server\":", self.server);
        member(",\"tag\":", TAG);
        member(",\"task\":", self.task);
        if let Some(time) = self.time_unix_ms {
            out.extend_from_slice(b",\"timeUnixMs\":");
            push_u64(out, time);
        }
        out.extend_from_slice(b",\"tool\":");
        push_string(out, bounded(self.tool));
        out.extend_from_slice(format!(",\"usd\":{}}}\n", self.cost.amount).as_bytes());
    }
}

/// What is read of a line; names that are missing are `None`. A line may be another program's.
pub(super) struct Entry<'a> {
    pub(super) task: Option<Cow<'a, str>>,
    pub(super) server: Option<Cow<'a, str>>,
    pub(super) tool: Option<Cow<'a, str>>,
    pub(super) model: Option<Cow<'a, str>>,
    pub(super) tag: Option<Cow<'a, str>>,
    pub(super) amount: NanoUsd,
}

impl<'a> Entry<'a> {
    /// Reads a line; `None` when it is damaged: no JSON object, or without an amount that counts.
    pub(super) fn read(line: &'a [u8]) -> Option<Self> {
        let members = Members::parse(core::str::from_utf8(line).ok()?).ok()?;
        let CostReading { amount, warning } = read_amount(members.get("usd")?)?;
        // Other writers may sum up floats: 0.30000000000000004 is no damage.
        if !matches!(warning, None | Some(CostWarning::Rounded)) {
            return None;
        }
        let name = |member| match members.present(member) {
            None => Some(None),
            Some(raw) => text(raw).map(Some),
        };
        Some(Self {
            task: name("task")?,
            server: name("server")?,
            tool: name("tool")?,
            model: name("model")?,
            tag: name("tag")?,
            amount,
        })
    }
}

/// An amount as a number, or as a string for writers without exact numbers.
fn read_amount(raw: &RawValue) -> Option<CostReading> {
    if raw.get().starts_with('"') {
        return Some(NanoUsd::read(&text(raw)?));
    }
    Some(NanoUsd::read(raw.get()))
}

fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let token = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if token.contains('\\') {
        return serde_json::from_str(raw.get()).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(token))
}
