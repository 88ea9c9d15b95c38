//! The tool's own terms for a change: calls for the oracle, words for a directed prompt.

use serde_json::json;

use super::line_ops::{self, Operation};
use super::{MAX_EDIT, NAME, replace};
use crate::case::{Node, Target, Tree};
use crate::text::{Line, LineModel, lines, without_bom};
use crate::tool::Planned;
use crate::tool::express::{self, planned, quoted};

/// Calls that turn `current` into `expected`; every edit is proven on the pure function before it is given out.
pub(super) fn express(current: &Tree, expected: &Tree) -> Result<Vec<Planned>, String> {
    let mut calls = Vec::new();
    let mut deleted: Vec<String> = Vec::new();
    for path in current.changed_paths(expected) {
        match (current.get(&path), expected.get(&path)) {
            (Some(Node::File { bytes: before, mode: old }), Some(Node::File { bytes: after, mode: new }))
                if old == new =>
            {
                calls.push(edit_call(&path, before, after).ok_or_else(|| {
                    format!(
                        "filesystem_write cannot write {path}: it holds bytes that are not UTF-8 in the changed part"
                    )
                })?);
            }
            (None, Some(Node::File { bytes, .. })) => {
                let content = std::str::from_utf8(bytes)
                    .map_err(|_| format!("filesystem_write cannot create {path}: it is not UTF-8"))?;
                calls.push(planned(NAME, json!({ "action": "write", "path": path, "content": content })));
            }
            (None, Some(Node::Directory)) => calls.push(planned(NAME, json!({ "action": "mkdir", "path": path }))),
            (Some(_), None) if deleted.iter().any(|above| path.starts_with(above)) => {}
            (Some(_), None) => {
                calls.push(planned(NAME, json!({ "action": "delete", "path": path, "recursive": true })));
                deleted.push(format!("{path}/"));
            }
            _ => return Err(format!("filesystem_write cannot change the mode or kind of {path}")),
        }
    }
    Ok(calls)
}

fn edit_call(path: &str, before: &[u8], after: &[u8]) -> Option<Planned> {
    let editable = before.len() as u64 <= MAX_EDIT && memchr::memchr(0, before).is_none();
    if editable && let Some(call) = by_text(path, before, after).or_else(|| by_lines(path, before, after)) {
        return Some(call);
    }
    let content = std::str::from_utf8(after).ok()?;
    Some(planned(NAME, json!({ "action": "write", "path": path, "content": content, "force": content.is_empty() })))
}

/// One exact replacement over what differs, with as much around it as makes it unique.
fn by_text(path: &str, before: &[u8], after: &[u8]) -> Option<Planned> {
    express::substitutions(without_bom(before).0, without_bom(after).0, LineModel::Lm2).find_map(|(old, new)| {
        let (old, new) = (String::from_utf8(old).ok()?, String::from_utf8(new).ok()?);
        let done = replace::replace(path, before, &old, &new, false).ok()?;
        (done.bytes == after).then(|| planned(NAME, json!({ "action": "edit", "path": path, "old": old, "new": new })))
    })
}

/// One operation for each line that differs, where only texts of lines differ: it names no old text, which may be no UTF-8.
fn by_lines(path: &str, before: &[u8], after: &[u8]) -> Option<Planned> {
    let split = |bytes| lines(without_bom(bytes).0, LineModel::Lm2).collect::<Vec<Line<'_>>>();
    let (old, new) = (split(before), split(after));
    if old.len() != new.len() {
        return None;
    }
    let mut operations = Vec::new();
    for (number, (old, new)) in (1..).zip(old.iter().zip(&new)) {
        if old.text != new.text {
            operations.push((number, std::str::from_utf8(new.text).ok()?));
        }
    }
    let replace = |(number, content): &(i64, &'_ str)| (*number, (*content).to_owned());
    let owned: Vec<(i64, String)> = operations.iter().map(replace).collect();
    let as_operations: Vec<Operation<'_>> =
        owned.iter().map(|(number, content)| Operation::Replace { start: *number, end: *number, content }).collect();
    let done = line_ops::apply(path, before, &as_operations).ok()?;
    let listed: Vec<_> = owned
        .iter()
        .map(|(number, content)| json!({ "op": "replace", "start": number, "end": number, "content": content }))
        .collect();
    (done.bytes == after).then(|| planned(NAME, json!({ "action": "edit_lines", "path": path, "operations": listed })))
}

/// The change in the tool's own words, in the manner of the seed's sentences for `edit_file`: by number with
/// `edit_lines`, by text with `edit`.
pub(super) fn direct(target: &Target, as_read: &[u8]) -> String {
    let path = &target.path;
    let by_number = target
        .line
        .filter(|_| target.find.is_none())
        .and_then(|line| lines(without_bom(as_read).0, LineModel::Lm2).nth(line.checked_sub(1)?));
    let how = match by_number {
        Some(line) => format!(
            "action edit_lines on {path}, with one replace operation, whose start and end are the number filesystem_read \
             showed for {} and whose content is {}",
            quoted(&String::from_utf8_lossy(line.text)),
            quoted(&target.content)
        ),
        None => {
            let (old, new) = express::texts(target, as_read);
            format!("action edit on {path}, with old set to {} and new set to {}", quoted(&old), quoted(&new))
        }
    };
    format!(
        "Use filesystem_read to read {path}. Then use filesystem_write with {how}. Report the tool results verbatim."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tree::DEFAULT_MODE;

    fn tree(files: &[(&str, &[u8])]) -> Tree {
        let node = |bytes: &[u8]| Node::File { bytes: bytes.into(), mode: DEFAULT_MODE };
        files.iter().map(|(path, bytes)| ((*path).to_owned(), node(bytes))).collect()
    }

    fn actions(before: &Tree, after: &Tree) -> Vec<String> {
        let calls = express(before, after).unwrap();
        calls.iter().map(|call| call.arguments["action"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_oracle_takes_the_smallest_way_that_is_exact() {
        let one = |bytes: &[u8]| tree(&[("f", bytes)]);
        assert_eq!(actions(&one(b"a\r\nb\n"), &one(b"a\r\nB\n")), ["edit"]);
        assert_eq!(actions(&one(b"a\xE9\n"), &one(b"b\n")), ["edit_lines"]);
        assert_eq!(actions(&one(b""), &one(b"a")), ["write"]);
        assert_eq!(actions(&one(b"a"), &one(b"")), ["edit"]);
        assert_eq!(actions(&one(b"a\0"), &one(b"b\0")), ["write"]);
        assert!(express(&one(b"a\xE9\n"), &one(b"a\xE8\n")).is_err());
        assert_eq!(
            actions(&tree(&[("d/a", b""), ("d/b", b""), ("e", b"")]), &tree(&[("n/x", b"x")])),
            ["delete", "delete", "mkdir", "write"]
        );
    }
}
