//! Recordings: the answers of a model, with digests of the requests they answered. Small, and replayed anywhere.
//!
//! A recording is a directory with `recording.json` (what was recorded, when, from which server, under which
//! conditions) and `answers.jsonl` (a line an attempt).

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::Fault;
use super::protocol::FIRST;
use crate::workspace::write::output;

/// The version of the format that this reader and writer know.
pub const FORMAT: u32 = 1;
const HEADER: &str = "recording.json";
const ANSWERS: &str = "answers.jsonl";

/// What was recorded, and the conditions that a replay must repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    pub format: u32,
    /// Name of the model in reports.
    pub model: String,
    /// The wire protocol of the answers.
    #[serde(default = "first_protocol", skip_serializing_if = "is_first_protocol")]
    pub protocol: String,
    /// RFC 3339.
    pub recorded: String,
    pub editgate: String,
    /// What the server said of itself.
    pub server: Value,
    /// Sampling and further body fields.
    pub settings: Value,
    pub conditions: Conditions,
}

fn first_protocol() -> String {
    FIRST.to_owned()
}

fn is_first_protocol(name: &String) -> bool {
    name == FIRST
}

/// How the conversations were led.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conditions {
    pub tools: Vec<String>,
    pub sets: Vec<String>,
    pub subset: Option<String>,
    /// The cases, where a filter left some out; empty = all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<String>,
    pub prompt: String,
    pub text_calls: String,
    pub stop_after: String,
    pub max_turns: usize,
    #[serde(default = "usual_identical_limit")]
    pub identical_limit: usize,
    pub repeat: usize,
    /// Options of tool sessions, by tool.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tool_options: BTreeMap<String, Value>,
}

fn usual_identical_limit() -> usize {
    3
}

/// Which attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    pub tool: String,
    pub prompt: String,
    pub set: String,
    pub case: String,
    pub repeat: usize,
}

/// The answers of one attempt, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    #[serde(flatten)]
    pub key: Key,
    /// What the attempt came to when it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub came_to: Option<CameTo>,
    pub answers: Vec<RecordedAnswer>,
}

/// The end of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CameTo {
    /// As in a row; it begins with the verdict.
    pub class: String,
    /// Digest of the files as they were left.
    pub tree: Option<String>,
}

/// One answer: the digest of the request ([`crate::chat::digest`]) and what came back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedAnswer {
    pub request: String,
    pub ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

/// A whole recording.
#[derive(Clone, Debug)]
pub struct Recording {
    pub path: PathBuf,
    pub header: Header,
    attempts: HashMap<Key, Recorded>,
}

#[derive(Debug, Error)]
pub enum RecordingError {
    #[error("recording {}: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("{}:{line}: not a recorded attempt: {reason}", path.display())]
    BadLine { path: PathBuf, line: usize, reason: String },
    #[error("recording {}: {reason}", path.display())]
    Unwritable { path: PathBuf, reason: String },
}

impl Recording {
    /// Reads a recording.
    ///
    /// # Errors
    /// When a part is missing, broken, or of another format.
    pub fn load(path: &Path) -> Result<Self, RecordingError> {
        let unreadable = |reason: String| RecordingError::Unreadable { path: path.to_owned(), reason };
        let read =
            |name: &str| fs::read_to_string(path.join(name)).map_err(|error| unreadable(format!("{name}: {error}")));
        let header: Header =
            serde_json::from_str(&read(HEADER)?).map_err(|error| unreadable(format!("{HEADER}: {error}")))?;
        if header.format != FORMAT {
            return Err(unreadable(format!(
                "format {} is not known here; this version reads format {FORMAT}",
                header.format
            )));
        }
        let mut attempts = HashMap::new();
        for (index, line) in read(ANSWERS)?.lines().enumerate() {
            let bad = |reason: String| RecordingError::BadLine { path: path.join(ANSWERS), line: index + 1, reason };
            let recorded: Recorded = serde_json::from_str(line).map_err(|error| bad(error.to_string()))?;
            if attempts.insert(recorded.key.clone(), recorded).is_some() {
                return Err(bad("this attempt is recorded twice".to_owned()));
            }
        }
        Ok(Recording { path: path.to_owned(), header, attempts })
    }

    /// A recording of these attempts.
    pub fn of(path: PathBuf, header: Header, attempts: Vec<Recorded>) -> Self {
        let attempts = attempts.into_iter().map(|recorded| (recorded.key.clone(), recorded)).collect();
        Recording { path, header, attempts }
    }

    /// Whether a directory holds one.
    pub fn is_at(path: &Path) -> bool {
        path.join(HEADER).exists()
    }

    /// All attempts, in no order.
    pub fn attempts(&self) -> impl Iterator<Item = &Recorded> {
        self.attempts.values()
    }

    /// What an attempt came to when it was recorded.
    pub fn came_to(&self, key: &Key) -> Option<&CameTo> {
        self.attempts.get(key)?.came_to.as_ref()
    }

    /// The answers of an attempt.
    pub fn answers(&self, key: &Key) -> Option<&[RecordedAnswer]> {
        self.attempts.get(key).map(|recorded| recorded.answers.as_slice())
    }
}

/// Writes a recording, replacing one that is there; attempts in the order of their keys, so that it reviews well.
///
/// # Errors
/// When it cannot be written.
pub fn write(path: &Path, header: &Header, mut attempts: Vec<Recorded>) -> Result<(), RecordingError> {
    let unwritable = |reason: String| RecordingError::Unwritable { path: path.to_owned(), reason };
    attempts.sort_by(|a, b| a.key.cmp(&b.key));
    let mut text = String::new();
    for attempt in &attempts {
        text.push_str(&serde_json::to_string(attempt).map_err(|error| unwritable(error.to_string()))?);
        text.push('\n');
    }
    let header = serde_json::to_string_pretty(header).map_err(|error| unwritable(error.to_string()))?;
    fs::create_dir_all(path).map_err(|error| unwritable(error.to_string()))?;
    for (name, text) in [(HEADER, format!("{header}\n")), (ANSWERS, text)] {
        output(&path.join(name), text.as_bytes()).map_err(|error| unwritable(format!("{name}: {error}")))?;
    }
    Ok(())
}
