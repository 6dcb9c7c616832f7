//! What the client holds, and how often it wakes up for nothing: both are bounded (R1, R41).

use mcp_proto::peer::BufferedBytes;
use mcp_proto::{Client, Limits, LinkId};

use super::border::{Border, Life};
use super::breach::{Broken, Rule};

/// The bound on requests of a server that cannot be answered yet: 8 times an id and a method.
const EARLY_BYTES: usize = 8 * 2 * 256;
/// More than a request, a cancellation or a method takes beside what the application puts into it.
const MESSAGE_BYTES: usize = 2 << 10;
const METHOD_BYTES: usize = 64;
/// Of so many ended listening operations what was not taken is kept.
const UNREAD_OPERATIONS: usize = 16;

/// What bounds the buffers of one peer beside its limits.
#[derive(Debug)]
pub(super) struct Bounds {
    limits: Limits,
    /// The longest read that the client was given.
    longest_read: usize,
}

impl Bounds {
    pub(super) const fn new(limits: Limits) -> Self {
        Self {
            limits,
            longest_read: 0,
        }
    }

    /// The longest line, and the longest text of a stream.
    pub(super) const fn line_bytes(&self) -> usize {
        self.limits.line_bytes
    }

    /// What one listening operation may keep. The limits end the reading, so the last read comes on top.
    const fn unread(&self) -> usize {
        let Limits {
            line_bytes,
            notifications,
            ..
        } = self.limits;
        line_bytes + notifications * METHOD_BYTES + self.longest_read
    }

    fn most(&self, links: usize, listeners: usize, longest_request: usize) -> BufferedBytes {
        let limits = &self.limits;
        let messages = limits.in_flight + listeners + 4;
        let mut most = BufferedBytes::default();
        most.incoming = links * (limits.line_bytes + 3) + EARLY_BYTES;
        most.outgoing =
            links * (3 * limits.line_bytes + messages * (longest_request + MESSAGE_BYTES));
        most.notifications = listeners * self.unread();
        most.tails = links * 2 * limits.stderr_tail_bytes + 2 * limits.noise_tail_bytes;
        most
    }
}

impl Border {
    /// So much reaches the client without a chance to stop reading.
    pub(super) fn on_read(&mut self, link: LinkId, bytes: usize) {
        if let Some(bounds) = self.bounds.get_mut(link.peer.index()) {
            bounds.longest_read = bounds.longest_read.max(bytes);
        }
    }

    /// Judges what the client holds, whenever it has been drained.
    pub(super) fn check_buffers(&self, client: &Client) -> Result<(), Broken> {
        let (listening, ended) = self.listeners();
        let kept = ended.min(UNREAD_OPERATIONS);
        let mut left = client.buffered_bytes();
        let mut unread_max = 0;
        for (peer, bounds) in client.peers().zip(&self.bounds) {
            let links = self.links.iter();
            let links = links
                .filter(|(link, record)| link.peer == peer.id() && record.life != Life::Released);
            let most = bounds.most(links.count(), listening + kept, self.longest_request);
            let held = peer.buffered_bytes();
            let within = held.incoming <= most.incoming
                && held.outgoing <= most.outgoing
                && held.notifications <= most.notifications
                && held.tails <= most.tails;
            if !within {
                let detail = format!("{} holds {held:?}, at most {most:?}", peer.name());
                return Err((Rule::Bounded, detail));
            }
            left -= held.total();
            unread_max += (kept + listening) * bounds.unread();
        }
        if left > unread_max {
            let detail = format!("{left} bytes of notifications are kept, at most {unread_max}");
            return Err((Rule::Bounded, detail));
        }
        Ok(())
    }

    /// Time has passed for the client because it wanted to be woken; `acted` says whether anything came of
    /// it. Deadlines are lower bounds, so a wake-up may be for nothing, but not again and again.
    pub(super) fn on_wake(&mut self, acted: bool) -> Result<(), Broken> {
        self.idle_wakes = if acted { 0 } else { self.idle_wakes + 1 };
        let most = 8 + 4 * (self.bounds.len() + self.links.len() + self.pending());
        if self.idle_wakes > most {
            let detail = format!("woken {} times for nothing", self.idle_wakes);
            return Err((Rule::Timer, detail));
        }
        Ok(())
    }
}
