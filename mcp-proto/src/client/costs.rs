//! What calls cost: admitted within the budget, recorded once, written to the ledger (R50).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Client;
use super::ledger::{LedgerFile, READ_BYTES_MAX};
use crate::action::Action;
use crate::config::{HarnessConfig, PeerConfig};
use crate::cost::{
    Budget, BudgetScope, Charge, CostReading, CostWarning, LedgerSettings, NanoUsd,
    ServerCostMeter, Spend, SpendLedger, Verdict,
};
use crate::error::Error;
use crate::event::{Event, IoKind};
use crate::ids::OperationId;
use crate::operation::{Ended, Operation, Request};
use crate::time::{Duration, Instant};
use crate::wire::printable;

/// The task that costs are booked on when the configuration names none.
const TASK: &str = "default";
/// How long calls wait for the ledger to be read, where there is a budget. Servers take longer to start.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long closing waits for the last lines to be appended.
const CLOSE_GRACE: Duration = Duration::from_secs(1);
/// How many notes are kept.
const NOTES_MAX: usize = 32;
/// How many records may wait until the ledger is read.
const WAITING_MAX: usize = 10_000;

/// What the calls of a client cost so far.
#[derive(Clone, Debug)]
pub struct Costs {
    task: String,
    meter: ServerCostMeter,
    ledger: SpendLedger,
    notes: Vec<String>,
}

impl Costs {
    /// The task that they are booked on (`taskId`).
    #[must_use]
    pub fn task(&self) -> &str {
        &self.task
    }

    /// Sums by server, of this client alone.
    #[must_use]
    pub const fn meter(&self) -> &ServerCostMeter {
        &self.meter
    }

    /// Sums by task, server, tool, model and tag, together with what stood in the ledger's file; and how
    /// well that file is.
    #[must_use]
    pub const fn ledger(&self) -> &SpendLedger {
        &self.ledger
    }

    /// What a person should know, each once: a budget that is nearly used up, prices that make no sense, a
    /// ledger that cannot be read or written. None of it fails a call.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What stands in the ledger and is in no sum.
    fn note_damage(&mut self, cut: bool) {
        let health = self.ledger.health();
        let (damaged, torn) = (health.damaged_lines, health.torn_end);
        if damaged > 0 {
            self.note(format!(
                "lines of the ledger that are no records, and do not count: {damaged}"
            ));
        }
        if torn && !cut {
            let note = "the ledger ends in the middle of a line, which does not count";
            self.note(note.into());
        }
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < NOTES_MAX && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// The books of a client.
#[derive(Debug)]
pub(super) struct Accounts {
    costs: Costs,
    has_budget: bool,
    /// Calls under way.
    open: BTreeMap<OperationId, Account>,
    /// What they will cost together.
    under_way: u128,
    file: Option<LedgerFile>,
    /// Records that wait until the file is read.
    waiting: Vec<Record>,
    /// Until when the file is waited for: by calls, or by closing.
    until: Option<Instant>,
    /// Nobody waits for the file any more.
    impatient: bool,
    /// The client closes, and waits for the last lines only.
    closes: bool,
}

/// A call under way.
#[derive(Debug, Clone, Copy)]
struct Account {
    price: Option<CostReading>,
    call: Option<u64>,
}

/// A call that is to be recorded.
#[derive(Debug)]
struct Record {
    account: Account,
    server: String,
    tool: String,
}

impl Account {
    /// The account of an operation, if it is a call of a tool.
    fn of(peer: &PeerConfig, operation: &Operation, call: Option<u64>) -> Option<Self> {
        let configured = match &operation.request {
            Request::CallTool(call) => peer.cost_of(&call.tool),
            Request::Resume { continuation, .. } => match continuation.request().request() {
                Some(Request::CallTool(call)) => peer.cost_of(&call.tool),
                _ => return None,
            },
            _ => return None,
        };
        let configured = || configured.map(CostReading::from);
        let price = operation.options.cost.or_else(configured);
        Some(Self { price, call })
    }

    fn cost(self) -> CostReading {
        self.price.unwrap_or_else(|| NanoUsd::ZERO.into())
    }

    fn nanos(self) -> u128 {
        self.cost().amount.as_nanos().into()
    }
}

impl Accounts {
    pub(super) fn new(harness: &HarnessConfig) -> Self {
        let budgets = harness
            .budget
            .map(|limit| Budget::new(BudgetScope::Task, limit));
        let settings = LedgerSettings {
            budgets: budgets.into_iter().collect(),
            ..LedgerSettings::default()
        };
        Self {
            costs: Costs {
                task: harness.task_id.clone().unwrap_or_else(|| TASK.into()),
                meter: ServerCostMeter::new(),
                ledger: SpendLedger::new(settings),
                notes: Vec::new(),
            },
            has_budget: harness.budget.is_some(),
            open: BTreeMap::new(),
            under_way: 0,
            file: harness.ledger.clone().map(LedgerFile::new),
            waiting: Vec::new(),
            until: None,
            impatient: false,
            closes: false,
        }
    }

    /// Asks for what stands in the file.
    pub(super) fn begin(&mut self, now: Instant, actions: &mut VecDeque<Action>) {
        if let Some(file) = self.file.as_mut().filter(|file| file.is_unread()) {
            file.read(actions);
            self.until = self.has_budget.then_some(now + PATIENCE);
        }
    }

    /// Whether an operation waits: what was spent before bounds what it may cost, and is not known yet.
    pub(super) fn holds(&self, request: &Request) -> bool {
        let is_call = matches!(request, Request::CallTool(_) | Request::Resume { .. });
        let unread = self.file.as_ref().is_some_and(LedgerFile::is_unread);
        is_call && unread && self.has_budget && !self.impatient
    }

    /// Admits a call within the budget, in which its price is reserved from now on.
    pub(super) fn admit(
        &mut self,
        id: OperationId,
        peer: &PeerConfig,
        operation: &Operation,
        call: Option<u64>,
    ) -> Result<(), Error> {
        let Some(account) = Account::of(peer, operation, call) else {
            return Ok(());
        };
        let expected = account.price.map(|price| price.amount);
        let under_way = u64::try_from(self.under_way).map_or(NanoUsd::MAX, NanoUsd::from_nanos);
        let costs = &mut self.costs;
        match costs.ledger.check_beside(&costs.task, under_way, expected) {
            Verdict::Ok => {}
            Verdict::SoftWarning { spent, limit, .. } => {
                let percent =
                    u128::from(spent.as_nanos()) * 100 / u128::from(limit.as_nanos().max(1));
                // In steps, so that it is not said with every call.
                let task = &costs.task;
                let reached = percent / 10 * 10;
                costs.note(format!(
                    "task {task:?} has spent {reached} % or more of its budget of {limit} USD"
                ));
            }
            Verdict::HardStop(exceeded) => {
                let mut error = Error::from(exceeded);
                error.peer = Some(peer.name.clone());
                return Err(error);
            }
        }
        self.under_way = self.under_way.saturating_add(account.nanos());
        self.open.insert(id, account);
        Ok(())
    }

    /// A call is not under way any more, for whatever reason.
    pub(super) fn forget(&mut self, id: OperationId) {
        self.close(id);
    }

    fn close(&mut self, id: OperationId) -> Option<Account> {
        let account = self.open.remove(&id)?;
        self.under_way = self.under_way.saturating_sub(account.nanos());
        Some(account)
    }

    /// An operation has ended: a call that ran, or may have, is recorded. [`Accounts::flush`] hands out
    /// what is to be written of it.
    pub(super) fn ended(&mut self, ended: &Ended) {
        let Some(account) = self.close(ended.operation) else {
            return;
        };
        let (Charge::Yes, Some(server)) = (Charge::from(ended), ended.peer.as_deref()) else {
            return;
        };
        let tool = ended.tool.as_deref().unwrap_or_default();
        let costs = &mut self.costs;
        let warning = costs.meter.record(&costs.task, server, account.cost());
        self.warn(server, tool, warning);
        if self.file.as_ref().is_none_or(|file| !file.is_unread()) {
            self.record(account, server, tool);
            return;
        }
        // It stays reserved until it stands in the sums.
        self.under_way = self.under_way.saturating_add(account.nanos());
        if self.waiting.len() < WAITING_MAX {
            let (server, tool) = (server.into(), tool.into());
            self.waiting.push(Record {
                account,
                server,
                tool,
            });
        } else {
            self.lost("too many records wait for it to be read");
        }
    }

    fn record(&mut self, account: Account, server: &str, tool: &str) {
        let costs = &mut self.costs;
        let spend = Spend {
            task: &costs.task,
            server,
            tool,
            cost: account.cost(),
            call: account.call,
            time_unix_ms: None,
        };
        let Some(file) = &mut self.file else {
            let warning = costs.ledger.add(&spend);
            return self.warn(server, tool, warning);
        };
        let (line, warning) = costs.ledger.record(&spend);
        let fits = file.append(&line);
        self.warn(server, tool, warning);
        if !fits {
            self.lost("lines come faster than they can be appended");
        }
    }

    /// Hands out what can be written.
    pub(super) fn flush(&mut self, actions: &mut VecDeque<Action>) {
        if let Some(file) = &mut self.file {
            file.flush(actions);
        }
    }

    fn warn(&mut self, server: &str, tool: &str, warning: Option<CostWarning>) {
        if let Some(warning) = warning {
            let tool = printable(tool.as_bytes(), 80);
            self.costs.note(format!("{server}/{tool}: {warning}"));
        }
    }

    /// A line of the ledger is lost; its cost stays in the sums of this process.
    fn lost(&mut self, reason: &str) {
        self.costs.ledger.append_failed(reason);
        let note = format!("a call was not appended to the ledger: {reason}");
        self.costs.note(note);
    }

    /// A fact about the ledger's file.
    pub(super) fn handle(&mut self, event: &Event<'_>) {
        let Some(file) = &mut self.file else {
            return;
        };
        match event {
            Event::LedgerRead { bytes } if file.is_reading() => {
                file.count(bytes);
                self.costs.ledger.read(bytes);
            }
            Event::LedgerEnded if file.is_reading() => self.was_read(),
            Event::LedgerAppended => file.appended(),
            Event::LedgerFailed { failure } if file.is_reading() => {
                // There is none yet.
                if failure.kind != IoKind::NotFound {
                    let detail = &failure.detail;
                    self.costs.note(format!(
                        "the ledger cannot be read, so what was spent before does not count: {detail}"
                    ));
                }
                self.was_read();
            }
            Event::LedgerFailed { failure } => {
                for _ in 0..file.append_failed() {
                    self.lost(&failure.detail);
                }
            }
            _ => {}
        }
    }

    fn was_read(&mut self) {
        self.costs.ledger.finish_reading();
        let cut = self.file.as_ref().is_some_and(LedgerFile::is_too_long);
        self.costs.note_damage(cut);
        if let Some(file) = &mut self.file {
            file.was_read();
            if cut {
                self.costs.note(format!(
                    "the ledger has {READ_BYTES_MAX} bytes or more, and what follows does not count; start a new one"
                ));
            }
        }
        for record in core::mem::take(&mut self.waiting) {
            let Record {
                account,
                server,
                tool,
            } = record;
            self.under_way = self.under_way.saturating_sub(account.nanos());
            self.record(account, &server, &tool);
        }
        self.until = self.until.filter(|_| self.closes);
    }

    /// When [`Accounts::on_time`] has something to do.
    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.until
    }

    /// Whoever waits for the file has waited long enough.
    pub(super) fn on_time(&mut self, now: Instant) {
        if self.until.is_some_and(|until| until <= now) {
            self.until = None;
            if !self.impatient {
                self.costs.note(format!(
                    "the ledger was not read within {} s; until it is, what was spent before does not count",
                    PATIENCE.as_secs()
                ));
            }
            self.impatient = true;
        }
    }

    /// Whether everything is written that can be; if not, that is waited for, but not for long.
    pub(super) fn may_close(&mut self, now: Instant) -> bool {
        if self.file.as_ref().is_none_or(LedgerFile::is_idle) {
            // Nobody waits any longer.
            self.until = None;
            return true;
        }
        if !self.closes {
            self.closes = true;
            self.impatient = true;
            self.until = Some(now + CLOSE_GRACE);
        }
        self.until.is_none()
    }
}

impl Client {
    /// What calls cost so far (R50): one record for each call that ran or may have run, failed ones
    /// included, at the price of [`Options::cost`](crate::Options::cost) or of the configuration. A call that ends
    /// with a question is not over, and recorded when it has been taken up and ends (R31).
    #[must_use]
    pub const fn costs(&self) -> &Costs {
        &self.accounts.costs
    }

    /// A fact about the ledger: calls may have waited for it.
    pub(super) fn on_ledger(&mut self, event: &Event<'_>) {
        self.accounts.handle(event);
        self.accounts.flush(&mut self.actions);
        self.after_news();
    }
}
