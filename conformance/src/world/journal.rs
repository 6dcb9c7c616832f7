//! What happened, kept cheaply and rendered when somebody looks.

use mcp_proto::{Instant, LinkId};

use super::transcript::abbreviate;

/// Which way a line went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    ToServer,
    ToClient,
}

#[derive(Debug)]
enum What {
    Said(String),
    Lines(Way, Vec<u8>),
}

#[derive(Debug)]
struct Entry {
    at: Instant,
    link: Option<LinkId>,
    what: What,
}

#[derive(Debug)]
pub(super) struct Journal {
    names: Vec<String>,
    entries: Vec<Entry>,
}

impl Journal {
    pub(super) const fn new(names: Vec<String>) -> Self {
        Self {
            names,
            entries: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, at: Instant, link: Option<LinkId>, line: String) {
        let what = What::Said(line);
        self.entries.push(Entry { at, link, what });
    }

    pub(super) fn add_lines(&mut self, at: Instant, link: LinkId, way: Way, bytes: &[u8]) {
        let (link, what) = (Some(link), What::Lines(way, bytes.to_vec()));
        self.entries.push(Entry { at, link, what });
    }

    /// The entries of chosen links as text. Serial 0 stands for the peer as a whole.
    pub(super) fn render(&self, choose: impl Fn(Option<LinkId>) -> bool) -> String {
        let mut text = String::new();
        for entry in self.entries.iter().filter(|entry| choose(entry.link)) {
            match &entry.what {
                What::Said(said) => self.push(&mut text, entry, said),
                What::Lines(way, bytes) => {
                    let arrow = if *way == Way::ToServer { "⇒" } else { "⇐" };
                    for line in bytes.split(|byte| *byte == b'\n') {
                        if !line.is_empty() {
                            self.push(&mut text, entry, &format!("{arrow} {}", abbreviate(line)));
                        }
                    }
                }
            }
        }
        text
    }

    fn push(&self, text: &mut String, entry: &Entry, said: &str) {
        let millis = entry.at.as_nanos() / 1_000_000;
        let name = |link: LinkId| {
            self.names
                .get(link.peer.index())
                .map_or("?", String::as_str)
        };
        let link = match entry.link {
            None => String::new(),
            Some(link) if link.serial == 0 => format!("{} ", name(link)),
            Some(link) => format!("{}.{} ", name(link), link.serial),
        };
        let (seconds, millis) = (millis / 1_000, millis % 1_000);
        text.push_str(&format!("{seconds}.{millis:03} {link}{said}\n"));
    }
}
