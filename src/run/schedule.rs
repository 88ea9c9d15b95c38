//! Runs the plan: so many attempts at once, events to the consumers, a clean end when interrupted.

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc::UnboundedReceiver;

use super::attempt::{attempt, skipped};
use super::event::{Consumer, Event};
use super::limits::Spent;
use super::plan::Plan;
use crate::record::journal::JournalError;
use crate::record::{Row, Totals};
use crate::score::Skip;
use crate::workspace::Workspaces;

/// Makes every attempt of the plan. An interrupt stops new ones, a second one those in flight; what did not come to its
/// end is told as skipped. A run in which nothing but errors came of the first attempts, of a kind that further ones
/// would share, stops itself, and so does one that reached a limit. Attempts that are `done` are not made again. Returns whether it was interrupted.
///
/// # Errors
/// When a consumer cannot record what happened.
pub async fn run(
    plan: &Plan<'_>,
    workspaces: &Workspaces,
    consumers: &mut [&mut dyn Consumer],
    interrupts: &mut UnboundedReceiver<()>,
    allowed_errors: usize,
    done: &[(usize, Row)],
) -> Result<bool, JournalError> {
    let mut tell = |event: &Event<'_>| consumers.iter_mut().try_for_each(|consumer| consumer.take(event));
    let mut ended = vec![false; plan.len()];
    let mut spent = Spent::new();
    for (index, row) in done {
        spent.add(row);
        if let Some(ended) = ended.get_mut(*index) {
            *ended = true;
        }
    }
    let already = ended.clone();
    let mut waiting = plan.attempts().filter(|planned| !already.get(planned.index).is_some_and(|done| *done));
    let mut flying = FuturesUnordered::new();
    let mut interrupted = false;
    let mut stopped = None;
    let mut totals = Totals::default();
    loop {
        while !interrupted && stopped.is_none() && flying.len() < plan.settings.concurrency.max(1) {
            if let Some(why) = spent.over(&plan.settings.limits) {
                stopped = Some((Skip::Limit, why));
                break;
            }
            let Some(planned) = waiting.next() else {
                break;
            };
            tracing::debug!(model = %planned.cell.model, tool = %planned.cell.tool, set = %planned.cell.set, case = %planned.case.id, repeat = planned.repeat, "attempt begins");
            tell(&Event::Started { set: &planned.cell.set, case: &planned.case.id })?;
            flying.push(attempt(planned, plan.settings, workspaces));
        }
        tokio::select! {
            biased;
            Some(()) = interrupts.recv() => {
                if interrupted {
                    break;
                }
                interrupted = true;
            }
            finished = flying.next() => match finished {
                Some(finished) => {
                    if let Some(ended) = ended.get_mut(finished.index) {
                        *ended = true;
                    }
                    tell(&Event::Finished(&finished))?;
                    tracing::debug!(case = %finished.row.case, class = %finished.row.class, turns = finished.row.turns, "attempt ended");
                    totals.add(finished.row.verdict, finished.row.harm);
                    spent.add(&finished.row);
                    // What one model cannot do says nothing of the others.
                    if plan.models.len() == 1 && is_hopeless(&totals, &finished.row, allowed_errors) {
                        let why = finished.row.error.unwrap_or_default();
                        let why = format!("the run stopped, since nothing but errors came of it: {why}");
                        stopped = Some((Skip::Stopped, why));
                    }
                }
                None => break,
            },
        }
        // Stand-ins never wait, and signals need a turn as well.
        tokio::task::yield_now().await;
    }
    drop(flying);
    let (skip, why) = match stopped {
        _ if interrupted => (Skip::Interrupted, "the run was interrupted".to_owned()),
        Some(stopped) => stopped,
        None => return Ok(false),
    };
    for planned in plan.attempts().filter(|planned| !ended.get(planned.index).is_some_and(|ended| *ended)) {
        tell(&Event::Finished(&skipped(planned, plan.settings, skip, &why)))?;
    }
    Ok(interrupted)
}

/// So many errors beyond the allowance, and nothing else, end a run early.
const HOPELESS: usize = 5;

/// Nothing was judged so far, several errors more than allowed came, and the last one is of a kind that does not pass.
fn is_hopeless(totals: &Totals, last: &Row, allowed_errors: usize) -> bool {
    let lasting = ["error.auth", "error.request", "error.network", "error.template", "error.recording"]
        .contains(&last.class.as_str());
    lasting && totals.errors >= allowed_errors + HOPELESS && totals.passed + totals.failed == 0
}
