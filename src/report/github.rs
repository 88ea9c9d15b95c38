//! For GitHub: annotations on stdout, the step summary (the whole report), and the one short comment of a pull request.
//!
//! Workflow commands: docs.github.com, "Workflow commands for GitHub Actions" (escapes of data and properties).

use super::baseline;
use super::markdown;
use super::markup::{cell_code, table, text};
use super::summary::{Gate, Summary, percent_number};
use super::terminal::gate_words;
use crate::score::class::meaning;
use crate::text::visible;

/// Annotations shown; the site itself shows ten a step.
const MAX_NOTES: usize = 9;
const MAX_CELLS: usize = 30;

/// Workflow commands, one a line.
pub fn annotations(summary: &Summary<'_>) -> String {
    let level = match summary.gate {
        Gate::Passed { .. } | Gate::Ungated => "notice",
        Gate::Inconclusive { .. } => "warning",
        _ => "error",
    };
    let mut out = command(level, "editgate", &summary.headline());
    let flips = summary.baseline.iter().flat_map(|versus| &versus.lost_cases);
    let lost = flips.map(|flip| {
        let what = format!(
            "{}/{} passed with {} × {} and does not any more: {}",
            flip.set, flip.case, flip.model, flip.tool, flip.is
        );
        command("warning", "lost", &format!("{what}: {}", meaning(&flip.is).unwrap_or_default()))
    });
    let below = summary.cells.iter().filter_map(|cell| {
        let (floor, word) = gate_words(&cell.judgement);
        let what = format!(
            "{}: {} of {} passed, the floor is {floor}",
            cell.plan.title(),
            cell.totals.passed,
            cell.totals.planned
        );
        (word == "BELOW").then(|| command("error", "below its floor", &what))
    });
    let fallen = summary.fallen.iter().map(|fallen| {
        let what = format!("{}: passed in {} of {} attempts", fallen.title, fallen.passed, fallen.judged);
        command("error", "an approved case no longer passes", &what)
    });
    out.extend(below.chain(fallen).chain(lost).take(MAX_NOTES));
    out
}

fn command(level: &str, title: &str, message: &str) -> String {
    let data = |text: &str| visible::inert(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |text: &str| data(text).replace(':', "%3A").replace(',', "%2C");
    format!("::{level} title={}::{}\n", property(title), data(message))
}

/// The step summary: the whole report.
pub fn step_summary(summary: &Summary<'_>) -> String {
    markdown::render(summary, None)
}

/// The comment of a pull request: verdict, what changed, the matrix. The first line is the marker by which it is found again; suites of
/// several names have a comment each.
pub fn comment(summary: &Summary<'_>, suite: &str) -> String {
    let mut out = format!(
        "{}\n### editgate: {}\n\n{}.\n\n",
        marker(suite),
        text(&summary.headline()),
        text(&summary.reconciliation())
    );
    out.push_str(&baseline::render(summary, 15).replace("## ", "#### "));
    let mut rows: Vec<Vec<String>> = summary
        .cells
        .iter()
        .take(MAX_CELLS)
        .map(|cell| {
            let (floor, word) = gate_words(&cell.judgement);
            vec![
                text(&visible::excerpt(&cell.plan.model, 60)),
                text(&cell.plan.tool),
                text(&visible::excerpt(&cell.plan.set_name(), 40)),
                format!("{}/{}", cell.totals.passed, cell.totals.planned),
                format!("{}–{} %", percent_number(cell.interval.0), percent_number(cell.interval.1)),
                floor,
                if word == "BELOW" { format!("**{word}**") } else { word },
            ]
        })
        .collect();
    if summary.cells.len() > MAX_CELLS {
        rows.push(vec![format!("… {} more", summary.cells.len() - MAX_CELLS)]);
    }
    out.push_str(&format!(
        "<details><summary>{} cells</summary>\n\n{}\n</details>\n",
        summary.cells.len(),
        table(&["model", "tool", "set", "passed", "95 %", "floor", "gate"], &rows)
    ));
    if let Some(class) = summary.classes.first() {
        out.push_str(&format!(
            "\nMost frequent reason: {} ({} ×), {}.\n",
            cell_code(class.class),
            class.count,
            meaning(class.class).unwrap_or_default()
        ));
    }
    out
}

/// The hidden marker of a suite's comment.
pub fn marker(suite: &str) -> String {
    let plain: String =
        suite.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect();
    // Two hyphens could end the HTML comment.
    let parts: Vec<&str> = plain.split('-').filter(|part| !part.is_empty()).collect();
    format!("<!-- editgate:{} -->", parts.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_markers_hold_one_line_each() {
        assert_eq!(
            command("error", "a: b, c", "50 %\n::error::x\u{1B}[31m"),
            "::error title=a%3A b%2C c::50 %25%0A::error::x␛[31m\n"
        );
        assert_eq!(marker("night --> <b>"), "<!-- editgate:night-b -->");
    }
}
