//! Writes a run as it happens: the run file at once, a row and a transcript as each attempt ends.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use bstr::ByteSlice;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::load::{LoadError, latest, lines};
use super::row::Row;
use super::run_file::RunFile;
use super::transcript::Transcript;
use crate::case::{Node, Tree};
use crate::model::recording::Key;
use crate::workspace::{snapshot, write::output};

pub(super) const RUN: &str = "run.json";
pub(super) const ROWS: &str = "attempts.jsonl";
pub(super) const TRANSCRIPTS: &str = "transcripts/attempts.jsonl";
const LOCK: &str = ".lock";
/// Rows reach the disk at least so often; the system has them at once, so only a power cut could lose one.
const SYNC_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Error)]
pub enum JournalError {
    #[error("cannot write {}", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("{} already holds a run; name another directory with --out, or go on with it: --resume {}", path.display(), path.display())]
    Taken { path: PathBuf },
    #[error("another editgate is writing to {}", path.display())]
    Busy { path: PathBuf },
    #[error(transparent)]
    Broken(#[from] LoadError),
}

/// The writer of one run directory.
#[derive(Debug)]
pub struct Journal {
    directory: PathBuf,
    /// Held as long as this journal is open.
    _lock: File,
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
        // One that was killed before it had written a thing holds nothing yet.
        let begun = fs::metadata(directory.join(ROWS)).is_ok_and(|rows| rows.len() > 0);
        if directory.join(RUN).exists() || begun {
            return Err(JournalError::Taken { path: directory.to_owned() });
        }
        let transcripts = directory.join(TRANSCRIPTS);
        fs::create_dir_all(transcripts.parent().unwrap_or(directory))
            .map_err(|source| JournalError::Unwritable { path: directory.to_owned(), source })?;
        let journal = Self::open(directory, Vec::new())?;
        journal.write_run(run)?;
        Ok(journal)
    }

    /// Opens a run that ended before its end, however it did: lines that were cut are taken off, and rows without their
    /// transcript are forgotten. Returns the rows that are there.
    ///
    /// # Errors
    /// When another process writes to it, or it cannot be read or written.
    pub fn reopen(directory: &Path) -> Result<(Self, Vec<Row>), JournalError> {
        let (rows, transcripts) = (directory.join(ROWS), directory.join(TRANSCRIPTS));
        let lock = lock(directory)?;
        for path in [&rows, &transcripts] {
            heal(path).map_err(|source| JournalError::Unwritable { path: path.clone(), source })?;
        }
        let read = |path: &PathBuf| {
            fs::read_to_string(path).map_err(|source| JournalError::Unwritable { path: path.clone(), source })
        };
        let told: Vec<Told> = lines(&transcripts, &read(&transcripts)?)?;
        let order: Vec<(String, Key)> = told.into_iter().map(|told| (told.model, told.key)).collect();
        let known: HashSet<&(String, Key)> = order.iter().collect();
        let mut kept = latest(&rows, lines(&rows, &read(&rows)?)?)?;
        kept.retain(|row| known.contains(&(row.model.clone(), row.key())));
        // What is forgotten must not stand in the way of the row that comes after it.
        let mut text = Vec::new();
        for row in &kept {
            append_line(&mut text, row).map_err(|source| JournalError::Unwritable { path: rows.clone(), source })?;
        }
        output(&rows, &text).map_err(|source| JournalError::Unwritable { path: rows.clone(), source })?;
        drop(lock);
        Ok((Self::open(directory, order)?, kept))
    }

    fn open(directory: &Path, order: Vec<(String, Key)>) -> Result<Self, JournalError> {
        let append = |name: &str| {
            let path = directory.join(name);
            let opened = OpenOptions::new().create(true).append(true).open(&path);
            opened.map_err(|source| JournalError::Unwritable { path, source })
        };
        Ok(Journal {
            _lock: lock(directory)?,
            rows: append(ROWS)?,
            transcripts: append(TRANSCRIPTS)?,
            directory: directory.to_owned(),
            synced: Instant::now(),
            order,
        })
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
            self.transcripts.sync_data().map_err(unwritable(TRANSCRIPTS))?;
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

/// Whose transcript a line is.
#[derive(Deserialize)]
struct Told {
    model: String,
    key: Key,
}

/// Takes a lock that ends with the process, however it ends.
fn lock(directory: &Path) -> Result<File, JournalError> {
    let path = directory.join(LOCK);
    let unwritable = |source| JournalError::Unwritable { path: path.clone(), source };
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(unwritable)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(JournalError::Busy { path: directory.to_owned() }),
        Err(TryLockError::Error(source)) => Err(unwritable(source)),
    }
}

/// Takes off what was cut while it was written: the end after the last line break, and last lines that are no JSON, as
/// a power cut leaves them. A file that is not there yet is made.
fn heal(path: &Path) -> io::Result<()> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            return File::create(path).map(drop);
        }
        Err(error) => return Err(error),
    };
    let mut end = bytes.len();
    while end > 0 {
        let start = bytes[..end - 1].rfind_byte(b'\n').map_or(0, |at| at + 1);
        let line = &bytes[start..end];
        if line.ends_with(b"\n") && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok() {
            break;
        }
        end = start;
    }
    if end < bytes.len() { OpenOptions::new().write(true).open(path)?.set_len(end as u64) } else { Ok(()) }
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
