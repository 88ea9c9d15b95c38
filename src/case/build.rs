//! From a case as it is written to a case: contents resolved, and what must hold between its parts proven.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;

use super::fixtures::Fixtures;
use super::load::{NAME_RULE, is_name};
use super::place::Step;
use super::schema::{CaseEntry, Content};
use super::tree::DEFAULT_MODE;
use super::{Case, Node, Rewrite, Split, Tree, WORKSPACE};

/// What is wrong with a case, and under which key.
#[derive(Debug)]
pub(super) struct Wrong {
    key: &'static str,
    path: Option<String>,
    pub(super) message: String,
}

impl Wrong {
    fn at(key: &'static str, message: impl Into<String>) -> Self {
        Wrong { key, path: None, message: message.into() }
    }

    fn of_path(key: &'static str, path: &str, message: impl std::fmt::Display) -> Self {
        Wrong { key, path: Some(path.to_owned()), message: format!("{key}.{path}: {message}") }
    }

    /// The way to the place, from the case.
    pub(super) fn steps(&self) -> Vec<Step<'_>> {
        std::iter::once(self.key).chain(self.path.as_deref()).map(Step::Key).collect()
    }
}

pub(super) fn build(entry: CaseEntry, fixtures: &Fixtures) -> Result<Case, Wrong> {
    if !is_name(&entry.id) {
        return Err(Wrong::at("id", NAME_RULE));
    }
    if entry.task.trim().is_empty() {
        return Err(Wrong::at("task", "the task is empty"));
    }
    if entry.files.0.is_empty() {
        return Err(Wrong::at("files", "there are no files"));
    }
    let nothing = Tree::default();
    let files: Tree = nodes(entry.files.0, "files", fixtures, &nothing)?.into_iter().collect();
    let one = entry.expect.is_some();
    let accepted = match (entry.expect, entry.expect_any) {
        (Some(expect), None) => vec![all_nodes(expect.0, "expect", fixtures, &files)?],
        (None, Some(any)) if !any.is_empty() => any
            .into_iter()
            .map(|expect| all_nodes(expect.0, "expect_any", fixtures, &files))
            .collect::<Result<_, _>>()?,
        (None, Some(_)) => return Err(Wrong::at("expect_any", "`expect_any` is empty")),
        (Some(_), Some(_)) => return Err(Wrong::at("expect", "`expect` and `expect_any` exclude each other")),
        (None, None) => return Err(Wrong::at("id", "`expect` is missing (or `expect_any`)")),
    };
    let outside: Tree = nodes(entry.outside.0, "outside", fixtures, &nothing)?.into_iter().collect();
    if outside.get(WORKSPACE).is_some() {
        return Err(Wrong::at("outside", format!("`{WORKSPACE}` is the workspace itself; its files stand in `files`")));
    }
    let mut seen = BTreeMap::new();
    for (path, node) in nodes(entry.seen.0, "seen", fixtures, &nothing)? {
        match node {
            Node::File { bytes, .. } => seen.insert(path, bytes),
            _ => return Err(Wrong::of_path("seen", &path, "only a file can have been read")),
        };
    }
    let mut then = Vec::new();
    for rewrite in entry.then {
        if rewrite.nth == 0 {
            return Err(Wrong::at("then", "then: `nth` counts from 1"));
        }
        then.push(Rewrite {
            after: rewrite.after,
            nth: rewrite.nth,
            files: nodes(rewrite.files.0, "then", fixtures, &files)?,
        });
    }
    let case = Case {
        id: entry.id,
        tags: entry.tags,
        task: entry.task,
        files,
        outside,
        seen,
        then,
        accepted,
        target: entry.target,
        variant: entry.variant,
        source: entry.source,
    };
    prove(&case, one, entry.split)?;
    Ok(case)
}

/// What must hold between the parts of a case.
fn prove(case: &Case, one: bool, stated: Option<Split>) -> Result<(), Wrong> {
    let split = case.split();
    if stated.is_some_and(|stated| stated != split) {
        let message = format!(
            "split: by the hash of its id this case is {}, which nobody chooses; write that or leave the key out",
            split.name()
        );
        return Err(Wrong::at("split", message));
    }
    let base = case.final_base();
    for changes in &case.accepted {
        for (path, node) in changes {
            if node.is_none() && base.get(path).is_none() {
                let key = if one { "expect" } else { "expect_any" };
                return Err(Wrong::of_path(key, path, "deleted, and there is no such file"));
            }
        }
    }
    // Where leaving everything as it is may be right, `expect_any` says so.
    if one && case.accepted_from(&base).first() == Some(&base) {
        return Err(Wrong::at("expect", "`expect` equals the files before, so doing nothing would pass"));
    }
    // One way to say that nothing may change, so that it is not said by accident.
    if !one
        && case
            .accepted
            .iter()
            .zip(case.accepted_from(&base))
            .any(|(changes, tree)| !changes.is_empty() && tree == base)
    {
        let message = "an outcome of `expect_any` equals the files before; if they may stay as they are, write `{}`";
        return Err(Wrong::at("expect_any", message));
    }
    if let Some(target) = &case.target {
        if target.line.is_none() && target.find.as_deref().is_none_or(str::is_empty) {
            return Err(Wrong::at("target", "target: `line` or `find` must say where"));
        }
        let Some(bytes) = case.as_read(&target.path) else {
            return Err(Wrong::at("target", format!("target: there is no file `{}`", target.path)));
        };
        let count = crate::text::lines(bytes, crate::text::LineModel::Lm3).count();
        if target.line.is_some_and(|line| line == 0 || line > count) {
            return Err(Wrong::at("target", format!("target: `{}` has {count} lines", target.path)));
        }
    }
    Ok(())
}

/// Contents by path. What lies below a file or link of `base` or of the entries themselves has no place, and a mode that
/// is not named is the one that the file has in `base`.
fn nodes(
    entries: BTreeMap<String, Content>,
    what: &'static str,
    fixtures: &Fixtures,
    base: &Tree,
) -> Result<BTreeMap<String, Node>, Wrong> {
    let some = entries.into_iter().map(|(path, content)| (path, Some(content))).collect();
    let nodes = all_nodes(some, what, fixtures, base)?;
    Ok(nodes.into_iter().filter_map(|(path, node)| Some((path, node?))).collect())
}

fn all_nodes(
    entries: BTreeMap<String, Option<Content>>,
    what: &'static str,
    fixtures: &Fixtures,
    base: &Tree,
) -> Result<BTreeMap<String, Option<Node>>, Wrong> {
    for path in entries.keys() {
        let held = |above: &&str| match entries.get(*above) {
            Some(entry) => entry.is_some(),
            None => base.get(above).is_some_and(|node| *node != Node::Directory),
        };
        if let Some(file) = path.match_indices('/').map(|(at, _)| &path[..at]).find(held) {
            return Err(Wrong::of_path(what, path, format!("`{file}` is a file or link, and cannot hold another")));
        }
    }
    let mut nodes = BTreeMap::new();
    for (path, content) in entries {
        let usual = match base.get(&path) {
            Some(Node::File { mode, .. }) => *mode,
            _ => DEFAULT_MODE,
        };
        let node = check_path(&path).and_then(|()| content.map(|content| node(content, fixtures, usual)).transpose());
        nodes.insert(path.clone(), node.map_err(|message| Wrong::of_path(what, &path, message))?);
    }
    Ok(nodes)
}

/// A path of a case is relative, plain, and stays inside.
///
/// # Errors
/// What a path must be.
pub fn check_path(path: &str) -> Result<(), String> {
    let plain = !path.is_empty()
        && !path.contains(['\0', '\\'])
        && path.split('/').all(|name| !name.is_empty() && name.len() <= 255 && name != "." && name != "..");
    if plain { Ok(()) } else { Err("a path is relative, with `/` between names, and without `.` or `..`".to_owned()) }
}

fn node(content: Content, fixtures: &Fixtures, usual_mode: u32) -> Result<Node, String> {
    let mode = match &content.mode {
        None => None,
        Some(text) => Some(
            u32::from_str_radix(text, 8)
                .ok()
                .filter(|mode| *mode <= 0o777)
                .ok_or_else(|| format!("mode `{text}` is not octal permission bits such as \"0755\""))?,
        ),
    };
    let bytes: Arc<[u8]> = match (content.text, content.fixture, content.base64, content.symlink) {
        (Some(text), None, None, None) => text.into_bytes().into(),
        (None, Some(path), None, None) => {
            check_path(&path).map_err(|message| format!("fixture `{path}`: {message}"))?;
            fixtures.read(&path)?
        }
        (None, None, Some(text), None) => {
            base64::engine::general_purpose::STANDARD.decode(&text).map_err(|error| format!("base64: {error}"))?.into()
        }
        (None, None, None, Some(target)) if target.is_empty() || target.contains('\0') => {
            return Err("a symlink needs a target, without NUL".to_owned());
        }
        (None, None, None, Some(target)) if mode.is_none() => return Ok(Node::Symlink { target }),
        (None, None, None, Some(_)) => return Err("a symlink has no mode".to_owned()),
        _ => return Err("exactly one of `text`, `fixture`, `base64` and `symlink` says what is in it".to_owned()),
    };
    Ok(Node::File { bytes, mode: mode.unwrap_or(usual_mode) })
}
