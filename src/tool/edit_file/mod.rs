//! wisp's `edit_file` and `read_file`: the whole file, an addition, or one exact replacement.
//!
//! Rules A1 to A21 and decisions AQ1 to AQ18 of the tool catalogue, after the seed document. The order of checks is
//! A21: mode, arguments, approval, confinement, directory, parent, presence, size, NUL byte, and then the edit itself
//! in [`replace`], which is pure.

mod approval;
mod express;
mod read;
pub mod replace;
mod words;

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::approval::{Approvals, Policy};
use self::replace::Intent;
use super::args::{Args, Strictness};
use super::express::planned;
use super::{EditTool, Kind, Note, Offered, Outcome, Planned, Refusal, Session, ToolError, Write, function_from};
use crate::case::{Target, Tree};
use crate::workspace::{PathFault, confine, write};

const NAME: &str = "edit_file";
const READ: &str = "read_file";
const EDIT_ARGUMENTS: [&str; 5] = ["path", "mode", "content", "line", "find"];
const READ_ARGUMENTS: [&str; 3] = ["path", "offset", "limit"];
/// A17: the largest file that `replace` edits, in bytes.
pub const MAX_REPLACE: u64 = 1 << 20;

/// The tool, as the registry holds it.
#[derive(Debug)]
pub struct EditFile;

/// Settings of a session.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    #[serde(default)]
    arguments: Strictness,
    /// A path that counts as the tool's own home, relative to the root or absolute.
    home: Option<String>,
    approval: Option<Policy>,
}

impl EditTool for EditFile {
    fn name(&self) -> &'static str {
        NAME
    }

    fn functions(&self) -> Vec<Offered> {
        vec![
            Offered { function: function_from(include_str!("edit_file.json")), edits: true },
            Offered { function: function_from(include_str!("read_file.json")), edits: false },
        ]
    }

    fn rules(&self) -> &'static str {
        include_str!("rules.md")
    }

    fn open(&self, root: &Path, options: &Value) -> Result<Box<dyn Session>, ToolError> {
        let bad = |reason: String| ToolError::Options { tool: NAME, reason };
        let options: Options = super::options(NAME, options)?;
        let home = match &options.home {
            None => None,
            Some(home) => Some(confine::canonical(root, home).map_err(|fault| bad(format!("home `{home}`: {fault}")))?),
        };
        Ok(Box::new(EditSession {
            root: root.to_owned(),
            arguments: options.arguments,
            home,
            approvals: Approvals::new(options.approval),
        }))
    }

    fn read_call(&self, path: &str) -> Planned {
        planned(READ, json!({ "path": path }))
    }

    fn direct(&self, target: &Target, as_read: &[u8]) -> String {
        express::direct(target, as_read)
    }

    fn express(&self, current: &Tree, expected: &Tree) -> Result<Vec<Planned>, String> {
        express::express(current, expected)
    }
}

struct EditSession {
    root: PathBuf,
    arguments: Strictness,
    home: Option<PathBuf>,
    approvals: Approvals,
}

impl Session for EditSession {
    fn call(&mut self, function: &str, arguments: &Map<String, Value>) -> Result<Outcome, ToolError> {
        let mut args = Args::new(arguments, self.arguments);
        let done = match function {
            NAME => self.edit(&mut args),
            READ => read::read(&self.root, &mut args),
            other => return Err(ToolError::NoFunction { tool: NAME, function: other.to_owned() }),
        };
        args.note_unknown(if function == READ { &READ_ARGUMENTS } else { &EDIT_ARGUMENTS });
        Ok(super::finished(done, args.notes))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Write,
    Append,
    Replace,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::Write => "write",
            Mode::Append => "append",
            Mode::Replace => "replace",
        }
    }
}

impl EditSession {
    fn edit(&mut self, args: &mut Args<'_>) -> Result<Outcome, Refusal> {
        let mode = mode(args.required_text("mode")?)?;
        let path = args.required_text("path")?;
        let content = args.required_text("content")?;
        let (line, find) = (args.integer("line")?, args.text("find")?);
        if path.is_empty() {
            return Err(args.wrong_value("path", "is empty"));
        }
        if mode == Mode::Replace && line.is_none() && find.unwrap_or_default().is_empty() {
            return Err(Refusal::new(
                Kind::ArgsInvalid,
                "replace needs line, the number of the line to rewrite, or find, the exact text to replace; nothing changed",
            )
            .with_note(Note::NoAnchor));
        }
        if mode == Mode::Replace && line.is_some() && find.is_some_and(str::is_empty) {
            args.notes.push(Note::EmptyAnchor);
        }
        // Where the path leads is looked up for the rating only; confinement is judged after approval (A21).
        let resolved = confine::canonical(&self.root, path).ok();
        self.approvals.ask(mode.name(), path, resolved.as_deref())?;
        let place = self.confined(path)?;
        let before = existing(path, &place)?;
        let done = match mode {
            Mode::Replace => replace_in(path, &place, before.as_ref(), Intent { content, line, find })?,
            Mode::Write => write_whole(path, &place, before.as_ref(), content)?,
            Mode::Append => append(path, &place, before.as_ref(), content)?,
        };
        let write = Write::of(path, mode.name(), before.map(|metadata| metadata.len()), done.size);
        Ok(Outcome::done(done.text, done.notes, vec![write]))
    }

    fn confined(&self, path: &str) -> Result<PathBuf, Refusal> {
        let place = confined(&self.root, path, "write")?;
        if self.home.as_ref().is_some_and(|home| place.starts_with(home)) {
            return Err(Refusal::new(
                Kind::PathDenied,
                format!("cannot write {path}: it is in wisp's own home, which edits never change"),
            ));
        }
        Ok(place)
    }
}

/// What one mode did.
struct Done {
    text: String,
    notes: Vec<Note>,
    /// Bytes of the file afterwards.
    size: u64,
}

fn mode(word: &str) -> Result<Mode, Refusal> {
    match word.trim().to_lowercase().as_str() {
        "write" => Ok(Mode::Write),
        "append" => Ok(Mode::Append),
        "replace" => Ok(Mode::Replace),
        _ => Err(Refusal::new(
            Kind::ArgsInvalid,
            format!(
                "unknown mode \"{}\": use write, append, or replace; nothing changed",
                words::excerpt(word.as_bytes())
            ),
        )
        .with_note(Note::ArgumentValue)),
    }
}

/// The canonical path under the root, or a refusal. A path that no file system takes is a wrong argument.
fn confined(root: &Path, path: &str, verb: &str) -> Result<PathBuf, Refusal> {
    match confine::confine(root, path) {
        Ok(confined) => Ok(confined.canonical),
        Err(PathFault::Unusable) => Err(Refusal::new(
            Kind::ArgsInvalid,
            format!("cannot {verb} {}: not a path that a file can have", words::excerpt(path.as_bytes())),
        )
        .with_note(Note::ArgumentValue)),
        Err(PathFault::Outside) => Err(Refusal::new(
            Kind::PathDenied,
            // The real directory is not named: a conversation must not depend on where the workspace lies.
            format!("cannot {verb} {path}: outside the writable directories (the workspace)"),
        )),
        Err(PathFault::LinkLoop) => {
            Err(Refusal::new(Kind::PathDenied, format!("cannot {verb} {path}: its symbolic links lead nowhere")))
        }
        Err(PathFault::Io(error)) => Err(io_fault(verb, path, &error)),
    }
}

fn io_fault(verb: &str, path: &str, error: &io::Error) -> Refusal {
    // The kind's own words: the full text of an error can hold the real path.
    Refusal::new(Kind::Io, format!("cannot {verb} {path}: {}", error.kind()))
}

/// What is at the place: a regular file, or nothing in a directory that exists.
fn existing(path: &str, place: &Path) -> Result<Option<Metadata>, Refusal> {
    match fs::symlink_metadata(place) {
        Ok(metadata) if metadata.is_dir() => {
            Err(Refusal::new(Kind::IsDirectory, format!("cannot write {path}: it is a directory; nothing changed")))
        }
        Ok(metadata) if metadata.is_file() => Ok(Some(metadata)),
        Ok(_) => Err(Refusal::new(
            Kind::NotRegular,
            format!("cannot write {path}: it is not a regular file; nothing changed"),
        )),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            let parent = place.parent().is_some_and(Path::is_dir);
            if parent {
                Ok(None)
            } else {
                Err(Refusal::new(
                    Kind::NoParent,
                    format!(
                        "cannot write {path}: its directory does not exist, and edit_file never creates directories"
                    ),
                ))
            }
        }
        Err(error) => Err(io_fault("write", path, &error)),
    }
}

fn replace_in(path: &str, place: &Path, before: Option<&Metadata>, intent: Intent<'_>) -> Result<Done, Refusal> {
    let Some(metadata) = before else {
        return Err(Refusal::new(Kind::Missing, format!("cannot edit {path}: there is no such file; nothing changed")));
    };
    if metadata.len() > MAX_REPLACE {
        return Err(Refusal::new(
            Kind::TooLarge,
            format!(
                "{path} has {} bytes, and replace edits files of at most {MAX_REPLACE}; nothing changed",
                metadata.len()
            ),
        ));
    }
    let bytes = fs::read(place).map_err(|error| io_fault("read", path, &error))?;
    replace::check_text(path, &bytes)?;
    let edited = replace::replace(path, &bytes, intent)?;
    write::atomic(place, &edited.bytes).map_err(|error| io_fault("write", path, &error))?;
    Ok(Done { text: words::replaced(path, &edited, intent.find), size: edited.bytes.len() as u64, notes: edited.notes })
}

fn write_whole(path: &str, place: &Path, before: Option<&Metadata>, content: &str) -> Result<Done, Refusal> {
    write::atomic(place, content.as_bytes()).map_err(|error| io_fault("write", path, &error))?;
    let verb = if before.is_some() { "wrote" } else { "created" };
    Ok(Done {
        text: format!("{verb} {path}; now {} bytes", content.len()),
        notes: if before.is_some() { vec![Note::WholeFile] } else { Vec::new() },
        size: content.len() as u64,
    })
}

fn append(path: &str, place: &Path, before: Option<&Metadata>, content: &str) -> Result<Done, Refusal> {
    let mut bytes = match before {
        // Copied, not looked at.
        Some(_) => fs::read(place).map_err(|error| io_fault("read", path, &error))?,
        None => Vec::new(),
    };
    bytes.extend_from_slice(content.as_bytes());
    write::atomic(place, &bytes).map_err(|error| io_fault("write", path, &error))?;
    Ok(Done {
        text: format!("appended to {path}; now {} bytes", bytes.len()),
        notes: Vec::new(),
        size: bytes.len() as u64,
    })
}
