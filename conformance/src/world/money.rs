//! What calls cost, counted by a judge that knows prices and ends and nothing of the client's books (R50).

use std::collections::BTreeMap;

use mcp_proto::cost::Dimension;
use mcp_proto::error::Cause;
use mcp_proto::{
    Client, Config, Duration, Ended, Error, Event, Instant, NanoUsd, Operation, OperationId,
    Outcome, PeerConfig, Ran, Reply, Request,
};

use super::breach::{Broken, Rule};

/// The task of a configuration without one.
const TASK: &str = "default";
/// How long calls wait until it is known what was spent before.
const PATIENCE: Duration = Duration::from_secs(2);

/// Prices, and what was spent.
#[derive(Debug)]
pub(super) struct Books {
    peers: Vec<PeerConfig>,
    task: String,
    budget: Option<u64>,
    /// What the client has read of the ledger.
    read: Vec<u8>,
    /// What stood in it, once the client has read all that it gets. Nothing where there is none.
    prior: Option<u64>,
    /// Until when calls wait for that.
    until: Option<Instant>,
    /// The client was told that this time has passed.
    impatient: bool,
    /// Calls that may have run and have ended, and what they cost.
    calls: u64,
    spent: u64,
    /// What the application says that a call costs; an entry for each one that has not ended.
    open: BTreeMap<OperationId, Call>,
}

/// A call that has not ended.
#[derive(Debug)]
struct Call {
    own_price: Option<u64>,
    /// It may have been let go before it was known what stood in the ledger.
    excused: bool,
    /// The budget was used up before it may have been let go.
    exhausted: bool,
    /// Its price, once it was written.
    written: Option<u64>,
}

impl Books {
    pub(super) fn new(config: &Config) -> Self {
        let harness = &config.harness;
        Self {
            peers: config.peers.clone(),
            task: harness.task_id.clone().unwrap_or_else(|| TASK.into()),
            budget: harness.budget.map(NanoUsd::as_nanos),
            read: Vec::new(),
            prior: harness.ledger.is_none().then_some(0),
            until: None,
            impatient: false,
            calls: 0,
            spent: 0,
            open: BTreeMap::new(),
        }
    }

    /// The client asks for the ledger.
    pub(super) fn on_ledger_wanted(&mut self, now: Instant) {
        self.until = Some(now + PATIENCE);
    }

    /// What the client is told, before it is.
    pub(super) fn on_fact(&mut self, fact: &Event<'_>, now: Instant) {
        if self.prior.is_some() {
            return;
        }
        match fact {
            Event::TimePassed => self.impatient |= self.until.is_some_and(|until| until <= now),
            Event::LedgerRead { bytes } => self.read.extend_from_slice(bytes),
            // What was read before a failure counts.
            Event::LedgerEnded | Event::LedgerFailed { .. } => self.on_ledger_known(),
            _ => {}
        }
    }

    /// Whatever still waits is let go with this in mind.
    fn on_ledger_known(&mut self) {
        let prior = self.stood();
        self.prior = Some(prior);
        let known = self.spent + prior;
        let is_used_up = self.budget.is_some_and(|budget| known >= budget);
        for call in self.open.values_mut() {
            call.excused = self.impatient;
            call.exhausted |= is_used_up && !self.impatient;
        }
    }

    /// What was spent before on this task, as far as it was read.
    fn stood(&self) -> u64 {
        let lines = self.read.split(|byte| *byte == b'\n');
        let entries = lines.filter_map(|line| serde_json::from_slice(line).ok());
        let own = entries.filter_map(|entry: serde_json::Value| {
            let usd = &entry["usd"];
            let usd = usd.as_f64().or_else(|| usd.as_str()?.parse().ok())?;
            (entry["task"] == *self.task && usd >= 0.0).then(|| nanos(usd))
        });
        own.sum()
    }

    pub(super) fn on_accepted(&mut self, id: OperationId, operation: &Operation) {
        let is_call = match &operation.request {
            Request::CallTool(_) => true,
            Request::Resume { continuation, .. } => {
                matches!(continuation.request().request(), Some(Request::CallTool(_)))
            }
            _ => false,
        };
        if !is_call {
            return;
        }
        let known = self.spent + self.prior.unwrap_or(0);
        let call = Call {
            own_price: own_price(operation),
            excused: false,
            exhausted: self.budget.is_some_and(|budget| known >= budget),
            written: None,
        };
        self.open.insert(id, call);
    }

    /// What a call costs, where anything says so.
    fn price(&self, own: Option<u64>, peer: &PeerConfig, tool: &str) -> Option<u64> {
        let configured = peer.tool_costs.get(tool).copied().or(peer.cost);
        own.or_else(|| configured.map(NanoUsd::as_nanos))
    }

    /// The request of a call is written to this peer.
    pub(super) fn on_called(
        &mut self,
        id: OperationId,
        peer: usize,
        tool: &str,
    ) -> Result<(), Broken> {
        let (Some(call), Some(peer)) = (self.open.get(&id), self.peers.get(peer)) else {
            return Ok(());
        };
        let (excused, exhausted) = (call.excused, call.exhausted);
        let first = call.written.is_none();
        let price = self.price(call.own_price, peer, tool);
        if let Some(call) = self.open.get_mut(&id) {
            call.written = Some(price.unwrap_or(0));
        }
        let Some(budget) = self.budget.filter(|_| first && price != Some(0)) else {
            return Ok(());
        };
        if self.prior.is_none() && !self.impatient {
            let detail = format!("{id} is sent before it is known what stood in the ledger");
            return Err((Rule::Money, detail));
        }
        if exhausted {
            let detail = format!("{id} is sent although {budget} were spent before");
            return Err((Rule::Money, detail));
        }
        let under_way: u64 = self.open.values().filter_map(|call| call.written).sum();
        let prior = self.prior.filter(|_| !excused).unwrap_or(0);
        let all = self.spent + under_way + prior;
        // Without a price it is only known to have begun within the budget.
        if price.is_some() && all > budget {
            return Err((
                Rule::Money,
                format!("with {id} {all} of {budget} are spent"),
            ));
        }
        Ok(())
    }

    pub(super) fn on_ended(&mut self, ended: &Ended) -> Result<(), Broken> {
        let Some(call) = self.open.remove(&ended.operation) else {
            return Ok(());
        };
        if let Outcome::Failed(error) = &ended.outcome {
            self.judge_refusal(call.own_price, error)?;
        }
        let may_have_run = match &ended.outcome {
            Outcome::Complete(Reply::Stream(stream)) => stream.attempts > 0,
            Outcome::Complete(reply) => matches!(reply, Reply::Call(_)),
            // It goes on under another number.
            Outcome::InputRequired(_) => false,
            Outcome::Failed(error) => error.ran == Ran::Maybe,
        };
        let name = ended.peer.as_deref();
        let peer = self
            .peers
            .iter()
            .find(|peer| Some(peer.name.as_str()) == name);
        if let (true, Some(peer)) = (may_have_run, peer) {
            let tool = ended.tool.as_deref().unwrap_or_default();
            let price = self.price(call.own_price, peer, tool);
            self.calls += 1;
            self.spent += price.unwrap_or(0);
        }
        Ok(())
    }

    /// An operation was not accepted.
    pub(super) fn on_refused(&self, operation: &Operation, error: &Error) -> Result<(), Broken> {
        self.judge_refusal(own_price(operation), error)
    }

    /// What is refused because of the budget does not fit beside all that may be reserved in it.
    fn judge_refusal(&self, own_price: Option<u64>, error: &Error) -> Result<(), Broken> {
        let (Cause::Limit { setting, .. }, Some(budget)) = (&error.cause, self.budget) else {
            return Ok(());
        };
        if *setting != "budgetUsd" {
            return Ok(());
        }
        let others = self.open.values();
        let others: u64 = others.map(|call| self.most(call.own_price)).sum();
        let before = self.prior.unwrap_or_else(|| self.stood());
        let all = self.spent + others + before;
        // Without a price it is refused when nothing is left.
        if own_price == Some(0) || all + self.most(own_price).max(1) <= budget {
            let detail = format!("{all} of {budget} at most are spent, and: {error}");
            return Err((Rule::Money, detail));
        }
        Ok(())
    }

    /// What a call costs at most, wherever it goes.
    fn most(&self, own: Option<u64>) -> u64 {
        let configured = || {
            let peers = self.peers.iter();
            let costs = peers.flat_map(|peer| peer.tool_costs.values().chain(&peer.cost));
            costs.map(|cost| cost.as_nanos()).max()
        };
        own.or_else(configured).unwrap_or(0)
    }

    /// How many calls may have run and have ended, and what they cost.
    pub(super) const fn charged(&self) -> (u64, u64) {
        (self.calls, self.spent)
    }

    /// The client's sums are these, whenever it has been drained.
    pub(super) fn check(&self, client: &Client) -> Result<(), Broken> {
        let costs = client.costs();
        let total = costs.meter().total();
        let (calls, spent) = (total.calls, total.cost.as_nanos());
        if (calls, spent) != self.charged() {
            let detail = format!("{calls} calls and {spent}, not {:?}", self.charged());
            return Err((Rule::Money, detail));
        }
        let Some(prior) = self.prior else {
            return Ok(());
        };
        let kept = costs.ledger().total(Dimension::Task, &self.task).cost;
        if kept.as_nanos() != prior + spent {
            let detail = format!("{kept} USD in the ledger, and {prior} before {spent}");
            return Err((Rule::Money, detail));
        }
        Ok(())
    }
}

/// What the application says that it costs.
fn own_price(operation: &Operation) -> Option<u64> {
    operation.options.cost.map(|cost| cost.amount.as_nanos())
}

/// A billion times as much. Prices here are short decimals.
pub(super) fn nanos(usd: f64) -> u64 {
    (usd * 1e9).round() as u64
}

#[cfg(test)]
mod tests;
