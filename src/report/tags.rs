//! Counts by tag, as Markdown: a column a model and tool where several are compared.

use super::markup::{table, text};
use super::summary::{Summary, TagSummary};
use crate::record::CellPlan;
use crate::text::visible;

const MAX_TAGS: usize = 120;
/// More columns than this are no table to read.
const MAX_COLUMNS: usize = 8;

type Column<'a> = (&'a str, &'a str, &'a str);

pub(super) fn render(summary: &Summary<'_>) -> String {
    if summary.tags.is_empty() {
        return String::new();
    }
    let mut columns: Vec<Column<'_>> = Vec::new();
    for cell in summary.cells.iter().filter(|cell| !cell.part) {
        let column = column_of(&cell.plan);
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    let (mut rows, count) = if (2..=MAX_COLUMNS).contains(&columns.len()) {
        side_by_side(summary, &columns)
    } else {
        listed(summary, columns.len() > 1)
    };
    if count > MAX_TAGS {
        rows.push(vec![format!("… {} more", count - MAX_TAGS)]);
    }
    let heads = rows.remove(0);
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    format!(
        "## By tag\n\nPassed of planned; in brackets those of them that needed a leniency of the tool.\n\n{}\n",
        table(&heads, &rows)
    )
}

fn column_of(plan: &CellPlan) -> Column<'_> {
    (&plan.model, &plan.tool, &plan.prompt)
}

/// A row a tag, a column each of what is compared; the first row holds the heads.
fn side_by_side(summary: &Summary<'_>, columns: &[Column<'_>]) -> (Vec<Vec<String>>, usize) {
    let differ = |part: fn(&Column<'_>) -> String| columns.iter().any(|each| part(each) != part(&columns[0]));
    let names = [
        differ(|column| column.0.to_owned()),
        differ(|column| column.1.to_owned()),
        differ(|column| column.2.to_owned()),
    ];
    let mut heads = vec!["set".to_owned(), "tag".to_owned()];
    heads.extend(columns.iter().map(|(model, tool, prompt)| {
        let parts = [model, tool, prompt].into_iter().zip(names).filter(|(_, named)| *named);
        text(&visible::excerpt(&parts.map(|(part, _)| *part).collect::<Vec<_>>().join(" × "), 80))
    }));
    let mut tags: Vec<(&str, &str)> = Vec::new();
    for tag in &summary.tags {
        let key = (set_of(tag), tag.tag);
        if !tags.contains(&key) {
            tags.push(key);
        }
    }
    let row = |(set, name): &(&str, &str)| {
        let mut row = vec![text(set), text(&visible::excerpt(name, 60))];
        row.extend(columns.iter().map(|column| {
            let mine =
                |tag: &&TagSummary<'_>| (set_of(tag), tag.tag) == (*set, *name) && column_of(tag.cell) == *column;
            summary.tags.iter().find(mine).map_or("–".to_owned(), counts)
        }));
        row
    };
    let rows = std::iter::once(heads).chain(tags.iter().take(MAX_TAGS).map(row)).collect();
    (rows, tags.len())
}

/// A row a tag and cell; the first row holds the heads.
fn listed(summary: &Summary<'_>, several: bool) -> (Vec<Vec<String>>, usize) {
    let named: &[&str] = if several { &["model", "tool"] } else { &[] };
    let heads = named.iter().chain(&["set", "tag", "passed"]).map(|head| (*head).to_owned()).collect();
    let row = |tag: &TagSummary<'_>| {
        let mut row = vec![text(set_of(tag)), text(&visible::excerpt(tag.tag, 60)), counts(tag)];
        if several {
            row.insert(0, text(&tag.cell.tool));
            row.insert(0, text(&visible::excerpt(&tag.cell.model, 60)));
        }
        row
    };
    (std::iter::once(heads).chain(summary.tags.iter().take(MAX_TAGS).map(row)).collect(), summary.tags.len())
}

fn set_of<'a>(tag: &TagSummary<'a>) -> &'a str {
    if tag.all_sets { "all" } else { &tag.cell.set }
}

fn counts(tag: &TagSummary<'_>) -> String {
    let assisted = if tag.assisted > 0 { format!(" ({})", tag.assisted) } else { String::new() };
    format!("{}/{}{assisted}", tag.passed, tag.planned)
}
