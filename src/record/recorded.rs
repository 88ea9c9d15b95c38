//! Every run is a recording: its transcripts hold the answers, its rows what they came to.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde_json::{Map, Value};

use super::load::{LoadError, load, transcripts};
use super::row::Row;
use super::run_file::RunFile;
use crate::model::protocol::FIRST;
use crate::model::recording::{Conditions, FORMAT, Header, Key, Recorded, Recording};

/// The recordings in a run, one a model.
///
/// # Errors
/// When the run cannot be read.
pub fn recordings(directory: &Path) -> Result<Vec<Recording>, LoadError> {
    let record = load(directory)?;
    let rows: HashMap<(&str, Key), &Row> =
        record.rows.iter().map(|row| ((row.model.as_str(), row.key()), row)).collect();
    let mut by_model: BTreeMap<String, Vec<Recorded>> = BTreeMap::new();
    for transcript in transcripts(directory)? {
        let row = rows.get(&(transcript.model.as_str(), transcript.key.clone())).copied();
        by_model.entry(transcript.model.clone()).or_default().push(transcript.recorded(row));
    }
    let recording = |(model, attempts): (String, Vec<Recorded>)| {
        let header = header(&record.run, &model, &attempts);
        Recording::of(directory.to_owned(), header, attempts)
    };
    Ok(by_model.into_iter().map(recording).collect())
}

fn header(run: &RunFile, model: &str, attempts: &[Recorded]) -> Header {
    let part = |holder: &Map<String, Value>, name: &str| holder.get(name).cloned().unwrap_or(Value::Null);
    let about = part(&run.fingerprint, "models").get(model).cloned().unwrap_or(Value::Null);
    let talk = part(&run.fingerprint, "conversation");
    let word = |name: &str| talk.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let number = |name: &str| talk.get(name).and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok());
    let text_calls = about.get("text_calls").and_then(Value::as_str).map(str::to_owned);
    let once = |names: Vec<String>| {
        let mut out: Vec<String> = Vec::new();
        names.into_iter().for_each(|name| {
            if !out.contains(&name) {
                out.push(name);
            }
        });
        out
    };
    let narrowed = run.plan.iter().any(|cell| cell.narrowed);
    let options = part(&run.fingerprint, "tools");
    let options = options.as_object().into_iter().flatten().filter_map(|(tool, about)| {
        let options = about.get("options").filter(|options| !options.is_null())?;
        Some((tool.clone(), options.clone()))
    });
    Header {
        format: FORMAT,
        model: model.to_owned(),
        protocol: about.get("protocol").and_then(Value::as_str).unwrap_or(FIRST).to_owned(),
        recorded: run.started.clone(),
        editgate: run.editgate.clone(),
        server: about.get("server").cloned().unwrap_or(Value::Null),
        settings: about.get("settings").cloned().unwrap_or(Value::Null),
        conditions: Conditions {
            tools: once(run.plan.iter().map(|cell| cell.tool.clone()).collect()),
            sets: once(run.plan.iter().map(|cell| cell.set.clone()).collect()),
            subset: run.plan.first().and_then(|cell| cell.subset.clone()),
            cases: if narrowed {
                once(attempts.iter().map(|each| each.key.case.clone()).collect())
            } else {
                Vec::new()
            },
            prompt: word("prompt"),
            text_calls: text_calls.unwrap_or_else(|| word("text_calls")),
            stop_after: word("stop_after"),
            max_turns: number("max_turns").unwrap_or(8),
            identical_limit: number("identical_limit").unwrap_or(3),
            repeat: run.plan.first().map_or(1, |cell| cell.repeats),
            tool_options: options.collect(),
        },
    }
}
