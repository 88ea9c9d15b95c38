//! Google's Gemini API, generateContent.
//!
//! Wire format: ai.google.dev/api/generate-content, ai.google.dev/gemini-api/docs/function-calling, …/docs/thinking and
//! …/docs/thought-signatures, and what LiteLLM's proxy answers on the same path.

use serde_json::{Map, Value, json};

use super::{Asked, Protocol, add_call, arguments, base_and_query, has_path, number, object, tokens};
use crate::chat::{Answer, Call, Finish, Function, Message, Usage};
use crate::model::{Fault, FaultKind, Request};

/// generateContent.
#[derive(Debug)]
pub(super) struct GenerateContent;

impl Protocol for GenerateContent {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn url(&self, base: &str, model: &str, stream: bool) -> String {
        let (_, query) = base_and_query(base);
        let (method, streamed) = if stream { ("streamGenerateContent", "alt=sse") } else { ("generateContent", "") };
        let query = match (query, streamed) {
            ("", "") => String::new(),
            ("", streamed) => format!("?{streamed}"),
            (query, "") => query.to_owned(),
            (query, streamed) => format!("{query}&{streamed}"),
        };
        format!("{}:{method}{query}", of_model(base, model))
    }

    fn probes(&self, base: &str, model: &str) -> Vec<(&'static str, String)> {
        let (_, query) = base_and_query(base);
        vec![("model", format!("{}{query}", of_model(base, model)))]
    }

    fn facts(&self, _: &str, probed: &Map<String, Value>) -> Map<String, Value> {
        let page = probed.get("model").unwrap_or(&Value::Null);
        let names = ["name", "version", "inputTokenLimit"];
        names.iter().filter_map(|name| Some(((*name).to_owned(), page.get(*name)?.clone()))).collect()
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-goog-api-key", "")
    }

    /// The model stands in the address.
    fn settings(&self, asked: &Asked) -> Map<String, Value> {
        let mut config = Map::new();
        if let Some(temperature) = asked.sampling.temperature {
            config.insert("temperature".into(), number(temperature));
        }
        if let Some(seed) = asked.sampling.seed {
            config.insert("seed".into(), json!(seed));
        }
        if let Some(max_tokens) = asked.sampling.max_tokens {
            config.insert("maxOutputTokens".into(), json!(max_tokens));
        }
        if let Some(effort) = &asked.effort {
            config.insert("thinkingConfig".into(), json!({ "thinkingLevel": effort }));
        }
        Map::from_iter([("generationConfig".to_owned(), Value::Object(config))])
    }

    fn fill(&self, body: &mut Map<String, Value>, request: Request<'_>, _: bool) {
        let system = request.messages.iter().filter_map(|message| match message {
            Message::System { text } => Some(json!({ "text": text })),
            _ => None,
        });
        let system: Vec<Value> = system.collect();
        if !system.is_empty() {
            body.insert("systemInstruction".into(), json!({ "parts": system }));
        }
        body.insert("contents".into(), contents(request.messages));
        if !request.functions.is_empty() {
            let declared: Vec<Value> = request.functions.iter().map(declaration).collect();
            body.insert("tools".into(), json!([{ "functionDeclarations": declared }]));
        }
    }

    fn optional(&self) -> &'static [&'static str] {
        &[]
    }

    /// An error may come in a list, as one piece of a stream that is one.
    fn error_in(&self, body: &Value) -> Option<Value> {
        let pieces = body.as_array().map_or(std::slice::from_ref(body), Vec::as_slice);
        let error = pieces.iter().filter_map(|piece| piece.get("error")).find(|error| !error.is_null())?;
        Some(json!({ "error": error }))
    }

    /// The end of the connection is the end of a stream.
    fn is_last(&self, _: &str) -> bool {
        false
    }

    fn join(&self, chunks: &[Value], _: bool) -> Result<Value, Fault> {
        let mut body = Map::new();
        let (mut parts, mut reason) = (Vec::new(), None);
        for chunk in chunks {
            for name in ["usageMetadata", "promptFeedback"] {
                if let Some(value) = chunk.get(name).filter(|value| !value.is_null()) {
                    body.insert(name.to_owned(), value.clone());
                }
            }
            let Some(candidate) = candidate(chunk) else {
                continue;
            };
            parts.extend(parts_of(candidate).cloned());
            reason = candidate.get("finishReason").filter(|reason| reason.is_string()).cloned().or(reason);
        }
        if reason.is_none() && blocked(&Value::Object(body.clone())).is_none() {
            return Err(Fault::new(FaultKind::Network, "the event stream ended before its answer did"));
        }
        if reason.is_some() {
            let whole = json!({ "content": { "role": "model", "parts": parts }, "finishReason": reason });
            body.insert("candidates".into(), json!([whole]));
        }
        Ok(Value::Object(body))
    }

    fn answer(&self, body: &Value) -> Result<Answer, Fault> {
        // Without server-sent events a stream is one list.
        if let Value::Array(pieces) = body {
            return self.answer(&self.join(pieces, true)?);
        }
        let Some(candidate) = candidate(body) else {
            return match blocked(body) {
                Some(_) => Ok(Answer { finish: Finish::Refused, usage: usage(body), ..Answer::default() }),
                None => Err(Fault::new(FaultKind::Response, "the answer has no candidates")),
            };
        };
        let reason = candidate.get("finishReason").and_then(Value::as_str).unwrap_or_default();
        let said = candidate.get("finishMessage").and_then(Value::as_str).unwrap_or_default();
        if BAD_CALLS.contains(&reason) {
            let message = format!("the model's call could not be parsed: {reason} {said}");
            return Err(Fault::new(FaultKind::BadCall, message.trim_end()));
        }
        if reason == "MISSING_THOUGHT_SIGNATURE" || (reason == "OTHER" && parts_of(candidate).next().is_none()) {
            return Err(Fault::new(FaultKind::Response, format!("no answer: {reason} {said}").trim_end()));
        }
        let (mut text, mut thought, mut calls) = (String::new(), String::new(), Vec::new());
        for part in parts_of(candidate) {
            let said = part.get("text").and_then(Value::as_str).unwrap_or_default();
            let thinks = part.get("thought").is_some_and(|thought| thought == true);
            if thinks {
                thought.push_str(said)
            } else {
                text.push_str(said)
            }
            if let Some(call) = part.get("functionCall") {
                let word = |name: &str| call.get(name).and_then(Value::as_str);
                add_call(&mut calls, word("id"), word("name").unwrap_or_default(), arguments(call.get("args")));
            }
        }
        let finish = match reason {
            "MAX_TOKENS" => Finish::Length,
            "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => Finish::Refused,
            _ => Finish::Stop,
        };
        let parts: Vec<Value> = parts_of(candidate).cloned().collect();
        let signed = parts.iter().any(|part| part.get("thoughtSignature").is_some());
        Ok(Answer { text, thought, calls, finish, usage: usage(body), echo: signed.then_some(Value::Array(parts)) })
    }
}

/// The ends of answers in which the model's own words were wrong.
const BAD_CALLS: [&str; 4] =
    ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE"];

fn candidate(body: &Value) -> Option<&Value> {
    body.get("candidates").and_then(Value::as_array).and_then(|list| list.first())
}

fn parts_of(candidate: &Value) -> impl Iterator<Item = &Value> {
    let parts = candidate.get("content").and_then(|content| content.get("parts")).and_then(Value::as_array);
    parts.into_iter().flatten()
}

fn blocked(body: &Value) -> Option<&Value> {
    body.get("promptFeedback").and_then(|feedback| feedback.get("blockReason"))
}

fn of_model(base: &str, model: &str) -> String {
    let (base, _) = base_and_query(base);
    let version = if has_path(base) { "" } else { "/v1beta" };
    let whole = ["models/", "tunedModels/", "publishers/", "projects/"].iter().any(|folder| model.starts_with(folder));
    let folder = if whole { "" } else { "models/" };
    format!("{base}{version}/{folder}{model}")
}

/// User and model by turns; results of one answer's calls stand together.
fn contents(messages: &[Message]) -> Value {
    let mut out: Vec<(&str, Vec<Value>)> = Vec::new();
    let mut add = |role: &'static str, parts: Vec<Value>| match out.last_mut() {
        // Content must not be empty: an answer of nothing is left out.
        _ if parts.is_empty() => {}
        Some((last, held)) if *last == role => held.extend(parts),
        _ => out.push((role, parts)),
    };
    let signs = messages.iter().any(|message| matches!(message, Message::Assistant { echo: Some(_), .. }));
    for message in messages {
        match message {
            Message::System { .. } => {}
            Message::User { text } => add("user", vec![json!({ "text": text })]),
            Message::Assistant { text, calls, echo } => add("model", said(text, calls, echo.as_ref(), signs)),
            Message::Tool { id, name, text } => {
                let response = with_id(json!({ "name": name, "response": { "result": text } }), id);
                add("user", vec![json!({ "functionResponse": response })]);
            }
        }
    }
    out.into_iter().map(|(role, parts)| json!({ "role": role, "parts": parts })).collect()
}

/// What stands for a signature that the model did not give (…/docs/thought-signatures, on calls that come from elsewhere):
/// models that sign refuse a step whose first call has none.
const UNSIGNED: &str = "skip_thought_signature_validator";

/// Signed parts go back as they came; without their signatures they would be refused. A call that stood in the text is not
/// among them.
fn said(text: &str, calls: &[Call], echo: Option<&Value>, signs: bool) -> Vec<Value> {
    let mut parts = match echo {
        Some(Value::Array(parts)) => parts.clone(),
        _ => Vec::from_iter((!text.is_empty()).then(|| json!({ "text": text }))),
    };
    if !parts.iter().any(|part| part.get("functionCall").is_some()) {
        let sent = calls.iter().map(
            |call| json!({ "functionCall": with_id(json!({ "name": call.name, "args": object(call) }), &call.id) }),
        );
        parts.extend(sent);
    }
    let first = parts.iter_mut().find(|part| part.get("functionCall").is_some()).and_then(Value::as_object_mut);
    if let Some(first) = first.filter(|first| signs && !first.contains_key("thoughtSignature")) {
        first.insert("thoughtSignature".into(), json!(UNSIGNED));
    }
    parts
}

/// Older models give no ids, and want none: one that was made here is left out.
fn with_id(mut value: Value, id: &str) -> Value {
    let ours = id.strip_prefix("call").is_some_and(|rest| rest.len() == 5 && rest.bytes().all(|b| b.is_ascii_digit()));
    if !ours {
        value["id"] = json!(id);
    }
    value
}

/// The field for whole JSON schemas: `parameters` knows a part of them only.
fn declaration(function: &Function) -> Value {
    json!({ "name": function.name, "description": function.description, "parametersJsonSchema": function.parameters })
}

/// Thought is counted apart from the answer, and is output all the same.
fn usage(body: &Value) -> Usage {
    let count = |name: &str| tokens(body, &["usageMetadata", name]);
    let (input, reasoning) = (count("promptTokenCount"), count("thoughtsTokenCount"));
    let output = count("candidatesTokenCount").or(reasoning.map(|_| 0)).map(|count| count + reasoning.unwrap_or(0));
    Usage {
        input,
        output,
        cached: count("cachedContentTokenCount"),
        reasoning,
        total: count("totalTokenCount").or(Usage::sum(input, output)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    #[test]
    fn base_urls_as_users_write_them() {
        let of = |base: &str, model: &str, stream| GenerateContent.url(base, model, stream);
        assert_eq!(of("https://g.com", "m", false), "https://g.com/v1beta/models/m:generateContent");
        assert_eq!(
            of("https://g.com/v1/?key=k", "m", true),
            "https://g.com/v1/models/m:streamGenerateContent?key=k&alt=sse"
        );
        assert_eq!(
            of("https://g.com/v1beta", "tunedModels/m", true),
            "https://g.com/v1beta/tunedModels/m:streamGenerateContent?alt=sse"
        );
        assert_eq!(of("https://g.com/v1beta", "a/m", false), "https://g.com/v1beta/models/a/m:generateContent");
    }

    #[test]
    fn a_request_on_the_wire() {
        let body = testing::body(&GenerateContent, &testing::asked(), &testing::messages(None), false);
        let want = json!({
            "generationConfig": { "temperature": 0, "seed": 0, "maxOutputTokens": 2048 },
            "systemInstruction": { "parts": [{ "text": "Be exact." }] },
            "contents": [
                { "role": "user", "parts": [{ "text": "Do it." }] },
                { "role": "model", "parts": [
                    { "functionCall": { "name": "read_file", "args": { "path": "f" }, "id": "a" } },
                    { "functionCall": { "name": "read_file", "args": {}, "id": "b" } } ] },
                { "role": "user", "parts": [
                    { "functionResponse": { "name": "read_file", "response": { "result": "one" }, "id": "a" } },
                    { "functionResponse": { "name": "read_file", "response": { "result": "the arguments are not a JSON object" }, "id": "b" } } ] } ],
            "tools": [{ "functionDeclarations": [{ "name": "read_file", "description": "Reads.", "parametersJsonSchema": testing::functions()[0].parameters }] }],
        });
        assert_eq!(body, want);
        let echo = json!([{ "functionCall": { "name": "read_file", "args": {} }, "thoughtSignature": "s" }]);
        let body = testing::body(&GenerateContent, &testing::asked(), &testing::messages(Some(echo.clone())), false);
        assert_eq!(body["contents"][1]["parts"], echo);
        // Calls that stood in a signed text, and those of an answer without signature among signed ones.
        let signed_text = json!([{ "text": "{}", "thoughtSignature": "s" }]);
        let mut messages = testing::messages(Some(signed_text));
        messages.extend(testing::messages(None).drain(2..));
        let body = testing::body(&GenerateContent, &testing::asked(), &messages, false);
        assert_eq!(body["contents"][1]["parts"][1]["thoughtSignature"], UNSIGNED);
        assert_eq!(body["contents"][1]["parts"][2].get("thoughtSignature"), None);
        assert_eq!(body["contents"][3]["parts"][0]["thoughtSignature"], UNSIGNED);
    }

    fn with(candidate: Value) -> Value {
        json!({ "candidates": [candidate], "usageMetadata": { "promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 3, "totalTokenCount": 10 } })
    }

    #[test]
    fn answers_and_their_ends() {
        let parts = json!([{ "text": "hm", "thought": true }, { "text": "ok" }, { "functionCall": { "name": "f", "args": { "a": 1 } }, "thoughtSignature": "s" }]);
        let answer =
            testing::read(&GenerateContent, with(json!({ "content": { "parts": parts }, "finishReason": "STOP" })))
                .unwrap();
        assert_eq!(
            (answer.text.as_str(), answer.thought.as_str(), answer.calls[0].id.as_str()),
            ("ok", "hm", "call00001")
        );
        assert_eq!((answer.usage.output, answer.usage.reasoning, answer.usage.total), (Some(5), Some(3), Some(10)));
        assert_eq!(answer.echo, Some(parts));
        let end = |reason: &str| testing::read(&GenerateContent, with(json!({ "finishReason": reason })));
        assert_eq!(end("MAX_TOKENS").unwrap().finish, Finish::Length);
        assert_eq!(end("SAFETY").unwrap().finish, Finish::Refused);
        assert_eq!(end("MALFORMED_FUNCTION_CALL").unwrap_err().kind, FaultKind::BadCall);
        assert_eq!(end("TOO_MANY_TOOL_CALLS").unwrap_err().kind, FaultKind::BadCall);
        assert_eq!(end("OTHER").unwrap_err().kind, FaultKind::Response);
        assert_eq!(end("LANGUAGE").unwrap().finish, Finish::Refused);
        let blocked = json!({ "promptFeedback": { "blockReason": "SAFETY" } });
        assert_eq!(testing::read(&GenerateContent, blocked).unwrap().finish, Finish::Refused);
        assert_eq!(testing::read(&GenerateContent, json!({})).unwrap_err().kind, FaultKind::Response);
        let error = json!([{ "error": { "code": 503, "message": "x", "status": "UNAVAILABLE" } }]);
        assert_eq!(testing::read(&GenerateContent, error).unwrap_err().kind, FaultKind::Server);
    }

    #[test]
    fn streams_are_joined() {
        let piece = |parts: Value, reason: Value| json!({ "candidates": [{ "content": { "parts": parts }, "finishReason": reason }] });
        let call = json!([{ "functionCall": { "name": "f", "args": {} } }]);
        let pieces = [
            piece(json!([{ "text": "o" }]), Value::Null),
            piece(json!([{ "text": "k" }]), Value::Null),
            piece(call, json!("STOP")),
        ];
        let answer = testing::read(&GenerateContent, testing::events(&pieces)).unwrap();
        assert_eq!((answer.text.as_str(), answer.calls.len()), ("ok", 1));
        let listed = testing::read(&GenerateContent, json!(pieces)).unwrap();
        assert_eq!((listed.text.as_str(), listed.calls.len()), ("ok", 1));
        let broken = json!([pieces[0], { "error": { "code": 503, "message": "x" } }]);
        assert_eq!(testing::read(&GenerateContent, broken).unwrap_err().kind, FaultKind::Server);
        assert_eq!(
            testing::read(&GenerateContent, testing::events(&pieces[..2])).unwrap_err().kind,
            FaultKind::Network
        );
    }
}
