//! `gate RUN` and `report RUN`: judging and rendering what is recorded.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{Args, ValueEnum};

use super::run::FLOORS;
use super::{Exit, Failure, output};
use crate::record::{RunRecord, load};
use crate::report::summary::{Gate, Summary};
use crate::report::versus::{self, Strictness, Versus};
use crate::report::{html, markdown, terminal};
use crate::verdict::floor::Floors;
use crate::verdict::gate::Allowance;

/// What a run is judged by, besides its floors.
#[derive(Clone, Debug, Args)]
pub(super) struct Judging {
    /// An earlier run: attempts are compared one by one, and a significant loss fails
    #[arg(long, value_name = "RUN", env = "EDITGATE_AGAINST")]
    pub(super) against: Option<PathBuf>,
    /// Compare with it although cases, tools, prompts, settings or servers differ
    #[arg(long, env = "EDITGATE_ALLOW_MISMATCH", value_parser = clap::builder::BoolishValueParser::new())]
    allow_mismatch: bool,
    /// Approved cases (floors approve) must still pass
    #[arg(long, env = "EDITGATE_REQUIRE_APPROVED", value_parser = clap::builder::BoolishValueParser::new())]
    require_approved: bool,
    /// Exit 102 where nothing can be told
    #[arg(long, env = "EDITGATE_STRICT", value_parser = clap::builder::BoolishValueParser::new())]
    pub(super) strict: bool,
}

impl Judging {
    /// Judges a run by all that is asked for.
    pub(super) fn judge<'a>(
        &self,
        record: &'a RunRecord,
        floors: Option<&Floors>,
        allowance: Allowance,
        versus: Option<Versus>,
    ) -> Result<Summary<'a>, Failure> {
        let mut summary = Summary::new(&record.run, &record.rows, floors, allowance).map_err(Failure::usage)?;
        if self.require_approved {
            let approved = floors.filter(|floors| !floors.approved.is_empty());
            let approved = approved.ok_or_else(|| {
                Failure::usage(anyhow!("--require-approved: no case is approved; floors approve RUN… does it"))
            })?;
            summary = summary.requiring(approved, &record.rows);
        }
        if let Some(versus) = versus {
            summary = summary.against(versus);
        }
        Ok(summary)
    }

    /// The paired check that was asked for.
    pub(super) fn versus(&self, record: &RunRecord) -> Result<Option<Versus>, Failure> {
        let Some(base) = &self.against else {
            return Ok(None);
        };
        let base = load::load(base).map_err(Failure::usage)?;
        let versus = versus::against(&base, record, Strictness::default(), self.allow_mismatch);
        Ok(Some(versus.map_err(Failure::usage)?))
    }

    /// What a gate's word is to a script.
    pub(super) fn exit(&self, gate: &Gate) -> Exit {
        match gate {
            Gate::Passed { .. } | Gate::Ungated => Exit::Passed,
            Gate::Below { .. } | Gate::Fallen { .. } => Exit::BelowFloor,
            Gate::Regressed => Exit::Regressed,
            Gate::Inconclusive { .. } if self.strict => Exit::Inconclusive,
            Gate::Inconclusive { .. } => Exit::Passed,
            Gate::Incomplete { .. } => Exit::Incomplete,
        }
    }
}

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
    #[command(flatten)]
    judging: Judging,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Format {
    Terminal,
    Md,
    Html,
}

#[derive(Debug, Args)]
pub(super) struct ReportFlags {
    #[command(flatten)]
    gate: GateFlags,
    /// What to render
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
}

pub(super) fn gate(flags: &GateFlags) -> Result<Exit, Failure> {
    let (record, floors, allowance) = load_all(flags, flags.judging.against.is_none())?;
    let versus = flags.judging.versus(&record)?;
    let summary = flags.judging.judge(&record, floors.as_ref(), allowance, versus)?;
    output::data(&terminal::render(&summary))?;
    Ok(flags.judging.exit(&summary.gate))
}

pub(super) fn report(flags: &ReportFlags) -> Result<Exit, Failure> {
    let (record, floors, allowance) = load_all(&flags.gate, false)?;
    let versus = flags.gate.judging.versus(&record)?;
    let summary = flags.gate.judging.judge(&record, floors.as_ref(), allowance, versus)?;
    output::data(&match flags.format {
        Format::Terminal => terminal::render(&summary),
        Format::Md => markdown::render(&summary),
        Format::Html => {
            let told = load::transcripts(&flags.gate.run).map_err(Failure::usage)?;
            html::render(&summary, &record.rows, &told).map_err(|error| Failure::new(Exit::Internal, error))?
        }
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
