//! `cases mine`: cases from the history of a git repository.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;

use super::{keep, named, proofs};
use crate::case::describe::Shape;
use crate::case::history::{HistoryError, Repository};
use crate::case::mine::{Miner, Wish};
use crate::case::secrets::{PERMISSIVE, Secrets, accepts, license_of, together};
use crate::case::{Case, CaseSet, write};
use crate::cli::{Exit, Failure, output};
use crate::run::prove::unproven;

/// What stands for a repository that has no licence file, for those who mine their own.
const UNLICENSED: &str = "unlicensed";

#[derive(Debug, Args)]
pub(in crate::cli) struct MineFlags {
    /// A git repository, or a directory in one; the whole of it is looked at
    repository: PathBuf,
    /// So many cases
    #[arg(long, value_name = "N", default_value_t = 200)]
    count: usize,
    /// The same seed and commit give the same cases
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Only these: line-replaced, lines-replaced, lines-deleted, lines-inserted [default: all]
    #[arg(long, value_name = "SHAPE", value_delimiter = ',', value_parser = parse_shape)]
    shape: Vec<Shape>,
    /// Only files with this extension; may be repeated
    #[arg(long, value_name = "EXT", value_delimiter = ',')]
    ext: Vec<String>,
    /// Lines of a file at least
    #[arg(long, value_name = "N", default_value_t = 2)]
    min_lines: usize,
    /// Lines of a file at most
    #[arg(long, value_name = "N", default_value_t = 150)]
    max_lines: usize,
    /// Lines that change, at most
    #[arg(long, value_name = "N", default_value_t = 4)]
    max_changed: usize,
    /// Cases from one file of the repository, at most
    #[arg(long, value_name = "N", default_value_t = 3)]
    per_file: usize,
    /// Look at so many commits, newest first
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    max_commits: usize,
    /// A licence (SPDX identifier) to accept besides the permissive ones; `unlicensed` = a repository of your own that has none
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    accept_license: Vec<String>,
    /// Name of the new set [default: mined-REPOSITORY]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// File of the new set [default: stdout]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the file if it is there
    #[arg(long, requires = "out")]
    force: bool,
}

fn parse_shape(name: &str) -> Result<Shape, String> {
    let known = || Shape::ALL.map(Shape::name).join(", ");
    Shape::named(name).ok_or_else(|| format!("there is no such shape; there are: {}", known()))
}

pub(super) fn main(flags: &MineFlags) -> Result<Exit, Failure> {
    if flags.min_lines > flags.max_lines || flags.count == 0 {
        return Err(Failure::usage(anyhow!(
            "--min-lines is over --max-lines, or --count is 0: there would be no case"
        )));
    }
    let repository = Repository::open(&flags.repository).map_err(Failure::usage)?;
    let accepted: Vec<String> =
        PERMISSIVE.iter().map(|id| (*id).to_owned()).chain(flags.accept_license.iter().cloned()).collect();
    let files = repository.licenses().map_err(Failure::usage)?;
    let license = license(&files, &accepted)?;
    // What has a licence file of its own may be under another one.
    let licensed = files.iter().filter(|(_, text)| text.is_none());
    let licensed = licensed.filter_map(|(path, _)| Some(format!("{}/", path.rsplit_once('/')?.0))).collect();
    let plain: String =
        repository.name().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect::<String>();
    let name = flags.name.clone().unwrap_or_else(|| format!("mined-{}", plain.trim_matches('-')));
    named(&name)?;
    let wish = Wish {
        shapes: if flags.shape.is_empty() { Shape::ALL.to_vec() } else { flags.shape.clone() },
        lines: flags.min_lines..=flags.max_lines,
        changed: flags.max_changed,
        per_file: flags.per_file,
        extensions: flags.ext.iter().map(|ext| ext.trim_start_matches('.').to_lowercase()).collect(),
    };
    let secrets = Secrets::new(&accepted).map_err(|error| Failure::new(Exit::Internal, error))?;
    let mut miner = Miner::new(wish, flags.seed, repository.name(), license.clone(), secrets, licensed);
    let seen = dig(&repository, &mut miner, flags).map_err(Failure::usage)?;
    let left_out = miner.left_out.clone();
    let (cases, unproven) = proven(&name, miner.into_cases())?;
    for (why, count) in &left_out {
        output::message(&format!("left out: {count} ({why})"));
    }
    if unproven > 0 {
        output::message(&format!("left out: {unproven} (no tool reaches the expected bytes)"));
    }
    if cases.is_empty() {
        let error =
            anyhow!("none of {seen} changed files gives a case of that kind; widen --shape, --ext or --max-lines");
        return Err(Failure::new(Exit::NothingMatched, error));
    }
    let about = format!("Changes from the history of {} ({license}), seed {}.", repository.name(), flags.seed);
    keep(flags.out.as_deref(), flags.force, &write::set(&name, &about, &BTreeMap::new(), &cases))?;
    let short = match cases.len() < flags.count {
        true => format!(", {} asked for: the history has no more that are fit", flags.count),
        false => String::new(),
    };
    output::message(&format!("{} cases from {seen} changed files, checked through every tool{short}", cases.len()));
    Ok(Exit::Passed)
}

/// Reads changes in the seeded order until there are enough cases. Returns how many were looked at.
fn dig(repository: &Repository, miner: &mut Miner, flags: &MineFlags) -> Result<usize, HistoryError> {
    let mut changes = repository.changes(flags.max_commits)?;
    changes.sort_by_cached_key(|change| miner.rank(change));
    let mut contents = repository.contents()?;
    let mut seen = 0;
    for change in &changes {
        if miner.cases().len() == flags.count {
            break;
        }
        if !miner.wants(&change.path) {
            continue;
        }
        seen += 1;
        if let (Some(before), Some(after)) = (contents.read(&change.before)?, contents.read(&change.after)?) {
            miner.take(change, &before, &after);
        }
    }
    Ok(seen)
}

/// What the licence files at the top say, if it may be used.
fn license(all: &[(String, Option<String>)], accepted: &[String]) -> Result<String, Failure> {
    let files: Vec<(&str, &str)> =
        all.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?))).collect();
    let own = accepted.iter().any(|id| id == UNLICENSED);
    if files.is_empty() && own {
        return Ok(UNLICENSED.to_owned());
    }
    let known: Vec<&str> = files.iter().filter_map(|(_, text)| license_of(text)).collect();
    let expression = together(&known);
    if !known.is_empty() && known.len() == files.len() && accepts(accepted, &expression) {
        return Ok(expression);
    }
    let unknown = files.iter().filter(|(_, text)| license_of(text).is_none());
    let names: Vec<&str> = unknown.map(|(name, _)| *name).collect();
    Err(Failure::usage(match (files.is_empty(), known.len() < files.len()) {
        (true, _) => anyhow!(
            "no licence file at the top of the repository says that its text may be copied; if it is your own, say \
             --accept-license {UNLICENSED}"
        ),
        (_, true) => {
            anyhow!("the licence in {} is not known here, so nothing is taken from the repository", names.join(", "))
        }
        _ => anyhow!("the licence is {expression}; if that suits you, say --accept-license {}", known.join(",")),
    }))
}

/// The cases whose bytes every tool that can express them reaches, and how many are not.
fn proven(name: &str, cases: Vec<Case>) -> Result<(Vec<Case>, usize), Failure> {
    let sets = [CaseSet::loose(name, cases)];
    let rows = proofs(&sets)?;
    let unproven = unproven(&rows);
    let [set] = sets;
    let right = |case: &Case| !unproven.contains_key(&(name, case.id.as_str()));
    Ok((set.cases.into_iter().filter(right).collect(), unproven.len()))
}
