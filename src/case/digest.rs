//! Identity of cases: SHA-256 over canonical contents, fixtures included, so that moving a file or reformatting JSON
//! changes nothing, and changing one byte that a score depends on does.

use sha2::{Digest, Sha256};

use super::tree::feed_node;
use super::{Case, Moment, Tree};
use crate::chat::feed_part;

/// Digest of these cases of a set, whatever their order, as hexadecimal. Tags and `about` are labels and left out.
pub fn of_cases<'a>(set: &str, cases: impl IntoIterator<Item = &'a Case>) -> String {
    let mut each: Vec<(&str, [u8; 32])> = cases.into_iter().map(|case| (case.id.as_str(), of_case(case))).collect();
    each.sort();
    let mut hasher = Sha256::new();
    feed_part(&mut hasher, b"editgate cases 1");
    feed_part(&mut hasher, set.as_bytes());
    for (_, digest) in each {
        hasher.update(digest);
    }
    crate::chat::hex(&hasher.finalize())
}

/// Digest of what a case asks and expects, whatever its id and target.
pub fn of_contents(case: &Case) -> String {
    crate::chat::hex(&of_case(&Case { id: String::new(), target: None, ..case.clone() }))
}

fn of_case(case: &Case) -> [u8; 32] {
    let mut hasher = Sha256::new();
    feed_part(&mut hasher, case.id.as_bytes());
    feed_part(&mut hasher, case.task.as_bytes());
    case.files.feed(&mut hasher);
    if case.outside != Tree::default() {
        feed_part(&mut hasher, b"outside");
        case.outside.feed(&mut hasher);
    }
    for (path, bytes) in &case.seen {
        feed_part(&mut hasher, b"seen");
        feed_part(&mut hasher, path.as_bytes());
        feed_part(&mut hasher, bytes);
    }
    for rewrite in &case.then {
        feed_part(
            &mut hasher,
            match rewrite.after {
                Moment::Read => b"after read",
                Moment::Call => b"after call",
            },
        );
        feed_part(&mut hasher, &(rewrite.nth as u64).to_le_bytes());
        for (path, node) in &rewrite.files {
            feed_part(&mut hasher, path.as_bytes());
            feed_node(&mut hasher, node);
        }
    }
    for changes in &case.accepted {
        feed_part(&mut hasher, b"accepted");
        for (path, node) in changes {
            feed_part(&mut hasher, path.as_bytes());
            match node {
                Some(node) => feed_node(&mut hasher, node),
                None => feed_part(&mut hasher, b"deleted"),
            }
        }
    }
    if let Some(target) = &case.target {
        feed_part(&mut hasher, b"target");
        feed_part(&mut hasher, target.path.as_bytes());
        feed_part(&mut hasher, &target.line.map_or(0, |line| line as u64).to_le_bytes());
        feed_part(&mut hasher, &[u8::from(target.find.is_some())]);
        feed_part(&mut hasher, target.find.as_deref().unwrap_or_default().as_bytes());
        feed_part(&mut hasher, target.content.as_bytes());
    }
    hasher.finalize().into()
}
