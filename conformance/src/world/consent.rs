//! Tools that wait for the application's consent (R21): what is offered, and what is called.

use std::collections::BTreeMap;

use mcp_proto::peer::QuarantinedTool;
use mcp_proto::types::Tool;
use mcp_proto::{Client, Config, Ended, Outcome, Reply};
use serde_json::Value;

use super::breach::{Broken, Rule};

/// What the application was shown and has accepted, of servers with `pinTools`.
#[derive(Debug)]
pub(super) struct Consent {
    /// Their names; `None` where nothing is pinned.
    peers: Vec<Option<String>>,
    /// Descriptors by peer and tool: the one that was offered first, or the last that was accepted.
    trusted: BTreeMap<(String, String), Value>,
    /// Tools that are quarantined, and since which moment without interruption.
    since: BTreeMap<(String, String), u64>,
    /// When the requests of a stamp were last given a reason to be written.
    caused: BTreeMap<u64, u64>,
    moment: u64,
}

impl Consent {
    pub(super) fn new(config: &Config) -> Self {
        let peers = config.peers.iter();
        Self {
            peers: peers
                .map(|peer| peer.pin_tools.then(|| peer.name.clone()))
                .collect(),
            trusted: BTreeMap::new(),
            since: BTreeMap::new(),
            caused: BTreeMap::new(),
            moment: 0,
        }
    }

    fn is_needed(&self) -> bool {
        self.peers.iter().any(Option::is_some)
    }

    /// The application wants something of this stamp: it submits, answers or decides.
    pub(super) fn on_wanted(&mut self, stamp: u64) {
        self.caused.insert(stamp, self.moment);
    }

    /// The application has accepted these.
    pub(super) fn on_accepted(&mut self, tools: &[QuarantinedTool]) {
        for accepted in tools {
            let name = (accepted.peer.clone(), accepted.tool.name().to_owned());
            self.since.remove(&name);
            self.trusted.insert(name, descriptor(&accepted.tool));
        }
    }

    /// A call is written: not of a tool that was quarantined when it was asked for, and is ever since.
    pub(super) fn on_called(&self, stamp: u64, peer: usize, tool: &str) -> Result<(), Broken> {
        let Some(Some(peer)) = self.peers.get(peer) else {
            return Ok(());
        };
        let since = self.since.get(&(peer.clone(), tool.to_owned()));
        match (since, self.caused.get(&stamp)) {
            (Some(since), Some(caused)) if since <= caused => Err((
                Rule::Consent,
                format!("a call of {peer}/{tool}, which is quarantined"),
            )),
            _ => Ok(()),
        }
    }

    /// What is offered is what was offered before, unless another one was accepted.
    pub(super) fn on_ended(&mut self, ended: &Ended) -> Result<(), Broken> {
        let Outcome::Complete(Reply::Tools(offered)) = &ended.outcome else {
            return Ok(());
        };
        for listed in offered {
            let Some(Some(peer)) = self.peers.get(listed.peer.index()) else {
                continue;
            };
            let name = (peer.clone(), listed.item.name().to_owned());
            let (now, shown) = (descriptor(&listed.item), format!("{}/{}", name.0, name.1));
            let trusted = self.trusted.entry(name).or_insert_with(|| now.clone());
            if *trusted != now {
                let detail = format!("{shown} is offered as {now}, and {trusted} was accepted");
                return Err((Rule::Consent, detail));
            }
        }
        Ok(())
    }

    /// Looks at what is quarantined, whenever the client has been drained.
    pub(super) fn look(&mut self, client: &Client) {
        if !self.is_needed() {
            return;
        }
        self.moment += 1;
        let before = std::mem::take(&mut self.since);
        for tool in client.quarantined_tools() {
            let name = (tool.peer, tool.tool.name().to_owned());
            let since = before.get(&name).copied().unwrap_or(self.moment);
            self.since.insert(name, since);
        }
    }
}

/// Equal values are one descriptor, however they are written.
fn descriptor(tool: &Tool) -> Value {
    let text = serde_json::to_string(tool).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

#[cfg(test)]
mod tests;
