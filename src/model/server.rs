//! A model behind a server, whatever protocol it speaks.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use serde_json::{Map, Value};

use super::http::{Http, Post, Reply};
use super::protocol::{Asked, Protocol, body_of, hidden_fault, interpret, is_whole};
use super::redact::masked;
use super::{Brief, Conversation, Fault, FaultKind, Model, Raw, Request, Turn};

/// A model, its server, and what is asked of it.
#[derive(Debug)]
pub(super) struct ServerModel {
    /// In reports.
    pub(super) name: String,
    pub(super) protocol: &'static dyn Protocol,
    pub(super) base_url: String,
    pub(super) http: Http,
    pub(super) asked: Asked,
    /// Asks the server to hold calls to their schemas.
    pub(super) strict: bool,
    /// Further fields of the body; `null` takes one away.
    pub(super) extra: Map<String, Value>,
    /// Parameters that this server refused.
    pub(super) dropped: RefCell<BTreeSet<String>>,
}

impl ServerModel {
    /// The body without messages and tools.
    fn settings(&self) -> Map<String, Value> {
        let mut body = self.protocol.settings(&self.asked);
        merge(&mut body, &self.extra);
        let dropped = self.dropped.borrow();
        for (old, new) in self.protocol.renamed() {
            if dropped.contains(*old)
                && let Some(value) = body.get(*old).cloned()
            {
                body.insert((*new).to_owned(), value);
            }
        }
        body.retain(|name, _| !dropped.contains(name));
        body
    }

    async fn ask(&self, request: Request<'_>) -> Turn {
        let url = self.protocol.url(&self.base_url, &self.asked.model, self.asked.stream);
        let judge = |reply: &Reply| {
            let hidden = || hidden_fault(self.protocol, reply.status, &reply.body, &url);
            garbled(&reply.body, &url).or_else(hidden)
        };
        let (mut retries, mut waited) = (Vec::new(), Duration::ZERO);
        loop {
            let settings = self.settings();
            let strict = self.strict && !self.dropped.borrow().contains("strict");
            let mut body = settings.clone();
            self.protocol.fill(&mut body, request, strict);
            let post = Post {
                url: &url,
                body: Value::Object(body).to_string().into_bytes(),
                stream: self.asked.stream,
                left: request.left,
                judge: &judge,
                whole: &|body| is_whole(self.protocol, body),
            };
            let sent = self.http.post_json(post).await;
            retries.extend(sent.retries);
            waited += sent.waited;
            if let Err(fault) = &sent.outcome
                && self.drop_refused(fault, &settings, strict)
            {
                continue;
            }
            let text = sent.reply.as_ref().map(|reply| String::from_utf8_lossy(&reply.body)).unwrap_or_default();
            // What came is run; only what is recorded is without the key.
            let body = if sent.reply.is_some() { body_of(&text) } else { Value::Null };
            let kept = self.http.without_secrets(&text);
            let read = || interpret(self.protocol, &body);
            let shown = |fault: Fault| Fault::new(fault.kind, self.http.redact(&fault.message));
            let outcome = sent.outcome.and_then(|()| read().map_err(shown));
            if let Some(tokens) = outcome.as_ref().ok().and_then(|answer| answer.usage.total) {
                self.http.spend(tokens);
            }
            let raw = Raw {
                request: masked(&Value::Object(settings)),
                status: sent.reply.as_ref().map(|reply| reply.status),
                body: if kept == text { body } else { body_of(&kept) },
            };
            return Turn {
                outcome,
                raw: Some(raw),
                retries,
                dropped_params: self.dropped.borrow().iter().cloned().collect(),
                ms: None,
                waited,
                first_byte_ms: sent.reply.and_then(|reply| millis(reply.first_byte?)),
            };
        }
    }

    /// Notes a parameter that the server refused by name; `true` when the request can go out without it.
    fn drop_refused(&self, fault: &Fault, sent: &Map<String, Value>, strict: bool) -> bool {
        if fault.kind != FaultKind::Request {
            return false;
        }
        let words: Vec<&str> = fault.message.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
        let sent = |name: &str| sent.contains_key(name) || (strict && name == "strict");
        let renamed = self.protocol.renamed().iter().find(|(old, new)| sent(old) && words.contains(new));
        let optional = || self.protocol.optional().iter().find(|name| sent(name) && words.contains(*name)).copied();
        let name = renamed.map(|(old, _)| *old).or_else(optional);
        name.is_some_and(|name| self.dropped.borrow_mut().insert(name.to_owned()))
    }

    async fn server_facts(&self) -> Result<Value, Fault> {
        let mut probed = Map::new();
        for (index, (name, url)) in self.protocol.probes(&self.base_url, &self.asked.model).into_iter().enumerate() {
            match self.http.get_json(&url).await {
                Ok(answer) => drop(probed.insert(name.to_owned(), answer)),
                Err(fault) if index == 0 && fault.kind == FaultKind::Network => return Err(fault),
                // Not every server lists its models, nor lets every key see the list.
                Err(_) => {}
            }
        }
        let facts = self.protocol.facts(&self.asked.model, &probed);
        Ok(if facts.is_empty() { Value::Null } else { Value::Object(facts) })
    }
}

impl Model for ServerModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn facts(&self) -> LocalBoxFuture<'_, Result<Value, Fault>> {
        self.server_facts().boxed_local()
    }

    fn converse<'a>(&'a self, _: Brief<'a>) -> Box<dyn Conversation + 'a> {
        Box::new(Asking { model: self })
    }
}

struct Asking<'a> {
    model: &'a ServerModel,
}

impl Conversation for Asking<'_> {
    fn answer<'a>(&'a mut self, request: Request<'a>) -> LocalBoxFuture<'a, Turn> {
        self.model.ask(request).boxed_local()
    }
}

/// What is neither JSON nor a stream, or ends in the middle: something between the model and here broke it.
fn garbled(body: &[u8], url: &str) -> Option<Fault> {
    let text = String::from_utf8_lossy(body);
    let start = text.trim_start();
    let cut = || serde_json::from_str::<serde::de::IgnoredAny>(start).is_err_and(|error| error.is_eof());
    let foreign = !["{", "[", "data:", "event:", "id:", "retry:", ":"].iter().any(|mark| start.starts_with(mark));
    let what = match start {
        "" => "an empty answer",
        _ if foreign => "an answer that is no JSON",
        _ if start.starts_with(['{', '[']) && cut() => "an answer that ends in its middle",
        _ => return None,
    };
    let excerpt: String = start.chars().take(60).collect();
    Some(Fault::new(FaultKind::Garbled, format!("{url}: {what}: {excerpt}")))
}

/// Puts further fields into a body: objects are merged, `null` takes a field away.
fn merge(body: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (name, value) in more {
        match (body.get_mut(name), value) {
            (_, Value::Null) => drop(body.remove(name)),
            (Some(Value::Object(inner)), Value::Object(more)) => merge(inner, more),
            _ => drop(body.insert(name.clone(), value.clone())),
        }
    }
}

fn millis(duration: Duration) -> Option<u64> {
    u64::try_from(duration.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_broke_on_its_way_is_worth_another_try() {
        let kind = |body: &str| garbled(body.as_bytes(), "u").map(|fault| fault.kind);
        for body in ["", "<html>", "{\"choices\": [", "[{\"a\": 1}", "\u{0}\u{1}", "Bad Gateway"] {
            assert_eq!(kind(body), Some(FaultKind::Garbled), "{body}");
        }
        for body in ["{}", "data: x\n\n", "[{\"error\": 1}]", "{\"a\": \"\\ud83d\"}"] {
            assert_eq!(kind(body), None, "{body}");
        }
    }

    #[test]
    fn further_fields_are_merged() {
        let object = |value: Value| value.as_object().cloned().unwrap();
        let mut body = object(json!({ "a": 1, "b": { "c": 1, "d": 2 }, "e": 3 }));
        merge(&mut body, &object(json!({ "a": null, "b": { "c": 5, "d": null, "x": [1] }, "f": {} })));
        assert_eq!(Value::Object(body), json!({ "b": { "c": 5, "x": [1] }, "e": 3, "f": {} }));
    }
}
