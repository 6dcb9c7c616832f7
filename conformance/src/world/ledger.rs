//! The ledger's file, simulated, and the judge of what is done with it.

use std::collections::VecDeque;

use mcp_proto::cost::LedgerLine;
use mcp_proto::{Action, Event, IoFailure, IoKind};
use serde_json::Value;

use super::breach::{Broken, Rule};
use super::money::nanos;

/// What is wrong with the ledger's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LedgerFault {
    /// It cannot be read.
    Unreadable,
    /// Reading fails after all but the last pieces.
    Torn,
    /// Of each append half a line arrives, and that is reported.
    Full,
    /// The same of every other append.
    Flaky,
    /// Nothing that is asked of it ever comes to an end.
    Stuck,
}

/// The file, and what is on its way back to the client.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) contents: Option<Vec<u8>>,
    pub(super) fault: Option<LedgerFault>,
    facts: VecDeque<Fact>,
    /// The client waits for the file.
    outstanding: bool,
    was_read: bool,
    /// Appends that were asked for.
    appends: u64,
    /// Lines that were handed out, and the sum of what they say.
    lines: u64,
    sum: u64,
}

/// On its way to the client.
#[derive(Debug)]
pub(super) enum Fact {
    Piece(Vec<u8>),
    Ended,
    Appended,
    Failed(IoKind),
}

impl Ledger {
    /// Judges an action that concerns the file; so many calls are charged so far, with this sum.
    pub(super) fn judge(&mut self, action: &Action, charged: (u64, u64)) -> Result<(), Broken> {
        let line = match action {
            Action::ReadLedger { .. } if self.was_read => {
                return Err((Rule::Ledger, "read a second time".into()));
            }
            Action::ReadLedger { .. } => {
                (self.was_read, self.outstanding) = (true, true);
                return Ok(());
            }
            Action::AppendLedger { line, .. } => line,
            _ => return Ok(()),
        };
        if self.outstanding || !self.was_read {
            let detail = "an append while something else is outstanding, or before reading";
            return Err((Rule::Ledger, detail.into()));
        }
        self.outstanding = true;
        let text = String::from_utf8_lossy(&line.bytes).into_owned();
        let usd = |line: &str| {
            let line: Value = serde_json::from_str(line).ok()?;
            line["usd"].as_f64().map(nanos)
        };
        let lines = text.lines().filter(|line| !line.is_empty());
        self.lines += lines.clone().count() as u64;
        let amounts: Option<Vec<u64>> = lines.map(usd).collect();
        self.sum += amounts.iter().flatten().sum::<u64>();
        let whole = amounts.is_some() && text.ends_with('\n');
        if !whole || self.lines > charged.0 || self.sum > charged.1 {
            let detail = format!("{charged:?} charged, and written: {text:?}");
            return Err((Rule::Ledger, detail));
        }
        Ok(())
    }

    /// Everything that costs something was handed out, unless the file was too slow for that.
    pub(super) fn on_closed(&self, charged: (u64, u64)) -> Result<(), Broken> {
        let written = (self.lines, self.sum);
        if self.was_read && !self.outstanding && written != charged {
            let detail = format!("{written:?} written, and {charged:?} charged");
            return Err((Rule::Ledger, detail));
        }
        Ok(())
    }

    pub(super) fn perform_read(&mut self) {
        match (self.fault, &self.contents) {
            (Some(LedgerFault::Stuck), _) => {}
            (Some(LedgerFault::Unreadable), _) => self.facts.push_back(Fact::Failed(IoKind::Other)),
            (_, None) => self.facts.push_back(Fact::Failed(IoKind::NotFound)),
            (_, Some(contents)) => {
                let pieces = contents.chunks(7).map(|piece| Fact::Piece(piece.into()));
                self.facts.extend(pieces);
                self.facts.push_back(Fact::Ended);
                if self.fault == Some(LedgerFault::Torn) {
                    let kept = self.facts.len().saturating_sub(3);
                    self.facts.truncate(kept);
                    self.facts.push_back(Fact::Failed(IoKind::Other));
                }
            }
        }
    }

    pub(super) fn perform_append(&mut self, line: &LedgerLine) {
        let contents = self.contents.get_or_insert_default();
        self.appends += 1;
        let fails = match self.fault {
            Some(LedgerFault::Full) => true,
            Some(LedgerFault::Flaky) => self.appends % 2 == 1,
            _ => false,
        };
        match self.fault {
            Some(LedgerFault::Stuck) => {}
            _ if fails => {
                contents.extend(&line.bytes[..line.bytes.len() / 2]);
                self.facts.push_back(Fact::Failed(IoKind::Other));
            }
            _ => {
                contents.extend(&line.bytes);
                self.facts.push_back(Fact::Appended);
            }
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        !self.facts.is_empty()
    }

    /// The next fact for the client.
    pub(super) fn arrive(&mut self) -> Option<Fact> {
        let fact = self.facts.pop_front()?;
        self.outstanding &= matches!(fact, Fact::Piece(_));
        Some(fact)
    }
}

impl Fact {
    pub(super) fn event(&self) -> Event<'_> {
        match self {
            Self::Piece(bytes) => Event::LedgerRead { bytes },
            Self::Ended => Event::LedgerEnded,
            Self::Appended => Event::LedgerAppended,
            Self::Failed(kind) => Event::LedgerFailed {
                failure: IoFailure {
                    kind: *kind,
                    detail: "no space left".into(),
                },
            },
        }
    }
}
