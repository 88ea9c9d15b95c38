//! What bytes cost: each case against itself in other bytes.

use std::collections::{BTreeMap, HashMap};

use super::markup::{table, text};
use super::summary::percent_number;
use crate::case::vary::Bytes;
use crate::record::{CellPlan, Row};
use crate::score::Verdict;
use crate::text::visible;
use crate::verdict::paired::sign_test;

const MAX_ROWS: usize = 60;

/// Pairs of one cell in one kind of bytes: a case and its variant, both judged.
#[derive(Clone, Debug)]
pub struct Pairs<'a> {
    pub cell: &'a CellPlan,
    pub bytes: Bytes,
    pub pairs: usize,
    /// Originals that passed.
    pub original: usize,
    /// Variants that passed.
    pub variant: usize,
    /// Only the original passed.
    pub lost: usize,
    /// Only the variant passed.
    pub gained: usize,
}

impl Pairs<'_> {
    /// The share of cases that these bytes cost: lost less gained.
    pub fn cost(&self) -> f64 {
        if self.pairs == 0 { 0.0 } else { (self.lost as f64 - self.gained as f64) / self.pairs as f64 }
    }

    /// The cost in per cent of the pairs.
    fn cost_words(&self) -> String {
        let cost = self.cost();
        let sign = if cost < 0.0 {
            "+"
        } else if cost > 0.0 {
            "−"
        } else {
            ""
        };
        format!("{sign}{} %", percent_number(cost.abs()))
    }

    /// How likely so clear a difference is by chance alone.
    fn chance(&self) -> String {
        match sign_test(self.lost, self.gained) {
            _ if self.lost + self.gained == 0 => "–".to_owned(),
            p if p < 0.001 => "< 0.001".to_owned(),
            p => format!("{p:.3}"),
        }
    }
}

/// The pairs of a cell.
pub(super) fn of_cell<'a>(cell: &'a CellPlan, rows: &[&Row]) -> Vec<Pairs<'a>> {
    let judged = |row: &&&Row| row.verdict.is_judged();
    let originals: HashMap<(&str, usize), bool> = rows
        .iter()
        .filter(judged)
        .filter(|row| row.variant.is_none())
        .map(|row| ((row.case.as_str(), row.repeat), row.verdict == Verdict::Pass))
        .collect();
    let mut found: BTreeMap<Bytes, Pairs<'a>> = BTreeMap::new();
    for row in rows.iter().filter(judged) {
        let Some(variant) = &row.variant else {
            continue;
        };
        let Some(original) = originals.get(&(variant.of.as_str(), row.repeat)) else {
            continue;
        };
        let bytes = variant.bytes;
        let none = Pairs { cell, bytes, pairs: 0, original: 0, variant: 0, lost: 0, gained: 0 };
        let pairs = found.entry(bytes).or_insert(none);
        let passed = row.verdict == Verdict::Pass;
        pairs.pairs += 1;
        pairs.original += usize::from(*original);
        pairs.variant += usize::from(passed);
        pairs.lost += usize::from(*original && !passed);
        pairs.gained += usize::from(!*original && passed);
    }
    found.into_values().collect()
}

/// The section of the Markdown report; nothing where no variant was run beside its original.
pub(super) fn render(pairs: &[Pairs<'_>]) -> String {
    if pairs.is_empty() {
        return String::new();
    }
    let several = pairs.iter().any(|each| each.cell.key() != pairs[0].cell.key());
    let mut rows: Vec<Vec<String>> = pairs.iter().take(MAX_ROWS).map(|each| row(each, several)).collect();
    if pairs.len() > MAX_ROWS {
        rows.push(vec![format!("… {} more", pairs.len() - MAX_ROWS)]);
    }
    let named: &[&str] = if several { &["model", "tool", "set", "prompt"] } else { &[] };
    let heads: Vec<&str> = named
        .iter()
        .chain(&["bytes", "pairs", "as they were", "in these bytes", "lost", "gained", "cost", "by chance"])
        .copied()
        .collect();
    format!(
        "## What bytes cost\n\nEach case against itself in other bytes, both judged. *Lost*: only the original passed; \
         *gained*: only the variant; cost: lost less gained, of the pairs; by chance: how likely a difference at least so \
         one-sided is if the bytes did not matter (exact sign test).\n\n{}\n",
        table(&heads, &rows)
    )
}

fn row(pairs: &Pairs<'_>, several: bool) -> Vec<String> {
    let cell = pairs.cell;
    let mut row = match several {
        true => vec![
            text(&visible::excerpt(&cell.model, 60)),
            text(&cell.tool),
            text(&visible::excerpt(&cell.set_name(), 60)),
            text(&cell.prompt),
        ],
        false => Vec::new(),
    };
    row.extend([
        format!("{} ({})", pairs.bytes.name(), pairs.bytes.meaning()),
        pairs.pairs.to_string(),
        pairs.original.to_string(),
        pairs.variant.to_string(),
        pairs.lost.to_string(),
        pairs.gained.to_string(),
        pairs.cost_words(),
        pairs.chance(),
    ]);
    row
}

/// The same for the terminal: heads first.
pub(super) fn terminal_rows(pairs: &[Pairs<'_>]) -> Vec<Vec<String>> {
    let heads = ["bytes", "tool", "set", "pairs", "as they were", "in these", "lost", "gained", "cost", "by chance"];
    let row = |each: &Pairs<'_>| {
        vec![
            each.bytes.name().to_owned(),
            each.cell.tool.clone(),
            visible::excerpt(&each.cell.set_name(), 32),
            each.pairs.to_string(),
            each.original.to_string(),
            each.variant.to_string(),
            each.lost.to_string(),
            each.gained.to_string(),
            each.cost_words(),
            each.chance(),
        ]
    };
    std::iter::once(heads.map(str::to_owned).to_vec()).chain(pairs.iter().map(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Variant;
    use crate::record::RunFile;

    /// A row of a recorded run, as the attempt at another case.
    fn row(case: &str, of: Option<(&str, Bytes)>, verdict: Verdict) -> Row {
        let line = include_str!("../../tests/data/run/attempts.jsonl").lines().next().unwrap();
        let mut row: Row = serde_json::from_str(line).unwrap();
        row.case = case.to_owned();
        row.variant = of.map(|(of, bytes)| Variant { of: of.to_owned(), bytes });
        row.verdict = verdict;
        row
    }

    #[test]
    fn only_judged_pairs_count_and_each_way_is_told() {
        use Verdict::{Error, Fail, Pass};
        let run: RunFile = serde_json::from_str(include_str!("../../tests/data/run/run.json")).unwrap();
        let rows = [
            row("a", None, Pass),
            row("a.crlf", Some(("a", Bytes::Crlf)), Fail),
            row("a.bom", Some(("a", Bytes::Bom)), Pass),
            row("b", None, Fail),
            row("b.crlf", Some(("b", Bytes::Crlf)), Pass),
            row("c", None, Pass),
            row("c.crlf", Some(("c", Bytes::Crlf)), Fail),
            row("d", None, Error),
            row("d.crlf", Some(("d", Bytes::Crlf)), Fail),
            row("e.crlf", Some(("e", Bytes::Crlf)), Fail),
        ];
        let all: Vec<&Row> = rows.iter().collect();
        let pairs = of_cell(&run.plan[0], &all);
        let counts = |each: &Pairs<'_>| (each.bytes, each.pairs, each.original, each.variant, each.lost, each.gained);
        assert_eq!(
            pairs.iter().map(counts).collect::<Vec<_>>(),
            [(Bytes::Crlf, 3, 2, 1, 2, 1), (Bytes::Bom, 1, 1, 1, 0, 0)]
        );
        assert_eq!((pairs[0].cost_words().as_str(), pairs[0].chance().as_str()), ("−33 %", "1.000"));
        assert_eq!((pairs[1].cost_words().as_str(), pairs[1].chance().as_str()), ("0 %", "–"));
        let page = render(&pairs);
        assert!(page.contains("| crlf (every line ends in CRLF) | 3 | 2 | 1 | 2 | 1 | −33 % | 1.000 |"), "{page}");
        assert_eq!(render(&[]), "");
    }
}
