//! Progress on standard error.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{note, one_line};
use crate::session::Progress;

/// The bar has so many steps, because progress is a fraction of any total.
const STEPS: u64 = 1_000;
const TICK: Duration = Duration::from_millis(100);
/// Where nobody knows how much there is to do.
const SPINNER: &str = "{spinner} {msg}";
const BAR: &str = "{bar:40} {percent:>3}% {msg}";

/// A bar or a spinner on a terminal, a line for each report elsewhere. It disappears when it is dropped.
pub(crate) struct Bar(Option<ProgressBar>);

impl Bar {
    pub(crate) fn new() -> Self {
        if !io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = Self::on(ProgressDrawTarget::stderr());
        bar.0.iter().for_each(|bar| bar.enable_steady_tick(TICK));
        bar
    }

    fn on(target: ProgressDrawTarget) -> Self {
        // Its style comes first: until something is reported, there is nothing to be counted.
        let bar = ProgressBar::with_draw_target(None, target);
        set_style(&bar, SPINNER);
        Self(Some(bar))
    }

    pub(crate) fn show(&self, update: &Progress) {
        let said = update.message.as_deref().map(one_line).unwrap_or_default();
        let Some(bar) = &self.0 else {
            let total = update.total.map(|total| format!("/{total}"));
            let line = format!("{}{} {said}", update.progress, total.unwrap_or_default());
            return note("progress", &line);
        };
        let Some(total) = update.total.filter(|total| *total > 0.0) else {
            set_style(bar, SPINNER);
            return bar.set_message(format!("{} {said}", update.progress).trim_end().to_owned());
        };
        let fraction = (update.progress / total).clamp(0.0, 1.0);
        // What is drawn in between is a spinner still.
        bar.set_length(STEPS);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to STEPS
        bar.set_position((fraction * STEPS as f64) as u64);
        bar.set_message(said);
        set_style(bar, BAR);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

fn set_style(bar: &ProgressBar, template: &str) {
    // A template that is a constant and valid; without it the bar looks plain.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use indicatif::TermLike;

    use super::*;

    /// Keeps all that was ever drawn.
    #[derive(Clone, Debug, Default)]
    struct Screen(Arc<Mutex<String>>);

    impl Screen {
        fn take(&self) -> String {
            std::mem::take(&mut *self.0.lock().unwrap())
        }
    }

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            80
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    fn update(progress: f64, total: Option<f64>, message: Option<&str>) -> Progress {
        Progress {
            progress,
            total,
            message: message.map(str::to_owned),
        }
    }

    /// A new bar, and what it drew for the first report.
    fn first(update: &Progress) -> (Bar, Screen, String) {
        let screen = Screen::default();
        let bar = Bar::on(ProgressDrawTarget::term_like_with_hz(
            Box::new(screen.clone()),
            255,
        ));
        bar.show(update);
        let bar_of = bar.0.as_ref().unwrap();
        bar_of.force_draw();
        let drawn = screen.take();
        (bar, screen, drawn)
    }

    #[test]
    fn without_a_total_the_value_and_the_message_are_shown() {
        let (_bar, _, drawn) = first(&update(12.5, None, Some("copying\u{1b}[2J")));
        assert!(drawn.contains("12.5 copying\\u{1b}[2J"), "{drawn:?}");
        assert!(!drawn.contains("0/0"), "{drawn:?}");
    }

    #[test]
    fn with_a_total_there_is_a_bar_from_the_first_report_on() {
        let (bar, screen, drawn) = first(&update(1.0, Some(4.0), Some("copying")));
        assert!(drawn.contains(" 25% copying"), "{drawn:?}");
        assert!(
            !drawn.contains("0/0") && !drawn.contains(" 0%"),
            "{drawn:?}"
        );
        // A server that loses count.
        bar.show(&update(7.0, None, None));
        bar.0.as_ref().unwrap().force_draw();
        let drawn = screen.take();
        assert!(drawn.contains(" 7") && !drawn.contains('%'), "{drawn:?}");
    }
}
