//! Proves cases against the tools: one who knows the answer makes each case's edit through each tool, and the harness
//! scores it as it scores a model.

use std::io;
use std::thread;

use crate::case::CaseSet;
use crate::case::select::{Selected, Selection, select};
use crate::model::builtin::Builtin;
use crate::record::Row;
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

/// Every `parts`-th attempt, from the `part`-th on.
fn prove_part(sets: &[CaseSet], workspaces: &Workspaces, part: usize, parts: usize) -> io::Result<Vec<(usize, Row)>> {
    let selected: Vec<Selected<'_>> = select(sets, &Selection::default()).map_err(io::Error::other)?;
    let models = [PlannedModel { model: Box::new(Builtin::Oracle), settings: serde_json::Value::Null }];
    let (tools, settings) = (tool::all(), RunSettings::default());
    let plan = Plan::new(&models, &tools, &selected, &settings);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let mine = plan.attempts().filter(|planned| planned.index % parts == part);
    Ok(mine.map(|planned| (planned.index, runtime.block_on(attempt(planned, &settings, workspaces)).row)).collect())
}
