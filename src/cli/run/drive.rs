//! Drives a plan: evidence from the first moment, signals, and a recording in the end.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::anyhow;
use jiff::Timestamp;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::RunFlags;
use crate::cli::{Exit, Failure, output};
use crate::model::recording::{self, Conditions, Header};
use crate::model::redact::{masked, redact};
use crate::record::journal::JournalError;
use crate::record::run_file::FORMAT;
use crate::record::{Journal, Row, RunFile, Source, Status, Totals, load};
use crate::run::progress::Progress;
use crate::run::{Consumer, Event, Plan, fingerprint, schedule};
use crate::verdict::gate::Allowance;
use crate::workspace::Workspaces;

/// Where runs go unless told otherwise.
pub(super) const RUNS: &str = "reports/runs";

/// A run that has ended.
pub(super) struct Done {
    pub(super) run: RunFile,
    pub(super) rows: Vec<Row>,
    pub(super) directory: PathBuf,
    pub(super) interrupted: bool,
}

pub(super) async fn drive(
    flags: &RunFlags,
    plan: &Plan<'_>,
    source: Option<Source>,
    allowance: Allowance,
) -> Result<Done, Failure> {
    let mut facts = Vec::new();
    for planned in plan.models {
        let name = planned.model.name();
        facts.push(
            planned.model.facts().await.map_err(|fault| Failure::new(Exit::Incomplete, anyhow!("{name}: {fault}")))?,
        );
    }
    let started = Timestamp::now();
    let clock = Instant::now();
    let id = format!("{}-{:05}", started.strftime("%Y%m%dT%H%M%SZ"), std::process::id() % 100_000);
    let directory = flags.out.clone().unwrap_or_else(|| Path::new(RUNS).join(&id));
    let mut run = RunFile {
        format: FORMAT,
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
    let workspaces = Workspaces::create(plan.settings.sandbox_dir.as_deref()).map_err(|error| {
        Failure::unwritable(anyhow!("cannot make a directory for workspaces: {error}; name another with --sandbox-dir"))
    })?;
    let journal = Journal::create(&directory, &run).map_err(journal_failure)?;
    let mut journal = Recorder { journal, rows: Vec::new() };
    let shown = std::io::IsTerminal::is_terminal(&std::io::stderr()) && std::env::var_os("CI").is_none();
    let mut progress = Progress::new(plan.len(), shown);
    let mut interrupts = interrupts();
    let interrupted =
        schedule::run(plan, &workspaces, &mut [&mut journal, &mut progress], &mut interrupts, allowance.of(plan.len()))
            .await;
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
        match totals.passed + totals.failed == totals.planned {
            true => keep(path, plan, &run, &facts, &directory)?,
            false => output::message(&format!(
                "not recorded: {} of {} attempts came to their end, and a recording has them all",
                totals.passed + totals.failed,
                totals.planned
            )),
        }
    }
    Ok(Done { run, rows, directory, interrupted })
}

/// Keeps the answers of a run as a recording.
fn keep(path: &Path, plan: &Plan<'_>, run: &RunFile, facts: &[Value], directory: &Path) -> Result<(), Failure> {
    let Some(model) = plan.models.first() else {
        return Ok(());
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
            cases: if plan.selected.iter().any(|chosen| chosen.narrowed) {
                plan.selected.iter().flat_map(|chosen| chosen.cases.iter().map(|case| case.id.clone())).collect()
            } else {
                Vec::new()
            },
            prompt: settings.prompt.name().to_owned(),
            text_calls: settings.text_calls.name().to_owned(),
            stop_after: settings.stop_after.name().to_owned(),
            max_turns: settings.max_turns,
            identical_limit: settings.identical_limit,
            repeat: settings.repeat,
            tool_options: settings.tool_options.clone(),
        },
    };
    let transcripts = load::transcripts(directory).map_err(|error| Failure::new(Exit::Internal, error))?;
    let attempts = transcripts
        .iter()
        .filter(|transcript| !transcript.turns.is_empty())
        .map(|transcript| transcript.recorded())
        .collect();
    recording::write(path, &header, attempts).map_err(Failure::unwritable)?;
    output::message(&format!("recorded: {}", path.display()));
    Ok(())
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

/// Ctrl-C and a polite kill, as they come: caught from now on. A hangup is left alone, or a run under nohup would end by it.
fn interrupts() -> UnboundedReceiver<()> {
    let (sender, receiver) = unbounded_channel();
    let kinds = [SignalKind::interrupt(), SignalKind::terminate()];
    let (told, twice) = (Arc::new(AtomicBool::new(false)), "interrupted again: stopping");
    // A signal that cannot be caught does what it always did.
    for mut caught in kinds.into_iter().filter_map(|kind| signal(kind).ok()) {
        let (sender, told) = (sender.clone(), Arc::clone(&told));
        tokio::spawn(async move {
            while caught.recv().await.is_some() && !sender.is_closed() {
                let first = "interrupted: finishing what is in flight; once more to stop now";
                output::message(if told.swap(true, Ordering::Relaxed) { twice } else { first });
                let _ = sender.send(());
            }
        });
    }
    receiver
}

fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The command as it could be typed again, with the environment that it listened to; the program by its name, and
/// nothing secret.
fn command_line() -> String {
    let environment = std::env::vars().filter(|(name, value)| name.starts_with("EDITGATE_") && !value.is_empty());
    let mut words: Vec<String> = environment.map(|(name, value)| format!("{name}={}", word(&value))).collect();
    words.sort();
    words.push("editgate".to_owned());
    words.extend(std::env::args().skip(1).map(|argument| word(&argument)));
    redact(&words.join(" "), None)
}

/// A word for a shell. JSON loses the texts of its secret fields.
fn word(text: &str) -> String {
    let text = match serde_json::from_str::<serde_json::Map<String, Value>>(text) {
        Ok(object) => masked(&Value::Object(object)).to_string(),
        Err(_) => text.to_owned(),
    };
    let plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c));
    if plain { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
