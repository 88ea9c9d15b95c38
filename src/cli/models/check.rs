//! `models check`: one small conversation with a model, and what it shows of its server.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use clap::Args;
use serde_json::{Value, json};

use super::{ModelFlags, open};
use crate::chat::{Answer, Finish, Function, Message, Usage};
use crate::cli::{Exit, Failure, output};
use crate::config::Config;
use crate::model::open::Endpoints;
use crate::model::recording::Key;
use crate::model::{Brief, Fault, FaultKind, Model, Request, Turn, text_calls};
use crate::text::visible;

const WORD: &str = "heron";

#[derive(Debug, Args)]
pub(in crate::cli) struct CheckFlags {
    /// provider/id, or a name from the config
    spec: String,
    #[command(flatten)]
    model: ModelFlags,
    /// Configuration file [default: editgate.toml, where there is one]
    #[arg(long, value_name = "FILE", env = "EDITGATE_CONFIG")]
    config: Option<PathBuf>,
}

/// One thing that was tried.
struct Finding {
    what: &'static str,
    good: bool,
    saw: String,
    fix: String,
}

pub(super) fn main(flags: CheckFlags) -> Result<Exit, Failure> {
    let config = Config::load(flags.config.as_deref()).map_err(Failure::usage)?;
    let planned = open(&flags.spec, &flags.model, &config, &Endpoints::default())?.planned;
    if planned.protocol.is_none() || planned.model.name().is_empty() {
        return Err(Failure::usage(anyhow!("{}: a stand-in has no server to check", flags.spec)));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(Exit::Internal, error))?;
    let mut findings = runtime.block_on(check(planned.model.as_ref()))?;
    let usable = findings.iter().all(|finding| finding.good);
    // Streams are worth knowing of, and no condition.
    if usable && flags.model.stream.is_none() {
        let streamed = ModelFlags { stream: Some(true), ..flags.model };
        let model = open(&flags.spec, &streamed, &config, &Endpoints::default())?.planned.model;
        findings.push(runtime.block_on(streams(model.as_ref())));
    }
    let mut rows = vec![["", "what", "seen", "what to do"].map(str::to_owned).to_vec()];
    rows.extend(findings.iter().map(|finding| {
        let mark = if finding.good { "ok" } else { "no" };
        vec![mark.to_owned(), finding.what.to_owned(), visible::excerpt(&finding.saw, 90), finding.fix.clone()]
    }));
    output::data(&format!("{}\n{}\n", output::table(rows), verdict(usable, &flags.spec)))?;
    Ok(if usable { Exit::Passed } else { Exit::Incomplete })
}

fn verdict(usable: bool, spec: &str) -> String {
    match usable {
        true => format!("{spec} can be measured: editgate run -m {spec}"),
        false => format!("{spec} cannot be measured as it is"),
    }
}

async fn check(model: &dyn Model) -> Result<Vec<Finding>, Failure> {
    let facts = match model.facts().await {
        Ok(facts) => facts,
        Err(fault) => {
            return Ok(vec![finding("the server is reached", false, fault.message.clone(), advice(&fault))]);
        }
    };
    let mut findings = vec![finding("the server is reached", true, about(&facts), "")];
    let mut messages = vec![
        Message::System { text: "You use tools. Call the tool, then answer in one short sentence.".to_owned() },
        Message::User {
            text: "Read the note notes.txt with the tool read_note and tell me the word in it.".to_owned(),
        },
    ];
    let (turn, took) = ask(model, &messages).await;
    findings.extend(dropped(&turn));
    let answer = match turn.outcome {
        Ok(answer) => answer,
        Err(fault) => {
            findings.push(finding("it answers", false, fault.message.clone(), advice(&fault)));
            return Ok(findings);
        }
    };
    let first = turn.first_byte_ms.map(|ms| format!(", first byte after {ms} ms")).unwrap_or_default();
    findings.push(finding("it answers", true, format!("in {:.1} s{first}", took.as_secs_f64()), ""));
    findings.push(tokens(answer.usage));
    let called = call(&answer);
    let good = called.good;
    findings.push(called);
    if !good {
        return Ok(findings);
    }
    messages.push(Message::Assistant { text: answer.text, calls: answer.calls.clone(), echo: answer.echo });
    messages.extend(answer.calls.iter().map(|call| Message::Tool {
        id: call.id.clone(),
        name: call.name.clone(),
        text: format!("1\tThe word is {WORD}."),
    }));
    let (turn, _) = ask(model, &messages).await;
    findings.push(match turn.outcome {
        Err(fault) => finding("it takes a tool's result", false, fault.message.clone(), advice(&fault)),
        Ok(answer) if answer.text.contains(WORD) => {
            finding("it takes a tool's result", true, "and answers from it".to_owned(), "")
        }
        Ok(answer) => finding("it takes a tool's result", true, format!("and answers: {}", answer.text), ""),
    });
    Ok(findings)
}

async fn streams(model: &dyn Model) -> Finding {
    let messages = [Message::User { text: "Read the note notes.txt with the tool read_note.".to_owned() }];
    let (turn, took) = ask(model, &messages).await;
    match turn.outcome {
        Ok(answer) => {
            let first = turn.first_byte_ms.unwrap_or_default();
            let saw = format!("first byte after {first} ms of {}; {} call(s)", took.as_millis(), answer.calls.len());
            finding("it streams", true, saw, "--stream, where answers are long")
        }
        Err(fault) => finding("it streams", false, fault.message, "leave --stream out"),
    }
}

async fn ask(model: &dyn Model, messages: &[Message]) -> (Turn, Duration) {
    let (tool, prompt, set, case) = ("check".to_owned(), String::new(), String::new(), String::new());
    let key = Key { tool, prompt, set, case, repeat: 0 };
    let solve = || Ok(Vec::new());
    let functions = functions();
    let mut conversation = model.converse(Brief { key: &key, reads: &[], solve: &solve });
    let began = Instant::now();
    let turn = conversation.answer(Request { functions: &functions, messages, left: Duration::from_secs(600) }).await;
    (turn, began.elapsed())
}

fn functions() -> Vec<Function> {
    let parameters = json!({ "type": "object", "properties": { "path": { "type": "string", "description": "name of the note" } }, "required": ["path"] });
    vec![Function { name: "read_note".to_owned(), description: "Reads a note.".to_owned(), parameters }]
}

fn call(answer: &Answer) -> Finding {
    let what = "it calls tools";
    if answer.finish == Finish::Length {
        return finding(what, false, "the answer was cut by the output limit".to_owned(), "a larger --max-tokens");
    }
    match answer.calls.as_slice() {
        [first, ..] if first.name == "read_note" && first.arguments.object().is_some() => {
            finding(what, true, format!("{}({})", first.name, first.arguments.as_written()), "")
        }
        [first, ..] => finding(
            what,
            false,
            format!("a call that cannot be run: {}({})", first.name, first.arguments.as_written()),
            "a chat template that fits the model, or another model",
        ),
        [] if text_calls::holds(&answer.text, &functions()) => finding(
            what,
            false,
            format!("the call stands in the text: {}", answer.text),
            "--text-calls accept, or a chat template with tools (llama-server --jinja, vllm --tool-call-parser)",
        ),
        [] => finding(
            what,
            false,
            format!("only words: {}", answer.text),
            "a model and chat template with tools (llama-server --jinja, vllm --enable-auto-tool-choice)",
        ),
    }
}

fn tokens(usage: Usage) -> Finding {
    let count = |value: Option<u64>| value.map_or("–".to_owned(), |value| value.to_string());
    let saw = format!(
        "input {}, output {}, cached {}, reasoning {}",
        count(usage.input),
        count(usage.output),
        count(usage.cached),
        count(usage.reasoning)
    );
    let silent = usage.input.is_none();
    finding("it counts tokens", true, saw, if silent { "costs and token limits will not be known" } else { "" })
}

fn dropped(turn: &Turn) -> Option<Finding> {
    let names = turn.dropped_params.join(", ");
    (!names.is_empty())
        .then(|| finding("it takes the parameters", true, format!("all but {names}"), "they are left out"))
}

fn about(facts: &Value) -> String {
    match facts.as_object() {
        None => "it says nothing of itself".to_owned(),
        Some(facts) => {
            let plain = facts.iter().filter(|(_, value)| !value.is_object());
            let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            plain.map(|(name, value)| format!("{name} {}", word(value))).collect::<Vec<_>>().join(", ")
        }
    }
}

fn advice(fault: &Fault) -> &'static str {
    match fault.kind {
        FaultKind::Auth => "the key: --api-key-env NAME names the variable that holds it",
        FaultKind::Network => "is it running? --base-url says where",
        FaultKind::Timeout | FaultKind::OutOfTime => "a longer --request-timeout, or --stream",
        FaultKind::RateLimit => "requests_per_minute under [models.NAME], or later",
        FaultKind::Request => {
            "the name of the model, the address, or a parameter: --extra-body '{\"temperature\": null}' takes one away"
        }
        FaultKind::Template => "a chat template that fits the model",
        FaultKind::Context => "a larger context window for the server",
        _ => "another protocol? `editgate models list` names them",
    }
}

fn finding(what: &'static str, good: bool, saw: String, fix: &str) -> Finding {
    Finding { what, good, saw, fix: fix.to_owned() }
}
