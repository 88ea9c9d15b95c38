//! The edit tools as a Markdown page, with the recorded results of each.

use std::collections::BTreeMap;

use super::markup::{table, text};
use crate::record::run_file::set_name;
use crate::tool::EditTool;
use crate::verdict::floor::{Floor, Floors};

/// The tools, and what models have been measured to do through them.
pub fn render(tools: &[Box<dyn EditTool>], recorded: &Floors) -> String {
    let rows: Vec<Vec<String>> = tools.iter().map(|tool| description(tool.as_ref())).collect();
    let mut out = format!("# Edit tools\n\n{}\n", table(&["tool", "offered with it", "what it does"], &rows));
    out.push_str("## Recorded results\n\n");
    let order = |floor: &Floor| tools.iter().position(|tool| tool.name() == floor.tool);
    let known: Vec<&Floor> = recorded.floors.iter().filter(|floor| order(floor).is_some()).collect();
    if known.is_empty() {
        out.push_str("None: no floor is recorded for these tools.\n");
        return out;
    }
    let mut sets: Vec<String> = known.iter().map(|floor| set_name(&floor.set, floor.subset.as_deref())).collect();
    sets.sort();
    sets.dedup();
    let mut by_model: BTreeMap<(&str, &str, Option<usize>), Vec<&Floor>> = BTreeMap::new();
    for floor in &known {
        by_model.entry((&floor.model, &floor.prompt, order(floor))).or_default().push(floor);
    }
    let rows: Vec<Vec<String>> = by_model.values().map(|floors| results(floors, &sets)).collect();
    let sets: Vec<String> = sets.iter().map(|set| text(set)).collect();
    let heads: Vec<&str> =
        ["model", "prompt", "tool"].into_iter().chain(sets.iter().map(String::as_str)).chain(["together"]).collect();
    out.push_str(&table(&heads, &rows));
    out.push_str("\nPassed of measured, byte for byte; from the runs that set the floors.\n");
    out
}

fn description(tool: &dyn EditTool) -> Vec<String> {
    let functions = tool.functions();
    let others: Vec<&str> = functions.iter().skip(1).map(|offered| offered.function.name.as_str()).collect();
    let description = functions.first().map(|offered| offered.function.description.as_str()).unwrap_or_default();
    vec![text(tool.name()), text(&others.join(", ")), text(first_sentence(description))]
}

/// Up to the first full stop that a blank follows.
pub fn first_sentence(description: &str) -> &str {
    description.split_inclusive(". ").next().unwrap_or_default().trim()
}

fn results(floors: &[&Floor], sets: &[String]) -> Vec<String> {
    let passed = |floor: &Floor| floor.passed.unwrap_or(floor.floor);
    let mut row = vec![text(&floors[0].model), text(&floors[0].prompt), text(&floors[0].tool)];
    row.extend(sets.iter().map(|set| {
        let found = floors.iter().find(|floor| set_name(&floor.set, floor.subset.as_deref()) == *set);
        found.map_or("–".to_owned(), |floor| format!("{}/{}", passed(floor), floor.n))
    }));
    let (all, of) = floors.iter().fold((0, 0), |(all, of), floor| (all + passed(floor), of + floor.n));
    row.push(format!("{all}/{of}"));
    row
}
