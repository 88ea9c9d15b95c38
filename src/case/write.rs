//! Cases as the files of sets hold them: the way back from a [`Case`] to JSON.

use std::collections::BTreeMap;

use base64::Engine as _;
use serde_json::{Map, Value, json};

use super::schema::SCHEMA;
use super::tree::DEFAULT_MODE;
use super::{Case, Node, Split, Tree};
use crate::text::visible::hides;

/// A whole set. The text ends with a line break; characters that show nothing are written as escapes.
pub fn set(name: &str, about: &str, subsets: &BTreeMap<String, Vec<String>>, cases: &[Case]) -> String {
    let entries: Vec<Value> = cases.iter().map(entry).collect();
    text(&json!({ "schema": SCHEMA, "set": name, "about": about, "subsets": subsets, "cases": entries }))
}

/// A JSON value as sets are written: two spaces a level, and nothing invisible in it.
pub fn text(value: &Value) -> String {
    let mut out = String::new();
    // Outside of strings JSON has no such characters.
    for character in format!("{value:#}\n").chars() {
        if character != '\n' && hides(character) {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(character);
        }
    }
    out
}

/// One case. Contents are given as text, or as base64 where they are not UTF-8.
pub fn entry(case: &Case) -> Value {
    let mut out = Map::new();
    out.insert("id".into(), json!(case.id));
    if case.split() == Split::HeldOut {
        out.insert("split".into(), json!(case.split()));
    }
    out.insert("tags".into(), json!(case.tags));
    out.insert("files".into(), tree(&case.files));
    if case.outside != Tree::default() {
        out.insert("outside".into(), tree(&case.outside));
    }
    if !case.seen.is_empty() {
        let seen = case.seen.iter().map(|(path, bytes)| (path.clone(), content(bytes)));
        out.insert("seen".into(), Value::Object(seen.collect()));
    }
    if !case.then.is_empty() {
        let then = case.then.iter().map(|rewrite| {
            let files: Map<String, Value> =
                rewrite.files.iter().map(|(path, each)| (path.clone(), node(each, usual_mode(case, path)))).collect();
            json!({ "after": rewrite.after.name(), "nth": rewrite.nth, "files": files })
        });
        out.insert("then".into(), then.collect());
    }
    out.insert("task".into(), json!(case.task));
    let mut outcomes: Vec<Value> = case.accepted.iter().map(|changes| outcome(case, changes)).collect();
    if outcomes.len() == 1 && !case.may_stay() {
        out.insert("expect".into(), outcomes.remove(0));
    } else {
        out.insert("expect_any".into(), Value::Array(outcomes));
    }
    if let Some(target) = &case.target {
        out.insert("target".into(), json!(target));
    }
    if let Some(variant) = &case.variant {
        out.insert("variant".into(), json!(variant));
    }
    if let Some(source) = &case.source {
        out.insert("source".into(), json!(source));
    }
    Value::Object(out)
}

fn outcome(case: &Case, changes: &BTreeMap<String, Option<Node>>) -> Value {
    let each = |(path, change): (&String, &Option<Node>)| {
        let value = match change {
            None => Value::Null,
            Some(Node::File { bytes, mode }) => file(bytes, *mode, usual_mode(case, path)),
            Some(other) => node(other, DEFAULT_MODE),
        };
        (path.clone(), value)
    };
    Value::Object(changes.iter().map(each).collect())
}

fn tree(tree: &Tree) -> Value {
    let held = tree.iter().filter(|(_, each)| **each != Node::Directory);
    Value::Object(held.map(|(path, each)| (path.to_owned(), node(each, DEFAULT_MODE))).collect())
}

/// The mode that a reader takes where none is said: the one that the file has at first.
fn usual_mode(case: &Case, path: &str) -> u32 {
    match case.files.get(path) {
        Some(Node::File { mode, .. }) => *mode,
        _ => DEFAULT_MODE,
    }
}

fn node(node: &Node, usual: u32) -> Value {
    match node {
        Node::File { bytes, mode } => file(bytes, *mode, usual),
        Node::Symlink { target } => json!({ "symlink": target }),
        // No case can hold anything else.
        Node::Directory | Node::Other => Value::Null,
    }
}

fn file(bytes: &[u8], mode: u32, usual: u32) -> Value {
    let mut value = content(bytes);
    if let Value::Object(map) = &mut value
        && mode != usual
    {
        map.insert("mode".into(), json!(format!("{mode:04o}")));
    }
    value
}

fn content(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!({ "text": text }),
        Err(_) => json!({ "base64": base64::engine::general_purpose::STANDARD.encode(bytes) }),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::case::fixtures::Fixtures;
    use crate::case::load::parse;

    #[test]
    fn what_is_written_is_read_again() {
        let source = r#"{"schema": 1, "set": "s", "about": "x", "cases": [
            {"id": "a", "tags": ["t"], "files": {"d/f.txt": {"text": "one\u200b\r\n", "mode": "0755"}, "l": {"symlink": "../o/x"},
              "b": {"base64": "/w=="}}, "outside": {"o/x": {"text": "out"}}, "seen": {"d/f.txt": {"text": "zero"}},
             "then": [{"after": "call", "nth": 2, "files": {"n": {"text": ""}}}], "task": "Do `one`.",
             "expect": {"d/f.txt": {"text": "e\u0301\u00a0", "mode": "0644"}, "b": null}, "target": {"path": "d/f.txt", "line": 1, "content": "x"}},
            {"id": "b", "tags": [], "files": {"f": {"text": "1"}}, "task": "t", "expect_any": [{"f": {"text": "2"}}, {}]}]}"#;
        let read = |text: &str| {
            let (set, faults) = parse(Path::new("s.json"), text.as_bytes(), &Fixtures::new("."));
            assert_eq!(faults, []);
            set.unwrap()
        };
        let first = read(source);
        let text = set(&first.name, &first.about, &first.subsets, &first.cases);
        assert!(text.contains("e\\u0301\\u00a0") && text.contains("one\\u200b\\r\\n") && text.ends_with("}\n"));
        let again = read(&text);
        let digest = |set: &crate::case::CaseSet| crate::case::digest::of_cases(&set.name, &set.cases);
        assert_eq!(digest(&first), digest(&again));
        assert_eq!(set(&again.name, &again.about, &again.subsets, &again.cases), text);
    }
}
