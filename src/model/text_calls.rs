//! Calls that a model wrote into the text of its answer instead of making them.

use serde_json::Value;

use crate::chat::{Arguments, Arrival, Call, Function};

/// Whether calls in the text of an answer are run. How each call came is recorded either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TextCalls {
    #[default]
    Reject,
    Accept,
}

impl TextCalls {
    pub fn name(self) -> &'static str {
        match self {
            TextCalls::Reject => "reject",
            TextCalls::Accept => "accept",
        }
    }
}

/// The calls of a text, where it is clear that they are meant as calls: `<tool_call>` elements outside code fences, or a
/// text that is nothing but JSON calls of offered functions, bare or in code fences. A call inside prose is talk.
pub fn meant(text: &str, functions: &[Function]) -> Vec<Call> {
    let (outside, fenced) = apart(text);
    let mut calls: Vec<Call> = elements(&outside).flat_map(|element| calls_of(element, None)).collect();
    if calls.is_empty() {
        let bare = outside.trim();
        if !bare.is_empty() && fenced.is_empty() {
            calls = calls_of(bare, Some(functions));
        } else if bare.is_empty() {
            calls = fenced.iter().flat_map(|block| calls_of(block, Some(functions))).collect();
        }
    }
    for (index, call) in calls.iter_mut().enumerate() {
        call.id = format!("text{:05}", index + 1);
    }
    calls
}

/// Braces of a text that are tried as the beginning of a call.
const MAX_TRIES: usize = 1000;

/// Whether a text holds a call of an offered function anywhere, even as talk.
pub fn holds(text: &str, functions: &[Function]) -> bool {
    text.match_indices('{').take(MAX_TRIES).any(|(at, _)| {
        let first = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>().next();
        first.and_then(Result::ok).is_some_and(|value| call_of(&value, Some(functions)).is_some())
    })
}

/// Splits a text into what stands outside code fences and the contents of the fences.
fn apart(text: &str) -> (String, Vec<String>) {
    let (mut outside, mut fenced) = (String::new(), Vec::new());
    let mut open: Option<String> = None;
    for line in text.split_inclusive('\n') {
        let fence = line.trim_start().starts_with("```");
        match (&mut open, fence) {
            (None, true) => open = Some(String::new()),
            (Some(block), true) => {
                fenced.push(std::mem::take(block));
                open = None;
            }
            (None, false) => outside.push_str(line),
            (Some(block), false) => block.push_str(line),
        }
    }
    fenced.extend(open);
    (outside, fenced)
}

/// Contents of `<tool_call>` elements; the last one may be unclosed.
fn elements(text: &str) -> impl Iterator<Item = &str> {
    text.split("<tool_call>").skip(1).map(|rest| rest.split("</tool_call>").next().unwrap_or(rest).trim())
}

/// Calls in a JSON text: objects with `name` and `arguments`, one after the other or in a list. With `only`, calls of
/// other names are none.
fn calls_of(text: &str, only: Option<&[Function]>) -> Vec<Call> {
    let values: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(text.trim()).into_iter().collect();
    let flat = values.unwrap_or_default().into_iter().flat_map(|value| match value {
        Value::Array(list) => list,
        one => vec![one],
    });
    flat.filter_map(|value| call_of(&value, only)).collect()
}

fn call_of(value: &Value, only: Option<&[Function]>) -> Option<Call> {
    let name = value.get("name")?.as_str()?;
    // Some models call them parameters; a model that recites the schema it was given makes no call.
    let parameters = || value.get("parameters").filter(|parameters| parameters.get("properties").is_none());
    let arguments = value.get("arguments").or_else(parameters)?;
    if only.is_some_and(|functions| !functions.iter().any(|function| function.name == name)) {
        return None;
    }
    let arguments = match arguments {
        Value::String(text) => Arguments::parse(text),
        other => Arguments::parse(&other.to_string()),
    };
    Some(Call { id: String::new(), name: name.to_owned(), arguments, arrival: Arrival::Text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions() -> Vec<Function> {
        vec![Function { name: "edit_file".into(), description: String::new(), parameters: Value::Null }]
    }

    #[test]
    fn what_is_meant_as_a_call_and_what_is_talk() {
        let call = r#"{"name": "edit_file", "arguments": {"path": "f"}}"#;
        let other = r#"{"name": "package", "arguments": {}}"#;
        let table = [
            (format!("<tool_call>\n{call}\n</tool_call>"), 1, true),
            (format!("Ok.\n<tool_call>\n{call}\n</tool_call>\n<tool_call>{call}</tool_call>"), 2, true),
            (format!("<tool_call>{call}"), 1, true),
            (call.to_owned(), 1, true),
            (format!("[{call}, {call}]"), 2, true),
            (format!("```json\n{call}\n```"), 1, true),
            (format!("```json\n{call}\n```\n\n```\n{call}\n```\n"), 2, true),
            (format!("It looks so:\n```xml\n<tool_call>\n{call}\n</tool_call>\n```\nThat is it."), 0, true),
            (format!("It looks so:\n```json\n{call}\n```\nThat is it."), 0, true),
            (other.to_owned(), 0, false),
            (format!("<tool_call>{other}</tool_call>"), 1, false),
            (r#"{"name": "edit_file", "parameters": {"path": "f"}}"#.to_owned(), 1, true),
            (
                r#"{"name": "edit_file", "description": "x", "parameters": {"type": "object", "properties": {}}}"#
                    .to_owned(),
                0,
                false,
            ),
            (format!("Here is the call:\n{call}"), 0, true),
            (format!("{call}\n{call}"), 2, true),
            (format!("```json\n{call}\n{call}\n```"), 2, true),
            (format!("I would send `{call}`."), 0, true),
            ("I have changed the file.".to_owned(), 0, false),
            (String::new(), 0, false),
        ];
        for (text, count, held) in table {
            assert_eq!(meant(&text, &functions()).len(), count, "{text}");
            assert_eq!(holds(&text, &functions()), held, "{text}");
        }
    }
}
