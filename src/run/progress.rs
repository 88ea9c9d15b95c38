//! A progress bar on stderr: one consumer of the run's events.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::event::{Consumer, Event};
use crate::record::journal::JournalError;
use crate::record::{Row, Totals};
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

    /// Attempts that are there already.
    pub fn begin(&mut self, done: &[(usize, Row)]) {
        done.iter().for_each(|(_, row)| self.totals.add(row.verdict, row.harm));
        self.bar.set_position(done.len() as u64);
        self.bar.reset_eta();
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
