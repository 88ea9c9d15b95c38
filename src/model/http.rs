//! The one HTTP client: bounds in time and size, retries of infrastructure, limits of the endpoint.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::fault::fault_of;
use super::limit::Limiter;
use super::redact::Secrets;
use super::{Fault, FaultKind, Retry};

/// A larger answer than this is none.
const MAX_BODY: usize = 8 << 20;

/// Limits and retries of requests.
#[derive(Clone, Debug)]
pub struct Policy {
    pub connect_timeout: Duration,
    /// From sending a request to the first byte of its answer's body.
    pub first_byte_timeout: Duration,
    /// From one piece of an answer to the next.
    pub idle_timeout: Duration,
    /// From sending a request to the end of its answer, where it is not streamed.
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
            first_byte_timeout: Duration::from_secs(300),
            idle_timeout: Duration::from_secs(60),
            request_timeout: Duration::from_secs(300),
            max_retries: 5,
            first_wait: Duration::from_secs(1),
            max_wait: Duration::from_secs(60),
        }
    }
}

/// A client of one endpoint, with its headers.
#[derive(Debug)]
pub struct Http {
    client: Client,
    secrets: Secrets,
    policy: Policy,
    limiter: Rc<Limiter>,
}

/// A response, read to its end.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub body: Vec<u8>,
    /// To the first byte of the body.
    pub first_byte: Option<Duration>,
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
    /// Before the last try began.
    pub waited: Duration,
}

/// One request, ready to be sent as often as needed.
pub struct Post<'a> {
    pub url: &'a str,
    pub body: Vec<u8>,
    /// The answer comes in pieces: no bound for its whole.
    pub stream: bool,
    /// No try may take longer than what is left for an answer.
    pub left: Duration,
    /// Finds faults that hide behind a good status.
    pub judge: &'a dyn Fn(&Reply) -> Option<Fault>,
    /// Whether a stream is whole though its connection is still open.
    pub whole: &'a dyn Fn(&[u8]) -> bool,
}

impl Http {
    /// The only constructor of clients: it installs the TLS provider, without which no client can be built. All header
    /// values count as secret.
    ///
    /// # Errors
    /// When a header cannot be sent, or the platform gives no certificates.
    pub(super) fn new(
        headers: &[(String, String)],
        secrets: Secrets,
        policy: Policy,
        connections: usize,
        limiter: Rc<Limiter>,
        secure: bool,
    ) -> Result<Self, Fault> {
        // A second installation is refused, and the first one is what is wanted.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let bad = |what: &str| Fault::new(FaultKind::Request, format!("the header `{name}` has {what}"));
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("a name that cannot be sent"))?;
            let mut value = HeaderValue::from_str(value).map_err(|_| bad("a value that cannot be sent"))?;
            value.set_sensitive(true);
            map.insert(key, value);
        }
        // Reading the platform's certificates takes longer than all else at the start, and plain HTTP needs none.
        let builder = if secure { Client::builder() } else { Client::builder().tls_certs_only([]) };
        let client = builder
            .connect_timeout(policy.connect_timeout)
            .pool_max_idle_per_host(connections)
            .tcp_nodelay(true)
            .default_headers(map)
            // A key must not follow to another host.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("editgate/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| Fault::new(FaultKind::Network, format!("no HTTP client: {error}")))?;
        Ok(Http { client, secrets, policy, limiter })
    }

    /// Text that may be shown: without anything secret.
    pub(super) fn redact(&self, text: &str) -> String {
        self.secrets.redact(text)
    }

    /// An answer as it may be recorded: without the key, should a server echo it.
    pub(super) fn without_secrets(&self, text: &str) -> String {
        self.secrets.without(text)
    }

    /// Tokens of an answer, for the limits of the endpoint.
    pub(super) fn spend(&self, tokens: u64) {
        self.limiter.spend(tokens);
    }

    /// A GET without retries, for what a server says about itself.
    ///
    /// # Errors
    /// Any fault; a body that is not JSON is [`FaultKind::Response`].
    pub(super) async fn get_json(&self, url: &str) -> Result<Value, Fault> {
        let shown = |fault: Fault| Fault::new(fault.kind, self.redact(&fault.message));
        let post = Post {
            url,
            body: Vec::new(),
            stream: false,
            left: self.policy.request_timeout,
            judge: &|_| None,
            whole: &|_| false,
        };
        let reply = self.once(self.client.get(url), &post).await.map_err(|trouble| shown(trouble.fault))?;
        serde_json::from_slice(&reply.body)
            .map_err(|error| shown(Fault::new(FaultKind::Response, format!("{url}: not JSON: {error}"))))
    }

    /// A POST of JSON, retried where a retry can help.
    pub(super) async fn post_json(&self, post: Post<'_>) -> Sent {
        let mut retries = Vec::new();
        let began = Instant::now();
        let tried = Cell::new(began);
        let waits = ExponentialBuilder::default()
            .with_jitter()
            .with_min_delay(self.policy.first_wait)
            .with_max_delay(self.policy.max_wait)
            .with_max_times(self.policy.max_retries);
        let done = (|| self.attempt(&post, &tried))
            .retry(waits)
            .sleep(tokio::time::sleep)
            .when(|trouble: &Trouble| trouble.fault.kind.is_transient())
            .adjust(|trouble, wait| wait.map(|wait| trouble.retry_after.unwrap_or(wait).min(self.policy.max_wait)))
            .notify(|trouble, wait| {
                let message = self.redact(&trouble.fault.message);
                tracing::debug!(wait_s = wait.as_secs_f64(), "retrying after: {message}");
                retries.push(Retry { reason: trouble.fault.kind, message, wait_s: wait.as_secs_f64() });
            })
            .await;
        let waited = tried.get().duration_since(began);
        match done {
            Ok(reply) => Sent { outcome: Ok(()), reply: Some(reply), retries, waited },
            Err(trouble) => {
                let fault = Fault::new(trouble.fault.kind, self.redact(&trouble.fault.message));
                Sent { outcome: Err(fault), reply: trouble.reply, retries, waited }
            }
        }
    }

    /// One try, once the endpoint has room for it.
    async fn attempt(&self, post: &Post<'_>, tried: &Cell<Instant>) -> Result<Reply, Trouble> {
        let pass = self.limiter.enter().await;
        tried.set(Instant::now());
        let request = self.client.post(post.url).header("content-type", "application/json").body(post.body.clone());
        let reply = match self.once(request, post).await {
            Ok(reply) => match (post.judge)(&reply) {
                None => Ok(reply),
                Some(fault) => Err(Trouble { fault, retry_after: reply.retry_after, reply: Some(reply) }),
            },
            Err(trouble) => Err(trouble),
        };
        let took = tried.get().elapsed();
        match &reply {
            Ok(reply) => {
                tracing::debug!(status = reply.status, bytes = reply.body.len(), ?took, "answered");
                pass.answered();
            }
            Err(trouble) if trouble.fault.kind == FaultKind::RateLimit => {
                pass.refused(trouble.retry_after.map(|wait| wait.min(self.policy.max_wait)));
            }
            Err(_) => {}
        }
        reply
    }

    async fn once(&self, request: reqwest::RequestBuilder, post: &Post<'_>) -> Result<Reply, Trouble> {
        let began = Instant::now();
        tracing::debug!(url = self.redact(post.url), bytes = post.body.len(), "asking");
        let whole = if post.stream { Duration::MAX } else { self.policy.request_timeout };
        let bounds = Bounds {
            began,
            left: post.left,
            whole,
            first: self.policy.first_byte_timeout.min(whole),
            idle: self.policy.idle_timeout,
        };
        let response = bounds.wait(true, request.send()).await.map_err(|over| self.late(over, post.url))?;
        let response = response.map_err(|error| self.transport(&error, post.url))?;
        let status = response.status().as_u16();
        let retry_after = retry_after(response.headers());
        let (body, first_byte) = self.body(response, post, &bounds).await?;
        let reply = Reply { status, body, first_byte, retry_after };
        if (200..300).contains(&status) {
            return Ok(reply);
        }
        let text = || Value::String(String::from_utf8_lossy(&reply.body).into_owned());
        let fault = fault_of(status, &serde_json::from_slice(&reply.body).unwrap_or_else(|_| text()), post.url);
        Err(Trouble { fault, retry_after, reply: Some(reply) })
    }

    async fn body(
        &self,
        mut response: Response,
        post: &Post<'_>,
        bounds: &Bounds,
    ) -> Result<(Vec<u8>, Option<Duration>), Trouble> {
        let large = || {
            let message = format!("{}: the answer is larger than {MAX_BODY} bytes", post.url);
            Trouble { fault: Fault::new(FaultKind::Garbled, message), reply: None, retry_after: None }
        };
        if response.content_length().is_some_and(|length| length > MAX_BODY as u64) {
            return Err(large());
        }
        let (mut body, mut first_byte) = (Vec::new(), None);
        loop {
            let chunk = bounds.wait(first_byte.is_none(), response.chunk()).await;
            let chunk = chunk.map_err(|over| self.late(over, post.url))?;
            let Some(chunk) = chunk.map_err(|error| self.transport(&error, post.url))? else {
                return Ok((body, first_byte));
            };
            first_byte = first_byte.or_else(|| Some(bounds.began.elapsed()));
            body.extend_from_slice(&chunk);
            if body.len() > MAX_BODY {
                return Err(large());
            }
            if post.stream && (post.whole)(&body) {
                return Ok((body, first_byte));
            }
        }
    }

    fn late(&self, over: Over, url: &str) -> Trouble {
        let (kind, what) = match over {
            Over::Left => (FaultKind::OutOfTime, "the time of the attempt ran out"),
            Over::First => (FaultKind::Timeout, "no answer in time"),
            Over::Idle => (FaultKind::Timeout, "the answer stopped in its middle"),
            Over::Whole => (FaultKind::Timeout, "the answer was not whole in time"),
        };
        Trouble { fault: Fault::new(kind, format!("{}: {what}", self.redact(url))), reply: None, retry_after: None }
    }

    fn transport(&self, error: &reqwest::Error, url: &str) -> Trouble {
        let (kind, what) = if error.is_timeout() {
            (FaultKind::Timeout, "no connection in time")
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

/// The times within which a try must come to its end.
struct Bounds {
    began: Instant,
    left: Duration,
    whole: Duration,
    first: Duration,
    idle: Duration,
}

/// Which of the bounds was reached.
#[derive(Clone, Copy)]
enum Over {
    Left,
    First,
    Idle,
    Whole,
}

impl Bounds {
    async fn wait<T>(&self, first: bool, what: impl Future<Output = T>) -> Result<T, Over> {
        let at = |since: Instant, time: Duration| since.checked_add(time);
        let step =
            if first { (at(self.began, self.first), Over::First) } else { (at(Instant::now(), self.idle), Over::Idle) };
        let all = [step, (at(self.began, self.whole), Over::Whole), (at(self.began, self.left), Over::Left)];
        let soonest = all.into_iter().filter_map(|(at, over)| Some((at?, over))).min_by_key(|(at, _)| *at);
        match soonest {
            None => Ok(what.await),
            Some((at, over)) => timeout_at(at, what).await.map_err(|_| over),
        }
    }
}

/// What a server asks for: milliseconds (OpenAI, Azure), seconds or a date; never negative.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = |name: &HeaderName| headers.get(name)?.to_str().ok().map(str::trim);
    let millis = value(&HeaderName::from_static("retry-after-ms")).and_then(|text| text.parse::<f64>().ok());
    let wait = millis.and_then(|millis| Duration::try_from_secs_f64(millis.max(0.0) / 1000.0).ok());
    wait.or_else(|| wait_of(value(&RETRY_AFTER)?, Timestamp::now()))
}

fn wait_of(value: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds.max(0.0)).ok();
    }
    let then = rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
    Some(Duration::try_from(then.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_retry_after() {
        let now: Timestamp = "2026-09-01T00:00:00Z".parse().unwrap();
        assert_eq!(wait_of("7", now), Some(Duration::from_secs(7)));
        assert_eq!(wait_of("-5", now), Some(Duration::ZERO));
        assert_eq!(wait_of("Tue, 01 Sep 2026 00:00:09 GMT", now), Some(Duration::from_secs(9)));
        assert_eq!(wait_of("Mon, 31 Aug 2026 00:00:00 GMT", now), Some(Duration::ZERO));
        assert_eq!(wait_of("soon", now), None);
        let headers =
            HeaderMap::from_iter([(HeaderName::from_static("retry-after-ms"), HeaderValue::from_static("250"))]);
        assert_eq!(retry_after(&headers), Some(Duration::from_millis(250)));
    }
}
