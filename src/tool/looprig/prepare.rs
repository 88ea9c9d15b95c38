//! Preparing a call: arguments decoded, the target resolved once, the permissions it needs named.

use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use super::{EDIT, Kind, READ, Refusal, shown};
use crate::tool::Note;
use crate::tool::args::Args;
use crate::workspace::{PathFault, confine};

/// What a call asks to be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Permission {
    #[serde(rename = "filesystem.read")]
    Read,
    #[serde(rename = "filesystem.write")]
    Write,
}

impl Permission {
    pub fn name(self) -> &'static str {
        match self {
            Permission::Read => "filesystem.read",
            Permission::Write => "filesystem.write",
        }
    }
}

/// One permission on one canonical path. A contained path needs no grant: its grant pair is empty, and the tool keeps
/// to the resolved path itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    pub permission: Permission,
    pub scope: PathBuf,
    pub needs_grant: bool,
}

/// Where a call leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Absolute, no link in it: the scope of requirements, the key of observations and of serialisation.
    pub(super) canonical: PathBuf,
    /// The name on disk, whose last component may be a link.
    pub(super) lexical: PathBuf,
    /// It lies under the root.
    pub(super) contained: bool,
}

/// What is to be done with the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Edit { old: String, new: String, all: bool },
    Read { start: usize, end: Option<usize> },
    Write { content: String },
}

/// A call that may run: what was decoded and resolved is not looked at again, except to prove that it still holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    pub requirements: Vec<Requirement>,
    /// The path as the model wrote it.
    pub(super) display: String,
    pub(super) place: Place,
    pub(super) action: Action,
}

impl Prepared {
    /// The canonical path that the call may write: two calls with the same one are never to run at once.
    pub fn write_target(&self) -> Option<&Path> {
        match self.action {
            Action::Read { .. } => None,
            Action::Edit { .. } | Action::Write { .. } => Some(&self.place.canonical),
        }
    }
}

/// Prepares a call of one of the three functions.
///
/// # Errors
/// A refusal: wrong arguments, or a path that leads outside.
pub(super) fn prepare(root: &Path, host: bool, function: &str, args: &mut Args<'_>) -> Result<Prepared, Refusal> {
    let display = args.required_text("path")?.to_owned();
    let action = match function {
        EDIT => {
            let (old, new) = (args.required_text("old")?.to_owned(), args.required_text("new")?.to_owned());
            Action::Edit { old, new, all: args.flag("replace_all")? }
        }
        READ => {
            let start = args.positive("start_line")?;
            let end = args.positive("end_line")?;
            if let (Some(first), Some(last)) = (start, end)
                && last < first
            {
                return Err(args.wrong_value("end_line", format!("is {last}, before start_line {first}")));
            }
            Action::Read { start: start.unwrap_or(1), end }
        }
        _ => Action::Write { content: args.required_text("content")?.to_owned() },
    };
    if display.is_empty() {
        return Err(args.wrong_value("path", "is empty"));
    }
    if matches!(&action, Action::Edit { old, .. } if old.is_empty()) {
        return Err(args
            .wrong_value("old", "is empty: it must be the exact text to replace")
            .with_note(Note::EmptyAnchor));
    }
    let place = resolve(root, &display, host)?;
    let require =
        |permission| Requirement { permission, scope: place.canonical.clone(), needs_grant: !place.contained };
    let requirements = match &action {
        Action::Read { .. } => vec![require(Permission::Read)],
        // The editor reads before it writes, so a file of the host needs both.
        Action::Edit { .. } if !place.contained => vec![require(Permission::Write), require(Permission::Read)],
        Action::Edit { .. } | Action::Write { .. } => vec![require(Permission::Write)],
    };
    Ok(Prepared { requirements, display, place, action })
}

/// Resolves a path as it was given (B10, B12). An absolute one counts from the root, unless it already lies under it,
/// or leads to a file of the host and such are allowed.
pub(super) fn resolve(root: &Path, display: &str, host: bool) -> Result<Place, Refusal> {
    let given = Path::new(display);
    let under_root = |path: &Path| path.starts_with(root);
    let lexical = match given.is_absolute() {
        true if under_root(&cleaned(given)) || host => cleaned(given),
        true => cleaned(&root.join(given.strip_prefix("/").unwrap_or(given))),
        false => cleaned(&root.join(given)),
    };
    let canonical = lexical
        .to_str()
        .ok_or(PathFault::Unusable)
        .and_then(|lexical| confine::canonical(root, lexical))
        .map_err(|fault| refused(display, &fault))?;
    let contained = under_root(&canonical);
    // A link under the root that leads outside is an escape, whatever the host's paths may be.
    if !contained && (!host || !given.is_absolute() || under_root(&lexical)) {
        return Err(refused(display, &PathFault::Outside));
    }
    Ok(Place { canonical, lexical, contained })
}

fn refused(display: &str, fault: &PathFault) -> Refusal {
    let display = shown(display);
    match fault {
        PathFault::Unusable => {
            Refusal::new(Kind::ArgsInvalid, format!("{display} is not a path that a file can have; nothing changed"))
                .with_note(Note::ArgumentValue)
        }
        PathFault::Outside => {
            Refusal::new(Kind::PathDenied, format!("{display} is outside the workspace; nothing changed"))
        }
        PathFault::LinkLoop => {
            Refusal::new(Kind::PathDenied, format!("the symbolic links of {display} lead nowhere; nothing changed"))
        }
        PathFault::Io(error) => {
            Refusal::new(Kind::Io, format!("{display} cannot be resolved: {}; nothing changed", error.kind()))
        }
    }
}

/// The path without `.` and `..`, by its letters alone.
fn cleaned(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    clean
}
