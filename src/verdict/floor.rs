//! Floors: the pass count that a cell must reach, with where it came from.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::record::CellPlan;
use crate::record::run_file::{CellKey, title};
use crate::workspace::write::output;

/// The version of the format that this reader and writer know.
pub const FORMAT: u32 = 1;

/// `reports/floors.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floors {
    pub format: u32,
    pub floors: Vec<Floor>,
    /// Cases that must go on passing, where that is required.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approved: Vec<Approved>,
}

/// A case that passed often enough to be relied on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approved {
    pub model: String,
    pub tool: String,
    pub set: String,
    pub prompt: String,
    pub case: String,
    /// Passed, of so many attempts.
    pub passed: usize,
    pub n: usize,
    /// Ids of the runs it came from.
    pub runs: Vec<String>,
}

impl Approved {
    /// Whether it speaks of a case of this cell, whatever subset that was run as.
    pub fn is_of(&self, (model, tool, set, _, prompt): CellKey<'_>) -> bool {
        (self.model.as_str(), self.tool.as_str(), self.set.as_str(), self.prompt.as_str()) == (model, tool, set, prompt)
    }

    pub fn title(&self) -> String {
        format!("{}/{} with {} × {} ({})", self.set, self.case, self.model, self.tool, self.prompt)
    }
}

/// One floor, bound to a cell, its cases and its conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floor {
    pub model: String,
    pub tool: String,
    pub set: String,
    /// `null` = the whole set.
    pub subset: Option<String>,
    pub prompt: String,
    /// Identity of the cases it was measured on.
    pub digest: String,
    /// Identity of the other conditions; `null` = not compared.
    #[serde(default)]
    pub conditions: Option<String>,
    /// Attempts it was measured on.
    pub n: usize,
    /// Attempts that must pass.
    pub floor: usize,
    /// Attempts that passed when it was measured; `null` = not kept.
    #[serde(default)]
    pub passed: Option<usize>,
    /// Ids of the runs it came from.
    pub runs: Vec<String>,
    pub method: String,
    /// Probability that an unchanged model fails it; `null` = not estimated.
    pub false_alarm: Option<f64>,
    /// The least drop of the rate that misses it four times out of five; `null` = not estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detects: Option<f64>,
    /// What its runs came to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
}

/// One run of a floor's evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    pub run: String,
    /// RFC 3339, UTC.
    pub made: String,
    pub passed: usize,
    pub n: usize,
}

#[derive(Debug, Error)]
pub enum FloorError {
    #[error("floors {}: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("floors {}: {source}", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("the floor of {cell} is not comparable: {reason}; record it again (floors set), or run with --no-gate")]
    NotComparable { cell: String, reason: String },
}

impl Floors {
    /// Reads a floors file.
    ///
    /// # Errors
    /// When it is missing, broken, of another format, or names a cell twice.
    pub fn load(path: &Path) -> Result<Self, FloorError> {
        let unreadable = |reason: String| FloorError::Unreadable { path: path.to_owned(), reason };
        let text = fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
        let floors: Floors = serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
        if floors.format != FORMAT {
            return Err(unreadable(format!(
                "format {} is not known here; this version reads format {FORMAT}",
                floors.format
            )));
        }
        for (index, floor) in floors.floors.iter().enumerate() {
            if floors.floors[..index].iter().any(|other| other.key() == floor.key()) {
                return Err(unreadable(format!(
                    "two floors for {} × {} × {} ({})",
                    floor.model, floor.tool, floor.set, floor.prompt
                )));
            }
        }
        Ok(floors)
    }

    /// The floor of a cell, if there is one.
    ///
    /// # Errors
    /// When there is one and it was measured on other cases, conditions or counts: that is never a pass.
    pub fn of(&self, cell: &CellPlan) -> Result<Option<&Floor>, FloorError> {
        // No floor speaks of a part of its cases.
        let found = self.floors.iter().find(|floor| !cell.narrowed && floor.key() == cell.key());
        let Some(floor) = found else {
            return Ok(None);
        };
        let differs = |reason: String| FloorError::NotComparable { cell: cell.title(), reason };
        if floor.digest != cell.digest {
            return Err(differs(format!(
                "it was measured on cases {}, and they are now {}",
                short(&floor.digest),
                short(&cell.digest)
            )));
        }
        if let Some(conditions) = &floor.conditions
            && *conditions != cell.conditions
        {
            return Err(differs(format!(
                "it was measured under conditions {}, and they are now {} (tool, prompt, sampling or limits)",
                short(conditions),
                short(&cell.conditions)
            )));
        }
        if floor.n != cell.attempts() {
            return Err(differs(format!("it was measured on {} attempts, and there are {}", floor.n, cell.attempts())));
        }
        Ok(Some(floor))
    }

    /// Sets the floor of a cell, replacing the one it had.
    pub fn set(&mut self, floor: Floor) {
        match self.floors.iter_mut().find(|other| other.key() == floor.key()) {
            Some(other) => *other = floor,
            None => self.floors.push(floor),
        }
    }

    /// Writes the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), FloorError> {
        let unwritable = |source| FloorError::Unwritable { path: path.to_owned(), source };
        let text = serde_json::to_string_pretty(self).map_err(|error| unwritable(error.into()))?;
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(unwritable)?;
        }
        output(path, format!("{text}\n").as_bytes()).map_err(unwritable)
    }
}

impl Default for Floors {
    fn default() -> Self {
        Floors { format: FORMAT, floors: Vec::new(), approved: Vec::new() }
    }
}

impl Floor {
    /// What it is bound to by name.
    pub fn key(&self) -> CellKey<'_> {
        (&self.model, &self.tool, &self.set, self.subset.as_deref(), &self.prompt)
    }

    /// A name for people, as that of its cell.
    pub fn title(&self) -> String {
        title(self.key())
    }
}

fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}
