//! `gate RUN`, `report RUN`, and `floors`: judging and rendering what is recorded.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{Args, Subcommand, ValueEnum};

use super::run::FLOORS;
use super::{Exit, Failure, output};
use crate::record::run_file::set_name;
use crate::record::{RunRecord, Status, load};
use crate::report::summary::{Gate, Summary};
use crate::report::{markdown, terminal};
use crate::verdict::floor::{Floor, Floors};
use crate::verdict::gate::{Allowance, Judgement};

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

#[derive(Debug, Subcommand)]
pub(super) enum FloorsCommand {
    /// Show the floors
    Show {
        /// File of floors
        #[arg(long, value_name = "FILE", env = "EDITGATE_FLOORS", default_value = FLOORS)]
        floors: PathBuf,
    },
    /// Set the floor of every cell of a run to its measured pass count
    Set {
        /// A run directory
        run: PathBuf,
        /// File of floors; made if it is not there
        #[arg(long, value_name = "FILE", env = "EDITGATE_FLOORS", default_value = FLOORS)]
        floors: PathBuf,
    },
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

pub(super) fn floors(command: &FloorsCommand) -> Result<Exit, Failure> {
    match command {
        FloorsCommand::Show { floors } => show(floors),
        FloorsCommand::Set { run, floors } => set(run, floors),
    }
}

fn show(path: &Path) -> Result<Exit, Failure> {
    let floors = Floors::load(path).map_err(Failure::usage)?;
    let mut rows =
        vec![["model", "tool", "set", "prompt", "floor", "of", "method", "cases"].map(str::to_owned).to_vec()];
    for floor in &floors.floors {
        rows.push(vec![
            floor.model.clone(),
            floor.tool.clone(),
            set_name(&floor.set, floor.subset.as_deref()),
            floor.prompt.clone(),
            floor.floor.to_string(),
            floor.n.to_string(),
            floor.method.clone(),
            floor.digest.chars().take(12).collect(),
        ]);
    }
    output::data(&output::table(rows))?;
    Ok(Exit::Passed)
}

fn set(run: &Path, path: &Path) -> Result<Exit, Failure> {
    let record = load::load(run).map_err(Failure::usage)?;
    if record.run.status != Status::Complete {
        return Err(Failure::new(
            Exit::Incomplete,
            anyhow!("{}: the run is not complete, and a floor needs a whole one", run.display()),
        ));
    }
    let mut floors = if path.exists() { Floors::load(path).map_err(Failure::usage)? } else { Floors::default() };
    let summary = Summary::new(&record.run, &record.rows, None, Allowance::Count(0)).map_err(Failure::usage)?;
    let mut rows = vec![["cell", "floor", "of"].map(str::to_owned).to_vec()];
    for cell in &summary.cells {
        if let Judgement::Incomplete { why } = &cell.judgement {
            return Err(Failure::new(
                Exit::Incomplete,
                anyhow!("{}: {why}; a floor needs a whole cell", cell.plan.title()),
            ));
        }
        if cell.plan.narrowed {
            return Err(Failure::usage(anyhow!(
                "{}: a filter left cases out, and a floor speaks of a whole set or subset",
                cell.plan.title()
            )));
        }
        floors.set(Floor {
            model: cell.plan.model.clone(),
            tool: cell.plan.tool.clone(),
            set: cell.plan.set.clone(),
            subset: cell.plan.subset.clone(),
            prompt: cell.plan.prompt.clone(),
            digest: cell.plan.digest.clone(),
            conditions: Some(cell.plan.conditions.clone()),
            n: cell.plan.attempts(),
            floor: cell.totals.passed,
            passed: Some(cell.totals.passed),
            runs: vec![record.run.id.clone()],
            method: "measured once".to_owned(),
            false_alarm: None,
        });
        rows.push(vec![cell.plan.title(), cell.totals.passed.to_string(), cell.plan.attempts().to_string()]);
    }
    floors.write(path).map_err(Failure::unwritable)?;
    output::data(&format!("{}\nwritten to {}\n", output::table(rows), path.display()))?;
    Ok(Exit::Passed)
}
