//! `report.md`: whether to ship in five seconds, why not in a minute, under 60 kB whatever the run.

use std::collections::BTreeMap;

use serde_json::Value;

use super::markup::{block, cell_code, code, table, text};
use super::summary::{CellSummary, Summary, name_of, percent_number};
use super::terminal::gate_words;
use super::{baseline, pairs, tags};
use crate::record::Row;
use crate::score::class::meaning;
use crate::score::relax::Relaxation;
use crate::text::visible;
use crate::verdict::gate::Judgement;

/// A report is no larger, in bytes: code hosts cut comments at 65,536 characters.
pub const MAX_BYTES: usize = 60_000;
/// What the end of the report needs.
const RESERVE: usize = 2_000;
const MAX_CELLS: usize = 60;
const MAX_MISSED: usize = 12;
const MAX_CLASSES: usize = 40;
const MAX_CASES: usize = 60;

/// Charts beside the report, by their paths without theme and ending: of the matrix, and of rates against cost.
#[derive(Clone, Copy, Debug)]
pub struct Charts {
    pub matrix: bool,
    pub cost: bool,
}

/// Renders the report. Charts are shown where they were drawn.
pub fn render(summary: &Summary<'_>, charts: Option<Charts>) -> String {
    let mut out = format!("# editgate: {}\n\n", text(&summary.headline()));
    out.push_str(&format!("{}. {}.{}\n", text(&summary.reconciliation()), harm_words(summary), spent(summary)));
    out.push_str(&format!("\nAnswers from: {}.\n\n", text(&summary.origin())));
    out.push_str(&missed(summary));
    for note in &summary.notes {
        out.push_str(&format!("{}.\n\n", text(note)));
    }
    out.push_str(&together(summary));
    if let Some(charts) = charts {
        out.push_str(&pictures(charts));
    }
    out.push_str(&baseline::render(summary, MAX_CASES));
    out.push_str(&cells(summary));
    out.push_str(&relaxations(summary));
    out.push_str(&pairs::render(&summary.pairs));
    out.push_str(&tags::render(summary));
    out.push_str(&classes(summary));
    out.push_str(&unsupported(summary));
    out.push_str(&process(summary));
    out.push_str(&baseline::flaky(summary, MAX_CASES));
    let tail = tail(summary);
    let room = MAX_BYTES.saturating_sub(RESERVE + tail.len());
    out.push_str(&cases(summary, room.saturating_sub(out.len())));
    out.push_str(&tail);
    bounded(out)
}

/// The cells that stop a release, first of all.
fn missed(summary: &Summary<'_>) -> String {
    let stopped = |cell: &&CellSummary<'_>| !matches!(cell.judgement, Judgement::Passed { .. } | Judgement::Ungated);
    let all: Vec<&CellSummary<'_>> = summary.cells.iter().filter(stopped).collect();
    let mut out = String::new();
    for cell in all.iter().take(MAX_MISSED) {
        let (floor, word) = gate_words(&cell.judgement);
        let why = match &cell.judgement {
            Judgement::Incomplete { why } | Judgement::Inconclusive { why, .. } => text(why),
            _ => format!("{} of {} passed, the floor is {floor}", cell.totals.passed, cell.totals.planned),
        };
        out.push_str(&format!("- **{word}**: {}: {why}\n", text(&visible::excerpt(&cell.plan.title(), 160))));
    }
    if all.len() > MAX_MISSED {
        out.push_str(&format!("- … {} more\n", all.len() - MAX_MISSED));
    }
    if out.is_empty() { out } else { format!("{out}\n") }
}

/// What it took, where that is known.
fn spent(summary: &Summary<'_>) -> String {
    let cost = summary.process.cost.map(|cost| format!("${cost:.4}"));
    // A replay takes no time that anybody asked for.
    let elapsed = summary.run.elapsed_ms.filter(|_| summary.run.source.is_none());
    let time = elapsed.map(|ms| format!("{:.0} s", ms as f64 / 1000.0));
    let parts: Vec<String> = cost.into_iter().chain(time).collect();
    if parts.is_empty() { String::new() } else { format!(" It took {}.", parts.join(" and ")) }
}

/// Each in the colours of the page that it stands on.
fn pictures(charts: Charts) -> String {
    let picture = |name: &str, what: &str| {
        format!(
            "<picture><source media=\"(prefers-color-scheme: dark)\" srcset=\"charts/{name}-dark.svg\">\
             <img alt=\"{what}\" src=\"charts/{name}.svg\"></picture>\n\n"
        )
    };
    let mut out = String::new();
    if charts.matrix {
        out.push_str(&picture(
            "matrix",
            "pass rates by model, tool and set, with 95 % intervals; the table below has the same numbers",
        ));
    }
    if charts.cost {
        out.push_str(&picture("cost", "pass rate against what an attempt costs"));
    }
    out
}

fn harm_words(summary: &Summary<'_>) -> String {
    match summary.totals.harm {
        0 => "No failed attempt left a file changed".to_owned(),
        1 => "**Harm: 1** failed attempt left a file changed".to_owned(),
        harm => format!("**Harm: {harm}** failed attempts left a file changed"),
    }
}

/// Models and tools over all sets, where there are several to compare.
fn together(summary: &Summary<'_>) -> String {
    if summary.together.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = summary
        .together
        .iter()
        .take(MAX_CELLS)
        .map(|each| {
            let (low, high) = each.interval;
            vec![
                text(&visible::excerpt(each.model, 80)),
                text(each.tool),
                text(each.prompt),
                format!("{}/{}", each.totals.passed, each.totals.planned),
                rate_words(each.rate, low, high),
                pass_words(&each.passes),
                each.totals.harm.to_string(),
            ]
        })
        .collect();
    let heads = ["model", "tool", "prompt", "passed", "rate \\[95 %\\]", "first / recovered / assisted", "harm"];
    format!("## All sets together\n\n{}\n", table(&heads, &rows))
}

fn rate_words(rate: Option<f64>, low: f64, high: f64) -> String {
    let rate = rate.map_or("–".to_owned(), |rate| format!("{} %", percent_number(rate)));
    format!("{} \\[{}–{}\\]", rate.replace(' ', "&nbsp;"), percent_number(low), percent_number(high))
}

fn pass_words(passes: &BTreeMap<&str, usize>) -> String {
    let count = |class: &str| passes.get(class).copied().unwrap_or(0);
    let untouched = match count("pass.untouched") {
        0 => String::new(),
        untouched => format!(" (+ {untouched} untouched)"),
    };
    format!("{} / {} / {}{untouched}", count("pass.first"), count("pass.recovered"), count("pass.assisted"))
}

fn cells(summary: &Summary<'_>) -> String {
    let mut rows: Vec<Vec<String>> = summary.cells.iter().take(MAX_CELLS).map(cell_row).collect();
    if summary.cells.len() > MAX_CELLS {
        rows.push(vec![format!("… {} more", summary.cells.len() - MAX_CELLS)]);
    }
    let heads = [
        "model",
        "tool",
        "set",
        "prompt",
        "passed",
        "rate \\[95 %\\]",
        "first / recovered / assisted",
        "harm",
        "errors",
        "skipped",
        "floor",
        "gate",
    ];
    format!("## Model × tool\n\n{}\n{}", table(&heads, &rows), baseline::gap(summary))
}

fn cell_row(cell: &CellSummary<'_>) -> Vec<String> {
    let (low, high) = cell.interval;
    let (floor, gate) = gate_words(&cell.judgement);
    vec![
        text(&visible::excerpt(&cell.plan.model, 80)),
        text(&cell.plan.tool),
        text(&visible::excerpt(&cell.plan.set_name(), 60)),
        text(&cell.plan.prompt),
        format!("{}/{}", cell.totals.passed, cell.totals.planned),
        rate_words(cell.rate, low, high),
        pass_words(&cell.passes),
        cell.totals.harm.to_string(),
        cell.totals.errors.to_string(),
        cell.totals.skipped.to_string(),
        floor,
        if gate == "BELOW" { format!("**{gate}**") } else { gate },
    ]
}

/// Only where it says something: what a less strict benchmark would have counted.
fn relaxations(summary: &Summary<'_>) -> String {
    let relaxed: Vec<&CellSummary<'_>> =
        summary.cells.iter().filter(|cell| !cell.part && !cell.relaxed.is_empty()).take(MAX_CELLS).collect();
    if relaxed.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = relaxed
        .into_iter()
        .map(|cell| {
            let mut row = vec![
                text(&visible::excerpt(&cell.plan.model, 80)),
                text(&cell.plan.tool),
                text(&cell.plan.set_name()),
                text(&cell.plan.prompt),
            ];
            row.extend(
                Relaxation::ALL
                    .iter()
                    .map(|relaxation| format!("+{}", cell.relaxed.get(relaxation).copied().unwrap_or(0))),
            );
            row
        })
        .collect();
    let heads =
        ["model", "tool", "set", "prompt", "line endings", "final newline", "trailing blanks", "all whitespace"];
    format!(
        "Failed attempts that would count as right if these bytes were ignored (diagnosis only, never a pass):\n\n{}\n",
        table(&heads, &rows)
    )
}

fn classes(summary: &Summary<'_>) -> String {
    if summary.classes.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = summary
        .classes
        .iter()
        .take(MAX_CLASSES)
        .map(|class| {
            vec![
                cell_code(class.class),
                class.count.to_string(),
                meaning(class.class).unwrap_or_default().to_owned(),
                cell_code(&visible::excerpt(&format!("{}/{}", class.example.set, class.example.case), 100)),
            ]
        })
        .collect();
    format!("## Why not\n\n{}\n", table(&["class", "count", "meaning", "for example"], &rows))
}

/// Cases that a tool or model cannot take, with the reasons.
fn unsupported(summary: &Summary<'_>) -> String {
    if summary.unsupported.is_empty() {
        return String::new();
    }
    let mut rows: Vec<Vec<String>> = summary
        .unsupported
        .iter()
        .take(MAX_CASES)
        .map(|row| {
            vec![
                text(&row.tool),
                cell_code(&visible::excerpt(&format!("{}/{}", row.set, row.case), 100)),
                text(&one_line(row.error.as_deref().unwrap_or_default(), 200)),
            ]
        })
        .collect();
    if summary.unsupported.len() > MAX_CASES {
        rows.push(vec![format!("… {} more", summary.unsupported.len() - MAX_CASES)]);
    }
    format!(
        "## What cannot be expressed\n\nSkipped, and not in the rates.\n\n{}\n",
        table(&["tool", "case", "why"], &rows)
    )
}

fn process(summary: &Summary<'_>) -> String {
    let process = &summary.process;
    let pair = |name: &str, values: Option<(String, String)>| {
        values.map(|(median, high)| format!("{name} {median} (95th percentile {high})"))
    };
    let number = |values: Option<(u64, u64)>| values.map(|(a, b)| (a.to_string(), b.to_string()));
    let mut parts = Vec::new();
    parts.extend(pair("turns", number(process.turns)));
    parts.extend(pair("seconds of the model", process.seconds.map(|(a, b)| (format!("{a:.1}"), format!("{b:.1}")))));
    parts.extend(pair("input tokens", number(process.input)));
    parts.extend(pair("output tokens", number(process.output)));
    let (ok, of) = process.first_edit_ok;
    let mut totals = vec![format!("{} calls, {} of them refused or malformed", process.calls, process.refused)];
    if of > 0 {
        totals.push(format!("the first edit call was carried out in {ok} of the {of} attempts that made one"));
    }
    if process.retries > 0 {
        totals.push(format!("{} retries of infrastructure", process.retries));
    }
    if !process.dropped_params.is_empty() {
        let names: Vec<String> = process.dropped_params.iter().map(|name| code(name)).collect();
        totals.push(format!("parameters that the server refused, left out: {}", names.join(", ")));
    }
    if !summary.conduct.is_empty() {
        let flags: Vec<String> =
            summary.conduct.iter().map(|(name, count)| format!("{} {count}", code(name))).collect();
        totals.push(format!("conduct, in attempts: {}", flags.join(", ")));
    }
    let each =
        if parts.is_empty() { String::new() } else { format!("\nMedians of an attempt: {}.\n", parts.join("; ")) };
    format!("## How it went\n\nIn all: {}.\n{each}\n", totals.join("; "))
}

/// Failed and errored attempts, as many as fit into `room` bytes.
fn cases(summary: &Summary<'_>, room: usize) -> String {
    if summary.troubles.is_empty() {
        return String::new();
    }
    let mut out = "## Cases that did not pass\n\nStep string, tool error, and the bytes: `-` expected, `+` actual; `␊` `␍` line endings, `→` tab, `·` blank at an end of a line.\n\n".to_owned();
    let mut shown = 0;
    for row in summary.troubles.iter().take(MAX_CASES) {
        let entry = case(row);
        if out.len() + entry.len() > room {
            break;
        }
        out.push_str(&entry);
        shown += 1;
    }
    if shown < summary.troubles.len() {
        out.push_str(&format!("… {} more in {}.\n\n", summary.troubles.len() - shown, code("attempts.jsonl")));
    }
    out
}

fn case(row: &Row) -> String {
    let repeat = if row.repeat > 0 { format!(" (repeat {})", row.repeat) } else { String::new() };
    let flags: Vec<String> = row.diagnosis.iter().map(name_of).collect();
    let mut out = format!(
        "<details><summary>{}/{}{repeat}: {}{}</summary>\n\n",
        text(&row.set),
        text(&row.case),
        text(&row.class),
        if row.harm { ", harm" } else { "" }
    );
    out.push_str(&format!(
        "- {} × {}, steps: {}\n",
        text(&visible::excerpt(&row.model, 80)),
        text(&row.tool),
        code(&visible::excerpt(&row.steps(), 300))
    ));
    if !flags.is_empty() {
        out.push_str(&format!("- diagnosis: {}\n", flags.join(", ")));
    }
    if let Some(error) = &row.error {
        out.push_str(&format!("- ended by: {}\n", code(&one_line(error, 300))));
    }
    if let Some(detail) = &row.detail {
        out.push_str(&format!("- task: {}\n", text(&one_line(&detail.task, 400))));
        if let Some(edit) = &detail.last_edit {
            out.push_str(&format!("- last edit call: {}\n", code(&one_line(edit, 400))));
        }
        if let Some(error) = &detail.tool_error {
            out.push_str(&format!("- last tool error: {}\n", code(&one_line(error, 300))));
        }
        if row.calls.is_empty() && !detail.answer.is_empty() {
            out.push_str(&format!("- answer: {}\n", code(&one_line(&detail.answer, 300))));
        }
        if !detail.diff.is_empty() {
            out.push('\n');
            out.push_str(&block("diff", &detail.diff));
        }
    }
    out.push_str("\n</details>\n\n");
    out
}

/// A text with its line breaks and runs of blanks as single spaces, cut.
fn one_line(text: &str, limit: usize) -> String {
    visible::excerpt(&text.split_whitespace().collect::<Vec<_>>().join(" "), limit)
}

/// Configuration, fingerprint and how to do it again.
fn tail(summary: &Summary<'_>) -> String {
    let run = summary.run;
    let mut rows = vec![
        vec!["run".to_owned(), cell_code(&run.id)],
        vec!["started".to_owned(), cell_code(&run.started)],
        vec!["editgate".to_owned(), cell_code(&run.editgate)],
    ];
    if let Some(source) = &run.source {
        rows.push(vec![
            "recording".to_owned(),
            cell_code(&format!("{} ({}, {})", source.recording, source.model, source.recorded)),
        ]);
    }
    for (name, value) in run.fingerprint.iter().filter(|(name, _)| *name != "editgate") {
        rows.push(vec![text(name), cell_code(&visible::excerpt(&compact(value), 600))]);
    }
    format!(
        "## Configuration and fingerprint\n\n{}\nTo do it again:\n\n{}",
        table(&["", ""], &rows),
        block("sh", &visible::excerpt(&run.command, 1000))
    )
}

fn compact(value: &Value) -> String {
    value.to_string()
}

/// The last guard: never over the limit, cut at a line, and said so.
fn bounded(text: String) -> String {
    if text.len() <= MAX_BYTES {
        return text;
    }
    let note = "\n… cut at 60 kB; the whole is in attempts.jsonl\n";
    let mut end = MAX_BYTES - note.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let end = text[..end].rfind('\n').unwrap_or(end);
    format!("{}{note}", &text[..end])
}
