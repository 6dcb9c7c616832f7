//! What the client owes its servers: word that a call is no longer waited for (R40), and an end to starting
//! them again (R90).

use std::collections::BTreeSet;

use mcp_proto::{Duration, Ended, ErrorKind, Instant, LinkId, Outcome, PeerConfig, Ran, Reply};

use super::border::{Border, Life};
use super::breach::{Broken, Rule};

/// One attempt opens several links at most: the era may have to be found out in another life.
const LINKS_PER_ATTEMPT: u32 = 3;

/// How often a peer is started in a row.
#[derive(Debug)]
pub(super) struct Starts {
    most: u32,
    /// A life of this length ends the row.
    well: Duration,
    row: u32,
    opened: Instant,
}

impl Starts {
    pub(super) fn new(peer: &PeerConfig) -> Self {
        Self {
            most: (peer.restart.max_attempts + 1) * LINKS_PER_ATTEMPT,
            well: peer.restart.backoff_max.max(peer.restart.backoff),
            row: 0,
            opened: Instant::ZERO,
        }
    }

    /// A link is asked for.
    pub(super) fn on_open(&mut self, now: Instant) -> Result<(), Broken> {
        if now.since(self.opened) >= self.well {
            self.row = 0;
        }
        self.row += 1;
        self.opened = now;
        if self.row > self.most {
            return Err((
                Rule::Restart,
                format!("started {} times in a row", self.row),
            ));
        }
        Ok(())
    }
}

/// Calls that ended although their requests had been written, and where these went.
pub(super) type Owed = BTreeSet<(LinkId, u64)>;

impl Border {
    /// An operation has ended by itself or at the application's wish: its request, if it is on its way, has
    /// to be cancelled.
    pub(super) fn on_abandoned(&mut self, stamp: u64, ended: &Ended) {
        let gave_up = match &ended.outcome {
            Outcome::Failed(error) => {
                let kinds = [
                    ErrorKind::Cancelled,
                    ErrorKind::Timeout,
                    ErrorKind::StreamDropped,
                    ErrorKind::RetryRefused,
                ];
                kinds.contains(&error.kind()) && error.ran == Ran::Maybe
            }
            Outcome::Complete(Reply::Stream(stream)) => stream.cancelled,
            _ => false,
        };
        if let Some((link, id)) = self.calls.get(&stamp).filter(|_| gave_up) {
            self.owed.insert((*link, *id));
        }
    }

    /// Judged when the client has been drained: what is owed leaves with the next write.
    pub(super) fn check_owed(&mut self) -> Result<(), Broken> {
        let mut missing = None;
        let links = &self.links;
        self.owed.retain(|(link, id)| {
            let record = links.get(link);
            let Some(record) = record.filter(|record| record.life == Life::Open) else {
                return false;
            };
            if record.conversation.is_over(*id) {
                return false;
            }
            if !record.conversation.is_blocked() {
                missing = Some((*link, *id));
            }
            true
        });
        match missing {
            None => Ok(()),
            Some((link, id)) => {
                let detail = format!("request {id} on {link} is not waited for, nor cancelled");
                Err((Rule::Cancelled, detail))
            }
        }
    }
}
