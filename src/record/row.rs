//! One row an attempt. A number that was not observed is `null`, never 0.

use serde::{Deserialize, Serialize};

use super::run_file::CellKey;
use crate::case::{Split, Variant};
use crate::chat::{Arrival, Usage};
use crate::model::recording::Key;
use crate::score::relax::Relaxation;
use crate::score::{Flag, Verdict};
use crate::tool::{Kind, Note, Write};

/// An attempt as `attempts.jsonl` holds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub case: String,
    pub set: String,
    pub subset: Option<String>,
    pub tags: Vec<String>,
    /// Public or held out. Rows written before there were splits have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<Variant>,
    pub model: String,
    pub tool: String,
    pub prompt: String,
    /// 0, 1, …
    pub repeat: usize,
    pub verdict: Verdict,
    pub class: String,
    /// A failed attempt left the tree changed.
    pub harm: bool,
    pub diagnosis: Vec<Flag>,
    /// Relaxations under which a failed attempt would be right.
    pub would_pass: Vec<Relaxation>,
    pub conduct: Vec<Note>,
    /// Answers of the model.
    pub turns: usize,
    pub calls: Vec<CallRow>,
    pub usage: Usage,
    pub cost_usd: Option<f64>,
    pub elapsed_ms: Option<u64>,
    /// Time spent waiting for the model.
    pub model_ms: Option<u64>,
    /// The part of it before the first byte of each answer.
    #[serde(default)]
    pub first_byte_ms: Option<u64>,
    /// Retries of infrastructure.
    pub retries: usize,
    pub dropped_params: Vec<String>,
    pub digests: Digests,
    /// Why it could not be carried to its end, or was skipped.
    pub error: Option<String>,
    /// What a report shows of a failed attempt.
    pub detail: Option<Detail>,
}

impl Row {
    pub fn key(&self) -> Key {
        Key {
            tool: self.tool.clone(),
            prompt: self.prompt.clone(),
            set: self.set.clone(),
            case: self.case.clone(),
            repeat: self.repeat,
        }
    }

    /// The cell that it belongs to.
    pub fn cell_key(&self) -> CellKey<'_> {
        (&self.model, &self.tool, &self.set, self.subset.as_deref(), &self.prompt)
    }

    /// Steps in short, a refused or malformed one marked: `read edit✗ edit`.
    pub fn steps(&self) -> String {
        let step =
            |call: &CallRow| format!("{}{}", if call.edit { "edit" } else { "read" }, if call.ok { "" } else { "✗" });
        let steps: Vec<String> = self.calls.iter().map(step).collect();
        if steps.is_empty() { "no call".to_owned() } else { steps.join(" ") }
    }
}

/// One call of an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallRow {
    pub tool: String,
    /// Of a tool that can write, or one that was not offered.
    pub edit: bool,
    pub ok: bool,
    pub kind: Option<Kind>,
    pub notes: Vec<Note>,
    pub arrival: Arrival,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<Write>,
}

/// SHA-256 of the trees, as hexadecimal. `None` when the attempt did not come so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Digests {
    pub before: Option<String>,
    pub expected: Option<String>,
    pub actual: Option<String>,
}

/// Bounded texts for a report; whole ones are in the transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    pub task: String,
    /// The text of the last refused call.
    pub tool_error: Option<String>,
    /// The arguments of the last edit call, as they were written.
    pub last_edit: Option<String>,
    /// The last words of the model.
    pub answer: String,
    /// From expected to actual, every byte visible.
    pub diff: String,
}
