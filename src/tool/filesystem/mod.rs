//! `filesystem_write` and `filesystem_read`: one tool with nine actions on files and directories.
//!
//! Rules C1 to C16 and decisions CQ1 to CQ26 of the tool catalogue, after the seed document. The edits are pure, in
//! [`replace`] and [`line_ops`].

mod closest;
mod express;
pub mod line_ops;
mod manage;
mod read;
pub mod replace;
mod roots;
mod show;

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::line_ops::Operation;
use self::roots::{Roots, found, names_directory, no_directory};
use self::show::{Changed, lines_in_words};
use super::args::{Args, Strictness};
use super::express::planned;
use super::{
    EditTool, Kind, Note, Offered, Outcome, Planned, Refusal, Session, ToolError, Write, function_from, io_fault,
};
use crate::case::{Target, Tree};
use crate::text::without_bom;
use crate::workspace::write;

const NAME: &str = "filesystem_write";
const READ: &str = "filesystem_read";
/// CQ18: the largest file that `edit`, `edit_lines` and `insert` take, in bytes.
pub const MAX_EDIT: u64 = 1 << 20;
/// Characters of a path or text in an answer.
const EXCERPT: usize = 200;

/// The tool, as the registry holds it.
#[derive(Debug)]
pub struct Filesystem;

/// Settings of a session.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    #[serde(default)]
    arguments: Strictness,
    user_id: Option<String>,
    session_dir: Option<String>,
}

impl EditTool for Filesystem {
    fn name(&self) -> &'static str {
        NAME
    }

    fn functions(&self) -> Vec<Offered> {
        vec![
            Offered { function: function_from(include_str!("filesystem_write.json")), edits: true },
            Offered { function: function_from(include_str!("filesystem_read.json")), edits: false },
        ]
    }

    fn rules(&self) -> &'static str {
        include_str!("rules.md")
    }

    fn open(&self, root: &Path, options: &Value) -> Result<Box<dyn Session>, ToolError> {
        let options: Options = super::options(NAME, options)?;
        let roots = Roots::new(root, options.user_id.as_deref(), options.session_dir.as_deref())
            .map_err(|reason| ToolError::Options { tool: NAME, reason })?;
        Ok(Box::new(FilesystemSession { roots, arguments: options.arguments }))
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

/// One conversation.
#[derive(Debug)]
struct FilesystemSession {
    roots: Roots,
    arguments: Strictness,
}

impl Session for FilesystemSession {
    fn call(&mut self, function: &str, arguments: &Map<String, Value>) -> Result<Outcome, ToolError> {
        let mut args = Args::new(arguments, self.arguments);
        let done = match function {
            NAME => self.write(&mut args),
            READ => {
                args.note_unknown(&["path", "start", "end"]);
                read::read(&self.roots, &mut args)
            }
            other => return Err(ToolError::NoFunction { tool: NAME, function: other.to_owned() }),
        };
        Ok(super::finished(done, args.notes))
    }
}

/// What the tool does, and the arguments it takes besides `action` and `path`.
const ACTIONS: [(&str, &[&str]); 9] = [
    ("write", &["content", "force"]),
    ("append", &["content"]),
    ("edit", &["old", "new", "replace_all"]),
    ("edit_lines", &["operations"]),
    ("insert", &["after", "content"]),
    ("mkdir", &[]),
    ("move", &["destination", "overwrite"]),
    ("copy", &["destination", "overwrite"]),
    ("delete", &["recursive"]),
];

impl FilesystemSession {
    fn write(&self, args: &mut Args<'_>) -> Result<Outcome, Refusal> {
        let given = args.required_text("action")?;
        let Some((action, takes)) = ACTIONS.iter().find(|(name, _)| *name == given) else {
            let names = ACTIONS.map(|(name, _)| name).join(", ");
            return Err(args.wrong_value("action", format!("is \"{}\", and must be one of {names}", shown(given))));
        };
        // One flat schema invites arguments of another action: they are ignored (CQ25).
        args.note_unknown(&[&["action", "path"], *takes].concat());
        let path = args.required_text("path")?;
        if path.is_empty() {
            return Err(args.wrong_value("path", "is empty"));
        }
        match *action {
            "write" => self.rewrite(args, path),
            "append" => self.append(args, path),
            "edit" => self.edit(args, path),
            "edit_lines" => self.edit_lines(args, path),
            "insert" => self.insert(args, path),
            "mkdir" => manage::make(&self.roots, path),
            "delete" => manage::delete(&self.roots, args, path),
            action => manage::transfer(&self.roots, args, action, path),
        }
    }

    fn edit(&self, args: &mut Args<'_>, path: &str) -> Result<Outcome, Refusal> {
        let (old, new) = (args.required_text("old")?, args.required_text("new")?);
        let all = args.flag("replace_all")?;
        replace::check(old, new)?;
        let (place, before) = self.text(path)?;
        let edited = replace::replace(&shown(path), &before, old, new, all)?;
        args.note(edited.notes);
        let places = if edited.count == 1 { "1 place".to_owned() } else { format!("{} places", edited.count) };
        put(path, "edit", &place, &before, edited.bytes, &edited.changed, &format!("replaced in {places}"))
    }

    fn edit_lines(&self, args: &mut Args<'_>, path: &str) -> Result<Outcome, Refusal> {
        let Some(list) = args.objects("operations")? else { return Err(args.missing("operations")) };
        if list.is_empty() {
            return Err(args.wrong_value("operations", "is empty, and must hold one or more operations"));
        }
        let mut operations = Vec::with_capacity(list.len());
        for mut each in list {
            operations.push(operation(&mut each)?);
            args.note(each.notes);
        }
        let done =
            if operations.len() == 1 { "1 operation".to_owned() } else { format!("{} operations", operations.len()) };
        self.lines(path, "edit_lines", &operations, &done)
    }

    fn insert(&self, args: &mut Args<'_>, path: &str) -> Result<Outcome, Refusal> {
        let operation =
            Operation::Insert { after: args.required_integer("after")?, content: args.required_text("content")? };
        self.lines(path, "insert", &[operation], "inserted")
    }

    fn lines(&self, path: &str, mode: &str, operations: &[Operation<'_>], done: &str) -> Result<Outcome, Refusal> {
        let (place, before) = self.text(path)?;
        let edited = line_ops::apply(&shown(path), &before, operations)?;
        put(path, mode, &place, &before, edited.bytes, &edited.changed, done)
    }

    /// The file that a text action works on (CQ18, CQ23).
    fn text(&self, given: &str) -> Result<(PathBuf, Vec<u8>), Refusal> {
        let (place, size) = self.file(given)?;
        let path = shown(given);
        let Some(size) = size else {
            return Err(Refusal::new(Kind::Missing, format!("{path}: there is no such file; use write to create one")));
        };
        if size > MAX_EDIT {
            let message = format!("{path} has {size} bytes, and at most {MAX_EDIT} can be edited; nothing changed");
            return Err(Refusal::new(Kind::TooLarge, message));
        }
        let bytes = fs::read(&place).map_err(|error| io_fault(&path, &error))?;
        if memchr::memchr(0, &bytes).is_some() {
            return Err(Refusal::new(
                Kind::Binary,
                format!("{path} is a binary file (it holds a NUL byte); nothing changed"),
            ));
        }
        Ok((place, bytes))
    }

    /// Where a file is or would be, and its size if it is there.
    fn file(&self, given: &str) -> Result<(PathBuf, Option<u64>), Refusal> {
        let place = self.roots.target(given)?;
        let path = shown(given);
        match found(&path, &place)? {
            Some(metadata) if metadata.is_dir() => {
                Err(Refusal::new(Kind::IsDirectory, format!("{path} is a directory; nothing changed")))
            }
            _ if names_directory(given) => Err(no_directory(&path)),
            Some(metadata) if metadata.is_file() => Ok((place, Some(metadata.len()))),
            Some(_) => Err(Refusal::new(Kind::NotRegular, format!("{path} is not a regular file; nothing changed"))),
            None => Ok((place, None)),
        }
    }

    fn rewrite(&self, args: &mut Args<'_>, given: &str) -> Result<Outcome, Refusal> {
        let content = args.required_text("content")?;
        let force = args.flag("force")?;
        let (place, size) = self.file(given)?;
        let path = shown(given);
        let new = replace::count_lines(content.as_bytes());
        if size.is_none() {
            write::with_parents(&place, content.as_bytes()).map_err(|error| io_fault(&path, &error))?;
            let text = format!("created {path}: {}, {} bytes", lines_in_words(new), content.len());
            return Ok(Outcome::done(text, Vec::new(), vec![Write::of(given, "write", None, content.len() as u64)]));
        }
        if content.is_empty() && !force {
            return Err(Refusal::new(
                Kind::NeedsForce,
                format!("content is empty, and {path} exists: pass force: true to empty it; nothing changed"),
            ));
        }
        let before = fs::read(&place).map_err(|error| io_fault(&path, &error))?;
        write::atomic(&place, content.as_bytes()).map_err(|error| io_fault(&path, &error))?;
        let old = replace::count_lines(&before);
        let mut text = format!("wrote {path}: it had {}, and has {new} now", lines_in_words(old));
        if new * 2 < old {
            text.push_str(". Warning: fewer than half of the lines are left; the content may have been truncated");
        }
        Ok(Outcome::done(text, vec![Note::WholeFile], vec![Write::of(given, "write", size, content.len() as u64)]))
    }

    fn append(&self, args: &mut Args<'_>, given: &str) -> Result<Outcome, Refusal> {
        let content = args.required_text("content")?;
        let (place, size) = self.file(given)?;
        let path = shown(given);
        let mut bytes = match size {
            Some(_) => fs::read(&place).map_err(|error| io_fault(&path, &error))?,
            None => Vec::new(),
        };
        bytes.extend_from_slice(content.as_bytes());
        write::with_parents(&place, &bytes).map_err(|error| io_fault(&path, &error))?;
        let lines = lines_in_words(replace::count_lines(&bytes));
        let text = format!("appended {} bytes to {path}: {lines} now", content.len());
        Ok(Outcome::done(text, Vec::new(), vec![Write::of(given, "append", size, bytes.len() as u64)]))
    }
}

fn operation<'a>(args: &mut Args<'a>) -> Result<Operation<'a>, Refusal> {
    let op = args.required_text("op")?;
    let span = |args: &mut Args<'a>| {
        let start = args.required_integer("start")?;
        let end = args.integer("end")?;
        if end.is_none() {
            args.note([Note::EndDefaulted]);
        }
        Ok((start, end.unwrap_or(start)))
    };
    match op {
        "replace" => {
            args.note_unknown(&["op", "start", "end", "content"]);
            let (start, end) = span(args)?;
            Ok(Operation::Replace { start, end, content: args.required_text("content")? })
        }
        "delete" => {
            args.note_unknown(&["op", "start", "end"]);
            let (start, end) = span(args)?;
            Ok(Operation::Delete { start, end })
        }
        "insert" => {
            args.note_unknown(&["op", "after", "content"]);
            Ok(Operation::Insert { after: args.required_integer("after")?, content: args.required_text("content")? })
        }
        other => Err(args.wrong_value("op", format!("is \"{}\", and must be replace, delete or insert", shown(other)))),
    }
}

/// Writes an edited file, and tells the changed lines.
fn put(
    given: &str,
    mode: &str,
    place: &Path,
    before: &[u8],
    after: Vec<u8>,
    changed: &[Changed],
    done: &str,
) -> Result<Outcome, Refusal> {
    let path = shown(given);
    write::atomic(place, &after).map_err(|error| io_fault(&path, &error))?;
    let text =
        format!("edited {path} ({done}); the changed lines now:\n{}", show::changed(without_bom(&after).0, changed));
    Ok(Outcome::done(text, Vec::new(), vec![Write::of(given, mode, Some(before.len() as u64), after.len() as u64)]))
}

/// A path or text as an answer shows it: its first line, cut.
fn shown(text: &str) -> String {
    crate::text::visible::excerpt(text, EXCERPT)
}
