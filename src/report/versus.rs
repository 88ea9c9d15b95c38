//! Contestants on the same cases: runs, models or tools, paired attempt by attempt.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use super::flip::{Flip, because, p_words, points};
use crate::record::{CellPlan, Row, RunRecord};
use crate::score::Verdict;
use crate::verdict::interval::{Difference, paired, stratified, wilson};
use crate::verdict::paired::{Flips, Outcome, holm, mid_p, outcome};

/// What is compared with what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Run,
    Model,
    Tool,
}

impl By {
    pub fn name(self) -> &'static str {
        match self {
            By::Run => "run",
            By::Model => "model",
            By::Tool => "tool",
        }
    }
}

/// How sure a comparison has to be.
#[derive(Clone, Copy, Debug)]
pub struct Strictness {
    /// The chance of a false alarm that is accepted.
    pub alpha: f64,
    /// A drop of the rate that would matter, 0 to 1.
    pub margin: f64,
}

impl Default for Strictness {
    fn default() -> Self {
        Strictness { alpha: 0.05, margin: 0.1 }
    }
}

#[derive(Debug, Error)]
pub enum VersusError {
    #[error("nothing to compare: there is one {what} only; give another run, or --by run, model or tool")]
    One { what: &'static str },
    #[error("{base} and {head} have no attempt at the same case in common")]
    NothingInCommon { base: String, head: String },
    #[error("{name} has the same attempt in two of the runs ({what}); compare them by run")]
    Twice { name: String, what: String },
    #[error("{base} and {head} are not comparable: {what}; --allow-mismatch compares them all the same")]
    Mismatch { base: String, head: String, what: String },
}

/// One attempt, whoever made it.
type Unit<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str, usize);

/// A run, model or tool with what it did.
#[derive(Clone, Debug)]
pub struct Contestant<'a> {
    pub name: String,
    attempts: BTreeMap<Unit<'a>, (&'a Row, &'a RunRecord)>,
}

/// Counts of a contestant, for a table.
#[derive(Clone, Debug, Serialize)]
pub struct Standing {
    pub name: String,
    pub passed: usize,
    pub judged: usize,
    pub errors: usize,
    pub low: f64,
    pub high: f64,
    pub harm: usize,
    /// Of the attempts as far as known; `null` = of none.
    pub cost_usd: Option<f64>,
    /// Medians of an attempt; `null` = not observed.
    pub model_ms: Option<u64>,
    pub output_tokens: Option<u64>,
}

/// Flips of a part of the pairs: a set or a tag.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    pub name: String,
    pub pairs: usize,
    pub base: usize,
    pub head: usize,
    pub lost: usize,
    pub gained: usize,
    pub p: f64,
    pub difference: f64,
    pub low: f64,
    pub high: f64,
}

/// Two contestants, pair by pair.
#[derive(Clone, Debug, Serialize)]
pub struct Versus {
    pub base: String,
    pub head: String,
    pub pairs: usize,
    pub both: usize,
    pub lost: usize,
    pub gained: usize,
    pub neither: usize,
    /// Exact McNemar, two-sided.
    pub p: f64,
    pub mid_p: f64,
    /// Adjusted over all pairs of contestants (Holm).
    pub p_adjusted: f64,
    /// Rate of head less rate of base, over sets as strata.
    pub difference: f64,
    pub low: f64,
    pub high: f64,
    pub outcome: String,
    /// Attempts of which one side has no verdict.
    pub unpaired: usize,
    /// What differs besides what is compared, where that was allowed.
    pub mismatches: Vec<String>,
    pub lost_cases: Vec<Flip>,
    pub gained_cases: Vec<Flip>,
    pub sets: Vec<Part>,
    pub tags: Vec<Part>,
    #[serde(skip)]
    pub verdict: Outcome,
}

/// The contestants of some runs.
///
/// # Errors
/// Where a contestant made the same attempt in two runs.
pub fn contestants<'a>(
    records: impl IntoIterator<Item = &'a RunRecord>,
    by: By,
) -> Result<Vec<Contestant<'a>>, VersusError> {
    let mut all: Vec<Contestant<'a>> = Vec::new();
    for record in records {
        for row in &record.rows {
            let name = match by {
                By::Run => record.run.id.clone(),
                By::Model => row.model.clone(),
                By::Tool => row.tool.clone(),
            };
            let index = match all.iter().position(|contestant| contestant.name == name) {
                Some(index) => index,
                None => {
                    all.push(Contestant { name, attempts: BTreeMap::new() });
                    all.len() - 1
                }
            };
            let (model, tool) = match by {
                By::Run => (row.model.as_str(), row.tool.as_str()),
                By::Model => ("", row.tool.as_str()),
                By::Tool => (row.model.as_str(), ""),
            };
            let unit = (model, tool, row.prompt.as_str(), row.set.as_str(), row.case.as_str(), row.repeat);
            if all[index].attempts.insert(unit, (row, record)).is_some() {
                let what = format!("{}/{}", row.set, row.case);
                return Err(VersusError::Twice { name: all[index].name.clone(), what });
            }
        }
    }
    if all.len() < 2 {
        return Err(VersusError::One { what: by.name() });
    }
    Ok(all)
}

/// What is compared unless told otherwise: what there is more than one of.
pub fn usual(records: &[RunRecord]) -> By {
    let models = |record: &RunRecord| record.run.plan.iter().map(|cell| cell.model.clone()).collect::<BTreeSet<_>>();
    let tools = |record: &RunRecord| record.run.plan.iter().map(|cell| cell.tool.clone()).collect::<BTreeSet<_>>();
    let differ = |of: &dyn Fn(&RunRecord) -> BTreeSet<String>| {
        records
            .iter()
            .enumerate()
            .all(|(index, record)| records[..index].iter().all(|other| of(record).is_disjoint(&of(other))))
    };
    match records {
        [one] if models(one).len() > 1 => By::Model,
        [_] => By::Tool,
        _ if differ(&models) => By::Model,
        _ if differ(&tools) => By::Tool,
        _ => By::Run,
    }
}

/// All pairs of contestants: the first with each other one, then the others among themselves.
///
/// # Errors
/// Where two have nothing in common, or differ in more than what is compared.
pub fn compare(
    contestants: &[Contestant<'_>],
    by: By,
    strictness: Strictness,
    allow_mismatch: bool,
) -> Result<Vec<Versus>, VersusError> {
    let mut all = Vec::new();
    for (index, base) in contestants.iter().enumerate() {
        for head in &contestants[index + 1..] {
            all.push(versus(base, head, by, allow_mismatch)?);
        }
    }
    let adjusted = holm(&all.iter().map(|versus| versus.p).collect::<Vec<_>>());
    for (versus, p) in all.iter_mut().zip(adjusted) {
        versus.judge(p, strictness);
    }
    Ok(all)
}

/// A run against an earlier one: the paired check of a gate.
///
/// # Errors
/// Where they have nothing in common, or differ in more than what was answered.
pub fn against(
    base: &RunRecord,
    head: &RunRecord,
    strictness: Strictness,
    allow_mismatch: bool,
) -> Result<Versus, VersusError> {
    let all = contestants([base, head], By::Run)?;
    let mut pairs = compare(&all, By::Run, strictness, allow_mismatch)?;
    pairs.pop().ok_or(VersusError::One { what: By::Run.name() })
}

fn judged(row: &Row) -> bool {
    row.verdict.is_judged()
}

fn versus(base: &Contestant<'_>, head: &Contestant<'_>, by: By, allow: bool) -> Result<Versus, VersusError> {
    let mut sets: BTreeMap<&str, Flips> = BTreeMap::new();
    let mut tags: BTreeMap<&str, Flips> = BTreeMap::new();
    let (mut lost_cases, mut gained_cases, mut unpaired) = (Vec::new(), Vec::new(), 0);
    let mut mismatches = BTreeSet::new();
    let (mut common, mut seen) = (0, BTreeSet::new());
    for (unit, (was, base_run)) in &base.attempts {
        let Some((is, head_run)) = head.attempts.get(unit) else {
            continue;
        };
        common += 1;
        let cells = (was.cell_key(), is.cell_key());
        if seen.insert(cells) {
            mismatches.extend(differences((base_run, was), (head_run, is), by));
        }
        if !judged(was) || !judged(is) {
            unpaired += 1;
            continue;
        }
        let (before, after) = (was.verdict == Verdict::Pass, is.verdict == Verdict::Pass);
        sets.entry(&was.set).or_default().add(before, after);
        for tag in &was.tags {
            tags.entry(tag).or_default().add(before, after);
        }
        let flip = || Flip {
            model: is.model.clone(),
            tool: is.tool.clone(),
            set: is.set.clone(),
            case: is.case.clone(),
            repeat: is.repeat,
            was: was.class.clone(),
            is: is.class.clone(),
            because: because(was, is),
        };
        match (before, after) {
            (true, false) => lost_cases.push(flip()),
            (false, true) => gained_cases.push(flip()),
            _ => {}
        }
    }
    if common == 0 {
        return Err(VersusError::NothingInCommon { base: base.name.clone(), head: head.name.clone() });
    }
    if !mismatches.is_empty() && !allow {
        let what = mismatches.into_iter().collect::<Vec<_>>().join("; ");
        return Err(VersusError::Mismatch { base: base.name.clone(), head: head.name.clone(), what });
    }
    let flips = sets.values().fold(Flips::default(), |sum, flips| sum.plus(*flips));
    let strata: Vec<Flips> = sets.values().copied().collect();
    let Difference { estimate, low, high } = stratified(&strata);
    let parts = |parts: BTreeMap<&str, Flips>| {
        parts.into_iter().map(|(name, flips)| part(name, flips)).filter(|part| part.pairs > 0).collect::<Vec<_>>()
    };
    Ok(Versus {
        base: base.name.clone(),
        head: head.name.clone(),
        pairs: flips.pairs(),
        both: flips.both,
        lost: flips.lost,
        gained: flips.gained,
        neither: flips.neither,
        p: flips.p(),
        mid_p: mid_p(flips.lost, flips.gained),
        p_adjusted: flips.p(),
        difference: estimate,
        low,
        high,
        outcome: String::new(),
        unpaired,
        mismatches: mismatches.into_iter().collect(),
        lost_cases,
        gained_cases,
        sets: parts(sets),
        tags: parts(tags),
        verdict: Outcome::Inconclusive,
    })
}

fn part(name: &str, flips: Flips) -> Part {
    let Difference { estimate, low, high } = paired(flips);
    Part {
        name: name.to_owned(),
        pairs: flips.pairs(),
        base: flips.both + flips.lost,
        head: flips.both + flips.gained,
        lost: flips.lost,
        gained: flips.gained,
        p: flips.p(),
        difference: estimate,
        low,
        high,
    }
}

/// What differs in two cells besides what is compared.
fn differences(base: (&RunRecord, &Row), head: (&RunRecord, &Row), by: By) -> Vec<String> {
    let plan = |(record, row): (&RunRecord, &Row)| -> Option<CellPlan> {
        record.run.plan.iter().find(|cell| cell.key() == row.cell_key()).cloned()
    };
    let named = |(record, _): (&RunRecord, &Row), part: &str, name: &str| -> Value {
        let held = record.run.fingerprint.get(part).and_then(|part| part.get(name));
        held.cloned().unwrap_or(Value::Null)
    };
    let talk = |(record, _): (&RunRecord, &Row)| record.run.fingerprint.get("conversation").cloned();
    let mut out = Vec::new();
    let set = &base.1.set;
    if plan(base).map(|cell| cell.digest) != plan(head).map(|cell| cell.digest) {
        out.push(format!("the cases of {set}"));
    }
    if talk(base) != talk(head) {
        out.push("how conversations are led (prompt, turns, system prompt)".to_owned());
    }
    let settings = |side: (&RunRecord, &Row)| named(side, "models", &side.1.model).get("settings").cloned();
    if settings(base) != settings(head) {
        out.push("the settings of the model (sampling, extra fields)".to_owned());
    }
    if by != By::Model
        && named(base, "models", &base.1.model).get("server") != named(head, "models", &head.1.model).get("server")
    {
        out.push(format!("the server of {} or its build", base.1.model));
    }
    if by != By::Tool && named(base, "tools", &base.1.tool) != named(head, "tools", &head.1.tool) {
        out.push(format!("the schema, description or options of {}", base.1.tool));
    }
    out
}

impl Contestant<'_> {
    /// What it came to on the attempts that all of `others` made as well.
    pub fn standing(&self, others: &[Contestant<'_>]) -> Standing {
        let shared =
            self.attempts.iter().filter(|(unit, _)| others.iter().all(|other| other.attempts.contains_key(*unit)));
        let rows: Vec<&Row> = shared.map(|(_, (row, _))| *row).collect();
        let count = |which: &dyn Fn(&Row) -> bool| rows.iter().filter(|row| which(row)).count();
        let (passed, judged) = (count(&|row| row.verdict == Verdict::Pass), count(&judged));
        let (low, high) = wilson(passed, judged);
        Standing {
            name: self.name.clone(),
            passed,
            judged,
            errors: count(&|row| row.verdict == Verdict::Error),
            low,
            high,
            harm: count(&|row| row.harm),
            cost_usd: rows.iter().filter_map(|row| row.cost_usd).reduce(|a, b| a + b),
            model_ms: median(rows.iter().filter_map(|row| row.model_ms).collect()),
            output_tokens: median(rows.iter().filter_map(|row| row.usage.output).collect()),
        }
    }
}

fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied()
}

/// One place of the model × tool matrix.
#[derive(Clone, Debug, Serialize)]
pub struct Place {
    pub model: String,
    pub tool: String,
    pub prompt: String,
    pub passed: usize,
    pub judged: usize,
    pub low: f64,
    pub high: f64,
}

/// The matrix over all runs given.
pub fn matrix(records: &[RunRecord]) -> Vec<Place> {
    let mut places: BTreeMap<(&str, &str, &str), (usize, usize)> = BTreeMap::new();
    for row in records.iter().flat_map(|record| &record.rows).filter(|row| judged(row)) {
        let place = places.entry((&row.model, &row.tool, &row.prompt)).or_default();
        place.0 += usize::from(row.verdict == Verdict::Pass);
        place.1 += 1;
    }
    let place = |((model, tool, prompt), (passed, judged)): ((&str, &str, &str), (usize, usize))| {
        let (low, high) = wilson(passed, judged);
        Place { model: model.into(), tool: tool.into(), prompt: prompt.into(), passed, judged, low, high }
    };
    places.into_iter().map(place).collect()
}

/// More attempts at flipped cases: passed, judged; by model, tool, set and case.
pub type Again = BTreeMap<(String, String, String, String), (usize, usize)>;

impl Versus {
    fn flips(&self) -> Flips {
        Flips { both: self.both, lost: self.lost, gained: self.gained, neither: self.neither }
    }

    /// Notes how it came out, at this (adjusted) p value.
    fn judge(&mut self, p: f64, strictness: Strictness) {
        self.p_adjusted = p;
        self.verdict = outcome(self.flips(), p, strictness.alpha, strictness.margin).0;
        // What has no verdict on one side may have been lost.
        if self.unpaired > 0 && self.verdict == Outcome::Same {
            self.verdict = Outcome::Inconclusive;
        }
        self.outcome = format!("{:?}", self.verdict).to_lowercase();
    }

    /// Judges again after flipped cases were tried more often: a flip counts where most attempts, the first one among
    /// them, agree with it. Returns how many flips were not confirmed.
    pub fn confirmed(&mut self, again: &Again, strictness: Strictness) -> usize {
        let key = |flip: &Flip| (flip.model.clone(), flip.tool.clone(), flip.set.clone(), flip.case.clone());
        let passes = |flip: &Flip, first: usize| {
            let (passed, judged) = again.get(&key(flip)).copied().unwrap_or_default();
            (2 * (passed + first)).cmp(&(judged + 1))
        };
        let (lost, gained) = (self.lost_cases.len(), self.gained_cases.len());
        self.lost_cases.retain(|flip| passes(flip, 0).is_lt());
        self.gained_cases.retain(|flip| passes(flip, 1).is_gt());
        let (back, gone) = (lost - self.lost_cases.len(), gained - self.gained_cases.len());
        (self.lost, self.both) = (self.lost - back, self.both + back);
        (self.gained, self.neither) = (self.gained - gone, self.neither + gone);
        let flips = self.flips();
        (self.p, self.mid_p) = (flips.p(), mid_p(flips.lost, flips.gained));
        let Difference { estimate, low, high } = paired(flips);
        (self.difference, self.low, self.high) = (estimate, low, high);
        self.judge(flips.p(), strictness);
        back + gone
    }

    /// The whole of it in one sentence.
    pub fn headline(&self) -> String {
        let counts = format!(
            "{} lost, {} gained of {} pairs, {} ({})",
            self.lost,
            self.gained,
            self.pairs,
            p_words(self.p_adjusted),
            self.difference_words()
        );
        match self.verdict {
            Outcome::Regressed => format!("REGRESSED: {} against {}: {counts}", self.head, self.base),
            Outcome::Improved => format!("IMPROVED: {} against {}: {counts}", self.head, self.base),
            Outcome::Same => format!("SAME: {} and {}: {counts}", self.head, self.base),
            Outcome::Inconclusive => format!("INCONCLUSIVE: {} against {}: {counts}", self.head, self.base),
        }
    }

    /// The difference in points, with its interval.
    pub fn difference_words(&self) -> String {
        points(self.difference, self.low, self.high)
    }
}
