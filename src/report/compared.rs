//! A comparison for people and scripts: flips first.

use serde::Serialize;

use super::flip::{Flip, p_words, points};
use super::markup::{cell_code, table as md_table, text};
use super::summary::percent_number;
use super::terminal::table;
use super::versus::{By, Part, Place, Standing, Strictness, Versus, VersusError, compare, contestants, matrix};
use crate::record::RunRecord;
use crate::text::visible;
use crate::verdict::paired::Outcome;

/// Cases that a screen or page names of each kind.
const MAX_FLIPS: usize = 40;
const MAX_TAGS: usize = 30;

/// Everything a renderer needs.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    pub schema: u32,
    pub by: &'static str,
    /// On the attempts that all have; the first one is the base.
    pub standings: Vec<Standing>,
    pub pairs: Vec<Versus>,
    /// Model × tool over all runs given.
    pub matrix: Vec<Place>,
}

impl Compared {
    /// Compares.
    ///
    /// # Errors
    /// Where there is nothing to compare, or more differs than what is compared.
    pub fn new(records: &[RunRecord], by: By, strictness: Strictness, allow: bool) -> Result<Self, VersusError> {
        let all = contestants(records, by)?;
        let pairs = compare(&all, by, strictness, allow)?;
        let standings = all.iter().map(|contestant| contestant.standing(&all)).collect();
        Ok(Compared { schema: 1, by: by.name(), standings, pairs, matrix: matrix(records) })
    }

    /// What the pairs say together, one sentence each.
    fn headlines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.pairs.iter().map(Versus::headline).collect();
        if self.pairs.len() > 1 && self.pairs.iter().all(|pair| !told_apart(pair)) {
            lines.insert(0, "No pair can be told apart.".to_owned());
        }
        lines
    }
}

fn told_apart(pair: &Versus) -> bool {
    matches!(pair.verdict, Outcome::Regressed | Outcome::Improved)
}

/// As JSON.
///
/// # Errors
/// Never in practice.
pub fn json(compared: &Compared) -> Result<String, serde_json::Error> {
    super::json::pretty(compared)
}

fn rate(passed: usize, judged: usize) -> String {
    if judged == 0 { "–".to_owned() } else { format!("{} %", percent_number(passed as f64 / judged as f64)) }
}

fn range(low: f64, high: f64) -> String {
    format!("{}–{}", percent_number(low), percent_number(high))
}

fn standing_row(standing: &Standing) -> Vec<String> {
    vec![
        visible::excerpt(&standing.name, 60),
        format!("{}/{}", standing.passed, standing.judged),
        rate(standing.passed, standing.judged),
        range(standing.low, standing.high),
        standing.harm.to_string(),
        standing.errors.to_string(),
        standing.cost_usd.map_or("–".to_owned(), |cost| format!("{cost:.4}")),
        standing.model_ms.map_or("–".to_owned(), |ms| format!("{:.1}", ms as f64 / 1000.0)),
        standing.output_tokens.map_or("–".to_owned(), |tokens| tokens.to_string()),
    ]
}

fn part_row(part: &Part) -> Vec<String> {
    vec![
        visible::excerpt(&part.name, 40),
        part.pairs.to_string(),
        part.base.to_string(),
        part.head.to_string(),
        part.lost.to_string(),
        part.gained.to_string(),
        points(part.difference, part.low, part.high),
        p_words(part.p),
    ]
}

fn flip_row(flip: &Flip) -> Vec<String> {
    let repeat = if flip.repeat > 0 { format!(" (repeat {})", flip.repeat) } else { String::new() };
    let case = format!("{}/{}{repeat}", flip.set, flip.case);
    vec![
        visible::excerpt(&case, 80),
        flip.tool.clone(),
        visible::excerpt(&flip.model, 48),
        flip.was.clone(),
        flip.is.clone(),
        visible::excerpt(&flip.because, 80),
    ]
}

const STANDING: [&str; 9] = ["", "passed", "rate", "95 %", "harm", "errors", "cost $", "median s", "output tokens"];
const PART: [&str; 8] = ["", "pairs", "base", "head", "lost", "gained", "difference, 95 %", "p (one at a time)"];
const FLIP: [&str; 6] = ["", "tool", "model", "was", "is", "because"];

fn headed(first: &str, heads: &[&str]) -> Vec<String> {
    std::iter::once(first).chain(heads[1..].iter().copied()).map(str::to_owned).collect()
}

/// Tags that have a flip.
fn moved(versus: &Versus) -> Vec<&Part> {
    versus.tags.iter().filter(|tag| tag.lost + tag.gained > 0).take(MAX_TAGS).collect()
}

/// The tables of a comparison, each with its heads: what both renderers show.
fn tables(compared: &Compared) -> Vec<Vec<Vec<String>>> {
    let mut out = Vec::new();
    for versus in &compared.pairs {
        for (word, flips) in [("lost", &versus.lost_cases), ("gained", &versus.gained_cases)] {
            if flips.is_empty() {
                continue;
            }
            let title = match compared.pairs.len() {
                1 => word.to_owned(),
                _ => format!(
                    "{word} from {} to {}",
                    visible::excerpt(&versus.base, 32),
                    visible::excerpt(&versus.head, 32)
                ),
            };
            let mut rows = vec![headed(&title, &FLIP)];
            rows.extend(flips.iter().take(MAX_FLIPS).map(flip_row));
            if flips.len() > MAX_FLIPS {
                rows.push(vec![format!("… {} more", flips.len() - MAX_FLIPS)]);
            }
            out.push(rows);
        }
    }
    if let [versus] = compared.pairs.as_slice() {
        let sets: Vec<&Part> = versus.sets.iter().collect();
        for (title, parts) in [("by set", sets), ("by tag, where it moved", moved(versus))] {
            if !parts.is_empty() {
                let mut rows = vec![headed(title, &PART)];
                rows.extend(parts.into_iter().map(part_row));
                out.push(rows);
            }
        }
    } else {
        let heads = ["base", "head", "pairs", "lost", "gained", "difference, 95 %", "p (Holm)", ""];
        let mut rows = vec![heads.map(str::to_owned).to_vec()];
        rows.extend(compared.pairs.iter().map(|versus| {
            vec![
                visible::excerpt(&versus.base, 48),
                visible::excerpt(&versus.head, 48),
                versus.pairs.to_string(),
                versus.lost.to_string(),
                versus.gained.to_string(),
                versus.difference_words(),
                p_words(versus.p_adjusted),
                versus.outcome.clone(),
            ]
        }));
        out.push(rows);
    }
    let mut rows = vec![headed(compared.by, &STANDING)];
    rows.extend(compared.standings.iter().map(standing_row));
    out.push(rows);
    if compared.matrix.len() > 1 {
        let heads = ["model", "tool", "prompt", "passed", "rate", "95 %"];
        let mut rows = vec![heads.map(str::to_owned).to_vec()];
        rows.extend(compared.matrix.iter().map(|place| {
            vec![
                visible::excerpt(&place.model, 48),
                place.tool.clone(),
                place.prompt.clone(),
                format!("{}/{}", place.passed, place.judged),
                rate(place.passed, place.judged),
                range(place.low, place.high),
            ]
        }));
        out.push(rows);
    }
    out
}

fn notes(compared: &Compared) -> Vec<String> {
    let mut out = Vec::new();
    for versus in &compared.pairs {
        if versus.unpaired > 0 {
            out.push(format!("{} attempts have a verdict on one side only, and are in no pair.", versus.unpaired));
        }
        if !versus.mismatches.is_empty() {
            out.push(format!("{} and {} also differ in: {}.", versus.base, versus.head, versus.mismatches.join("; ")));
        }
    }
    out.dedup();
    out
}

/// For the terminal: the verdict in the last lines.
pub fn terminal(compared: &Compared) -> String {
    let mut out = String::new();
    for rows in tables(compared) {
        out.push_str(&table(rows));
        out.push('\n');
    }
    for line in notes(compared).into_iter().chain(compared.headlines()) {
        out.push_str(&format!("{}\n", visible::inert(&line)));
    }
    out
}

/// As Markdown: the verdict first.
pub fn markdown(compared: &Compared) -> String {
    let mut out = String::from("# editgate: comparison\n\n");
    for line in compared.headlines() {
        out.push_str(&format!("- {}\n", text(&line)));
    }
    for line in notes(compared) {
        out.push_str(&format!("\n{}\n", text(&line)));
    }
    for mut rows in tables(compared) {
        let heads: Vec<String> = rows.remove(0).iter().map(|head| text(head)).collect();
        let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
        let rows: Vec<Vec<String>> = rows
            .into_iter()
            .map(|row| {
                let first = |index: usize, cell: String| if index == 0 { cell_code(&cell) } else { text(&cell) };
                row.into_iter().enumerate().map(|(index, cell)| first(index, cell)).collect()
            })
            .collect();
        out.push_str(&format!("\n{}", md_table(&heads, &rows)));
    }
    out.push_str(
        "\np: exact McNemar, two-sided; differences in points: Newcombe's paired interval, over sets as strata.\n",
    );
    out
}
