//! What a summary counts besides verdicts: tags, classes, conduct, how attempts went, flaky cases.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::summary::{ClassSummary, Flaky, Process, TagSummary, name_of};
use crate::case::Split;
use crate::record::{CellPlan, Row};
use crate::score::Verdict;
use crate::tool::Note;
use crate::verdict::repeats::{is_flaky, pass_all, pass_at};

pub(super) fn tag_summaries<'a>(plan: &'a CellPlan, rows: &[&'a Row]) -> Vec<TagSummary<'a>> {
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
pub(super) fn tag_totals<'a>(tags: &[TagSummary<'a>]) -> Vec<TagSummary<'a>> {
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

pub(super) fn classes(rows: &[Row]) -> Vec<ClassSummary<'_>> {
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

pub(super) fn conduct(rows: &[Row]) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<Note, usize> = BTreeMap::new();
    for note in rows.iter().flat_map(|row| &row.conduct) {
        *counts.entry(*note).or_default() += 1;
    }
    let mut out: Vec<(String, usize)> = counts.into_iter().map(|(note, count)| (name_of(&note), count)).collect();
    out.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    out
}

pub(super) fn process(rows: &[Row]) -> Process {
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
    process.cost = rows.iter().filter_map(|row| row.cost_usd).reduce(|a, b| a + b);
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

pub(super) fn splits(rows: &[Row]) -> BTreeMap<Split, (usize, usize)> {
    let mut splits: BTreeMap<Split, (usize, usize)> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.verdict.is_judged()) {
        if let Some(split) = row.split {
            let (passed, judged) = splits.entry(split).or_default();
            *passed += usize::from(row.verdict == Verdict::Pass);
            *judged += 1;
        }
    }
    splits
}

/// Cases that neither always nor never passed, of those with several judged attempts.
pub(super) fn flaky(rows: &[Row]) -> Vec<Flaky<'_>> {
    by_case(rows)
        .into_values()
        .filter(|attempts| is_flaky(attempts.iter().filter(|row| row.verdict == Verdict::Pass).count(), attempts.len()))
        .map(|mut attempts| {
            attempts.sort_by_key(|row| row.repeat);
            let letter = |row: &&Row| if row.verdict == Verdict::Pass { 'P' } else { 'F' };
            Flaky { example: attempts[0], pattern: attempts.iter().map(letter).collect() }
        })
        .collect()
}

/// pass@k and pass^k of k attempts, as means over the cases that have as many; `None` where each case was tried once.
pub(super) fn repeated(rows: &[Row]) -> Option<(usize, f64, f64)> {
    let cases = by_case(rows);
    let k = cases.values().map(Vec::len).max().filter(|k| *k > 1)?;
    let shares: Vec<(f64, f64)> = cases
        .values()
        .filter_map(|attempts| {
            let passed = attempts.iter().filter(|row| row.verdict == Verdict::Pass).count();
            Some((pass_at(k, passed, attempts.len())?, pass_all(k, passed, attempts.len())?))
        })
        .collect();
    let mean = |of: fn(&(f64, f64)) -> f64| shares.iter().map(of).sum::<f64>() / shares.len() as f64;
    Some((k, mean(|share| share.0), mean(|share| share.1)))
}

type CaseKey<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str);

fn by_case(rows: &[Row]) -> BTreeMap<CaseKey<'_>, Vec<&Row>> {
    let mut cases: BTreeMap<CaseKey<'_>, Vec<&Row>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.verdict.is_judged()) {
        cases.entry((&row.model, &row.tool, &row.prompt, &row.set, &row.case)).or_default().push(row);
    }
    cases
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
