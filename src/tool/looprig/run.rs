//! Running a prepared call: the resolution proven again, then freshness, anchor, write.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use sha2::{Digest, Sha256};

use super::prepare::{self, Action, Permission, Prepared};
use super::{Kind, MAX_EDIT, Options, Outcome, READ_CAP, Refusal, Strictness, preview, replace, shown};
use crate::text::{LineModel, lines};
use crate::tool::args::Args;
use crate::tool::{Note, Write, io_fault};
use crate::workspace::write;

type Hash = [u8; 32];

/// One conversation with the three functions.
#[derive(Debug)]
pub struct LooprigSession {
    root: PathBuf,
    arguments: Strictness,
    read_cap: u64,
    host_writes: bool,
    deny: Vec<Permission>,
    /// What the session has seen of a file, by canonical path: the hash of all its bytes.
    observed: HashMap<PathBuf, Hash>,
    /// The anchor of the last edit that was refused as stale, for the record.
    refused: Option<(PathBuf, String)>,
}

/// What is at the name on disk, links not followed.
enum Found {
    Absent,
    Irregular,
    Regular { size: u64 },
}

impl LooprigSession {
    pub(super) fn new(root: &Path, options: Options) -> Self {
        LooprigSession {
            root: root.to_owned(),
            arguments: options.arguments,
            read_cap: options.read_cap.unwrap_or(READ_CAP),
            host_writes: options.host_writes,
            deny: options.deny,
            observed: HashMap::new(),
            refused: None,
        }
    }

    pub(super) fn strictness(&self) -> Strictness {
        self.arguments
    }

    /// Decodes a call and resolves its target; touches no file.
    ///
    /// # Errors
    /// A refusal: wrong arguments, or a path that leads outside.
    pub fn prepare(&self, function: &str, args: &mut Args<'_>) -> Result<Prepared, Refusal> {
        prepare::prepare(&self.root, self.host_writes, function, args)
    }

    /// Runs a prepared call.
    ///
    /// # Errors
    /// A refusal; nothing has changed.
    pub fn run(&mut self, prepared: &Prepared) -> Result<Outcome, Refusal> {
        self.permitted(prepared)?;
        let now = prepare::resolve(&self.root, &prepared.display, self.host_writes)?;
        if now != prepared.place {
            let display = shown(&prepared.display);
            return Err(Refusal::new(
                Kind::PathDenied,
                format!("{display} leads elsewhere than when the call was prepared; nothing changed"),
            ));
        }
        match &prepared.action {
            Action::Edit { old, new, all } => self.edit(prepared, old, new, *all),
            Action::Read { start, end } => self.read(prepared, *start, *end),
            Action::Write { content } => self.write(prepared, content),
        }
    }

    fn permitted(&self, prepared: &Prepared) -> Result<(), Refusal> {
        let denied = prepared.requirements.iter().find(|each| each.needs_grant && self.deny.contains(&each.permission));
        match denied {
            None => Ok(()),
            Some(requirement) => Err(Refusal::new(
                Kind::Approval,
                format!(
                    "permission denied: {} on {}; nothing changed",
                    requirement.permission.name(),
                    shown(&prepared.display)
                ),
            )),
        }
    }

    fn edit(&mut self, prepared: &Prepared, old: &str, new: &str, all: bool) -> Result<Outcome, Refusal> {
        let (display, place) = (&prepared.display, &prepared.place);
        let path = shown(display);
        let size = match found(&place.lexical, &path)? {
            Found::Absent => {
                return Err(Refusal::new(Kind::Missing, format!("{path}: there is no such file; nothing changed")));
            }
            Found::Irregular => return Err(self.irregular(prepared)),
            Found::Regular { size } => size,
        };
        if size > MAX_EDIT {
            return Err(Refusal::new(
                Kind::TooLarge,
                format!("{path} has {size} bytes, and EditFile edits files of at most {MAX_EDIT}; nothing changed"),
            ));
        }
        let before = fs::read(&place.lexical).map_err(|error| io_fault(&path, &error))?;
        if place.contained {
            let again = self.refused.take().is_some_and(|(canonical, anchor)| {
                canonical == place.canonical && anchor == old && !self.observed.contains_key(&place.canonical)
            });
            self.fresh(prepared, &before).map_err(|refusal| {
                self.refused = Some((place.canonical.clone(), old.to_owned()));
                if again { refusal.with_note(Note::NoReread) } else { refusal }
            })?;
        }
        let after = replace::replace(&path, &before, old, new, all)?;
        let mut writes = Vec::new();
        if after != before {
            write::atomic(&place.lexical, &after).map_err(|error| io_fault(&path, &error))?;
            self.observe(prepared, &after);
            writes.push(Write::of(display, "edit", Some(size), after.len() as u64));
        }
        Ok(Outcome::done(preview::edited(&path, &before, &after), Vec::new(), writes))
    }

    fn write(&mut self, prepared: &Prepared, content: &str) -> Result<Outcome, Refusal> {
        let (display, place) = (&prepared.display, &prepared.place);
        let path = shown(display);
        let bytes = content.as_bytes();
        let before = match found(&place.lexical, &path)? {
            Found::Absent => None,
            Found::Irregular => return Err(self.irregular(prepared)),
            Found::Regular { size } => Some(size),
        };
        if before.is_some() && place.contained {
            // Without an observation the file need not be read at all.
            let current = match self.observed.contains_key(&place.canonical) {
                true => fs::read(&place.lexical).map_err(|error| io_fault(&path, &error))?,
                false => Vec::new(),
            };
            self.fresh(prepared, &current)?;
        }
        write::with_parents(&place.lexical, bytes).map_err(|error| io_fault(&path, &error))?;
        self.observe(prepared, bytes);
        let notes = if before.is_some() { vec![Note::WholeFile] } else { Vec::new() };
        let write = Write::of(display, "write", before, bytes.len() as u64);
        Ok(Outcome::done(format!("wrote {path} ({} bytes)", bytes.len()), notes, vec![write]))
    }

    fn read(&mut self, prepared: &Prepared, start: usize, end: Option<usize>) -> Result<Outcome, Refusal> {
        let place = &prepared.place;
        let path = shown(&prepared.display);
        match found(&place.lexical, &path)? {
            Found::Absent => {
                self.observed.remove(&place.canonical);
                return Err(Refusal::new(Kind::Missing, format!("{path}: there is no such file")));
            }
            Found::Irregular => return Err(irregular_text(&path)),
            Found::Regular { .. } => {}
        }
        let mut bytes = Vec::new();
        File::open(&place.lexical)
            .and_then(|file| file.take(self.read_cap.saturating_add(1)).read_to_end(&mut bytes))
            .map_err(|error| io_fault(&path, &error))?;
        let cap = usize::try_from(self.read_cap).unwrap_or(usize::MAX);
        let cut = bytes.len() > cap;
        if !cut {
            self.observe(prepared, &bytes);
        }
        bytes.truncate(cap);
        let mut text = numbered(&bytes, start, end);
        if cut {
            text.push_str(&format!("\n[truncated: the file exceeds the read cap of {cap} bytes]"));
        }
        Ok(Outcome::done(text, Vec::new(), Vec::new()))
    }

    /// B5, B7: the bytes must be those that the session has seen. One text for both ways to fail.
    fn fresh(&mut self, prepared: &Prepared, current: &[u8]) -> Result<(), Refusal> {
        let kind = match self.observed.get(&prepared.place.canonical) {
            Some(hash) if *hash == digest(current) => return Ok(()),
            Some(_) => Kind::Stale,
            None => Kind::NotRead,
        };
        self.observed.remove(&prepared.place.canonical);
        Err(Refusal::new(
            kind,
            format!(
                "{} has not been read completely, or has changed since it was read: read it again with ReadFile and \
                 retry; nothing changed",
                shown(&prepared.display)
            ),
        ))
    }

    fn observe(&mut self, prepared: &Prepared, bytes: &[u8]) {
        // A read of the host never authorises a write to it, and the other way round.
        if prepared.place.contained {
            self.observed.insert(prepared.place.canonical.clone(), digest(bytes));
        }
    }

    fn irregular(&mut self, prepared: &Prepared) -> Refusal {
        self.observed.remove(&prepared.place.canonical);
        irregular_text(&shown(&prepared.display))
    }
}

/// Does not say to read again: a read is refused as well (B9).
fn irregular_text(path: &str) -> Refusal {
    Refusal::new(
        Kind::NotRegular,
        format!("{path} is not a regular file (a link, a directory or a device); nothing changed"),
    )
}

fn found(place: &Path, path: &str) -> Result<Found, Refusal> {
    match fs::symlink_metadata(place) {
        Ok(metadata) if metadata.is_file() => Ok(Found::Regular { size: metadata.len() }),
        Ok(_) => Ok(Found::Irregular),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::Absent),
        Err(error) => Err(io_fault(path, &error)),
    }
}

/// `   1<TAB>text`, no end marker; lines end at `\n` and `\r\n`.
fn numbered(bytes: &[u8], start: usize, end: Option<usize>) -> String {
    let end = end.unwrap_or(usize::MAX);
    let rows: Vec<String> = (1..)
        .zip(lines(bytes, LineModel::Lm2))
        .skip_while(|(number, _)| *number < start)
        .take_while(|(number, _)| *number <= end)
        .map(|(number, line)| format!("{number:>4}\t{}", line.text.to_str_lossy()))
        .collect();
    rows.join("\n")
}

fn digest(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::looprig::{EDIT, READ, WRITE};
    use serde_json::{Map, Value, json};
    use std::os::unix::fs::symlink;

    struct Place {
        _base: tempfile::TempDir,
        root: PathBuf,
    }

    fn place() -> Place {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().canonicalize().unwrap().join("ws");
        fs::create_dir_all(root.join("d")).unwrap();
        fs::create_dir_all(root.join("e")).unwrap();
        fs::write(root.join("d/f"), "one").unwrap();
        fs::write(root.join("e/f"), "one").unwrap();
        Place { _base: base, root }
    }

    fn session(root: &Path, options: Value) -> LooprigSession {
        LooprigSession::new(root, serde_json::from_value(options).unwrap())
    }

    fn prepared(session: &LooprigSession, function: &str, arguments: Value) -> Result<Prepared, Kind> {
        let map: Map<String, Value> = arguments.as_object().unwrap().clone();
        session.prepare(function, &mut Args::new(&map, Strictness::Strict)).map_err(|refusal| refusal.kind)
    }

    fn needs(prepared: &Prepared) -> Vec<(&'static str, bool)> {
        prepared.requirements.iter().map(|each| (each.permission.name(), each.needs_grant)).collect()
    }

    #[test]
    fn a_contained_edit_asks_for_one_write_and_aliases_have_one_target() {
        let place = place();
        let session = session(&place.root, json!({}));
        let edit = |path: &str| prepared(&session, EDIT, json!({ "path": path, "old": "a", "new": "b" }));
        let one = edit("d/f").unwrap();
        assert_eq!(needs(&one), [("filesystem.write", false)]);
        assert_eq!(one.requirements[0].scope, place.root.join("d/f"));
        assert_eq!(one.write_target(), Some(&*one.requirements[0].scope));
        for alias in ["d/../d/f", "/d/f", "./d//f", "e/../d/./f"] {
            assert_eq!(edit(alias).unwrap().write_target(), one.write_target(), "{alias}");
        }
        assert_ne!(edit("e/f").unwrap().write_target(), one.write_target());
        let read = prepared(&session, READ, json!({ "path": "d/f" })).unwrap();
        assert_eq!((needs(&read), read.write_target()), (vec![("filesystem.read", false)], None));
        assert_eq!(edit("../x"), Err(Kind::PathDenied));
    }

    #[test]
    fn a_host_edit_asks_for_the_pair() {
        let place = place();
        let session = session(&place.root, json!({ "host_writes": true }));
        let host = place.root.parent().unwrap().join("h");
        let edit = prepared(&session, EDIT, json!({ "path": host, "old": "a", "new": "b" })).unwrap();
        assert_eq!(needs(&edit), [("filesystem.write", true), ("filesystem.read", true)]);
        let write = prepared(&session, WRITE, json!({ "path": host, "content": "a" })).unwrap();
        assert_eq!(needs(&write), [("filesystem.write", true)]);
        let inside = prepared(&session, WRITE, json!({ "path": place.root.join("d/f"), "content": "a" })).unwrap();
        assert_eq!(needs(&inside), [("filesystem.write", false)]);
    }

    #[test]
    fn a_resolution_that_changed_since_preparing_is_refused() {
        let place = place();
        let mut session = session(&place.root, json!({}));
        let calls = [
            (EDIT, json!({ "path": "d/f", "old": "one", "new": "two" })),
            (WRITE, json!({ "path": "d/f", "content": "two" })),
            (READ, json!({ "path": "d/f" })),
        ];
        let all: Vec<Prepared> =
            calls.into_iter().map(|(function, call)| prepared(&session, function, call).unwrap()).collect();
        session.run(&all[2]).unwrap();
        fs::rename(place.root.join("d"), place.root.join("was")).unwrap();
        symlink("e", place.root.join("d")).unwrap();
        for each in &all {
            assert_eq!(session.run(each).unwrap_err().kind, Kind::PathDenied);
        }
        assert_eq!(fs::read(place.root.join("e/f")).unwrap(), b"one");
        // Back as it was: what was prepared still holds.
        fs::remove_file(place.root.join("d")).unwrap();
        fs::rename(place.root.join("was"), place.root.join("d")).unwrap();
        session.run(&all[0]).unwrap();
        assert_eq!(fs::read(place.root.join("d/f")).unwrap(), b"two");
    }

    #[test]
    fn the_same_anchor_again_without_a_read_is_noted() {
        let place = place();
        let mut session = session(&place.root, json!({}));
        let edit = prepared(&session, EDIT, json!({ "path": "d/f", "old": "one", "new": "two" })).unwrap();
        let first = session.run(&edit).unwrap_err();
        let second = session.run(&edit).unwrap_err();
        assert_eq!((first.text == second.text, first.notes), (true, vec![]));
        assert_eq!(second.notes, [Note::NoReread]);
    }
}
