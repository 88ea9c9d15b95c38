//! `mkdir`, `move`, `copy` and `delete` (C12 to C14, CQ19 to CQ22, CQ26).

use std::io;
use std::path::{Path, PathBuf};

use super::roots::{Roots, found, names_directory, no_directory, root_itself};
use super::{Kind, Outcome, Refusal, Write, io_fault, shown};
use crate::tool::args::Args;
use crate::workspace::nodes;

/// Files and directories that one copy makes at most.
const MAX_NODES: usize = 10_000;
/// Bytes that one copy makes at most.
const MAX_BYTES: u64 = 64 << 20;
/// Bytes of a path that a move or copy may lead to. A tree deeper than paths can be could not even be looked at.
const MAX_PATH: usize = 4000;

pub(super) fn make(roots: &Roots, given: &str) -> Result<Outcome, Refusal> {
    let place = roots.target(given)?;
    let path = shown(given);
    match found(&path, &place)? {
        Some(metadata) if metadata.is_dir() => {
            return Ok(Outcome::done(format!("{path} is there already"), vec![], vec![]));
        }
        Some(_) => {
            return Err(Refusal::new(Kind::Exists, format!("{path} exists and is no directory; nothing changed")));
        }
        None => {}
    }
    nodes::make_directories(&place).map_err(|error| io_fault(&path, &error))?;
    Ok(Outcome::done(format!("made the directory {path}"), Vec::new(), vec![Write::of(given, "mkdir", None, 0)]))
}

pub(super) fn delete(roots: &Roots, args: &mut Args<'_>, given: &str) -> Result<Outcome, Refusal> {
    let recursive = args.flag("recursive")?;
    let place = roots.entry(given)?;
    let path = shown(given);
    if roots.holds_root(&place) {
        return Err(root_itself(given, "delete"));
    }
    let Some(metadata) = found(&path, &place)? else { return Err(missing(&path)) };
    if metadata.is_file() && names_directory(given) {
        return Err(no_directory(&path));
    }
    let extent = nodes::extent(&place).map_err(|error| io_fault(&path, &error))?;
    if metadata.is_dir() && extent.nodes > 1 && !recursive {
        let inside = extent.nodes - 1;
        return Err(Refusal::new(
            Kind::NotEmpty,
            format!(
                "{path} is a directory that is not empty ({inside} inside): pass recursive: true to delete it; nothing changed"
            ),
        ));
    }
    nodes::remove(&place).map_err(|error| {
        Refusal::new(
            Kind::Io,
            format!("{path} could not be deleted whole, and a part of it may be gone: {}", error.kind()),
        )
    })?;
    Ok(Outcome::done(format!("deleted {path}"), Vec::new(), vec![Write::of(given, "delete", Some(extent.bytes), 0)]))
}

/// `move` or `copy`.
pub(super) fn transfer(roots: &Roots, args: &mut Args<'_>, action: &str, given: &str) -> Result<Outcome, Refusal> {
    let target = args.required_text("destination")?;
    let overwrite = args.flag("overwrite")?;
    if target.is_empty() {
        return Err(args.wrong_value("destination", "is empty"));
    }
    let moves = action == "move";
    let (from, to) = (place(roots, moves, given)?, place(roots, moves, target)?);
    let (path, destination) = (shown(given), shown(target));
    if let Some(root) = [(given, &from), (target, &to)].into_iter().find(|(_, place)| roots.holds_root(place)) {
        return Err(root_itself(root.0, action));
    }
    let Some(source) = found(&path, &from)? else { return Err(missing(&path)) };
    if source.is_file() && names_directory(given) {
        return Err(no_directory(&path));
    }
    if from == to || leads_to(roots, given) == leads_to(roots, target) {
        return Err(Refusal::new(Kind::NoChange, format!("{path} and {destination} are the same; nothing changed")));
    }
    if from.starts_with(&to) || to.starts_with(&from) {
        let why = format!("{path} and {destination} lie one inside the other");
        return Err(args.wrong_value("destination", format!("cannot be: {why}; name the new path in full")));
    }
    let existing = found(&destination, &to)?;
    if existing.is_some() && !overwrite {
        return Err(Refusal::new(
            Kind::Exists,
            format!(
                "{destination} exists: pass overwrite: true to replace it, or choose another destination; nothing changed"
            ),
        ));
    }
    if names_directory(target) && !source.is_dir() {
        let message = format!("names a directory, and {path} is a file; name the new path in full");
        return Err(args.wrong_value("destination", message));
    }
    let extent = within_limits(action, &path, &from, &to)?;
    let replaced = match &existing {
        Some(_) => Some(nodes::extent(&to).map_err(|error| io_fault(&destination, &error))?.bytes),
        None => None,
    };
    carry_out(moves, &from, &to).map_err(|error| io_fault(&destination, &error))?;
    let verb = if moves { "moved" } else { "copied" };
    let note = if existing.is_some() { ", replacing what was there" } else { "" };
    Ok(Outcome::done(
        format!("{verb} {path} to {destination}{note}"),
        Vec::new(),
        vec![Write::of(target, action, replaced, extent.bytes)],
    ))
}

/// A move acts on a link, a copy on what it leads to.
fn place(roots: &Roots, moves: bool, given: &str) -> Result<PathBuf, Refusal> {
    if moves { roots.entry(given) } else { roots.target(given) }
}

/// Where a path leads in the end; `None` where that is outside.
fn leads_to(roots: &Roots, given: &str) -> Result<PathBuf, PathBuf> {
    roots.target(given).map_err(|_| PathBuf::from(given))
}

fn within_limits(action: &str, path: &str, from: &Path, to: &Path) -> Result<nodes::Extent, Refusal> {
    let extent = nodes::extent(from).map_err(|error| io_fault(path, &error))?;
    if extent.special && action == "copy" {
        return Err(Refusal::new(
            Kind::NotRegular,
            format!("{path} is or holds something that is no file; nothing changed"),
        ));
    }
    if to.as_os_str().len() + extent.longest > MAX_PATH {
        return Err(Refusal::new(
            Kind::ArgsInvalid,
            format!("the {action} of {path} would make paths longer than {MAX_PATH} bytes; nothing changed"),
        ));
    }
    if action == "copy" && (extent.nodes > MAX_NODES || extent.bytes > MAX_BYTES) {
        return Err(Refusal::new(
            Kind::TooLarge,
            format!(
                "{path} holds {} files and directories, {} bytes: more than a copy takes; nothing changed",
                extent.nodes, extent.bytes
            ),
        ));
    }
    Ok(extent)
}

fn carry_out(moves: bool, from: &Path, to: &Path) -> io::Result<()> {
    let made = match to.parent() {
        Some(parent) => nodes::make_directories(parent)?,
        None => nodes::Made::default(),
    };
    let done = if moves { nodes::relocate(from, to) } else { nodes::copy(from, to) };
    done.inspect_err(|_| made.undo())
}

fn missing(path: &str) -> Refusal {
    Refusal::new(Kind::Missing, format!("{path}: there is no such file or directory; nothing changed"))
}
