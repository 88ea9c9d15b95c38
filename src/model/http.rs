//! The one HTTP client: bounds, retries of infrastructure, and what each failure means.

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use reqwest::{Client, Response};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::redact::{redact, without_key};
use super::{Fault, FaultKind, Retry};

/// A larger answer than this is none.
const MAX_BODY: usize = 32 << 20;
/// Characters of a server's message that are kept.
const MAX_MESSAGE: usize = 400;

/// Limits and retries of requests.
#[derive(Clone, Debug)]
pub struct Policy {
    pub connect_timeout: Duration,
    /// From sending a request to the end of its answer.
    pub request_timeout: Duration,
    pub max_retries: usize,
    /// The first wait; later ones double, with jitter.
    pub first_wait: Duration,
    /// No wait is longer, whatever a server asks for.
    pub max_wait: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(300),
            max_retries: 2,
            first_wait: Duration::from_secs(1),
            max_wait: Duration::from_secs(60),
        }
    }
}

/// A client with its key.
#[derive(Clone, Debug)]
pub struct Http {
    client: Client,
    key: Option<SecretString>,
    policy: Policy,
}

/// A response, read to its end.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub event_stream: bool,
    pub body: Vec<u8>,
    retry_after: Option<Duration>,
}

/// A fault with what is needed to decide on a retry.
struct Trouble {
    fault: Fault,
    reply: Option<Reply>,
    retry_after: Option<Duration>,
}

/// How a request ended after its retries.
#[derive(Debug)]
pub struct Sent {
    pub outcome: Result<(), Fault>,
    /// The last response, the good one or that of a fault.
    pub reply: Option<Reply>,
    pub retries: Vec<Retry>,
}

impl Http {
    /// The only constructor of clients: it installs the TLS provider, without which no client can be built.
    ///
    /// # Errors
    /// When the platform gives no certificates.
    pub fn new(key: Option<SecretString>, policy: Policy, connections: usize) -> Result<Self, Fault> {
        // A second installation is refused, and the first one is what is wanted.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .connect_timeout(policy.connect_timeout)
            .timeout(policy.request_timeout)
            .pool_max_idle_per_host(connections)
            .user_agent(concat!("editgate/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| Fault::new(FaultKind::Network, format!("no HTTP client: {error}")))?;
        Ok(Http { client, key, policy })
    }

    /// Text that may be shown: without the key.
    pub fn redact(&self, text: &str) -> String {
        redact(text, self.key.as_ref().map(|key| key.expose_secret()))
    }

    /// An answer as it may be recorded: without the key, should a server echo it.
    pub fn without_key(&self, text: &str) -> String {
        without_key(text, self.key.as_ref().map(|key| key.expose_secret()))
    }

    /// A GET without retries, for what a server says about itself.
    ///
    /// # Errors
    /// Any fault; a body that is not JSON is [`FaultKind::Response`].
    pub async fn get_json(&self, url: &str) -> Result<Value, Fault> {
        let shown = |fault: Fault| Fault::new(fault.kind, self.redact(&fault.message));
        let reply = self.once(self.client.get(url), url).await.map_err(|trouble| shown(trouble.fault))?;
        serde_json::from_slice(&reply.body)
            .map_err(|error| shown(Fault::new(FaultKind::Response, format!("{url}: not JSON: {error}"))))
    }

    /// A POST of JSON, retried where a retry can help. `judge` finds faults that hide behind a good status.
    pub async fn post_json(&self, url: &str, body: &Value, judge: impl Fn(&Reply) -> Option<Fault>) -> Sent {
        let mut retries = Vec::new();
        let waits = ExponentialBuilder::default()
            .with_jitter()
            .with_min_delay(self.policy.first_wait)
            .with_max_delay(self.policy.max_wait)
            .with_max_times(self.policy.max_retries);
        let done = (|| async {
            let reply = self.once(self.client.post(url).json(body), url).await?;
            match judge(&reply) {
                None => Ok(reply),
                Some(fault) => Err(Trouble { fault, retry_after: reply.retry_after, reply: Some(reply) }),
            }
        })
        .retry(waits)
        .sleep(tokio::time::sleep)
        .when(|trouble: &Trouble| is_transient(trouble.fault.kind))
        .adjust(|trouble, wait| wait.map(|wait| trouble.retry_after.unwrap_or(wait).min(self.policy.max_wait)))
        .notify(|trouble, wait| {
            retries.push(Retry {
                reason: trouble.fault.kind,
                message: self.redact(&trouble.fault.message),
                wait_s: wait.as_secs_f64(),
            });
        })
        .await;
        match done {
            Ok(reply) => Sent { outcome: Ok(()), reply: Some(reply), retries },
            Err(trouble) => {
                let fault = Fault::new(trouble.fault.kind, self.redact(&trouble.fault.message));
                Sent { outcome: Err(fault), reply: trouble.reply, retries }
            }
        }
    }

    async fn once(&self, request: reqwest::RequestBuilder, url: &str) -> Result<Reply, Trouble> {
        let request = match &self.key {
            Some(key) => request.bearer_auth(key.expose_secret()),
            None => request,
        };
        let response = request.send().await.map_err(|error| self.transport(&error, url))?;
        let status = response.status().as_u16();
        let retry_after = retry_after(&response);
        let event_stream = response
            .headers()
            .get(reqwest::header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.trim_start().starts_with("text/event-stream"));
        let body = self.body(response, url).await?;
        let reply = Reply { status, event_stream, body, retry_after };
        if (200..300).contains(&status) {
            return Ok(reply);
        }
        let fault =
            fault_of(status, &serde_json::from_slice(&reply.body).unwrap_or_else(|_| text_body(&reply.body)), url);
        Err(Trouble { fault, retry_after, reply: Some(reply) })
    }

    async fn body(&self, mut response: Response, url: &str) -> Result<Vec<u8>, Trouble> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.transport(&error, url))? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_BODY {
                let fault =
                    Fault::new(FaultKind::Response, format!("{url}: the answer is larger than {MAX_BODY} bytes"));
                return Err(Trouble { fault, reply: None, retry_after: None });
            }
        }
        Ok(body)
    }

    fn transport(&self, error: &reqwest::Error, url: &str) -> Trouble {
        let (kind, what) = if error.is_timeout() {
            (FaultKind::Timeout, "no answer in time")
        } else if error.is_connect() {
            (FaultKind::Network, "cannot connect")
        } else {
            (FaultKind::Network, "the connection broke")
        };
        let mut cause = String::new();
        let mut source = std::error::Error::source(error);
        while let Some(inner) = source {
            cause = format!(": {inner}");
            source = inner.source();
        }
        let url = self.redact(url);
        Trouble { fault: Fault::new(kind, format!("{url}: {what}{cause}")), reply: None, retry_after: None }
    }
}

/// Bytes that are not JSON, for messages and transcripts.
pub fn text_body(body: &[u8]) -> Value {
    Value::String(String::from_utf8_lossy(body).into_owned())
}

fn is_transient(kind: FaultKind) -> bool {
    matches!(kind, FaultKind::RateLimit | FaultKind::Server | FaultKind::Network | FaultKind::Timeout)
}

/// Seconds, or a date; never negative.
fn retry_after(response: &Response) -> Option<Duration> {
    let value = response.headers().get(reqwest::header::RETRY_AFTER)?.to_str().ok()?.trim();
    wait_of(value, Timestamp::now())
}

fn wait_of(value: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds.max(0.0)).ok();
    }
    let then = rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
    Some(Duration::try_from(then.duration_since(now)).unwrap_or_default())
}

/// What a status and an error body mean. `body` is the whole body; its `error` may be an object or a text.
pub fn fault_of(status: u16, body: &Value, url: &str) -> Fault {
    let error = body.get("error").unwrap_or(body);
    let text = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
    let message = match error {
        Value::String(text) => text.as_str(),
        _ if !text("message").is_empty() => text("message"),
        _ => body.as_str().unwrap_or_default(),
    };
    let code = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let inside_good = (200..300).contains(&status);
    let effective = if inside_good { code.unwrap_or(status) } else { status };
    let names = format!("{} {}", text("type"), text("code"));
    let kind = kind_of(effective, inside_good, &names, message);
    let shown: String = message.chars().take(MAX_MESSAGE).collect();
    let shown = if shown.trim().is_empty() { "no message".to_owned() } else { shown };
    Fault::new(kind, format!("{url}: {status}: {}", shown.split_whitespace().collect::<Vec<_>>().join(" ")))
}

fn kind_of(status: u16, inside_good: bool, names: &str, message: &str) -> FaultKind {
    let lower = message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    // Several servers answer 500 when they cannot parse the call that the model wrote (ollama/ollama#12064,
    // llama.cpp "Failed to parse tool call"): that is the model's failure.
    if says(&["error parsing tool call", "failed to parse tool call", "parse tool call arguments"]) {
        return FaultKind::BadCall;
    }
    let overflow = [
        "context size",
        "context length",
        "context window",
        "maximum context",
        "prompt is too long",
        "too many tokens",
    ];
    if names.contains("exceed_context_size")
        || names.contains("context_length_exceeded")
        || (status != 429 && says(&overflow))
    {
        return FaultKind::Context;
    }
    if status >= 400 && says(&["jinja", "chat template", "chat_template"]) {
        return FaultKind::Template;
    }
    match status {
        401..=403 => FaultKind::Auth,
        429 if names.contains("insufficient_quota") => FaultKind::Auth,
        429 => FaultKind::RateLimit,
        408 | 500..=599 => FaultKind::Server,
        _ if inside_good => FaultKind::Response,
        _ => FaultKind::Request,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn statuses_and_bodies_have_their_meaning() {
        let kind = |status: u16, body: Value| fault_of(status, &body, "u").kind;
        let message = |text: &str| json!({ "error": { "message": text } });
        assert_eq!(kind(401, message("Invalid API Key")), FaultKind::Auth);
        assert_eq!(kind(402, json!("pay")), FaultKind::Auth);
        assert_eq!(kind(429, message("slow down")), FaultKind::RateLimit);
        assert_eq!(kind(429, json!({ "error": { "message": "x", "code": "insufficient_quota" } })), FaultKind::Auth);
        assert_eq!(kind(503, message("Loading model")), FaultKind::Server);
        assert_eq!(kind(400, message("'messages' is required")), FaultKind::Request);
        assert_eq!(kind(404, json!({ "error": "model not found" })), FaultKind::Request);
        assert_eq!(kind(500, message("Jinja Exception: roles out of order")), FaultKind::Template);
        assert_eq!(kind(500, message("error parsing tool call: raw='x'")), FaultKind::BadCall);
        assert_eq!(
            kind(400, json!({ "error": { "message": "x", "type": "exceed_context_size_error" } })),
            FaultKind::Context
        );
        assert_eq!(kind(400, message("maximum context length is 4096, got 5000")), FaultKind::Context);
        assert_eq!(kind(200, message("prompt is too long")), FaultKind::Context);
        assert_eq!(kind(200, json!({ "error": { "code": 429, "message": "x" } })), FaultKind::RateLimit);
        assert_eq!(kind(200, json!({ "error": { "code": 400, "message": "x" } })), FaultKind::Response);
        assert_eq!(kind(200, message("generation failed")), FaultKind::Response);
    }

    #[test]
    fn both_forms_of_retry_after() {
        let now: Timestamp = "2026-09-01T00:00:00Z".parse().unwrap();
        assert_eq!(wait_of("7", now), Some(Duration::from_secs(7)));
        assert_eq!(wait_of("-5", now), Some(Duration::ZERO));
        assert_eq!(wait_of("Tue, 01 Sep 2026 00:00:09 GMT", now), Some(Duration::from_secs(9)));
        assert_eq!(wait_of("Mon, 31 Aug 2026 00:00:00 GMT", now), Some(Duration::ZERO));
        assert_eq!(wait_of("soon", now), None);
    }
}
