//! `cases check`: proves every set, one line a fault.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;

use super::proofs;
use crate::case::check::{Pointer, faults};
use crate::case::load::{Survey, survey};
use crate::case::place::{Step, position_at};
use crate::case::{CaseError, CaseSet, digest};
use crate::cli::run::FLOORS;
use crate::cli::{Exit, Failure, output};
use crate::record::Row;
use crate::run::prove::unproven;
use crate::score::Verdict;
use crate::verdict::floor::{Floor, Floors};

#[derive(Debug, Args)]
pub(in crate::cli) struct CheckFlags {
    /// Directory of case sets, or one file [default: cases]
    #[arg(long, value_name = "PATH", env = "EDITGATE_CASES")]
    cases: Option<PathBuf>,
    /// Floors, whose cases must still be the ones they were measured on [default: reports/floors.json, if it is there]
    #[arg(long, value_name = "FILE", env = "EDITGATE_FLOORS")]
    floors: Option<PathBuf>,
}

pub(super) fn main(flags: &CheckFlags) -> Result<Exit, Failure> {
    let path = flags.cases.clone().unwrap_or_else(|| PathBuf::from("cases"));
    let survey = survey(&path).map_err(Failure::usage)?;
    let mut pointer = Pointer::default();
    let mut all = survey.faults.clone();
    all.extend(faults(&survey, &mut pointer));
    let rows = proofs(&survey.sets)?;
    all.extend(unreached(&survey, &rows, &mut pointer));
    all.extend(stale_floors(&survey.sets, flags)?);
    all.sort_by(|a, b| (&a.file, a.position).cmp(&(&b.file, b.position)));
    if all.is_empty() {
        output::data(&proven(&survey.sets, &rows))?;
        return Ok(Exit::Passed);
    }
    let lines: String = all.iter().map(|fault| format!("{fault}\n")).collect();
    output::data(&crate::text::visible::inert(&lines))?;
    Err(Failure::usage(anyhow!("{} in {}", counted(all.len(), "fault"), counted(survey.sets.len(), "set"))))
}

/// Cases that are not proven, each reason at its place.
fn unreached(survey: &Survey, rows: &[Row], pointer: &mut Pointer) -> Vec<CaseError> {
    let unproven = unproven(rows);
    let mut faults = Vec::new();
    for (set, case) in survey.sets.iter().flat_map(|set| set.cases.iter().map(move |case| (set, case))) {
        for why in unproven.get(&(set.name.as_str(), case.id.as_str())).into_iter().flatten() {
            faults.push(pointer.case_fault(set, case, "expect", why));
        }
    }
    faults
}

/// Floors of these sets that were measured on other cases.
fn stale_floors(sets: &[CaseSet], flags: &CheckFlags) -> Result<Vec<CaseError>, Failure> {
    let path = flags.floors.clone().unwrap_or_else(|| PathBuf::from(FLOORS));
    if flags.floors.is_none() && !path.exists() {
        return Ok(Vec::new());
    }
    let floors = Floors::load(&path).map_err(Failure::usage)?;
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let mut faults = Vec::new();
    for (index, floor) in floors.floors.iter().enumerate() {
        let Some(set) = sets.iter().find(|set| set.name == floor.set) else {
            continue;
        };
        if let Some(why) = stale(set, floor) {
            let steps = [Step::Key("floors"), Step::Index(index), Step::Key("digest")];
            let position = position_at(&text, &steps);
            let message = format!(
                "the floor of {} × {} × {} ({}) {why}; run it again and record it (floors set)",
                floor.model, floor.tool, floor.set, floor.prompt
            );
            faults.push(CaseError { file: path.clone(), position, message });
        }
    }
    Ok(faults)
}

fn stale(set: &CaseSet, floor: &Floor) -> Option<String> {
    let members = match &floor.subset {
        None => None,
        Some(name) => match set.subsets.get(name) {
            Some(members) => Some(members),
            None => return Some(format!("speaks of subset `{name}`, which the set does not have")),
        },
    };
    let cases = set.cases.iter().filter(|case| members.is_none_or(|members| members.contains(&case.id)));
    (digest::of_cases(&set.name, cases) != floor.digest).then(|| "was measured on other cases".to_owned())
}

/// What has been proven, in figures.
fn proven(sets: &[CaseSet], rows: &[Row]) -> String {
    let cases: usize = sets.iter().map(|set| set.cases.len()).sum();
    let mut tools: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for row in rows {
        let counts = tools.entry(&row.tool).or_default();
        match row.verdict {
            Verdict::Skipped => counts.1 += 1,
            _ => counts.0 += 1,
        }
    }
    let mut text = format!("{} in {}: no fault\n", counted(cases, "case"), counted(sets.len(), "set"));
    for (tool, (reached, cannot)) in tools {
        let cannot = if cannot > 0 { format!(", {cannot} cannot be expressed") } else { String::new() };
        text.push_str(&format!("{tool}: expected bytes reached in {reached}{cannot}\n"));
    }
    text
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
