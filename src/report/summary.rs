//! One view of a run that all renderers share.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::pairs::{self, Pairs};
use crate::case::Split;
use crate::record::{CellPlan, Row, RunFile, Status, Totals};
use crate::score::Verdict;
use crate::score::relax::Relaxation;
use crate::tool::Note;
use crate::verdict::floor::{Floor, FloorError, Floors};
use crate::verdict::gate::{Allowance, Counts, Judgement, incomplete, judge, rate};
use crate::verdict::interval::wilson;

/// A run, counted and judged.
#[derive(Clone, Debug)]
pub struct Summary<'a> {
    pub run: &'a RunFile,
    pub totals: Totals,
    pub cells: Vec<CellSummary<'a>>,
    /// All sets of a model, tool and prompt together, where there are several to compare.
    pub together: Vec<Together<'a>>,
    /// By tag: first over all sets, then by cell.
    pub tags: Vec<TagSummary<'a>>,
    /// Cases against themselves in other bytes, where variants were run.
    pub pairs: Vec<Pairs<'a>>,
    /// Passed and judged attempts of public cases, and of held-out ones; empty where rows tell of no splits.
    pub splits: BTreeMap<Split, (usize, usize)>,
    /// Failed, errored and skipped attempts by class, most frequent first.
    pub classes: Vec<ClassSummary<'a>>,
    /// Failed and errored attempts in order.
    pub troubles: Vec<&'a Row>,
    /// Attempts that were skipped because the tool or model cannot take the case, each with its reason.
    pub unsupported: Vec<&'a Row>,
    pub conduct: Vec<(String, usize)>,
    pub process: Process,
    /// Over all cells.
    pub gate: Gate,
    /// Whether floors were looked for.
    pub gated: bool,
    /// Recorded floors of these models, tools, subsets and prompts whose cells were not run, or not whole.
    pub unjudged: usize,
}

/// One cell.
#[derive(Clone, Debug)]
pub struct CellSummary<'a> {
    pub plan: &'a CellPlan,
    pub totals: Totals,
    /// Passes by class: first, recovered, assisted, untouched.
    pub passes: BTreeMap<&'a str, usize>,
    /// Share of the planned attempts that the tool and model can take.
    pub rate: Option<f64>,
    pub interval: (f64, f64),
    pub judgement: Judgement,
    /// Failed attempts that a relaxation would have passed.
    pub relaxed: BTreeMap<Relaxation, usize>,
}

/// All cells of one model, tool and prompt.
#[derive(Clone, Debug)]
pub struct Together<'a> {
    pub model: &'a str,
    pub tool: &'a str,
    pub prompt: &'a str,
    pub totals: Totals,
    pub passes: BTreeMap<&'a str, usize>,
    pub rate: Option<f64>,
    pub interval: (f64, f64),
}

/// Cases with one tag: in one cell, or over all sets of a model, tool and prompt where several have it.
#[derive(Clone, Debug)]
pub struct TagSummary<'a> {
    pub cell: &'a CellPlan,
    /// The cell stands for all sets of its model, tool and prompt.
    pub all_sets: bool,
    pub tag: &'a str,
    pub passed: usize,
    /// Of the passed ones, those that needed a leniency of the tool.
    pub assisted: usize,
    pub planned: usize,
}

/// Attempts of one class.
#[derive(Clone, Debug)]
pub struct ClassSummary<'a> {
    pub class: &'a str,
    pub count: usize,
    pub example: &'a Row,
}

/// How the attempts went, whatever came of them. Medians and 95th percentiles; `None` = not observed.
#[derive(Clone, Debug, Default)]
pub struct Process {
    pub calls: usize,
    pub refused: usize,
    /// Attempts whose first edit call was carried out, of those that made one.
    pub first_edit_ok: (usize, usize),
    pub turns: Option<(u64, u64)>,
    pub seconds: Option<(f64, f64)>,
    pub input: Option<(u64, u64)>,
    pub output: Option<(u64, u64)>,
    pub retries: usize,
    pub dropped_params: BTreeSet<String>,
}

/// The gate's word over all cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Every floor is met.
    Passed {
        floors: usize,
    },
    /// Nothing to gate.
    Ungated,
    Below {
        cells: usize,
        floors: usize,
    },
    Incomplete {
        why: String,
    },
}

impl<'a> Summary<'a> {
    /// Counts the rows of a run and judges its cells. Without `floors` nothing is gated, but a run can still be incomplete.
    ///
    /// # Errors
    /// When a floor cannot be compared.
    pub fn new(
        run: &'a RunFile,
        rows: &'a [Row],
        floors: Option<&Floors>,
        allowance: Allowance,
    ) -> Result<Self, FloorError> {
        let planned: usize = run.plan.iter().map(CellPlan::attempts).sum();
        let allowed = allowance.of(planned);
        let mut cells = Vec::new();
        let mut tags = Vec::new();
        let mut pairs = Vec::new();
        let mut totals = Totals { planned, ..Totals::default() };
        let mut cut = 0;
        for plan in &run.plan {
            let mine: Vec<&Row> = rows.iter().filter(|row| row.cell_key() == plan.key()).collect();
            let floor = floors.map(|floors| floors.of(plan)).transpose()?.flatten();
            let cell = cell(plan, &mine, floor.map(|floor| floor.floor), allowed);
            totals.passed += cell.totals.passed;
            totals.failed += cell.totals.failed;
            totals.errors += cell.totals.errors;
            totals.skipped += cell.totals.skipped;
            totals.harm += cell.totals.harm;
            cut += mine.iter().filter(|row| was_cut(row)).count();
            tags.extend(tag_summaries(plan, &mine));
            pairs.extend(pairs::of_cell(plan, &mine));
            cells.push(cell);
        }
        let mut with_totals = tag_totals(&tags);
        with_totals.append(&mut tags);
        let unsupported: Vec<&Row> = rows.iter().filter(|row| row.class == UNSUPPORTED).collect();
        let counts = counts_of(&totals, cut, unsupported.len());
        let nothing = || (planned > 0 && counts.measurable() == 0).then(|| "no tool takes any of the cases".to_owned());
        let gate = overall(run, &cells, incomplete(counts, allowed).or_else(nothing));
        Ok(Summary {
            run,
            totals,
            gate,
            tags: with_totals,
            pairs,
            splits: splits(rows),
            classes: classes(rows),
            troubles: rows.iter().filter(|row| matches!(row.verdict, Verdict::Fail | Verdict::Error)).collect(),
            unsupported,
            conduct: conduct(rows),
            process: process(rows),
            together: together(&cells, rows),
            cells,
            gated: floors.is_some(),
            unjudged: floors.map_or(0, |floors| unjudged(floors, &run.plan)),
        })
    }

    /// The verdict in one line.
    pub fn headline(&self) -> String {
        let counts = counts_of(&self.totals, 0, self.unsupported.len());
        let rate = rate(counts).unwrap_or(0.0);
        let (low, high) = wilson(self.totals.passed, counts.measurable());
        let passed = format!(
            "{} of {} passed ({}, 95 % interval {}–{})",
            self.totals.passed,
            counts.measurable(),
            percent(rate),
            percent_number(low),
            percent_number(high)
        );
        let passed = match self.unsupported.len() {
            0 => passed,
            1 => format!("{passed}; 1 attempt was skipped, since its tool or model cannot take the case"),
            several => {
                format!("{passed}; {several} attempts were skipped, since their tool or model cannot take the case")
            }
        };
        let passed = match self.unjudged {
            0 => passed,
            1 => format!("{passed}; 1 recorded floor was not judged, since its cell was not run whole"),
            several => {
                format!("{passed}; {several} recorded floors were not judged, since their cells were not run whole")
            }
        };
        match &self.gate {
            Gate::Passed { floors } => format!("PASS: {passed}; {floors} of {floors} floors met"),
            Gate::Ungated if self.gated => format!("NOT GATED: {passed}; no floor is recorded for these cells"),
            Gate::Ungated => format!("NOT GATED: {passed}"),
            Gate::Below { cells, floors } => format!("FAIL: {passed}; {cells} of {floors} floors missed"),
            Gate::Incomplete { why } => format!("INCOMPLETE: {why}; {passed}"),
        }
    }

    /// Planned = passed + failed + errors + skipped (+ what has no row).
    pub fn reconciliation(&self) -> String {
        let Totals { planned, passed, failed, errors, skipped, .. } = self.totals;
        let missing = match self.totals.missing() {
            0 => String::new(),
            missing => format!(" + {missing} without a result"),
        };
        format!("planned {planned} = passed {passed} + failed {failed} + errors {errors} + skipped {skipped}{missing}")
    }

    /// Where the answers came from, in one line.
    pub fn origin(&self) -> String {
        match &self.run.source {
            Some(source) => {
                format!("recording {} of {}, made {}", source.recording, source.model, day(&source.recorded))
            }
            None => format!("run {}, {}", self.run.id, day(&self.run.started)),
        }
    }
}

fn splits(rows: &[Row]) -> BTreeMap<Split, (usize, usize)> {
    let mut splits: BTreeMap<Split, (usize, usize)> = BTreeMap::new();
    for row in rows.iter().filter(|row| matches!(row.verdict, Verdict::Pass | Verdict::Fail)) {
        if let Some(split) = row.split {
            let (passed, judged) = splits.entry(split).or_default();
            *passed += usize::from(row.verdict == Verdict::Pass);
            *judged += 1;
        }
    }
    splits
}

/// Floors of the same models, tools, subsets and prompts whose cells are not among the whole cells of the plan.
fn unjudged(floors: &Floors, plan: &[CellPlan]) -> usize {
    let kin = |floor: &Floor, cell: &CellPlan| {
        floor.model == cell.model
            && floor.tool == cell.tool
            && floor.subset == cell.subset
            && floor.prompt == cell.prompt
    };
    let judged = |floor: &Floor| plan.iter().any(|cell| !cell.narrowed && floor.key() == cell.key());
    floors.floors.iter().filter(|floor| plan.iter().any(|cell| kin(floor, cell)) && !judged(floor)).count()
}

/// Skipped because the run ended, not because it cannot be done.
fn was_cut(row: &Row) -> bool {
    row.verdict == Verdict::Skipped && row.class != UNSUPPORTED
}

const UNSUPPORTED: &str = "skipped.unsupported";

fn counts_of(totals: &Totals, cut: usize, unsupported: usize) -> Counts {
    Counts {
        planned: totals.planned,
        passed: totals.passed,
        failed: totals.failed,
        errors: totals.errors,
        missing: totals.missing() + cut,
        unsupported,
    }
}

fn cell<'a>(plan: &'a CellPlan, rows: &[&'a Row], floor: Option<usize>, allowed: usize) -> CellSummary<'a> {
    let mut totals = Totals { planned: plan.attempts(), ..Totals::default() };
    let mut passes = BTreeMap::new();
    let mut relaxed = BTreeMap::new();
    for row in rows {
        totals.add(row.verdict, row.harm);
        if row.verdict == Verdict::Pass {
            *passes.entry(row.class.as_str()).or_default() += 1;
        }
        for relaxation in &row.would_pass {
            *relaxed.entry(*relaxation).or_default() += 1;
        }
    }
    let count = |which: fn(&Row) -> bool| rows.iter().filter(|row| which(row)).count();
    let counts = counts_of(&totals, count(was_cut), count(|row| row.class == UNSUPPORTED));
    CellSummary {
        plan,
        rate: rate(counts),
        interval: wilson(totals.passed, counts.measurable()),
        judgement: judge(counts, floor, allowed),
        totals,
        passes,
        relaxed,
    }
}

/// Only where several are to be compared, and one of them has several sets.
fn together<'a>(cells: &[CellSummary<'a>], rows: &[Row]) -> Vec<Together<'a>> {
    let mut all: Vec<(Together<'a>, usize)> = Vec::new();
    for cell in cells {
        let (model, tool, prompt) = (cell.plan.model.as_str(), cell.plan.tool.as_str(), cell.plan.prompt.as_str());
        let found = all.iter_mut().find(|(each, _)| (each.model, each.tool, each.prompt) == (model, tool, prompt));
        match found {
            None => {
                let (totals, passes) = (cell.totals, cell.passes.clone());
                all.push((Together { model, tool, prompt, totals, passes, rate: None, interval: (0.0, 1.0) }, 1));
            }
            Some((each, sets)) => {
                *sets += 1;
                each.totals.planned += cell.totals.planned;
                each.totals.passed += cell.totals.passed;
                each.totals.failed += cell.totals.failed;
                each.totals.errors += cell.totals.errors;
                each.totals.skipped += cell.totals.skipped;
                each.totals.harm += cell.totals.harm;
                for (class, count) in &cell.passes {
                    *each.passes.entry(class).or_default() += count;
                }
            }
        }
    }
    if all.len() < 2 || all.iter().all(|(_, sets)| *sets < 2) {
        return Vec::new();
    }
    let finished = |(mut each, _): (Together<'a>, usize)| {
        let mine = |row: &&Row| {
            (row.model.as_str(), row.tool.as_str(), row.prompt.as_str()) == (each.model, each.tool, each.prompt)
        };
        let unsupported = rows.iter().filter(mine).filter(|row| row.class == UNSUPPORTED).count();
        let counts = counts_of(&each.totals, 0, unsupported);
        each.rate = rate(counts);
        each.interval = wilson(each.totals.passed, counts.measurable());
        each
    };
    all.into_iter().map(finished).collect()
}

fn overall(run: &RunFile, cells: &[CellSummary<'_>], why: Option<String>) -> Gate {
    if run.status == Status::Running {
        return Gate::Incomplete { why: "the run did not come to its end".to_owned() };
    }
    if let Some(why) = why {
        return Gate::Incomplete { why };
    }
    let (mut floors, mut below) = (0, 0);
    for cell in cells {
        match &cell.judgement {
            Judgement::Passed { .. } => floors += 1,
            Judgement::Below { .. } => {
                floors += 1;
                below += 1;
            }
            Judgement::Ungated => {}
            Judgement::Incomplete { why } => return Gate::Incomplete { why: format!("{}: {why}", cell.plan.title()) },
        }
    }
    match (floors, below) {
        (0, _) => Gate::Ungated,
        (floors, 0) => Gate::Passed { floors },
        (floors, cells) => Gate::Below { cells, floors },
    }
}

fn tag_summaries<'a>(plan: &'a CellPlan, rows: &[&'a Row]) -> Vec<TagSummary<'a>> {
    let mut tags: BTreeMap<&str, TagSummary<'a>> = BTreeMap::new();
    for row in rows {
        for tag in &row.tags {
            let fresh = TagSummary { cell: plan, all_sets: false, tag, passed: 0, assisted: 0, planned: 0 };
            let count = tags.entry(tag).or_insert(fresh);
            count.passed += usize::from(row.verdict == Verdict::Pass);
            count.assisted += usize::from(row.class == "pass.assisted");
            count.planned += 1;
        }
    }
    tags.into_values().collect()
}

/// Tags that several sets of a model, tool and prompt have, added up.
fn tag_totals<'a>(tags: &[TagSummary<'a>]) -> Vec<TagSummary<'a>> {
    let mut totals: BTreeMap<(&str, &str, &str, &str), (usize, TagSummary<'a>)> = BTreeMap::new();
    for tag in tags {
        let key = (tag.cell.model.as_str(), tag.cell.tool.as_str(), tag.cell.prompt.as_str(), tag.tag);
        match totals.entry(key) {
            Entry::Vacant(place) => {
                place.insert((1, TagSummary { all_sets: true, ..tag.clone() }));
            }
            Entry::Occupied(mut place) => {
                let (sets, total) = place.get_mut();
                *sets += 1;
                total.passed += tag.passed;
                total.assisted += tag.assisted;
                total.planned += tag.planned;
            }
        }
    }
    totals.into_values().filter(|(sets, _)| *sets > 1).map(|(_, total)| total).collect()
}

fn classes(rows: &[Row]) -> Vec<ClassSummary<'_>> {
    let mut classes: Vec<ClassSummary<'_>> = Vec::new();
    for row in rows.iter().filter(|row| row.verdict != Verdict::Pass) {
        match classes.iter_mut().find(|class| class.class == row.class) {
            Some(class) => class.count += 1,
            None => classes.push(ClassSummary { class: &row.class, count: 1, example: row }),
        }
    }
    classes.sort_by(|a, b| b.count.cmp(&a.count).then(a.class.cmp(b.class)));
    classes
}

/// The name that a flag has in files.
pub(super) fn name_of(flag: &impl Serialize) -> String {
    serde_json::to_value(flag).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

fn conduct(rows: &[Row]) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<Note, usize> = BTreeMap::new();
    for note in rows.iter().flat_map(|row| &row.conduct) {
        *counts.entry(*note).or_default() += 1;
    }
    let mut out: Vec<(String, usize)> = counts.into_iter().map(|(note, count)| (name_of(&note), count)).collect();
    out.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    out
}

fn process(rows: &[Row]) -> Process {
    let mut process = Process::default();
    for row in rows {
        process.calls += row.calls.len();
        process.refused += row.calls.iter().filter(|call| !call.ok).count();
        if let Some(first) = row.calls.iter().find(|call| call.edit) {
            process.first_edit_ok.1 += 1;
            process.first_edit_ok.0 += usize::from(first.ok);
        }
        process.retries += row.retries;
        process.dropped_params.extend(row.dropped_params.iter().cloned());
    }
    let started = || rows.iter().filter(|row| row.turns > 0);
    process.turns = spread(started().map(|row| row.turns as u64).collect());
    process.seconds =
        spread(started().filter_map(|row| row.model_ms).collect()).map(|(a, b)| (a as f64 / 1000.0, b as f64 / 1000.0));
    process.input = spread(started().filter_map(|row| row.usage.input).collect());
    process.output = spread(started().filter_map(|row| row.usage.output).collect());
    process
}

/// Median and 95th percentile (nearest rank).
fn spread(mut values: Vec<u64>) -> Option<(u64, u64)> {
    values.sort_unstable();
    let at = |share: f64| values.get(((share * values.len() as f64).ceil() as usize).saturating_sub(1)).copied();
    Some((at(0.5)?, at(0.95)?))
}

/// A share in per cent, for people.
pub fn percent(share: f64) -> String {
    format!("{} %", percent_number(share))
}

/// The number of [`percent`], without a decimal that says nothing.
pub fn percent_number(share: f64) -> String {
    format!("{:.0}", share * 100.0)
}

fn day(timestamp: &str) -> &str {
    timestamp.split('T').next().unwrap_or(timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_are_of_what_was_observed() {
        assert_eq!(spread(vec![]), None);
        assert_eq!(spread(vec![7]), Some((7, 7)));
        assert_eq!(spread((1..=100).collect()), Some((50, 95)));
    }
}
