//! `run`: drive models through tools over cases; score, record, report, gate.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::anyhow;
use clap::Args;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::cases::{CaseFlags, select_failure};
use super::models::{self, ModelFlags, Opened};
use super::{Exit, Failure, output};
use crate::case::select::select;
use crate::config::{Config, RunConfig};
use crate::model::recording::{self, Conditions, Header};
use crate::record::journal::JournalError;
use crate::record::{Journal, Row, RunFile, Source, Status, Totals, load};
use crate::report::{Summary, markdown, terminal};
use crate::run::progress::Progress;
use crate::run::{Consumer, Event, Plan, Prompt, RunSettings, StopAfter, fingerprint, schedule};
use crate::tool::{self, EditTool};
use crate::verdict::floor::Floors;
use crate::verdict::gate::Allowance;
use crate::workspace::{Workspaces, write};

/// Where runs go, and where floors are looked for, unless told otherwise.
const RUNS: &str = "reports/runs";
pub(super) const FLOORS: &str = "reports/floors.json";
/// What is replayed when no model is named: a real model, recorded with this repository's cases.
const SHIPPED: &str = "fixtures/recordings/qwen2.5-coder-1.5b-directed";

#[derive(Debug, Args)]
pub(super) struct RunFlags {
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
    #[arg(long, value_name = "reject|accept", env = "EDITGATE_TEXT_CALLS", value_parser = parse_name::<crate::model::text_calls::TextCalls>)]
    text_calls: Option<crate::model::text_calls::TextCalls>,
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
    #[arg(long, value_name = "FILE", env = "EDITGATE_FLOORS", conflicts_with = "no_gate")]
    floors: Option<PathBuf>,
    /// Compare with no floors
    #[arg(long, env = "EDITGATE_NO_GATE")]
    no_gate: bool,
    /// Keep the answers as a recording that `-m replay/DIR` plays
    #[arg(long, value_name = "DIR", env = "EDITGATE_RECORD")]
    record: Option<PathBuf>,
    /// Directory for workspaces [default: in memory where the system has some]
    #[arg(long, value_name = "DIR", env = "EDITGATE_SANDBOX_DIR")]
    sandbox_dir: Option<PathBuf>,
    /// Print what would be run, and run nothing
    #[arg(long, env = "EDITGATE_DRY_RUN")]
    dry_run: bool,
    /// Configuration file [default: editgate.toml, where there is one]
    #[arg(long, value_name = "FILE", env = "EDITGATE_CONFIG")]
    config: Option<PathBuf>,
}

fn parse_name<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(Value::String(text.to_owned())).map_err(|error| error.to_string())
}

pub(super) fn main(mut flags: RunFlags) -> Result<Exit, Failure> {
    let config = Config::load(flags.config.as_deref()).map_err(Failure::usage)?;
    let specs = models::specs(&flags.model, &config.run);
    let shipped = specs.is_empty();
    let specs = if shipped { vec![shipped_recording()?] } else { specs };
    let concurrency = flags.concurrency.or(config.run.concurrency).unwrap_or(1);
    let mut opened = Vec::new();
    for spec in &specs {
        opened.push(models::open(spec, &flags.model, &config, concurrency)?);
    }
    let recorded = recorded_conditions(&opened)?;
    if let Some(conditions) = &recorded {
        follow(&mut flags, &config.run, conditions)?;
    }
    let settings = settings(&flags, &config, concurrency)?;
    let allowance = allowance(&flags, &config.run)?;
    let tools = tools(&flags, &config.run)?;
    check_options(&tools, &settings)?;
    fill_cases(&mut flags.cases, &config.run);
    let sets = flags.cases.load()?;
    let selected = select(&sets, &flags.cases.selection()).map_err(select_failure)?;
    let source = opened.iter().find_map(|opened| opened.source.clone());
    let planned: Vec<_> = opened.into_iter().map(|opened| opened.planned).collect();
    let plan = Plan::new(&planned, &tools, &selected, &settings);
    let floors = floors(&flags, &config.run)?;
    if let Some(floors) = &floors {
        for cell in plan.cells.iter().filter(|cell| !cell.plan.narrowed) {
            floors.of(&cell.plan).map_err(Failure::usage)?;
        }
    }
    if flags.dry_run {
        return dry_run(&plan, floors.as_ref());
    }
    if shipped {
        output::message(&format!("no model named with -m: replaying {SHIPPED}, a recording of a real model"));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| Failure::new(Exit::Internal, error))?;
    let done = runtime.block_on(drive(&flags, &plan, source, allowance))?;
    report(&flags, &done, floors.as_ref(), allowance)
}

fn shipped_recording() -> Result<String, Failure> {
    if Path::new(SHIPPED).is_dir() {
        return Ok(format!("replay/{SHIPPED}"));
    }
    Err(Failure::usage(anyhow!("no model named with -m, and the shipped recording {SHIPPED} is not under this directory")))
}

/// The conditions of the recordings among the models, which must be of one mind.
fn recorded_conditions(opened: &[Opened]) -> Result<Option<Conditions>, Failure> {
    let mut all = opened.iter().filter_map(|opened| opened.conditions.clone());
    let Some(first) = all.next() else {
        return Ok(None);
    };
    match all.find(|other| *other != first) {
        Some(_) => Err(Failure::usage(anyhow!("the recordings were made under different conditions; replay them one by one"))),
        None => Ok(Some(first)),
    }
}

/// A replay repeats the conditions of its recording; a flag that asks for others is an error rather than a run of errors.
fn follow(flags: &mut RunFlags, config: &RunConfig, recorded: &Conditions) -> Result<(), Failure> {
    let differs = |flag: &str, value: &str| {
        Failure::usage(anyhow!("the recording was made with {flag} {value}; a replay cannot change that"))
    };
    let prompt = parse_name(&recorded.prompt).map_err(|reason| Failure::usage(anyhow!(reason)))?;
    let text_calls = parse_name(&recorded.text_calls).map_err(|reason| Failure::usage(anyhow!(reason)))?;
    let stop_after = parse_name(&recorded.stop_after).map_err(|reason| Failure::usage(anyhow!(reason)))?;
    if flags.prompt.is_some_and(|asked| asked != prompt) {
        return Err(differs("--prompt", &recorded.prompt));
    }
    if flags.text_calls.is_some_and(|asked| asked != text_calls) {
        return Err(differs("--text-calls", &recorded.text_calls));
    }
    if flags.stop_after.is_some_and(|asked| asked != stop_after) {
        return Err(differs("--stop-after", &recorded.stop_after));
    }
    if flags.max_turns.is_some_and(|asked| asked != recorded.max_turns) {
        return Err(differs("--max-turns", &recorded.max_turns.to_string()));
    }
    if flags.repeat.is_some_and(|asked| asked > recorded.repeat) {
        return Err(differs("--repeat", &recorded.repeat.to_string()));
    }
    if let Some(other) = flags.tool.iter().find(|name| !recorded.tools.contains(name)) {
        return Err(Failure::usage(anyhow!("the recording has no attempts with {other}; it has: {}", recorded.tools.join(", "))));
    }
    flags.prompt = Some(prompt);
    flags.text_calls = Some(text_calls);
    flags.stop_after = Some(stop_after);
    flags.max_turns = Some(recorded.max_turns);
    flags.repeat = flags.repeat.or(Some(recorded.repeat));
    if flags.tool.is_empty() {
        flags.tool.clone_from(&recorded.tools);
    }
    if flags.cases.set.is_empty() && config.set.is_none() {
        flags.cases.set.clone_from(&recorded.sets);
    }
    if flags.cases.subset.is_none() {
        flags.cases.subset.clone_from(&recorded.subset);
    }
    Ok(())
}

fn settings(flags: &RunFlags, config: &Config, concurrency: usize) -> Result<RunSettings, Failure> {
    let run = &config.run;
    let default = RunSettings::default();
    let positive = |name: &str, value: Option<usize>, default: usize| match value {
        Some(0) => Err(Failure::usage(anyhow!("--{name} must be 1 or more"))),
        value => Ok(value.unwrap_or(default)),
    };
    let mut tool_options: std::collections::BTreeMap<String, Value> =
        config.tools.iter().map(|(name, options)| (name.clone(), Value::Object(options.clone()))).collect();
    for name in tool_options.keys() {
        tool::named(name).map_err(Failure::usage)?;
    }
    if let Some(text) = &flags.tool_options {
        let options: Value = serde_json::from_str(text).map_err(|error| Failure::usage(anyhow!("--tool-options is not JSON: {error}")))?;
        for tool in tools(flags, run)? {
            tool_options.insert(tool.name().to_owned(), options.clone());
        }
    }
    Ok(RunSettings {
        prompt: flags.prompt.or(run.prompt).unwrap_or(default.prompt),
        text_calls: flags.text_calls.or(run.text_calls).unwrap_or(default.text_calls),
        stop_after: flags.stop_after.or(run.stop_after).unwrap_or(default.stop_after),
        max_turns: positive("max-turns", flags.max_turns.or(run.max_turns), default.max_turns)?,
        identical_limit: positive("identical-limit", flags.identical_limit.or(run.identical_limit), default.identical_limit)?,
        timeout: models::seconds("timeout", flags.timeout.or(run.timeout), default.timeout)?,
        repeat: positive("repeat", flags.repeat.or(run.repeat), default.repeat)?,
        concurrency: positive("concurrency", Some(concurrency), default.concurrency)?,
        tool_options,
        sandbox_dir: flags.sandbox_dir.clone().or_else(|| run.sandbox_dir.clone()),
    })
}

fn allowance(flags: &RunFlags, config: &RunConfig) -> Result<Allowance, Failure> {
    let text = match (&flags.fail_on_error, &config.fail_on_error) {
        (Some(text), _) => text.clone(),
        (None, Some(Value::String(text))) => text.clone(),
        (None, Some(value)) => value.to_string(),
        (None, None) => return Ok(Allowance::Count(0)),
    };
    Allowance::parse(&text).map_err(|reason| Failure::usage(anyhow!("--fail-on-error {text}: {reason}")))
}

fn tools(flags: &RunFlags, config: &RunConfig) -> Result<Vec<Box<dyn EditTool>>, Failure> {
    let default = vec!["edit_file".to_owned()];
    let names = if flags.tool.is_empty() { config.tool.as_ref().unwrap_or(&default) } else { &flags.tool };
    names.iter().map(|name| tool::named(name).map_err(Failure::usage)).collect()
}

/// Wrong options are found before anything runs.
fn check_options(tools: &[Box<dyn EditTool>], settings: &RunSettings) -> Result<(), Failure> {
    for tool in tools {
        let options = settings.tool_options.get(tool.name()).unwrap_or(&Value::Null);
        tool.open(Path::new("/"), options).map_err(Failure::usage)?;
    }
    Ok(())
}

fn fill_cases(flags: &mut CaseFlags, config: &RunConfig) {
    if flags.cases.is_none() {
        flags.cases.clone_from(&config.cases);
    }
    if flags.set.is_empty() {
        flags.set = config.set.clone().unwrap_or_default();
    }
    if flags.subset.is_none() {
        flags.subset.clone_from(&config.subset);
    }
}

fn floors(flags: &RunFlags, config: &RunConfig) -> Result<Option<Floors>, Failure> {
    if flags.no_gate {
        return Ok(None);
    }
    let named = flags.floors.clone().or_else(|| config.floors.clone());
    match named {
        Some(path) => Floors::load(&path).map(Some).map_err(Failure::usage),
        None if Path::new(FLOORS).exists() => Floors::load(Path::new(FLOORS)).map(Some).map_err(Failure::usage),
        None => Ok(None),
    }
}

fn dry_run(plan: &Plan<'_>, floors: Option<&Floors>) -> Result<Exit, Failure> {
    let mut rows = vec![["model", "tool", "set", "prompt", "cases", "attempts", "floor"].map(str::to_owned).to_vec()];
    for cell in &plan.cells {
        let cell = &cell.plan;
        let floor = match floors {
            Some(floors) if !cell.narrowed => floors.of(cell).map_err(Failure::usage)?,
            _ => None,
        };
        rows.push(vec![
            cell.model.clone(),
            cell.tool.clone(),
            cell.subset.as_ref().map_or(cell.set.clone(), |subset| format!("{}/{subset}", cell.set)),
            cell.prompt.clone(),
            cell.cases.to_string(),
            cell.attempts().to_string(),
            floor.map_or("–".to_owned(), |floor| floor.floor.to_string()),
        ]);
    }
    output::data(&format!("{}\n{} attempts planned; nothing was run\n", output::table(rows), plan.len()))?;
    Ok(Exit::Passed)
}

/// A run that has ended.
struct Done {
    run: RunFile,
    rows: Vec<Row>,
    directory: PathBuf,
    interrupted: bool,
}

async fn drive(flags: &RunFlags, plan: &Plan<'_>, source: Option<Source>, allowance: Allowance) -> Result<Done, Failure> {
    let mut facts = Vec::new();
    for planned in plan.models {
        let name = planned.model.name();
        facts.push(planned.model.facts().await.map_err(|fault| Failure::new(Exit::Incomplete, anyhow!("{name}: {fault}")))?);
    }
    let started = Timestamp::now();
    let clock = Instant::now();
    let id = format!("{}-{:05}", started.strftime("%Y%m%dT%H%M%SZ"), std::process::id() % 100_000);
    let directory = flags.out.clone().unwrap_or_else(|| Path::new(RUNS).join(&id));
    let mut run = RunFile {
        format: crate::record::run_file::FORMAT,
        id,
        status: Status::Running,
        editgate: env!("CARGO_PKG_VERSION").to_owned(),
        started: rfc3339(started),
        ended: None,
        elapsed_ms: None,
        command: command_line(),
        fingerprint: fingerprint::of(plan, &facts),
        source,
        plan: plan.cells.iter().map(|cell| cell.plan.clone()).collect(),
        totals: None,
    };
    let workspaces = Workspaces::create(plan.settings.sandbox_dir.as_deref())
        .map_err(|error| Failure::unwritable(anyhow!("cannot make a directory for workspaces: {error}; name another with --sandbox-dir")))?;
    let journal = Journal::create(&directory, &run).map_err(journal_failure)?;
    let mut journal = Recorder { journal, rows: Vec::new() };
    let shown = std::io::IsTerminal::is_terminal(&std::io::stderr()) && std::env::var_os("CI").is_none();
    let mut progress = Progress::new(plan.len(), shown);
    let mut interrupts = interrupts();
    let interrupted =
        schedule::run(plan, &workspaces, &mut [&mut journal, &mut progress], &mut interrupts, allowance.of(plan.len())).await;
    progress.finish();
    let interrupted = interrupted.map_err(journal_failure)?;
    let Recorder { mut journal, mut rows } = journal;
    rows.sort_by_key(|(index, _)| *index);
    let rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
    let mut totals = Totals { planned: plan.len(), ..Totals::default() };
    rows.iter().for_each(|row| totals.add(row.verdict, row.harm));
    run.status = if interrupted { Status::Interrupted } else { Status::Complete };
    run.ended = Some(rfc3339(Timestamp::now()));
    run.elapsed_ms = u64::try_from(clock.elapsed().as_millis()).ok();
    run.totals = Some(totals);
    journal.finish(&run, &rows).map_err(journal_failure)?;
    if let Some(path) = &flags.record {
        keep(path, plan, &run, &facts, &directory)?;
    }
    Ok(Done { run, rows, directory, interrupted })
}

/// Keeps the answers of a run as a recording.
fn keep(path: &Path, plan: &Plan<'_>, run: &RunFile, facts: &[Value], directory: &Path) -> Result<(), Failure> {
    let [model] = plan.models else {
        return Err(Failure::usage(anyhow!("--record keeps one model; {} were run", plan.models.len())));
    };
    let settings = plan.settings;
    let header = Header {
        format: recording::FORMAT,
        model: model.model.name().to_owned(),
        recorded: run.started.clone(),
        editgate: run.editgate.clone(),
        server: facts.first().cloned().unwrap_or(Value::Null),
        settings: model.settings.clone(),
        conditions: Conditions {
            tools: plan.tools.iter().map(|tool| tool.name().to_owned()).collect(),
            sets: plan.selected.iter().map(|chosen| chosen.set.name.clone()).collect(),
            subset: plan.selected.first().and_then(|chosen| chosen.subset.clone()),
            prompt: settings.prompt.name().to_owned(),
            text_calls: match settings.text_calls {
                crate::model::text_calls::TextCalls::Accept => "accept".to_owned(),
                crate::model::text_calls::TextCalls::Reject => "reject".to_owned(),
            },
            stop_after: settings.stop_after.name().to_owned(),
            max_turns: settings.max_turns,
            repeat: settings.repeat,
        },
    };
    let transcripts = load::transcripts(directory).map_err(|error| Failure::new(Exit::Internal, error))?;
    let attempts = transcripts.iter().filter(|transcript| !transcript.turns.is_empty()).map(|transcript| transcript.recorded()).collect();
    recording::write(path, &header, attempts).map_err(Failure::unwritable)?;
    output::message(&format!("recorded: {}", path.display()));
    Ok(())
}

fn report(flags: &RunFlags, done: &Done, floors: Option<&Floors>, allowance: Allowance) -> Result<Exit, Failure> {
    let summary = Summary::new(&done.run, &done.rows, floors, allowance).map_err(Failure::usage)?;
    let file = done.directory.join("report.md");
    write::output(&file, markdown::render(&summary).as_bytes())
        .map_err(|error| Failure::unwritable(anyhow!("cannot write {}: {error}", file.display())))?;
    if flags.out.is_none() {
        point_latest(&done.run.id);
    }
    output::data(&format!("{}report: {}\n", terminal::render(&summary), file.display()))?;
    if let Some(error) = summary.troubles.iter().find(|row| row.verdict == crate::score::Verdict::Error) {
        let why = error.error.as_deref().unwrap_or("no message");
        output::error(&format!("{}/{}: {}: {why}", error.set, error.case, error.class));
    }
    Ok(if done.interrupted { Exit::Interrupted } else { super::gate::exit_of(&summary.gate) })
}

/// `reports/runs/latest` leads to the newest run. A convenience: that it cannot be made is no failure.
fn point_latest(id: &str) {
    let link = Path::new(RUNS).join("latest");
    let fresh = Path::new(RUNS).join(format!(".latest-{id}"));
    if std::os::unix::fs::symlink(id, &fresh).is_ok() && fs::rename(&fresh, &link).is_err() {
        let _ = fs::remove_file(&fresh);
    }
}

fn journal_failure(error: JournalError) -> Failure {
    match error {
        JournalError::Taken { .. } => Failure::usage(error),
        JournalError::Unwritable { .. } => Failure::unwritable(error),
    }
}

struct Recorder {
    journal: Journal,
    rows: Vec<(usize, Row)>,
}

impl Consumer for Recorder {
    fn take(&mut self, event: &Event<'_>) -> Result<(), JournalError> {
        if let Event::Finished(finished) = event {
            self.journal.append(&finished.row, &finished.transcript, &finished.leftovers)?;
            self.rows.push((finished.index, finished.row.clone()));
        }
        Ok(())
    }
}

/// Ctrl-C and a polite kill, as they come.
fn interrupts() -> UnboundedReceiver<()> {
    let (sender, receiver) = unbounded_channel();
    tokio::spawn(async move {
        let Ok(mut terminate) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) else {
            return;
        };
        loop {
            tokio::select! {
                pressed = tokio::signal::ctrl_c() => if pressed.is_err() { return },
                _ = terminate.recv() => {}
            }
            output::message("interrupted: finishing what is in flight; once more to stop now");
            if sender.send(()).is_err() {
                return;
            }
        }
    });
    receiver
}

fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The command as it could be typed again; the program by its name.
fn command_line() -> String {
    let quoted = |word: String| {
        let plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c));
        if plain { word } else { format!("'{}'", word.replace('\'', "'\\''")) }
    };
    let words: Vec<String> = std::iter::once("editgate".to_owned()).chain(std::env::args().skip(1)).map(quoted).collect();
    crate::model::redact::redact(&words.join(" "), None)
}
