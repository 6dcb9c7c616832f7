//! Tools that wait for the application's consent (R21): what is in force, and what is called.

use std::collections::{BTreeMap, BTreeSet};

use mcp_proto::peer::QuarantinedTool;
use mcp_proto::types::Tool;
use mcp_proto::{Client, Config, LinkId, PeerConfig};
use serde_json::Value;

use super::breach::{Broken, Rule};

/// What a write carries at most; what goes beyond that follows with the next one.
const WRITE_BYTES: usize = 64 << 10;

/// What the application trusts, of servers with `pinTools`.
#[derive(Debug)]
pub(super) struct Consent {
    /// `None` where nothing is pinned.
    peers: Vec<Option<Pinned>>,
    /// When the requests of a stamp were last given a reason to be written.
    caused: BTreeMap<u64, u64>,
    /// How often it was looked.
    moment: u64,
    /// The last write of each link.
    handed: BTreeMap<LinkId, Handed>,
    /// Links whose outstanding write is done since the last look.
    credited: BTreeSet<LinkId>,
    /// How many lists each peer has given since then.
    lists: BTreeMap<usize, u32>,
    /// Calls that were written since the last look, by peer and tool.
    suspects: Vec<(usize, String)>,
}

/// The last write of a link.
#[derive(Debug)]
struct Handed {
    moment: u64,
    /// Before that moment nothing of it waited for its turn to be written.
    waited: u64,
    bytes: usize,
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
            handed: BTreeMap::new(),
            credited: BTreeSet::new(),
            lists: BTreeMap::new(),
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

    /// An outstanding write is done: what has waited for that is written now, or never.
    pub(super) fn on_credit(&mut self, link: LinkId) {
        self.credited.insert(link);
    }

    /// A server gives a list of its tools, or a part of it.
    pub(super) fn on_listed(&mut self, peer: usize) {
        *self.lists.entry(peer).or_default() += 1;
    }

    /// So many bytes are written. They were made up just now, unless a write was outstanding until now: then
    /// since that one, or earlier if that one had no room for them.
    pub(super) fn on_write(&mut self, link: LinkId, bytes: usize) {
        let moment = self.moment;
        let before = self.handed.get(&link);
        let waited = match before.filter(|_| self.credited.contains(&link)) {
            Some(before) if before.bytes + bytes > WRITE_BYTES => before.waited,
            Some(before) => before.moment,
            None => moment,
        };
        let handed = Handed {
            moment,
            waited,
            bytes,
        };
        self.handed.insert(link, handed);
    }

    /// A call is among what is written. It is suspect if its tool was quarantined before it was asked for or
    /// may have been made up, and is ever since. Of several lists at once one may have set it free.
    pub(super) fn on_called(&mut self, stamp: u64, link: LinkId, tool: &str) {
        let peer = link.peer.index();
        let waited = self.handed.get(&link).map(|handed| handed.waited);
        // Once more it is made up after this.
        let caused = self.caused.insert(stamp, self.moment);
        let Some(Some(pinned)) = self.peers.get(peer) else {
            return;
        };
        let several = self.lists.get(&peer).is_some_and(|lists| *lists > 1);
        let since = pinned.since.get(tool).copied();
        if since.is_some_and(|since| Some(since) <= waited.max(caused)) && !several {
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

    /// Looks at what is in force and what is quarantined, whenever the client has been drained and has done
    /// something or heard a list.
    pub(super) fn look(&mut self, client: &Client, acted: bool) -> Result<(), Broken> {
        self.credited.clear();
        if std::mem::take(&mut self.lists).is_empty() && !acted {
            return Ok(());
        }
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
