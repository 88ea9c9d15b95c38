//! `tools list`, `tools show NAME`, `tools call NAME`, `tools serve NAME`.

use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Subcommand;
use serde_json::{Map, Value};

use super::run::FLOORS;
use super::{Exit, Failure, output};
use crate::chat::Arguments;
use crate::tool::{self, EditTool, Kind, Outcome, Refusal, Session};
use crate::verdict::floor::Floors;

#[derive(Debug, Subcommand)]
pub(super) enum ToolsCommand {
    /// List the edit tools
    List {
        /// As a Markdown table, with the recorded results of each tool
        #[arg(long)]
        markdown: bool,
        /// Where the recorded results are, with --markdown
        #[arg(long, value_name = "FILE", default_value = FLOORS, env = "EDITGATE_FLOORS")]
        floors: PathBuf,
    },
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
    /// Serve a tool over MCP on stdin and stdout, for any MCP client
    ///
    /// One process is one session. A refusal is a result with isError; the receipt of a call (kind, notes, writes) is in
    /// its _meta under "editgate/receipt".
    Serve {
        /// Name of the edit tool; its read tool is served with it
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
        ToolsCommand::List { markdown: false, .. } => list(),
        ToolsCommand::List { markdown: true, floors } => list_markdown(&floors),
        ToolsCommand::Show { name } => show(&name),
        ToolsCommand::Call { name, root, options } => call(&name, &root, options.as_deref()),
        ToolsCommand::Serve { name, root, options } => serve(&name, &root, options.as_deref()),
    }
}

fn list() -> Result<Exit, Failure> {
    let mut rows = vec![vec!["tool".to_owned(), "reads with".to_owned(), "does".to_owned()]];
    for tool in tool::all() {
        let functions = tool.functions();
        let readers: Vec<&str> =
            functions.iter().filter(|offered| !offered.edits).map(|offered| offered.function.name.as_str()).collect();
        let description = functions.first().map(|offered| offered.function.description.as_str()).unwrap_or_default();
        let first = crate::report::tools::first_sentence(description);
        rows.push(vec![tool.name().to_owned(), readers.join(", "), first.to_owned()]);
    }
    output::data(&output::table(rows))?;
    Ok(Exit::Passed)
}

/// The tools and their recorded results, as floors keep them; without a floors file there are none.
fn list_markdown(floors: &Path) -> Result<Exit, Failure> {
    let recorded = match floors.exists() {
        true => Floors::load(floors).map_err(Failure::usage)?,
        false if floors == Path::new(FLOORS) => Floors::default(),
        false => return Err(Failure::usage(anyhow!("--floors {}: no such file", floors.display()))),
    };
    output::data(&crate::report::tools::render(&tool::all(), &recorded))?;
    Ok(Exit::Passed)
}

/// A page: what a model is told of the tool, how it reads, the rules and limits.
fn show(name: &str) -> Result<Exit, Failure> {
    let tool = tool::named(name).map_err(Failure::usage)?;
    let mut text = format!("# {}\n\n", tool.name());
    for (index, offered) in tool.functions().into_iter().enumerate() {
        let function = offered.function;
        let what = match (index, offered.edits) {
            (0, _) => "the edit tool",
            (_, true) => "offered with it, and edits too",
            (_, false) => "the read tool",
        };
        let schema =
            serde_json::to_string_pretty(&function.parameters).map_err(|error| Failure::new(Exit::Internal, error))?;
        text.push_str(&format!("## {} ({what})\n\n{}\n\n{schema}\n\n", function.name, function.description));
    }
    text.push_str("## Rules and limits\n\n");
    text.push_str(tool.rules());
    output::data(&text)?;
    Ok(Exit::Passed)
}

/// A tool and a session of it.
type Opened = (Box<dyn EditTool>, Box<dyn Session>);

/// A session on a directory.
fn open(name: &str, root: &Path, options: Option<&str>) -> Result<Opened, Failure> {
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
    let session = tool.open(&canonical, &options).map_err(Failure::usage)?;
    Ok((tool, session))
}

fn serve(name: &str, root: &Path, options: Option<&str>) -> Result<Exit, Failure> {
    let (tool, session) = open(name, root, options)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Internal, error))?;
    let done = runtime.block_on(tool::serve::serve(tool.as_ref(), session, tokio::io::stdin(), tokio::io::stdout()));
    // A read of standard input that is still waiting must not keep the process.
    runtime.shutdown_background();
    done.map_err(Failure::usage)?;
    Ok(Exit::Passed)
}

fn call(name: &str, root: &Path, options: Option<&str>) -> Result<Exit, Failure> {
    let (tool, mut session) = open(name, root, options)?;
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
