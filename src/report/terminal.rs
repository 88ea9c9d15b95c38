//! The terminal: one table, and the verdict in the last lines.

use tabled::builder::Builder;
use tabled::settings::{Padding, Style};

use super::pairs;
use super::summary::{CellSummary, Summary, percent_number};
use crate::score::class::meaning;
use crate::text::visible;
use crate::verdict::gate::Judgement;

/// Failed cases that the screen names; all are in the report.
const SHOWN_CLASSES: usize = 8;

/// Lost cases that the screen names.
const SHOWN_LOST: usize = 20;

/// Cases that a tool cannot take, of which the screen tells the reasons.
const SHOWN_UNSUPPORTED: usize = 20;

/// The table of cells, the reasons, the reconciliation and the verdict.
pub fn render(summary: &Summary<'_>) -> String {
    let mut rows = vec![
        ["model", "tool", "set", "prompt", "passed", "rate", "95 %", "harm", "errors", "floor", "gate"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(summary.cells.iter().map(cell_row));
    let mut out = format!("{}\n\n{}", visible::inert(&summary.origin()), table(rows));
    if !summary.together.is_empty() {
        let mut rows =
            vec![["all sets", "tool", "prompt", "passed", "rate", "95 %", "harm"].map(str::to_owned).to_vec()];
        rows.extend(summary.together.iter().map(|each| {
            vec![
                visible::excerpt(each.model, 48),
                each.tool.to_owned(),
                each.prompt.to_owned(),
                format!("{}/{}", each.totals.passed, each.totals.planned),
                each.rate.map_or("–".to_owned(), |rate| format!("{} %", percent_number(rate))),
                format!("{}–{}", percent_number(each.interval.0), percent_number(each.interval.1)),
                each.totals.harm.to_string(),
            ]
        }));
        out.push('\n');
        out.push_str(&table(rows));
    }
    if let Some(versus) = summary.baseline.as_ref().filter(|versus| versus.lost > 0) {
        let mut rows = vec![["lost", "tool", "is", "because"].map(str::to_owned).to_vec()];
        for flip in versus.lost_cases.iter().take(SHOWN_LOST) {
            rows.push(vec![
                visible::excerpt(&format!("{}/{}", flip.set, flip.case), 60),
                flip.tool.clone(),
                flip.is.clone(),
                visible::excerpt(&flip.because, 80),
            ]);
        }
        out.push('\n');
        out.push_str(&table(rows));
        if versus.lost_cases.len() > SHOWN_LOST {
            out.push_str(&format!("… {} more in the report\n", versus.lost_cases.len() - SHOWN_LOST));
        }
    }
    for fallen in &summary.fallen {
        let title = visible::excerpt(&fallen.title, 160);
        out.push_str(&format!("\napproved, and no longer passes: {title} ({} of {})\n", fallen.passed, fallen.judged));
    }
    if !summary.pairs.is_empty() {
        out.push('\n');
        out.push_str(&table(pairs::terminal_rows(&summary.pairs)));
    }
    if !summary.classes.is_empty() {
        let mut rows = vec![["not passed", "count", "meaning", "for example"].map(str::to_owned).to_vec()];
        for class in summary.classes.iter().take(SHOWN_CLASSES) {
            rows.push(vec![
                class.class.to_owned(),
                class.count.to_string(),
                meaning(class.class).unwrap_or_default().to_owned(),
                visible::excerpt(&class.example.case, 40),
            ]);
        }
        out.push('\n');
        out.push_str(&table(rows));
        if summary.classes.len() > SHOWN_CLASSES {
            out.push_str(&format!("… {} more classes\n", summary.classes.len() - SHOWN_CLASSES));
        }
    }
    if !summary.unsupported.is_empty() {
        let mut rows = vec![["cannot be expressed", "tool", "why"].map(str::to_owned).to_vec()];
        for row in summary.unsupported.iter().take(SHOWN_UNSUPPORTED) {
            let why = visible::excerpt(row.error.as_deref().unwrap_or_default(), 100);
            rows.push(vec![visible::excerpt(&format!("{}/{}", row.set, row.case), 60), row.tool.clone(), why]);
        }
        out.push('\n');
        out.push_str(&table(rows));
        if summary.unsupported.len() > SHOWN_UNSUPPORTED {
            out.push_str(&format!("… {} more in the report\n", summary.unsupported.len() - SHOWN_UNSUPPORTED));
        }
    }
    for note in &summary.notes {
        out.push_str(&format!("\n{}\n", visible::inert(note)));
    }
    out.push_str(&format!("\n{}\n{}\n", summary.reconciliation(), summary.headline()));
    out
}

fn cell_row(cell: &CellSummary<'_>) -> Vec<String> {
    let (floor, gate) = gate_words(&cell.judgement);
    let (low, high) = cell.interval;
    vec![
        visible::excerpt(&cell.plan.model, 48),
        cell.plan.tool.clone(),
        visible::excerpt(&cell.plan.set_name(), 32),
        cell.plan.prompt.clone(),
        format!("{}/{}", cell.totals.passed, cell.totals.planned),
        cell.rate.map_or("–".to_owned(), |rate| format!("{} %", percent_number(rate))),
        format!("{}–{}", percent_number(low), percent_number(high)),
        cell.totals.harm.to_string(),
        cell.totals.errors.to_string(),
        floor,
        gate,
    ]
}

/// Floor and judgement as a table shows them.
pub(super) fn gate_words(judgement: &Judgement) -> (String, String) {
    match judgement {
        Judgement::Passed { floor } => (floor.to_string(), "ok".to_owned()),
        Judgement::Below { floor } => (floor.to_string(), "BELOW".to_owned()),
        Judgement::Inconclusive { floor, .. } => (floor.to_string(), "inconclusive".to_owned()),
        Judgement::Ungated => ("–".to_owned(), "–".to_owned()),
        Judgement::Incomplete { .. } => ("–".to_owned(), "incomplete".to_owned()),
    }
}

/// A borderless table: first row the heads, columns two spaces apart.
pub fn table(rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut builder = Builder::default();
    for row in rows {
        builder.push_record(row);
    }
    let mut table = builder.build();
    table.with(Style::blank()).with(Padding::new(0, 1, 0, 0));
    table.to_string().lines().map(|line| format!("{}\n", line.trim_end())).collect()
}
