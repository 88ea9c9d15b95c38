//! The tool's own terms for a change: calls for the oracle, words for a directed prompt.

use serde_json::json;

use super::replace::{self, Intent};
use super::{MAX_REPLACE, NAME};
use crate::case::{Node, Target, Tree};
use crate::text::{Line, LineModel, lines, without_bom};
use crate::tool::Planned;
use crate::tool::express::{self, planned, quoted};

/// Calls that turn `current` into `expected`, each proven on the pure edit before it is given out.
pub(super) fn express(current: &Tree, expected: &Tree) -> Result<Vec<Planned>, String> {
    let mut calls = Vec::new();
    for path in current.changed_paths(expected) {
        match (current.get(&path), expected.get(&path)) {
            (Some(Node::File { bytes: before, mode: old }), Some(Node::File { bytes: after, mode: new }))
                if old == new =>
            {
                calls.extend(edit_calls(&path, before, after).ok_or_else(|| {
                    format!("edit_file cannot write {path}: it holds bytes that are not UTF-8 in the changed part")
                })?);
            }
            (None, Some(Node::File { bytes, .. })) => {
                let content = std::str::from_utf8(bytes)
                    .map_err(|_| format!("edit_file cannot create {path}: it is not UTF-8"))?;
                calls.push(planned(NAME, json!({ "path": path, "mode": "write", "content": content })));
            }
            (_, None) => return Err(format!("edit_file cannot delete {path}")),
            (_, Some(Node::Directory)) => return Err(format!("edit_file cannot make the directory {path}")),
            _ => return Err(format!("edit_file cannot change the mode or kind of {path}")),
        }
    }
    Ok(calls)
}

fn edit_calls(path: &str, before: &[u8], after: &[u8]) -> Option<Vec<Planned>> {
    let replaceable = before.len() as u64 <= MAX_REPLACE && memchr::memchr(0, before).is_none();
    if replaceable && let Some(calls) = by_lines(path, before, after).or_else(|| by_text(path, before, after)) {
        return Some(calls);
    }
    let content = std::str::from_utf8(after).ok()?;
    Some(vec![planned(NAME, json!({ "path": path, "mode": "write", "content": content }))])
}

/// One line edit for each line that differs, where only texts of lines differ.
fn by_lines(path: &str, before: &[u8], after: &[u8]) -> Option<Vec<Planned>> {
    let (old, new) = (body_lines(before), body_lines(after));
    if old.len() != new.len() {
        return None;
    }
    let mut calls = Vec::new();
    let mut bytes = before.to_vec();
    for (index, (old, new)) in old.iter().zip(&new).enumerate() {
        if old.text == new.text {
            continue;
        }
        let content = std::str::from_utf8(new.text).ok()?;
        let line = i64::try_from(index + 1).ok()?;
        bytes = replace::replace(path, &bytes, Intent { content, line: Some(line), find: None }).ok()?.bytes;
        calls.push(planned(NAME, json!({ "path": path, "mode": "replace", "content": content, "line": line })));
    }
    (bytes == after).then_some(calls)
}

/// One text edit over the lines that differ, with as much context as makes it unique.
fn by_text(path: &str, before: &[u8], after: &[u8]) -> Option<Vec<Planned>> {
    express::substitutions(without_bom(before).0, without_bom(after).0, LineModel::Lm3).find_map(|(find, content)| {
        let (find, content) = (String::from_utf8(find).ok()?, String::from_utf8(content).ok()?);
        let done = replace::replace(path, before, Intent { content: &content, line: None, find: Some(&find) }).ok()?;
        (done.bytes == after)
            .then(|| vec![planned(NAME, json!({ "path": path, "mode": "replace", "content": content, "find": find }))])
    })
}

fn body_lines(bytes: &[u8]) -> Vec<Line<'_>> {
    lines(without_bom(bytes).0, LineModel::Lm3).collect()
}

/// The seed's own sentences for a change by line; the same with `find`, and with both.
pub(super) fn direct(target: &Target, as_read: &[u8]) -> String {
    let path = &target.path;
    let number = target.line.and_then(|line| {
        let text = lines(without_bom(as_read).0, LineModel::Lm3).nth(line.checked_sub(1)?)?.text;
        Some(format!("line set to the number read_file showed for {}", quoted(&String::from_utf8_lossy(text))))
    });
    let find = target.find.as_ref().map(|find| format!("find set to {}", quoted(find)));
    // A small model adds a line of its own guess unless it is told not to.
    let alone = if number.is_none() { ", and without line" } else { "" };
    let anchors: Vec<String> = number.into_iter().chain(find).collect();
    format!(
        "Use read_file to read {path}. Then use edit_file with mode replace on {path}, with {} and content {}{alone}. \
         Report the tool results verbatim.",
        anchors.join(", "),
        quoted(&target.content)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tree::DEFAULT_MODE;

    fn tree(bytes: &[u8]) -> Tree {
        Tree::from_iter([("f".to_owned(), Node::File { bytes: bytes.into(), mode: DEFAULT_MODE })])
    }

    fn ways(before: &[u8], after: &[u8]) -> Vec<String> {
        express(&tree(before), &tree(after))
            .unwrap()
            .iter()
            .map(|call| {
                let has = |name: &str| call.arguments.contains_key(name);
                if has("line") {
                    "line"
                } else if has("find") {
                    "find"
                } else {
                    "write"
                }
                .to_owned()
            })
            .collect()
    }

    #[test]
    fn the_oracle_takes_the_smallest_way_that_is_exact() {
        assert_eq!(ways(b"a\r\nb\nc", b"A\r\nb\nC"), ["line", "line"]);
        assert_eq!(ways(b"a\nx\na\n", b"a\nx\n"), ["find"]);
        assert_eq!(ways(b"a\n", b"a"), ["find"]);
        assert_eq!(ways(b"  a\n", b"b\n"), ["find"]);
        assert_eq!(ways(b"", b"a\n"), ["write"]);
        assert_eq!(ways(b"a\nb\xE9\n", b"A\nb\xE9\n"), ["line"]);
        assert_eq!(ways(b"a\xE9\n", b"b\xE9\n"), ["find"]);
        assert!(express(&tree(b"a\xE9\n"), &tree(b"a\xE8\n")).is_err());
        assert!(express(&tree(b"a"), &Tree::default()).is_err());
    }

    #[test]
    fn directed_words_are_exact() {
        let target = |line, find: Option<&str>, content: &str| Target {
            path: "Package.swift".into(),
            line,
            find: find.map(str::to_owned),
            content: content.into(),
        };
        let file = b"import X\nlet version = \"0.1.0\"\n\tx\n";
        assert_eq!(
            direct(&target(Some(2), None, "let version = \"0.2.0\""), file),
            "Use read_file to read Package.swift. Then use edit_file with mode replace on Package.swift, with line set to the number \
             read_file showed for `let version = \"0.1.0\"` and content `let version = \"0.2.0\"`. Report the tool results verbatim."
        );
        assert_eq!(
            direct(&target(Some(3), Some("x"), "\ty"), file),
            "Use read_file to read Package.swift. Then use edit_file with mode replace on Package.swift, with line set to the \
             number read_file showed for the JSON string \"\\tx\", find set to `x` and content the JSON string \"\\ty\". Report the tool results verbatim."
        );
    }
}
