//! `history.jsonl`: one line a cell and run. What floors are suggested from, and what the trend shows.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::load::{LoadError, RunRecord, lines};
use super::row::Row;
use super::run_file::{CellKey, CellPlan, Status, title};
use crate::score::Verdict;
use crate::workspace::write::output;

/// One cell of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub run: String,
    /// RFC 3339, UTC: when the answers were made, also where a recording of them was replayed.
    pub made: String,
    pub editgate: String,
    /// Whether the answers came from a recording.
    pub replayed: bool,
    pub model: String,
    pub tool: String,
    pub set: String,
    pub subset: Option<String>,
    pub prompt: String,
    /// Identity of the cases.
    pub digest: String,
    /// Identity of the other conditions.
    pub conditions: String,
    pub planned: usize,
    pub passed: usize,
    pub failed: usize,
    pub errors: usize,
    pub skipped: usize,
    pub harm: usize,
    /// The floor it was judged by; `null` = none.
    pub floor: Option<usize>,
    /// Of the attempts, as far as they are known.
    pub cost_usd: Option<f64>,
    /// The median of the attempts; `null` = not observed.
    pub model_ms: Option<u64>,
}

#[derive(Debug, Error)]
pub enum HistoryError {
    #[error("history {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Broken(#[from] LoadError),
}

impl Entry {
    /// What names the cell.
    pub fn key(&self) -> CellKey<'_> {
        (&self.model, &self.tool, &self.set, self.subset.as_deref(), &self.prompt)
    }

    /// A name for people: `model × tool × set/subset (prompt)`.
    pub fn title(&self) -> String {
        title(self.key())
    }

    /// Whether every planned attempt came to a verdict.
    pub fn whole(&self) -> bool {
        self.passed + self.failed == self.planned && self.planned > 0
    }

    /// A recording that is replayed again says nothing new.
    fn evidence(&self) -> &str {
        if self.replayed { &self.made } else { &self.run }
    }
}

/// The entries of a run: one for each cell that was run whole. `floor` finds what a cell is judged by.
pub fn of_run(record: &RunRecord, floor: impl Fn(&CellPlan) -> Option<usize>) -> Vec<Entry> {
    let run = &record.run;
    let whole = run.plan.iter().filter(|cell| !cell.narrowed && run.status == Status::Complete);
    whole
        .map(|cell| {
            let rows: Vec<&Row> = record.rows.iter().filter(|row| row.cell_key() == cell.key()).collect();
            let count = |verdict: Verdict| rows.iter().filter(|row| row.verdict == verdict).count();
            let mut times: Vec<u64> = rows.iter().filter_map(|row| row.model_ms).collect();
            times.sort_unstable();
            Entry {
                run: run.id.clone(),
                made: run.source.as_ref().map_or(&run.started, |source| &source.recorded).clone(),
                editgate: run.editgate.clone(),
                replayed: run.source.is_some(),
                model: cell.model.clone(),
                tool: cell.tool.clone(),
                set: cell.set.clone(),
                subset: cell.subset.clone(),
                prompt: cell.prompt.clone(),
                digest: cell.digest.clone(),
                conditions: cell.conditions.clone(),
                planned: cell.attempts(),
                passed: count(Verdict::Pass),
                failed: count(Verdict::Fail),
                errors: count(Verdict::Error),
                skipped: count(Verdict::Skipped),
                harm: rows.iter().filter(|row| row.harm).count(),
                floor: floor(cell),
                cost_usd: rows.iter().filter_map(|row| row.cost_usd).reduce(|a, b| a + b),
                model_ms: times.get(times.len() / 2).copied(),
            }
        })
        .collect()
}

/// Reads a history; none is an empty one.
///
/// # Errors
/// When it cannot be read, or holds a line that is none of its own.
pub fn load(path: &Path) -> Result<Vec<Entry>, HistoryError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(lines(path, &text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(HistoryError::Io { path: path.to_owned(), source }),
    }
}

/// Adds entries that the history does not have yet, and says how many those were. The whole file is written anew, so that
/// a cut one is never left.
///
/// # Errors
/// When it cannot be read or written.
pub fn append(path: &Path, entries: &[Entry]) -> Result<usize, HistoryError> {
    let io = |source| HistoryError::Io { path: path.to_owned(), source };
    let mut all = load(path)?;
    let known: HashSet<(String, String)> = all.iter().map(|entry| (entry.run.clone(), entry.title())).collect();
    let fresh = entries.iter().filter(|entry| !known.contains(&(entry.run.clone(), entry.title())));
    let before = all.len();
    all.extend(fresh.cloned());
    let mut text = String::new();
    for entry in &all {
        text.push_str(&serde_json::to_string(entry).map_err(|error| io(error.into()))?);
        text.push('\n');
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(io)?;
    }
    output(path, text.as_bytes()).map_err(io)?;
    Ok(all.len() - before)
}

/// What is known of a cell from several runs.
#[derive(Clone, Debug)]
pub struct Known {
    /// The newest entry: it says which cases and conditions count.
    pub newest: Entry,
    /// All entries that count, the newest among them, oldest first.
    pub runs: Vec<Entry>,
    /// Entries that do not count, each with the reason.
    pub left_out: Vec<(Entry, &'static str)>,
}

impl Known {
    /// Passed, of.
    pub fn counts(&self) -> Vec<(usize, usize)> {
        self.runs.iter().map(|entry| (entry.passed, entry.planned)).collect()
    }
}

/// Entries by cell, in the order in which the cells first appear. Only whole runs of the same cases under the same conditions as the
/// newest one count, each set of answers once.
pub fn by_cell(mut entries: Vec<Entry>) -> Vec<Known> {
    entries.sort_by(|a, b| a.made.cmp(&b.made));
    let mut cells: Vec<Known> = Vec::new();
    for entry in entries.into_iter().rev() {
        let Some(known) = cells.iter_mut().find(|known| known.newest.key() == entry.key()) else {
            let (runs, left_out) = match entry.whole() {
                true => (vec![entry.clone()], Vec::new()),
                false => (Vec::new(), vec![(entry.clone(), INCOMPLETE)]),
            };
            cells.push(Known { newest: entry, runs, left_out });
            continue;
        };
        let why = if entry.digest != known.newest.digest {
            Some("other cases")
        } else if entry.conditions != known.newest.conditions {
            Some("other conditions (tool, prompt, sampling or limits)")
        } else if !entry.whole() {
            Some(INCOMPLETE)
        } else if known.runs.iter().any(|other| other.evidence() == entry.evidence()) {
            Some("the same answers again")
        } else {
            None
        };
        match why {
            Some(why) => known.left_out.push((entry, why)),
            None => known.runs.insert(0, entry),
        }
    }
    cells.sort_by(|a, b| a.newest.key().cmp(&b.newest.key()));
    cells
}

const INCOMPLETE: &str = "not every attempt came to a verdict";

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(run: &str, made: &str, digest: &str, passed: usize) -> Entry {
        Entry {
            run: run.into(),
            made: made.into(),
            editgate: "0".into(),
            replayed: false,
            model: "m".into(),
            tool: "t".into(),
            set: "s".into(),
            subset: None,
            prompt: "plain".into(),
            digest: digest.into(),
            conditions: "c".into(),
            planned: 10,
            passed,
            failed: 10 - passed,
            errors: 0,
            skipped: 0,
            harm: 0,
            floor: None,
            cost_usd: None,
            model_ms: None,
        }
    }

    #[test]
    fn only_runs_of_the_same_cases_count() {
        let errors = Entry { errors: 1, failed: 0, ..entry("e", "4", "new", 9) };
        let replay = Entry { replayed: true, made: "3".into(), ..entry("again", "3", "new", 8) };
        let first = Entry { replayed: true, ..entry("r", "3", "new", 8) };
        let all = vec![
            entry("a", "1", "old", 3),
            entry("b", "2", "new", 7),
            first,
            replay,
            errors,
            entry("c", "5", "new", 6),
        ];
        let known = by_cell(all);
        assert_eq!(known.len(), 1);
        assert_eq!(known[0].counts(), [(7, 10), (8, 10), (6, 10)]);
        let why: Vec<&str> = known[0].left_out.iter().map(|(_, why)| *why).collect();
        assert_eq!(why, [INCOMPLETE, "the same answers again", "other cases"]);
    }

    #[test]
    fn a_history_grows_once_by_each_run() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("deep/history.jsonl");
        assert_eq!(load(&path).unwrap(), []);
        assert_eq!(append(&path, &[entry("a", "1", "d", 3)]).unwrap(), 1);
        assert_eq!(append(&path, &[entry("a", "1", "d", 3), entry("b", "2", "d", 4)]).unwrap(), 1);
        assert_eq!(load(&path).unwrap().len(), 2);
        fs::write(&path, "{}\n").unwrap();
        assert!(append(&path, &[]).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n");
    }
}
