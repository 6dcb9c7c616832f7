//! What calls cost, counted by a judge that knows prices and ends and nothing of the client's books (R50).

use std::collections::{BTreeMap, BTreeSet};

use mcp_proto::cost::Dimension;
use mcp_proto::{
    Client, Config, Ended, NanoUsd, Operation, OperationId, Outcome, PeerConfig, Ran, Reply,
    Request,
};

use super::breach::{Broken, Rule};

/// The task of a configuration without one.
const TASK: &str = "default";

/// Prices, and what was spent.
#[derive(Debug)]
pub(super) struct Books {
    peers: Vec<PeerConfig>,
    task: String,
    budget: Option<u64>,
    /// What stood in the ledger, once the client has read all of it.
    prior: Option<u64>,
    /// Calls that may have run and have ended, and what they cost.
    calls: u64,
    spent: u64,
    /// What the application says that a call costs; an entry for each one that has not ended.
    open: BTreeMap<OperationId, Call>,
    /// When it was submitted the budget was used up.
    exhausted: BTreeSet<OperationId>,
}

/// A call that has not ended.
#[derive(Debug)]
struct Call {
    own_price: Option<u64>,
    /// What had stood in the ledger counted when it was submitted.
    knows_prior: bool,
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
            prior: None,
            calls: 0,
            spent: 0,
            open: BTreeMap::new(),
            exhausted: BTreeSet::new(),
        }
    }

    /// The client is told that it has all of the ledger, and these are its contents.
    pub(super) fn on_ledger_read(&mut self, contents: &[u8]) {
        let lines = contents.split(|byte| *byte == b'\n');
        let entries = lines.filter_map(|line| serde_json::from_slice(line).ok());
        let own = entries.filter_map(|entry: serde_json::Value| {
            let usd = &entry["usd"];
            let usd = usd.as_f64().or_else(|| usd.as_str()?.parse().ok())?;
            (entry["task"] == *self.task && usd >= 0.0).then(|| nanos(usd))
        });
        self.prior = Some(own.sum());
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
        let call = Call {
            own_price: operation.options.cost.map(|cost| cost.amount.as_nanos()),
            knows_prior: self.prior.is_some(),
            written: None,
        };
        let known = self.spent + self.prior.unwrap_or(0);
        if self.budget.is_some_and(|budget| known >= budget) {
            self.exhausted.insert(id);
        }
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
        let (knows_prior, first) = (call.knows_prior, call.written.is_none());
        let price = self.price(call.own_price, peer, tool);
        if let Some(call) = self.open.get_mut(&id) {
            call.written = Some(price.unwrap_or(0));
        }
        let Some(budget) = self.budget.filter(|_| first && price != Some(0)) else {
            return Ok(());
        };
        if self.exhausted.contains(&id) {
            let detail =
                format!("{id} is sent although {budget} were spent before it was submitted");
            return Err((Rule::Money, detail));
        }
        let under_way: u64 = self.open.values().filter_map(|call| call.written).sum();
        let prior = self.prior.filter(|_| knows_prior).unwrap_or(0);
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

    pub(super) fn on_ended(&mut self, ended: &Ended) {
        let Some(call) = self.open.remove(&ended.operation) else {
            return;
        };
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

/// A billion times as much. Prices here are short decimals.
pub(super) fn nanos(usd: f64) -> u64 {
    (usd * 1e9).round() as u64
}

#[cfg(test)]
mod tests;
