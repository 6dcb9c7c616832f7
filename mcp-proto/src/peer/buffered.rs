//! How much a peer holds of what came and of what waits to leave (R1).

use super::Peer;
use super::active::Stage;
use crate::operation::Notification;

/// Bytes that a peer holds for a while, by what bounds them. A diagnostic: counting looks at everything.
///
/// What was installed (manifest, cache) is not counted here: it has bounds of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BufferedBytes {
    /// Output of the server that is not a whole line yet, and requests of it that cannot be answered yet.
    /// At most `line_bytes` a link, and 4 KiB.
    pub incoming: usize,
    /// Messages that wait to be written. Answers to the server are refused beyond `line_bytes`; the rest is
    /// what the application asked for.
    pub outgoing: usize,
    /// Methods and parameters of notifications that were not taken. The link is not read beyond
    /// `line_bytes` of parameters, or beyond the limit on their number.
    pub notifications: usize,
    /// Standard error and noise, at most twice the limits on their tails; that on standard error holds for
    /// each link.
    pub tails: usize,
}

impl BufferedBytes {
    /// All of it.
    #[must_use]
    pub const fn total(&self) -> usize {
        self.incoming
            .saturating_add(self.outgoing)
            .saturating_add(self.notifications)
            .saturating_add(self.tails)
    }
}

impl Peer {
    /// What is held now.
    #[must_use]
    pub fn buffered_bytes(&self) -> BufferedBytes {
        let links = || self.fading.iter().chain(&self.link);
        let framed = links().filter_map(|link| link.framer.as_ref());
        let early = self.early_requests.iter();
        let queues = self.operations.values().map(|active| match &active.stage {
            Stage::Listening(listening) => sum(listening.queue.iter().map(notification_bytes)),
            _ => 0,
        });
        BufferedBytes {
            incoming: sum(framed.map(|framer| framer.buffered_bytes()))
                .saturating_add(sum(early.map(|(id, method)| id.len() + method.len()))),
            outgoing: sum(links().map(|link| link.outbox.queued_bytes())),
            notifications: sum(queues).saturating_add(self.unread.buffered_bytes()),
            tails: sum(links().map(|link| link.stderr.buffered_bytes()))
                .saturating_add(self.noise.buffered_bytes()),
        }
    }
}

/// The size of a notification that waits: its method and its parameters.
pub(crate) fn notification_bytes(notification: &Notification) -> usize {
    let params = notification.params.as_ref();
    let params = params.map_or(0, |params| params.as_str().len());
    notification.method.len().saturating_add(params)
}

fn sum(parts: impl Iterator<Item = usize>) -> usize {
    parts.fold(0, usize::saturating_add)
}
