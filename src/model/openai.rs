//! OpenAI Chat Completions with function calls, for any server that speaks it.
//!
//! Wire format: the provider's reference, "Create chat completion"
//! (developers.openai.com/api/reference/python/resources/chat/subresources/completions/), and the quirks of llama.cpp's
//! server, measured on the wire.

use std::cell::RefCell;
use std::collections::BTreeSet;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use serde_json::ser::Formatter;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::http::{Http, Reply, fault_of};
use super::provider::chat_url;
use super::redact::masked;
use super::{Brief, Conversation, Fault, FaultKind, Model, Raw, Request, Sampling, Turn, sse};
use crate::chat::{Answer, Arguments, Arrival, Call, Finish, Function, Message, Usage, hex};

/// Parameters that say nothing about what is measured: a server that refuses one gets the request again without it.
const OPTIONAL: [&str; 4] = ["seed", "parallel_tool_calls", "stream_options", "strict"];
/// The newer name of `max_tokens`, which some models insist on.
const NEW_MAX_TOKENS: &str = "max_completion_tokens";

/// A model behind a Chat Completions server.
#[derive(Debug)]
pub struct ChatCompletions {
    name: String,
    id: String,
    url: String,
    http: Http,
    sampling: Sampling,
    extra: Map<String, Value>,
    /// Parameters that this server refused.
    dropped: RefCell<BTreeSet<String>>,
}

impl ChatCompletions {
    /// `name` is the model's name in reports, `id` what the server is asked for.
    pub fn new(
        name: String,
        id: String,
        base_url: &str,
        http: Http,
        sampling: Sampling,
        extra: Map<String, Value>,
    ) -> Self {
        ChatCompletions { name, id, url: chat_url(base_url), http, sampling, extra, dropped: RefCell::default() }
    }

    /// The body without messages and tools.
    fn settings(&self) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("model".into(), json!(self.id));
        if let Some(temperature) = self.sampling.temperature {
            // 0 and not 0.0, as everybody writes it.
            let whole = temperature.fract() == 0.0;
            body.insert("temperature".into(), if whole { json!(temperature as i64) } else { json!(temperature) });
        }
        if let Some(seed) = self.sampling.seed {
            body.insert("seed".into(), json!(seed));
        }
        if let Some(max_tokens) = self.sampling.max_tokens {
            body.insert("max_tokens".into(), json!(max_tokens));
        }
        for (name, value) in &self.extra {
            body.insert(name.clone(), value.clone());
        }
        let dropped = self.dropped.borrow();
        if dropped.contains("max_tokens")
            && let Some(max_tokens) = body.get("max_tokens").cloned()
        {
            body.insert(NEW_MAX_TOKENS.into(), max_tokens);
        }
        body.retain(|name, value| !dropped.contains(name) && !value.is_null());
        body
    }

    async fn ask(&self, request: Request<'_>) -> Turn {
        let mut retries = Vec::new();
        loop {
            let settings = self.settings();
            let mut body = settings.clone();
            body.insert("messages".into(), messages(request.messages));
            if !request.functions.is_empty() {
                body.insert("tools".into(), tools(request.functions));
            }
            let sent =
                self.http.post_json(&self.url, &Value::Object(body), |reply| hidden_fault(reply, &self.url)).await;
            retries.extend(sent.retries);
            if let Err(fault) = &sent.outcome
                && self.drop_refused(fault, &settings)
            {
                continue;
            }
            let text = sent.reply.as_ref().map(|reply| String::from_utf8_lossy(&reply.body)).unwrap_or_default();
            // What came is run; only what is recorded is without the key.
            let body = if sent.reply.is_some() { body_of(&text) } else { Value::Null };
            let kept = self.http.without_key(&text);
            let outcome = match sent.outcome {
                Err(fault) => Err(fault),
                Ok(()) => {
                    interpret(&body).await.map_err(|fault| Fault::new(fault.kind, self.http.redact(&fault.message)))
                }
            };
            let raw = Raw {
                request: masked(&Value::Object(settings)),
                status: sent.reply.as_ref().map(|reply| reply.status),
                body: if kept == text { body } else { body_of(&kept) },
            };
            let dropped_params = self.dropped.borrow().iter().cloned().collect();
            return Turn { outcome, raw: Some(raw), retries, dropped_params, ms: None };
        }
    }

    /// Notes a parameter that the server refused by name; `true` when the request can go out without it.
    fn drop_refused(&self, fault: &Fault, sent: &Map<String, Value>) -> bool {
        if fault.kind != FaultKind::Request {
            return false;
        }
        let words: Vec<&str> = fault.message.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
        let refused = |name: &&str| sent.contains_key(*name) && words.contains(name);
        let renamed = sent.contains_key("max_tokens") && words.contains(&NEW_MAX_TOKENS);
        let name = if renamed { Some("max_tokens") } else { OPTIONAL.into_iter().find(|name| refused(name)) };
        name.is_some_and(|name| self.dropped.borrow_mut().insert(name.to_owned()))
    }

    async fn server_facts(&self) -> Result<Value, Fault> {
        let Some(base) = self.url.strip_suffix("/chat/completions") else {
            return Ok(Value::Null);
        };
        let models = match self.http.get_json(&format!("{base}/models")).await {
            Ok(models) => models,
            Err(fault) if fault.kind == FaultKind::Network => return Err(fault),
            // Not every server lists its models, nor lets every key see the list.
            Err(_) => Value::Null,
        };
        let props = match base.strip_suffix("/v1") {
            Some(root) => self.http.get_json(&format!("{root}/props")).await.unwrap_or(Value::Null),
            None => Value::Null,
        };
        Ok(facts_of(&self.id, &models, &props))
    }
}

impl Model for ChatCompletions {
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
    model: &'a ChatCompletions,
}

impl Conversation for Asking<'_> {
    fn answer<'a>(&'a mut self, request: Request<'a>) -> LocalBoxFuture<'a, Turn> {
        self.model.ask(request).boxed_local()
    }
}

/// A body as JSON, or as text where it is none.
fn body_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// What a server says of itself, as far as a score can depend on it (llama.cpp: `/v1/models` and `/props`).
fn facts_of(id: &str, models: &Value, props: &Value) -> Value {
    let entry = models.get("data").and_then(Value::as_array).and_then(|list| {
        let named = list.iter().find(|model| model.get("id").is_some_and(|each| each == id));
        // A server of one model ignores the name it is asked for.
        named.or(if list.len() == 1 { list.first() } else { None })
    });
    let mut facts = Map::new();
    if let Some(entry) = entry {
        for name in ["id", "owned_by", "meta"] {
            if let Some(value) = entry.get(name).filter(|value| !value.is_null()) {
                facts.insert(name.into(), value.clone());
            }
        }
    }
    if let Some(build) = props.get("build_info") {
        facts.insert("build".into(), build.clone());
    }
    if let Some(slots) = props.get("total_slots") {
        facts.insert("slots".into(), slots.clone());
    }
    if let Some(window) = props.get("default_generation_settings").and_then(|settings| settings.get("n_ctx")) {
        facts.insert("context".into(), window.clone());
    }
    if let Some(template) = props.get("chat_template").and_then(Value::as_str) {
        facts.insert("chat_template_sha256".into(), json!(hex(&Sha256::digest(template.as_bytes()))));
    }
    if let Some(path) = props.get("model_path").and_then(Value::as_str) {
        // The name of the file, not where it lies on somebody's machine.
        facts.insert("file".into(), json!(path.rsplit(['/', '\\']).next().unwrap_or(path)));
    }
    if facts.is_empty() { Value::Null } else { Value::Object(facts) }
}

/// Messages as the wire has them. Arguments are always a JSON string, content of an assistant never null.
fn messages(messages: &[Message]) -> Value {
    messages
        .iter()
        .map(|message| match message {
            Message::System { text } => json!({ "role": "system", "content": text }),
            Message::User { text } => json!({ "role": "user", "content": text }),
            Message::Assistant { text, calls } if calls.is_empty() => json!({ "role": "assistant", "content": text }),
            Message::Assistant { text, calls } => {
                let calls: Vec<Value> = calls
                    .iter()
                    .map(|call| {
                        json!({ "id": call.id, "type": "function",
                                "function": { "name": call.name, "arguments": call.arguments.for_history() } })
                    })
                    .collect();
                json!({ "role": "assistant", "content": text, "tool_calls": calls })
            }
            Message::Tool { id, text, .. } => json!({ "role": "tool", "tool_call_id": id, "content": text }),
        })
        .collect()
}

fn tools(functions: &[Function]) -> Value {
    functions
        .iter()
        .map(|function| {
            json!({ "type": "function",
                    "function": { "name": function.name, "description": function.description, "parameters": function.parameters } })
        })
        .collect()
}

/// An error behind a good status, seen early so that it can be retried.
fn hidden_fault(reply: &Reply, url: &str) -> Option<Fault> {
    if reply.event_stream {
        let text = String::from_utf8_lossy(&reply.body);
        let error =
            text.lines().find_map(|line| error_in(&serde_json::from_str(line.strip_prefix("data:")?.trim()).ok()?));
        // A stream that was cut is worth another try, as any broken connection.
        let ended =
            text.contains("[DONE]") || text.contains("\"finish_reason\":\"") || text.contains("\"finish_reason\": \"");
        let cut = || (!ended).then(|| Fault::new(FaultKind::Network, format!("{url}: the event stream was cut")));
        return error.map(|error| fault_of(reply.status, &error, url)).or_else(cut);
    }
    let error = error_in(&serde_json::from_slice(&reply.body).ok()?)?;
    Some(fault_of(reply.status, &error, url))
}

/// An error that stands in a body or in its first choice (as gateways report one in the middle of an answer).
pub(super) fn error_in(body: &Value) -> Option<Value> {
    let choice = body.get("choices").and_then(Value::as_array).and_then(|choices| choices.first());
    let given = [Some(body), choice].into_iter().flatten().filter_map(|holder| holder.get("error"));
    if let Some(error) = given.into_iter().find(|error| !error.is_null()) {
        return Some(json!({ "error": error }));
    }
    let failed = choice.and_then(|choice| choice.get("finish_reason")).is_some_and(|reason| reason == "error");
    failed.then(|| json!({ "error": { "message": "the answer ended in an error" } }))
}

/// The answer in a body, which is JSON or the text of an event stream. Recordings are read by this as well.
///
/// # Errors
/// A fault when there is no answer in it.
pub async fn interpret(body: &Value) -> Result<Answer, Fault> {
    let joined;
    let body = match body {
        Value::String(text) if is_event_stream(text) => {
            joined = sse::join(text.as_bytes()).await?;
            &joined
        }
        Value::String(text) => {
            let start: String = text.chars().take(80).collect();
            return Err(Fault::new(FaultKind::Response, format!("the answer is not JSON: {start}")));
        }
        other => other,
    };
    if let Some(error) = error_in(body) {
        return Err(fault_of(200, &error, "answer"));
    }
    let choice = body.get("choices").and_then(Value::as_array).and_then(|choices| choices.first());
    let message = choice.and_then(|choice| choice.get("message")).filter(|message| message.is_object());
    let (Some(choice), Some(message)) = (choice, message) else {
        return Err(Fault::new(FaultKind::Response, "the answer has no choices"));
    };
    let (thought, text) = split_thought(&content(message.get("content")));
    let mut thoughts: Vec<String> = ["reasoning_content", "reasoning"]
        .iter()
        .filter_map(|name| message.get(*name).and_then(Value::as_str).map(str::to_owned))
        .collect();
    thoughts.push(thought);
    thoughts.retain(|thought| !thought.is_empty());
    let refused = message.get("refusal").and_then(Value::as_str).is_some_and(|refusal| !refusal.is_empty());
    let finish = match choice.get("finish_reason").and_then(Value::as_str) {
        Some("length") => Finish::Length,
        Some("content_filter") => Finish::Refused,
        _ if refused => Finish::Refused,
        _ => Finish::Stop,
    };
    Ok(Answer {
        text,
        thought: thoughts.join("\n"),
        calls: calls(message.get("tool_calls")),
        finish,
        usage: usage(body.get("usage")),
    })
}

/// A text that begins as an event stream does.
fn is_event_stream(text: &str) -> bool {
    let start = text.trim_start();
    ["data:", "event:", "id:", "retry:", ":"].iter().any(|field| start.starts_with(field))
}

/// Content is a text, or a list of parts, or null.
fn content(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => String::new(),
    }
}

/// Thought in `<think>` tags, and the rest. A thought that never ends leaves no rest; one that was opened in the prompt
/// has only an end.
fn split_thought(content: &str) -> (String, String) {
    let start = content.trim_start();
    match (start.strip_prefix("<think>"), content.split_once("</think>")) {
        (_, Some((before, after))) => {
            let before = before.trim_start();
            (before.strip_prefix("<think>").unwrap_or(before).to_owned(), after.trim_start().to_owned())
        }
        (Some(unfinished), None) => (unfinished.to_owned(), String::new()),
        (None, None) => (String::new(), content.to_owned()),
    }
}

fn calls(calls: Option<&Value>) -> Vec<Call> {
    let mut out: Vec<Call> = Vec::new();
    for call in calls.and_then(Value::as_array).into_iter().flatten() {
        let function = call.get("function");
        let name = function.and_then(|function| function.get("name")).and_then(Value::as_str).unwrap_or_default();
        let arguments = match function.and_then(|function| function.get("arguments")) {
            None | Some(Value::Null) => Arguments::parse(""),
            Some(Value::String(text)) => Arguments::parse(text),
            Some(other) => Arguments::parse(&spaced(other)),
        };
        let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
        let taken = id.trim().is_empty() || out.iter().any(|other| other.id == id);
        // Nine letters and digits, since there are servers that take no other ids.
        let id = if taken { format!("call{:05}", out.len() + 1) } else { id.to_owned() };
        out.push(Call { id, name: name.to_owned(), arguments, arrival: Arrival::Native });
    }
    out
}

fn usage(usage: Option<&Value>) -> Usage {
    let Some(usage) = usage.filter(|usage| usage.is_object()) else {
        return Usage::default();
    };
    let number = |value: Option<&Value>| value.and_then(Value::as_u64);
    let (input, output) = (number(usage.get("prompt_tokens")), number(usage.get("completion_tokens")));
    let both = input.zip(output).map(|(input, output)| input.saturating_add(output));
    Usage {
        input,
        output,
        cached: number(usage.get("prompt_tokens_details").and_then(|details| details.get("cached_tokens"))),
        total: number(usage.get("total_tokens")).or(both),
    }
}

/// JSON with a space after `:` and `,`, as chat templates write arguments.
fn spaced(value: &Value) -> String {
    struct Spaced;
    impl Formatter for Spaced {
        fn begin_array_value<W: ?Sized + std::io::Write>(
            &mut self,
            writer: &mut W,
            first: bool,
        ) -> std::io::Result<()> {
            if first { Ok(()) } else { writer.write_all(b", ") }
        }
        fn begin_object_key<W: ?Sized + std::io::Write>(&mut self, writer: &mut W, first: bool) -> std::io::Result<()> {
            if first { Ok(()) } else { writer.write_all(b", ") }
        }
        fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, writer: &mut W) -> std::io::Result<()> {
            writer.write_all(b": ")
        }
    }
    let mut out = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, Spaced);
    match serde::Serialize::serialize(value, &mut serializer) {
        Ok(()) => String::from_utf8(out).unwrap_or_else(|_| value.to_string()),
        Err(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: Value) -> Result<Answer, Fault> {
        interpret(&body).now_or_never().expect("nothing to wait for")
    }

    fn message(message: Value) -> Answer {
        read(json!({ "choices": [{ "message": message, "finish_reason": "stop" }] })).unwrap()
    }

    #[test]
    fn calls_come_in_many_forms() {
        let call = |arguments: Value, id: &str| json!({ "id": id, "type": "function", "function": { "name": "f", "arguments": arguments } });
        let answer = message(json!({ "content": null, "tool_calls": [
            call(json!("{\"a\": 1}"), "x"), call(json!({ "a": 1, "b": [1, 2] }), "x"), call(Value::Null, ""), call(json!("{"), "y") ] }));
        let written: Vec<&str> = answer.calls.iter().map(|call| call.arguments.as_written()).collect();
        assert_eq!(written, ["{\"a\": 1}", "{\"a\": 1, \"b\": [1, 2]}", "{}", "{"]);
        let ids: Vec<&str> = answer.calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["x", "call00002", "call00003", "y"]);
    }

    #[test]
    fn thought_is_kept_apart() {
        let of = |content: &str| split_thought(content);
        assert_eq!(of("<think>a</think>\nb"), ("a".into(), "b".into()));
        assert_eq!(of("a</think>b"), ("a".into(), "b".into()));
        assert_eq!(of("<think>a"), ("a".into(), String::new()));
        assert_eq!(of("plain"), (String::new(), "plain".into()));
        assert_eq!(message(json!({ "content": "", "reasoning_content": "r" })).thought, "r");
    }

    #[test]
    fn an_error_in_a_choice_is_a_fault() {
        let error = json!({ "choices": [{ "message": { "content": "" }, "finish_reason": "error", "error": { "code": 502, "message": "upstream" } }] });
        assert_eq!(read(error).unwrap_err().kind, FaultKind::Server);
        let bare = json!({ "choices": [{ "message": { "content": "" }, "finish_reason": "error" }] });
        assert_eq!(read(bare).unwrap_err().kind, FaultKind::Response);
    }

    #[test]
    fn what_is_no_answer_is_a_fault() {
        for body in
            [json!({}), json!({ "choices": [] }), json!("<html>"), json!({ "choices": [{ "finish_reason": "stop" }] })]
        {
            assert_eq!(read(body).unwrap_err().kind, FaultKind::Response);
        }
        assert_eq!(read(json!("data: {\"choices\": []}\n\n")).unwrap_err().kind, FaultKind::Network);
    }

    #[test]
    fn streams_are_joined() {
        let stream = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}]}}]}\n\n\
            data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"function\":{\"arguments\":\"}\"}}]}}]}\n\n\
            data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n\
            data: {\"choices\":[],\"usage\":{\"total_tokens\":33}}\n\ndata: [DONE]\n\n";
        let answer = read(json!(stream)).unwrap();
        assert_eq!(answer.calls.len(), 1);
        assert_eq!(answer.calls[0].arguments.as_written(), "{}");
        assert_eq!(answer.usage.total, Some(33));
    }
}
