//! What was spent, in lines of a file that outlives the process.

use alloc::string::String;
use alloc::vec::Vec;

use super::amount::{CostWarning, NanoUsd};
use super::budget::{Budget, BudgetScope, Verdict};
use super::line::{Entry, MODEL_LABEL, Spend, TAG};
use super::tally::{Tallies, Tally};
use crate::wire::{Line, LineBuffer, printable};

/// The longest line that is read, in bytes. Lines written here are far shorter.
const LINE_BYTES: usize = 1 << 16;
/// How much is kept of the reason for a failure, in bytes.
const REASON_BYTES: usize = 256;

/// How a ledger is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerSettings {
    /// Whether each line is to be on the disk before the host goes on ([`LedgerLine::sync`]). Default
    /// no: a crash of the machine, not of the process, may then lose the last lines.
    pub sync: bool,
    /// How many tasks, servers, tools, … are told apart, of each. Default 10,000.
    pub max_names: usize,
    /// What may be spent.
    pub budgets: Vec<Budget>,
}

impl Default for LedgerSettings {
    fn default() -> Self {
        Self {
            sync: false,
            max_names: 10_000,
            budgets: Vec::new(),
        }
    }
}

/// Bytes to append to the ledger's file, in one write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerLine {
    /// One whole line with its line feed; a line feed comes first where the file may not end with one.
    pub bytes: Vec<u8>,
    /// Flush the file to the disk afterwards.
    pub sync: bool,
}

/// By what spending is summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Dimension {
    /// By task.
    Task,
    /// By server.
    Server,
    /// By tool, under `server/tool`.
    Tool,
    /// By model label: [`MODEL_LABEL`] for calls of tools.
    Model,
    /// By tag: [`TAG`] for calls of tools.
    Tag,
}

/// How well the ledger is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerHealth {
    /// Lines that were read and counted.
    pub lines_read: u64,
    /// Lines that were skipped: no record, or longer than 64 KiB.
    pub damaged_lines: u64,
    /// The file ended in the middle of a line, which is missing in the sums.
    pub torn_end: bool,
    /// Lines that could not be appended. Their costs are in the sums of this process.
    pub append_failures: u64,
    /// Why the last one could not, bounded and printable.
    pub last_failure: Option<String>,
}

/// Totals over a ledger file, budgets, and the lines to append (R50). Pure: the host reads and appends.
///
/// 1. The host reads the file, if there is one, and hands over its bytes with [`SpendLedger::read`], in
///    pieces of any size, then calls [`SpendLedger::finish_reading`].
/// 2. Before a call: [`SpendLedger::check`].
/// 3. After a call that [counts](super::Charge): [`SpendLedger::record`], and append what it gives.
/// 4. If appending failed: [`SpendLedger::append_failed`]. Nothing else comes of it: the call has its
///    outcome, and its cost stays in the sums.
///
/// A damaged line never makes the ledger unreadable: it is skipped and counted.
///
/// **Several processes may append to one file.** If each opens it for appending and writes each line
/// with one write (which `LedgerLine` is made for), lines do not mix on a local file system; on a network
/// file system they may, and then are damaged lines. Each process knows what stood in the file when it
/// read it, and its own calls; not what others spend meanwhile. So a budget holds exactly for one
/// process at a time, and together `n` of them can overshoot it `n` times at most. Nothing is lost
/// in the file, and the next one to read it knows the sum.
///
/// ```
/// use mcp_proto::cost::{Dimension, NanoUsd, LedgerSettings, Spend, SpendLedger};
///
/// let mut ledger = SpendLedger::new(LedgerSettings::default());
/// ledger.read(b"{\"task\":\"t\",\"usd\":0.5}\n{\"task\":\"t\",\"us");
/// ledger.finish_reading();
/// let (line, warning) = ledger.record(&Spend {
///     task: "t",
///     server: "git",
///     tool: "diff",
///     cost: "0.25".into(),
///     call: Some(1),
///     time_unix_ms: None,
/// });
/// assert_eq!(warning, None);
/// assert_eq!(
///     core::str::from_utf8(&line.bytes)?,
///     "\n{\"call\":1,\"model\":\"mcp-server\",\"server\":\"git\",\"tag\":\"mcp_server\",\
///      \"task\":\"t\",\"tool\":\"diff\",\"usd\":0.25}\n",
/// );
/// assert_eq!(ledger.total(Dimension::Task, "t").cost.to_string(), "0.75");
/// assert!(ledger.health().torn_end);
/// # Ok::<(), core::str::Utf8Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SpendLedger {
    settings: LedgerSettings,
    unread: LineBuffer,
    /// The file may end in the middle of a line, which the next one must not be glued to.
    mid_line: bool,
    sum: Tally,
    tasks: Tallies,
    servers: Tallies,
    tools: Tallies,
    models: Tallies,
    tags: Tallies,
    health: LedgerHealth,
}

impl SpendLedger {
    /// The ledger of a file that is empty or has not been read yet.
    #[must_use]
    pub fn new(settings: LedgerSettings) -> Self {
        Self {
            settings,
            unread: LineBuffer::new(LINE_BYTES),
            mid_line: false,
            sum: Tally::default(),
            tasks: Tallies::default(),
            servers: Tallies::default(),
            tools: Tallies::default(),
            models: Tallies::default(),
            tags: Tallies::default(),
            health: LedgerHealth::default(),
        }
    }

    /// Takes the next piece of the existing file, wherever it was cut.
    pub fn read(&mut self, chunk: &[u8]) {
        let Some(last) = chunk.last() else {
            return;
        };
        self.mid_line = *last != b'\n';
        let mut unread = core::mem::replace(&mut self.unread, LineBuffer::new(0));
        let mut lines = unread.feed(chunk);
        while let Some(line) = lines.next() {
            self.read_line(line);
        }
        drop(lines);
        self.unread = unread;
    }

    /// The existing file is read to its end. A last line without its line feed counts if it is whole.
    pub fn finish_reading(&mut self) {
        let mut unread = core::mem::replace(&mut self.unread, LineBuffer::new(LINE_BYTES));
        while let Some(line) = unread.finish() {
            let damaged = self.health.damaged_lines;
            self.read_line(line);
            if self.health.damaged_lines > damaged {
                self.health.damaged_lines = damaged;
                self.health.torn_end = true;
            }
        }
    }

    /// Whether a call of this task may be made. `expected`: what it will cost, where that is known; a
    /// call that is known to be free is never stopped.
    ///
    /// Changes nothing and may be asked as often as one likes.
    #[must_use]
    pub fn check(&self, task: &str, expected: Option<NanoUsd>) -> Verdict {
        self.check_beside(task, NanoUsd::ZERO, expected)
    }

    /// The same while other calls of this task are under way, which will cost so much together.
    #[must_use]
    pub fn check_beside(
        &self,
        task: &str,
        under_way: NanoUsd,
        expected: Option<NanoUsd>,
    ) -> Verdict {
        let verdicts = self.settings.budgets.iter().map(|budget| {
            let spent = match budget.scope {
                BudgetScope::Ledger => self.sum,
                // A task that found no place may have spent all that tasks without one did.
                BudgetScope::Task => {
                    let own = self.tasks.get(task);
                    own.unwrap_or_else(|| self.tasks.others())
                }
            };
            let spent = spent.cost.saturating_add(under_way);
            budget.judge(task, spent, expected)
        });
        verdicts.fold(Verdict::Ok, Verdict::or_graver)
    }

    /// Counts one call and gives the line to append. The warning is to be shown or logged; the call
    /// counts in any case.
    pub fn record(&mut self, spend: &Spend<'_>) -> (LedgerLine, Option<CostWarning>) {
        let mut bytes = Vec::new();
        if core::mem::take(&mut self.mid_line) {
            bytes.push(b'\n');
        }
        spend.write(&mut bytes);
        let sync = self.settings.sync;
        (LedgerLine { bytes, sync }, self.add(spend))
    }

    /// The same where nothing is written.
    pub fn add(&mut self, spend: &Spend<'_>) -> Option<CostWarning> {
        let all_named = self.count(&Entry {
            task: Some(spend.task.into()),
            server: Some(spend.server.into()),
            tool: Some(spend.tool.into()),
            model: Some(MODEL_LABEL.into()),
            tag: Some(TAG.into()),
            amount: spend.cost.amount,
        });
        match spend.cost.warning {
            None if !all_named => Some(CostWarning::TooManyNames),
            None if self.sum.cost == NanoUsd::MAX => Some(CostWarning::Saturated),
            warning => warning,
        }
    }

    /// The last line could not be appended, or not all of it. To be called once for each that failed.
    pub fn append_failed(&mut self, reason: &str) {
        self.mid_line = true;
        self.health.append_failures = self.health.append_failures.saturating_add(1);
        self.health.last_failure = Some(printable(reason.as_bytes(), REASON_BYTES));
    }

    /// How well the ledger is.
    #[must_use]
    pub const fn health(&self) -> &LedgerHealth {
        &self.health
    }

    /// All that stands in the ledger.
    #[must_use]
    pub const fn sum(&self) -> Tally {
        self.sum
    }

    /// What was spent under one name.
    #[must_use]
    pub fn total(&self, dimension: Dimension, name: &str) -> Tally {
        self.tallies(dimension).get(name).unwrap_or_default()
    }

    /// What was spent under each name, sorted by name.
    pub fn totals(&self, dimension: Dimension) -> impl Iterator<Item = (&str, Tally)> {
        self.tallies(dimension).iter()
    }

    const fn tallies(&self, dimension: Dimension) -> &Tallies {
        match dimension {
            Dimension::Task => &self.tasks,
            Dimension::Server => &self.servers,
            Dimension::Tool => &self.tools,
            Dimension::Model => &self.models,
            Dimension::Tag => &self.tags,
        }
    }

    fn read_line(&mut self, line: Line<'_>) {
        let entry = match line {
            Line::Complete([]) => return,
            Line::Complete(bytes) => Entry::read(bytes),
            Line::TooLong { .. } => None,
        };
        let counter = match entry {
            Some(entry) => {
                self.count(&entry);
                &mut self.health.lines_read
            }
            None => &mut self.health.damaged_lines,
        };
        *counter = counter.saturating_add(1);
    }

    /// Adds to all sums; `false` when some name found no place of its own.
    fn count(&mut self, entry: &Entry<'_>) -> bool {
        self.sum.add(entry.amount);
        let tool = match (&entry.server, &entry.tool) {
            (Some(server), Some(tool)) => Some([server, "/", tool].concat().into()),
            (None, tool) => tool.clone(),
            (_, None) => None,
        };
        let sums = [
            (&mut self.tasks, &entry.task),
            (&mut self.servers, &entry.server),
            (&mut self.tools, &tool),
            (&mut self.models, &entry.model),
            (&mut self.tags, &entry.tag),
        ];
        let mut all_named = true;
        for (tallies, name) in sums {
            if let Some(name) = name {
                let may_grow = tallies.len() < self.settings.max_names;
                all_named &= tallies.add(name, entry.amount, may_grow);
            }
        }
        all_named
    }
}

#[cfg(test)]
mod tests;
