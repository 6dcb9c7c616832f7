//! Structured results against output schemas (R63): of the generated tools it is known what fits.

use std::collections::{BTreeMap, BTreeSet};

use mcp_proto::types::{CallToolResult, OutputCheck};
use mcp_proto::{Config, Ended, Operation, OperationId, Outcome, Reply};
use serde_json::Value;

use super::breach::{Broken, Rule};

/// The one tool with a schema that can be used: an object whose `n` is an integer.
const SUMS: &str = "sums";

/// Who wants results to be validated.
#[derive(Debug)]
pub(super) struct Outputs {
    /// By name of the peer: whether it is configured, and whether its list decides what is called.
    peers: BTreeMap<String, (bool, bool)>,
    /// Peers that have listed tools without [`SUMS`] among them.
    without: BTreeSet<usize>,
    names: Vec<String>,
    wanted: BTreeMap<OperationId, bool>,
}

impl Outputs {
    pub(super) fn new(config: &Config) -> Self {
        let peers = config.peers.iter();
        Self {
            peers: peers
                .map(|peer| {
                    let trusts_list = peer.validate_capabilities && !peer.pin_tools;
                    (peer.name.clone(), (peer.validate_output, trusts_list))
                })
                .collect(),
            without: BTreeSet::new(),
            names: config.peers.iter().map(|peer| peer.name.clone()).collect(),
            wanted: BTreeMap::new(),
        }
    }

    pub(super) fn on_accepted(&mut self, id: OperationId, operation: &Operation) {
        self.wanted.insert(id, operation.options.validate_output);
    }

    /// A server lists these tools, or some of them.
    pub(super) fn on_listed(&mut self, peer: usize, tools: &Value) {
        let tools = tools.as_array();
        if !tools.is_some_and(|tools| tools.iter().any(|tool| tool["name"] == SUMS)) {
            self.without.insert(peer);
        }
    }

    /// What a result says of its check is true, and nothing is said where nothing was wanted.
    pub(super) fn on_ended(&mut self, ended: &Ended) -> Result<(), Broken> {
        let wanted = self.wanted.remove(&ended.operation).unwrap_or(false);
        let result = match &ended.outcome {
            Outcome::Complete(Reply::Call(result)) => result,
            Outcome::Complete(Reply::Stream(stream)) => match &stream.answer {
                Some(answer) => answer,
                None => return Ok(()),
            },
            _ => return Ok(()),
        };
        let name = ended.peer.as_deref().unwrap_or_default();
        let (configured, trusts_list) = self.peers.get(name).copied().unwrap_or_default();
        let wanted = wanted || configured;
        let index = self.names.iter().position(|other| other == name);
        let surely = trusts_list && index.is_some_and(|index| !self.without.contains(&index));
        let checkable = wanted && !result.is_error && ended.tool.as_deref() == Some(SUMS);
        let right = match &result.output_check {
            OutputCheck::Unasked => !wanted || result.is_error,
            OutputCheck::Fits => checkable && fits(result),
            OutputCheck::Mismatch(_) => checkable && !fits(result),
            OutputCheck::Impossible(_) => wanted && !result.is_error && !(checkable && surely),
            _ => false,
        };
        if right {
            return Ok(());
        }
        let (structured, check) = (&result.structured_content, &result.output_check);
        let detail = format!("{:?}: {structured:?} and {check:?}", ended.tool);
        Err((Rule::Output, detail))
    }
}

fn fits(result: &CallToolResult) -> bool {
    let structured = result.structured_content.as_ref();
    let structured = structured.map(|json| serde_json::from_str::<Value>(json.as_str()));
    matches!(structured, Some(Ok(value)) if value["n"].is_i64())
}

#[cfg(test)]
mod tests;
