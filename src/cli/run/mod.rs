//! `run`: drive models through tools over cases; score, record, report, gate.

mod confirm;
mod drive;
mod settings;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;

use self::confirm::confirm;
use self::drive::{Done, RUNS, drive};
pub(super) use self::drive::{begun, journal_failure, run_id};
pub(super) use self::settings::parse_name;
use self::settings::{
    allowance, check_options, fill_cases, follow, follow_options, recorded_conditions, settings, tools,
};
use super::cases::{CaseFlags, select_failure};
use super::models::{self, ModelFlags};
use super::{Exit, Failure, gate, output};
use crate::case::select::select;
use crate::config::{Config, RunConfig};
use crate::model::open::Endpoints;
use crate::model::text_calls::TextCalls;
use crate::record::load;
use crate::report::files::Kind;
use crate::report::{Summary, terminal};
use crate::run::{Plan, Prompt, StopAfter};
use crate::score::Verdict;
use crate::verdict::floor::Floors;

/// Where floors are looked for unless told otherwise.
pub(super) const FLOORS: &str = "reports/floors.json";
/// What is replayed when no model is named: a real model, recorded with this repository's cases.
const SHIPPED: &str = "fixtures/recordings/qwen2.5-coder-1.5b-directed";

#[derive(Debug, Args)]
pub(super) struct RunFlags {
    /// Model: provider/id, builtin/oracle|noop|garbage, replay/DIR, or a name from the config; may be repeated
    #[arg(short, long = "model", value_name = "SPEC", env = "EDITGATE_MODEL", value_delimiter = ',')]
    models: Vec<String>,
    #[command(flatten)]
    model: ModelFlags,
    /// Edit tool; may be repeated [default: edit_file]
    #[arg(long, value_name = "NAME", env = "EDITGATE_TOOL", value_delimiter = ',')]
    tool: Vec<String>,
    #[command(flatten)]
    cases: CaseFlags,
    /// Attempts of each case
    #[arg(long, value_name = "N", env = "EDITGATE_REPEAT")]
    repeat: Option<usize>,
    /// Attempts at the same time [default: 1]
    #[arg(short = 'j', long, value_name = "N", env = "EDITGATE_CONCURRENCY")]
    concurrency: Option<usize>,
    /// What the model is told: only the task, or also the tool's own words [default: plain]
    #[arg(long, value_name = "plain|directed", env = "EDITGATE_PROMPT", value_parser = parse_name::<Prompt>)]
    prompt: Option<Prompt>,
    /// Whether calls written into the text of an answer are run [default: reject]
    #[arg(long, value_name = "reject|accept", env = "EDITGATE_TEXT_CALLS", value_parser = parse_name::<TextCalls>)]
    text_calls: Option<TextCalls>,
    /// When an attempt ends: at the first successful edit, or when the model makes no more calls [default: done]
    #[arg(long, value_name = "edit|done", env = "EDITGATE_STOP_AFTER", value_parser = parse_name::<StopAfter>)]
    stop_after: Option<StopAfter>,
    /// Answers of the model in one attempt at most [default: 8]
    #[arg(long, value_name = "N", env = "EDITGATE_MAX_TURNS")]
    max_turns: Option<usize>,
    /// How often the same refused call may come [default: 3]
    #[arg(long, value_name = "N", env = "EDITGATE_IDENTICAL_LIMIT")]
    identical_limit: Option<usize>,
    /// Seconds of one attempt at most [default: 600]
    #[arg(long, value_name = "SECONDS", env = "EDITGATE_TIMEOUT")]
    timeout: Option<f64>,
    /// Infrastructure errors allowed before the run counts as incomplete: a number, or a share such as 0.1 [default: 0]
    #[arg(long, value_name = "N|RATE", env = "EDITGATE_FAIL_ON_ERROR")]
    fail_on_error: Option<String>,
    /// Options of the tool's session, as a JSON object (see `tools show`)
    #[arg(long, value_name = "JSON", env = "EDITGATE_TOOL_OPTIONS")]
    tool_options: Option<String>,
    /// Directory for the evidence [default: reports/runs/<id>]
    #[arg(long, value_name = "DIR", env = "EDITGATE_OUT")]
    out: Option<PathBuf>,
    /// File of floors [default: reports/floors.json, where there is one]
    #[arg(long, value_name = "FILE", env = "EDITGATE_FLOORS")]
    floors: Option<PathBuf>,
    /// Compare with no floors
    #[arg(long, env = "EDITGATE_NO_GATE", value_parser = clap::builder::BoolishValueParser::new())]
    no_gate: bool,
    #[command(flatten)]
    judging: gate::Judging,
    /// Try flipped cases so many more times before --against may fail the run
    #[arg(long, value_name = "N", env = "EDITGATE_CONFIRM", default_value_t = 0, requires = "against")]
    confirm: usize,
    /// Files to write beside the record: md, html, junit, json, github
    #[arg(long, value_name = "LIST", env = "EDITGATE_REPORT", value_delimiter = ',', default_value = "md", value_parser = Kind::parse)]
    report: Vec<Kind>,
    /// Keep the answers as a recording that `-m replay/DIR` plays
    #[arg(long, value_name = "DIR", env = "EDITGATE_RECORD")]
    record: Option<PathBuf>,
    /// Directory for workspaces [default: in memory where the system has some]
    #[arg(long, value_name = "DIR", env = "EDITGATE_SANDBOX_DIR")]
    sandbox_dir: Option<PathBuf>,
    /// Go on with a run that ended before its end; alone, it repeats the recorded command
    #[arg(long, value_name = "DIR", env = "EDITGATE_RESUME", conflicts_with_all = ["out", "dry_run"])]
    pub(super) resume: Option<PathBuf>,
    /// With --resume: make attempts that ended in an error again
    #[arg(long, env = "EDITGATE_RETRY_ERRORS", requires = "resume", value_parser = clap::builder::BoolishValueParser::new())]
    retry_errors: bool,
    /// Dollars after which no new attempt begins
    #[arg(long, value_name = "USD", env = "EDITGATE_COST_LIMIT")]
    cost_limit: Option<f64>,
    /// Tokens, input and output together, after which no new attempt begins
    #[arg(long, value_name = "N", env = "EDITGATE_TOKEN_LIMIT")]
    token_limit: Option<u64>,
    /// Seconds after which no new attempt begins
    #[arg(long, value_name = "SECONDS", env = "EDITGATE_TIME_LIMIT")]
    time_limit: Option<f64>,
    /// Print what would be run, and run nothing
    #[arg(long, env = "EDITGATE_DRY_RUN", value_parser = clap::builder::BoolishValueParser::new())]
    dry_run: bool,
    /// Configuration file [default: editgate.toml, where there is one]
    #[arg(long, value_name = "FILE", env = "EDITGATE_CONFIG")]
    config: Option<PathBuf>,
}

pub(super) fn main(mut flags: RunFlags) -> Result<Exit, Failure> {
    let config = Config::load(flags.config.as_deref()).map_err(Failure::usage)?;
    let specs = models::specs(&flags.models, &config.run);
    let shipped = specs.is_empty();
    let specs = if shipped { vec![shipped_recording()?] } else { specs };
    let concurrency = flags.concurrency.or(config.run.concurrency).unwrap_or(1);
    flags.model.concurrency_hint = Some(concurrency);
    let endpoints = Endpoints::default();
    let mut opened = Vec::new();
    for spec in &specs {
        opened.push(models::open(spec, &flags.model, &config, &endpoints)?);
    }
    let recorded = recorded_conditions(&opened)?;
    if let Some(conditions) = &recorded {
        follow(&mut flags, &config.run, conditions)?;
    }
    let mut settings = settings(&flags, &config, concurrency)?;
    if let Some(conditions) = &recorded {
        follow_options(&mut settings, &flags, conditions)?;
    }
    let allowance = allowance(&flags, &config.run)?;
    let tools = tools(&flags, &config.run)?;
    check_options(&tools, &settings)?;
    fill_cases(&mut flags.cases, &config.run);
    let sets = flags.cases.load()?;
    let selected = select(&sets, &flags.cases.selection()).map_err(select_failure)?;
    let source = opened.iter().find_map(|opened| opened.source.clone());
    let planned: Vec<_> = opened.into_iter().map(|opened| opened.planned).collect();
    let plan = Plan::new(&planned, &tools, &selected, &settings);
    check_plan(&plan, &flags)?;
    let floors = floors(&flags, &config.run)?;
    if let Some(floors) = &floors {
        for cell in &plan.cells {
            floors.of(&cell.plan).map_err(Failure::usage)?;
        }
    }
    if flags.dry_run {
        return dry_run(&plan, floors.as_ref());
    }
    if shipped {
        output::message(&format!("no model named with -m: replaying {SHIPPED}, a recording of a real model"));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Internal, error))?;
    let done = runtime.block_on(drive(&flags, &plan, source, allowance, None))?;
    let mut versus = flags.judging.versus(&done.record)?;
    let confirmed = match &mut versus {
        Some(versus) => runtime.block_on(confirm(&flags, &plan, &done, versus))?,
        None => None,
    };
    let mut summary = flags.judging.judge(&done.record, floors.as_ref(), allowance, versus)?;
    summary.notes.extend(confirmed);
    report(&flags, &done, &summary)
}

/// The recorded arguments of the run to resume, as far as they are not its place, before those given now. `None` where a
/// model is named: then the command is whole as it is.
pub(super) fn resumed_arguments(flags: &RunFlags) -> Result<Option<Vec<String>>, Failure> {
    let Some(directory) = &flags.resume else {
        return Ok(None);
    };
    if flags.models.iter().any(|name| !name.is_empty()) {
        return Ok(None);
    }
    let run = load::run_file(directory).map_err(Failure::usage)?;
    let mut kept = Vec::new();
    let mut arguments = run.arguments.into_iter();
    while let Some(argument) = arguments.next() {
        if argument.contains("[redacted]") {
            return Err(Failure::usage(anyhow!(
                "{}: the recorded command held a secret, which is not kept; give the whole command again with --resume",
                directory.display()
            )));
        }
        match argument.as_str() {
            "--out" | "--resume" => drop(arguments.next()),
            "--retry-errors" => {}
            text if text.starts_with("--out=") || text.starts_with("--resume=") => {}
            _ => kept.push(argument),
        }
    }
    Ok(Some(kept))
}

/// What cannot come to a record is refused before anything runs.
fn check_plan(plan: &Plan<'_>, flags: &RunFlags) -> Result<(), Failure> {
    if plan.settings.limits.cost_usd.is_some()
        && let Some(model) = plan.models.iter().find(|model| model.protocol.is_some() && model.price.is_none())
    {
        let name = model.model.name();
        return Err(Failure::usage(anyhow!(
            "--cost-limit needs the price of {name}: price = {{ input = …, output = … }} under [models.NAME] in editgate.toml"
        )));
    }
    if flags.record.is_some() && plan.models.len() > 1 {
        return Err(Failure::usage(anyhow!("--record keeps one model, and {} are named", plan.models.len())));
    }
    for (index, cell) in plan.cells.iter().enumerate() {
        if plan.cells[..index].iter().any(|other| other.plan.title() == cell.plan.title()) {
            return Err(Failure::usage(anyhow!(
                "{} is named twice; two settings of one model are two runs",
                cell.plan.title()
            )));
        }
    }
    Ok(())
}

fn shipped_recording() -> Result<String, Failure> {
    if Path::new(SHIPPED).is_dir() {
        return Ok(format!("replay/{SHIPPED}"));
    }
    Err(Failure::usage(anyhow!(
        "no model named with -m, and the shipped recording {SHIPPED} is not under this directory"
    )))
}

fn floors(flags: &RunFlags, config: &RunConfig) -> Result<Option<Floors>, Failure> {
    if flags.no_gate {
        return Ok(None);
    }
    let usual = Path::new(FLOORS);
    let named = flags.floors.as_deref().or(config.floors.as_deref());
    let path = named.or(usual.exists().then_some(usual));
    path.map(Floors::load).transpose().map_err(Failure::usage)
}

fn dry_run(plan: &Plan<'_>, floors: Option<&Floors>) -> Result<Exit, Failure> {
    let mut rows = vec![["model", "tool", "set", "prompt", "cases", "attempts", "floor"].map(str::to_owned).to_vec()];
    for cell in &plan.cells {
        let cell = &cell.plan;
        let floor = floors.map(|floors| floors.of(cell)).transpose().map_err(Failure::usage)?.flatten();
        rows.push(vec![
            cell.model.clone(),
            cell.tool.clone(),
            cell.set_name(),
            cell.prompt.clone(),
            cell.cases.to_string(),
            cell.attempts().to_string(),
            floor.map_or("–".to_owned(), |floor| floor.floor.to_string()),
        ]);
    }
    output::data(&format!("{}\n{} attempts planned; nothing was run\n", output::table(rows), plan.len()))?;
    Ok(Exit::Passed)
}

fn report(flags: &RunFlags, done: &Done, summary: &Summary<'_>) -> Result<Exit, Failure> {
    let record = &done.record;
    // The page alone needs every turn again.
    let told = match flags.report.contains(&Kind::Html) {
        true => load::transcripts(&record.directory).map_err(|error| Failure::new(Exit::Internal, error))?,
        false => Vec::new(),
    };
    let written = gate::write_files(&record.directory, &flags.report, summary, &record.rows, &told)?;
    let shown = written.iter().filter(|path| path.parent() == Some(record.directory.as_path()));
    let shown: Vec<String> = shown.map(|path| format!("report: {}\n", path.display())).collect();
    if flags.out.is_none() && flags.resume.is_none() {
        point_latest(&done.record.run.id);
    }
    output::data(&format!("{}{}", terminal::render(summary), shown.concat()))?;
    if let Some(error) = summary.troubles.iter().find(|row| row.verdict == Verdict::Error) {
        let why = error.error.as_deref().unwrap_or("no message");
        output::error(&format!("{}/{}: {}: {why}", error.set, error.case, error.class));
    }
    Ok(if done.interrupted { Exit::Interrupted } else { flags.judging.exit(&summary.gate) })
}

/// `reports/runs/latest` leads to the newest run. A convenience: that it cannot be made is no failure.
fn point_latest(id: &str) {
    let link = Path::new(RUNS).join("latest");
    let fresh = Path::new(RUNS).join(format!(".latest-{id}"));
    if std::os::unix::fs::symlink(id, &fresh).is_ok() && fs::rename(&fresh, &link).is_err() {
        let _ = fs::remove_file(&fresh);
    }
}
