//! `cases new`: from files before and after to a case, with the words, the target and the proof done for you.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use serde_json::{Value, json};

use super::{keep, proofs};
use crate::case::check;
use crate::case::describe::{Way, describe};
use crate::case::fixtures::Fixtures;
use crate::case::load::{self, NAME_RULE, Survey, is_name};
use crate::case::tree::DEFAULT_MODE;
use crate::case::{Case, CaseSet, Node, Tree, check_path, write};
use crate::cli::{Exit, Failure, output};
use crate::run::prove::unproven;
use crate::text::{diff, visible};
use crate::workspace::snapshot;

#[derive(Debug, Args)]
pub(in crate::cli) struct NewFlags {
    /// The file, or the directory, before the edit
    #[arg(long, value_name = "PATH")]
    before: PathBuf,
    /// The same after it
    #[arg(long, value_name = "PATH")]
    after: PathBuf,
    /// Path of the file in the workspace [default: its name]
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Id of the case [default: asked for on a terminal]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Shape of the case; may be repeated [default: what the change is]
    #[arg(long, value_name = "TAG", value_delimiter = ',')]
    tag: Vec<String>,
    /// The task [default: words that determine the change]
    #[arg(long, value_name = "TEXT")]
    task: Option<String>,
    /// How the directed prompt names the place
    #[arg(long, value_name = "WAY", default_value = "find", value_parser = ["line", "find", "line-and-find", "none"])]
    target: String,
    /// Leaving the files as they are is right as well
    #[arg(long)]
    may_stay: bool,
    /// Add the case to this set; the set is made if it is not there [default: print the case]
    #[arg(long, value_name = "FILE")]
    into: Option<PathBuf>,
    /// Also into this subset of the set
    #[arg(long, value_name = "NAME", requires = "into")]
    subset: Option<String>,
}

pub(super) fn main(flags: &NewFlags) -> Result<Exit, Failure> {
    let (before, after) = (read(&flags.before, flags)?, read(&flags.after, flags)?);
    let changed = changed_files(&before, &after);
    for path in before.paths().chain(after.paths()) {
        check_path(path).map_err(|why| Failure::usage(anyhow!("`{path}`: {why}; name another with --path")))?;
    }
    if changed.is_empty() {
        return Err(Failure::usage(anyhow!("--before and --after are the same, so there is no edit")));
    }
    let taken = ids_of(flags.into.as_deref())?;
    let mut case = draft(flags, &before, &after, &changed);
    output::message(&shown(&before, &after, &changed));
    let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if terminal {
        let mut answers = std::io::stdin().lock();
        ask(&mut case, flags, &taken, &mut answers, &mut std::io::stderr())?;
    }
    if case.id.is_empty() {
        return Err(Failure::usage(anyhow!("--id says what the case is called")));
    }
    if case.tags.is_empty() {
        return Err(Failure::usage(anyhow!("--tag says what shape the case is; it cannot be told from the files")));
    }
    if case.task.is_empty() {
        return Err(Failure::usage(anyhow!("no words are known for this change; say the --task yourself")));
    }
    let faults = faults(&case, &taken)?;
    if !faults.is_empty() {
        let all = faults.join("; ");
        return Err(Failure::usage(anyhow!("the case does not hold: {all}; say the --task or the --target otherwise")));
    }
    match &flags.into {
        None => output::data(&write::text(&write::entry(&case)))?,
        Some(file) => {
            add(file, &case, flags.subset.as_deref())?;
            output::message(&format!("added `{}` to {}", case.id, file.display()));
        }
    }
    Ok(Exit::Passed)
}

/// Files and links that differ; directories come and go with them.
fn changed_files(before: &Tree, after: &Tree) -> Vec<String> {
    let held = |path: &String| {
        let directory = |node: Option<&Node>| matches!(node, None | Some(Node::Directory));
        !(directory(before.get(path)) && directory(after.get(path)))
    };
    before.changed_paths(after).into_iter().filter(held).collect()
}

/// Ids of the cases that a set's file holds; of none that is not there yet.
fn ids_of(file: Option<&Path>) -> Result<BTreeSet<String>, Failure> {
    match file {
        Some(file) if file.exists() => {
            let sets = load::load(file).map_err(Failure::usage)?;
            Ok(sets.into_iter().flat_map(|set| set.cases).map(|case| case.id).collect())
        }
        _ => Ok(BTreeSet::new()),
    }
}

/// A file as a tree of one, or a directory.
fn read(path: &Path, flags: &NewFlags) -> Result<Tree, Failure> {
    let wrong = |error: std::io::Error| Failure::usage(anyhow!("cannot read {}: {error}", path.display()));
    if path.is_dir() {
        return snapshot::take(path).map_err(wrong);
    }
    let name = flags.before.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = flags.path.clone().unwrap_or(name);
    let bytes = std::fs::read(path).map_err(wrong)?;
    Ok([(name, Node::File { bytes: bytes.into(), mode: DEFAULT_MODE })].into_iter().collect())
}

/// The case as far as the files and flags say it.
fn draft(flags: &NewFlags, before: &Tree, after: &Tree, changed: &[String]) -> Case {
    let way = match flags.target.as_str() {
        "line" => Way::Line,
        "line-and-find" => Way::LineAndFind,
        _ => Way::Find,
    };
    let (mut words, mut tags, mut targets) = (Vec::new(), Vec::new(), Vec::new());
    let mut known = true;
    for path in changed {
        match (before.bytes(path), after.bytes(path)) {
            (Some(old), Some(new)) => match describe(path, old, new, way) {
                Ok(described) => {
                    words.push(described.task);
                    tags.extend(described.shapes.iter().map(|shape| shape.name().to_owned()));
                    targets.extend(described.target);
                }
                Err(why) => {
                    output::message(&why);
                    known = false;
                }
            },
            _ => known = false,
        }
    }
    tags.sort();
    tags.dedup();
    if changed.len() > 1 {
        tags = vec!["several-files".to_owned()];
    }
    let changes = changed.iter().map(|path| (path.clone(), after.get(path).cloned())).collect();
    let mut accepted = vec![changes];
    if flags.may_stay {
        accepted.push(BTreeMap::new());
    }
    Case {
        id: flags.id.clone().unwrap_or_default(),
        tags: if flags.tag.is_empty() { tags } else { flags.tag.clone() },
        task: flags.task.clone().unwrap_or_else(|| if known { words.join("\n\n") } else { String::new() }),
        files: before.clone(),
        accepted,
        target: if changed.len() == 1 && flags.target != "none" { targets.pop() } else { None },
        ..Case::default()
    }
}

/// The change with every byte visible.
fn shown(before: &Tree, after: &Tree, changed: &[String]) -> String {
    let mut text = String::new();
    for path in changed {
        if let (Some(old), Some(new)) = (before.bytes(path), after.bytes(path)) {
            text.push_str(&format!("{path}\n{}\n", diff::unified(old, new, 2, 60, 160)));
        } else {
            text.push_str(&format!("{path}: {}\n", if after.get(path).is_some() { "new" } else { "deleted" }));
        }
    }
    text
}

/// Asks for what the flags leave open, each with what would be taken, until the case holds.
fn ask(
    case: &mut Case,
    flags: &NewFlags,
    taken: &BTreeSet<String>,
    answers: &mut impl BufRead,
    out: &mut impl Write,
) -> Result<(), Failure> {
    loop {
        if flags.id.is_none() {
            let id = question("id (letters, digits, `-`)", &case.id, answers, out)?;
            case.id = id;
        }
        if flags.task.is_none() {
            case.task = question("task", &case.task, answers, out)?;
        }
        if flags.tag.is_empty() {
            let tags = question("tags (shapes, not languages)", &case.tags.join(","), answers, out)?;
            case.tags = tags.split(',').map(str::trim).filter(|tag| !tag.is_empty()).map(str::to_owned).collect();
        }
        let faults = faults(case, taken)?;
        if faults.is_empty() {
            return Ok(());
        }
        for fault in &faults {
            let _ = writeln!(out, "  not yet: {}", visible::inert(fault));
        }
        if flags.id.is_some() && flags.task.is_some() && !flags.tag.is_empty() {
            return Ok(());
        }
    }
}

/// One answer; an empty one takes what is offered. The end of the answers ends the questions.
fn question(what: &str, offered: &str, answers: &mut impl BufRead, out: &mut impl Write) -> Result<String, Failure> {
    let shown = if offered.is_empty() { String::new() } else { format!(" [{}]", visible::inert(offered)) };
    let _ = write!(out, "{what}{shown}: ");
    let _ = out.flush();
    let mut line = String::new();
    let read =
        answers.read_line(&mut line).map_err(|error| Failure::usage(anyhow!("cannot read an answer: {error}")))?;
    if read == 0 {
        return Err(Failure::usage(anyhow!("the answers ended before the case was whole; nothing was written")));
    }
    let answer = line.trim_end_matches(['\n', '\r']).trim();
    Ok(if answer.is_empty() { offered.to_owned() } else { answer.to_owned() })
}

/// Why the case is not fit, alone.
fn faults(case: &Case, taken: &BTreeSet<String>) -> Result<Vec<String>, Failure> {
    let mut faults = Vec::new();
    if taken.contains(&case.id) {
        faults.push(format!("the set has a case `{}` already; choose another id", case.id));
    }
    if !is_name(&case.id) {
        faults.push(format!("id `{}`: {NAME_RULE}", case.id));
    }
    faults.extend(check::faults_alone(case).into_iter().map(|(_, fault)| fault));
    let rows = proofs(&[CaseSet::loose("new", vec![case.clone()])])?;
    faults.extend(unproven(&rows).into_values().flatten());
    Ok(faults)
}

/// Adds a case to a set's file, in the form that sets are written in. What the set then holds must be no worse.
fn add(file: &Path, case: &Case, subset: Option<&str>) -> Result<(), Failure> {
    // A link leads to the set.
    let file = &file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let mut set = match std::fs::read_to_string(file) {
        Ok(text) => serde_json::from_str::<Value>(text.trim_start_matches('\u{FEFF}')).map_err(Failure::usage)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            if !is_name(&name) {
                return Err(Failure::usage(anyhow!("a set is called as its file; `{name}`: {NAME_RULE}")));
            }
            json!({ "schema": 1, "set": name, "about": "", "subsets": {}, "cases": [] })
        }
        Err(error) => return Err(Failure::usage(anyhow!("cannot read {}: {error}", file.display()))),
    };
    let known = if file.exists() { told(load::survey(file).map_err(Failure::usage)?) } else { Vec::new() };
    if let Some(cases) = set["cases"].as_array_mut() {
        cases.push(write::entry(case));
    }
    if let Some(subset) = subset {
        if set["subsets"].is_null() {
            set["subsets"] = json!({});
        }
        match &mut set["subsets"][subset] {
            Value::Array(ids) => ids.push(json!(case.id)),
            empty => *empty = json!([case.id]),
        }
    }
    let text = write::text(&set);
    let fixtures = Fixtures::new(load::fixtures_of(file.parent().unwrap_or(Path::new("."))));
    let (parsed, faults) = load::parse(file, text.as_bytes(), &fixtures);
    let then = told(Survey { sets: parsed.into_iter().collect(), faults, fixtures });
    match then.into_iter().find(|fault| !known.contains(fault)) {
        Some(fault) => Err(Failure::usage(anyhow!("with this case {} would not hold: {fault}", file.display()))),
        None => keep(Some(file), true, &text),
    }
}

/// What is wrong with a set, whatever the place.
fn told(survey: Survey) -> Vec<String> {
    let found = check::faults(&survey, &mut check::Pointer::default());
    survey.faults.into_iter().chain(found).map(|fault| fault.message).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags() -> NewFlags {
        let path = PathBuf::new();
        NewFlags {
            before: path.clone(),
            after: path,
            path: None,
            id: None,
            tag: Vec::new(),
            task: None,
            target: "line".to_owned(),
            may_stay: false,
            into: None,
            subset: None,
        }
    }

    fn tree(text: &str) -> Tree {
        [("a.txt".to_owned(), Node::File { bytes: text.as_bytes().into(), mode: DEFAULT_MODE })].into_iter().collect()
    }

    #[test]
    fn questions_come_again_until_the_case_holds() {
        let (before, after) = (tree("x = 1\ny = 2\n"), tree("x = 3\ny = 2\n"));
        let mut case = draft(&flags(), &before, &after, &before.changed_paths(&after));
        assert_eq!(case.target.as_ref().and_then(|target| target.line), Some(1));
        let (mut answers, mut out) = (&b"no good\nIn a.txt, change `z`.\n\nfine\n\nshape,other\n"[..], Vec::new());
        // The first round is refused; the second offers its task again and gets another id; then the answers end.
        ask(&mut case, &flags(), &BTreeSet::new(), &mut answers, &mut out).unwrap_err();
        let shown = String::from_utf8(out).unwrap();
        assert!(shown.contains("not yet: id `no good`") && shown.contains("not yet: the task quotes `z`"), "{shown}");
        let mut case = draft(&flags(), &before, &after, &before.changed_paths(&after));
        let (mut answers, mut out) = (&b"one-more\n\n\n"[..], Vec::new());
        ask(&mut case, &flags(), &BTreeSet::new(), &mut answers, &mut out).unwrap();
        assert_eq!((case.id.as_str(), case.tags.as_slice()), ("one-more", &["line-replaced".to_owned()][..]));
        assert_eq!(case.task, "In a.txt, change the line `x = 1` to `x = 3`.");
    }
}
