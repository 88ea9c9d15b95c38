//! Edit tools: schema, description, read format and exact semantics of each.
//!
//! A tool is one file (or folder) of its own and one line in [`all`]. Its edit is a pure function from bytes and intent
//! to new bytes or a [`Refusal`]; a refusal is an answer, never an error of the harness.

pub mod args;
mod bridge;
mod column;
pub mod edit_file;
mod exact;
mod express;
pub mod filesystem;
pub mod looprig;
pub mod serve;

use std::io;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::case::{Target, Tree};
use crate::chat::Function;

/// Every edit tool, by the order of reports.
pub fn all() -> Vec<Box<dyn EditTool>> {
    vec![Box::new(edit_file::EditFile), Box::new(looprig::Looprig), Box::new(filesystem::Filesystem)]
}

/// The tool of that name.
///
/// # Errors
/// When there is none; the text lists those there are.
pub fn named(name: &str) -> Result<Box<dyn EditTool>, ToolError> {
    let mut tools = all();
    match tools.iter().position(|tool| tool.name() == name) {
        Some(at) => Ok(tools.swap_remove(at)),
        None => Err(ToolError::Unknown {
            name: name.to_owned(),
            known: tools.iter().map(|tool| tool.name().to_owned()).collect(),
        }),
    }
}

/// One way for a model to change a file.
pub trait EditTool {
    fn name(&self) -> &'static str;

    /// What is offered to the model: the edit tool itself first, then its read tool and whatever else it brings.
    fn functions(&self) -> Vec<Offered>;

    /// Its rules and limits in a page, for `tools show`.
    fn rules(&self) -> &'static str;

    /// A session on a directory. `root` must be canonical.
    ///
    /// # Errors
    /// Options that this tool does not take.
    fn open(&self, root: &Path, options: &Value) -> Result<Box<dyn Session>, ToolError>;

    /// The call that reads a whole file.
    fn read_call(&self, path: &str) -> Planned;

    /// The words of a directed prompt: this tool's own name, mode and arguments for the change. `as_read` is the file as
    /// the model reads it.
    fn direct(&self, target: &Target, as_read: &[u8]) -> String;

    /// Calls that turn `current` into `expected`, for the oracle.
    ///
    /// # Errors
    /// Why this tool cannot express the change.
    fn express(&self, current: &Tree, expected: &Tree) -> Result<Vec<Planned>, String>;
}

/// The state of one conversation with a tool.
pub trait Session: Send {
    /// Runs one call of one of the tool's functions. The arguments are an object; they may still be wrong.
    ///
    /// # Errors
    /// Only faults of the harness itself, such as a function that the tool does not have.
    fn call(&mut self, function: &str, arguments: &Map<String, Value>) -> Result<Outcome, ToolError>;
}

/// A function offered to a model, and what it is for.
#[derive(Clone, Debug)]
pub struct Offered {
    pub function: Function,
    /// It can write: a call of it is an edit call.
    pub edits: bool,
}

/// A call to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    pub function: String,
    pub arguments: Map<String, Value>,
}

/// The answer to one call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    pub ok: bool,
    pub kind: Option<Kind>,
    /// What the model is told.
    pub text: String,
    pub notes: Vec<Note>,
    /// Audit: each write that happened.
    pub writes: Vec<Write>,
}

/// One write that happened. `bytes_before` is `None` for a file that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    pub path: String,
    pub mode: String,
    pub created: bool,
    pub bytes_before: Option<u64>,
    pub bytes_after: u64,
}

impl Outcome {
    /// A call that was carried out.
    fn done(text: String, notes: Vec<Note>, writes: Vec<Write>) -> Self {
        Outcome { ok: true, kind: None, text, notes, writes }
    }
}

impl Write {
    /// `before` is the size of what was there, in bytes.
    fn of(path: &str, mode: &str, before: Option<u64>, after: u64) -> Self {
        Write {
            path: path.to_owned(),
            mode: mode.to_owned(),
            created: before.is_none(),
            bytes_before: before,
            bytes_after: after,
        }
    }
}

/// A call that the tool did not carry out: a kind for the record, a text for the model. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub kind: Kind,
    pub text: String,
    pub notes: Vec<Note>,
}

impl Refusal {
    /// A refusal whose text is an ordinary tool result that begins with `error: `.
    pub fn new(kind: Kind, message: impl AsRef<str>) -> Self {
        Refusal { kind, text: format!("error: {}", message.as_ref()), notes: Vec::new() }
    }

    #[must_use]
    pub fn with_note(mut self, note: Note) -> Self {
        self.notes.push(note);
        self
    }
}

/// What a fault of the file system means for a call: kinds after `classes.md`, the error's own kind in words, since its
/// full text can hold the real path.
fn io_fault(path: &str, error: &io::Error) -> Refusal {
    match error.kind() {
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => Refusal::new(
            Kind::NoParent,
            format!("{path}: a file stands where a directory would have to be; nothing changed"),
        ),
        io::ErrorKind::InvalidFilename => {
            Refusal::new(Kind::ArgsInvalid, format!("`{path}` is not a path that a file can have; nothing changed"))
                .with_note(Note::ArgumentValue)
        }
        kind => Refusal::new(Kind::Io, format!("{path}: {kind}; nothing changed")),
    }
}

impl From<Refusal> for Outcome {
    fn from(refusal: Refusal) -> Self {
        Outcome { ok: false, kind: Some(refusal.kind), text: refusal.text, notes: refusal.notes, writes: Vec::new() }
    }
}

/// Why a call was not carried out (the tool catalogue, section 0). The first two arise before any tool runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    JsonInvalid,
    UnknownTool,
    ArgsInvalid,
    ParseFailed,
    PathDenied,
    Missing,
    Exists,
    IsDirectory,
    NotRegular,
    NoParent,
    Binary,
    TooLarge,
    NotRead,
    Stale,
    AnchorMissing,
    AnchorAmbiguous,
    LineRange,
    LineMismatch,
    MultiLine,
    Overlap,
    NoChange,
    NeedsForce,
    NotEmpty,
    Guard,
    Approval,
    Io,
}

impl Kind {
    /// The name in files, as serde writes it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::JsonInvalid => "json_invalid",
            Kind::UnknownTool => "unknown_tool",
            Kind::ArgsInvalid => "args_invalid",
            Kind::ParseFailed => "parse_failed",
            Kind::PathDenied => "path_denied",
            Kind::Missing => "missing",
            Kind::Exists => "exists",
            Kind::IsDirectory => "is_directory",
            Kind::NotRegular => "not_regular",
            Kind::NoParent => "no_parent",
            Kind::Binary => "binary",
            Kind::TooLarge => "too_large",
            Kind::NotRead => "not_read",
            Kind::Stale => "stale",
            Kind::AnchorMissing => "anchor_missing",
            Kind::AnchorAmbiguous => "anchor_ambiguous",
            Kind::LineRange => "line_range",
            Kind::LineMismatch => "line_mismatch",
            Kind::MultiLine => "multi_line",
            Kind::Overlap => "overlap",
            Kind::NoChange => "no_change",
            Kind::NeedsForce => "needs_force",
            Kind::NotEmpty => "not_empty",
            Kind::Guard => "guard",
            Kind::Approval => "approval",
            Kind::Io => "io",
        }
    }
}

/// What was noticed about a call: leniencies that a tool applied, and slips of the caller (`classes.md`, conduct).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    IndentKept,
    LineMoved,
    EolBridged,
    EndDefaulted,
    ArgumentCoerced,
    CallFromText,
    SeveralCalls,
    WholeFile,
    NoRead,
    NoReread,
    NumberColumn,
    ReadMarker,
    NoAnchor,
    EmptyAnchor,
    NumberAsText,
    ArgumentMissing,
    ArgumentType,
    ArgumentValue,
    ArgumentUnknown,
    CallInThought,
    Asked,
}

impl Note {
    /// A leniency shaped the result: without it the call would have failed or left other bytes.
    pub fn is_leniency(self) -> bool {
        matches!(
            self,
            Note::IndentKept
                | Note::LineMoved
                | Note::EolBridged
                | Note::EndDefaulted
                | Note::ArgumentCoerced
                | Note::CallFromText
        )
    }
}

#[derive(Debug, Error)]
pub enum ToolError {
    #[error("unknown tool `{name}`; there are: {}", known.join(", "))]
    Unknown { name: String, known: Vec<String> },
    #[error("options of {tool}: {reason}")]
    Options { tool: &'static str, reason: String },
    #[error("{tool} has no function `{function}`")]
    NoFunction { tool: &'static str, function: String },
}

/// The options of a session; none are the defaults.
fn options<T: DeserializeOwned + Default>(tool: &'static str, options: &Value) -> Result<T, ToolError> {
    match options {
        Value::Null => Ok(T::default()),
        other => serde_json::from_value(other.clone())
            .map_err(|error| ToolError::Options { tool, reason: error.to_string() }),
    }
}

/// What came of a call, with what was noted about its arguments.
fn finished(done: Result<Outcome, Refusal>, notes: Vec<Note>) -> Outcome {
    let mut outcome = done.unwrap_or_else(Outcome::from);
    outcome.notes.extend(notes);
    outcome.notes.sort();
    outcome.notes.dedup();
    outcome
}

/// Reads a function from its data file: name, description, parameters.
pub(crate) fn function_from(data: &str) -> Function {
    serde_json::from_str(data).unwrap_or_else(|error| Function {
        // Built-in data; a test reads every one, so this text is never seen.
        name: "broken".to_owned(),
        description: error.to_string(),
        parameters: Value::Null,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_kinds_are_those_of_files() {
        for kind in [Kind::JsonInvalid, Kind::NoParent, Kind::Io, Kind::AnchorAmbiguous, Kind::TooLarge] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }

    #[test]
    fn every_tool_describes_itself() {
        for tool in all() {
            let functions = tool.functions();
            assert_eq!(functions[0].function.name, tool.name());
            assert!(functions[0].edits);
            for offered in functions {
                assert_ne!(offered.function.name, "broken", "{}", offered.function.description);
                assert_eq!(offered.function.parameters["type"], "object");
            }
        }
        assert!(matches!(named("no_such"), Err(ToolError::Unknown { .. })));
    }
}
