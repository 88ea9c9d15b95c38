//! OpenAI Chat Completions with function calls, for any server that speaks it.
//!
//! Wire format: the provider's reference, "Create chat completion"
//! (developers.openai.com/api/reference/python/resources/chat/subresources/completions/), and the quirks of llama.cpp's
//! server, measured on the wire.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{Asked, Protocol, add_call, arguments, base_and_query, has_path, number, split_thought, tokens};
use crate::chat::{Answer, Call, Finish, Function, Message, Usage, hex};
use crate::model::{Fault, FaultKind, Request};

const PATH: &str = "/chat/completions";

/// Chat Completions.
#[derive(Debug)]
pub(super) struct ChatCompletions;

impl Protocol for ChatCompletions {
    fn name(&self) -> &'static str {
        super::FIRST
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

    fn settings(&self, asked: &Asked) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("model".into(), json!(asked.model));
        if let Some(temperature) = asked.sampling.temperature {
            body.insert("temperature".into(), number(temperature));
        }
        if let Some(seed) = asked.sampling.seed {
            body.insert("seed".into(), json!(seed));
        }
        if let Some(max_tokens) = asked.sampling.max_tokens {
            body.insert("max_tokens".into(), json!(max_tokens));
        }
        if let Some(effort) = &asked.effort {
            body.insert("reasoning_effort".into(), json!(effort));
        }
        if asked.stream {
            body.insert("stream".into(), json!(true));
            body.insert("stream_options".into(), json!({ "include_usage": true }));
        }
        body
    }

    fn fill(&self, body: &mut Map<String, Value>, request: Request<'_>, strict: bool) {
        body.insert("messages".into(), messages(request.messages));
        if !request.functions.is_empty() {
            body.insert("tools".into(), tools(request.functions, strict));
        }
    }

    fn optional(&self) -> &'static [&'static str] {
        &["seed", "parallel_tool_calls", "stream_options", "strict"]
    }

    fn renamed(&self) -> &'static [(&'static str, &'static str)] {
        &[("max_tokens", "max_completion_tokens")]
    }

    /// Gateways report an error in the middle of an answer in its first choice.
    fn error_in(&self, body: &Value) -> Option<Value> {
        let choice = first_choice(body);
        let given = [Some(body), choice].into_iter().flatten().filter_map(|holder| holder.get("error"));
        if let Some(error) = given.into_iter().find(|error| !error.is_null()) {
            return Some(json!({ "error": error }));
        }
        let failed = choice.and_then(|choice| choice.get("finish_reason")).is_some_and(|reason| reason == "error");
        failed.then(|| json!({ "error": { "message": "the answer ended in an error" } }))
    }

    fn is_last(&self, data: &str) -> bool {
        data.trim() == "[DONE]"
    }

    fn join(&self, chunks: &[Value], done: bool) -> Result<Value, Fault> {
        let mut joined = Joined::default();
        chunks.iter().for_each(|chunk| joined.take(chunk));
        joined.finish(done)
    }

    fn answer(&self, body: &Value) -> Result<Answer, Fault> {
        let choice = first_choice(body);
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
            echo: echo(message),
        })
    }
}

/// The base URL with this path: a base without a path gets `/v1` first, one that has the path already stays.
pub(super) fn url_with(base: &str, path: &str) -> String {
    let (base, query) = base_and_query(base);
    if base.ends_with(path) {
        format!("{base}{query}")
    } else if has_path(base) {
        format!("{base}{path}{query}")
    } else {
        format!("{base}/v1{path}{query}")
    }
}

/// The list of models beside this path, and llama.cpp's own page about the server.
pub(super) fn probes_beside(base: &str, path: &str) -> Vec<(&'static str, String)> {
    let url = url_with(base, path);
    let (url, query) = base_and_query(&url);
    let Some(base) = url.strip_suffix(path) else {
        return Vec::new();
    };
    let props = base.strip_suffix("/v1").map(|root| ("props", format!("{root}/props{query}")));
    [("models", format!("{base}/models{query}"))].into_iter().chain(props).collect()
}

/// What `/v1/models` and llama.cpp's `/props` say.
pub(super) fn server_facts(model: &str, probed: &Map<String, Value>) -> Map<String, Value> {
    let page = |name: &str| probed.get(name).unwrap_or(&Value::Null);
    let (models, props) = (page("models"), page("props"));
    let entry = models.get("data").and_then(Value::as_array).and_then(|list| {
        let named = list.iter().find(|entry| entry.get("id").is_some_and(|id| id == model));
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
    facts
}

fn first_choice(body: &Value) -> Option<&Value> {
    body.get("choices").and_then(Value::as_array).and_then(|choices| choices.first())
}

/// Messages as the wire has them. Arguments are always a JSON string, content of an assistant never null.
fn messages(messages: &[Message]) -> Value {
    messages
        .iter()
        .map(|message| match message {
            Message::System { text } => json!({ "role": "system", "content": text }),
            Message::User { text } => json!({ "role": "user", "content": text }),
            Message::Assistant { text, calls, echo } => assistant(text, calls, echo.as_ref()),
            Message::Tool { id, text, .. } => json!({ "role": "tool", "tool_call_id": id, "content": text }),
        })
        .collect()
}

fn assistant(text: &str, calls: &[Call], echo: Option<&Value>) -> Value {
    let mut message = Map::new();
    message.insert("role".into(), json!("assistant"));
    message.insert("content".into(), json!(text));
    if let Some(Value::Object(echo)) = echo {
        message.extend(echo.clone());
    }
    if !calls.is_empty() {
        let calls = calls.iter().map(|call| {
            json!({ "id": call.id, "type": "function",
                    "function": { "name": call.name, "arguments": call.arguments.for_history() } })
        });
        message.insert("tool_calls".into(), calls.collect());
    }
    Value::Object(message)
}

/// Thought that its provider wants to see again beside the calls that it led to: OpenRouter's `reasoning_details`
/// (openrouter.ai/docs/use-cases/reasoning-tokens, "Preserving reasoning").
fn echo(message: &Value) -> Option<Value> {
    let details = message.get("reasoning_details").filter(|details| details.is_array())?;
    Some(json!({ "reasoning_details": details }))
}

fn tools(functions: &[Function], strict: bool) -> Value {
    let tool = |function: &Function| {
        let mut about =
            json!({ "name": function.name, "description": function.description, "parameters": function.parameters });
        if strict {
            about["strict"] = json!(true);
        }
        json!({ "type": "function", "function": about })
    };
    functions.iter().map(tool).collect()
}

/// Content is a text, or a list of parts, or null.
fn content(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => String::new(),
    }
}

fn calls(calls: Option<&Value>) -> Vec<Call> {
    let mut out: Vec<Call> = Vec::new();
    for call in calls.and_then(Value::as_array).into_iter().flatten() {
        let function = call.get("function");
        let name = function.and_then(|function| function.get("name")).and_then(Value::as_str).unwrap_or_default();
        let arguments = arguments(function.and_then(|function| function.get("arguments")));
        add_call(&mut out, call.get("id").and_then(Value::as_str), name, arguments);
    }
    out
}

fn usage(usage: Option<&Value>) -> Usage {
    let Some(usage) = usage.filter(|usage| usage.is_object()) else {
        return Usage::default();
    };
    let (input, output) = (tokens(usage, &["prompt_tokens"]), tokens(usage, &["completion_tokens"]));
    Usage {
        input,
        output,
        cached: tokens(usage, &["prompt_tokens_details", "cached_tokens"]),
        reasoning: tokens(usage, &["completion_tokens_details", "reasoning_tokens"]),
        total: tokens(usage, &["total_tokens"]).or(Usage::sum(input, output)),
    }
}

#[derive(Default)]
struct Joined {
    content: String,
    reasoning: String,
    refusal: String,
    details: Vec<Value>,
    calls: Vec<StreamedCall>,
    finish: Option<Value>,
    usage: Option<Value>,
    any_choice: bool,
}

struct StreamedCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Joined {
    fn take(&mut self, chunk: &Value) {
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            self.usage = Some(usage.clone());
        }
        let Some(choice) = first_choice(chunk) else {
            return;
        };
        self.any_choice = true;
        if let Some(finish) = choice.get("finish_reason").filter(|finish| finish.is_string()) {
            self.finish = Some(finish.clone());
        }
        let Some(delta) = choice.get("delta") else {
            return;
        };
        let text = |name: &str| delta.get(name).and_then(Value::as_str).unwrap_or_default();
        self.content.push_str(text("content"));
        self.reasoning.push_str(text("reasoning_content"));
        self.reasoning.push_str(text("reasoning"));
        self.refusal.push_str(text("refusal"));
        self.details.extend(delta.get("reasoning_details").and_then(Value::as_array).into_iter().flatten().cloned());
        for fragment in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.take_fragment(fragment);
        }
    }

    /// A fragment belongs to the call of its index; one with an index never seen, and neither id nor name, to the call
    /// that came last; a known index with a new id and a name is another call all the same.
    fn take_fragment(&mut self, fragment: &Value) {
        let index = fragment.get("index").and_then(Value::as_u64);
        let id = fragment.get("id").and_then(Value::as_str).unwrap_or_default();
        let function = fragment.get("function");
        let name = function.and_then(|function| function.get("name")).and_then(Value::as_str).unwrap_or_default();
        let known = self.calls.iter().rposition(|call| match index {
            Some(_) => call.index == index,
            None => !id.is_empty() && call.id == id,
        });
        let at = match known {
            Some(at) if id.is_empty() || name.is_empty() || self.calls[at].id.is_empty() || self.calls[at].id == id => {
                at
            }
            None if id.is_empty() && name.is_empty() && !self.calls.is_empty() => self.calls.len() - 1,
            _ => {
                self.calls.push(StreamedCall {
                    index,
                    id: id.to_owned(),
                    name: String::new(),
                    arguments: String::new(),
                });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[at];
        if call.id.is_empty() {
            call.id.push_str(id);
        }
        // Some servers repeat the whole name with every fragment.
        if call.name != name {
            call.name.push_str(name);
        }
        match function.and_then(|function| function.get("arguments")) {
            Some(Value::String(text)) => call.arguments.push_str(text),
            Some(Value::Object(object)) => call.arguments.push_str(&Value::Object(object.clone()).to_string()),
            _ => {}
        }
    }

    fn finish(self, done: bool) -> Result<Value, Fault> {
        if self.finish.is_none() && !done {
            return Err(Fault::new(FaultKind::Network, "the event stream ended before its answer did"));
        }
        if !self.any_choice {
            return Ok(json!({ "choices": [] }));
        }
        let calls: Vec<Value> = self
            .calls
            .into_iter()
            .map(|call| json!({ "id": call.id, "type": "function", "function": { "name": call.name, "arguments": call.arguments } }))
            .collect();
        let mut message = Map::new();
        message.insert("role".into(), "assistant".into());
        message.insert("content".into(), self.content.into());
        for (name, text) in [("reasoning_content", self.reasoning), ("refusal", self.refusal)] {
            if !text.is_empty() {
                message.insert(name.into(), text.into());
            }
        }
        if !self.details.is_empty() {
            message.insert("reasoning_details".into(), self.details.into());
        }
        if !calls.is_empty() {
            message.insert("tool_calls".into(), calls.into());
        }
        Ok(
            json!({ "choices": [{ "index": 0, "message": message, "finish_reason": self.finish }], "usage": self.usage }),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    fn read(body: Value) -> Result<Answer, Fault> {
        testing::read(&ChatCompletions, body)
    }

    fn message(message: Value) -> Answer {
        read(json!({ "choices": [{ "message": message, "finish_reason": "stop" }] })).unwrap()
    }

    #[test]
    fn base_urls_as_users_write_them() {
        let table = [
            ("https://api.example.com/inference/v1", "https://api.example.com/inference/v1/chat/completions"),
            ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1/chat/completions"),
            ("http://127.0.0.1:11434", "http://127.0.0.1:11434/v1/chat/completions"),
            ("http://localhost:1234/", "http://localhost:1234/v1/chat/completions"),
            ("http://h/v1?api-version=2", "http://h/v1/chat/completions?api-version=2"),
            ("http://localhost:1234/v1/chat/completions", "http://localhost:1234/v1/chat/completions"),
        ];
        for (base, url) in table {
            assert_eq!(ChatCompletions.url(base, "m", false), url);
        }
        let probes = ChatCompletions.probes("http://h", "m");
        assert_eq!(probes, [("models", "http://h/v1/models".to_owned()), ("props", "http://h/props".to_owned())]);
    }

    #[test]
    fn a_request_on_the_wire() {
        let mut asked = testing::asked();
        asked.effort = Some("low".into());
        asked.stream = true;
        let echo = json!({ "reasoning_details": [{ "type": "reasoning.text" }] });
        let body = testing::body(&ChatCompletions, &asked, &testing::messages(Some(echo)), true);
        let want = json!({
            "model": "m", "temperature": 0, "seed": 0, "max_tokens": 2048, "reasoning_effort": "low",
            "stream": true, "stream_options": { "include_usage": true },
            "messages": [
                { "role": "system", "content": "Be exact." },
                { "role": "user", "content": "Do it." },
                { "role": "assistant", "content": "", "reasoning_details": [{ "type": "reasoning.text" }], "tool_calls": [
                    { "id": "a", "type": "function", "function": { "name": "read_file", "arguments": "{\"path\": \"f\"}" } },
                    { "id": "b", "type": "function", "function": { "name": "read_file", "arguments": "{}" } } ] },
                { "role": "tool", "tool_call_id": "a", "content": "one" },
                { "role": "tool", "tool_call_id": "b", "content": "the arguments are not a JSON object" },
            ],
            "tools": [{ "type": "function", "function": { "name": "read_file", "description": "Reads.",
                "parameters": testing::functions()[0].parameters, "strict": true } }],
        });
        assert_eq!(body, want);
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
    fn thought_and_usage_are_kept_apart() {
        assert_eq!(message(json!({ "content": "", "reasoning_content": "r" })).thought, "r");
        let body = json!({ "choices": [{ "message": { "content": "x" } }], "usage": { "prompt_tokens": 5, "completion_tokens": 4,
            "prompt_tokens_details": { "cached_tokens": 3 }, "completion_tokens_details": { "reasoning_tokens": 2 } } });
        let usage = read(body).unwrap().usage;
        let want = Usage { input: Some(5), output: Some(4), cached: Some(3), reasoning: Some(2), total: Some(9) };
        assert_eq!(usage, want);
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
        assert_eq!(read(json!("data: {\"choices\": [{\n\n")).unwrap_err().kind, FaultKind::Network);
    }

    #[test]
    fn half_a_character_is_not_written() {
        let body = r#"{"choices":[{"message":{"content":"x\ud83d","tool_calls":[{"function":{"name":"f","arguments":{"a":"\ud83d"}}}]}}]}"#;
        let answer = read(json!(body)).unwrap();
        assert_eq!(answer.text, "x\u{FFFD}");
        assert_eq!(answer.calls[0].arguments.object(), None);
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
