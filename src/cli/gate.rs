//! `gate RUN` and `report RUN`: judging and rendering what is recorded.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{Args, ValueEnum};

use super::run::FLOORS;
use super::{Exit, Failure, output};
use crate::record::{RunRecord, load};
use crate::report::summary::{Gate, Summary};
use crate::report::{markdown, terminal};
use crate::verdict::floor::Floors;
use crate::verdict::gate::Allowance;

#[derive(Debug, Args)]
pub(super) struct GateFlags {
    /// A run directory
    run: PathBuf,
    /// File of floors [default: reports/floors.json]
    #[arg(long, value_name = "FILE", env = "EDITGATE_FLOORS")]
    floors: Option<PathBuf>,
    /// Infrastructure errors allowed: a number, or a share such as 0.1
    #[arg(long, value_name = "N|RATE", env = "EDITGATE_FAIL_ON_ERROR", default_value = "0")]
    fail_on_error: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Format {
    Terminal,
    Md,
}

#[derive(Debug, Args)]
pub(super) struct ReportFlags {
    #[command(flatten)]
    gate: GateFlags,
    /// What to render
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
}

/// What a gate's word is to a script.
pub(super) fn exit_of(gate: &Gate) -> Exit {
    match gate {
        Gate::Passed { .. } | Gate::Ungated => Exit::Passed,
        Gate::Below { .. } => Exit::BelowFloor,
        Gate::Incomplete { .. } => Exit::Incomplete,
    }
}

pub(super) fn gate(flags: &GateFlags) -> Result<Exit, Failure> {
    let (record, floors, allowance) = load_all(flags, true)?;
    let summary = Summary::new(&record.run, &record.rows, floors.as_ref(), allowance).map_err(Failure::usage)?;
    output::data(&terminal::render(&summary))?;
    Ok(exit_of(&summary.gate))
}

pub(super) fn report(flags: &ReportFlags) -> Result<Exit, Failure> {
    let (record, floors, allowance) = load_all(&flags.gate, false)?;
    let summary = Summary::new(&record.run, &record.rows, floors.as_ref(), allowance).map_err(Failure::usage)?;
    output::data(&match flags.format {
        Format::Terminal => terminal::render(&summary),
        Format::Md => markdown::render(&summary),
    })?;
    Ok(Exit::Passed)
}

/// A gate needs its floors; a report shows them where they are.
fn load_all(flags: &GateFlags, needed: bool) -> Result<(RunRecord, Option<Floors>, Allowance), Failure> {
    let record = load::load(&flags.run).map_err(Failure::usage)?;
    let path = flags.floors.as_deref().unwrap_or(Path::new(FLOORS));
    let floors = if needed || flags.floors.is_some() || path.exists() {
        Some(Floors::load(path).map_err(Failure::usage)?)
    } else {
        None
    };
    let allowance = Allowance::parse(&flags.fail_on_error)
        .map_err(|reason| Failure::usage(anyhow!("--fail-on-error {}: {reason}", flags.fail_on_error)))?;
    Ok((record, floors, allowance))
}
