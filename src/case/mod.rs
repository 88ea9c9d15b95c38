//! Describes and proves what is asked: case sets, their files, their selection and identity.

mod build;
pub mod check;
pub mod describe;
pub mod digest;
pub mod fixtures;
pub mod history;
pub mod load;
pub mod mine;
pub mod place;
pub mod schema;
pub mod secrets;
pub mod select;
mod split;
pub mod target;
pub mod task;
pub mod tree;
pub mod vary;
pub mod write;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use crate::text::{Line, LineModel, diff, lines};

pub use build::check_path;
pub use split::Split;
pub use target::Target;
pub use tree::{Node, Tree};
pub use vary::Variant;

/// Name of the directory that the model works in. Files of `outside` stand beside it.
pub const WORKSPACE: &str = "workspace";

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

impl CaseSet {
    /// Cases that stand in no file yet.
    pub fn loose(name: &str, cases: Vec<Case>) -> Self {
        CaseSet { name: name.to_owned(), about: String::new(), file: PathBuf::new(), subsets: BTreeMap::new(), cases }
    }
}

/// Files before, a task in plain words, the exact files after.
#[derive(Clone, Debug, Default)]
pub struct Case {
    pub id: String,
    pub tags: Vec<String>,
    pub task: String,
    pub files: Tree,
    /// What stands beside the workspace and must stay as it is: where a link or a `..` may lead. Paths are relative to
    /// the directory that holds [`WORKSPACE`].
    pub outside: Tree,
    /// What the model read earlier, by path.
    pub seen: BTreeMap<String, Arc<[u8]>>,
    pub then: Vec<Rewrite>,
    /// One entry an acceptable outcome: changes to the files as the harness left them. `None` = deleted.
    pub accepted: Vec<BTreeMap<String, Option<Node>>>,
    pub target: Option<Target>,
    /// Of which case it is a variant, and how.
    pub variant: Option<Variant>,
    pub source: Option<Source>,
}

/// Where a mined case comes from.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Name of the repository.
    pub repository: String,
    /// The commit that made the change.
    pub commit: String,
    /// The path in the repository.
    pub path: String,
    /// SPDX identifier of the licence that the repository's own licence file states.
    pub license: String,
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

/// Changes with no more unchanged lines than this between them are one place.
const ONE_PLACE: usize = 3;

impl Case {
    /// Public or held out: by the hash of its id, or of the id of the case that it is a variant of.
    pub fn split(&self) -> Split {
        Split::of(self.variant.as_ref().map_or(&self.id, |variant| &variant.of))
    }

    /// Leaving everything as it is is an accepted outcome.
    pub fn may_stay(&self) -> bool {
        let base = self.final_base();
        self.accepted_from(&base).contains(&base)
    }

    /// The files after all rewrites: what an unhurried reader finds in the end.
    pub fn final_base(&self) -> Tree {
        let mut base = self.files.clone();
        for rewrite in &self.then {
            base.apply(rewrite.files.iter().map(|(path, node)| (path, Some(node))));
        }
        base
    }

    /// In how many places its files change, other writers' changes between calls of the edit tool among them: what one
    /// edit a place would take.
    pub fn places(&self) -> usize {
        let mut start = self.files.clone();
        for rewrite in self.then.iter().filter(|rewrite| rewrite.after == Moment::Read) {
            start.apply(rewrite.files.iter().map(|(path, node)| (path, Some(node))));
        }
        let Some(expected) = self.accepted_from(&self.final_base()).into_iter().next() else {
            return 0;
        };
        let count = |path: &String| match (start.bytes(path), expected.bytes(path)) {
            (Some(old), Some(new)) => {
                let (old, new): (Vec<Line<'_>>, Vec<Line<'_>>) =
                    (lines(old, LineModel::Lm3).collect(), lines(new, LineModel::Lm3).collect());
                let hunks = diff::hunks(&diff::keys(&old), &diff::keys(&new));
                hunks.chunk_by(|a, b| b.old.start - a.old.end <= ONE_PLACE).count()
            }
            (None, None) => 0,
            _ => 1,
        };
        start.changed_paths(&expected).iter().map(count).sum()
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
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}{}: {message}", file.display(), position.map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default())]
pub struct CaseError {
    pub file: PathBuf,
    /// 1-based line and column.
    pub position: Option<(usize, usize)>,
    pub message: String,
}
