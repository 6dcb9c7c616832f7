//! What is due when: the next wake-up of a peer, and what passes with time.

use super::Peer;
use crate::stdio::Link;
use crate::time::Instant;

/// How many operations are looked at for the next deadline with every message.
const FEW: usize = 8;

impl Peer {
    pub(super) fn on_time(&mut self, now: Instant) {
        if self.wake.is_none_or(|wake| now < wake) {
            return;
        }
        self.reach(now);
        for old in &mut self.fading {
            let _ = old.on_time(now, &mut self.actions);
        }
        self.sweep();
        if let Some(link) = &mut self.link {
            let news = link.on_time(now, &mut self.actions);
            self.on_link_news(news, now);
        }
        self.expire_negotiation(now);
        if self.recovery.begin(now) {
            self.start_connecting(now);
        }
        self.retry_silent_rounds(now);
        self.expire_streams(now);
        self.expire_operations(now);
        self.rearm();
    }

    /// Hands out what can be written and names the next deadline.
    pub(super) fn flush(&mut self) {
        self.flush_link();
        // With many operations the earliest deadline is only kept as a lower bound until it passes:
        // looking at all of them for each message would cost more than an early wake-up.
        if self.operations.len() <= FEW || self.wake.is_none() {
            self.rearm();
        } else if let Some(deadline) = self.own_deadline() {
            self.arm(deadline);
        }
    }

    pub(super) fn flush_link(&mut self) {
        if let Some(link) = &mut self.link {
            link.flush(&mut self.actions);
        }
    }

    /// Sets the wake-up to the earliest of all deadlines.
    pub(super) fn rearm(&mut self) {
        let operations = self.operations.values().filter_map(|active| active.due());
        self.wake = operations.chain(self.own_deadline()).min();
    }

    /// The earliest deadline that is no operation's: of links, of the negotiation and of the next start.
    fn own_deadline(&self) -> Option<Instant> {
        let links = self.fading.iter().chain(&self.link);
        links
            .filter_map(Link::deadline)
            .chain(self.negotiation_deadline())
            .chain(self.recovery.due())
            .min()
    }

    /// Takes a new deadline into account.
    pub(super) fn arm(&mut self, deadline: Instant) {
        self.wake = Some(self.wake.map_or(deadline, |wake| wake.min(deadline)));
    }
}
