//! Looking at case sets, proving them, and making new ones.

mod check;
mod mine;
mod new;
mod vary;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde_json::Value;

use super::{Exit, Failure, output};
use crate::case::load;
use crate::case::select::{SelectError, Selected, Selection, select};
use crate::case::{Case, CaseSet, Node, Source, Split};
use crate::record::Row;
use crate::run::prove::prove;
use crate::text::{LineModel, diff, lines, visible};
use crate::workspace::write;

/// Which cases take part.
#[derive(Clone, Debug, Default, Args)]
pub(in crate::cli) struct CaseFlags {
    /// Directory of case sets, or one file [default: cases]
    #[arg(long, value_name = "PATH", env = "EDITGATE_CASES")]
    pub(in crate::cli) cases: Option<PathBuf>,
    /// Only this set; may be repeated
    #[arg(long, value_name = "NAME", env = "EDITGATE_SET", value_delimiter = ',')]
    pub(in crate::cli) set: Vec<String>,
    /// Only this subset of each set
    #[arg(long, value_name = "NAME", env = "EDITGATE_SUBSET")]
    pub(in crate::cli) subset: Option<String>,
    /// Only cases whose id matches; may be repeated
    #[arg(long, value_name = "GLOB", env = "EDITGATE_CASE")]
    pub(in crate::cli) case: Vec<String>,
    /// Only cases with this tag; may be repeated
    #[arg(long, value_name = "TAG", env = "EDITGATE_TAG", value_delimiter = ',')]
    pub(in crate::cli) tag: Vec<String>,
    /// Leave out cases whose id matches; may be repeated
    #[arg(long, value_name = "GLOB", env = "EDITGATE_EXCLUDE")]
    pub(in crate::cli) exclude: Vec<String>,
    /// Only public or only held-out cases
    #[arg(long, value_name = "SPLIT", env = "EDITGATE_SPLIT", value_parser = ["public", "held-out"])]
    pub(in crate::cli) split: Option<String>,
    /// At most so many cases
    #[arg(long, value_name = "N", env = "EDITGATE_LIMIT")]
    pub(in crate::cli) limit: Option<usize>,
}

impl CaseFlags {
    pub(in crate::cli) fn selection(&self) -> Selection {
        // An empty variable of the environment names nothing.
        let named = |names: &[String]| names.iter().filter(|name| !name.is_empty()).cloned().collect();
        Selection {
            sets: named(&self.set),
            subset: self.subset.clone().filter(|name| !name.is_empty()),
            cases: named(&self.case),
            tags: named(&self.tag),
            exclude: named(&self.exclude),
            split: Split::ALL.into_iter().find(|split| self.split.as_deref() == Some(split.name())),
            limit: self.limit,
        }
    }

    pub(in crate::cli) fn load(&self) -> Result<Vec<CaseSet>, Failure> {
        let path = self.cases.clone().unwrap_or_else(|| PathBuf::from("cases"));
        load::load(&path).map_err(Failure::usage)
    }
}

/// The exit code of a selection that failed.
pub(super) fn select_failure(error: SelectError) -> Failure {
    let exit = match error {
        SelectError::NothingMatched { .. } => Exit::NothingMatched,
        _ => Exit::Usage,
    };
    Failure::new(exit, error)
}

#[derive(Debug, Subcommand)]
pub(super) enum CasesCommand {
    /// List sets with their subsets and tags, or cases (with --set, --subset, --case or --tag)
    List(CaseFlags),
    /// Prove every set: schema, ids, subsets, words of tasks, targets, and the expected bytes through every tool
    Check(check::CheckFlags),
    /// Derive byte variants of cases (CRLF, BOM, tabs, …), paired with their originals, as a new set
    Vary(vary::VaryFlags),
    /// Make a set from the history of a git repository
    Mine(mine::MineFlags),
    /// Turn files before and after into a case: shows the change, words the task, proves the case; asks on a terminal
    New(new::NewFlags),
    /// Show cases whole: task, files with every byte visible, and the change
    Show {
        /// Ids or globs
        #[arg(required = true)]
        ids: Vec<String>,
        #[command(flatten)]
        flags: CaseFlags,
    },
}

pub(super) fn main(command: CasesCommand) -> Result<Exit, Failure> {
    match command {
        CasesCommand::List(flags) => list(&flags),
        CasesCommand::Check(flags) => check::main(&flags),
        CasesCommand::Vary(flags) => vary::main(&flags),
        CasesCommand::New(flags) => new::main(&flags),
        CasesCommand::Mine(flags) => mine::main(&flags),
        CasesCommand::Show { ids, mut flags } => {
            flags.case = ids;
            show(&flags)
        }
    }
}

/// A new set may be called so.
fn named(name: &str) -> Result<(), Failure> {
    if load::is_name(name) { Ok(()) } else { Err(Failure::usage(anyhow!("--name {name}: {}", load::NAME_RULE))) }
}

/// What came of each case through each tool.
fn proofs(sets: &[CaseSet]) -> Result<Vec<Row>, Failure> {
    prove(sets).map_err(|error| Failure::new(Exit::Internal, anyhow!("cannot prove: {error}")))
}

/// A new set goes to its file, or to stdout. What is there is not lost unless it is meant to be.
fn keep(out: Option<&Path>, force: bool, text: &str) -> Result<(), Failure> {
    let Some(path) = out else {
        return output::data(text);
    };
    if path.exists() && !force {
        let error = anyhow!("{} is there already; name another file, or replace it with --force", path.display());
        return Err(Failure::usage(error));
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let made = parent.map_or(Ok(()), std::fs::create_dir_all);
    made.and_then(|()| write::output(path, text.as_bytes()))
        .map_err(|error| Failure::unwritable(anyhow!("cannot write {}: {error}", path.display())))
}

fn list(flags: &CaseFlags) -> Result<Exit, Failure> {
    let sets = flags.load()?;
    let selection = flags.selection();
    let selected = select(&sets, &selection).map_err(select_failure)?;
    let by_case = !(selection.sets.is_empty()
        && selection.subset.is_none()
        && selection.cases.is_empty()
        && selection.tags.is_empty()
        && selection.exclude.is_empty()
        && selection.split.is_none()
        && selection.limit.is_none());
    let text = if by_case { case_table(&selected) } else { set_tables(&selected) };
    output::data(&visible::inert(&text))?;
    Ok(Exit::Passed)
}

fn set_tables(selected: &[Selected<'_>]) -> String {
    let mut rows =
        vec![["set", "cases", "held out", "subsets", "formats", "digest", "about"].map(str::to_owned).to_vec()];
    for chosen in selected {
        let subsets: Vec<String> =
            chosen.set.subsets.iter().map(|(name, ids)| format!("{name} {}", ids.len())).collect();
        rows.push(vec![
            chosen.set.name.clone(),
            chosen.cases.len().to_string(),
            chosen.cases.iter().filter(|case| case.split() == Split::HeldOut).count().to_string(),
            subsets.join(", "),
            formats(&chosen.cases).to_string(),
            chosen.digest()[..12].to_owned(),
            chosen.set.about.clone(),
        ]);
    }
    let mut text = output::table(rows);
    let mut rows = vec![["set", "tag", "cases"].map(str::to_owned).to_vec()];
    for chosen in selected {
        let mut tags: BTreeMap<&str, usize> = BTreeMap::new();
        for tag in chosen.cases.iter().flat_map(|case| &case.tags) {
            *tags.entry(tag).or_default() += 1;
        }
        rows.extend(
            tags.into_iter().map(|(tag, count)| vec![chosen.set.name.clone(), tag.to_owned(), count.to_string()]),
        );
    }
    text.push('\n');
    text.push_str(&output::table(rows));
    let all: Vec<&Case> = selected.iter().flat_map(|chosen| chosen.cases.iter().copied()).collect();
    text.push_str(&format!("\n{} cases in {} sets, {} formats\n", all.len(), selected.len(), formats(&all)));
    text
}

fn formats(cases: &[&Case]) -> usize {
    let mut all: Vec<String> = cases.iter().flat_map(|case| case.formats()).collect();
    all.sort();
    all.dedup();
    all.len()
}

fn case_table(selected: &[Selected<'_>]) -> String {
    let mut rows = vec![["set", "case", "tags", "task"].map(str::to_owned).to_vec()];
    for chosen in selected {
        for case in &chosen.cases {
            rows.push(vec![
                chosen.set.name.clone(),
                case.id.clone(),
                case.tags.join(", "),
                visible::excerpt(&case.task, 90),
            ]);
        }
    }
    output::table(rows)
}

fn show(flags: &CaseFlags) -> Result<Exit, Failure> {
    let sets = flags.load()?;
    let selected = select(&sets, &flags.selection()).map_err(select_failure)?;
    let mut text = String::new();
    for chosen in &selected {
        for case in &chosen.cases {
            text.push_str(&case_page(chosen.set, case));
        }
    }
    output::data(&visible::inert(&text))?;
    Ok(Exit::Passed)
}

fn case_page(set: &CaseSet, case: &Case) -> String {
    let mut text = format!(
        "{} / {} ({})\ntags: {}\ntask: {}\n",
        set.name,
        case.id,
        case.split().name(),
        case.tags.join(", "),
        visible::inert(&case.task)
    );
    if let Some(variant) = &case.variant {
        text.push_str(&format!("variant of {}: {}\n", variant.of, variant.bytes.meaning()));
    }
    if let Some(source) = &case.source {
        let Source { repository, commit, path, license } = source;
        text.push_str(&format!("from {repository}, commit {commit}, {path} ({license})\n"));
    }
    for (path, bytes) in &case.seen {
        text.push_str(&format!("\nseen earlier: {path}\n{}", numbered(bytes)));
    }
    for (path, node) in case.files.iter() {
        match node {
            Node::File { bytes, mode } => {
                text.push_str(&format!("\nfile: {path} (mode {mode:04o})\n{}", numbered(bytes)))
            }
            Node::Symlink { target } => text.push_str(&format!("\nlink: {path} -> {target}\n")),
            Node::Directory | Node::Other => {}
        }
    }
    for (path, node) in case.outside.iter() {
        match node {
            Node::File { bytes, .. } => {
                text.push_str(&format!("\nbeside the workspace: {path}\n{}", numbered(bytes)));
            }
            Node::Symlink { target } => text.push_str(&format!("\nlink beside the workspace: {path} -> {target}\n")),
            Node::Directory | Node::Other => {}
        }
    }
    for rewrite in &case.then {
        for (path, node) in &rewrite.files {
            if let Node::File { bytes, .. } = node {
                text.push_str(&format!(
                    "\nafter {} {}: {path} becomes\n{}",
                    rewrite.after.name(),
                    rewrite.nth,
                    numbered(bytes)
                ));
            }
        }
    }
    let base = case.final_base();
    for (index, accepted) in case.accepted_from(&base).iter().enumerate() {
        let changed = base.changed_paths(accepted);
        let name = if case.accepted.len() > 1 { format!("accepted {}", index + 1) } else { "expected".to_owned() };
        if changed.is_empty() {
            text.push_str(&format!("\n{name}: everything as it was\n"));
        }
        for path in changed {
            let change = match (base.bytes(&path), accepted.get(&path)) {
                (before, Some(Node::File { bytes, mode })) => {
                    let had = matches!(base.get(&path), Some(Node::File { mode: had, .. }) if had != mode);
                    let mode = if had { format!("mode {mode:04o}\n") } else { String::new() };
                    mode + &diff::unified(before.unwrap_or_default(), bytes, 2, 200, 400)
                }
                (_, Some(Node::Symlink { target })) => format!("link -> {target}"),
                // A directory comes with its files.
                (_, Some(Node::Directory | Node::Other)) => continue,
                (_, None) => "deleted".to_owned(),
            };
            text.push_str(&format!("\n{name}: {path}\n{change}\n"));
        }
    }
    if let Some(target) = &case.target {
        let line = target.line.map(|line| format!(", line {line}")).unwrap_or_default();
        let find =
            target.find.as_ref().map(|find| format!(", find {}", Value::from(find.as_str()))).unwrap_or_default();
        let content = Value::from(target.content.as_str());
        text.push_str(&format!("\ntarget: {}{line}{find}, content {content}\n", target.path));
    }
    text.push('\n');
    text
}

fn numbered(bytes: &[u8]) -> String {
    lines(bytes, LineModel::Lm3)
        .enumerate()
        .map(|(index, line)| format!("{:>4}  {}\n", index + 1, visible::line(&line)))
        .collect()
}
