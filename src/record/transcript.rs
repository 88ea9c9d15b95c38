//! The whole conversation of an attempt: neutral messages, and every response as it came.

use serde::{Deserialize, Serialize};

use super::kept::KeptFile;
use super::row::Row;
use crate::chat::{Arguments, Message};
use crate::model::recording::{CameTo, Key, Recorded, RecordedAnswer};
use crate::model::{Fault, Raw, Retry};

/// One attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transcript {
    pub model: String,
    pub key: Key,
    /// All messages, tool results included, in order.
    pub messages: Vec<Message>,
    pub turns: Vec<TurnRecord>,
    /// Calls whose arguments could not be parsed: what the model really wrote.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub malformed: Vec<Arguments>,
    /// Of a failed attempt: the files that did not come out as expected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<KeptFile>,
}

/// One request and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnRecord {
    /// How many of the messages the request held.
    pub messages: usize,
    /// Digest of the request in neutral terms.
    pub request: String,
    pub raw: Option<Raw>,
    pub fault: Option<Fault>,
    pub ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retries: Vec<Retry>,
}

impl Transcript {
    /// The part that a recording keeps, and what the attempt came to.
    pub fn recorded(&self, row: Option<&Row>) -> Recorded {
        let answer = |turn: &TurnRecord| RecordedAnswer {
            request: turn.request.clone(),
            ms: turn.ms,
            first_byte_ms: turn.first_byte_ms,
            body: match (&turn.fault, &turn.raw) {
                (None, Some(raw)) => Some(raw.body.clone()),
                _ => None,
            },
            fault: turn.fault.clone(),
        };
        let came_to = row.map(|row| CameTo { class: row.class.clone(), tree: row.digests.actual.clone() });
        Recorded { key: self.key.clone(), came_to, answers: self.turns.iter().map(answer).collect() }
    }
}
