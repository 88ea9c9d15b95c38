//! Describes and proves what is asked: case sets, their files, their selection and identity.

pub mod digest;
pub mod load;
pub mod schema;
pub mod select;
pub mod tree;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

pub use tree::{Node, Tree};

/// Cases of one kind, from one file.
#[derive(Clone, Debug)]
pub struct CaseSet {
    pub name: String,
    pub about: String,
    /// The file it came from.
    pub file: PathBuf,
    pub subsets: BTreeMap<String, Vec<String>>,
    pub cases: Vec<Case>,
}

/// Files before, a task in plain words, the exact files after.
#[derive(Clone, Debug)]
pub struct Case {
    pub id: String,
    pub tags: Vec<String>,
    pub task: String,
    pub files: Tree,
    /// What the model read earlier, by path.
    pub seen: BTreeMap<String, Arc<[u8]>>,
    pub then: Vec<Rewrite>,
    /// One entry an acceptable outcome: changes to the files as the harness left them. `None` = deleted.
    pub accepted: Vec<BTreeMap<String, Option<Node>>>,
    pub target: Option<Target>,
    pub held_out: bool,
}

/// The harness rewrites files at a point of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Rewrite {
    pub after: Moment,
    /// 1 = the first such moment.
    pub nth: usize,
    pub files: BTreeMap<String, Node>,
}

/// A point of the conversation that a [`Rewrite`] waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Moment {
    /// A successful call of the read tool.
    Read,
    /// A call of the edit tool, successful or not.
    Call,
}

impl Moment {
    pub fn name(self) -> &'static str {
        match self {
            Moment::Read => "read",
            Moment::Call => "call",
        }
    }
}

/// Where and what to change, for the directed prompt.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    pub path: String,
    /// 1-based number in the file as the model reads it.
    pub line: Option<usize>,
    pub find: Option<String>,
    pub content: String,
}

impl Target {
    /// The way this target names its place, as a tag: `by-line`, `by-find` or `by-line-and-find`.
    pub fn way(&self) -> &'static str {
        match (self.line.is_some(), self.find.is_some()) {
            (true, true) => "by-line-and-find",
            (true, false) => "by-line",
            _ => "by-find",
        }
    }
}

impl Case {
    /// The files after all rewrites: what an unhurried reader finds in the end.
    pub fn final_base(&self) -> Tree {
        let mut base = self.files.clone();
        for rewrite in &self.then {
            base.apply(rewrite.files.iter().map(|(path, node)| (path, Some(node))));
        }
        base
    }

    /// The acceptable trees, given the files as the harness left them.
    pub fn accepted_from(&self, base: &Tree) -> Vec<Tree> {
        self.accepted
            .iter()
            .map(|changes| {
                let mut tree = base.clone();
                tree.apply(changes.iter().map(|(path, node)| (path, node.as_ref())));
                tree
            })
            .collect()
    }

    /// The file a target speaks of, as the model reads it.
    pub fn as_read(&self, path: &str) -> Option<&[u8]> {
        match self.seen.get(path) {
            Some(bytes) => Some(bytes),
            None => self.files.bytes(path),
        }
    }

    /// Extensions of its files (or their names, where they have none): its languages and formats.
    pub fn formats(&self) -> Vec<String> {
        let mut formats: Vec<String> = self
            .files
            .paths()
            .filter(|path| self.files.bytes(path).is_some())
            .map(|path| {
                let name = path.rsplit('/').next().unwrap_or(path);
                match name.rsplit_once('.') {
                    Some((stem, extension)) if !stem.is_empty() => extension.to_lowercase(),
                    _ => name.to_owned(),
                }
            })
            .collect();
        formats.sort();
        formats.dedup();
        formats
    }
}

/// What is wrong with a case set: where, what, and what to do.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{}{}: {message}", file.display(), position.map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default())]
pub struct CaseError {
    pub file: PathBuf,
    /// 1-based line and column.
    pub position: Option<(usize, usize)>,
    pub message: String,
}
