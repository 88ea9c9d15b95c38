//! Speaks to a model: one file a wire protocol or stand-in, one shared HTTP client.
//!
//! A [`Model`] opens a [`Conversation`] for each attempt; the conversation answers requests that are made of neutral
//! messages. It knows nothing of cases, files or tools.

pub mod builtin;
mod fault;
pub mod http;
pub mod limit;
pub mod open;
pub mod price;
pub mod protocol;
pub mod provider;
pub mod recording;
pub mod redact;
pub mod replay;
mod server;
pub mod text_calls;

use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chat::{Answer, Call, Function, Message};

pub use fault::{Fault, FaultKind};

/// Something that answers a conversation.
pub trait Model {
    /// The name in cells, floors and reports: `provider/id`.
    fn name(&self) -> &str;

    /// Asks the server about itself, once, before a run; `null` where it says nothing.
    ///
    /// # Errors
    /// When it cannot be reached, or refuses the key: then a run would be nothing but errors.
    fn facts(&self) -> LocalBoxFuture<'_, Result<Value, Fault>>;

    /// Opens the conversation of one attempt.
    fn converse<'a>(&'a self, brief: Brief<'a>) -> Box<dyn Conversation + 'a>;
}

/// One conversation.
pub trait Conversation {
    /// The next answer. Retries of infrastructure happen inside and are told.
    fn answer<'a>(&'a mut self, request: Request<'a>) -> LocalBoxFuture<'a, Turn>;
}

/// What a stand-in may know of the attempt; a real model gets nothing of it.
#[derive(Clone, Copy)]
pub struct Brief<'a> {
    pub key: &'a recording::Key,
    /// Calls that read the files to be changed.
    pub reads: &'a [Call],
    /// Calls that bring the files as they are now to the expected ones, or why there are none.
    pub solve: &'a dyn Fn() -> Result<Vec<Call>, String>,
}

/// One request in neutral terms.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub functions: &'a [Function],
    pub messages: &'a [Message],
    /// The time that is left for an answer; waits and tries that infrastructure cost do not count.
    pub left: Duration,
}

/// What came of a request.
#[derive(Debug)]
pub struct Turn {
    pub outcome: Result<Answer, Fault>,
    /// What went over the wire, for the transcript; `None` for stand-ins.
    pub raw: Option<Raw>,
    /// Retries of infrastructure before this outcome.
    pub retries: Vec<Retry>,
    /// Parameters that the server refused and that were left out from then on.
    pub dropped_params: Vec<String>,
    /// Milliseconds that the model took, where they are known better than by a clock: in a recording.
    pub ms: Option<u64>,
    /// What did not go into this answer: waiting for a place or a minute's quota, failed tries, waits between tries.
    pub waited: Duration,
    /// Milliseconds to the first byte of the answer's body.
    pub first_byte_ms: Option<u64>,
}

impl Turn {
    /// A turn of a stand-in.
    pub fn plain(outcome: Result<Answer, Fault>) -> Self {
        Turn {
            outcome,
            raw: None,
            retries: Vec::new(),
            dropped_params: Vec::new(),
            ms: None,
            waited: Duration::ZERO,
            first_byte_ms: None,
        }
    }
}

/// A response as it came, and the settings of its request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Raw {
    /// The body of the request without its messages and tools, which the transcript holds in neutral form; `null` where it
    /// is that of the turn before.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub request: Value,
    /// HTTP status; `None` when no response came.
    pub status: Option<u16>,
    /// The body: JSON as such, anything else as text.
    pub body: Value,
}

/// One retry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    pub reason: FaultKind,
    pub message: String,
    /// Seconds waited before the next try.
    pub wait_s: f64,
}

/// Sampling settings, sent and recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// `None` leaves it to the server.
    pub temperature: Option<f64>,
    pub seed: Option<u64>,
    /// Tokens of one answer at most.
    pub max_tokens: Option<u64>,
}

impl Default for Sampling {
    fn default() -> Self {
        Sampling { temperature: Some(0.0), seed: Some(0), max_tokens: Some(2048) }
    }
}
