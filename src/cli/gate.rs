//! `gate RUN` and `report RUN`: judging and rendering what is recorded.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{Args, ValueEnum};

use super::run::FLOORS;
use super::{Exit, Failure, output};
use crate::record::{Row, RunRecord, Transcript, load};
use crate::report::files::{self, Kind};
use crate::report::summary::{Gate, Summary};
use crate::report::versus::{self, Strictness, Versus};
use crate::report::{github, html, json, junit, markdown, terminal};
use crate::verdict::floor::Floors;
use crate::verdict::gate::Allowance;
use crate::workspace::write;

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
    Junit,
    Json,
    /// Annotations on stdout; the report goes to $GITHUB_STEP_SUMMARY, the comment to the file named with --comment
    Github,
}

#[derive(Debug, Args)]
pub(super) struct ReportFlags {
    #[command(flatten)]
    gate: GateFlags,
    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
    /// Write report.md with its charts, report.html, junit.xml and summary.json into this directory instead
    #[arg(long, value_name = "DIR", conflicts_with = "format")]
    out: Option<PathBuf>,
    /// With --format github: file for the comment of a pull request
    #[arg(long, value_name = "FILE")]
    comment: Option<PathBuf>,
    /// Names the suite in the comment's hidden marker, so that each suite has one comment
    #[arg(long, value_name = "NAME", default_value = "gate")]
    suite: String,
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
    if let Some(directory) = &flags.out {
        let told = load::transcripts(&flags.gate.run).map_err(Failure::usage)?;
        let kinds = [Kind::Md, Kind::Html, Kind::Junit, Kind::Json];
        for path in write_files(directory, &kinds, &summary, &record.rows, &told)? {
            output::data(&format!("{}\n", path.display()))?;
        }
        return Ok(Exit::Passed);
    }
    output::data(&match flags.format {
        Format::Terminal => terminal::render(&summary),
        Format::Md => markdown::render(&summary, None),
        Format::Json => json::render(&summary).map_err(internal)?,
        Format::Junit => junit::render(&summary, &record.rows).map_err(internal)?,
        Format::Github => for_github(flags, &summary)?,
        Format::Html => {
            let told = load::transcripts(&flags.gate.run).map_err(Failure::usage)?;
            html::render(&summary, &record.rows, &told).map_err(internal)?
        }
    })?;
    Ok(Exit::Passed)
}

fn internal(error: impl Into<anyhow::Error>) -> Failure {
    Failure::new(Exit::Internal, error)
}

/// Writes files of a report, and says which.
pub(super) fn write_files(
    directory: &Path,
    kinds: &[Kind],
    summary: &Summary<'_>,
    rows: &[Row],
    told: &[Transcript],
) -> Result<Vec<PathBuf>, Failure> {
    put_all(directory, files::render(kinds, summary, rows, told).map_err(internal)?)
}

/// Writes rendered files below a directory, and says which.
pub(super) fn put_all(directory: &Path, rendered: Vec<(String, String)>) -> Result<Vec<PathBuf>, Failure> {
    let mut written = Vec::new();
    for (name, text) in rendered {
        let path = directory.join(name);
        let unwritable =
            |error: std::io::Error| Failure::unwritable(anyhow!("cannot write {}: {error}", path.display()));
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(unwritable)?;
        }
        write::output(&path, text.as_bytes()).map_err(unwritable)?;
        written.push(path);
    }
    Ok(written)
}

/// Appends to the step summary where there is one, writes the comment where it is asked for, and gives the annotations.
fn for_github(flags: &ReportFlags, summary: &Summary<'_>) -> Result<String, Failure> {
    if let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        let file = std::fs::OpenOptions::new().append(true).create(true).open(&path);
        let text = format!("{}\n", github::step_summary(summary));
        file.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))
            .map_err(|error| Failure::unwritable(anyhow!("cannot write {}: {error}", path.display())))?;
    }
    if let Some(path) = &flags.comment {
        write::output(path, github::comment(summary, &flags.suite).as_bytes())
            .map_err(|error| Failure::unwritable(anyhow!("cannot write {}: {error}", path.display())))?;
    }
    Ok(github::annotations(summary))
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
