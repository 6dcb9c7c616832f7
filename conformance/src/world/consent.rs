//! Tools that wait for the application's consent (R21): what is in force, and what is called.

use std::collections::BTreeMap;

use mcp_proto::peer::QuarantinedTool;
use mcp_proto::types::Tool;
use mcp_proto::{Client, Config, PeerConfig};
use serde_json::Value;

use super::breach::{Broken, Rule};

/// What the application trusts, of servers with `pinTools`.
#[derive(Debug)]
pub(super) struct Consent {
    /// `None` where nothing is pinned.
    peers: Vec<Option<Pinned>>,
    /// When the requests of a stamp were last given a reason to be written.
    caused: BTreeMap<u64, u64>,
    moment: u64,
    /// Calls that were written since the last look, by peer and tool.
    suspects: Vec<(usize, String)>,
}

/// What is pinned of one server.
#[derive(Debug, Default)]
struct Pinned {
    name: String,
    /// Descriptors by tool: those that were in force first, and those that were accepted since.
    trusted: Option<BTreeMap<String, Value>>,
    /// Tools that are quarantined, and since which moment without interruption.
    since: BTreeMap<String, u64>,
    /// The manifest that was looked at last.
    seen: Option<String>,
}

impl Consent {
    pub(super) fn new(config: &Config) -> Self {
        let pinned = |peer: &PeerConfig| Pinned {
            name: peer.name.clone(),
            ..Pinned::default()
        };
        let peers = config.peers.iter();
        Self {
            peers: peers
                .map(|peer| peer.pin_tools.then(|| pinned(peer)))
                .collect(),
            caused: BTreeMap::new(),
            moment: 0,
            suspects: Vec::new(),
        }
    }

    /// The application wants something of this stamp: it submits, answers or decides.
    pub(super) fn on_wanted(&mut self, stamp: u64) {
        self.caused.insert(stamp, self.moment);
    }

    /// The application has accepted these.
    pub(super) fn on_accepted(&mut self, tools: &[QuarantinedTool]) {
        for accepted in tools {
            let mut pinned = self.peers.iter_mut().flatten();
            if let Some(pinned) = pinned.find(|pinned| pinned.name == accepted.peer) {
                pinned.accept(&accepted.tool);
            }
        }
    }

    /// A call is written. It is suspect if its tool was quarantined when it was asked for, and is ever since.
    pub(super) fn on_called(&mut self, stamp: u64, peer: usize, tool: &str) {
        let Some(Some(pinned)) = self.peers.get(peer) else {
            return;
        };
        if let (Some(since), Some(caused)) = (pinned.since.get(tool), self.caused.get(&stamp))
            && since <= caused
        {
            self.suspects.push((peer, tool.to_owned()));
        }
    }

    /// What the client has heard last may have set a suspected tool free.
    fn convict(&mut self) -> Result<(), Broken> {
        for (peer, tool) in std::mem::take(&mut self.suspects) {
            if let Some(Some(pinned)) = self.peers.get(peer)
                && pinned.since.contains_key(&tool)
            {
                let detail = format!("a call of {}/{tool}, which is quarantined", pinned.name);
                return Err((Rule::Consent, detail));
            }
        }
        Ok(())
    }

    /// Looks at what is in force and what is quarantined, whenever the client has been drained.
    pub(super) fn look(&mut self, client: &Client) -> Result<(), Broken> {
        self.moment += 1;
        for (peer, pinned) in client.peers().zip(&mut self.peers) {
            let Some(pinned) = pinned else {
                continue;
            };
            let before = std::mem::take(&mut pinned.since);
            for quarantined in peer.quarantined_tools() {
                let name = quarantined.tool.name();
                let since = before.get(name).copied().unwrap_or(self.moment);
                pinned.since.insert(name.to_owned(), since);
            }
            if peer.manifest_digest() != pinned.seen.as_deref() {
                pinned.seen = peer.manifest_digest().map(str::to_owned);
                pinned.judge(peer.tools())?;
            }
        }
        self.convict()
    }
}

impl Pinned {
    fn accept(&mut self, tool: &Tool) {
        self.since.remove(tool.name());
        let trusted = self.trusted.get_or_insert_default();
        trusted.insert(tool.name().to_owned(), descriptor(tool));
        self.seen = None;
    }

    /// These tools are in force: none that is new or another one than was accepted.
    fn judge(&mut self, tools: &[Tool]) -> Result<(), Broken> {
        let tools = tools.iter();
        let tools = tools.map(|tool| (tool.name().to_owned(), descriptor(tool)));
        let Some(trusted) = &self.trusted else {
            self.trusted = Some(tools.collect());
            return Ok(());
        };
        for (name, now) in tools {
            if trusted.get(&name) != Some(&now) {
                let before = trusted.get(&name);
                let detail = format!(
                    "{}/{name} is in force as {now}, after {before:?}",
                    self.name
                );
                return Err((Rule::Consent, detail));
            }
        }
        Ok(())
    }
}

/// Equal values are one descriptor, however they are written.
fn descriptor(tool: &Tool) -> Value {
    let text = serde_json::to_string(tool).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

#[cfg(test)]
mod tests;
