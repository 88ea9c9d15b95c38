//! From flags, environment and file to settings, and what a recording asks of them.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::anyhow;
use serde_json::Value;

use super::RunFlags;
use crate::cli::Failure;
use crate::cli::cases::CaseFlags;
use crate::cli::models::{Opened, request_timeout, seconds};
use crate::config::{Config, RunConfig};
use crate::model::recording::Conditions;
use crate::run::RunSettings;
use crate::run::limits::Limits;
use crate::tool::{self, EditTool};
use crate::verdict::gate::Allowance;

/// A value by its name in files.
pub(in crate::cli) fn parse_name<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(Value::String(text.to_owned())).map_err(|error| error.to_string())
}

/// The conditions of the recordings among the models, which must be of one mind.
pub(super) fn recorded_conditions(opened: &[Opened]) -> Result<Option<Conditions>, Failure> {
    let mut all = opened.iter().filter_map(|opened| opened.conditions.clone());
    let Some(first) = all.next() else {
        return Ok(None);
    };
    match all.find(|other| *other != first) {
        Some(_) => {
            Err(Failure::usage(anyhow!("the recordings were made under different conditions; replay them one by one")))
        }
        None => Ok(Some(first)),
    }
}

/// A replay repeats the conditions of its recording; a flag that asks for others is an error rather than a run of errors.
pub(super) fn follow(flags: &mut RunFlags, config: &RunConfig, recorded: &Conditions) -> Result<(), Failure> {
    let prompt = parse_name(&recorded.prompt).map_err(|reason| Failure::usage(anyhow!(reason)))?;
    let text_calls = parse_name(&recorded.text_calls).map_err(|reason| Failure::usage(anyhow!(reason)))?;
    let stop_after = parse_name(&recorded.stop_after).map_err(|reason| Failure::usage(anyhow!(reason)))?;
    let conflicts = [
        ("--prompt", flags.prompt.is_some_and(|asked| asked != prompt), recorded.prompt.clone()),
        ("--text-calls", flags.text_calls.is_some_and(|asked| asked != text_calls), recorded.text_calls.clone()),
        ("--stop-after", flags.stop_after.is_some_and(|asked| asked != stop_after), recorded.stop_after.clone()),
        (
            "--max-turns",
            flags.max_turns.is_some_and(|asked| asked != recorded.max_turns),
            recorded.max_turns.to_string(),
        ),
        (
            "--identical-limit",
            flags.identical_limit.is_some_and(|asked| asked != recorded.identical_limit),
            recorded.identical_limit.to_string(),
        ),
        ("--repeat", flags.repeat.is_some_and(|asked| asked > recorded.repeat), recorded.repeat.to_string()),
    ];
    if let Some((flag, _, value)) = conflicts.iter().find(|(_, conflict, _)| *conflict) {
        return Err(Failure::usage(anyhow!("the recording was made with {flag} {value}; a replay cannot change that")));
    }
    if let Some(other) = flags.tool.iter().find(|name| !recorded.tools.contains(name)) {
        return Err(Failure::usage(anyhow!(
            "the recording has no attempts with {other}; it has: {}",
            recorded.tools.join(", ")
        )));
    }
    flags.prompt = Some(prompt);
    flags.text_calls = Some(text_calls);
    flags.stop_after = Some(stop_after);
    flags.max_turns = Some(recorded.max_turns);
    flags.identical_limit = Some(recorded.identical_limit);
    flags.repeat = flags.repeat.or(Some(recorded.repeat));
    if flags.tool.is_empty() {
        flags.tool.clone_from(&recorded.tools);
    }
    if flags.cases.set.is_empty() && config.set.is_none() {
        flags.cases.set.clone_from(&recorded.sets);
    }
    if flags.cases.subset.is_none() {
        flags.cases.subset.clone_from(&recorded.subset);
    }
    if flags.cases.case.is_empty() {
        flags.cases.case.clone_from(&recorded.cases);
    }
    Ok(())
}

/// Tool options, which a file may set as well, are followed in the settings.
pub(super) fn follow_options(
    settings: &mut RunSettings,
    flags: &RunFlags,
    recorded: &Conditions,
) -> Result<(), Failure> {
    if flags.tool_options.is_some() && settings.tool_options != recorded.tool_options {
        return Err(Failure::usage(anyhow!(
            "the recording was made with other tool options; a replay cannot change them"
        )));
    }
    settings.tool_options.clone_from(&recorded.tool_options);
    Ok(())
}

pub(super) fn settings(flags: &RunFlags, config: &Config, concurrency: usize) -> Result<RunSettings, Failure> {
    let run = &config.run;
    let default = RunSettings::default();
    let positive = |name: &str, value: Option<usize>, default: usize| match value {
        Some(0) => Err(Failure::usage(anyhow!("--{name} must be 1 or more"))),
        value => Ok(value.unwrap_or(default)),
    };
    let mut tool_options: BTreeMap<String, Value> =
        config.tools.iter().map(|(name, options)| (name.clone(), Value::Object(options.clone()))).collect();
    for name in tool_options.keys() {
        tool::named(name).map_err(Failure::usage)?;
    }
    if let Some(text) = &flags.tool_options {
        let options: Value = serde_json::from_str(text)
            .map_err(|error| Failure::usage(anyhow!("--tool-options is not JSON: {error}")))?;
        for tool in tools(flags, run)? {
            tool_options.insert(tool.name().to_owned(), options.clone());
        }
    }
    Ok(RunSettings {
        prompt: flags.prompt.or(run.prompt).unwrap_or(default.prompt),
        text_calls: flags.text_calls.or(run.text_calls).unwrap_or(default.text_calls),
        stop_after: flags.stop_after.or(run.stop_after).unwrap_or(default.stop_after),
        max_turns: positive("max-turns", flags.max_turns.or(run.max_turns), default.max_turns)?,
        identical_limit: positive(
            "identical-limit",
            flags.identical_limit.or(run.identical_limit),
            default.identical_limit,
        )?,
        timeout: seconds("timeout", flags.timeout.or(run.timeout), default.timeout)?,
        request_timeout: request_timeout(&flags.model, run)?,
        repeat: positive("repeat", flags.repeat.or(run.repeat), default.repeat)?,
        concurrency: positive("concurrency", Some(concurrency), default.concurrency)?,
        limits: Limits {
            cost_usd: flags.cost_limit.or(run.cost_limit),
            tokens: flags.token_limit.or(run.token_limit),
            time: match flags.time_limit.or(run.time_limit) {
                Some(limit) => Some(seconds("time-limit", Some(limit), default.timeout)?),
                None => None,
            },
        },
        tool_options,
        sandbox_dir: flags.sandbox_dir.clone().or_else(|| run.sandbox_dir.clone()),
    })
}

pub(super) fn allowance(flags: &RunFlags, config: &RunConfig) -> Result<Allowance, Failure> {
    let text = match (&flags.fail_on_error, &config.fail_on_error) {
        (Some(text), _) => text.clone(),
        (None, Some(Value::String(text))) => text.clone(),
        (None, Some(value)) => value.to_string(),
        (None, None) => return Ok(Allowance::Count(0)),
    };
    Allowance::parse(&text).map_err(|reason| Failure::usage(anyhow!("--fail-on-error {text}: {reason}")))
}

pub(super) fn tools(flags: &RunFlags, config: &RunConfig) -> Result<Vec<Box<dyn EditTool>>, Failure> {
    let default = vec!["edit_file".to_owned()];
    let names = if flags.tool.is_empty() { config.tool.as_ref().unwrap_or(&default) } else { &flags.tool };
    names.iter().map(|name| tool::named(name).map_err(Failure::usage)).collect()
}

/// Wrong options are found before anything runs.
pub(super) fn check_options(tools: &[Box<dyn EditTool>], settings: &RunSettings) -> Result<(), Failure> {
    for tool in tools {
        let options = settings.tool_options.get(tool.name()).unwrap_or(&Value::Null);
        tool.open(Path::new("/"), options).map_err(Failure::usage)?;
    }
    Ok(())
}

pub(super) fn fill_cases(flags: &mut CaseFlags, config: &RunConfig) {
    if flags.cases.is_none() {
        flags.cases.clone_from(&config.cases);
    }
    if flags.set.is_empty() {
        flags.set = config.set.clone().unwrap_or_default();
    }
    if flags.subset.is_none() {
        flags.subset.clone_from(&config.subset);
    }
}
