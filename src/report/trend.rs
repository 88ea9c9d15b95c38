//! `TREND.md`, its charts and the badge: rebuilt from the history, and never the source of anything.

use serde_json::{Value, json};

use super::chart::{self, ChartError, Step, Theme};
use super::markup::{cell_code, table, text};
use super::summary::percent_number;
use crate::record::history::Entry;
use crate::record::run_file::CellKey;
use crate::text::visible;
use crate::verdict::interval::wilson;

/// Runs of a cell that are shown, and cells that get a chart.
const MAX_RUNS: usize = 20;
const MAX_CHARTS: usize = 12;
/// The page is no larger, in bytes.
const MAX_BYTES: usize = 400_000;

/// The page and its charts, as file names and texts.
///
/// # Errors
/// When a chart cannot be drawn.
pub fn render(entries: &[Entry]) -> Result<Vec<(String, String)>, ChartError> {
    let mut cells = by_cell(entries);
    // What is wrong comes first.
    cells.sort_by_key(|cell| cell.last().is_none_or(|newest| state(newest) != "**BELOW**"));
    let mut files = Vec::new();
    let mut page = format!(
        "# editgate: trend\n\nRebuilt from `history.jsonl` by `editgate history add`; {} over {}. Counts of other cases or under other \
         conditions are another line of the history: such a change is marked.\n\n{}\n",
        plural(cells.len(), "cell"),
        plural(runs(entries), "run"),
        now(&cells)
    );
    let mut charts = 0;
    for (index, cell) in cells.iter().enumerate() {
        let Some(newest) = cell.last() else {
            continue;
        };
        let mut section = format!("## {}\n\n", text(&visible::excerpt(&newest.title(), 200)));
        if cell.len() > 1 && newest.floor.is_some() && charts < MAX_CHARTS {
            charts += 1;
            let steps: Vec<Step> = cell.iter().rev().take(MAX_RUNS).rev().map(|entry| step(entry)).collect();
            for (theme, end) in Theme::ALL {
                files.push((format!("charts/trend-{index:03}{end}.svg"), chart::trend(&steps, theme)?));
            }
            section.push_str(&format!(
                "<picture><source media=\"(prefers-color-scheme: dark)\" srcset=\"charts/trend-{index:03}-dark.svg\"><img \
                 alt=\"passes of each run with 95 % intervals; shaded: below the floor\" src=\"charts/trend-{index:03}.svg\"></picture>\n\n"
            ));
        }
        section.push_str(&format!("{}\n", history(cell)));
        if page.len() + section.len() > MAX_BYTES {
            page.push_str(&format!("… {} more cells\n", cells.len() - index));
            break;
        }
        page.push_str(&section);
    }
    files.push(("TREND.md".to_owned(), page));
    files.push(("badge.json".to_owned(), format!("{:#}\n", badge(entries))));
    Ok(files)
}

fn plural(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn runs(entries: &[Entry]) -> usize {
    let mut ids: Vec<&str> = entries.iter().map(|entry| entry.run.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.len()
}

/// Entries of each cell, oldest first.
fn by_cell(entries: &[Entry]) -> Vec<Vec<&Entry>> {
    let mut keys: Vec<CellKey<'_>> = entries.iter().map(Entry::key).collect();
    keys.sort_unstable();
    keys.dedup();
    let of = |key: CellKey<'_>| {
        // By time; those of one moment stay as they were added.
        let mut mine: Vec<&Entry> = entries.iter().filter(|entry| entry.key() == key).collect();
        mine.sort_by(|a, b| a.made.cmp(&b.made));
        mine
    };
    keys.into_iter().map(of).collect()
}

fn step(entry: &Entry) -> Step {
    let interval = wilson(entry.passed, entry.planned);
    Step { passed: entry.passed, of: entry.planned, interval, floor: entry.floor }
}

/// Where every cell stands.
fn now(cells: &[Vec<&Entry>]) -> String {
    let rows: Vec<Vec<String>> = cells
        .iter()
        .filter_map(|cell| {
            let newest = *cell.last()?;
            let before = cell.iter().rev().nth(1);
            let change = before.map_or("–".to_owned(), |before| match same(before, newest) {
                true => signed(newest.passed as i64 - before.passed as i64),
                false => "other cases or conditions".to_owned(),
            });
            Some(vec![
                text(&visible::excerpt(&newest.title(), 160)),
                day(newest),
                counts(newest),
                change,
                newest.floor.map_or("–".to_owned(), |floor| floor.to_string()),
                state(newest).to_owned(),
            ])
        })
        .collect();
    table(&["cell", "newest", "passed \\[95 %\\]", "since the run before", "floor", ""], &rows)
}

fn history(cell: &[&Entry]) -> String {
    let rows: Vec<Vec<String>> = cell
        .iter()
        .enumerate()
        .rev()
        .take(MAX_RUNS)
        .map(|(index, entry)| {
            let changed = index > 0 && !same(cell[index - 1], entry);
            vec![
                day(entry),
                cell_code(&visible::excerpt(&entry.run, 60)),
                counts(entry),
                entry.harm.to_string(),
                entry.errors.to_string(),
                entry.cost_usd.map_or("–".to_owned(), |cost| format!("{cost:.4}")),
                entry.floor.map_or("–".to_owned(), |floor| floor.to_string()),
                format!("{}{}", state(entry), if changed { "; other cases or conditions from here" } else { "" }),
            ]
        })
        .collect();
    table(&["made", "run", "passed \\[95 %\\]", "harm", "errors", "cost $", "floor", ""], &rows)
}

fn same(a: &Entry, b: &Entry) -> bool {
    (&a.digest, &a.conditions, a.planned) == (&b.digest, &b.conditions, b.planned)
}

fn signed(change: i64) -> String {
    match change {
        0 => "0".to_owned(),
        change if change < 0 => format!("−{}", -change),
        change => format!("+{change}"),
    }
}

fn day(entry: &Entry) -> String {
    text(entry.made.split('T').next().unwrap_or_default())
}

fn counts(entry: &Entry) -> String {
    let (low, high) = wilson(entry.passed, entry.planned);
    format!("{}/{} \\[{}–{}\\]", entry.passed, entry.planned, percent_number(low), percent_number(high))
}

fn state(entry: &Entry) -> &'static str {
    match entry.floor {
        _ if !entry.whole() => "incomplete",
        Some(floor) if entry.passed < floor => "**BELOW**",
        Some(_) => "ok",
        None => "no floor",
    }
}

/// The newest run in the form that shields.io reads as an endpoint (shields.io/badges/endpoint-badge).
fn badge(entries: &[Entry]) -> Value {
    let newest = entries.iter().max_by(|a, b| (&a.made, &a.run).cmp(&(&b.made, &b.run)));
    let mine: Vec<&Entry> =
        entries.iter().filter(|entry| newest.is_some_and(|newest| newest.run == entry.run)).collect();
    let sum = |of: fn(&Entry) -> usize| mine.iter().map(|entry| of(entry)).sum::<usize>();
    let (passed, planned) = (sum(|entry| entry.passed), sum(|entry| entry.planned));
    let below = mine.iter().any(|entry| state(entry) == "**BELOW**");
    let (word, color) = match mine.as_slice() {
        [] => ("no run", "lightgrey"),
        _ if mine.iter().any(|entry| !entry.whole()) => ("incomplete", "lightgrey"),
        _ if below => ("below a floor", "red"),
        _ if mine.iter().all(|entry| entry.floor.is_none()) => ("not gated", "blue"),
        _ => ("floors met", "brightgreen"),
    };
    let message = if planned == 0 { word.to_owned() } else { format!("{passed}/{planned}, {word}") };
    json!({ "schemaVersion": 1, "label": "editgate", "message": message, "color": color })
}
