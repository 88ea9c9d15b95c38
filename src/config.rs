//! `editgate.toml`: what flags and environment leave open. Flag before environment before file before default.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::model::price::Price;
use crate::model::text_calls::TextCalls;
use crate::run::{Prompt, StopAfter};

/// The file that is read where no other is named.
pub const DEFAULT_FILE: &str = "editgate.toml";

/// The file as it is written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    #[serde(default)]
    pub run: RunConfig,
    /// Models by the name that `-m` may use.
    #[serde(default)]
    pub models: BTreeMap<String, ModelConfig>,
    /// Options of tool sessions, by tool.
    #[serde(default)]
    pub tools: BTreeMap<String, Map<String, Value>>,
}

/// `[run]`: the same names as the flags of `run`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RunConfig {
    pub model: Option<Vec<String>>,
    pub tool: Option<Vec<String>>,
    pub cases: Option<PathBuf>,
    pub set: Option<Vec<String>>,
    pub subset: Option<String>,
    pub repeat: Option<usize>,
    pub concurrency: Option<usize>,
    pub max_turns: Option<usize>,
    pub identical_limit: Option<usize>,
    pub timeout: Option<f64>,
    pub request_timeout: Option<f64>,
    pub max_retries: Option<usize>,
    pub retry_wait: Option<f64>,
    pub fail_on_error: Option<Value>,
    pub prompt: Option<Prompt>,
    pub text_calls: Option<TextCalls>,
    pub connect_timeout: Option<f64>,
    pub first_byte_timeout: Option<f64>,
    pub idle_timeout: Option<f64>,
    pub max_retry_wait: Option<f64>,
    pub stream: Option<bool>,
    pub cost_limit: Option<f64>,
    pub token_limit: Option<u64>,
    pub time_limit: Option<f64>,
    pub stop_after: Option<StopAfter>,
    pub temperature: Option<f64>,
    pub seed: Option<u64>,
    pub max_tokens: Option<u64>,
    pub floors: Option<PathBuf>,
    pub sandbox_dir: Option<PathBuf>,
}

/// `[models.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// `provider/id`.
    pub spec: String,
    pub base_url: Option<String>,
    /// The environment variable that holds the key.
    pub api_key_env: Option<String>,
    pub temperature: Option<f64>,
    pub seed: Option<u64>,
    pub max_tokens: Option<u64>,
    /// How much thought, in the provider's word: `low`, `medium`, `high`, …
    pub reasoning_effort: Option<String>,
    /// Asks for the answer in pieces, so that a long one is bounded by its pauses and not by its whole.
    pub stream: Option<bool>,
    /// Asks the server to hold calls to their schemas.
    pub strict_tools: Option<bool>,
    /// Whether calls written into the text of an answer are run.
    pub text_calls: Option<TextCalls>,
    /// Further headers; `${NAME}` stands for an environment variable. Values are never recorded.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    pub requests_per_minute: Option<u64>,
    pub tokens_per_minute: Option<u64>,
    /// Requests to its server at once at most.
    pub at_once: Option<usize>,
    /// Dollars for a million tokens.
    pub price: Option<Price>,
    /// Further fields of the request body.
    #[serde(default)]
    pub extra: Map<String, Value>,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum ConfigError {
    #[error("{}: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("{}:{line}:{column}: {reason}", path.display())]
    Invalid { path: PathBuf, line: usize, column: usize, reason: String },
}

impl Config {
    /// Reads the named file, or `editgate.toml` where there is one.
    ///
    /// # Errors
    /// When a named file is missing, or any is broken or has an unknown key.
    pub fn load(named: Option<&Path>) -> Result<Self, ConfigError> {
        let path = named.unwrap_or(Path::new(DEFAULT_FILE));
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Config::default());
            }
            Err(error) => return Err(ConfigError::Unreadable { path: path.to_owned(), reason: error.to_string() }),
        };
        Self::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let before = text.get(..at).unwrap_or_default();
            ConfigError::Invalid {
                path: path.to_owned(),
                line: before.matches('\n').count() + 1,
                column: before.rsplit('\n').next().unwrap_or_default().chars().count() + 1,
                reason: error.message().split_whitespace().collect::<Vec<_>>().join(" "),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_file_and_its_faults() {
        let text = "[run]\nmodel = [\"local\"]\nstop-after = \"edit\"\n[models.local]\nspec = \"llamacpp/x\"\nextra = { cache_prompt = false }\n[tools.edit_file]\narguments = \"coerce\"\n";
        let config = Config::parse(Path::new("c.toml"), text).unwrap();
        assert_eq!(config.run.stop_after, Some(StopAfter::Edit));
        assert_eq!(config.models["local"].extra["cache_prompt"], Value::Bool(false));
        assert_eq!(config.tools["edit_file"]["arguments"], "coerce");
        let unknown = Config::parse(Path::new("c.toml"), "[run]\nmodle = 1\n").unwrap_err().to_string();
        assert!(unknown.starts_with("c.toml:2:1: unknown field `modle`"), "{unknown}");
        let broken = Config::parse(Path::new("c.toml"), "[run\n").unwrap_err().to_string();
        assert!(broken.starts_with("c.toml:1:"), "{broken}");
    }
}
