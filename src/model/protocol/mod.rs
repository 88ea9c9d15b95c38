//! Wire protocols: how a request in neutral terms is put on the wire, and what an answer there says. One file a protocol,
//! pure functions on JSON; the sending is done by [`super::server`].

mod anthropic;
mod gemini;
mod ollama;
mod openai;
mod responses;
mod stream;
#[cfg(test)]
mod testing;

use std::borrow::Cow;

use bstr::ByteSlice;
use serde_json::ser::Formatter;
use serde_json::{Map, Value};

use super::fault::fault_of;
use super::{Fault, FaultKind, Request, Sampling};
use crate::chat::{Answer, Arguments, Arrival, Call};

/// A wire protocol.
pub trait Protocol: std::fmt::Debug + Sync {
    /// Its name in recordings and fingerprints.
    fn name(&self) -> &'static str;

    /// The address that a request is posted to, for a base URL as a user writes it: with or without version, path, query
    /// or a slash at the end, or the whole of it.
    fn url(&self, base: &str, model: &str, stream: bool) -> String;

    /// Addresses that tell about the server, each with the name under which [`facts`](Self::facts) gets its answer. The
    /// first one shows whether the server can be reached.
    fn probes(&self, base: &str, model: &str) -> Vec<(&'static str, String)>;

    /// What the probes say, as far as a score can depend on it. An answer that did not come is `null`.
    fn facts(&self, model: &str, probed: &Map<String, Value>) -> Map<String, Value>;

    /// The header that carries the key, and the word before it.
    fn key_header(&self) -> (&'static str, &'static str) {
        ("authorization", "Bearer ")
    }

    /// Further headers of every request.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The body without messages and tools.
    fn settings(&self, asked: &Asked) -> Map<String, Value>;

    /// Adds messages and tools. `strict` asks the server to hold calls to their schemas.
    fn fill(&self, body: &mut Map<String, Value>, request: Request<'_>, strict: bool);

    /// Parameters that say nothing about what is measured: a server that refuses one gets the request again without it.
    fn optional(&self) -> &'static [&'static str];

    /// Parameters with a newer name that some servers insist on: old, new.
    fn renamed(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// An error that stands in a body, or in one event of a stream, behind a good status: an object with `error`.
    fn error_in(&self, body: &Value) -> Option<Value> {
        let error = body.get("error").filter(|error| !error.is_null())?;
        Some(serde_json::json!({ "error": error }))
    }

    /// Whether the data of this event says that nothing comes after it.
    fn is_last(&self, data: &str) -> bool;

    /// The body that an unstreamed answer would have had, from the data of all events. `done` = a `[DONE]` came.
    ///
    /// # Errors
    /// [`FaultKind::Network`] where the stream was cut before its answer was whole.
    fn join(&self, chunks: &[Value], done: bool) -> Result<Value, Fault>;

    /// The answer in a whole body that holds no error.
    ///
    /// # Errors
    /// [`FaultKind::Response`] when there is no answer in it.
    fn answer(&self, body: &Value) -> Result<Answer, Fault>;
}

/// What is asked of a model, apart from the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The model as its server knows it.
    pub model: String,
    pub sampling: Sampling,
    /// How much thought, in the provider's word: `low`, `medium`, `high`, …
    pub effort: Option<String>,
    pub stream: bool,
}

/// The protocols; the first one is that of recordings that name none.
const PROTOCOLS: [&dyn Protocol; 5] =
    [&openai::ChatCompletions, &responses::Responses, &anthropic::Messages, &gemini::GenerateContent, &ollama::Chat];

/// The protocol of this name.
pub fn named(name: &str) -> Option<&'static dyn Protocol> {
    PROTOCOLS.into_iter().find(|protocol| protocol.name() == name)
}

/// The name of the protocol that recordings mean where they name none.
pub const FIRST: &str = "openai";

/// The answer in a body, which is JSON, or text: that of an event stream, or of JSON that needs a repair. Recordings are
/// read by this as well.
///
/// # Errors
/// A fault when there is no answer in it.
pub fn interpret(protocol: &dyn Protocol, body: &Value) -> Result<Answer, Fault> {
    let (body, repaired) = match body {
        Value::String(text) if stream::is_stream(text) => (Cow::Owned(stream::join(protocol, text.as_bytes())?), false),
        Value::String(text) => (Cow::Owned(repaired(text).ok_or_else(|| no_json(text))?), true),
        other => (Cow::Borrowed(other), false),
    };
    if let Some(error) = protocol.error_in(&body) {
        return Err(fault_of(200, &error, "answer"));
    }
    let mut answer = protocol.answer(&body)?;
    if repaired {
        answer.calls.iter_mut().for_each(refuse_halves);
    }
    Ok(answer)
}

/// An error behind a good status, or a stream that was cut: seen early so that the request can be made again.
pub(super) fn hidden_fault(protocol: &dyn Protocol, status: u16, body: &[u8], url: &str) -> Option<Fault> {
    let text = String::from_utf8_lossy(body);
    let error = if stream::is_stream(&text) {
        match stream::join(protocol, body) {
            Err(fault) => return Some(Fault::new(fault.kind, format!("{url}: {}", fault.message))),
            Ok(body) => protocol.error_in(&body)?,
        }
    } else {
        // Most answers say none of the words that every error has one of, and need no second reading.
        let words = ["error", "fail", "cancel"];
        words.iter().find(|word| body.contains_str(word))?;
        protocol.error_in(&serde_json::from_str(&text).ok()?)?
    };
    Some(fault_of(status, &error, url))
}

/// Whether a stream that ends with these bytes is whole, so that nothing more need be waited for.
pub(super) fn is_whole(protocol: &dyn Protocol, body: &[u8]) -> bool {
    stream::last_data(body).is_some_and(|data| protocol.is_last(&data))
}

/// A body as JSON, or as text where it is none.
pub(super) fn body_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

fn no_json(text: &str) -> Fault {
    let start: String = text.chars().take(80).collect();
    Fault::new(FaultKind::Response, format!("the answer is not JSON: {start}"))
}

/// JSON in which only halves of surrogate pairs are wrong, as some servers write what a model sent; each half becomes U+FFFD.
fn repaired(text: &str) -> Option<Value> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let unit = |text: &str| {
            let digits = text.strip_prefix("\\u")?.get(..4)?;
            u32::from_str_radix(digits, 16).ok()
        };
        let taken = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                out.push('\u{FFFD}');
                rest = &escape[6..];
                continue;
            }
            _ => escape.chars().take(2).map(char::len_utf8).sum(),
        };
        out.push_str(&escape[..taken]);
        rest = &escape[taken..];
    }
    out.push_str(rest);
    serde_json::from_str(&out).ok()
}

/// Arguments that had half a character are not run.
fn refuse_halves(call: &mut Call) {
    if let Arguments::Object { text } = &call.arguments
        && text.contains('\u{FFFD}')
    {
        let error = "half of a surrogate pair".to_owned();
        call.arguments = Arguments::Malformed { text: text.clone(), error };
    }
}

/// Adds a call. Ids are unique in their turn: a missing or repeated one is replaced by nine letters and digits, since there
/// are servers that take no other ids.
fn add_call(calls: &mut Vec<Call>, id: Option<&str>, name: &str, arguments: Arguments) {
    let id = id.unwrap_or_default();
    let taken = id.trim().is_empty() || calls.iter().any(|other| other.id == id);
    let id = if taken { format!("call{:05}", calls.len() + 1) } else { id.to_owned() };
    calls.push(Call { id, name: name.to_owned(), arguments, arrival: Arrival::Native });
}

/// Arguments as servers send them: a text, an object, null, or nothing.
fn arguments(value: Option<&Value>) -> Arguments {
    match value {
        None | Some(Value::Null) => Arguments::parse(""),
        Some(Value::String(text)) => Arguments::parse(text),
        Some(other) => Arguments::parse(&spaced(other)),
    }
}

/// The arguments of a call as an object, for protocols that want one back.
fn object(call: &Call) -> Value {
    serde_json::from_str(call.arguments.for_history()).unwrap_or_else(|_| Value::Object(Map::new()))
}

/// A number of tokens, where the server tells one.
fn tokens(holder: &Value, path: &[&str]) -> Option<u64> {
    path.iter().try_fold(holder, |value, name| value.get(*name))?.as_u64()
}

/// 0 and not 0.0, as everybody writes it.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 { Value::from(value as i64) } else { Value::from(value) }
}

/// A base URL without the slashes at its end, and its query with the question mark.
fn base_and_query(base: &str) -> (&str, &str) {
    let (base, query) = base.split_at(base.find('?').unwrap_or(base.len()));
    (base.trim_end_matches('/'), query)
}

/// Whether a base URL has a path.
fn has_path(base: &str) -> bool {
    base.split_once("://").map_or(base, |(_, rest)| rest).contains('/')
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Words that the protocols look for, in places where they may not stand.
    const WORDS: [&str; 34] = [
        "type",
        "error",
        "response",
        "response.completed",
        "response.output_item.added",
        "output_text",
        "item",
        "output",
        "delta",
        "arguments",
        "function_call",
        "response.function_call_arguments.delta",
        "message",
        "content",
        "text",
        "choices",
        "tool_calls",
        "function",
        "name",
        "id",
        "index",
        "content_block_start",
        "content_block",
        "content_block_delta",
        "message_start",
        "message_delta",
        "tool_use",
        "candidates",
        "parts",
        "functionCall",
        "done",
        "usage",
        "finishReason",
        "code",
    ];

    fn odd() -> impl Strategy<Value = Value> {
        let word = || proptest::sample::select(WORDS.to_vec());
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-2_i64..600).prop_map(Value::from),
            word().prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 40, 5, move |inner| {
            let fields = proptest::collection::vec((word(), inner.clone()), 0..5);
            prop_oneof![
                2 => fields.prop_map(|fields| fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
                1 => proptest::collection::vec(inner, 0..4).prop_map(Value::from),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]
        #[test]
        fn whatever_a_server_sends_is_an_answer_or_a_fault(pieces in proptest::collection::vec(odd(), 1..5)) {
            let lines: String = pieces.iter().map(|piece| format!("{piece}\n")).collect();
            for protocol in PROTOCOLS {
                let _ = interpret(protocol, &pieces[0]);
                let _ = interpret(protocol, &testing::events(&pieces));
                let _ = interpret(protocol, &Value::String(lines.clone()));
                let _ = protocol.join(&pieces, true).and_then(|body| protocol.answer(&body));
                let _ = hidden_fault(protocol, 200, lines.as_bytes(), "u");
                let _ = is_whole(protocol, lines.as_bytes());
            }
        }
    }

    #[test]
    fn names_are_one_each() {
        assert_eq!(PROTOCOLS[0].name(), FIRST);
        for (index, protocol) in PROTOCOLS.iter().enumerate() {
            assert!(PROTOCOLS[..index].iter().all(|other| other.name() != protocol.name()));
            assert!(named(protocol.name()).is_some());
        }
        assert!(named("soap").is_none());
    }

    #[test]
    fn halves_of_surrogate_pairs_are_repaired_and_nothing_else_is() {
        let text = |body: &str| repaired(body).map(|value| value["a"].as_str().unwrap_or_default().to_owned());
        assert_eq!(text(r#"{"a": "x\ud83dy"}"#).as_deref(), Some("x\u{FFFD}y"));
        assert_eq!(text(r#"{"a": "\ude00\ud83d\ude00\\ud83d"}"#).as_deref(), Some("\u{FFFD}😀\\ud83d"));
        assert_eq!(text(r#"{"a": "x\q"}"#), None);
        assert_eq!(text("<html>"), None);
        assert_eq!(text("{\"a\": \"\\"), None);
        assert_eq!(text("{\"a\": \"\\ud8é"), None);
    }

    #[test]
    fn thought_is_kept_apart() {
        let of = |content: &str| split_thought(content);
        assert_eq!(of("<think>a</think>\nb"), ("a".into(), "b".into()));
        assert_eq!(of("a</think>b"), ("a".into(), "b".into()));
        assert_eq!(of("<think>a"), ("a".into(), String::new()));
        assert_eq!(of("plain"), (String::new(), "plain".into()));
    }
}
