//! OpenAI Responses.
//!
//! Wire format: developers.openai.com/api/reference ("Create a model response", "Streaming events"),
//! developers.openai.com/api/docs/guides/reasoning (encrypted reasoning without storage), and what llama.cpp's server and
//! LiteLLM's proxy answer on the same path: events without an index, ends without a status of their own.

use serde_json::{Map, Value, json};

use super::openai::{probes_beside, server_facts, url_with};
use super::{Asked, Protocol, add_call, arguments, number, split_thought, tokens};
use crate::chat::{Answer, Call, Finish, Function, Message, Usage};
use crate::model::{Fault, FaultKind, Request};

const PATH: &str = "/responses";

/// Responses.
#[derive(Debug)]
pub(super) struct Responses;

impl Protocol for Responses {
    fn name(&self) -> &'static str {
        "openai-responses"
    }

    fn url(&self, base: &str, _: &str, _: bool) -> String {
        url_with(base, PATH)
    }

    fn probes(&self, base: &str, _: &str) -> Vec<(&'static str, String)> {
        probes_beside(base, PATH)
    }

    fn facts(&self, model: &str, probed: &Map<String, Value>) -> Map<String, Value> {
        server_facts(model, probed)
    }

    /// Conversations are sent whole, so nothing need be kept at the provider. The protocol knows no seed.
    fn settings(&self, asked: &Asked) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("model".into(), json!(asked.model));
        if let Some(temperature) = asked.sampling.temperature {
            body.insert("temperature".into(), number(temperature));
        }
        if let Some(max_tokens) = asked.sampling.max_tokens {
            body.insert("max_output_tokens".into(), json!(max_tokens));
        }
        body.insert("store".into(), json!(false));
        if let Some(effort) = &asked.effort {
            body.insert("reasoning".into(), json!({ "effort": effort }));
            body.insert("include".into(), json!(["reasoning.encrypted_content"]));
        }
        if asked.stream {
            body.insert("stream".into(), json!(true));
        }
        body
    }

    fn fill(&self, body: &mut Map<String, Value>, request: Request<'_>, strict: bool) {
        let (mut instructions, mut input) = (Vec::new(), Vec::new());
        for message in request.messages {
            match message {
                Message::System { text } => instructions.push(text.as_str()),
                Message::User { text } => input.push(json!({ "role": "user", "content": text })),
                Message::Assistant { text, calls, echo } => input.extend(assistant(text, calls, echo.as_ref())),
                Message::Tool { id, text, .. } => {
                    input.push(json!({ "type": "function_call_output", "call_id": id, "output": text }));
                }
            }
        }
        if !instructions.is_empty() {
            body.insert("instructions".into(), json!(instructions.join("\n\n")));
        }
        body.insert("input".into(), Value::Array(input));
        if !request.functions.is_empty() {
            body.insert("tools".into(), request.functions.iter().map(|function| tool(function, strict)).collect());
        }
    }

    fn optional(&self) -> &'static [&'static str] {
        &["store", "include", "parallel_tool_calls", "strict"]
    }

    fn error_in(&self, body: &Value) -> Option<Value> {
        let response = body.get("response").unwrap_or(body);
        let given = [body.get("error"), response.get("error")].into_iter().flatten().find(|error| !error.is_null());
        if let Some(error) = given {
            return Some(json!({ "error": error }));
        }
        match body.get("type").and_then(Value::as_str) {
            Some("error") => Some(json!({ "error": { "message": body.get("message"), "code": body.get("code") } })),
            _ if response.get("status").is_some_and(|status| status == "failed") => {
                Some(json!({ "error": { "message": "the answer failed" } }))
            }
            _ => None,
        }
    }

    fn is_last(&self, data: &str) -> bool {
        let kind = serde_json::from_str::<Value>(data).ok();
        let kind = kind.as_ref().and_then(|value| value.get("type")).and_then(Value::as_str);
        data.trim() == "[DONE]" || kind.is_some_and(|kind| ENDS.contains(&kind))
    }

    fn join(&self, chunks: &[Value], done: bool) -> Result<Value, Fault> {
        let mut joined = Joined::default();
        chunks.iter().for_each(|chunk| joined.take(chunk));
        joined.finish(done)
    }

    fn answer(&self, body: &Value) -> Result<Answer, Fault> {
        let Some(items) = body.get("output").and_then(Value::as_array) else {
            return Err(Fault::new(FaultKind::Response, "the answer has no output"));
        };
        let (mut text, mut thought, mut calls, mut echo) = (String::new(), String::new(), Vec::new(), Vec::new());
        let mut refused = false;
        for item in items {
            let word = |name: &str| item.get(name).and_then(Value::as_str);
            match word("type") {
                Some("message") => {
                    for part in parts(item, "content") {
                        refused |= part.get("refusal").is_some_and(|refusal| !refusal.is_null());
                        text.push_str(part.get("text").and_then(Value::as_str).unwrap_or_default());
                    }
                }
                Some("function_call") => {
                    add_call(
                        &mut calls,
                        word("call_id").or(word("id")),
                        word("name").unwrap_or_default(),
                        arguments(item.get("arguments")),
                    );
                }
                Some("reasoning") => {
                    let said = parts(item, "summary").chain(parts(item, "content"));
                    said.filter_map(|part| part.get("text")?.as_str()).for_each(|part| thought.push_str(part));
                    // What is not stored can only be shown again as it was encrypted.
                    if word("encrypted_content").is_some() {
                        echo.push(item.clone());
                    }
                }
                _ => {}
            }
        }
        let (inner, text) = split_thought(&text);
        let why = body.get("incomplete_details").and_then(|details| details.get("reason")).and_then(Value::as_str);
        let finish = match (body.get("status").and_then(Value::as_str), why) {
            (_, Some("content_filter")) => Finish::Refused,
            (Some("incomplete"), _) | (_, Some("max_output_tokens")) => Finish::Length,
            _ if refused => Finish::Refused,
            _ => Finish::Stop,
        };
        Ok(Answer {
            text,
            thought: [thought, inner].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n"),
            calls,
            finish,
            usage: usage(body),
            echo: (!echo.is_empty()).then_some(Value::Array(echo)),
        })
    }
}

/// The events that end a stream.
const ENDS: [&str; 4] = ["response.completed", "response.incomplete", "response.failed", "error"];

fn parts<'a>(item: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    item.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn assistant(text: &str, calls: &[Call], echo: Option<&Value>) -> Vec<Value> {
    let mut items = echo.and_then(Value::as_array).cloned().unwrap_or_default();
    if !text.is_empty() {
        items.push(
            json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": text }] }),
        );
    }
    items.extend(calls.iter().map(|call| {
        json!({ "type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments.for_history() })
    }));
    items
}

/// `strict` is said either way, since it is on where it is left out.
fn tool(function: &Function, strict: bool) -> Value {
    json!({ "type": "function", "name": function.name, "description": function.description,
            "parameters": function.parameters, "strict": strict })
}

fn usage(body: &Value) -> Usage {
    let count = |path: &[&str]| body.get("usage").and_then(|usage| tokens(usage, path));
    let (input, output) = (count(&["input_tokens"]), count(&["output_tokens"]));
    Usage {
        input,
        output,
        cached: count(&["input_tokens_details", "cached_tokens"]),
        reasoning: count(&["output_tokens_details", "reasoning_tokens"]),
        total: count(&["total_tokens"]).or(Usage::sum(input, output)),
    }
}

#[derive(Default)]
struct Joined {
    /// The answer of the last event.
    end: Option<Value>,
    /// Items by their id, or by their place where they have none.
    items: Vec<(String, Value)>,
}

impl Joined {
    fn take(&mut self, chunk: &Value) {
        let word = |name: &str| chunk.get(name).and_then(Value::as_str);
        let kind = word("type").unwrap_or_default();
        let delta = word("delta").unwrap_or_default();
        match kind {
            "response.output_item.added" | "response.output_item.done" => {
                if let Some(item) = chunk.get("item") {
                    let key = item.get("id").and_then(Value::as_str).map(str::to_owned).unwrap_or_else(|| place(chunk));
                    // The last word on an item is the whole of it.
                    match self.items.iter_mut().find(|(known, _)| *known == key) {
                        Some((_, known)) => *known = item.clone(),
                        None => self.items.push((key, item.clone())),
                    }
                }
            }
            "response.function_call_arguments.delta" => self.add(chunk, |item| grow(item, "arguments", delta)),
            "response.output_text.delta" => self.add(chunk, |item| grow_part(item, "content", delta)),
            "response.reasoning_text.delta" => self.add(chunk, |item| grow_part(item, "content", delta)),
            "response.reasoning_summary_text.delta" => self.add(chunk, |item| grow_part(item, "summary", delta)),
            _ if ENDS.contains(&kind) => self.end = chunk.get("response").cloned(),
            _ => {}
        }
    }

    fn add(&mut self, chunk: &Value, grow: impl FnOnce(&mut Value)) {
        let id = chunk.get("item_id").and_then(Value::as_str).map(str::to_owned).unwrap_or_else(|| place(chunk));
        if let Some((_, item)) = self.items.iter_mut().find(|(known, _)| *known == id) {
            grow(item);
        }
    }

    fn finish(self, done: bool) -> Result<Value, Fault> {
        let mut body = match self.end {
            Some(end) => end,
            None if done => json!({}),
            None => return Err(Fault::new(FaultKind::Network, "the event stream ended before its answer did")),
        };
        // Some servers leave the items out of the last event.
        if body.get("output").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            body["output"] = self.items.into_iter().map(|(_, item)| item).collect();
        }
        Ok(body)
    }
}

fn place(chunk: &Value) -> String {
    chunk.get("output_index").map(Value::to_string).unwrap_or_default()
}

fn grow(item: &mut Value, name: &str, more: &str) {
    let held = item.get(name).and_then(Value::as_str).unwrap_or_default();
    item[name] = json!(format!("{held}{more}"));
}

fn grow_part(item: &mut Value, name: &str, more: &str) {
    match item.get_mut(name).and_then(Value::as_array_mut).and_then(|parts| parts.last_mut()) {
        Some(part) => grow(part, "text", more),
        None => item[name] = json!([{ "type": "output_text", "text": more }]),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    #[test]
    fn a_request_on_the_wire() {
        let mut asked = testing::asked();
        asked.effort = Some("low".into());
        let echo = json!([{ "type": "reasoning", "id": "r", "encrypted_content": "x", "summary": [] }]);
        let body = testing::body(&Responses, &asked, &testing::messages(Some(echo.clone())), false);
        let want = json!({
            "model": "m", "temperature": 0, "max_output_tokens": 2048, "store": false,
            "reasoning": { "effort": "low" }, "include": ["reasoning.encrypted_content"],
            "instructions": "Be exact.",
            "input": [
                { "role": "user", "content": "Do it." }, echo[0],
                { "type": "function_call", "call_id": "a", "name": "read_file", "arguments": "{\"path\": \"f\"}" },
                { "type": "function_call", "call_id": "b", "name": "read_file", "arguments": "{}" },
                { "type": "function_call_output", "call_id": "a", "output": "one" },
                { "type": "function_call_output", "call_id": "b", "output": "the arguments are not a JSON object" } ],
            "tools": [{ "type": "function", "name": "read_file", "description": "Reads.",
                "parameters": testing::functions()[0].parameters, "strict": false }],
        });
        assert_eq!(body, want);
        assert_eq!(Responses.url("http://h", "m", false), "http://h/v1/responses");
    }

    fn items() -> Value {
        json!([
            { "type": "reasoning", "id": "r", "summary": [{ "text": "hm" }], "encrypted_content": "x" },
            { "type": "message", "content": [{ "type": "output_text", "text": "ok" }] },
            { "type": "function_call", "id": "fc", "call_id": "c1", "name": "f", "arguments": "{\"a\":1}" },
            { "type": "function_call", "id": "fd", "call_id": "c1", "name": "f", "arguments": "{\"path\": \"" },
        ])
    }

    #[test]
    fn an_answer_and_its_end() {
        let usage = json!({ "input_tokens": 9, "output_tokens": 4, "input_tokens_details": { "cached_tokens": 3 }, "output_tokens_details": { "reasoning_tokens": 2 } });
        let body = json!({ "status": "completed", "error": null, "output": items(), "usage": usage });
        let answer = testing::read(&Responses, body).unwrap();
        assert_eq!((answer.text.as_str(), answer.thought.as_str()), ("ok", "hm"));
        assert_eq!((answer.calls[0].id.as_str(), answer.calls[1].id.as_str()), ("c1", "call00002"));
        assert_eq!(answer.calls[1].arguments.object(), None);
        assert_eq!((answer.usage.total, answer.usage.cached, answer.usage.reasoning), (Some(13), Some(3), Some(2)));
        assert!(answer.echo.is_some());
        let end =
            |reason: &str| json!({ "status": "incomplete", "incomplete_details": { "reason": reason }, "output": [] });
        assert_eq!(testing::read(&Responses, end("max_output_tokens")).unwrap().finish, Finish::Length);
        assert_eq!(testing::read(&Responses, end("content_filter")).unwrap().finish, Finish::Refused);
        assert_eq!(testing::read(&Responses, json!({})).unwrap_err().kind, FaultKind::Response);
        let failed =
            json!({ "status": "failed", "error": { "code": "rate_limit_exceeded", "message": "x" }, "output": [] });
        assert_eq!(testing::read(&Responses, failed).unwrap_err().kind, FaultKind::RateLimit);
    }

    #[test]
    fn streams_are_joined_by_item() {
        let open = |id: &str| json!({ "type": "response.output_item.added", "item": { "type": "function_call", "id": id, "call_id": id, "name": "f", "arguments": "" } });
        let more = |id: &str, text: &str| json!({ "type": "response.function_call_arguments.delta", "item_id": id, "delta": text });
        let end = json!({ "type": "response.completed", "response": { "status": "completed", "output": [], "usage": { "total_tokens": 5 } } });
        let events = [open("a"), open("b"), more("a", "{\"x\""), more("b", "{}"), more("a", ": 1}"), end];
        let answer = testing::read(&Responses, testing::events(&events)).unwrap();
        assert_eq!(answer.calls[0].arguments.as_written(), "{\"x\": 1}");
        assert_eq!((answer.calls.len(), answer.usage.total), (2, Some(5)));
        assert_eq!(testing::read(&Responses, testing::events(&events[..5])).unwrap_err().kind, FaultKind::Network);
        let error = json!({ "type": "error", "code": "server_error", "message": "rate limit" });
        assert_eq!(testing::read(&Responses, testing::events(&[error])).unwrap_err().kind, FaultKind::Response);
        let whole = json!({ "type": "response.incomplete", "response": { "status": "incomplete", "output": items() } });
        assert_eq!(testing::read(&Responses, testing::events(&[whole])).unwrap().finish, Finish::Length);
    }
}
