//! Drives a plan: evidence from the first moment, signals, and a recording in the end.

use std::collections::HashMap;
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
use crate::model::recording;
use crate::model::redact::{masked, redact};
use crate::record::journal::JournalError;
use crate::record::recorded::recordings;
use crate::record::run_file::FORMAT;
use crate::record::{Journal, Row, RunFile, RunRecord, Source, Status, Totals, load};
use crate::run::progress::Progress;
use crate::run::{Consumer, Event, Plan, fingerprint, schedule};
use crate::score::{Class, Skip, Verdict};
use crate::verdict::gate::Allowance;
use crate::workspace::Workspaces;

/// Where runs go unless told otherwise.
pub(super) const RUNS: &str = "reports/runs";

/// A run that has ended.
pub(super) struct Done {
    pub(super) record: RunRecord,
    pub(super) interrupted: bool,
}

/// Another place than the flags name, for attempts that are made besides.
pub(super) struct Place {
    pub(super) directory: PathBuf,
}

pub(super) async fn drive(
    flags: &RunFlags,
    plan: &Plan<'_>,
    source: Option<Source>,
    allowance: Allowance,
    place: Option<Place>,
) -> Result<Done, Failure> {
    let mut facts = Vec::new();
    for planned in plan.models {
        let name = planned.model.name();
        facts.push(
            planned.model.facts().await.map_err(|fault| Failure::new(Exit::Incomplete, anyhow!("{name}: {fault}")))?,
        );
    }
    let workspaces = Workspaces::create(plan.settings.sandbox_dir.as_deref()).map_err(|error| {
        Failure::unwritable(anyhow!("cannot make a directory for workspaces: {error}; name another with --sandbox-dir"))
    })?;
    let started = Timestamp::now();
    let clock = Instant::now();
    if let Some(directory) = flags.resume.as_ref().filter(|_| place.is_none()) {
        let mut run = load::run_file(directory).map_err(Failure::usage)?;
        check_same(&run, plan, &facts, directory)?;
        let (journal, rows) = Journal::reopen(directory).map_err(journal_failure)?;
        let done = finished(plan, rows, flags.retry_errors);
        let left = plan.len() - done.len();
        output::message(&format!(
            "resuming {}: {} of {} attempts are there",
            directory.display(),
            done.len(),
            plan.len()
        ));
        run.status = if left == 0 { run.status } else { Status::Running };
        journal.write_run(&run).map_err(journal_failure)?;
        return carry_out(
            flags,
            plan,
            Begun { run, workspaces, directory: directory.clone(), journal, done, clock, keeps: true },
            allowance,
        )
        .await;
    }
    let id = run_id(started);
    let keeps = place.is_none();
    let named = place.map(|place| place.directory).or_else(|| flags.out.clone());
    let directory = named.unwrap_or_else(|| Path::new(RUNS).join(&id));
    let run = RunFile {
        arguments: std::env::args().skip(2).map(|argument| redact(&plain_word(&argument), None)).collect(),
        fingerprint: fingerprint::of(plan, &facts),
        source,
        plan: plan.cells.iter().map(|cell| cell.plan.clone()).collect(),
        ..begun(id, started)
    };
    let journal = Journal::create(&directory, &run).map_err(journal_failure)?;
    carry_out(flags, plan, Begun { run, workspaces, directory, journal, done: Vec::new(), clock, keeps }, allowance)
        .await
}

/// A run whose directory is open.
struct Begun {
    run: RunFile,
    workspaces: Workspaces,
    directory: PathBuf,
    journal: Journal,
    /// Attempts that need not be made, by their place in the plan.
    done: Vec<(usize, Row)>,
    clock: Instant,
    /// Whether the answers are kept as a recording, where that is asked for.
    keeps: bool,
}

async fn carry_out(flags: &RunFlags, plan: &Plan<'_>, begun: Begun, allowance: Allowance) -> Result<Done, Failure> {
    let Begun { mut run, workspaces, directory, journal, done, clock, keeps } = begun;
    let mut journal = Recorder { journal, rows: Vec::new() };
    let shown = std::io::IsTerminal::is_terminal(&std::io::stderr()) && std::env::var_os("CI").is_none();
    let mut progress = Progress::new(plan.len(), shown);
    let mut interrupts = interrupts();
    progress.begin(&done);
    let allowed = allowance.of(plan.len());
    let interrupted =
        schedule::run(plan, &workspaces, &mut [&mut journal, &mut progress], &mut interrupts, allowed, &done).await;
    progress.finish();
    let interrupted = interrupted.map_err(journal_failure)?;
    let Recorder { mut journal, mut rows } = journal;
    rows.extend(done);
    rows.sort_by_key(|(index, _)| *index);
    let rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
    let mut totals = Totals { planned: plan.len(), ..Totals::default() };
    rows.iter().for_each(|row| totals.add(row.verdict, row.harm));
    run.status = if interrupted { Status::Interrupted } else { Status::Complete };
    run.ended = Some(rfc3339(Timestamp::now()));
    let elapsed = u64::try_from(clock.elapsed().as_millis()).ok();
    run.elapsed_ms = elapsed.map(|elapsed| elapsed.saturating_add(run.elapsed_ms.unwrap_or(0)));
    run.totals = Some(totals);
    journal.finish(&run, &rows).map_err(journal_failure)?;
    if let Some(path) = flags.record.as_ref().filter(|_| keeps) {
        match totals.passed + totals.failed == totals.planned {
            true => keep(path, &directory)?,
            false => output::message(&format!(
                "not recorded: {} of {} attempts came to their end, and a recording has them all",
                totals.passed + totals.failed,
                totals.planned
            )),
        }
    }
    if totals.skipped > 0 && rows.iter().any(is_open) {
        output::message(&format!("to go on: editgate run --resume {}", directory.display()));
    }
    Ok(Done { record: RunRecord { directory, run, rows }, interrupted })
}

/// An attempt that was never made, and can still be.
fn is_open(row: &Row) -> bool {
    row.verdict == Verdict::Skipped && row.class != Class::Skipped(Skip::Unsupported).name()
}

/// The rows that stay, by their place in the plan.
fn finished(plan: &Plan<'_>, rows: Vec<Row>, retry_errors: bool) -> Vec<(usize, Row)> {
    let mut rows: HashMap<_, Row> = rows.into_iter().map(|row| ((row.model.clone(), row.key()), row)).collect();
    plan.attempts()
        .filter_map(|planned| {
            let row = rows.remove(&(planned.cell.model.clone(), planned.key()))?;
            let again = is_open(&row) || (retry_errors && row.verdict == Verdict::Error);
            (!again).then_some((planned.index, row))
        })
        .collect()
}

/// A run goes on only under the conditions under which it began.
fn check_same(run: &RunFile, plan: &Plan<'_>, facts: &[Value], directory: &Path) -> Result<(), Failure> {
    let now = fingerprint::of(plan, facts);
    let mut changed: Vec<String> = now
        .iter()
        .filter(|(name, value)| *name != "concurrency" && run.fingerprint.get(*name) != Some(value))
        .map(|(name, value)| match (run.fingerprint.get(name), value) {
            (Some(Value::Object(was)), Value::Object(is)) => {
                let parts = was.keys().chain(is.keys().filter(|key| !was.contains_key(*key)));
                let parts: Vec<&str> =
                    parts.filter(|part| was.get(*part) != is.get(*part)).map(String::as_str).collect();
                format!("{name} ({})", parts.join(", "))
            }
            _ => name.clone(),
        })
        .collect();
    let cells: Vec<_> = plan.cells.iter().map(|cell| cell.plan.clone()).collect();
    if changed.is_empty() && cells != run.plan {
        changed.push("the plan of cells".to_owned());
    }
    if changed.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(anyhow!(
        "{}: cannot be resumed, since this has changed: {}; what was measured before and after would not be one run",
        directory.display(),
        changed.join(", ")
    )))
}

/// Keeps the answers of a run as a recording.
fn keep(path: &Path, directory: &Path) -> Result<(), Failure> {
    for recording in recordings(directory).map_err(|error| Failure::new(Exit::Internal, error))? {
        let attempts = recording.attempts().filter(|recorded| !recorded.answers.is_empty()).cloned().collect();
        recording::write(path, &recording.header, attempts).map_err(Failure::unwritable)?;
    }
    output::message(&format!("recorded: {}", path.display()));
    Ok(())
}

pub(in crate::cli) fn journal_failure(error: JournalError) -> Failure {
    match error {
        JournalError::Taken { .. } | JournalError::Busy { .. } | JournalError::Broken(_) => Failure::usage(error),
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

/// Unique on a machine, and in the order of time.
pub(in crate::cli) fn run_id(started: Timestamp) -> String {
    format!("{}-{:05}", started.strftime("%Y%m%dT%H%M%SZ"), std::process::id() % 100_000)
}

/// A run that has just begun, of which nothing is planned yet.
pub(in crate::cli) fn begun(id: String, started: Timestamp) -> RunFile {
    RunFile {
        format: FORMAT,
        id,
        status: Status::Running,
        editgate: env!("CARGO_PKG_VERSION").to_owned(),
        started: rfc3339(started),
        ended: None,
        elapsed_ms: None,
        command: command_line(),
        arguments: Vec::new(),
        fingerprint: serde_json::Map::new(),
        source: None,
        plan: Vec::new(),
        totals: None,
    }
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

/// JSON loses the texts of its secret fields.
fn plain_word(text: &str) -> String {
    match serde_json::from_str::<serde_json::Map<String, Value>>(text) {
        Ok(object) => masked(&Value::Object(object)).to_string(),
        Err(_) => text.to_owned(),
    }
}

/// A word for a shell, with nothing secret.
fn word(text: &str) -> String {
    let text = plain_word(text);
    let plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c));
    if plain { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
