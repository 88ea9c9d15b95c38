//! Hashes and settings of all that a score depends on.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::opening::SYSTEM_PROMPT;
use super::plan::{Plan, PlannedModel};
use super::settings::RunSettings;
use crate::chat::hex;
use crate::model::text_calls::TextCalls;
use crate::tool::EditTool;

/// Identity of the conditions of a cell besides its cases and its model's name. Two counts under other conditions are not comparable.
pub(super) fn conditions(model: &PlannedModel, tool: &dyn EditTool, settings: &RunSettings) -> String {
    let parts = json!({
        "tool": tool_digest(tool),
        "options": settings.tool_options.get(tool.name()),
        "conversation": conversation(settings, model.text_calls.unwrap_or(settings.text_calls)),
        "model": model.settings,
    });
    short(&parts)
}

/// What `run.json` keeps.
pub fn of(plan: &Plan<'_>, facts: &[Value]) -> Map<String, Value> {
    let tools: Map<String, Value> = plan
        .tools
        .iter()
        .map(|tool| {
            (
                tool.name().to_owned(),
                json!({ "sha256": tool_digest(tool.as_ref()), "options": plan.settings.tool_options.get(tool.name()) }),
            )
        })
        .collect();
    let models: Map<String, Value> = plan
        .models
        .iter()
        .zip(facts)
        .map(|(model, facts)| (model.model.name().to_owned(), model_entry(model, facts)))
        .collect();
    let sets: Map<String, Value> =
        plan.selected.iter().map(|chosen| (chosen.set.name.clone(), json!(chosen.digest()))).collect();
    let mut out = Map::new();
    out.insert("editgate".into(), json!(env!("CARGO_PKG_VERSION")));
    out.insert("sets".into(), Value::Object(sets));
    out.insert("tools".into(), Value::Object(tools));
    out.insert("models".into(), Value::Object(models));
    out.insert("conversation".into(), conversation(plan.settings, plan.settings.text_calls));
    out.insert("concurrency".into(), json!(plan.settings.concurrency));
    out.insert("timeout_s".into(), json!(plan.settings.timeout.as_secs_f64()));
    out
}

fn model_entry(model: &PlannedModel, facts: &Value) -> Value {
    let mut entry = json!({ "settings": model.settings, "server": facts });
    if let Some(protocol) = &model.protocol {
        entry["protocol"] = json!(protocol);
    }
    if let Some(text_calls) = model.text_calls {
        entry["text_calls"] = json!(text_calls);
    }
    entry
}

/// How conversations are led, as far as a score depends on it.
fn conversation(settings: &RunSettings, text_calls: TextCalls) -> Value {
    json!({
        "system_prompt_sha256": hex(&Sha256::digest(SYSTEM_PROMPT.as_bytes())),
        "prompt": settings.prompt,
        "text_calls": text_calls,
        "stop_after": settings.stop_after,
        "max_turns": settings.max_turns,
        "identical_limit": settings.identical_limit,
    })
}

/// Digest of a tool's functions as a model gets them: names, descriptions, schemas with the order of their properties.
fn tool_digest(tool: &dyn EditTool) -> String {
    let functions: Vec<_> = tool.functions().into_iter().map(|offered| offered.function).collect();
    short(&json!(functions))
}

fn short(value: &Value) -> String {
    hex(&Sha256::digest(value.to_string().as_bytes())[..16])
}
