//! Server-sent events of a streamed chat completion, joined to the message that an unstreamed answer would hold.

use eventsource_stream::Eventsource;
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::{Map, Value, json};

use super::openai::error_in;
use super::{Fault, FaultKind};

/// Joins a whole event stream. `Ok` is a body as if it had not been streamed; an error event comes back as it is.
///
/// # Errors
/// What is wrong with the stream: not the promised format, or cut before its end.
pub(super) async fn join(body: &[u8]) -> Result<Value, Fault> {
    let mut events = stream::iter([Ok::<_, std::io::Error>(body)]).eventsource();
    let bad = |message: String| Fault::new(FaultKind::Response, message);
    let mut joined = Joined::default();
    while let Some(event) = events.next().await {
        let event = event.map_err(|error| bad(format!("the event stream cannot be read: {error}")))?;
        let data = event.data.trim();
        if data == "[DONE]" {
            joined.done = true;
            break;
        }
        if data.is_empty() {
            continue;
        }
        let chunk: Value = serde_json::from_str(data).map_err(|error| bad(format!("an event is not JSON: {error}")))?;
        if let Some(error) = error_in(&chunk) {
            return Ok(error);
        }
        joined.take(&chunk);
    }
    joined.finish()
}

#[derive(Default)]
struct Joined {
    content: String,
    reasoning: String,
    refusal: String,
    calls: Vec<StreamedCall>,
    finish: Option<Value>,
    usage: Option<Value>,
    any_choice: bool,
    done: bool,
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
        let Some(choice) = chunk.get("choices").and_then(Value::as_array).and_then(|choices| choices.first()) else {
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

    fn finish(self) -> Result<Value, Fault> {
        if self.finish.is_none() && !self.done {
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
        if !calls.is_empty() {
            message.insert("tool_calls".into(), calls.into());
        }
        Ok(
            json!({ "choices": [{ "index": 0, "message": message, "finish_reason": self.finish }], "usage": self.usage }),
        )
    }
}
