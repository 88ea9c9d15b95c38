//! `history add|show`: one line a cell and run, and the trend that is rebuilt from it.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{Args, Subcommand};

use super::gate::put_all;
use super::run::FLOORS;
use super::{Exit, Failure, output};
use crate::record::history::{self, HistoryError};
use crate::record::load;
use crate::record::run_file::set_name;
use crate::report::trend;
use crate::verdict::floor::Floors;

const HISTORY: &str = "reports/history.jsonl";

#[derive(Debug, Subcommand)]
pub(super) enum HistoryCommand {
    /// Add the cells of runs, and rebuild TREND.md, its charts and badge.json beside the history
    Add(Add),
    /// Show the history
    Show {
        /// File of the history
        #[arg(long, value_name = "FILE", env = "EDITGATE_HISTORY", default_value = HISTORY)]
        history: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(super) struct Add {
    /// Run directories; none: only rebuild
    runs: Vec<PathBuf>,
    /// File of the history; made if it is not there
    #[arg(long, value_name = "FILE", env = "EDITGATE_HISTORY", default_value = HISTORY)]
    history: PathBuf,
    /// File of floors, for the floor each cell was judged by [default: reports/floors.json, where there is one]
    #[arg(long, value_name = "FILE", env = "EDITGATE_FLOORS")]
    floors: Option<PathBuf>,
}

pub(super) fn main(command: &HistoryCommand) -> Result<Exit, Failure> {
    match command {
        HistoryCommand::Add(flags) => add(flags),
        HistoryCommand::Show { history } => show(history),
    }
}

fn failure(error: HistoryError) -> Failure {
    match error {
        HistoryError::Io { .. } => Failure::unwritable(error),
        HistoryError::Broken(_) => Failure::usage(error),
    }
}

fn add(flags: &Add) -> Result<Exit, Failure> {
    let usual = Path::new(FLOORS);
    let path = flags.floors.as_deref().or(usual.exists().then_some(usual));
    let floors = path.map(Floors::load).transpose().map_err(Failure::usage)?.unwrap_or_default();
    let mut entries = Vec::new();
    for directory in &flags.runs {
        let record = load::load(directory).map_err(Failure::usage)?;
        // A floor of other cases judged nothing here.
        let mine = history::of_run(&record, |cell| floors.of(cell).ok().flatten().map(|floor| floor.floor));
        if mine.is_empty() {
            let why = "no cell of it was run whole and to its end";
            return Err(Failure::new(Exit::Incomplete, anyhow!("{}: {why}", directory.display())));
        }
        entries.extend(mine);
    }
    let added = history::append(&flags.history, &entries).map_err(failure)?;
    let all = history::load(&flags.history).map_err(failure)?;
    let beside = flags.history.parent().unwrap_or(Path::new(""));
    put_all(beside, trend::render(&all).map_err(|error| Failure::new(Exit::Internal, error))?)?;
    output::data(&format!(
        "{}: {added} lines added, {} in all\n{} rebuilt\n",
        flags.history.display(),
        all.len(),
        beside.join("TREND.md").display()
    ))?;
    Ok(Exit::Passed)
}

fn show(path: &Path) -> Result<Exit, Failure> {
    let entries = history::load(path).map_err(failure)?;
    if entries.is_empty() {
        return Err(Failure::usage(anyhow!("{}: no history; history add RUN… begins one", path.display())));
    }
    let heads = ["made", "run", "model", "tool", "set", "prompt", "passed", "of", "errors", "harm", "floor"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(entries.iter().map(|entry| {
        vec![
            entry.made.clone(),
            entry.run.clone(),
            entry.model.clone(),
            entry.tool.clone(),
            set_name(&entry.set, entry.subset.as_deref()),
            entry.prompt.clone(),
            entry.passed.to_string(),
            entry.planned.to_string(),
            entry.errors.to_string(),
            entry.harm.to_string(),
            entry.floor.map_or("–".to_owned(), |floor| floor.to_string()),
        ]
    }));
    output::data(&output::table(rows))?;
    Ok(Exit::Passed)
}
