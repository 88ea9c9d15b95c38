//! `summary.json`: all of a summary for programs. Its schema: docs/summary.schema.json.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::summary::{Gate, Summary, name_of};
use super::terminal::gate_words;
use super::versus::Versus;
use crate::record::Totals;
use crate::text::visible;
use crate::verdict::interval::clopper_pearson;

/// The version of the format.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Whole<'a> {
    schema: u32,
    run: &'a str,
    started: &'a str,
    ended: Option<&'a str>,
    editgate: &'a str,
    gate: Word,
    headline: String,
    totals: Totals,
    cost_usd: Option<f64>,
    cells: Vec<Cell<'a>>,
    tags: Vec<Tag<'a>>,
    classes: BTreeMap<&'a str, usize>,
    flaky: Vec<Flaky<'a>>,
    baseline: Option<&'a Versus>,
    fallen: Vec<&'a str>,
    split_gap: Option<Gap>,
    notes: &'a [String],
    fingerprint: &'a serde_json::Map<String, Value>,
}

#[derive(Serialize)]
struct Word {
    word: &'static str,
    why: Option<String>,
}

#[derive(Serialize)]
struct Cell<'a> {
    model: &'a str,
    tool: &'a str,
    set: &'a str,
    subset: Option<&'a str>,
    prompt: &'a str,
    /// Counted in another cell already.
    part: bool,
    digest: &'a str,
    conditions: &'a str,
    totals: Totals,
    rate: Option<f64>,
    wilson: [f64; 2],
    clopper_pearson: [f64; 2],
    floor: Option<usize>,
    judgement: String,
    passes: &'a BTreeMap<&'a str, usize>,
    would_pass: BTreeMap<String, usize>,
}

#[derive(Serialize)]
struct Tag<'a> {
    model: &'a str,
    tool: &'a str,
    prompt: &'a str,
    /// `null` = over all sets.
    set: Option<&'a str>,
    tag: &'a str,
    passed: usize,
    planned: usize,
}

#[derive(Serialize)]
struct Flaky<'a> {
    model: &'a str,
    tool: &'a str,
    set: &'a str,
    case: &'a str,
    pattern: &'a str,
}

#[derive(Serialize)]
struct Gap {
    held_out_less_public: f64,
    low: f64,
    high: f64,
}

/// Renders the file.
///
/// # Errors
/// Never in practice.
pub fn render(summary: &Summary<'_>) -> Result<String, serde_json::Error> {
    let run = summary.run;
    let whole = Whole {
        schema: SCHEMA,
        run: &run.id,
        started: &run.started,
        ended: run.ended.as_deref(),
        editgate: &run.editgate,
        gate: word(&summary.gate),
        headline: summary.headline(),
        totals: summary.totals,
        cost_usd: summary.process.cost,
        cells: cells(summary),
        tags: tags(summary),
        classes: summary.classes.iter().map(|class| (class.class, class.count)).collect(),
        flaky: summary.flaky.iter().map(flaky).collect(),
        baseline: summary.baseline.as_ref(),
        fallen: summary.fallen.iter().map(|fallen| fallen.title.as_str()).collect(),
        split_gap: summary.split_gap().map(|gap| Gap {
            held_out_less_public: gap.estimate,
            low: gap.low,
            high: gap.high,
        }),
        notes: &summary.notes,
        fingerprint: &run.fingerprint,
    };
    pretty(&whole)
}

/// JSON for people and programs: what shows nothing, or turns its neighbours around, is written as an escape.
///
/// # Errors
/// Never in practice.
pub(super) fn pretty(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let text = serde_json::to_string_pretty(value)?;
    let mut out = String::with_capacity(text.len() + 1);
    let mut units = [0; 2];
    for character in text.chars() {
        // Outside of strings there are no such characters but line breaks.
        if character != '\n' && visible::hides(character) {
            out.extend(character.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            out.push(character);
        }
    }
    out.push('\n');
    Ok(out)
}

fn word(gate: &Gate) -> Word {
    let of = |word, why: Option<String>| Word { word, why };
    match gate {
        Gate::Passed { .. } => of("pass", None),
        Gate::Ungated => of("ungated", None),
        Gate::Below { cells, floors } => of("below", Some(format!("{cells} of {floors} floors missed"))),
        Gate::Fallen { cases } => of("fallen", Some(format!("{cases} approved cases no longer pass"))),
        Gate::Regressed => of("regressed", None),
        Gate::Inconclusive { why } => of("inconclusive", Some(why.clone())),
        Gate::Incomplete { why } => of("incomplete", Some(why.clone())),
    }
}

fn cells<'a>(summary: &'a Summary<'_>) -> Vec<Cell<'a>> {
    let cell = |cell: &'a super::summary::CellSummary<'_>| {
        let judged = cell.totals.planned.saturating_sub(cell.totals.skipped);
        let (low, high) = clopper_pearson(cell.totals.passed, judged);
        Cell {
            model: &cell.plan.model,
            tool: &cell.plan.tool,
            set: &cell.plan.set,
            subset: cell.plan.subset.as_deref(),
            prompt: &cell.plan.prompt,
            part: cell.part,
            digest: &cell.plan.digest,
            conditions: &cell.plan.conditions,
            totals: cell.totals,
            rate: cell.rate,
            wilson: [cell.interval.0, cell.interval.1],
            clopper_pearson: [low, high],
            floor: cell.judgement.floor(),
            judgement: match gate_words(&cell.judgement).1.as_str() {
                "–" => "ungated".to_owned(),
                word => word.to_lowercase(),
            },
            passes: &cell.passes,
            would_pass: cell.relaxed.iter().map(|(relaxation, count)| (name_of(relaxation), *count)).collect(),
        }
    };
    summary.cells.iter().map(cell).collect()
}

fn tags<'a>(summary: &'a Summary<'_>) -> Vec<Tag<'a>> {
    let tag = |tag: &'a super::summary::TagSummary<'_>| Tag {
        model: &tag.cell.model,
        tool: &tag.cell.tool,
        prompt: &tag.cell.prompt,
        set: (!tag.all_sets).then_some(tag.cell.set.as_str()),
        tag: tag.tag,
        passed: tag.passed,
        planned: tag.planned,
    };
    summary.tags.iter().map(tag).collect()
}

fn flaky<'a>(flaky: &'a super::summary::Flaky<'_>) -> Flaky<'a> {
    let row = flaky.example;
    Flaky { model: &row.model, tool: &row.tool, set: &row.set, case: &row.case, pattern: &flaky.pattern }
}
