//! The link that is in use and those that are going down, and what is told of them.

use super::Peer;
use crate::event::Event;
use crate::ids::LinkId;
use crate::stdio::LinkNews;
use crate::time::Instant;

impl Peer {
    pub(super) fn on_link(&mut self, link: LinkId, event: Event<'_>, now: Instant) {
        let mut known = self.link.iter().chain(&self.fading);
        if known.any(|known| known.id == link) {
            self.reach(now);
        }
        if matches!(event, Event::LinkEnded { .. }) {
            self.on_output_end(link, now);
        }
        if let Some(current) = self.link.as_mut().filter(|current| current.id == link) {
            let news = current.handle(event, now, &mut self.actions);
            self.on_link_news(news, now);
        } else if let Some(old) = self.fading.iter_mut().find(|old| old.id == link) {
            let _ = old.handle(event, now, &mut self.actions);
            self.sweep();
        }
    }

    pub(super) fn on_link_news(&mut self, news: LinkNews, now: Instant) {
        match news {
            LinkNews::Nothing => {}
            LinkNews::Opened => self.on_opened(now),
            LinkNews::Failed(failure) => self.on_open_failed(failure, now),
            LinkNews::Lost(reason) => self.on_lost(reason, now),
            LinkNews::Released => self.link = None,
        }
    }

    /// Lets go of links that are released.
    pub(super) fn sweep(&mut self) {
        if let Some(released) = self.fading.iter().rfind(|old| old.is_released()) {
            self.last_stderr = released.stderr_lines();
        }
        self.fading.retain(|old| !old.is_released());
    }
}
