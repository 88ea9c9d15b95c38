//! Writes a run as it happens: the run file at once, a row and a transcript as each attempt ends.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use thiserror::Error;

use super::row::Row;
use super::run_file::RunFile;
use super::transcript::Transcript;
use crate::case::{Node, Tree};
use crate::model::recording::Key;
use crate::workspace::{snapshot, write::output};

pub(super) const RUN: &str = "run.json";
pub(super) const ROWS: &str = "attempts.jsonl";
pub(super) const TRANSCRIPTS: &str = "transcripts/attempts.jsonl";
/// Rows reach the disk at least so often; the system has them at once, so only a power cut could lose one.
const SYNC_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Error)]
pub enum JournalError {
    #[error("cannot write {}: {source}", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("{} already holds a run; name another directory with --out", path.display())]
    Taken { path: PathBuf },
}

/// The writer of one run directory.
#[derive(Debug)]
pub struct Journal {
    directory: PathBuf,
    rows: File,
    transcripts: File,
    synced: Instant,
    /// Attempts in the order in which they ended.
    order: Vec<(String, Key)>,
}

impl Journal {
    /// Makes the directory and writes `run.json`, before anything is asked of a model.
    ///
    /// # Errors
    /// When the directory holds a run already, or cannot be written.
    pub fn create(directory: &Path, run: &RunFile) -> Result<Self, JournalError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| JournalError::Unwritable { path, source }
        };
        if directory.join(RUN).exists() || directory.join(ROWS).exists() {
            return Err(JournalError::Taken { path: directory.to_owned() });
        }
        let transcripts = directory.join(TRANSCRIPTS);
        fs::create_dir_all(transcripts.parent().unwrap_or(directory)).map_err(at(directory))?;
        let append = |path: &Path| OpenOptions::new().create(true).append(true).open(path).map_err(at(path));
        let journal = Journal {
            rows: append(&directory.join(ROWS))?,
            transcripts: append(&transcripts)?,
            directory: directory.to_owned(),
            synced: Instant::now(),
            order: Vec::new(),
        };
        journal.write_run(run)?;
        Ok(journal)
    }

    /// Writes `run.json` anew.
    ///
    /// # Errors
    /// When it cannot be written; the former one is then still there.
    pub fn write_run(&self, run: &RunFile) -> Result<(), JournalError> {
        let path = self.directory.join(RUN);
        let unwritable = |source| JournalError::Unwritable { path: path.clone(), source };
        let text = serde_json::to_string_pretty(run).map_err(|error| unwritable(error.into()))?;
        output(&path, format!("{text}\n").as_bytes()).map_err(unwritable)
    }

    /// Appends an attempt. `leftovers` are the files that a failed one left changed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(
        &mut self,
        row: &Row,
        transcript: &Transcript,
        leftovers: &[(String, Node)],
    ) -> Result<(), JournalError> {
        for (path, node) in leftovers {
            let root = self.directory.join("work").join(place_of(row));
            snapshot::put(&root, path, node).map_err(|source| JournalError::Unwritable { path: root, source })?;
        }
        let directory = &self.directory;
        let unwritable = |name: &str| {
            let path = directory.join(name);
            move |source| JournalError::Unwritable { path, source }
        };
        append_line(&mut self.transcripts, transcript).map_err(unwritable(TRANSCRIPTS))?;
        append_line(&mut self.rows, row).map_err(unwritable(ROWS))?;
        self.order.push((row.model.clone(), row.key()));
        if self.synced.elapsed() >= SYNC_EVERY {
            self.rows.sync_data().map_err(unwritable(ROWS))?;
            self.synced = Instant::now();
        }
        Ok(())
    }

    /// Ends the run: rows in the order of the plan, whatever order they ended in, and the final `run.json`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(&mut self, run: &RunFile, rows: &[Row]) -> Result<(), JournalError> {
        let path = self.directory.join(ROWS);
        let unwritable = |source| JournalError::Unwritable { path: path.clone(), source };
        let mut text = Vec::new();
        for row in rows {
            append_line(&mut text, row).map_err(unwritable)?;
        }
        output(&path, &text).map_err(unwritable)?;
        self.order_transcripts(rows)?;
        self.write_run(run)
    }

    /// Puts the transcripts into the order of the rows; nothing is done where they are in it.
    fn order_transcripts(&self, rows: &[Row]) -> Result<(), JournalError> {
        let path = self.directory.join(TRANSCRIPTS);
        let unwritable = |source| JournalError::Unwritable { path: path.clone(), source };
        let wanted: Vec<(String, Key)> = rows.iter().map(|row| (row.model.clone(), row.key())).collect();
        if self.order == wanted {
            return Ok(());
        }
        let bytes = fs::read(&path).map_err(unwritable)?;
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        let places: HashMap<&(String, Key), &[u8]> = self.order.iter().zip(lines).collect();
        let text: Vec<u8> =
            wanted.iter().filter_map(|key| places.get(key)).flat_map(|line| line.iter().copied()).collect();
        output(&path, &text).map_err(unwritable)
    }
}

/// Where the leftovers of an attempt are kept. Names come from files, so only plain parts of them lead anywhere.
fn place_of(row: &Row) -> PathBuf {
    let names = format!("{}/{}/{}/{}.{}", row.model, row.tool, row.set, row.case, row.repeat);
    Path::new(&names).components().filter(|part| matches!(part, Component::Normal(_))).collect()
}

fn append_line(out: &mut impl io::Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    out.write_all(&line)
}

/// The nodes of `actual` that differ from `before`, as they are kept of a failed attempt; those beside the workspace
/// are not, but the row tells of them.
pub fn leftovers(before: &Tree, actual: &Tree) -> Vec<(String, Node)> {
    before
        .changed_paths(actual)
        .into_iter()
        .filter_map(|path| {
            let node = actual.get(&path)?.clone();
            (matches!(node, Node::File { .. }) && !path.starts_with("../")).then_some((path, node))
        })
        .collect()
}
