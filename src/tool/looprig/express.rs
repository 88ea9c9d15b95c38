//! The tool's own terms for a change: calls for the oracle, words for a directed prompt.

use serde_json::json;

use super::{EDIT, MAX_EDIT, READ, READ_CAP, WRITE, replace};
use crate::case::{Node, Target, Tree};
use crate::text::LineModel;
use crate::tool::Planned;
use crate::tool::express::{self, planned, quoted};

/// Calls that turn `current` into `expected`, each proven on the pure edit before it is given out. A file is read
/// before it is edited: what the session has seen of it may be out of date.
pub(super) fn express(current: &Tree, expected: &Tree) -> Result<Vec<Planned>, String> {
    let mut calls = Vec::new();
    for path in current.changed_paths(expected) {
        match (current.get(&path), expected.get(&path)) {
            (Some(Node::File { bytes: before, mode: old }), Some(Node::File { bytes: after, mode: new }))
                if old == new =>
            {
                if before.len() as u64 > READ_CAP {
                    return Err(format!("EditFile cannot edit {path}: it is longer than a complete read"));
                }
                calls.push(planned(READ, json!({ "path": path })));
                calls.push(edit_call(&path, before, after).ok_or_else(|| {
                    format!("EditFile cannot write {path}: it holds bytes that are not UTF-8 in the changed part")
                })?);
            }
            (None, Some(Node::File { bytes, .. })) => {
                let content = std::str::from_utf8(bytes)
                    .map_err(|_| format!("WriteFile cannot create {path}: it is not UTF-8"))?;
                calls.push(planned(WRITE, json!({ "path": path, "content": content })));
            }
            // Made with the file in it.
            (None, Some(Node::Directory)) if holds_a_file(expected, &path) => {}
            (_, None) => return Err(format!("EditFile cannot delete {path}")),
            (_, Some(Node::Directory)) => return Err(format!("EditFile cannot make the empty directory {path}")),
            _ => return Err(format!("EditFile cannot change the mode or kind of {path}")),
        }
    }
    Ok(calls)
}

fn holds_a_file(tree: &Tree, directory: &str) -> bool {
    let below = format!("{directory}/");
    tree.iter().any(|(path, node)| path.starts_with(&below) && matches!(node, Node::File { .. }))
}

/// One exact replacement over what differs, with as much around it as makes it unique; else the whole file.
fn edit_call(path: &str, before: &[u8], after: &[u8]) -> Option<Planned> {
    let by_text = express::substitutions(before, after, LineModel::Lm1).find_map(|(old, new)| {
        let (old, new) = (String::from_utf8(old).ok()?, String::from_utf8(new).ok()?);
        let done =
            replace::replace(path, before, &old, &new, false).ok().filter(|_| before.len() as u64 <= MAX_EDIT)?;
        (done == after).then(|| planned(EDIT, json!({ "path": path, "old": old, "new": new })))
    });
    by_text.or_else(|| {
        let content = std::str::from_utf8(after).ok()?;
        Some(planned(WRITE, json!({ "path": path, "content": content })))
    })
}

/// Old text is exact here, line endings too: where it stands only with the file's own, it is spelled with them.
fn as_the_file_has_it((old, new): (String, String), as_read: &[u8]) -> (String, String) {
    let crlf = old.replace('\n', "\r\n");
    let stands = |text: &str| memchr::memmem::find(as_read, text.as_bytes()).is_some();
    if stands(&old) || !stands(&crlf) { (old, new) } else { (crlf, new.replace('\n', "\r\n")) }
}

/// The change in the tool's own words, in the manner of the seed's sentences for `edit_file`.
pub(super) fn direct(target: &Target, as_read: &[u8]) -> String {
    let path = &target.path;
    let (old, new) = as_the_file_has_it(express::texts(target, as_read), as_read);
    format!(
        "Use ReadFile to read {path}. Then use EditFile on {path}, with old set to {} and new set to {}. Report the tool \
         results verbatim.",
        quoted(&old),
        quoted(&new)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tree::DEFAULT_MODE;

    fn tree(bytes: &[u8]) -> Tree {
        Tree::from_iter([("f".to_owned(), Node::File { bytes: bytes.into(), mode: DEFAULT_MODE })])
    }

    #[test]
    fn a_change_is_one_read_and_one_exact_replacement() {
        let calls = express(&tree(b"a\r\nx\r\na\r\n"), &tree(b"a\r\nx\r\nb\r\n")).unwrap();
        assert_eq!(calls[0].function, "ReadFile");
        assert_eq!(calls[1].arguments["old"], "x\r\na\r\n");
        let whole = express(&tree(b""), &tree(b"a\n")).unwrap();
        assert_eq!(whole[1].function, "WriteFile");
        assert!(express(&tree(b"a\xE9\n"), &tree(b"a\xE8\n")).is_err());
        assert!(express(&tree(b"a"), &Tree::default()).is_err());
        let new = Tree::from_iter([("d/f".to_owned(), Node::File { bytes: (*b"x").into(), mode: DEFAULT_MODE })]);
        assert_eq!(express(&Tree::default(), &new).unwrap().len(), 1);
    }
}
