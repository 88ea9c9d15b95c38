//! One view of a run that all renderers share.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::counts::{classes, conduct, flaky, process, repeated, splits, tag_summaries, tag_totals};
use super::flip::p_words;
use super::pairs::{self, Pairs};
use super::versus::Versus;
use crate::case::Split;
use crate::record::{CellPlan, Row, RunFile, Status, Totals};
use crate::score::Verdict;
use crate::score::relax::Relaxation;
use crate::verdict::floor::{Floor, FloorError, Floors};
use crate::verdict::gate::{Allowance, Counts, Judgement, incomplete, judge, rate};
use crate::verdict::interval::{Difference, independent, wilson};
use crate::verdict::paired::Outcome;

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
    /// Cases that passed in some of their attempts.
    pub flaky: Vec<Flaky<'a>>,
    /// k, pass@k and pass^k, where cases were tried k times.
    pub repeated: Option<(usize, f64, f64)>,
    /// The paired check against an earlier run.
    pub baseline: Option<Versus>,
    /// Approved cases that no longer pass.
    pub fallen: Vec<Fallen>,
    /// What a reader should know besides.
    pub notes: Vec<String>,
    /// Recorded floors of these models, tools, subsets and prompts whose cells were not run, or not whole.
    pub unjudged: usize,
}

/// One cell.
#[derive(Clone, Debug)]
pub struct CellSummary<'a> {
    pub plan: Cow<'a, CellPlan>,
    /// A subset of another cell, judged by its own floor; its attempts are counted there.
    pub part: bool,
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

/// A case that passed in some of its attempts.
#[derive(Clone, Debug)]
pub struct Flaky<'a> {
    pub example: &'a Row,
    /// By repeat: `PPF`.
    pub pattern: String,
}

/// An approved case that passed in fewer of its attempts than it must.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fallen {
    pub title: String,
    pub passed: usize,
    pub judged: usize,
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
    /// Dollars of all attempts, as far as they are known.
    pub cost: Option<f64>,
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
    /// Approved cases that no longer pass.
    Fallen {
        cases: usize,
    },
    /// Significantly worse than an earlier run.
    Regressed,
    /// Neither better nor worse can be told.
    Inconclusive {
        why: String,
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
            let cell = cell(Cow::Borrowed(plan), false, &mine, floor.map(|floor| floor.floor), allowed);
            totals.passed += cell.totals.passed;
            totals.failed += cell.totals.failed;
            totals.errors += cell.totals.errors;
            totals.skipped += cell.totals.skipped;
            totals.harm += cell.totals.harm;
            cut += mine.iter().filter(|row| was_cut(row)).count();
            tags.extend(tag_summaries(plan, &mine));
            pairs.extend(pairs::of_cell(plan, &mine));
            cells.push(cell);
            for part in floors.map(|_| plan.parts()).into_iter().flatten() {
                let Some(floor) = floors.map(|floors| floors.of(&part)).transpose()?.flatten() else {
                    continue;
                };
                let members = plan.parts.iter().find(|other| Some(&other.subset) == part.subset.as_ref());
                let within = |row: &&&Row| members.is_some_and(|members| members.cases.contains(&row.case));
                let rows: Vec<&Row> = mine.iter().filter(within).copied().collect();
                cells.push(self::cell(Cow::Owned(part), true, &rows, Some(floor.floor), allowed));
            }
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
            flaky: flaky(rows),
            repeated: repeated(rows),
            baseline: None,
            fallen: Vec::new(),
            notes: Vec::new(),
            cells,
            gated: floors.is_some(),
            unjudged: floors.map_or(0, |floors| unjudged(floors, &run.plan)),
        })
    }

    /// Adds the paired check against an earlier run, and what it says to the gate's word.
    pub fn against(mut self, versus: Versus) -> Self {
        self.gate = match (self.gate, versus.verdict) {
            (gate @ (Gate::Incomplete { .. } | Gate::Below { .. } | Gate::Fallen { .. }), _) => gate,
            (_, Outcome::Regressed) => Gate::Regressed,
            (Gate::Passed { .. } | Gate::Ungated, Outcome::Inconclusive) => {
                Gate::Inconclusive { why: format!("too few pairs to rule out a drop: {}", versus.difference_words()) }
            }
            (Gate::Ungated, _) => Gate::Passed { floors: 0 },
            (gate, _) => gate,
        };
        self.baseline = Some(versus);
        self
    }

    /// Requires that approved cases pass in most of their attempts.
    pub fn requiring(mut self, floors: &Floors, rows: &[Row]) -> Self {
        for approved in &floors.approved {
            let mine = rows.iter().filter(|row| {
                approved.is_of(row.cell_key()) && row.case == approved.case && !matches!(row.verdict, Verdict::Skipped)
            });
            let judged: Vec<&Row> = mine.filter(|row| row.verdict.is_judged()).collect();
            let passed = judged.iter().filter(|row| row.verdict == Verdict::Pass).count();
            if !judged.is_empty() && 2 * passed < judged.len() + usize::from(judged.len() == 1) {
                self.fallen.push(Fallen { title: approved.title(), passed, judged: judged.len() });
            }
        }
        if !self.fallen.is_empty() && !matches!(self.gate, Gate::Incomplete { .. } | Gate::Below { .. }) {
            self.gate = Gate::Fallen { cases: self.fallen.len() };
        }
        self
    }

    /// The held-out rate less the public one, where both were measured.
    pub fn split_gap(&self) -> Option<Difference> {
        let of = |split: Split| self.splits.get(&split).copied().filter(|(_, judged)| *judged > 0);
        Some(independent(of(Split::Public)?, of(Split::HeldOut)?))
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
        let passed = match &self.baseline {
            None => passed,
            Some(versus) => format!(
                "{passed}; against {}: {} lost, {} gained, {}",
                versus.base,
                versus.lost,
                versus.gained,
                p_words(versus.p)
            ),
        };
        match &self.gate {
            Gate::Passed { floors: 0 } => format!("PASS: {passed}"),
            Gate::Passed { floors } => format!("PASS: {passed}; {floors} of {floors} floors met"),
            Gate::Fallen { cases: 1 } => format!("FAIL: {passed}; 1 approved case no longer passes"),
            Gate::Fallen { cases } => format!("FAIL: {passed}; {cases} approved cases no longer pass"),
            Gate::Regressed => format!("FAIL: {passed}: a significant regression"),
            Gate::Inconclusive { why } => format!("INCONCLUSIVE: {passed}; {why}"),
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

fn cell<'a>(
    plan: Cow<'a, CellPlan>,
    part: bool,
    rows: &[&'a Row],
    floor: Option<usize>,
    allowed: usize,
) -> CellSummary<'a> {
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
        part,
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
    for cell in cells.iter().filter(|cell| !cell.part) {
        // The plan outlives its summary, and a part's copy of it was left out.
        let Cow::Borrowed(plan) = &cell.plan else {
            continue;
        };
        let (model, tool, prompt) = (plan.model.as_str(), plan.tool.as_str(), plan.prompt.as_str());
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
    let (mut floors, mut below, mut open) = (0, 0, None);
    for cell in cells {
        match &cell.judgement {
            Judgement::Inconclusive { why, .. } => {
                floors += 1;
                open = Some(format!("{}: {why}", cell.plan.title()));
            }
            Judgement::Passed { .. } => floors += 1,
            Judgement::Below { .. } => {
                floors += 1;
                below += 1;
            }
            Judgement::Ungated => {}
            Judgement::Incomplete { why } => return Gate::Incomplete { why: format!("{}: {why}", cell.plan.title()) },
        }
    }
    match (floors, below, open) {
        (0, _, _) => Gate::Ungated,
        (floors, 0, None) => Gate::Passed { floors },
        (_, 0, Some(why)) => Gate::Inconclusive { why },
        (floors, cells, _) => Gate::Below { cells, floors },
    }
}

/// The name that a flag has in files.
pub(super) fn name_of(flag: &impl Serialize) -> String {
    serde_json::to_value(flag).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
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
