//! Ollama's own chat protocol.
//!
//! Wire format: docs.ollama.com/api/chat ("Generate a chat message"), docs.ollama.com/capabilities/tool-calling and
//! …/thinking. Streams are a JSON object a line.

use serde_json::{Map, Value, json};

use super::{Asked, Protocol, add_call, arguments, base_and_query, number, object, split_thought, tokens};
use crate::chat::{Answer, Call, Finish, Function, Message, Usage};
use crate::model::{Fault, FaultKind, Request};

const PATH: &str = "/api/chat";

/// `/api/chat`.
#[derive(Debug)]
pub(super) struct Chat;

impl Protocol for Chat {
    fn name(&self) -> &'static str {
        "ollama"
    }

    fn url(&self, base: &str, _: &str, _: bool) -> String {
        let (_, query) = base_and_query(base);
        format!("{}{PATH}{query}", root(base))
    }

    fn probes(&self, base: &str, _: &str) -> Vec<(&'static str, String)> {
        let root = root(base);
        vec![("version", format!("{root}/api/version")), ("tags", format!("{root}/api/tags"))]
    }

    fn facts(&self, model: &str, probed: &Map<String, Value>) -> Map<String, Value> {
        let mut facts = Map::new();
        if let Some(version) = probed.get("version").and_then(|page| page.get("version")) {
            facts.insert("build".into(), version.clone());
        }
        let models = probed.get("tags").and_then(|page| page.get("models")).and_then(Value::as_array);
        let latest = format!("{model}:latest");
        let named = |entry: &&Value| entry.get("name").is_some_and(|name| *name == model || *name == latest.as_str());
        if let Some(entry) = models.into_iter().flatten().find(named) {
            for name in ["digest", "details"] {
                if let Some(value) = entry.get(name) {
                    facts.insert(name.to_owned(), value.clone());
                }
            }
        }
        facts
    }

    /// `stream` is said either way, since it is on where it is left out.
    fn settings(&self, asked: &Asked) -> Map<String, Value> {
        let mut options = Map::new();
        if let Some(temperature) = asked.sampling.temperature {
            options.insert("temperature".into(), number(temperature));
        }
        if let Some(seed) = asked.sampling.seed {
            options.insert("seed".into(), json!(seed));
        }
        if let Some(max_tokens) = asked.sampling.max_tokens {
            options.insert("num_predict".into(), json!(max_tokens));
        }
        let mut body = Map::new();
        body.insert("model".into(), json!(asked.model));
        body.insert("stream".into(), json!(asked.stream));
        body.insert("options".into(), Value::Object(options));
        if let Some(effort) = &asked.effort {
            let think = match effort.as_str() {
                "true" | "on" => json!(true),
                "false" | "off" | "none" => json!(false),
                level => json!(level),
            };
            body.insert("think".into(), think);
        }
        body
    }

    fn fill(&self, body: &mut Map<String, Value>, request: Request<'_>, _: bool) {
        body.insert("messages".into(), request.messages.iter().map(message).collect());
        if !request.functions.is_empty() {
            body.insert("tools".into(), request.functions.iter().map(tool).collect());
        }
    }

    fn optional(&self) -> &'static [&'static str] {
        &[]
    }

    /// A bare text, and always the server's own trouble once it has begun to answer.
    fn error_in(&self, body: &Value) -> Option<Value> {
        let error = body.get("error").filter(|error| !error.is_null())?;
        Some(match error {
            Value::String(message) => json!({ "error": { "code": 500, "message": message } }),
            other => json!({ "error": other }),
        })
    }

    fn is_last(&self, data: &str) -> bool {
        serde_json::from_str::<Value>(data).is_ok_and(|line| is_done(&line))
    }

    fn join(&self, chunks: &[Value], _: bool) -> Result<Value, Fault> {
        let (mut content, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
        for message in chunks.iter().filter_map(|chunk| chunk.get("message")) {
            let text = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or_default();
            content.push_str(text("content"));
            thinking.push_str(text("thinking"));
            calls.extend(message.get("tool_calls").and_then(Value::as_array).into_iter().flatten().cloned());
        }
        let mut body = chunks.iter().rev().find(|chunk| is_done(chunk)).cloned().ok_or_else(cut)?;
        let message = json!({ "role": "assistant", "content": content, "thinking": thinking, "tool_calls": calls });
        if let Some(body) = body.as_object_mut() {
            body.insert("message".into(), message);
        }
        Ok(body)
    }

    fn answer(&self, body: &Value) -> Result<Answer, Fault> {
        let Some(message) = body.get("message").filter(|message| message.is_object()) else {
            return Err(Fault::new(FaultKind::Response, "the answer has no message"));
        };
        // One line that is not the last one: the others did not come.
        if body.get("done").is_some_and(|done| done == false) {
            return Err(cut());
        }
        let word = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or_default();
        let (inner, text) = split_thought(word("content"));
        let mut calls = Vec::new();
        for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            let function = call.get("function").unwrap_or(call);
            let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
            add_call(&mut calls, call.get("id").and_then(Value::as_str), name, arguments(function.get("arguments")));
        }
        let thought = [word("thinking"), &inner];
        Ok(Answer {
            text,
            thought: thought.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n"),
            calls,
            finish: if body.get("done_reason").is_some_and(|why| why == "length") {
                Finish::Length
            } else {
                Finish::Stop
            },
            usage: usage(body),
            echo: message.get("thinking").filter(|text| text.as_str().is_some_and(|text| !text.is_empty())).cloned(),
        })
    }
}

fn is_done(line: &Value) -> bool {
    line.get("done").is_some_and(|done| done == true)
}

fn cut() -> Fault {
    Fault::new(FaultKind::Network, "the stream ended before its answer did")
}

/// The server's address, whichever of its paths a user has pasted.
fn root(base: &str) -> &str {
    let (base, _) = base_and_query(base);
    let pasted = [PATH, "/api", "/v1"].into_iter().find_map(|path| base.strip_suffix(path));
    pasted.unwrap_or(base).trim_end_matches('/')
}

fn message(message: &Message) -> Value {
    match message {
        Message::System { text } => json!({ "role": "system", "content": text }),
        Message::User { text } => json!({ "role": "user", "content": text }),
        Message::Assistant { text, calls, echo } => {
            let mut out = json!({ "role": "assistant", "content": text });
            if let Some(thinking) = echo {
                out["thinking"] = thinking.clone();
            }
            if !calls.is_empty() {
                out["tool_calls"] = calls.iter().map(sent).collect();
            }
            out
        }
        Message::Tool { id, name, text } => {
            json!({ "role": "tool", "tool_name": name, "tool_call_id": id, "content": text })
        }
    }
}

fn sent(call: &Call) -> Value {
    json!({ "id": call.id, "function": { "name": call.name, "arguments": object(call) } })
}

fn tool(function: &Function) -> Value {
    json!({ "type": "function",
            "function": { "name": function.name, "description": function.description, "parameters": function.parameters } })
}

/// The count of the prompt is left out by the server where all of it was cached.
fn usage(body: &Value) -> Usage {
    let (input, output) = (tokens(body, &["prompt_eval_count"]), tokens(body, &["eval_count"]));
    let cached = tokens(body, &["prompt_eval_cached_count"]);
    Usage { input, output, cached, reasoning: None, total: Usage::sum(input, output) }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    #[test]
    fn base_urls_as_users_write_them() {
        for base in
            ["http://h:11434", "http://h:11434/", "http://h:11434/v1", "http://h:11434/api", "http://h:11434/api/chat"]
        {
            assert_eq!(Chat.url(base, "m", false), "http://h:11434/api/chat");
        }
    }

    #[test]
    fn a_request_on_the_wire() {
        let body = testing::body(&Chat, &testing::asked(), &testing::messages(Some(json!("hm"))), false);
        let want = json!({
            "model": "m", "stream": false, "options": { "temperature": 0, "seed": 0, "num_predict": 2048 },
            "messages": [
                { "role": "system", "content": "Be exact." }, { "role": "user", "content": "Do it." },
                { "role": "assistant", "content": "", "thinking": "hm", "tool_calls": [
                    { "id": "a", "function": { "name": "read_file", "arguments": { "path": "f" } } },
                    { "id": "b", "function": { "name": "read_file", "arguments": {} } } ] },
                { "role": "tool", "tool_name": "read_file", "tool_call_id": "a", "content": "one" },
                { "role": "tool", "tool_name": "read_file", "tool_call_id": "b", "content": "the arguments are not a JSON object" } ],
            "tools": [{ "type": "function", "function": { "name": "read_file", "description": "Reads.", "parameters": testing::functions()[0].parameters } }],
        });
        assert_eq!(body, want);
    }

    #[test]
    fn answers_whole_and_in_lines() {
        let call = json!({ "function": { "name": "f", "arguments": { "a": 1 } } });
        let whole = json!({ "message": { "content": "", "tool_calls": [call] }, "done": true, "done_reason": "stop", "prompt_eval_count": 4, "prompt_eval_cached_count": 3, "eval_count": 2 });
        let answer = testing::read(&Chat, whole.clone()).unwrap();
        assert_eq!((answer.calls[0].arguments.as_written(), answer.usage.total), ("{\"a\": 1}", Some(6)));
        assert_eq!(answer.usage.cached, Some(3));
        let lines = |list: &[Value]| Value::String(list.iter().map(|line| format!("{line}\n")).collect());
        let part = |content: &str| json!({ "message": { "content": content }, "done": false });
        let streamed = [part("a"), part("b"), whole];
        let answer = testing::read(&Chat, lines(&streamed)).unwrap();
        assert_eq!((answer.text.as_str(), answer.calls.len()), ("ab", 1));
        assert_eq!(testing::read(&Chat, lines(&streamed[..2])).unwrap_err().kind, FaultKind::Network);
        assert_eq!(testing::read(&Chat, part("a")).unwrap_err().kind, FaultKind::Network);
        let error = [part("a"), json!({ "error": "something broke" })];
        assert_eq!(testing::read(&Chat, lines(&error)).unwrap_err().kind, FaultKind::Server);
        let length = json!({ "message": { "content": "x" }, "done": true, "done_reason": "length" });
        let answer = testing::read(&Chat, length).unwrap();
        assert_eq!((answer.finish, answer.usage.input), (Finish::Length, None));
        assert_eq!(testing::read(&Chat, json!({})).unwrap_err().kind, FaultKind::Response);
        assert!(Chat.is_last("{\"done\": true}") && !Chat.is_last("{\"done\": false}"));
    }
}
