//! What the tests of the protocols share: one conversation, put on every wire.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Asked, Protocol, interpret};
use crate::chat::{Answer, Arguments, Arrival, Call, Function, Message};
use crate::model::{Fault, Request, Sampling};

pub(super) fn asked() -> Asked {
    Asked { model: "m".into(), sampling: Sampling::default(), effort: None, stream: false }
}

pub(super) fn functions() -> Vec<Function> {
    let parameters = json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] });
    vec![Function { name: "read_file".into(), description: "Reads.".into(), parameters }]
}

/// System, task, two calls (the second with malformed arguments), their results; `echo` as a protocol made it.
pub(super) fn messages(echo: Option<Value>) -> Vec<Message> {
    let call = |id: &str, arguments: &str| Call {
        id: id.into(),
        name: "read_file".into(),
        arguments: Arguments::parse(arguments),
        arrival: Arrival::Native,
    };
    let result = |id: &str, text: &str| Message::Tool { id: id.into(), name: "read_file".into(), text: text.into() };
    vec![
        Message::System { text: "Be exact.".into() },
        Message::User { text: "Do it.".into() },
        Message::Assistant { text: String::new(), calls: vec![call("a", "{\"path\": \"f\"}"), call("b", "{")], echo },
        result("a", "one"),
        result("b", "the arguments are not a JSON object"),
    ]
}

/// The whole body of a request.
pub(super) fn body(protocol: &dyn Protocol, asked: &Asked, messages: &[Message], strict: bool) -> Value {
    let mut body: Map<String, Value> = protocol.settings(asked);
    protocol.fill(&mut body, Request { functions: &functions(), messages, left: Duration::MAX }, strict);
    Value::Object(body)
}

/// What a whole body, or the text of a stream, says.
pub(super) fn read(protocol: &dyn Protocol, body: Value) -> Result<Answer, Fault> {
    interpret(protocol, &body)
}

/// A stream of server-sent events with these data.
pub(super) fn events(data: &[Value]) -> Value {
    Value::String(data.iter().map(|data| format!("data: {data}\n\n")).collect())
}
