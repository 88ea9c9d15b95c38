//! `replay`: recorded answers against today's tools.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::anyhow;
use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

use super::cases::{CaseFlags, select_failure};
use super::models::recordings_at;
use super::run::{begun, journal_failure, parse_name, run_id};
use super::{Exit, Failure, output};
use crate::case::select::select;
use crate::model::recording::{Conditions, Recording};
use crate::model::replay::{Diverged, Replay};
use crate::record::{CellPlan, Journal, Row, RunFile, Source, Status, Totals};
use crate::run::again::{Change, change};
use crate::run::attempt::attempt;
use crate::run::event::Finished;
use crate::run::plan::PlannedModel;
use crate::run::{Plan, RunSettings, fingerprint};
use crate::text::visible;
use crate::tool;
use crate::workspace::Workspaces;

/// Attempts of each kind that the screen names.
const SHOWN: usize = 60;

#[derive(Debug, Args)]
pub(super) struct ReplayFlags {
    /// A run directory, or a recording
    run: PathBuf,
    #[command(flatten)]
    cases: CaseFlags,
    /// Directory for workspaces [default: in memory where the system has some]
    #[arg(long, value_name = "DIR", env = "EDITGATE_SANDBOX_DIR")]
    sandbox_dir: Option<PathBuf>,
    /// Keep what came of it as a run, to be reported and judged as any other
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Name every attempt, unchanged ones too
    #[arg(long)]
    all: bool,
}

/// One attempt, then and now.
struct Replayed {
    change: Change,
    was: String,
    row: Row,
    diverged: Option<usize>,
}

pub(super) fn main(flags: &ReplayFlags) -> Result<Exit, Failure> {
    let mut replayed = Vec::new();
    let mut kept = flags.out.as_ref().map(|_| Kept::default());
    let mut recorded = 0;
    for recording in recordings_at(&flags.run)? {
        if recording.attempts().all(|attempt| attempt.came_to.is_none()) {
            return Err(Failure::usage(anyhow!(
                "{}: tells not what its attempts came to; record it again, or name a run directory",
                flags.run.display()
            )));
        }
        recorded += recording.attempts().filter(|attempt| !attempt.answers.is_empty()).count();
        replayed.extend(replay(recording, flags, kept.as_mut())?);
    }
    if let (Some(kept), Some(directory)) = (kept, &flags.out)
        && !kept.finished.is_empty()
    {
        keep(kept, directory)?;
    }
    if replayed.is_empty() {
        return Err(Failure::new(
            Exit::NothingMatched,
            anyhow!("{}: no recorded attempt is of a case that is here", flags.run.display()),
        ));
    }
    print(flags, &replayed, recorded)?;
    let any = |kind: Change| replayed.iter().any(|each| each.change == kind);
    Ok(match (any(Change::Failed), any(Change::Broken)) {
        (true, _) => Exit::Incomplete,
        (false, true) => Exit::Regressed,
        (false, false) => Exit::Passed,
    })
}

/// What is written as a run.
#[derive(Default)]
struct Kept {
    plan: Vec<CellPlan>,
    fingerprint: serde_json::Map<String, Value>,
    source: Option<Source>,
    finished: Vec<Finished>,
}

/// Writes a run directory.
fn keep(kept: Kept, directory: &Path) -> Result<(), Failure> {
    let now = Timestamp::now();
    let (fingerprint, source, plan) = (kept.fingerprint, kept.source, kept.plan);
    let mut run = RunFile { fingerprint, source, plan, ..begun(run_id(now), now) };
    let mut journal = Journal::create(directory, &run).map_err(journal_failure)?;
    let mut totals = Totals { planned: run.plan.iter().map(CellPlan::attempts).sum(), ..Totals::default() };
    let mut rows = Vec::new();
    for finished in kept.finished {
        journal.append(&finished.row, &finished.transcript, &finished.leftovers).map_err(journal_failure)?;
        totals.add(finished.row.verdict, finished.row.harm);
        rows.push(finished.row);
    }
    (run.status, run.ended, run.totals) = (Status::Complete, Some(run.started.clone()), Some(totals));
    journal.finish(&run, &rows).map_err(journal_failure)
}

fn replay(recording: Recording, flags: &ReplayFlags, kept: Option<&mut Kept>) -> Result<Vec<Replayed>, Failure> {
    let header = recording.header.clone();
    let conditions = recording.header.conditions.clone();
    let settings = settings_of(&conditions, flags.sandbox_dir.as_deref())?;
    let tools: Result<Vec<_>, _> = conditions.tools.iter().map(|name| tool::named(name)).collect();
    let tools = tools.map_err(Failure::usage)?;
    let mut cases = flags.cases.clone();
    let filtered = !(cases.set.is_empty() && cases.case.is_empty() && cases.subset.is_none());
    if !filtered {
        cases.set.clone_from(&conditions.sets);
        cases.subset.clone_from(&conditions.subset);
        cases.case.clone_from(&conditions.cases);
    }
    let sets = cases.load()?;
    let selected = select(&sets, &cases.selection()).map_err(select_failure)?;
    let came_to: HashMap<_, _> = recording
        .attempts()
        .filter(|attempt| !attempt.answers.is_empty())
        .filter_map(|attempt| Some((attempt.key.clone(), attempt.came_to.clone()?)))
        .collect();
    let diverged: Diverged = Rc::new(RefCell::default());
    let model = Replay::loosely(recording, Rc::clone(&diverged)).map_err(Failure::usage)?;
    let models = [PlannedModel {
        protocol: Some(header.protocol.clone()),
        ..PlannedModel::plain(Box::new(model), header.settings.clone())
    }];
    let plan = Plan::new(&models, &tools, &selected, &settings);
    let workspaces = Workspaces::create(settings.sandbox_dir.as_deref()).map_err(Failure::unwritable)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| Failure::new(Exit::Internal, error))?;
    let (mut out, mut all) = (Vec::new(), Vec::new());
    for planned in plan.attempts() {
        let key = planned.key();
        let Some(then) = came_to.get(&key) else {
            continue;
        };
        let finished = runtime.block_on(attempt(planned, &settings, &workspaces));
        let row = finished.row.clone();
        if kept.is_some() {
            all.push(finished);
        }
        let diverged = diverged.borrow().get(&key).copied();
        let change = change(then, &row, diverged.is_some());
        out.push(Replayed { change, was: then.class.clone(), row, diverged });
    }
    if let Some(kept) = kept {
        let facts = [header.server.clone()];
        let mut fingerprint = fingerprint::of(&plan, &facts);
        // Models of one run differ in their own part only.
        if let (Some(Value::Object(held)), Some(Value::Object(more))) =
            (kept.fingerprint.get("models"), fingerprint.get_mut("models"))
        {
            more.extend(held.clone());
        }
        kept.fingerprint = fingerprint;
        kept.plan.extend(plan.cells.iter().map(|cell| cell.plan.clone()));
        let recording = flags.run.display().to_string();
        kept.source = Some(Source { recording, model: header.model.clone(), recorded: header.recorded.clone() });
        kept.finished.extend(all);
    }
    Ok(out)
}

/// The settings under which it was recorded.
fn settings_of(conditions: &Conditions, sandbox_dir: Option<&Path>) -> Result<RunSettings, Failure> {
    let usage = |reason: String| Failure::usage(anyhow!(reason));
    Ok(RunSettings {
        prompt: parse_name(&conditions.prompt).map_err(usage)?,
        text_calls: parse_name(&conditions.text_calls).map_err(usage)?,
        stop_after: parse_name(&conditions.stop_after).map_err(usage)?,
        max_turns: conditions.max_turns,
        identical_limit: conditions.identical_limit,
        repeat: conditions.repeat,
        tool_options: conditions.tool_options.clone(),
        sandbox_dir: sandbox_dir.map(Path::to_owned),
        ..RunSettings::default()
    })
}

fn print(flags: &ReplayFlags, replayed: &[Replayed], recorded: usize) -> Result<(), Failure> {
    let mut by_tool: BTreeMap<&str, BTreeMap<Change, usize>> = BTreeMap::new();
    for each in replayed {
        *by_tool.entry(&each.row.tool).or_default().entry(each.change).or_default() += 1;
    }
    let mut rows = vec![vec!["tool".to_owned()]];
    rows[0].extend(Change::ALL.map(|kind| kind.name().to_owned()));
    for (tool, counts) in &by_tool {
        let mut row = vec![(*tool).to_owned()];
        row.extend(Change::ALL.map(|kind| counts.get(&kind).copied().unwrap_or(0).to_string()));
        rows.push(row);
    }
    let mut text = output::table(rows);
    let mut rows =
        vec![["", "tool", "case", "was", "is", "from request", "the tool says now"].map(str::to_owned).to_vec()];
    for kind in Change::ALL {
        let named = replayed.iter().filter(|each| each.change == kind);
        let shown = match kind {
            Change::Broken | Change::Fixed | Change::Failed => usize::MAX,
            _ if flags.all => usize::MAX,
            Change::Diverged => SHOWN,
            // The verdict is what counts; another kind of failure is worth a line.
            Change::Unchanged => SHOWN,
        };
        let named = named.filter(|each| flags.all || kind != Change::Unchanged || each.was != each.row.class);
        rows.extend(named.take(shown).map(row_of));
    }
    if rows.len() > 1 {
        text.push('\n');
        text.push_str(&output::table(rows));
    }
    let count = |kind: Change| replayed.iter().filter(|each| each.change == kind).count();
    let counts: Vec<String> = Change::ALL.into_iter().map(|kind| format!("{} {}", count(kind), kind.name())).collect();
    text.push_str(&format!("\nreplayed {} of {recorded} recorded attempts: {}\n", replayed.len(), counts.join(", ")));
    output::data(&text)
}

fn row_of(each: &Replayed) -> Vec<String> {
    let row = &each.row;
    let error = row.error.as_deref();
    let said = row.detail.as_ref().and_then(|detail| detail.tool_error.as_deref()).or(error).unwrap_or("–");
    let case = if row.repeat == 0 { row.case.clone() } else { format!("{} ({})", row.case, row.repeat) };
    vec![
        each.change.name().to_owned(),
        row.tool.clone(),
        visible::excerpt(&format!("{}/{case}", row.set), 60),
        each.was.clone(),
        row.class.clone(),
        each.diverged.map_or("–".to_owned(), |turn| turn.to_string()),
        visible::excerpt(said, 80),
    ]
}
