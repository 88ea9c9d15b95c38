//! How conversations are led.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::limits::Limits;
use crate::model::text_calls::TextCalls;

/// Settings of a run that a score may depend on, and those that only say how fast.
#[derive(Clone, Debug)]
pub struct RunSettings {
    pub prompt: Prompt,
    pub text_calls: TextCalls,
    pub stop_after: StopAfter,
    /// Answers of the model in one attempt at most.
    pub max_turns: usize,
    /// How often the same refused call may come.
    pub identical_limit: usize,
    /// Time of one attempt.
    pub timeout: Duration,
    /// Time of one request: an attempt that ends in a longer wait ended by the server's fault.
    pub request_timeout: Duration,
    pub repeat: usize,
    pub concurrency: usize,
    pub limits: Limits,
    /// Options of tool sessions, by tool.
    pub tool_options: BTreeMap<String, Value>,
    /// Where workspaces are made; memory by default.
    pub sandbox_dir: Option<PathBuf>,
}

impl Default for RunSettings {
    fn default() -> Self {
        RunSettings {
            prompt: Prompt::Plain,
            text_calls: TextCalls::Reject,
            stop_after: StopAfter::Done,
            max_turns: 8,
            identical_limit: 3,
            timeout: Duration::from_secs(600),
            request_timeout: Duration::from_secs(300),
            repeat: 1,
            concurrency: 1,
            limits: Limits::default(),
            tool_options: BTreeMap::new(),
            sandbox_dir: None,
        }
    }
}

/// What the model is told of the change. The two are different measurements and never share a floor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Prompt {
    /// Only the task, in plain words, the same for every tool.
    #[default]
    Plain,
    /// And the tool's own words: name, mode, arguments.
    Directed,
}

impl Prompt {
    pub fn name(self) -> &'static str {
        match self {
            Prompt::Plain => "plain",
            Prompt::Directed => "directed",
        }
    }
}

/// When an attempt ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StopAfter {
    /// At the first successful edit call (of a case with several places to change, after as many as there are), for
    /// models that never say that they are done.
    Edit,
    /// When the model makes no more calls.
    #[default]
    Done,
}

impl StopAfter {
    pub fn name(self) -> &'static str {
        match self {
            StopAfter::Edit => "edit",
            StopAfter::Done => "done",
        }
    }
}
