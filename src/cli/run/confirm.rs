//! `--confirm N`: flipped cases are tried N more times before a paired check may fail a release.

use super::RunFlags;
use super::drive::{Done, drive};
use crate::case::select::Selected;
use crate::cli::{Failure, output};
use crate::report::flip::Flip;
use crate::report::versus::{Again, Strictness, Versus};
use crate::run::Plan;
use crate::score::Verdict;
use crate::verdict::gate::Allowance;
use crate::verdict::paired::Outcome;

/// Tries flipped cases again, in `confirm/` of the run's directory, and judges anew. Says in a sentence what came of it.
pub(super) async fn confirm(
    flags: &RunFlags,
    plan: &Plan<'_>,
    done: &Done,
    versus: &mut Versus,
) -> Result<Option<String>, Failure> {
    if flags.confirm == 0 || versus.verdict != Outcome::Regressed || done.interrupted {
        return Ok(None);
    }
    let flips: Vec<&Flip> = versus.lost_cases.iter().chain(&versus.gained_cases).collect();
    output::message(&format!("{} flipped cases: trying each {} more times", flips.len(), flags.confirm));
    let mut settings = plan.settings.clone();
    settings.repeat = flags.confirm;
    let flipped =
        |chosen: &Selected<'_>, id: &str| flips.iter().any(|flip| flip.set == chosen.set.name && flip.case == id);
    let selected: Vec<Selected<'_>> = plan
        .selected
        .iter()
        .map(|chosen| {
            let cases = chosen.cases.iter().copied().filter(|case| flipped(chosen, &case.id)).collect();
            Selected { set: chosen.set, subset: chosen.subset.clone(), cases, narrowed: true }
        })
        .filter(|chosen| !chosen.cases.is_empty())
        .collect();
    let mut again = Plan::new(plan.models, plan.tools, &selected, &settings);
    again.cells.retain(|cell| {
        let of =
            |flip: &&Flip| (&flip.model, &flip.tool, &flip.set) == (&cell.plan.model, &cell.plan.tool, &cell.plan.set);
        flips.iter().any(of)
    });
    let directory = done.record.directory.join("confirm");
    let place = super::drive::Place { directory: directory.clone() };
    let more = drive(flags, &again, None, Allowance::Rate(0.99), Some(place)).await?;
    let mut results = Again::new();
    for row in more.record.rows.iter().filter(|row| row.verdict.is_judged()) {
        let key = (row.model.clone(), row.tool.clone(), row.set.clone(), row.case.clone());
        let (passed, judged) = results.entry(key).or_default();
        *passed += usize::from(row.verdict == Verdict::Pass);
        *judged += 1;
    }
    let (all, lost) = (flips.len(), results.len());
    let gone = versus.confirmed(&results, Strictness::default());
    Ok(Some(format!(
        "{all} cases had flipped; {lost} of them could be tried {} more times ({}), and {gone} flips were not confirmed",
        flags.confirm,
        directory.display()
    )))
}
