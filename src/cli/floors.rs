//! `floors show|suggest|set`: the floors, what history says they should be, and writing them as a change to review.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;

use super::run::FLOORS;
use super::{Exit, Failure, output};
use crate::record::history::{self, Entry, Known};
use crate::record::load;
use crate::record::run_file::set_name;
use crate::report::summary::percent;
use crate::score::Verdict;
use crate::verdict::binomial::Spread;
use crate::verdict::floor::{Approved, Evidence, Floor, Floors};
use crate::verdict::suggest::{self, FALSE_ALARM, POWER, Suggested};

/// Evidence that is older is called old.
const OLD_DAYS: i64 = 90;

#[derive(Debug, Subcommand)]
pub(super) enum FloorsCommand {
    /// Show the floors, and where they came from
    Show {
        /// File of floors
        #[arg(long, value_name = "FILE", env = "EDITGATE_FLOORS", default_value = FLOORS)]
        floors: PathBuf,
    },
    /// Compute floors from recorded runs: what an unchanged model fails with a stated probability, and what drop they see
    Suggest(Evidenced),
    /// Approve cases that passed in at least K of N attempts, so that gate --require-approved can hold them
    Approve {
        /// Run directories
        #[arg(required = true)]
        runs: Vec<PathBuf>,
        /// How often a case must have passed, of how many attempts in all
        #[arg(long, value_name = "K/N", default_value = "1/1", value_parser = parse_share)]
        at_least: (usize, usize),
        /// File of floors
        #[arg(long, value_name = "FILE", env = "EDITGATE_FLOORS", default_value = FLOORS)]
        floors: PathBuf,
    },
    /// Write suggested floors, as a change to review; a floor is raised only with --raise
    Set {
        #[command(flatten)]
        evidenced: Evidenced,
        /// Where the floors come from
        #[arg(long, value_enum, default_value_t = Method::History)]
        method: Method,
        /// Raise floors too
        #[arg(long)]
        raise: bool,
        /// Show the change and write nothing
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Method {
    /// From all evidence, so that an unchanged model seldom fails
    History,
    /// The pass count of one run as it is: for answers that are replayed, and so never vary
    Measured,
}

#[derive(Debug, Args)]
pub(super) struct Evidenced {
    /// Run directories
    runs: Vec<PathBuf>,
    /// More evidence: a history that `history add` wrote
    #[arg(long, value_name = "FILE", env = "EDITGATE_HISTORY")]
    history: Option<PathBuf>,
    /// The probability that an unchanged model fails a release, all these floors together
    #[arg(long, value_name = "P", default_value_t = FALSE_ALARM)]
    false_alarm: f64,
    /// File of floors
    #[arg(long, value_name = "FILE", env = "EDITGATE_FLOORS", default_value = FLOORS)]
    floors: PathBuf,
}

pub(super) fn main(command: &FloorsCommand) -> Result<Exit, Failure> {
    match command {
        FloorsCommand::Show { floors } => show(floors),
        FloorsCommand::Suggest(evidenced) => suggest(evidenced),
        FloorsCommand::Approve { runs, at_least, floors } => approve(runs, *at_least, floors),
        FloorsCommand::Set { evidenced, method, raise, dry_run } => set(evidenced, *method, *raise, *dry_run),
    }
}

/// `3/5`.
fn parse_share(text: &str) -> Result<(usize, usize), String> {
    let parsed = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    parsed.filter(|(k, n)| *k > 0 && k <= n).ok_or_else(|| "passes of attempts, such as 3/5".to_owned())
}

/// Replaces what was approved of the cells of these runs; other cells stay as they are.
fn approve(runs: &[PathBuf], (least, of): (usize, usize), path: &Path) -> Result<Exit, Failure> {
    let mut cases: BTreeMap<[String; 5], (usize, usize, Vec<String>)> = BTreeMap::new();
    for directory in runs {
        let record = load::load(directory).map_err(Failure::usage)?;
        for row in record.rows.iter().filter(|row| row.verdict.is_judged()) {
            let key = [&row.model, &row.tool, &row.set, &row.prompt, &row.case].map(String::clone);
            let (passed, n, ids) = cases.entry(key).or_default();
            *passed += usize::from(row.verdict == Verdict::Pass);
            *n += 1;
            if !ids.contains(&record.run.id) {
                ids.push(record.run.id.clone());
            }
        }
    }
    let mut floors = read(path)?;
    floors.approved.retain(|approved| {
        let cell = [&approved.model, &approved.tool, &approved.set, &approved.prompt];
        !cases.keys().any(|key| cell.into_iter().eq(&key[..4]))
    });
    let before = floors.approved.len();
    for ([model, tool, set, prompt, case], (passed, n, runs)) in cases {
        // Of more attempts than asked for, as many in proportion.
        if n >= of && passed * of >= least * n {
            floors.approved.push(Approved { model, tool, set, prompt, case, passed, n, runs });
        }
    }
    let approved = floors.approved.len() - before;
    floors.write(path).map_err(Failure::unwritable)?;
    output::data(&format!("{approved} cases approved; written to {}; review and commit it\n", path.display()))?;
    Ok(Exit::Passed)
}

fn show(path: &Path) -> Result<Exit, Failure> {
    let floors = Floors::load(path).map_err(Failure::usage)?;
    let heads =
        ["model", "tool", "set", "prompt", "floor", "of", "false alarm", "sees a drop of", "evidence", "method"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for floor in &floors.floors {
        rows.push(vec![
            floor.model.clone(),
            floor.tool.clone(),
            set_name(&floor.set, floor.subset.as_deref()),
            floor.prompt.clone(),
            floor.floor.to_string(),
            floor.n.to_string(),
            floor.false_alarm.map_or("–".to_owned(), share),
            floor.detects.map_or("–".to_owned(), percent),
            format!("{}{}", plural(floor.runs.len(), "run"), age(floor).unwrap_or_default()),
            floor.method.clone(),
        ]);
    }
    output::data(&output::table(rows))?;
    Ok(Exit::Passed)
}

/// A probability in per cent, with the digits that small ones need.
fn share(p: f64) -> String {
    if p >= 0.1 { percent(p) } else { format!("{:.1} %", p * 100.0) }
}

fn plural(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Says that the newest evidence is old.
fn age(floor: &Floor) -> Option<String> {
    let newest: Timestamp = floor.evidence.iter().filter_map(|evidence| evidence.made.parse().ok()).max()?;
    let days = (Timestamp::now().as_second() - newest.as_second()) / 86_400;
    (days > OLD_DAYS).then(|| format!(", stale: {days} days old"))
}

/// A cell with its evidence and what that suggests.
struct Proposal {
    known: Known,
    rate: f64,
    suggested: Suggested,
}

fn gather(evidenced: &Evidenced) -> Result<Vec<Known>, Failure> {
    let mut entries: Vec<Entry> = Vec::new();
    for directory in &evidenced.runs {
        let record = load::load(directory).map_err(Failure::usage)?;
        let fresh = history::of_run(&record, |_| None);
        if fresh.is_empty() {
            let why = "no cell of it was run whole and to its end, and a floor speaks of a whole set or subset";
            return Err(Failure::new(Exit::Incomplete, anyhow!("{}: {why}", directory.display())));
        }
        entries.extend(fresh);
    }
    if let Some(path) = &evidenced.history {
        let known = |entry: &Entry| entries.iter().any(|other| other.run == entry.run && other.key() == entry.key());
        let more: Vec<Entry> =
            history::load(path).map_err(Failure::usage)?.into_iter().filter(|entry| !known(entry)).collect();
        entries.extend(more);
    }
    if entries.is_empty() {
        return Err(Failure::usage(anyhow!("no evidence: name run directories, or a file with --history")));
    }
    let all = history::by_cell(entries);
    for known in &all {
        for (entry, why) in &known.left_out {
            output::message(&format!("left out: {} in run {}: {why}", entry.title(), entry.run));
        }
        if known.runs.is_empty() {
            return Err(Failure::new(
                Exit::Incomplete,
                anyhow!(
                    "{}: not every attempt came to a verdict, and a floor needs a whole cell",
                    known.newest.title()
                ),
            ));
        }
    }
    Ok(all)
}

fn proposals(evidenced: &Evidenced) -> Result<Vec<Proposal>, Failure> {
    if !(evidenced.false_alarm > 0.0 && evidenced.false_alarm < 1.0) {
        return Err(Failure::usage(anyhow!("--false-alarm {}: a probability such as 0.05", evidenced.false_alarm)));
    }
    let all = gather(evidenced)?;
    let cells: Vec<_> =
        all.iter().filter_map(|known| Some((suggest::spread(&known.counts())?, known.newest.planned))).collect();
    let floors = suggest::floors(&cells, evidenced.false_alarm);
    let proposal = |((known, (spread, _)), suggested): ((Known, (Spread, usize)), Suggested)| Proposal {
        known,
        rate: spread.mean(),
        suggested,
    };
    Ok(all.into_iter().zip(cells).zip(floors).map(proposal).collect())
}

fn suggest(evidenced: &Evidenced) -> Result<Exit, Failure> {
    let proposals = proposals(evidenced)?;
    let floors = read(&evidenced.floors)?;
    let heads = ["cell", "runs", "passed", "of", "floor now", "suggested", "false alarm", "sees a drop of"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for Proposal { known, rate, suggested } in &proposals {
        let counts: Vec<String> = known.runs.iter().map(|entry| entry.passed.to_string()).collect();
        let now = floors.floors.iter().find(|floor| floor.key() == known.newest.key());
        rows.push(vec![
            known.newest.title(),
            known.runs.len().to_string(),
            counts.join(" "),
            known.newest.planned.to_string(),
            now.map_or("–".to_owned(), |floor| floor.floor.to_string()),
            suggested.floor.to_string(),
            share(suggested.false_alarm),
            seen(*rate, suggested.floor, known.newest.planned).map_or("nothing".to_owned(), percent),
        ]);
    }
    let all: Vec<Suggested> = proposals.iter().map(|proposal| proposal.suggested).collect();
    let alarm = suggest::release_alarm(&all);
    output::data(&format!(
        "{}\nAn unchanged model fails a release judged by {} with a probability of {} (asked for: at most {}). A drop is \
         counted as seen where the floor is missed with a probability of {}.\n",
        output::table(rows),
        if all.len() == 1 { "this floor".to_owned() } else { format!("these {} floors", all.len()) },
        share(alarm),
        share(evidenced.false_alarm),
        percent(POWER),
    ))?;
    Ok(Exit::Passed)
}

fn seen(rate: f64, floor: usize, n: usize) -> Option<f64> {
    suggest::detectable_drop(rate, floor, n, POWER)
}

fn read(path: &Path) -> Result<Floors, Failure> {
    if path.exists() { Floors::load(path).map_err(Failure::usage) } else { Ok(Floors::default()) }
}

fn set(evidenced: &Evidenced, method: Method, raise: bool, dry_run: bool) -> Result<Exit, Failure> {
    let fresh = match method {
        Method::History => from_history(evidenced)?,
        Method::Measured => measured(evidenced)?,
    };
    let mut floors = read(&evidenced.floors)?;
    let (mut changed, mut held) = (Vec::new(), 0);
    for floor in fresh {
        let before = floors.floors.iter().find(|other| other.key() == floor.key()).cloned();
        // On other cases or counts there is nothing to raise: that is another floor.
        let same = |before: &Floor| (&before.digest, before.n) == (&floor.digest, floor.n);
        let raised = before.as_ref().is_some_and(|before| same(before) && floor.floor > before.floor);
        if raised && !raise {
            held += 1;
            changed.push(format!(
                "  {}: stays at {} of {} (the evidence would carry {}; --raise raises it)",
                floor.title(),
                before.as_ref().map_or(0, |before| before.floor),
                floor.n,
                floor.floor
            ));
            continue;
        }
        if before.as_ref() == Some(&floor) {
            continue;
        }
        if let Some(before) = &before {
            changed.push(format!("- {}: {} of {} ({})", before.title(), before.floor, before.n, before.method));
        }
        changed.push(format!("+ {}: {} of {} ({})", floor.title(), floor.floor, floor.n, floor.method));
        floors.set(floor);
    }
    if changed.is_empty() {
        output::data("no floor changes\n")?;
        return Ok(Exit::Passed);
    }
    if !dry_run && changed.len() > held {
        floors.write(&evidenced.floors).map_err(Failure::unwritable)?;
    }
    let last = match (dry_run, changed.len() > held) {
        (true, _) => "nothing was written (--dry-run)".to_owned(),
        (false, true) => format!("written to {}; review and commit it", evidenced.floors.display()),
        (false, false) => "nothing was written".to_owned(),
    };
    output::data(&format!("{}\n{last}\n", changed.join("\n")))?;
    Ok(Exit::Passed)
}

fn from_history(evidenced: &Evidenced) -> Result<Vec<Floor>, Failure> {
    let method = format!("history: {} a release", share(evidenced.false_alarm));
    let floor = |Proposal { known, rate, suggested }: Proposal| {
        let detects = seen(rate, suggested.floor, known.newest.planned);
        let passed = None;
        made(&known, suggested.floor, passed, method.clone(), Some(suggested.false_alarm), detects)
    };
    Ok(proposals(evidenced)?.into_iter().map(floor).collect())
}

fn measured(evidenced: &Evidenced) -> Result<Vec<Floor>, Failure> {
    if evidenced.runs.len() != 1 || evidenced.history.is_some() {
        return Err(Failure::usage(anyhow!("--method measured takes one run directory, and no history")));
    }
    let floor = |known: Known| {
        let passed = known.newest.passed;
        made(&known, passed, Some(passed), "measured once".to_owned(), None, None)
    };
    Ok(gather(evidenced)?.into_iter().map(floor).collect())
}

fn made(
    known: &Known,
    floor: usize,
    passed: Option<usize>,
    method: String,
    false_alarm: Option<f64>,
    detects: Option<f64>,
) -> Floor {
    let newest = &known.newest;
    let evidence = |entry: &Entry| Evidence {
        run: entry.run.clone(),
        made: entry.made.clone(),
        passed: entry.passed,
        n: entry.planned,
    };
    let rounded = |number: f64| (number * 10_000.0).round() / 10_000.0;
    Floor {
        model: newest.model.clone(),
        tool: newest.tool.clone(),
        set: newest.set.clone(),
        subset: newest.subset.clone(),
        prompt: newest.prompt.clone(),
        digest: newest.digest.clone(),
        conditions: Some(newest.conditions.clone()),
        n: newest.planned,
        floor,
        passed,
        runs: known.runs.iter().map(|entry| entry.run.clone()).collect(),
        method,
        false_alarm: false_alarm.map(rounded),
        detects: detects.map(rounded),
        evidence: known.runs.iter().map(evidence).collect(),
    }
}
