//! How well the servers are: numbers, and who broke the protocol.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::Client;
use crate::metrics::MetricsSnapshot;
use crate::peer::Peer;
use crate::violation::Fault;

/// A server that broke the protocol in this task (R61).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DegradedServer {
    /// Its configured name.
    pub name: String,
    /// What it did first.
    pub fault: Fault,
}

impl Client {
    /// What was counted and measured of each server (R51), since the client began.
    /// [`to_prometheus`](MetricsSnapshot::to_prometheus) makes it a page to be scraped.
    #[must_use]
    pub fn metrics(&self) -> MetricsSnapshot {
        MetricsSnapshot::new(self.peers.iter().map(Peer::metrics))
    }

    /// The servers that broke the protocol, sorted by name, each with what it did first. A server stays
    /// here for the rest of the task, which is the life of this client: whatever it does well later, and
    /// also when it is started again or cannot be (R61).
    #[must_use]
    pub fn degraded_servers(&self) -> Vec<DegradedServer> {
        let mut degraded: Vec<_> = self
            .peers
            .iter()
            .filter_map(|peer| {
                Some(DegradedServer {
                    name: peer.name().to_string(),
                    fault: peer.degraded()?.clone(),
                })
            })
            .collect();
        degraded.sort_by(|a, b| a.name.cmp(&b.name));
        degraded
    }
}
