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

/// Whether a text holds a call of an offered function anywhere, even as talk.
pub fn holds(text: &str, functions: &[Function]) -> bool {
    let (_, fenced) = apart(text);
    !meant(text, functions).is_empty()
        || elements(text).any(|element| !calls_of(element, Some(functions)).is_empty())
        || fenced.iter().any(|block| !calls_of(block, Some(functions)).is_empty())
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

/// Calls in a JSON text: an object with `name` and `arguments`, or a list of such. With `only`, calls of other names are none.
fn calls_of(text: &str, only: Option<&[Function]>) -> Vec<Call> {
    let calls = match serde_json::from_str::<Value>(text.trim()) {
        Ok(Value::Array(list)) => list,
        Ok(one) => vec![one],
        Err(_) => return Vec::new(),
    };
    calls
        .iter()
        .filter_map(|call| {
            let name = call.get("name")?.as_str()?;
            let arguments = call.get("arguments").or_else(|| call.get("parameters"))?;
            if only.is_some_and(|functions| !functions.iter().any(|function| function.name == name)) {
                return None;
            }
            let arguments = match arguments {
                Value::String(text) => Arguments::parse(text),
                other => Arguments::parse(&other.to_string()),
            };
            Some(Call { id: String::new(), name: name.to_owned(), arguments, arrival: Arrival::Text })
        })
        .collect()
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
            (format!("<tool_call>{other}</tool_call>"), 1, true),
            ("I have changed the file.".to_owned(), 0, false),
            (String::new(), 0, false),
        ];
        for (text, count, held) in table {
            assert_eq!(meant(&text, &functions()).len(), count, "{text}");
            assert_eq!(holds(&text, &functions()), held, "{text}");
        }
    }
}
