//! Model flags, and `models list`.

use std::time::Duration;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use secrecy::SecretString;

use super::{Exit, Failure, output};
use crate::config::{Config, ModelConfig, RunConfig};
use crate::model::Sampling;
use crate::model::builtin::Builtin;
use crate::model::http::Policy;
use crate::model::open::{self, ServerSettings, Spec};
use crate::model::provider::PROVIDERS;
use crate::model::recording::{Conditions, Recording};
use crate::record::Source;
use crate::run::plan::PlannedModel;

/// Which models, and how they are reached.
#[derive(Debug, Args)]
pub(super) struct ModelFlags {
    /// Model: provider/id, builtin/oracle|noop|garbage, replay/DIR, or a name from the config; may be repeated
    #[arg(short, long, value_name = "SPEC", env = "EDITGATE_MODEL", value_delimiter = ',')]
    model: Vec<String>,
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
    /// Seconds of one request at most, answer included [default: 300]
    #[arg(long, value_name = "SECONDS", env = "EDITGATE_REQUEST_TIMEOUT")]
    request_timeout: Option<f64>,
    /// Retries of a request after an infrastructure error [default: 2]
    #[arg(long, value_name = "N", env = "EDITGATE_MAX_RETRIES")]
    max_retries: Option<usize>,
    /// Seconds before the first retry; later ones double, and a server may ask for more [default: 1]
    #[arg(long, value_name = "SECONDS", env = "EDITGATE_RETRY_WAIT")]
    retry_wait: Option<f64>,
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
}

pub(super) fn main(command: ModelsCommand) -> Result<Exit, Failure> {
    let ModelsCommand::List = command;
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
pub(super) fn specs(flags: &ModelFlags, config: &RunConfig) -> Vec<String> {
    let named: Vec<String> = flags.model.iter().filter(|name| !name.is_empty()).cloned().collect();
    if named.is_empty() { config.model.clone().unwrap_or_default() } else { named }
}

/// Opens the model of a spec, or of a name in the config.
pub(super) fn open(name: &str, flags: &ModelFlags, config: &Config, connections: usize) -> Result<Opened, Failure> {
    let named = config.models.get(name);
    let spec = named.map_or(name, |model| &model.spec);
    let planned = |(model, settings)| PlannedModel { model, settings };
    match Spec::parse(spec).map_err(Failure::usage)? {
        Spec::Builtin(builtin) => {
            Ok(Opened { planned: planned(open::builtin(builtin)), source: None, conditions: None })
        }
        Spec::Replay(path) => {
            let recording = Recording::load(&path).map_err(Failure::usage)?;
            let header = recording.header.clone();
            let source =
                Source { recording: path.display().to_string(), model: header.model, recorded: header.recorded };
            Ok(Opened {
                planned: planned(open::replay(recording)),
                source: Some(source),
                conditions: Some(header.conditions),
            })
        }
        Spec::Server { provider, id } => {
            let named = named.cloned().unwrap_or(ModelConfig {
                spec: spec.to_owned(),
                base_url: None,
                api_key_env: None,
                temperature: None,
                seed: None,
                max_tokens: None,
                extra: serde_json::Map::new(),
            });
            let base_url = flags.base_url.clone().or(named.base_url);
            let key_env = flags.api_key_env.clone().or(named.api_key_env);
            let key = key(spec, key_env.as_deref(), provider.key_env, provider.needs_key && base_url.is_none())?;
            let mut extra = named.extra;
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
            let settings = ServerSettings {
                base_url: checked_url(base_url)?,
                key,
                sampling: Sampling {
                    temperature: flags.temperature.or(named.temperature).or(run.temperature).or(default.temperature),
                    seed: flags.seed.or(named.seed).or(run.seed).or(default.seed),
                    max_tokens: flags.max_tokens.or(named.max_tokens).or(run.max_tokens).or(default.max_tokens),
                },
                extra,
                policy: Policy {
                    request_timeout: request_timeout(flags, run)?,
                    max_retries: flags.max_retries.or(run.max_retries).unwrap_or(policy.max_retries),
                    first_wait: seconds("retry-wait", flags.retry_wait.or(run.retry_wait), policy.first_wait)?,
                    ..policy
                },
                connections,
            };
            let opened = open::server(spec, provider, &id, settings).map_err(Failure::usage)?;
            Ok(Opened { planned: planned(opened), source: None, conditions: None })
        }
    }
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
