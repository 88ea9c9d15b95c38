//! The registry: from a spec such as `llamacpp/qwen` to a model.

use std::path::PathBuf;

use secrecy::SecretString;
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::builtin::Builtin;
use super::http::{Http, Policy};
use super::openai::ChatCompletions;
use super::provider::{PROVIDERS, Provider};
use super::recording::{Recording, RecordingError};
use super::redact::masked;
use super::replay::Replay;
use super::{Fault, Model, Sampling};

/// A parsed spec.
#[derive(Clone, Debug, PartialEq)]
pub enum Spec {
    Builtin(Builtin),
    Replay(PathBuf),
    Server { provider: &'static Provider, id: String },
}

/// Everything that a server model needs besides its spec.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Overrides the provider's.
    pub base_url: Option<String>,
    pub key: Option<SecretString>,
    pub sampling: Sampling,
    /// Further fields of the request body; `null` takes one away, a sampling setting included.
    pub extra: Map<String, Value>,
    pub policy: Policy,
    /// Connections kept open.
    pub connections: usize,
}

#[derive(Debug, Error)]
pub enum OpenError {
    #[error("model `{spec}`: {reason}")]
    BadSpec { spec: String, reason: String },
    #[error(transparent)]
    Recording(#[from] RecordingError),
    #[error("model `{spec}`: {fault}")]
    Client { spec: String, fault: Fault },
}

impl Spec {
    /// Parses `provider/id`, `builtin/NAME` or `replay/PATH`.
    ///
    /// # Errors
    /// When it is none of these; the text lists what there is.
    pub fn parse(spec: &str) -> Result<Self, OpenError> {
        let bad = |reason: String| OpenError::BadSpec { spec: spec.to_owned(), reason };
        let (provider, id) = spec
            .split_once('/')
            .filter(|(_, id)| !id.is_empty())
            .ok_or_else(|| bad("a model is named provider/id, such as openai/gpt-5 or builtin/oracle, or by a name from editgate.toml".to_owned()))?;
        match provider {
            "builtin" => {
                Builtin::ALL.into_iter().find(|builtin| builtin.id() == id).map(Spec::Builtin).ok_or_else(|| {
                    bad(format!(
                        "there are: {}",
                        Builtin::ALL.map(|builtin| format!("builtin/{}", builtin.id())).join(", ")
                    ))
                })
            }
            "replay" => Ok(Spec::Replay(PathBuf::from(id))),
            name => match Provider::named(name) {
                Some(provider) => Ok(Spec::Server { provider, id: id.to_owned() }),
                None => Err(bad(format!(
                    "unknown provider `{name}`; there are: {}, builtin, replay",
                    PROVIDERS.map(|provider| provider.name).join(", ")
                ))),
            },
        }
    }
}

/// Opens a server model. Returns it with the settings that its answers depend on.
///
/// # Errors
/// When no client can be built.
pub fn server(
    name: &str,
    provider: &Provider,
    id: &str,
    settings: ServerSettings,
) -> Result<(Box<dyn Model>, Value), OpenError> {
    let mut extra = provider.extra();
    extra.extend(settings.extra);
    let depends_on = masked(&json!({ "sampling": settings.sampling, "extra": extra }));
    let base_url = settings.base_url.as_deref().unwrap_or(provider.base_url);
    let http = Http::new(settings.key, settings.policy, settings.connections)
        .map_err(|fault| OpenError::Client { spec: name.to_owned(), fault })?;
    let model = ChatCompletions::new(name.to_owned(), id.to_owned(), base_url, http, settings.sampling, extra);
    Ok((Box::new(model), depends_on))
}

/// Opens a recording. Returns it with the settings under which it was made.
pub fn replay(recording: Recording) -> (Box<dyn Model>, Value) {
    let settings = recording.header.settings.clone();
    (Box::new(Replay::new(recording)), settings)
}

/// Opens a stand-in.
pub fn builtin(builtin: Builtin) -> (Box<dyn Model>, Value) {
    (Box::new(builtin), Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs() {
        assert_eq!(Spec::parse("builtin/noop").unwrap(), Spec::Builtin(Builtin::Noop));
        assert_eq!(Spec::parse("replay/a/b").unwrap(), Spec::Replay("a/b".into()));
        assert!(matches!(Spec::parse("openrouter/a/b:free").unwrap(), Spec::Server { id, .. } if id == "a/b:free"));
        for bad in ["gpt", "x/y", "builtin/no", "openai/", ""] {
            assert!(matches!(Spec::parse(bad), Err(OpenError::BadSpec { .. })), "{bad}");
        }
    }
}
