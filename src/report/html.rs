//! `report.html`: one file, no network. The page (page/) is static; all it shows stands in it as JSON, so that nothing a model wrote is
//! ever markup.

use std::collections::{BTreeMap, HashMap};

use minijinja::{Environment, context};
use serde_json::{Value, json};

use super::flip::Flip;
use super::panes;
use super::summary::{Gate, Summary, name_of};
use super::terminal::gate_words;
use super::versus::Versus;
use crate::chat::{Arguments, Message};
use crate::model::recording::Key;
use crate::record::{Row, Transcript};
use crate::score::class::meaning;
use crate::text::visible;

const PAGE: &str = include_str!("page/report.html");
const STYLE: &str = include_str!("page/report.css");
const SCRIPT: &str = include_str!("page/report.js");

/// Characters of one text that the page holds.
const MAX_TEXT: usize = 60_000;

/// Renders the page.
///
/// # Errors
/// When the page itself is broken.
pub fn render(summary: &Summary<'_>, rows: &[Row], transcripts: &[Transcript]) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::Html);
    environment.add_template("page", PAGE)?;
    // Inside a script element only `<` could end it.
    let data = data(summary, rows, transcripts).to_string().replace('<', "\\u003c");
    let title = format!("editgate: {}", visible::inert(&summary.headline()));
    environment.get_template("page")?.render(context! { title, data, css => STYLE, js => SCRIPT })
}

fn data(summary: &Summary<'_>, rows: &[Row], transcripts: &[Transcript]) -> Value {
    let mut texts = Texts::default();
    let told: HashMap<(&str, Key), &Transcript> =
        transcripts.iter().map(|each| ((each.model.as_str(), each.key.clone()), each)).collect();
    let flips = summary.baseline.as_ref().map(flips).unwrap_or_default();
    let attempts: Vec<Value> = rows
        .iter()
        .map(|row| {
            let transcript = told.get(&(row.model.as_str(), row.key())).copied();
            attempt(row, transcript, &flips, &mut texts)
        })
        .collect();
    let classes: BTreeMap<&str, &str> =
        rows.iter().filter_map(|row| Some((row.class.as_str(), meaning(&row.class)?))).collect();
    json!({
        "headline": visible::inert(&summary.headline()),
        "gate": gate(&summary.gate),
        "reconciliation": summary.reconciliation(),
        "origin": visible::inert(&summary.origin()),
        "about": about(summary),
        "notes": summary.notes.iter().map(|note| visible::inert(note)).collect::<Vec<_>>(),
        "baseline": summary.baseline.as_ref().map(|versus| json!({
            "name": versus.base, "words": visible::inert(&versus.headline()),
            "lost": versus.lost, "gained": versus.gained, "both": versus.both, "neither": versus.neither,
        })),
        "classes": classes,
        "cells": cells(summary),
        "attempts": attempts,
        "texts": texts.all,
    })
}

fn gate(gate: &Gate) -> &'static str {
    match gate {
        Gate::Passed { .. } => "pass",
        Gate::Ungated => "ungated",
        Gate::Below { .. } | Gate::Fallen { .. } | Gate::Regressed => "fail",
        Gate::Inconclusive { .. } => "inconclusive",
        Gate::Incomplete { .. } => "incomplete",
    }
}

fn about(summary: &Summary<'_>) -> Vec<[String; 2]> {
    let run = summary.run;
    let mut out = vec![
        ["run".to_owned(), run.id.clone()],
        ["started".to_owned(), run.started.clone()],
        ["editgate".to_owned(), run.editgate.clone()],
        ["command".to_owned(), visible::inert(&run.command)],
    ];
    for (name, value) in run.fingerprint.iter().filter(|(name, _)| *name != "editgate") {
        out.push([name.clone(), visible::excerpt(&value.to_string(), 4_000)]);
    }
    out
}

/// Parts stand behind the cell that they are parts of, under their own name.
fn cells(summary: &Summary<'_>) -> Vec<Value> {
    summary
        .cells
        .iter()
        .map(|cell| {
            json!({
                "model": visible::inert(&cell.plan.model), "tool": cell.plan.tool, "set": visible::inert(&cell.plan.set_name()),
                "prompt": cell.plan.prompt, "passed": cell.totals.passed, "planned": cell.totals.planned,
                "errors": cell.totals.errors, "skipped": cell.totals.skipped, "harm": cell.totals.harm,
                "rate": cell.rate, "low": cell.interval.0, "high": cell.interval.1, "floor": cell.judgement.floor(),
                "judgement": gate_words(&cell.judgement).1, "part": cell.part,
            })
        })
        .collect()
}

type FlipKey = (String, String, String, String, usize);

fn flips(versus: &Versus) -> HashMap<FlipKey, &'static str> {
    let key = |flip: &Flip| (flip.model.clone(), flip.tool.clone(), flip.set.clone(), flip.case.clone(), flip.repeat);
    let lost = versus.lost_cases.iter().map(|flip| (key(flip), "lost"));
    lost.chain(versus.gained_cases.iter().map(|flip| (key(flip), "gained"))).collect()
}

fn attempt(row: &Row, transcript: Option<&Transcript>, flips: &HashMap<FlipKey, &str>, texts: &mut Texts) -> Value {
    let key = (row.model.clone(), row.tool.clone(), row.set.clone(), row.case.clone(), row.repeat);
    let task = transcript.and_then(|told| {
        told.messages.iter().rev().find_map(|message| match message {
            Message::User { text } => Some(text.as_str()),
            _ => None,
        })
    });
    let files: Vec<Value> = transcript.into_iter().flat_map(|told| &told.files).map(panes::file).collect();
    json!({
        "model": visible::inert(&row.model), "tool": row.tool, "set": visible::inert(&crate::record::run_file::set_name(&row.set, row.subset.as_deref())),
        "prompt": row.prompt, "case": visible::inert(&row.case), "repeat": row.repeat,
        "tags": row.tags.iter().map(|tag| visible::inert(tag)).collect::<Vec<_>>(),
        "split": row.split.map(crate::case::Split::name), "verdict": name_of(&row.verdict), "class": row.class, "harm": row.harm,
        "flip": flips.get(&key), "steps": row.steps(), "turns": row.turns, "ms": row.model_ms, "cost": row.cost_usd,
        "input": row.usage.input, "output": row.usage.output,
        "error": row.error.as_deref().map(|error| visible::excerpt(error, 2_000)),
        "diagnosis": row.diagnosis.iter().map(name_of).collect::<Vec<_>>(),
        "task": texts.of(task.or(row.detail.as_ref().map(|detail| detail.task.as_str())).unwrap_or_default()),
        "messages": transcript.map(|told| messages(told, row, texts)).unwrap_or_default(),
        "files": files,
    })
}

/// Answers of tools come in the order of the calls that the row counts, after those of the opening.
fn messages(told: &Transcript, row: &Row, texts: &mut Texts) -> Vec<Value> {
    let answers = told.messages.iter().filter(|message| matches!(message, Message::Tool { .. })).count();
    let mut calls = row.calls.iter();
    let mut opening = answers.saturating_sub(row.calls.len());
    told.messages
        .iter()
        .map(|message| match message {
            Message::System { text } => json!({ "role": "system", "text": texts.of(text) }),
            Message::User { text } => json!({ "role": "user", "text": texts.of(text) }),
            Message::Assistant { text, calls, .. } => {
                let calls: Vec<Value> = calls
                    .iter()
                    .map(|call| {
                        let malformed = matches!(call.arguments, Arguments::Malformed { .. });
                        json!({ "name": visible::inert(&call.name), "arguments": texts.of(call.arguments.as_written()), "malformed": malformed })
                    })
                    .collect();
                json!({ "role": "assistant", "text": texts.of(text), "calls": calls })
            }
            Message::Tool { name, text, .. } => {
                let refused = match opening {
                    0 => calls.next().is_some_and(|call| !call.ok),
                    _ => {
                        opening -= 1;
                        false
                    }
                };
                json!({ "role": "tool", "name": visible::inert(name), "text": texts.of(text), "refused": refused })
            }
        })
        .collect()
}

/// Texts by number: most of them come many times.
#[derive(Default)]
struct Texts {
    all: Vec<String>,
    known: HashMap<String, usize>,
}

impl Texts {
    fn of(&mut self, text: &str) -> usize {
        let mut shown = visible::inert(visible::str_prefix(text, MAX_TEXT));
        if text.len() > MAX_TEXT {
            shown.push_str(&format!("\n… {} more bytes in the transcript", text.len() - MAX_TEXT));
        }
        if let Some(index) = self.known.get(&shown) {
            return *index;
        }
        let index = self.all.len();
        self.all.push(shown.clone());
        self.known.insert(shown, index);
        index
    }
}
