//! A progress bar on stderr: one consumer of the run's events.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::event::{Consumer, Event};
use crate::record::Totals;
use crate::record::journal::JournalError;
use crate::text::visible;

/// The bar; hidden where nobody looks.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    totals: Totals,
}

impl Progress {
    pub fn new(attempts: usize, shown: bool) -> Self {
        let target = if shown { ProgressDrawTarget::stderr_with_hz(4) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(attempts as u64), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed} (about {eta} left)  {msg}") {
            bar.set_style(style);
        }
        if shown {
            bar.enable_steady_tick(Duration::from_millis(500));
        }
        Progress { bar, totals: Totals::default() }
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Consumer for Progress {
    fn take(&mut self, event: &Event<'_>) -> Result<(), JournalError> {
        match event {
            Event::Started { set, case } => {
                let Totals { passed, failed, errors, .. } = self.totals;
                self.bar.set_message(visible::excerpt(
                    &format!("{passed} passed, {failed} failed, {errors} errors  {set}/{case}"),
                    100,
                ));
            }
            Event::Finished(finished) => {
                self.totals.add(finished.row.verdict, finished.row.harm);
                self.bar.inc(1);
            }
        }
        Ok(())
    }
}
