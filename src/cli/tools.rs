//! `tools list`, `tools show NAME`, `tools call NAME`.

use std::io::{self, BufRead};
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::Subcommand;
use serde_json::{Map, Value};

use super::{Exit, Failure, output};
use crate::chat::Arguments;
use crate::tool::{self, Kind, Outcome, Refusal};

#[derive(Debug, Subcommand)]
pub(super) enum ToolsCommand {
    /// List the edit tools
    List,
    /// Show a tool's description, schemas, rules and limits
    Show {
        /// Name of the tool
        name: String,
    },
    /// Run calls against a directory: a JSON object a line on stdin, an answer a line on stdout
    ///
    /// A line is {"tool": "edit_file", "arguments": {...}}; the answer is
    /// {"ok", "kind", "text", "notes", "writes"}. A refusal is an answer.
    Call {
        /// Name of the edit tool; its read tool can be called too
        name: String,
        /// The directory that calls are confined to
        #[arg(long, value_name = "DIR")]
        root: PathBuf,
        /// Settings of the session, as a JSON object (see `tools show`)
        #[arg(long, value_name = "JSON", env = "EDITGATE_TOOL_OPTIONS")]
        options: Option<String>,
    },
}

pub(super) fn main(command: ToolsCommand) -> Result<Exit, Failure> {
    match command {
        ToolsCommand::List => list(),
        ToolsCommand::Show { name } => show(&name),
        ToolsCommand::Call { name, root, options } => call(&name, root, options.as_deref()),
    }
}

fn list() -> Result<Exit, Failure> {
    let mut rows = vec![vec!["tool".to_owned(), "reads with".to_owned(), "does".to_owned()]];
    for tool in tool::all() {
        let functions = tool.functions();
        let readers: Vec<&str> =
            functions.iter().filter(|offered| !offered.edits).map(|offered| offered.function.name.as_str()).collect();
        let description = functions.first().map(|offered| offered.function.description.as_str()).unwrap_or_default();
        let first = description.split_inclusive(". ").next().unwrap_or_default().trim();
        rows.push(vec![tool.name().to_owned(), readers.join(", "), first.to_owned()]);
    }
    output::data(&output::table(rows))?;
    Ok(Exit::Passed)
}

fn show(name: &str) -> Result<Exit, Failure> {
    let tool = tool::named(name).map_err(Failure::usage)?;
    let mut text = String::new();
    for offered in tool.functions() {
        let function = offered.function;
        let schema =
            serde_json::to_string_pretty(&function.parameters).map_err(|error| Failure::new(Exit::Internal, error))?;
        text.push_str(&format!("{}\n\n{}\n\n{schema}\n\n", function.name, function.description));
    }
    text.push_str(tool.rules());
    output::data(&text)?;
    Ok(Exit::Passed)
}

fn call(name: &str, root: PathBuf, options: Option<&str>) -> Result<Exit, Failure> {
    let tool = tool::named(name).map_err(Failure::usage)?;
    let options: Value = match options {
        None => Value::Null,
        Some(text) => serde_json::from_str(text).context("--options is not JSON").map_err(Failure::usage)?,
    };
    let canonical = root
        .canonicalize()
        .ok()
        .filter(|root| root.is_dir())
        .ok_or_else(|| Failure::usage(anyhow!("--root {}: no such directory", root.display())))?;
    let mut session = tool.open(&canonical, &options).map_err(Failure::usage)?;
    let functions = tool.functions();
    for (index, line) in io::stdin().lock().lines().enumerate() {
        let number = index + 1;
        let line = line.with_context(|| format!("stdin, line {number}")).map_err(Failure::usage)?;
        if line.trim().is_empty() {
            continue;
        }
        let (function, arguments) =
            parse(&line).map_err(|error| Failure::usage(error.context(format!("stdin, line {number}"))))?;
        let known = functions.iter().any(|offered| offered.function.name == function);
        let outcome = match arguments.object() {
            _ if !known => Outcome::from(Refusal::new(
                Kind::UnknownTool,
                format!("there is no tool {function}; there are: {}", tool_names(&functions)),
            )),
            None => {
                Outcome::from(Refusal::new(Kind::JsonInvalid, "the arguments are not a JSON object; nothing was run"))
            }
            Some(arguments) => {
                session.call(&function, &arguments).map_err(|error| Failure::new(Exit::Internal, error))?
            }
        };
        let answer = serde_json::to_string(&outcome).map_err(|error| Failure::new(Exit::Internal, error))?;
        output::data(&format!("{answer}\n"))?;
    }
    Ok(Exit::Passed)
}

fn tool_names(functions: &[tool::Offered]) -> String {
    functions.iter().map(|offered| offered.function.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// The function and arguments of a line. Arguments may be an object or, as models send them, JSON text.
fn parse(line: &str) -> anyhow::Result<(String, Arguments)> {
    let mut object: Map<String, Value> =
        serde_json::from_str(line).context("not a JSON object such as {\"tool\": \"edit_file\", \"arguments\": {}}")?;
    let function = match object.remove("tool") {
        Some(Value::String(name)) => name,
        _ => return Err(anyhow!("\"tool\" is missing, or is not a string")),
    };
    let arguments = match object.remove("arguments") {
        Some(Value::String(text)) => Arguments::parse(&text),
        Some(value) => Arguments::parse(&value.to_string()),
        None => return Err(anyhow!("\"arguments\" is missing")),
    };
    match object.keys().next() {
        Some(key) => Err(anyhow!("unknown key \"{key}\"; a call has \"tool\" and \"arguments\"")),
        None => Ok((function, arguments)),
    }
}
