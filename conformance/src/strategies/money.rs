//! Generated prices, budgets and ledgers (R50).
//!
//! All amounts are eighths of a dollar, so that a judge may count in floating point.

use mcp_proto::cost::{CostReading, NanoUsd};
use mcp_proto::{Config, PeerConfig};

use crate::world::{Choice, LedgerFault, World, pick};

/// An eighth of a dollar.
const EIGHTH: u64 = 125_000_000;

/// The task of generated clients, for which the lines below count.
const TASK: &str = "t-1";

/// What may stand in a ledger, whole lines and damaged ones.
const LINES: [&str; 12] = [
    "{\"task\":\"t-1\",\"usd\":0.25}\n",
    "{\"task\":\"t-1\",\"usd\":1,\"server\":\"a\",\"tool\":\"echo\"}\n",
    "{\"task\":\"t-2\",\"usd\":9}\n",
    "{\"usd\":3}\n",
    "{\"task\":\"t-1\",\"usd\":0.125}\r\n",
    "\n",
    "no JSON at all\n",
    "{\"task\":\"t-1\",\"us\n",
    "{\"task\":\"t-1\",\"usd\":-4}\n",
    "{\"task\":\"t-1\"}\n",
    "{\"task\":1,\"usd\":1}\n",
    "{\"task\":\"t-1\",\"usd\":0.25}",
];

/// What calls of this peer cost: nothing that is known, or something.
pub(super) fn price(choice: &mut dyn Choice, peer: &mut PeerConfig) {
    let amounts = [None, Some(2), Some(1), Some(0), Some(8)];
    let amount = |eighths: u64| NanoUsd::from_nanos(eighths * EIGHTH);
    peer.cost = pick(choice, &amounts).map(amount);
    if let Some(own) = *pick(choice, &amounts) {
        peer.tool_costs.insert("talk".into(), amount(own));
    }
}

/// What the application says that one call costs, where it says anything.
pub(super) fn own_price(choice: &mut dyn Choice) -> Option<CostReading> {
    let prices = [0.25, 0.0, 1.5, -1.0, f64::NAN];
    choice.one_in(8).then(|| (*pick(choice, &prices)).into())
}

/// The ledger's file of a generated world.
#[derive(Clone, Debug, Default)]
pub struct LedgerFile {
    contents: Option<String>,
    fault: Option<LedgerFault>,
}

impl LedgerFile {
    /// The world with this file.
    #[must_use]
    pub fn put_in(self, world: World) -> World {
        let world = match self.contents {
            Some(contents) => world.with_ledger(contents),
            None => world,
        };
        match self.fault {
            Some(fault) => world.with_ledger_fault(fault),
            None => world,
        }
    }
}

/// A configuration of these peers: with or without a budget and a ledger, whatever stands in that.
pub fn config(choice: &mut dyn Choice, peers: Vec<PeerConfig>) -> (Config, LedgerFile) {
    let mut config = Config::new(peers);
    let mut file = LedgerFile::default();
    let harness = &mut config.harness;
    harness.task_id = Some(TASK.into());
    if choice.one_in(3) {
        let eighths = *pick(choice, &[80, 8, 4, 1, 0]);
        harness.budget = Some(NanoUsd::from_nanos(eighths * EIGHTH));
    }
    if choice.one_in(2) {
        harness.ledger = Some("spend.jsonl".into());
        file.fault = match choice.choose(8) {
            3 => Some(LedgerFault::Unreadable),
            4 => Some(LedgerFault::Torn),
            5 => Some(LedgerFault::Full),
            6 => Some(LedgerFault::Flaky),
            7 => Some(LedgerFault::Stuck),
            _ => None,
        };
        file.contents = choice.one_in(2).then(|| {
            let count = choice.choose(5);
            (0..count).map(|_| *pick(choice, &LINES)).collect()
        });
    }
    (config, file)
}
