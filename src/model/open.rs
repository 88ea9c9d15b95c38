//! The registry: from a spec such as `llamacpp/qwen` to a model.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::builtin::Builtin;
use super::http::{Http, Policy};
use super::limit::{Limiter, Quota};
use super::protocol::{self, Asked};
use super::provider::{PROVIDERS, Provider};
use super::recording::{Recording, RecordingError};
use super::redact::{Secrets, masked};
use super::replay::Replay;
use super::server::ServerModel;
use super::{Fault, FaultKind, Model, Sampling};

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
    /// Further headers; their values count as secret.
    pub headers: Vec<(String, SecretString)>,
    pub sampling: Sampling,
    /// How much thought, in the provider's word.
    pub effort: Option<String>,
    pub stream: bool,
    /// Asks the server to hold calls to their schemas.
    pub strict: bool,
    /// Further fields of the request body; `null` takes one away, a sampling setting included.
    pub extra: Map<String, Value>,
    pub policy: Policy,
    pub quota: Quota,
}

/// The endpoints of a run: models of one server share its limits.
#[derive(Debug, Default)]
pub struct Endpoints(RefCell<HashMap<String, Rc<Limiter>>>);

impl Endpoints {
    /// The limiter of a server; the first model there sets its quota.
    fn of(&self, base_url: &str, quota: Quota) -> Rc<Limiter> {
        let host = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
        let host = host.split(['/', '?']).next().unwrap_or(host);
        let mut all = self.0.borrow_mut();
        Rc::clone(all.entry(host.to_owned()).or_insert_with(|| Rc::new(Limiter::new(quota))))
    }
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
    endpoints: &Endpoints,
) -> Result<(Box<dyn Model>, Value), OpenError> {
    let client = |fault: Fault| OpenError::Client { spec: name.to_owned(), fault };
    let unknown = || client(Fault::new(FaultKind::Request, format!("no protocol {}", provider.protocol)));
    let protocol = protocol::named(provider.protocol).ok_or_else(unknown)?;
    let mut extra = provider.extra();
    extra.extend(settings.extra);
    let depends_on =
        depends_on(&settings.sampling, &extra, settings.effort.as_deref(), settings.stream, settings.strict);
    let base_url = settings.base_url.as_deref().unwrap_or(provider.base_url).to_owned();
    let (header, word) = protocol.key_header();
    let mut headers: Vec<(String, String)> =
        protocol.headers().iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    headers.extend(settings.key.iter().map(|key| (header.to_owned(), format!("{word}{}", key.expose_secret()))));
    headers.extend(settings.headers.iter().map(|(name, value)| (name.clone(), value.expose_secret().to_owned())));
    let secrets = settings.key.into_iter().chain(settings.headers.into_iter().map(|(_, value)| value));
    let secrets = Secrets::new(secrets.chain(user_info(&base_url)).collect());
    let limiter = endpoints.of(&base_url, settings.quota);
    let connections = settings.quota.at_once.max(1);
    let secure = !base_url.starts_with("http://");
    let http = Http::new(&headers, secrets, settings.policy, connections, limiter, secure).map_err(client)?;
    let model = ServerModel {
        name: name.to_owned(),
        protocol,
        base_url,
        http,
        asked: Asked {
            model: id.to_owned(),
            sampling: settings.sampling,
            effort: settings.effort,
            stream: settings.stream,
        },
        strict: settings.strict,
        extra,
        dropped: RefCell::default(),
    };
    Ok((Box::new(model), depends_on))
}

/// What is recorded of the settings and bound to floors. What is not asked for is not named.
fn depends_on(
    sampling: &Sampling,
    extra: &Map<String, Value>,
    effort: Option<&str>,
    stream: bool,
    strict: bool,
) -> Value {
    let mut all = json!({ "sampling": sampling, "extra": extra });
    if let Some(effort) = effort {
        all["reasoning_effort"] = json!(effort);
    }
    for (name, asked) in [("stream", stream), ("strict_tools", strict)] {
        if asked {
            all[name] = json!(true);
        }
    }
    masked(&all)
}

/// The user and password of a URL.
fn user_info(url: &str) -> Option<SecretString> {
    let rest = url.split_once("://")?.1;
    let user = rest.split(['/', '?']).next()?.rsplit_once('@')?.0;
    let secret = user.split_once(':').map_or(user, |(_, password)| password);
    Some(SecretString::from(secret.to_owned()))
}

/// Opens a recording. Returns it with the settings under which it was made.
///
/// # Errors
/// When its protocol is not known here.
pub fn replay(recording: Recording) -> Result<(Box<dyn Model>, Value), OpenError> {
    let settings = recording.header.settings.clone();
    Ok((Box::new(Replay::new(recording)?), settings))
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
