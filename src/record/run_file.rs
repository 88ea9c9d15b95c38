//! `run.json`: what was planned, under which fingerprint, and how it ended.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::score::Verdict;

/// The version of the format that this reader and writer know.
pub const FORMAT: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunFile {
    pub format: u32,
    pub id: String,
    pub status: Status,
    pub editgate: String,
    /// RFC 3339, UTC.
    pub started: String,
    pub ended: Option<String>,
    pub elapsed_ms: Option<u64>,
    /// The command line that made it.
    pub command: String,
    /// Its arguments after `run`, from which it can be resumed.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Hashes and settings of all that a score depends on.
    pub fingerprint: Map<String, Value>,
    /// Where the answers came from, when not from a live model.
    pub source: Option<Source>,
    pub plan: Vec<CellPlan>,
    /// Planned = passed + failed + errors + skipped; `None` until the run ended.
    pub totals: Option<Totals>,
}

/// How far a run came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Running,
    Complete,
    Interrupted,
}

/// A recording that was replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    pub recording: String,
    pub model: String,
    pub recorded: String,
}

/// Model × tool × set (× subset): the unit that has a pass count and a floor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellPlan {
    pub model: String,
    pub tool: String,
    pub set: String,
    pub subset: Option<String>,
    pub prompt: String,
    /// Identity of the cases.
    pub digest: String,
    /// Identity of the other conditions: tool, prompt, limits, sampling.
    pub conditions: String,
    /// A filter left cases out, so that no floor speaks of it.
    pub narrowed: bool,
    pub cases: usize,
    pub repeats: usize,
    /// The named subsets of a cell that holds a whole set, so that their floors can be judged as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

/// A named subset of a cell's cases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    pub subset: String,
    /// Identity of the cases.
    pub digest: String,
    /// Their ids.
    pub cases: Vec<String>,
}

/// Model, tool, set, subset, prompt: what names a cell.
pub type CellKey<'a> = (&'a str, &'a str, &'a str, Option<&'a str>, &'a str);

/// A cell's name for people: `model × tool × set/subset (prompt)`.
pub fn title((model, tool, set, subset, prompt): CellKey<'_>) -> String {
    format!("{model} × {tool} × {} ({prompt})", set_name(set, subset))
}

/// A set with its subset, for people.
pub fn set_name(set: &str, subset: Option<&str>) -> String {
    match subset {
        Some(subset) => format!("{set}/{subset}"),
        None => set.to_owned(),
    }
}

impl CellPlan {
    pub fn key(&self) -> CellKey<'_> {
        (&self.model, &self.tool, &self.set, self.subset.as_deref(), &self.prompt)
    }

    /// The cells that its named subsets would be.
    pub fn parts(&self) -> impl Iterator<Item = CellPlan> + '_ {
        self.parts.iter().map(|part| CellPlan {
            subset: Some(part.subset.clone()),
            digest: part.digest.clone(),
            cases: part.cases.len(),
            parts: Vec::new(),
            ..self.clone()
        })
    }

    pub fn attempts(&self) -> usize {
        self.cases * self.repeats
    }

    /// A name for people: `model × tool × set/subset (prompt)`.
    pub fn title(&self) -> String {
        title(self.key())
    }

    /// The set, with the subset where there is one: `set/subset`.
    pub fn set_name(&self) -> String {
        set_name(&self.set, self.subset.as_deref())
    }
}

/// Counts by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub planned: usize,
    pub passed: usize,
    pub failed: usize,
    pub errors: usize,
    pub skipped: usize,
    /// Failed attempts that left the tree changed.
    pub harm: usize,
}

impl Totals {
    pub fn add(&mut self, verdict: Verdict, harm: bool) {
        match verdict {
            Verdict::Pass => self.passed += 1,
            Verdict::Fail => self.failed += 1,
            Verdict::Error => self.errors += 1,
            Verdict::Skipped => self.skipped += 1,
        }
        self.harm += usize::from(harm);
    }

    /// How many attempts have a row.
    pub fn reported(&self) -> usize {
        self.passed + self.failed + self.errors + self.skipped
    }

    /// Planned attempts without a row.
    pub fn missing(&self) -> usize {
        self.planned.saturating_sub(self.reported())
    }
}
