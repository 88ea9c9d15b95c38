//! OpenAI Responses.
//!
//! Wire format: developers.openai.com/api/reference/resources/responses/methods/create, …/responses/streaming-events, and
//! developers.openai.com/api/docs/guides/reasoning and …/migrate-to-responses. Others differ: llama.cpp takes no assistant's
//! message without `type` and leaves `output_index` out, proxies lose `output` or ids (BerriAI/litellm#41014, #36375).

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

    /// An error is an event of its own, or stands in the answer that an event brings.
    fn error_in(&self, body: &Value) -> Option<Value> {
        let response = body.get("response").unwrap_or(body);
        let kind = word(body, "type");
        let failed = kind == "response.failed" || ["failed", "cancelled"].contains(&word(response, "status"));
        let mut given = [body, response].into_iter().filter_map(|holder| holder.get("error"));
        let mut error = match given.find(|error| !error.is_null()).cloned() {
            Some(error) => error,
            None if kind == "error" => json!({ "code": body.get("code"), "message": body.get("message") }),
            None if failed => json!({ "message": "the answer failed" }),
            None => return None,
        };
        // The server's own fault has a name where others have a number that calls for another try.
        let named = |own: &str| word(&error, "code").contains(own) || word(&error, "type").contains(own);
        if (named("server_error") || named("overloaded")) && !error["code"].is_number() {
            error["code"] = json!(500);
        }
        Some(json!({ "error": error }))
    }

    fn is_last(&self, data: &str) -> bool {
        let ends = |event: Value| ENDS.contains(&word(&event, "type")) || self.error_in(&event).is_some();
        data.trim() == "[DONE]" || serde_json::from_str(data).is_ok_and(ends)
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
        let (mut text, mut refused) = (String::new(), false);
        let (mut thoughts, mut calls, mut echo) = (Vec::new(), Vec::new(), Vec::new());
        for item in items {
            match word(item, "type") {
                "message" => {
                    refused |= parts(item, "content").any(|part| !word(part, "refusal").is_empty());
                    text.extend(parts(item, "content").map(|part| word(part, "text")));
                }
                CALL => {
                    let id = ["call_id", "id"].into_iter().map(|name| word(item, name)).find(|id| !id.is_empty());
                    add_call(&mut calls, id, word(item, "name"), arguments(item.get("arguments")));
                }
                "reasoning" => {
                    let said = parts(item, "summary").chain(parts(item, "content"));
                    thoughts.push(said.map(|part| word(part, "text")).collect::<String>());
                    // What is not stored can only be shown again as it was encrypted.
                    if !word(item, "encrypted_content").is_empty() {
                        echo.push(item.clone());
                    }
                }
                _ => {}
            }
        }
        let (inner, text) = split_thought(&text);
        let thoughts: Vec<String> = thoughts.into_iter().chain([inner]).filter(|thought| !thought.is_empty()).collect();
        let why = body.get("incomplete_details").map_or("", |details| word(details, "reason"));
        let finish = match (word(body, "status"), why) {
            (_, "content_filter") => Finish::Refused,
            (_, "max_output_tokens") => Finish::Length,
            _ if refused => Finish::Refused,
            ("incomplete", _) => Finish::Length,
            _ => Finish::Stop,
        };
        Ok(Answer {
            text,
            thought: thoughts.join("\n"),
            calls,
            finish,
            usage: usage(body),
            echo: (!echo.is_empty()).then_some(Value::Array(echo)),
        })
    }
}

/// The events that end a stream with an answer.
const ENDS: [&str; 2] = ["response.completed", "response.incomplete"];
const CALL: &str = "function_call";

fn word<'a>(holder: &'a Value, name: &str) -> &'a str {
    holder.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn parts<'a>(item: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    item.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// A message says its `type`, which others than the provider insist on. Thought that nothing follows is refused.
fn assistant(text: &str, calls: &[Call], echo: Option<&Value>) -> Vec<Value> {
    let follows = !text.is_empty() || !calls.is_empty();
    let mut items = echo.filter(|_| follows).and_then(Value::as_array).cloned().unwrap_or_default();
    if !text.is_empty() {
        let parts = json!([{ "type": "output_text", "text": text }]);
        items.push(json!({ "type": "message", "role": "assistant", "content": parts }));
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
    end: Option<Map<String, Value>>,
    /// Objects, each with the place that it came with.
    items: Vec<(Option<u64>, Value)>,
}

impl Joined {
    fn take(&mut self, chunk: &Value) {
        let kind = word(chunk, "type");
        if ENDS.contains(&kind) {
            let mut end = chunk.get("response").and_then(Value::as_object).cloned().unwrap_or_default();
            end.entry("status").or_insert_with(|| json!(kind.trim_start_matches("response.")));
            self.end = Some(end);
        } else if let Some(item) = chunk.get("item").filter(|item| item.is_object()) {
            let ways = if kind == "response.output_item.added" { 1 } else { 2 };
            let held = self.find(word(item, "type"), [word(item, "id"), word(item, "call_id")], chunk, ways);
            for (name, value) in item.as_object().into_iter().flatten() {
                // An end that leaves out what its fragments said takes nothing back.
                let empty = value.is_null() || value == "" || value.as_array().is_some_and(Vec::is_empty);
                if !empty || held.get(name).is_none() {
                    held[name] = value.clone();
                }
            }
        } else if let Some((what, how)) = kind.rsplit_once('.') {
            self.take_fragment(what, how == "done", chunk);
        }
    }

    fn take_fragment(&mut self, what: &str, whole: bool, chunk: &Value) {
        let (owner, field) = match what {
            "response.function_call_arguments" => (CALL, "arguments"),
            "response.output_text" => ("message", "content"),
            "response.reasoning_text" => ("reasoning", "content"),
            "response.reasoning_summary_text" => ("reasoning", "summary"),
            _ => return,
        };
        let text = word(chunk, if whole { field } else { "delta" });
        if text.is_empty() {
            return;
        }
        let held = self.find(owner, [word(chunk, "item_id"), word(chunk, "call_id")], chunk, 3);
        if whole {
            held[field] = json!(text);
        } else if owner == CALL {
            append(held, field, text);
        } else {
            match held.get_mut(field).and_then(|parts| parts.get_mut(0)).filter(|part| part.is_object()) {
                Some(part) => append(part, "text", text),
                None => held[field] = json!([{ "text": text }]),
            }
        }
    }

    /// The item of this type with one of these ids, else the one at this place, else the last one: so many of these ways
    /// are tried before there is a new one. A fragment that names another call is not put into the last one.
    fn find(&mut self, kind: &str, ids: [&str; 2], chunk: &Value, ways: usize) -> &mut Value {
        type Way<'a> = &'a dyn Fn(&Option<u64>, &Value) -> bool;
        let place = chunk.get("output_index").and_then(Value::as_u64);
        let known = |id: &str| !id.is_empty() && ids.contains(&id);
        // Some servers call an item by the id of its call.
        let by_id: Way = &|_, item| known(word(item, "id")) || known(word(item, "call_id"));
        let by_place: Way = &|at, _| place.is_some() && *at == place;
        let by_type: Way = &|_, it| kind != CALL || place.is_none() && (ids == [""; 2] || word(it, "id").is_empty());
        let fitting = |way: &Way| self.items.iter().rposition(|(at, item)| word(item, "type") == kind && way(at, item));
        let found = [by_id, by_place, by_type][..ways].iter().find_map(fitting).unwrap_or(self.items.len());
        if found == self.items.len() {
            let new = if ids[0].is_empty() { json!({ "type": kind }) } else { json!({ "type": kind, "id": ids[0] }) };
            self.items.push((place, new));
        }
        &mut self.items[found].1
    }

    fn finish(self, done: bool) -> Result<Value, Fault> {
        let mut body = match self.end {
            Some(end) => end,
            None if done => Map::new(),
            None => return Err(Fault::new(FaultKind::Network, "the event stream ended before its answer did")),
        };
        let empty = body.get("output").and_then(Value::as_array).is_none_or(Vec::is_empty);
        if empty && !self.items.is_empty() {
            body.insert("output".into(), self.items.into_iter().map(|(_, item)| item).collect());
        }
        Ok(Value::Object(body))
    }
}

fn append(holder: &mut Value, name: &str, more: &str) {
    match &mut holder[name] {
        Value::String(held) => held.push_str(more),
        other => *other = json!(more),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    fn read(body: Value) -> Result<Answer, Fault> {
        testing::read(&Responses, body)
    }

    #[test]
    fn a_request_on_the_wire() {
        let mut asked = testing::asked();
        (asked.effort, asked.stream) = (Some("low".into()), true);
        let echo = json!([{ "type": "reasoning", "id": "r", "encrypted_content": "x", "summary": [] }]);
        let body = testing::body(&Responses, &asked, &testing::messages(Some(echo.clone())), true);
        let want = json!({
            "model": "m", "temperature": 0, "max_output_tokens": 2048, "store": false, "stream": true,
            "reasoning": { "effort": "low" }, "include": ["reasoning.encrypted_content"], "instructions": "Be exact.",
            "input": [
                { "role": "user", "content": "Do it." }, echo[0],
                { "type": "function_call", "call_id": "a", "name": "read_file", "arguments": "{\"path\": \"f\"}" },
                { "type": "function_call", "call_id": "b", "name": "read_file", "arguments": "{}" },
                { "type": "function_call_output", "call_id": "a", "output": "one" },
                { "type": "function_call_output", "call_id": "b", "output": "the arguments are not a JSON object" } ],
            "tools": [{ "type": "function", "name": "read_file", "description": "Reads.",
                "parameters": testing::functions()[0].parameters, "strict": true }],
        });
        assert_eq!(body, want);
        let said = Message::Assistant { text: "ok".into(), calls: Vec::new(), echo: None };
        let body = testing::body(&Responses, &testing::asked(), &[said], false);
        assert!(body["tools"][0]["strict"] == false && body.get("include").is_none());
        assert_eq!(body["input"][0]["content"], json!([{ "type": "output_text", "text": "ok" }]));
        assert!(body["input"][0]["type"] == "message" && assistant("", &[], Some(&echo)).is_empty());
    }

    #[test]
    fn an_answer_and_its_end() {
        let items = json!([
            { "type": "reasoning", "id": "r", "summary": [{ "text": "hm" }], "encrypted_content": "x" },
            { "type": "reasoning", "id": "s", "summary": [], "content": [{ "text": "so" }], "encrypted_content": "" },
            { "type": "message", "content": [{ "type": "output_text", "text": "ok" }] },
            { "type": "function_call", "id": "fc", "call_id": "c1", "name": "f", "arguments": "{\"a\":1}" },
            { "type": "function_call", "id": "fd", "call_id": "c1", "name": "f", "arguments": "{\"path\": \"" },
        ]);
        let usage = json!({ "input_tokens": 9, "output_tokens": 4,
            "input_tokens_details": { "cached_tokens": 3 }, "output_tokens_details": { "reasoning_tokens": 2 } });
        let answer = read(json!({ "status": "completed", "error": null, "output": items, "usage": usage })).unwrap();
        assert_eq!((answer.text.as_str(), answer.thought.as_str(), answer.finish), ("ok", "hm\nso", Finish::Stop));
        assert_eq!((answer.calls[0].id.as_str(), answer.calls[1].id.as_str()), ("c1", "call00002"));
        let want = Usage { input: Some(9), output: Some(4), cached: Some(3), reasoning: Some(2), total: Some(13) };
        assert_eq!((answer.usage, answer.echo), (want, Some(json!([items[0]]))));
        let finish = |why: &str, part: Value| {
            let body = json!({ "incomplete_details": { "reason": why }, "output": [{ "type": "message", "content": [part] }] });
            read(testing::events(&[json!({ "type": "response.incomplete", "response": body })])).unwrap().finish
        };
        assert_eq!(finish("max_output_tokens", json!({ "text": "par" })), Finish::Length);
        assert_eq!(finish("content_filter", json!({ "text": "" })), Finish::Refused);
        assert_eq!(finish("", json!({ "type": "refusal", "refusal": "no" })), Finish::Refused);
    }

    #[test]
    fn errors_are_seen_wherever_they_stand() {
        let kind = |event: Value| {
            assert!(Responses.is_last(&event.to_string()));
            read(testing::events(&[event])).unwrap_err().kind
        };
        let failed = |code: &str| json!({ "status": "failed", "error": { "code": code, "message": "x" } });
        assert_eq!(read(failed("rate_limit_exceeded")).unwrap_err().kind, FaultKind::RateLimit);
        let end = json!({ "type": "response.failed", "response": failed("server_error") });
        assert_eq!((kind(end), kind(json!({ "type": "response.failed" }))), (FaultKind::Server, FaultKind::Response));
        assert_eq!(kind(json!({ "type": "error", "code": "server_error", "message": "x" })), FaultKind::Server);
        assert_eq!(kind(json!({ "type": "error", "error": { "code": "invalid_prompt" } })), FaultKind::Response);
        assert_eq!(kind(json!({ "type": "response.completed" })), FaultKind::Response);
    }

    #[test]
    fn streams_are_joined_by_item() {
        let item = |how: &str, id: &str| {
            let item = json!({ "type": "function_call", "call_id": id, "name": "f", "arguments": "" });
            json!({ "type": format!("response.output_item.{how}"), "item": item })
        };
        let more = |what: &str, id: &str, text: &str| json!({ "type": format!("response.{what}"), "item_id": id, "delta": text, "arguments": text });
        let (thought, said, grow) = ("reasoning_text.delta", "output_text.delta", "function_call_arguments.delta");
        let mut events = vec![item("added", "c"), more(grow, "?", "{")];
        events.iter_mut().for_each(|event| event["output_index"] = json!(4));
        events.extend([more(thought, "r1", "h"), more(thought, "r2", "m"), more(said, "t", "o"), more(said, "t", "k")]);
        events.extend([item("added", "a"), item("added", "b"), more(grow, "a", "{\"x\""), more(grow, "b", "{")]);
        let whole = more("function_call_arguments.done", "b", "{\"y\": 2}");
        events.extend([more(grow, "a", ": 1}"), whole, item("done", "a")]);
        assert_eq!(read(testing::events(&events)).unwrap_err().kind, FaultKind::Network);
        assert!(!events.iter().any(|event| Responses.is_last(&event.to_string())));
        events.push(
            json!({ "type": "response.completed", "response": { "output": [], "usage": { "total_tokens": 5 } } }),
        );
        let answer = read(testing::events(&events)).unwrap();
        assert_eq!((answer.thought.as_str(), answer.text.as_str()), ("hm", "ok"));
        let written: Vec<&str> = answer.calls.iter().map(|call| call.arguments.as_written()).collect();
        assert_eq!((written, answer.usage.total), (vec!["{", "{\"x\": 1}", "{\"y\": 2}"], Some(5)));
    }
}
