//! Proves cases against the tools: one who knows the answer makes each case's edit through each tool, and the harness
//! scores it as it scores a model.

use std::collections::BTreeMap;
use std::io;
use std::thread;

use crate::case::CaseSet;
use crate::case::select::{Selected, Selection, select};
use crate::model::builtin::Builtin;
use crate::record::Row;
use crate::score::Verdict;
use crate::text::visible;
use crate::tool;
use crate::workspace::Workspaces;

use super::attempt::attempt;
use super::plan::{Plan, PlannedModel};
use super::settings::RunSettings;

/// What came of one case through each tool, in the order of the sets, their tools and cases.
///
/// # Errors
/// When no workspaces or threads can be had.
pub fn prove(sets: &[CaseSet]) -> io::Result<Vec<Row>> {
    if sets.iter().all(|set| set.cases.is_empty()) {
        return Ok(Vec::new());
    }
    let workspaces = Workspaces::create(None)?;
    let parts = thread::available_parallelism().map_or(1, |count| count.get().min(8));
    let mut rows: Vec<(usize, Row)> = Vec::new();
    thread::scope(|scope| {
        let workspaces = &workspaces;
        let work: Vec<_> =
            (0..parts).map(|part| scope.spawn(move || prove_part(sets, workspaces, part, parts))).collect();
        for part in work {
            let done = part.join().unwrap_or_else(|_| Err(io::Error::other("a proof ended in a panic")))?;
            rows.extend(done);
        }
        Ok::<(), io::Error>(())
    })?;
    rows.sort_by_key(|(index, _)| *index);
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

/// Why cases are not proven, by set and case: bytes that are not reached through a tool that can express the change, or no
/// tool that can.
pub fn unproven(rows: &[Row]) -> BTreeMap<(&str, &str), Vec<String>> {
    let mut by_case: BTreeMap<(&str, &str), Vec<&Row>> = BTreeMap::new();
    for row in rows {
        by_case.entry((&row.set, &row.case)).or_default().push(row);
    }
    let reasons = |(key, rows): (_, Vec<&Row>)| {
        let mut reasons: Vec<String> = rows.iter().filter_map(|row| unreached(row)).collect();
        if rows.iter().all(|row| row.verdict == Verdict::Skipped) {
            let why = rows.iter().find_map(|row| row.error.as_deref()).unwrap_or_default();
            reasons.push(format!("no tool can express it: {why}"));
        }
        (key, reasons)
    };
    by_case.into_iter().map(reasons).filter(|(_, reasons)| !reasons.is_empty()).collect()
}

fn unreached(row: &Row) -> Option<String> {
    if !matches!(row.verdict, Verdict::Fail | Verdict::Error) {
        return None;
    }
    let error = row.error.as_deref().map(|error| format!(" ({error})")).unwrap_or_default();
    let diff = row.detail.as_ref().map(|detail| detail.diff.replace('\n', " ⏎ ")).unwrap_or_default();
    let words = format!(
        "one who knows the answer does not reach it through {}: {}{error} {}",
        row.tool,
        row.class,
        visible::excerpt(&diff, 160)
    );
    Some(words.trim_end().to_owned())
}

/// Every `parts`-th attempt, from the `part`-th on.
fn prove_part(sets: &[CaseSet], workspaces: &Workspaces, part: usize, parts: usize) -> io::Result<Vec<(usize, Row)>> {
    let selected: Vec<Selected<'_>> = select(sets, &Selection::default()).map_err(io::Error::other)?;
    let models = [PlannedModel::plain(Box::new(Builtin::Oracle), serde_json::Value::Null)];
    let (tools, settings) = (tool::all(), RunSettings::default());
    let plan = Plan::new(&models, &tools, &selected, &settings);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let mine = plan.attempts().filter(|planned| planned.index % parts == part);
    Ok(mine.map(|planned| (planned.index, runtime.block_on(attempt(planned, &settings, workspaces)).row)).collect())
}
