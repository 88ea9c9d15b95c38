//! Reads a run directory back.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::journal::{ROWS, RUN, TRANSCRIPTS};
use super::row::Row;
use super::run_file::{FORMAT, RunFile};
use super::transcript::Transcript;
use crate::model::recording::Key;

/// A run as it lies on disk.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    pub directory: PathBuf,
    pub run: RunFile,
    pub rows: Vec<Row>,
}

#[derive(Debug, Error)]
pub enum LoadError {
    #[error("{}: not a run directory: {reason}", path.display())]
    NotARun { path: PathBuf, reason: String },
    #[error("{}:{line}: not a row: {reason}", path.display())]
    BadRow { path: PathBuf, line: usize, reason: String },
}

/// Reads `run.json` and `attempts.jsonl`. A last line that was cut while it was written is left out: its attempt has no row.
///
/// # Errors
/// When a part is missing, broken, or of another format.
pub fn load(directory: &Path) -> Result<RunRecord, LoadError> {
    let not_a_run = |reason: String| LoadError::NotARun { path: directory.to_owned(), reason };
    let read =
        |name: &str| fs::read_to_string(directory.join(name)).map_err(|error| not_a_run(format!("{name}: {error}")));
    let run = run_file(directory)?;
    let rows = latest(&directory.join(ROWS), lines(&directory.join(ROWS), &read(ROWS)?)?)?;
    Ok(RunRecord { directory: directory.to_owned(), run, rows })
}

/// Reads `run.json` alone.
///
/// # Errors
/// When it is missing, broken, or of another format.
pub fn run_file(directory: &Path) -> Result<RunFile, LoadError> {
    let not_a_run = |reason: String| LoadError::NotARun { path: directory.to_owned(), reason };
    let text = fs::read_to_string(directory.join(RUN)).map_err(|error| not_a_run(format!("{RUN}: {error}")))?;
    let run: RunFile = serde_json::from_str(&text).map_err(|error| not_a_run(format!("{RUN}: {error}")))?;
    if run.format != FORMAT {
        return Err(not_a_run(format!("format {} is not known here; this version reads format {FORMAT}", run.format)));
    }
    Ok(run)
}

/// One row an attempt: a later one takes the place of an error or of an attempt that was not made. Nothing takes the
/// place of a verdict.
pub(super) fn latest(path: &Path, rows: Vec<Row>) -> Result<Vec<Row>, LoadError> {
    let mut places: HashMap<(String, Key), usize> = HashMap::new();
    let mut out: Vec<Row> = Vec::new();
    for (index, row) in rows.into_iter().enumerate() {
        match places.entry((row.model.clone(), row.key())) {
            Entry::Vacant(place) => {
                place.insert(out.len());
                out.push(row);
            }
            Entry::Occupied(place) => {
                let former = &mut out[*place.get()];
                if former.verdict.is_judged() {
                    let reason = "this attempt has a row already".to_owned();
                    return Err(LoadError::BadRow { path: path.to_owned(), line: index + 1, reason });
                }
                *former = row;
            }
        }
    }
    Ok(out)
}

/// Reads the transcripts of a run.
///
/// # Errors
/// When they are missing or broken.
pub fn transcripts(directory: &Path) -> Result<Vec<Transcript>, LoadError> {
    let path = directory.join(TRANSCRIPTS);
    let text = fs::read_to_string(&path)
        .map_err(|error| LoadError::NotARun { path: path.clone(), reason: error.to_string() })?;
    lines(&path, &text)
}

pub(super) fn lines<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> Result<Vec<T>, LoadError> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .enumerate()
        .map(|(index, line)| {
            serde_json::from_str(line).map_err(|error| LoadError::BadRow {
                path: path.to_owned(),
                line: index + 1,
                reason: error.to_string(),
            })
        })
        .collect()
}
