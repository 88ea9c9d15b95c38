//! Anthropic Messages.
//!
//! Wire format: platform.claude.com/docs/en/api/messages ("Create a Message"), …/build-with-claude/streaming ("Streaming
//! messages"), …/agents-and-tools/tool-use/overview, and what llama.cpp's server and LiteLLM's proxy answer on the same path.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::openai::{server_facts, url_with};
use super::{Asked, Protocol, add_call, arguments, base_and_query, number, object, split_thought, tokens};
use crate::chat::{Answer, Call, Finish, Function, Message, Usage};
use crate::model::{Fault, FaultKind, Request};

const PATH: &str = "/messages";
/// The protocol has no default of its own.
const MAX_TOKENS: u64 = 4096;

/// Messages.
#[derive(Debug)]
pub(super) struct Messages;

impl Protocol for Messages {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn url(&self, base: &str, _: &str, _: bool) -> String {
        url_with(&versioned(base), PATH)
    }

    fn probes(&self, base: &str, _: &str) -> Vec<(&'static str, String)> {
        super::openai::probes_beside(&versioned(base), PATH)
    }

    fn facts(&self, model: &str, probed: &Map<String, Value>) -> Map<String, Value> {
        server_facts(model, probed)
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-api-key", "")
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn settings(&self, asked: &Asked) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("model".into(), json!(asked.model));
        body.insert("max_tokens".into(), json!(asked.sampling.max_tokens.unwrap_or(MAX_TOKENS)));
        if let Some(temperature) = asked.sampling.temperature {
            body.insert("temperature".into(), number(temperature));
        }
        if let Some(effort) = &asked.effort {
            body.insert("output_config".into(), json!({ "effort": effort }));
        }
        if asked.stream {
            body.insert("stream".into(), json!(true));
        }
        body
    }

    fn fill(&self, body: &mut Map<String, Value>, request: Request<'_>, strict: bool) {
        let system: Vec<&str> = request
            .messages
            .iter()
            .filter_map(|message| match message {
                Message::System { text } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        if !system.is_empty() {
            body.insert("system".into(), json!(system.join("\n\n")));
        }
        body.insert("messages".into(), turns(request.messages));
        if !request.functions.is_empty() {
            body.insert("tools".into(), request.functions.iter().map(|function| tool(function, strict)).collect());
        }
    }

    fn optional(&self) -> &'static [&'static str] {
        &["strict"]
    }

    fn is_last(&self, data: &str) -> bool {
        kind_of(data).is_some_and(|kind| kind == "message_stop" || kind == "error")
    }

    fn join(&self, chunks: &[Value], _: bool) -> Result<Value, Fault> {
        let mut joined = Joined::default();
        chunks.iter().for_each(|chunk| joined.take(chunk));
        joined.finish()
    }

    fn answer(&self, body: &Value) -> Result<Answer, Fault> {
        let Some(blocks) = body.get("content").and_then(Value::as_array) else {
            return Err(Fault::new(FaultKind::Response, "the answer has no content"));
        };
        let reason = body.get("stop_reason").and_then(Value::as_str);
        if reason == Some("model_context_window_exceeded") {
            return Err(Fault::new(FaultKind::Context, "the answer outgrew the context window"));
        }
        let of = |block: &Value, name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (mut text, mut thought, mut calls, mut echo) = (String::new(), String::new(), Vec::new(), Vec::new());
        let mut signed = false;
        for block in blocks {
            match block.get("type").and_then(Value::as_str) {
                Some("text") => {
                    text.push_str(&of(block, "text"));
                    echo.push(block.clone());
                }
                Some("thinking" | "redacted_thinking") => {
                    thought.push_str(&of(block, "thinking"));
                    // Without its signature a thought cannot be checked, and is refused.
                    if is_signed(block) {
                        signed = true;
                        echo.push(block.clone());
                    }
                }
                Some("tool_use") => {
                    echo.push(json!({ "type": "tool_use" }));
                    let id = block.get("id").and_then(Value::as_str);
                    add_call(&mut calls, id, &of(block, "name"), arguments(block.get("input")));
                }
                _ => {}
            }
        }
        let (inner, text) = split_thought(&text);
        Ok(Answer {
            text,
            thought: [thought, inner].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n"),
            calls,
            finish: match reason {
                Some("max_tokens") => Finish::Length,
                Some("refusal") => Finish::Refused,
                _ => Finish::Stop,
            },
            usage: usage(body),
            echo: signed.then_some(Value::Array(echo)),
        })
    }
}

fn is_signed(block: &Value) -> bool {
    let filled = |name: &str| block.get(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    filled("signature") || filled("data")
}

/// A gateway's path without a version gets the protocol's.
fn versioned(base: &str) -> String {
    let (path, query) = base_and_query(base);
    let whole = path.ends_with(PATH) || path.rsplit('/').next().is_some_and(|last| last == "v1");
    if whole { format!("{path}{query}") } else { format!("{path}/v1{query}") }
}

fn kind_of(data: &str) -> Option<String> {
    let value: Value = serde_json::from_str(data).ok()?;
    Some(value.get("type")?.as_str()?.to_owned())
}

/// User and assistant by turns; results of one answer's calls stand together in one message.
fn turns(messages: &[Message]) -> Value {
    let mut out: Vec<(&str, Vec<Value>)> = Vec::new();
    let mut add = |role: &'static str, blocks: Vec<Value>| match out.last_mut() {
        _ if blocks.is_empty() => {}
        Some((last, held)) if *last == role => held.extend(blocks),
        _ => out.push((role, blocks)),
    };
    let mut ids = Ids::default();
    for message in messages {
        match message {
            Message::System { .. } => {}
            Message::User { text } => add("user", vec![json!({ "type": "text", "text": text })]),
            Message::Assistant { text, calls, echo } => {
                ids.begin(calls);
                add("assistant", assistant(text, calls, echo.as_ref(), &ids));
            }
            Message::Tool { id, text, .. } => {
                add("user", vec![json!({ "type": "tool_result", "tool_use_id": ids.of(id), "content": text })]);
            }
        }
    }
    out.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

/// Ids of calls: those of one answer are told apart already, but the protocol refuses one that an earlier answer had.
#[derive(Default)]
struct Ids {
    used: BTreeSet<String>,
    /// Of the latest answer: the id as it came, and as it is sent.
    latest: BTreeMap<String, String>,
}

impl Ids {
    fn begin(&mut self, calls: &[Call]) {
        self.latest.clear();
        for call in calls {
            let plain = plain(&call.id);
            let again = (2_usize..).map(|n| format!("{plain}_{n}"));
            let free = std::iter::once(plain.clone()).chain(again).find(|id| !self.used.contains(id));
            let id = free.unwrap_or(plain);
            self.used.insert(id.clone());
            self.latest.insert(call.id.clone(), id);
        }
    }

    fn of(&self, id: &str) -> String {
        self.latest.get(id).cloned().unwrap_or_else(|| plain(id))
    }
}

/// Content must not be empty, nor a text: an answer of nothing is left out. Signed thought stands where it stood among
/// text and calls.
fn assistant(text: &str, calls: &[Call], echo: Option<&Value>, ids: &Ids) -> Vec<Value> {
    let said = || vec![json!({ "type": "text", "text": text }), json!({ "type": "tool_use" })];
    let order = echo.and_then(Value::as_array).cloned().unwrap_or_else(said);
    let mut calls = calls
        .iter()
        .map(|call| json!({ "type": "tool_use", "id": ids.of(&call.id), "name": call.name, "input": object(call) }));
    let mut blocks = Vec::new();
    for block in order {
        match block.get("type").and_then(Value::as_str) {
            Some("tool_use") => blocks.extend(calls.next()),
            Some("text") if block.get("text").and_then(Value::as_str).is_none_or(|text| text.trim().is_empty()) => {}
            _ => blocks.push(block),
        }
    }
    blocks.extend(calls);
    blocks
}

/// Ids of letters, digits, `_` and `-`: the protocol takes no others.
fn plain(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect()
}

/// A strict schema says of every object that it is closed.
fn tool(function: &Function, strict: bool) -> Value {
    let (name, description) = (&function.name, &function.description);
    if strict {
        let mut schema = function.parameters.clone();
        close(&mut schema);
        return json!({ "name": name, "description": description, "input_schema": schema, "strict": true });
    }
    json!({ "name": name, "description": description, "input_schema": function.parameters })
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.values_mut().for_each(close);
            if fields.get("type").is_some_and(|kind| kind == "object") {
                fields.insert("additionalProperties".into(), json!(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// What came from a cache or went into one is counted apart here, and is input all the same.
fn usage(body: &Value) -> Usage {
    let count = |name: &str| tokens(body, &["usage", name]);
    let cached = count("cache_read_input_tokens");
    let input = count("input_tokens")
        .map(|input| input + cached.unwrap_or(0) + count("cache_creation_input_tokens").unwrap_or(0));
    let output = count("output_tokens");
    let reasoning = tokens(body, &["usage", "output_tokens_details", "thinking_tokens"]);
    Usage { input, output, cached, reasoning, total: Usage::sum(input, output) }
}

#[derive(Default)]
struct Joined {
    message: Map<String, Value>,
    /// By index: llama.cpp begins a block before the one before it has ended.
    blocks: Vec<(u64, Map<String, Value>, String)>,
    stopped: bool,
}

impl Joined {
    fn take(&mut self, chunk: &Value) {
        let part = |name: &str| chunk.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
        let index = chunk.get("index").and_then(Value::as_u64).unwrap_or(0);
        match chunk.get("type").and_then(Value::as_str) {
            Some("message_start") => self.message = part("message"),
            Some("content_block_start") => self.blocks.push((index, part("content_block"), String::new())),
            Some("content_block_delta") => self.delta(index, &part("delta")),
            Some("message_delta") => {
                self.message.extend(part("delta"));
                // Counts that come late take the place of those that came first.
                let usage = self.message.entry("usage").or_insert_with(|| json!({}));
                if let Some(usage) = usage.as_object_mut() {
                    usage.extend(part("usage").into_iter().filter(|(_, value)| !value.is_null()));
                }
            }
            Some("message_stop") => self.stopped = true,
            _ => {}
        }
    }

    fn delta(&mut self, index: u64, delta: &Map<String, Value>) {
        let Some((_, block, partial)) = self.blocks.iter_mut().rev().find(|(at, _, _)| *at == index) else {
            return;
        };
        for (from, to) in [("text", "text"), ("thinking", "thinking"), ("signature", "signature")] {
            if let Some(more) = delta.get(from).and_then(Value::as_str) {
                let held = block.get(to).and_then(Value::as_str).unwrap_or_default();
                block.insert(to.to_owned(), json!(format!("{held}{more}")));
            }
        }
        partial.push_str(delta.get("partial_json").and_then(Value::as_str).unwrap_or_default());
    }

    fn finish(mut self) -> Result<Value, Fault> {
        let ended = self.message.get("stop_reason").is_some_and(|reason| !reason.is_null());
        if !self.stopped && !ended {
            return Err(Fault::new(FaultKind::Network, "the event stream ended before its answer did"));
        }
        let blocks = self.blocks.into_iter().map(|(_, mut block, partial)| {
            if !partial.is_empty() {
                // What does not parse stays a text, so that it is told and never run.
                let input = serde_json::from_str(&partial).unwrap_or(Value::String(partial));
                block.insert("input".to_owned(), input);
            }
            Value::Object(block)
        });
        self.message.insert("content".to_owned(), blocks.collect());
        Ok(Value::Object(self.message))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    #[test]
    fn base_urls_as_users_write_them() {
        for (base, url) in [
            ("https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
            ("http://h/v1/", "http://h/v1/messages"),
            ("https://h/anthropic?x=1", "https://h/anthropic/v1/messages?x=1"),
            ("https://h/v1/messages", "https://h/v1/messages"),
        ] {
            assert_eq!(Messages.url(base, "m", false), url);
        }
        assert_eq!(Messages.probes("http://h", "m")[1], ("props", "http://h/props".to_owned()));
    }

    #[test]
    fn a_request_on_the_wire() {
        let call = json!({ "type": "tool_use" });
        let second = json!({ "type": "redacted_thinking", "data": "x" });
        let echo = json!([{ "type": "thinking", "thinking": "hm", "signature": "s" }, call, second, call]);
        let body = testing::body(&Messages, &testing::asked(), &testing::messages(Some(echo)), true);
        let mut schema = testing::functions()[0].parameters.clone();
        schema["additionalProperties"] = json!(false);
        let want = json!({
            "model": "m", "max_tokens": 2048, "temperature": 0, "system": "Be exact.",
            "messages": [
                { "role": "user", "content": [{ "type": "text", "text": "Do it." }] },
                { "role": "assistant", "content": [
                    { "type": "thinking", "thinking": "hm", "signature": "s" },
                    { "type": "tool_use", "id": "a", "name": "read_file", "input": { "path": "f" } },
                    second,
                    { "type": "tool_use", "id": "b", "name": "read_file", "input": {} } ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "a", "content": "one" },
                    { "type": "tool_result", "tool_use_id": "b", "content": "the arguments are not a JSON object" } ] },
            ],
            "tools": [{ "name": "read_file", "description": "Reads.", "input_schema": schema, "strict": true }],
        });
        assert_eq!(body, want);
    }

    #[test]
    fn ids_are_sent_once() {
        let mut messages = testing::messages(None);
        messages.extend(testing::messages(None).drain(2..));
        let body = testing::body(&Messages, &testing::asked(), &messages, false);
        let id = |message: usize, name: &str| body["messages"][message]["content"][1][name].clone();
        assert_eq!((id(1, "id"), id(2, "tool_use_id")), (json!("b"), json!("b")));
        assert_eq!((id(3, "id"), id(4, "tool_use_id")), (json!("b_2"), json!("b_2")));
    }

    #[test]
    fn an_answer_and_its_counts() {
        let body = json!({ "type": "message", "content": [
            { "type": "thinking", "thinking": "h" },
            { "type": "thinking", "thinking": "m", "signature": "s" }, { "type": "text", "text": "ok" },
            { "type": "tool_use", "id": "t", "name": "f", "input": { "a": 1 } } ], "stop_reason": "tool_use",
            "usage": { "input_tokens": 1, "cache_read_input_tokens": 169, "output_tokens": 5 } });
        let answer = testing::read(&Messages, body).unwrap();
        assert_eq!((answer.text.as_str(), answer.thought.as_str()), ("ok", "hm"));
        assert_eq!(answer.calls[0].arguments.as_written(), "{\"a\": 1}");
        assert_eq!((answer.usage.input, answer.usage.cached, answer.usage.total), (Some(170), Some(169), Some(175)));
        let kinds =
            answer.echo.unwrap().as_array().unwrap().iter().map(|block| block["type"].clone()).collect::<Vec<_>>();
        assert_eq!(kinds, ["thinking", "text", "tool_use"]);
        let stop = |reason: &str| testing::read(&Messages, json!({ "content": [], "stop_reason": reason }));
        assert_eq!(stop("max_tokens").unwrap().finish, Finish::Length);
        assert_eq!(stop("refusal").unwrap().finish, Finish::Refused);
        assert_eq!(stop("model_context_window_exceeded").unwrap_err().kind, FaultKind::Context);
        assert_eq!(testing::read(&Messages, json!({})).unwrap_err().kind, FaultKind::Response);
    }

    fn stream(partial: &[&str], last: &[Value]) -> Value {
        let mut all = vec![
            json!({ "type": "message_start", "message": { "content": [], "usage": { "input_tokens": 3, "output_tokens": 1 } } }),
            json!({ "type": "ping" }),
            json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
            json!({ "type": "content_block_start", "index": 1, "content_block": { "type": "tool_use", "id": "t", "name": "f" } }),
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "ok" } }),
        ];
        all.extend(partial.iter().map(|part| json!({ "type": "content_block_delta", "index": 1, "delta": { "type": "input_json_delta", "partial_json": part } })));
        all.extend_from_slice(last);
        testing::events(&all)
    }

    #[test]
    fn streams_are_joined_by_index() {
        let end = [
            json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 9 } }),
            json!({ "type": "message_stop" }),
        ];
        let answer = testing::read(&Messages, stream(&["{\"a\":", " \"é\"}"], &end)).unwrap();
        assert_eq!(answer.text, "ok");
        assert_eq!(answer.calls[0].arguments.object().unwrap()["a"], "é");
        assert_eq!(answer.usage.total, Some(12));
        let cut = testing::read(&Messages, stream(&["{\"a\":"], &end)).unwrap();
        assert_eq!(cut.calls[0].arguments.object(), None);
        assert_eq!(testing::read(&Messages, stream(&["{\"a\":"], &[])).unwrap_err().kind, FaultKind::Network);
        let error = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
        assert_eq!(testing::read(&Messages, stream(&[], &[error])).unwrap_err().kind, FaultKind::Server);
        assert!(Messages.is_last("{\"type\": \"message_stop\"}") && !Messages.is_last("{\"type\":\"ping\"}"));
    }
}
