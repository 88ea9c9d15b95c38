//! The bytes of a failed attempt, as its transcript keeps them: what a report shows side by side, long after the run.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::case::{Node, Tree};

/// A larger file is not kept here; its leftovers are.
const MAX_BYTES: usize = 256 << 10;
/// More files than so many help nobody.
const MAX_FILES: usize = 20;

/// One path of an attempt that did not come out as expected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptFile {
    pub path: String,
    /// `None` where there is nothing at this path.
    pub before: Option<Kept>,
    pub expected: Option<Kept>,
    pub actual: Option<Kept>,
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kept {
    Text {
        text: String,
        mode: u32,
    },
    Base64 {
        bytes: String,
        mode: u32,
    },
    /// Too large to be kept.
    Large {
        bytes: usize,
        mode: u32,
    },
    Symlink {
        target: String,
    },
    Directory,
    Other,
}

impl Kept {
    fn of(node: &Node) -> Self {
        match node {
            Node::File { bytes, mode } if bytes.len() > MAX_BYTES => Kept::Large { bytes: bytes.len(), mode: *mode },
            Node::File { bytes, mode } => match std::str::from_utf8(bytes) {
                Ok(text) => Kept::Text { text: text.to_owned(), mode: *mode },
                Err(_) => Kept::Base64 { bytes: STANDARD.encode(bytes), mode: *mode },
            },
            Node::Symlink { target } => Kept::Symlink { target: target.clone() },
            Node::Directory => Kept::Directory,
            Node::Other => Kept::Other,
        }
    }

    /// The bytes of a file, where they were kept.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Kept::Text { text, .. } => Some(text.clone().into_bytes()),
            Kept::Base64 { bytes, .. } => STANDARD.decode(bytes).ok(),
            _ => None,
        }
    }
}

/// The files that differ in any of three trees.
pub fn kept(before: &Tree, expected: &Tree, actual: &Tree) -> Vec<KeptFile> {
    let mut paths = before.changed_paths(expected);
    paths.extend(expected.changed_paths(actual));
    paths.sort();
    paths.dedup();
    let directories = |path: &String| {
        [before, expected, actual].iter().all(|tree| matches!(tree.get(path), None | Some(Node::Directory)))
            && [before, expected, actual].iter().any(|tree| tree.get(path).is_some())
    };
    // A directory that only holds new files says nothing beside them.
    let below = |path: &String, all: &[String]| all.iter().any(|other| other.starts_with(&format!("{path}/")));
    let shown: Vec<&String> = paths.iter().filter(|path| !(directories(path) && below(path, &paths))).collect();
    shown
        .into_iter()
        .take(MAX_FILES)
        .map(|path| KeptFile {
            path: path.clone(),
            before: before.get(path).map(Kept::of),
            expected: expected.get(path).map(Kept::of),
            actual: actual.get(path).map(Kept::of),
        })
        .collect()
}
