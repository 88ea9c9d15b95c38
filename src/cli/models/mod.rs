//! Model flags, `models list` and `models check`.

mod check;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use secrecy::SecretString;

use super::{Exit, Failure, output};
use crate::config::{Config, ModelConfig, RunConfig};
use crate::model::Sampling;
use crate::model::builtin::Builtin;
use crate::model::http::Policy;
use crate::model::limit::Quota;
use crate::model::open::{self, Endpoints, ServerSettings, Spec};
use crate::model::provider::{PROVIDERS, Provider};
use crate::model::recording::{Conditions, Recording};
use crate::record::Source;
use crate::record::recorded::recordings;
use crate::run::plan::PlannedModel;

/// Which models, and how they are reached.
#[derive(Debug, Args)]
pub(super) struct ModelFlags {
    /// Address of the server, with or without /v1
    #[arg(long, value_name = "URL", env = "EDITGATE_BASE_URL")]
    base_url: Option<String>,
    /// Environment variable that holds the key
    #[arg(long, value_name = "NAME", env = "EDITGATE_API_KEY_ENV")]
    api_key_env: Option<String>,
    /// Sampling temperature [default: 0]
    #[arg(long, value_name = "T", env = "EDITGATE_TEMPERATURE")]
    temperature: Option<f64>,
    /// Sampling seed, where the server takes one [default: 0]
    #[arg(long, value_name = "N", env = "EDITGATE_SEED")]
    seed: Option<u64>,
    /// Tokens of one answer at most [default: 2048]
    #[arg(long, value_name = "N", env = "EDITGATE_MAX_TOKENS")]
    max_tokens: Option<u64>,
    /// Further fields of the request body, as a JSON object; null takes one away (temperature, too)
    #[arg(long, value_name = "JSON", env = "EDITGATE_EXTRA_BODY")]
    extra_body: Option<String>,
    /// Seconds of one request at most, answer included, where it is not streamed [default: 300]
    #[arg(long, value_name = "SECONDS", env = "EDITGATE_REQUEST_TIMEOUT")]
    request_timeout: Option<f64>,
    /// Retries of a request after an infrastructure error [default: 5]
    #[arg(long, value_name = "N", env = "EDITGATE_MAX_RETRIES")]
    max_retries: Option<usize>,
    /// Seconds before the first retry; later ones double, and a server may ask for more [default: 1]
    #[arg(long, value_name = "SECONDS", env = "EDITGATE_RETRY_WAIT")]
    retry_wait: Option<f64>,
    /// Seconds between retries at most, whatever a server asks for [default: 60]
    #[arg(long, value_name = "SECONDS", env = "EDITGATE_MAX_RETRY_WAIT")]
    max_retry_wait: Option<f64>,
    /// Seconds for a connection to be made [default: 10]
    #[arg(long, value_name = "SECONDS", env = "EDITGATE_CONNECT_TIMEOUT")]
    connect_timeout: Option<f64>,
    /// Seconds to the first byte of an answer [default: as --request-timeout]
    #[arg(long, value_name = "SECONDS", env = "EDITGATE_FIRST_BYTE_TIMEOUT")]
    first_byte_timeout: Option<f64>,
    /// Seconds between two pieces of an answer [default: 60]
    #[arg(long, value_name = "SECONDS", env = "EDITGATE_IDLE_TIMEOUT")]
    idle_timeout: Option<f64>,
    /// Ask for answers in pieces: a long one is then bounded by its pauses, not by --request-timeout
    #[arg(long, value_name = "true|false", env = "EDITGATE_STREAM", num_args = 0..=1, default_missing_value = "true")]
    stream: Option<bool>,
    /// How much thought, in the provider's word: low, medium, high, …
    #[arg(long, value_name = "WORD", env = "EDITGATE_REASONING_EFFORT")]
    reasoning_effort: Option<String>,
    /// Ask the server to hold calls to the tool's schema
    #[arg(long, value_name = "true|false", env = "EDITGATE_STRICT_TOOLS", num_args = 0..=1, default_missing_value = "true")]
    strict_tools: Option<bool>,
    #[arg(skip)]
    pub(super) concurrency_hint: Option<usize>,
}

/// A model ready to be planned.
pub(super) struct Opened {
    pub(super) planned: PlannedModel,
    /// Of a recording.
    pub(super) source: Option<Source>,
    pub(super) conditions: Option<Conditions>,
}

#[derive(Debug, Subcommand)]
pub(super) enum ModelsCommand {
    /// List the known providers and stand-ins
    List,
    /// Ask one: does it answer, does it call tools, and what to fix
    Check(Box<check::CheckFlags>),
}

pub(super) fn main(command: ModelsCommand) -> Result<Exit, Failure> {
    match command {
        ModelsCommand::List => list(),
        ModelsCommand::Check(flags) => check::main(*flags),
    }
}

fn list() -> Result<Exit, Failure> {
    let mut rows = vec![["spec", "address", "key", "what"].map(str::to_owned).to_vec()];
    for provider in &PROVIDERS {
        let key =
            if provider.needs_key { provider.key_env.to_owned() } else { format!("{} (optional)", provider.key_env) };
        rows.push(vec![format!("{}/ID", provider.name), provider.base_url.to_owned(), key, provider.about.to_owned()]);
    }
    let words = ["makes each case's edit itself", "calls nothing", "sends hostile and malformed calls"];
    for (builtin, what) in Builtin::ALL.into_iter().zip(words) {
        rows.push(vec![format!("builtin/{}", builtin.id()), "–".to_owned(), "–".to_owned(), what.to_owned()]);
    }
    rows.push(vec![
        "replay/DIR".to_owned(),
        "–".to_owned(),
        "–".to_owned(),
        "a recording, made with run --record".to_owned(),
    ]);
    output::data(&output::table(rows))?;
    Ok(Exit::Passed)
}

/// The specs asked for; none means the shipped recording.
pub(super) fn specs(named: &[String], config: &RunConfig) -> Vec<String> {
    let named: Vec<String> = named.iter().filter(|name| !name.is_empty()).cloned().collect();
    if named.is_empty() { config.model.clone().unwrap_or_default() } else { named }
}

/// Opens the model of a spec, or of a name in the config.
pub(super) fn open(name: &str, flags: &ModelFlags, config: &Config, endpoints: &Endpoints) -> Result<Opened, Failure> {
    let named = config.models.get(name);
    let spec = named.map_or(name, |model| &model.spec);
    let planned = |(model, settings)| PlannedModel::plain(model, settings);
    match Spec::parse(spec).map_err(Failure::usage)? {
        Spec::Builtin(builtin) => {
            Ok(Opened { planned: planned(open::builtin(builtin)), source: None, conditions: None })
        }
        Spec::Replay(path) => {
            let recording = recording_at(&path)?;
            let header = recording.header.clone();
            let source =
                Source { recording: path.display().to_string(), model: header.model, recorded: header.recorded };
            let protocol = Some(header.protocol.clone());
            let opened = open::replay(recording).map_err(Failure::usage)?;
            Ok(Opened {
                planned: PlannedModel { protocol, ..planned(opened) },
                source: Some(source),
                conditions: Some(header.conditions),
            })
        }
        Spec::Server { provider, id } => {
            let named = named.cloned().unwrap_or_default();
            let settings = server_settings(spec, provider, flags, config, &named)?;
            let (model, depends_on) = open::server(spec, provider, &id, settings, endpoints).map_err(Failure::usage)?;
            let planned = PlannedModel {
                protocol: Some(provider.protocol.to_owned()),
                text_calls: named.text_calls,
                price: named.price,
                ..PlannedModel::plain(model, depends_on)
            };
            Ok(Opened { planned, source: None, conditions: None })
        }
    }
}

/// The one recording in a directory: a recording, or a run of one model.
fn recording_at(path: &Path) -> Result<Recording, Failure> {
    let mut all = recordings_at(path)?;
    match (all.pop(), all.len()) {
        (Some(one), 0) => Ok(one),
        (_, more) => Err(Failure::usage(anyhow!(
            "{}: a run of {} models; a replay as a model plays one",
            path.display(),
            if more == 0 { 0 } else { more + 1 }
        ))),
    }
}

/// The recordings in a directory: every run is one, of each of its models.
pub(super) fn recordings_at(path: &Path) -> Result<Vec<Recording>, Failure> {
    if Recording::is_at(path) || !path.join("run.json").exists() {
        return Ok(vec![Recording::load(path).map_err(Failure::usage)?]);
    }
    recordings(path).map_err(Failure::usage)
}

/// From flags, file and defaults to what a server model needs.
fn server_settings(
    spec: &str,
    provider: &Provider,
    flags: &ModelFlags,
    config: &Config,
    named: &ModelConfig,
) -> Result<ServerSettings, Failure> {
    let base_url = flags.base_url.clone().or_else(|| named.base_url.clone());
    let key_env = flags.api_key_env.as_deref().or(named.api_key_env.as_deref());
    let key = key(spec, key_env, provider.key_env, provider.needs_key && base_url.is_none())?;
    let mut extra = named.extra.clone();
    if let Some(text) = &flags.extra_body {
        let more: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text)
            .map_err(|error| Failure::usage(anyhow!("--extra-body is not a JSON object: {error}")))?;
        extra.extend(more);
    }
    if flags.temperature.is_some_and(|temperature| !(0.0..=10.0).contains(&temperature)) {
        return Err(Failure::usage(anyhow!("--temperature must be a number from 0 to 10")));
    }
    if flags.max_tokens == Some(0) {
        return Err(Failure::usage(anyhow!("--max-tokens must be 1 or more")));
    }
    let (run, default, policy) = (&config.run, Sampling::default(), Policy::default());
    let request_timeout = request_timeout(flags, run)?;
    let quota = Quota {
        at_once: named.at_once.or(flags.concurrency_hint).unwrap_or(0),
        requests_per_minute: named.requests_per_minute,
        tokens_per_minute: named.tokens_per_minute,
    };
    Ok(ServerSettings {
        base_url: checked_url(base_url)?,
        key,
        headers: headers(spec, &named.headers)?,
        sampling: Sampling {
            temperature: flags.temperature.or(named.temperature).or(run.temperature).or(default.temperature),
            seed: flags.seed.or(named.seed).or(run.seed).or(default.seed),
            max_tokens: flags.max_tokens.or(named.max_tokens).or(run.max_tokens).or(default.max_tokens),
        },
        effort: flags.reasoning_effort.clone().or_else(|| named.reasoning_effort.clone()),
        stream: flags.stream.or(named.stream).or(run.stream).unwrap_or(false),
        strict: flags.strict_tools.or(named.strict_tools).unwrap_or(false),
        extra,
        policy: Policy {
            request_timeout,
            connect_timeout: seconds(
                "connect-timeout",
                flags.connect_timeout.or(run.connect_timeout),
                policy.connect_timeout,
            )?,
            first_byte_timeout: seconds(
                "first-byte-timeout",
                flags.first_byte_timeout.or(run.first_byte_timeout),
                request_timeout,
            )?,
            idle_timeout: seconds("idle-timeout", flags.idle_timeout.or(run.idle_timeout), policy.idle_timeout)?,
            max_retries: flags.max_retries.or(run.max_retries).unwrap_or(policy.max_retries),
            first_wait: seconds("retry-wait", flags.retry_wait.or(run.retry_wait), policy.first_wait)?,
            max_wait: seconds("max-retry-wait", flags.max_retry_wait.or(run.max_retry_wait), policy.max_wait)?,
        },
        quota,
    })
}

/// Headers with the variables of the environment that they name.
fn headers(spec: &str, named: &BTreeMap<String, String>) -> Result<Vec<(String, SecretString)>, Failure> {
    let fill = |(name, value): (&String, &String)| {
        let mut out = String::new();
        let mut rest = value.as_str();
        while let Some((before, after)) = rest.split_once("${") {
            let unclosed = || Failure::usage(anyhow!("{spec}: the header `{name}` has a `${{` without its `}}`"));
            let (variable, later) = after.split_once('}').ok_or_else(unclosed)?;
            let missing =
                |_| Failure::usage(anyhow!("{spec}: the header `{name}` needs the environment variable {variable}"));
            out.push_str(before);
            out.push_str(&std::env::var(variable).map_err(missing)?);
            rest = later;
        }
        out.push_str(rest);
        Ok((name.clone(), SecretString::from(out)))
    };
    named.iter().map(fill).collect()
}

/// The key from the environment. One that was asked for by name, or that the provider needs, must be there.
fn key(spec: &str, named: Option<&str>, usual: &str, needed: bool) -> Result<Option<SecretString>, Failure> {
    let variable = named.unwrap_or(usual);
    match std::env::var(variable) {
        Ok(key) if !key.trim().is_empty() => Ok(Some(SecretString::from(key.trim().to_owned()))),
        _ if named.is_some() || needed => Err(Failure::usage(anyhow!(
            "{spec} needs a key, and the environment variable {variable} holds none; name another with --api-key-env"
        ))),
        _ => Ok(None),
    }
}

fn checked_url(url: Option<String>) -> Result<Option<String>, Failure> {
    match url {
        Some(url) if !(url.starts_with("http://") || url.starts_with("https://")) => {
            Err(Failure::usage(anyhow!("--base-url {url}: not an http:// or https:// address")))
        }
        url => Ok(url),
    }
}

/// The time of one request.
pub(super) fn request_timeout(flags: &ModelFlags, config: &RunConfig) -> Result<Duration, Failure> {
    let asked = flags.request_timeout.or(config.request_timeout);
    seconds("request-timeout", asked, Policy::default().request_timeout)
}

/// A time in seconds, positive and finite.
pub(super) fn seconds(name: &str, value: Option<f64>, default: Duration) -> Result<Duration, Failure> {
    match value {
        None => Ok(default),
        Some(value) => Duration::try_from_secs_f64(value)
            .ok()
            .filter(|duration| !duration.is_zero())
            .ok_or_else(|| Failure::usage(anyhow!("--{name} must be a positive number of seconds"))),
    }
}
