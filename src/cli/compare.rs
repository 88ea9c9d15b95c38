//! `compare RUN…`: what was lost and gained between runs, models or tools, and whether that can be chance.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, ValueEnum};

use super::{Exit, Failure, output};
use crate::record::{RunRecord, load};
use crate::report::compared::{self, Compared};
use crate::report::versus::{self, By, Strictness};
use crate::verdict::paired::Outcome;

#[derive(Debug, Args)]
pub(super) struct CompareFlags {
    /// Run directories: the first is the base
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// What is compared [default: models or tools where the runs have different ones, else runs]
    #[arg(long, value_enum)]
    by: Option<Word>,
    /// The chance of a false alarm that is accepted
    #[arg(long, value_name = "P", default_value_t = 0.05)]
    alpha: f64,
    /// A difference of the rates that would matter; what is surely smaller counts as none
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    margin: f64,
    /// Compare although cases, tools, prompts, settings or servers differ
    #[arg(long)]
    allow_mismatch: bool,
    /// Exit 102 where the comparison is inconclusive
    #[arg(long)]
    strict: bool,
    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Word {
    Run,
    Model,
    Tool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Terminal,
    Md,
    Json,
}

pub(super) fn main(flags: &CompareFlags) -> Result<Exit, Failure> {
    for (name, value) in [("--alpha", flags.alpha), ("--margin", flags.margin)] {
        if !(value > 0.0 && value < 1.0) {
            return Err(Failure::usage(anyhow!("{name} {value}: a share such as 0.05")));
        }
    }
    let records: Vec<RunRecord> =
        flags.runs.iter().map(|run| load::load(run)).collect::<Result<_, _>>().map_err(Failure::usage)?;
    let by = match flags.by {
        Some(Word::Run) => By::Run,
        Some(Word::Model) => By::Model,
        Some(Word::Tool) => By::Tool,
        None => versus::usual(&records),
    };
    let strictness = Strictness { alpha: flags.alpha, margin: flags.margin };
    let compared = Compared::new(&records, by, strictness, flags.allow_mismatch).map_err(Failure::usage)?;
    output::data(&match flags.format {
        Format::Terminal => compared::terminal(&compared),
        Format::Md => compared::markdown(&compared),
        Format::Json => compared::json(&compared).map_err(|error| Failure::new(Exit::Internal, error))?,
    })?;
    // The base is the first one: what the others are among themselves is no regression.
    let against = compared.pairs.iter().filter(|pair| pair.base == compared.standings[0].name);
    let outcomes: Vec<Outcome> = against.map(|pair| pair.verdict).collect();
    Ok(exit(&outcomes, flags.strict))
}

/// What comparisons with a base are to a script.
pub(super) fn exit(outcomes: &[Outcome], strict: bool) -> Exit {
    if outcomes.contains(&Outcome::Regressed) {
        Exit::Regressed
    } else if strict && outcomes.contains(&Outcome::Inconclusive) {
        Exit::Inconclusive
    } else {
        Exit::Passed
    }
}
