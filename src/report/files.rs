//! The files of a report, by name: rendered here, written by whoever asks for them.

use super::chart::{self, ChartError, Heat, Priced, Theme};
use super::markdown::{self, Charts};
use super::summary::{Summary, name_of};
use super::terminal::gate_words;
use super::{github, html, json, junit};
use crate::record::{Row, Transcript};

/// What can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Md,
    Html,
    Junit,
    Json,
    Github,
}

impl Kind {
    pub const ALL: [Kind; 5] = [Kind::Md, Kind::Html, Kind::Junit, Kind::Json, Kind::Github];

    /// Reads a list such as `md,html`.
    ///
    /// # Errors
    /// For a word that is none of them.
    pub fn parse(text: &str) -> Result<Self, String> {
        let known: Vec<String> = Kind::ALL.iter().map(name_of).collect();
        let place = known.iter().position(|name| name == text);
        place.map(|index| Kind::ALL[index]).ok_or_else(|| format!("one of {}", known.join(", ")))
    }
}

#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    #[error("the page: {0}")]
    Page(#[from] minijinja::Error),
    #[error("junit.xml: {0}")]
    Junit(#[from] quick_junit::SerializeError),
    #[error("summary.json: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Chart(#[from] ChartError),
}

/// The files of these kinds: name below the run's directory, and text.
///
/// # Errors
/// When one cannot be rendered.
pub fn render(
    kinds: &[Kind],
    summary: &Summary<'_>,
    rows: &[Row],
    transcripts: &[Transcript],
) -> Result<Vec<(String, String)>, FilesError> {
    let mut out = Vec::new();
    for kind in kinds {
        match kind {
            Kind::Md => {
                let (heats, priced, unit) = (heats(summary), priced(summary, rows), unit(rows));
                let charts = Charts { matrix: heats.len() > 1, cost: priced.len() > 1 };
                out.push(("report.md".to_owned(), markdown::render(summary, Some(charts))));
                for (theme, end) in Theme::ALL {
                    if charts.matrix {
                        out.push((format!("charts/matrix{end}.svg"), chart::matrix(&heats, theme)?));
                    }
                    if charts.cost {
                        out.push((format!("charts/cost{end}.svg"), chart::cost(&priced, unit, theme)?));
                    }
                }
            }
            Kind::Html => out.push(("report.html".to_owned(), html::render(summary, rows, transcripts)?)),
            Kind::Junit => out.push(("junit.xml".to_owned(), junit::render(summary, rows)?)),
            Kind::Json => out.push(("summary.json".to_owned(), json::render(summary)?)),
            Kind::Github => {
                out.push(("comment.md".to_owned(), github::comment(summary, "gate")));
                out.push(("step-summary.md".to_owned(), github::step_summary(summary)));
            }
        }
    }
    Ok(out)
}

/// Cells by model and tool; as many as a picture holds.
fn heats(summary: &Summary<'_>) -> Vec<Heat> {
    const MAX: usize = 400;
    let one_model = summary.cells.iter().all(|cell| cell.plan.model == summary.cells[0].plan.model);
    let heat = |cell: &super::summary::CellSummary<'_>| {
        let plan = &cell.plan;
        let row = if one_model { plan.tool.clone() } else { format!("{} × {}", plan.model, plan.tool) };
        Heat {
            row,
            column: plan.set.clone(),
            passed: cell.totals.passed,
            of: cell.totals.planned,
            interval: cell.interval,
            mark: match gate_words(&cell.judgement).1.as_str() {
                "BELOW" => Some("BELOW"),
                "incomplete" => Some("incomplete"),
                "inconclusive" => Some("open"),
                _ => None,
            },
        }
    };
    summary.cells.iter().filter(|cell| !cell.part).take(MAX).map(heat).collect()
}

fn has_prices(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.cost_usd.is_some_and(|cost| cost > 0.0))
}

fn unit(rows: &[Row]) -> &'static str {
    if has_prices(rows) { "dollars an attempt (mean)" } else { "seconds of the model an attempt (mean)" }
}

/// Models and tools between rate and cost: in dollars where there are prices, else in seconds.
fn priced(summary: &Summary<'_>, rows: &[Row]) -> Vec<Priced> {
    let dollars = has_prices(rows);
    let one = |of: fn(&super::summary::Together<'_>) -> String| {
        summary.together.windows(2).all(|pair| of(&pair[0]) == of(&pair[1]))
    };
    let (one_model, one_tool) = (one(|each| each.model.to_owned()), one(|each| each.tool.to_owned()));
    let point = |each: &super::summary::Together<'_>| {
        let mine = rows.iter().filter(|row| {
            (row.model.as_str(), row.tool.as_str(), row.prompt.as_str()) == (each.model, each.tool, each.prompt)
        });
        let of = |row: &Row| if dollars { row.cost_usd } else { row.model_ms.map(|ms| ms as f64 / 1000.0) };
        let known: Vec<f64> = mine.filter_map(of).collect();
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        (!known.is_empty()).then(|| Priced {
            name: match (one_model, one_tool) {
                (true, _) => each.tool.to_owned(),
                (_, true) => each.model.to_owned(),
                _ => format!("{} × {}", each.tool, each.model),
            },
            rate: each.rate.unwrap_or(0.0),
            interval: each.interval,
            cost: mean,
        })
    };
    summary.together.iter().filter_map(point).collect()
}
