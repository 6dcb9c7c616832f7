//! Tools that wait for the application's consent (R21).
//!
//! The first manifest is what the application trusts when it connects. With `pinTools` a descriptor that is
//! new or another one afterwards is not offered and not called until it is accepted. Its name stays taken, so
//! that no other server's tool slips into its place meanwhile.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::Peer;
use crate::error::{Cause, Error};
use crate::manifest::{self, Installed, List};
use crate::operation::News;
use crate::types::Tool;

/// A tool that is not called until it is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuarantinedTool {
    /// The configured name of its server.
    pub peer: String,
    /// The descriptor that is to be accepted.
    pub tool: Tool,
    /// The digest of that descriptor.
    pub digest: String,
    /// Whether there was no accepted tool of this name before; else it is another one by now.
    pub is_new: bool,
}

/// What was accepted, and what was not yet.
#[derive(Debug, Default)]
pub(super) struct Pins {
    /// Digests by name, once there was a first manifest.
    accepted: Option<BTreeMap<String, String>>,
    quarantined: BTreeMap<String, Tool>,
}

impl Pins {
    pub(super) fn holds(&self, tool: &str) -> bool {
        self.quarantined.contains_key(tool)
    }

    /// Why the tool may not be called.
    fn refusal(&self, tool: &Tool) -> Option<String> {
        let accepted = self.accepted.as_ref()?.get(tool.name());
        let what = match accepted {
            None => "new",
            Some(digest) if *digest != manifest::entry_digest(tool) => "another one by now",
            Some(_) => return None,
        };
        Some(format!(
            "it is {what}, and quarantined until it is accepted"
        ))
    }
}

impl Peer {
    /// Puts a list in force, but for what waits for consent; whether anything is quarantined that was not,
    /// or not any more.
    pub(super) fn install_pinned(&mut self, list: List<Tool>) -> (Installed, bool) {
        if !self.config.pin_tools {
            return (self.manifest.install(list, |_| None), false);
        }
        let pins = &self.pins;
        let mut quarantined = BTreeMap::new();
        let installed = self.manifest.install(list, |tool| {
            let refusal = pins.refusal(tool);
            if refusal.is_some() {
                quarantined.insert(tool.name().to_string(), tool.clone());
            }
            refusal
        });
        if installed == Installed::Superseded {
            return (installed, false);
        }
        let tools = self.manifest.tools().iter();
        self.pins.accepted.get_or_insert_with(|| {
            tools
                .map(|tool| (tool.name().to_string(), manifest::entry_digest(tool)))
                .collect()
        });
        let differs = self.pins.quarantined != quarantined;
        self.pins.quarantined = quarantined;
        (installed, differs)
    }

    /// The tools that are not called until they are accepted (`pinTools`), sorted by name.
    pub fn quarantined_tools(&self) -> impl Iterator<Item = QuarantinedTool> {
        let accepted = self.pins.accepted.as_ref();
        self.pins.quarantined.iter().map(move |(name, tool)| {
            let is_known = accepted.is_some_and(|accepted| accepted.contains_key(name));
            QuarantinedTool {
                peer: self.config.name.clone(),
                tool: tool.clone(),
                digest: manifest::entry_digest(tool),
                is_new: !is_known,
            }
        })
    }

    /// Their names.
    pub(crate) fn quarantined_names(&self) -> impl Iterator<Item = &str> {
        self.pins.quarantined.keys().map(String::as_str)
    }

    /// Accepts tools as they are now, by the server's own names, or all that are quarantined; what was
    /// accepted comes back. See [`Client::accept_tools`](crate::Client::accept_tools).
    ///
    /// # Errors
    /// [`Cause::Usage`]: a tool of some name is not quarantined; none was accepted then.
    pub fn accept_tools(&mut self, names: Option<&[&str]>) -> Result<Vec<QuarantinedTool>, Error> {
        if let Some(unknown) = names
            .unwrap_or_default()
            .iter()
            .find(|name| !self.pins.holds(name))
        {
            let message = format!("no tool named {unknown:?} is quarantined");
            return Err(self.error(Cause::Usage(message)));
        }
        let chosen =
            |tool: &QuarantinedTool| names.is_none_or(|names| names.contains(&tool.tool.name()));
        let accepting: Vec<_> = self.quarantined_tools().filter(chosen).collect();
        for QuarantinedTool { tool, digest, .. } in &accepting {
            self.pins.quarantined.remove(tool.name());
            let accepted = self.pins.accepted.get_or_insert_default();
            accepted.insert(tool.name().to_string(), digest.clone());
            self.manifest.admit(tool.clone());
        }
        if !accepting.is_empty() {
            self.deliver(News::PeerChanged { peer: self.id });
        }
        Ok(accepting)
    }
}
