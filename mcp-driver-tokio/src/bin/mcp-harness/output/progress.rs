//! Progress on standard error.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::{note, one_line};
use crate::session::Progress;

/// The bar has so many steps, because progress is a fraction of any total.
const STEPS: u64 = 1_000;
const TICK: Duration = Duration::from_millis(100);

/// A bar on a terminal, a line for each report elsewhere. It disappears when it is dropped.
pub(crate) struct Bar(Option<ProgressBar>);

impl Bar {
    pub(crate) fn new() -> Self {
        Self(io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::no_length();
            bar.enable_steady_tick(TICK);
            bar
        }))
    }

    pub(crate) fn show(&self, update: &Progress) {
        let said = update.message.as_deref().map(one_line).unwrap_or_default();
        let Some(bar) = &self.0 else {
            let total = update.total.map(|total| format!("/{total}"));
            let line = format!("{}{} {said}", update.progress, total.unwrap_or_default());
            return note("progress", &line);
        };
        if let Some(total) = update.total.filter(|total| *total > 0.0) {
            if bar.length().is_none() {
                bar.set_length(STEPS);
                // A template that is a constant and valid; without it the bar looks plain.
                if let Ok(style) = ProgressStyle::with_template("{bar:40} {percent:>3}% {msg}") {
                    bar.set_style(style);
                }
            }
            let fraction = (update.progress / total).clamp(0.0, 1.0);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to STEPS
            bar.set_position((fraction * STEPS as f64) as u64);
        }
        bar.set_message(said);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
