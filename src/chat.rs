//! The neutral conversation: what a model sees and says, apart from any wire format.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message {
    System {
        text: String,
    },
    User {
        text: String,
    },
    Assistant {
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<Call>,
        /// What the server wants back with this message as it came, such as signed thought. Only the protocol that made
        /// it reads it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        echo: Option<Value>,
    },
    Tool {
        id: String,
        name: String,
        text: String,
    },
}

/// A call of a function as the model made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Unique in its turn: repeated or missing ids of a server are replaced.
    pub id: String,
    pub name: String,
    pub arguments: Arguments,
    #[serde(default, skip_serializing_if = "Arrival::is_native")]
    pub arrival: Arrival,
}

/// The arguments of a call, as JSON text that was parsed or could not be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arguments {
    /// A JSON object. `text` is what stands in the history: the model's own spelling where it sent a string.
    Object { text: String },
    /// Not a JSON object; never run, and never echoed as it came.
    Malformed { text: String, error: String },
}

impl Arguments {
    /// Parses the arguments of a call. Empty, blank and `null` mean no arguments, as several servers send them.
    pub fn parse(text: &str) -> Self {
        let trimmed = text.trim();
        if trimmed.is_empty() || trimmed == "null" {
            return Arguments::Object { text: "{}".to_owned() };
        }
        match serde_json::from_str::<Map<String, Value>>(text) {
            Ok(_) => Arguments::Object { text: text.to_owned() },
            Err(error) => Arguments::Malformed { text: text.to_owned(), error: error.to_string() },
        }
    }

    /// The parsed object, or `None` for malformed arguments.
    pub fn object(&self) -> Option<Map<String, Value>> {
        match self {
            Arguments::Object { text } => serde_json::from_str(text).ok(),
            Arguments::Malformed { .. } => None,
        }
    }

    /// What a history may hold: malformed arguments become `{}`, since some servers answer 500 to anything else.
    pub fn for_history(&self) -> &str {
        match self {
            Arguments::Object { text } => text,
            Arguments::Malformed { .. } => "{}",
        }
    }

    /// The arguments as the model wrote them.
    pub fn as_written(&self) -> &str {
        match self {
            Arguments::Object { text } | Arguments::Malformed { text, .. } => text,
        }
    }
}

/// How a call came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrival {
    /// In the field the protocol has for calls.
    #[default]
    Native,
    /// Written into the text of the answer.
    Text,
}

impl Arrival {
    fn is_native(&self) -> bool {
        *self == Arrival::Native
    }
}

/// A function offered to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Function {
    pub name: String,
    pub description: String,
    /// JSON schema; the order of its properties is part of what is measured.
    pub parameters: Value,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Finish {
    #[default]
    Stop,
    /// Cut by the output limit: nothing of it is run.
    Length,
    /// The provider marked the answer as a refusal or filtered it.
    Refused,
}

/// Tokens as the server counted them; `None` where it was silent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub input: Option<u64>,
    pub output: Option<u64>,
    /// The part of the input that came from the server's cache.
    pub cached: Option<u64>,
    /// The part of the output that was thought.
    #[serde(default)]
    pub reasoning: Option<u64>,
    /// Input and output together, which is all that some servers tell.
    pub total: Option<u64>,
}

impl Usage {
    /// The sum over turns: unknown as soon as one turn is.
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            input: Self::sum(self.input, other.input),
            output: Self::sum(self.output, other.output),
            cached: Self::sum(self.cached, other.cached),
            reasoning: Self::sum(self.reasoning, other.reasoning),
            total: Self::sum(self.total, other.total),
        }
    }

    /// Of two counts; unknown as soon as one is.
    pub fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
        Some(a?.saturating_add(b?))
    }

    /// The neutral element of [`Usage::plus`].
    pub const ZERO: Usage =
        Usage { input: Some(0), output: Some(0), cached: Some(0), reasoning: Some(0), total: Some(0) };
}

/// One answer of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The text outside thought.
    pub text: String,
    /// Thought that the server keeps apart or that stood in `<think>` tags.
    pub thought: String,
    pub calls: Vec<Call>,
    pub finish: Finish,
    pub usage: Usage,
    /// For [`Message::Assistant`].
    pub echo: Option<Value>,
}

/// Identity of a request in neutral terms: the functions offered and all messages so far. The same conversation has
/// the same digest on every machine and through every protocol.
pub fn digest(functions: &[Function], messages: &[Message]) -> String {
    Opened::with(functions).digest(messages)
}

/// What the digests of all requests with the same functions begin with.
#[derive(Clone, Debug)]
pub struct Opened(Sha256);

impl Opened {
    pub fn with(functions: &[Function]) -> Self {
        let mut hasher = Sha256::new();
        for function in functions {
            feed(&mut hasher, &[&function.name, &function.description, &function.parameters.to_string()]);
        }
        Opened(hasher)
    }

    /// [`digest`] of these functions and messages.
    pub fn digest(&self, messages: &[Message]) -> String {
        let mut hasher = self.0.clone();
        feed_messages(&mut hasher, messages);
        hex(&hasher.finalize()[..16])
    }
}

fn feed_messages(hasher: &mut Sha256, messages: &[Message]) {
    for message in messages {
        match message {
            Message::System { text } => feed(hasher, &["system", text]),
            Message::User { text } => feed(hasher, &["user", text]),
            Message::Assistant { text, calls, .. } => {
                feed(hasher, &["assistant", text]);
                for call in calls {
                    feed(hasher, &["call", &call.name, call.arguments.for_history()]);
                }
            }
            // Ids are random on some servers, so they are left out.
            Message::Tool { name, text, .. } => feed(hasher, &["tool", name, text]),
        }
    }
}

/// All parts, so that no two lists of them hash alike.
fn feed(hasher: &mut Sha256, parts: &[&str]) {
    for part in parts {
        feed_part(hasher, part.as_bytes());
    }
}

/// One part of what is hashed: its length before its bytes.
pub(crate) fn feed_part(hasher: &mut Sha256, part: &[u8]) {
    hasher.update((part.len() as u64).to_le_bytes());
    hasher.update(part);
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_arguments_are_no_arguments_and_bad_ones_are_kept_apart() {
        for text in ["", "  ", "null"] {
            assert_eq!(Arguments::parse(text).object(), Some(Map::new()));
        }
        for text in ["{\"a\": \\n1}", "[1]", "{{\"a\":1}}", "{\"a\":\"\\ud83d\"}", "\"x\"", "{\"a\": 1} x"] {
            let parsed = Arguments::parse(text);
            assert_eq!(parsed.object(), None, "{text}");
            assert_eq!(parsed.for_history(), "{}");
            assert_eq!(parsed.as_written(), text);
        }
        assert_eq!(Arguments::parse("{\"a\":\"\\ud83c\\udf78\"}").object().unwrap()["a"], "🍸");
    }

    #[test]
    fn usage_is_unknown_when_a_part_is() {
        let known = Usage { input: Some(2), output: Some(1), cached: None, reasoning: None, total: Some(3) };
        let sum = Usage::ZERO.plus(known);
        assert_eq!((sum.input, sum.output, sum.cached, sum.total), (Some(2), Some(1), None, Some(3)));
    }

    #[test]
    fn ids_do_not_change_a_digest_and_texts_do() {
        let tool =
            |id: &str, text: &str| vec![Message::Tool { id: id.into(), name: "read_file".into(), text: text.into() }];
        assert_eq!(digest(&[], &tool("a", "x")), digest(&[], &tool("b", "x")));
        assert_ne!(digest(&[], &tool("a", "x")), digest(&[], &tool("a", "y")));
    }
}
