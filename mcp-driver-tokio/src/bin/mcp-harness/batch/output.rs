//! The one writer of standard output.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use mcp_proto::wire::ObjectWriter;
use mcp_proto::{Notification, Outcome};

use super::job::Malformed;
use crate::output::{json, written};
use crate::session::Progress;

/// The reader has gone away.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// So long without a line written means that nobody reads, or that none is left.
const STILL: Duration = Duration::from_secs(1);

/// Whole lines, one at a time, each flushed.
#[derive(Default)]
pub(super) struct Output {
    one_at_a_time: Mutex<()>,
    written: AtomicU64,
}

impl Output {
    /// Writes one object as a line.
    pub(super) fn line(&self, write: impl FnOnce(&mut ObjectWriter<'_>)) -> Result<(), Broken> {
        let mut line = json::document(write);
        line.push(b'\n');
        let _one_at_a_time = self
            .one_at_a_time
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut out = io::stdout().lock();
        if let Err(error) = out.write_all(&line).and_then(|()| out.flush()) {
            written(Err(error));
            return Err(Broken);
        }
        self.written.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Returns when no line has been written for a while.
    pub(super) fn wait_until_still(&self) {
        let mut before = None;
        loop {
            let written = self.written.load(Ordering::Relaxed);
            if before == Some(written) {
                return;
            }
            before = Some(written);
            thread::sleep(STILL);
        }
    }

    pub(super) fn malformed(&self, number: u64, malformed: &Malformed) -> Result<(), Broken> {
        self.line(|object| {
            object.raw("id", malformed.id.as_deref().unwrap_or("null"));
            object.u64("line", number).string("outcome", "error");
            let mut error = object.object("error");
            error.string("kind", "usage");
            error.string("message", &malformed.message);
            error.string("remedy", "Correct the line; nothing was sent.");
            error.end();
        })
    }

    /// An outcome line. `extra` adds the members before those of the outcome itself.
    pub(super) fn outcome(
        &self,
        id: &str,
        started: Instant,
        outcome: &Outcome,
        is_call: bool,
        extra: impl FnOnce(&mut ObjectWriter<'_>),
    ) -> Result<(), Broken> {
        self.line(|object| {
            object.raw("id", id);
            object.string("outcome", json::outcome_word(outcome));
            let ms = started.elapsed().as_millis();
            object.u64("ms", u64::try_from(ms).unwrap_or(u64::MAX));
            extra(object);
            json::result(object, outcome, is_call);
        })
    }

    pub(super) fn progress(&self, id: &str, update: &Progress) -> Result<(), Broken> {
        self.line(|object| {
            object.raw("id", id).string("event", "progress");
            json::progress(object, update);
        })
    }

    pub(super) fn notification(&self, id: &str, news: &Notification) -> Result<(), Broken> {
        self.line(|object| {
            object.raw("id", id).string("event", "notification");
            object.string("peer", &news.peer);
            object.string("method", &news.method);
            if let Some(params) = &news.params {
                object.raw("params", params.as_str());
            }
        })
    }
}
