//! The ledger's file, simulated, and the judge of what is done with it.

use std::collections::VecDeque;

use mcp_proto::cost::{Charge, LedgerLine};
use mcp_proto::{Action, Ended, Event, IoFailure, IoKind};
use serde_json::Value;

use super::breach::{Broken, Rule};

/// What is wrong with the ledger's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LedgerFault {
    /// It cannot be read.
    Unreadable,
    /// Of each append half a line arrives, and that is reported.
    Full,
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
    /// Lines that were handed out, and calls that ended and are charged.
    lines: u64,
    charged: u64,
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
    /// Judges an action that concerns the file.
    pub(super) fn judge(&mut self, action: &Action) -> Result<(), Broken> {
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
        let whole = |line: &str| {
            serde_json::from_str(line).is_ok_and(|line: Value| line["usd"].is_number())
        };
        let mut lines = text.lines().filter(|line| !line.is_empty());
        self.lines += lines.clone().count() as u64;
        if !text.ends_with('\n') || !lines.all(whole) || self.lines > self.charged {
            let detail = format!("{} charged, and written: {text:?}", self.charged);
            return Err((Rule::Ledger, detail));
        }
        Ok(())
    }

    /// An operation ended.
    pub(super) fn on_ended(&mut self, ended: &Ended) {
        self.charged += u64::from(ended.tool.is_some() && Charge::from(ended) == Charge::Yes);
    }

    /// Everything that costs something stands there, if it can.
    pub(super) fn on_closed(&self) -> Result<(), Broken> {
        if self.was_read && self.fault.is_none() && self.lines != self.charged {
            let detail = format!("{} lines, and {} charged", self.lines, self.charged);
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
            }
        }
    }

    pub(super) fn perform_append(&mut self, line: &LedgerLine) {
        let contents = self.contents.get_or_insert_default();
        match self.fault {
            Some(LedgerFault::Stuck) => {}
            Some(LedgerFault::Full) => {
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
