//! A directory tree as a value: contents, modes, links. What cases start from, expect, and are compared by.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::chat::feed_part;

/// Mode bits of a file that a case does not name.
pub const DEFAULT_MODE: u32 = 0o644;

/// A node of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// Contents are shared: a tree is cloned for every attempt, and a fixture may serve a thousand cases.
    File {
        bytes: Arc<[u8]>,
        mode: u32,
    },
    Symlink {
        target: String,
    },
    Directory,
    /// A device, socket or pipe: never equal to anything a case can hold.
    Other,
}

/// Nodes by path relative to the root, `/` between names. Directories are nodes of their own, so that one more or
/// one less is a difference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    nodes: BTreeMap<String, Node>,
}

impl Tree {
    /// Adds a node and the directories above it.
    pub fn insert(&mut self, path: impl Into<String>, node: Node) {
        let path = path.into();
        for (at, _) in path.match_indices('/') {
            self.nodes.entry(path[..at].to_owned()).or_insert(Node::Directory);
        }
        self.nodes.insert(path, node);
    }

    /// Applies changes: a node replaces what was there, `None` removes it (and what lies under it).
    pub fn apply<'a>(&mut self, changes: impl Iterator<Item = (&'a String, Option<&'a Node>)>) {
        for (path, node) in changes {
            match node {
                Some(node) => self.insert(path.clone(), node.clone()),
                None => {
                    let below = format!("{path}/");
                    self.nodes.retain(|each, _| each != path && !each.starts_with(&below));
                }
            }
        }
    }

    /// Adds the nodes beside the root, as `../PATH`.
    pub fn add_beside(&mut self, beside: &Tree) {
        for (path, node) in beside.iter() {
            self.insert(format!("../{path}"), node.clone());
        }
    }

    pub fn get(&self, path: &str) -> Option<&Node> {
        self.nodes.get(path)
    }

    /// The contents of a file.
    pub fn bytes(&self, path: &str) -> Option<&[u8]> {
        match self.nodes.get(path) {
            Some(Node::File { bytes, .. }) => Some(bytes),
            _ => None,
        }
    }

    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.nodes.keys().map(String::as_str)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.nodes.iter().map(|(path, node)| (path.as_str(), node))
    }

    /// Paths whose nodes differ between two trees, in order.
    pub fn changed_paths(&self, other: &Tree) -> Vec<String> {
        let mut paths: Vec<&String> = self.nodes.keys().chain(other.nodes.keys()).collect();
        paths.sort();
        paths.dedup();
        paths.into_iter().filter(|path| self.nodes.get(*path) != other.nodes.get(*path)).cloned().collect()
    }

    /// SHA-256 over all nodes, as hexadecimal.
    pub fn digest(&self) -> String {
        let mut hasher = Sha256::new();
        self.feed(&mut hasher);
        crate::chat::hex(&hasher.finalize())
    }

    /// Feeds the tree to a hasher, unambiguously.
    pub(crate) fn feed(&self, hasher: &mut Sha256) {
        feed_part(hasher, &(self.nodes.len() as u64).to_le_bytes());
        for (path, node) in &self.nodes {
            feed_part(hasher, path.as_bytes());
            feed_node(hasher, node);
        }
    }
}

impl FromIterator<(String, Node)> for Tree {
    fn from_iter<I: IntoIterator<Item = (String, Node)>>(nodes: I) -> Self {
        let mut tree = Tree::default();
        for (path, node) in nodes {
            tree.insert(path, node);
        }
        tree
    }
}

pub(crate) fn feed_node(hasher: &mut Sha256, node: &Node) {
    match node {
        Node::File { bytes, mode } => {
            feed_part(hasher, b"file");
            feed_part(hasher, &mode.to_le_bytes());
            feed_part(hasher, bytes);
        }
        Node::Symlink { target } => {
            feed_part(hasher, b"symlink");
            feed_part(hasher, target.as_bytes());
        }
        Node::Directory => feed_part(hasher, b"directory"),
        Node::Other => feed_part(hasher, b"other"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Node {
        Node::File { bytes: text.as_bytes().into(), mode: DEFAULT_MODE }
    }

    #[test]
    fn directories_come_with_their_files_and_go_by_name() {
        let mut tree = Tree::default();
        tree.insert("a/b/c.txt", file("x"));
        assert_eq!(tree.paths().collect::<Vec<_>>(), ["a", "a/b", "a/b/c.txt"]);
        tree.apply([(&"a/b".to_owned(), None)].into_iter());
        assert_eq!(tree.paths().collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn every_kind_of_difference_changes_the_digest() {
        let digest = |node: Node| Tree::from_iter([("f".to_owned(), node)]).digest();
        let all = [
            digest(file("x")),
            digest(file("y")),
            digest(Node::File { bytes: b"x"[..].into(), mode: 0o755 }),
            digest(Node::Symlink { target: "x".into() }),
            digest(Node::Directory),
            Tree::default().digest(),
        ];
        let mut unique = all.to_vec();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), all.len());
    }
}
