//! Where a session may read and write: one root, or the directories of one user and one session (C15).

use std::fs::{self, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};

use super::{Kind, Refusal, shown};
use crate::tool::{Note, io_fault};
use crate::workspace::{PathFault, confine};

/// The directory that holds one directory a user.
const USERS: &str = "user_data";

/// The directories that a session may use.
#[derive(Clone, Debug)]
pub(super) struct Roots {
    base: PathBuf,
    /// Canonical; every path must lie under one of them.
    areas: Vec<PathBuf>,
    /// Where relative paths start.
    home: PathBuf,
    /// Beginnings of relative paths that count from the base.
    named: Vec<PathBuf>,
}

impl Roots {
    /// The whole root, or, for one user, their directory and the session's.
    ///
    /// # Errors
    /// A user or directory that cannot be one; the text says why.
    pub(super) fn new(root: &Path, user: Option<&str>, session: Option<&str>) -> Result<Roots, String> {
        let base = root.to_owned();
        let Some(user) = user else {
            return match session {
                Some(_) => Err("session_dir needs user_id: without users the whole root is open".to_owned()),
                None => Ok(Roots { areas: vec![base.clone()], home: base.clone(), base, named: Vec::new() }),
            };
        };
        let plain = matches!(Path::new(user).components().collect::<Vec<_>>()[..], [Component::Normal(_)]);
        if !plain || user.contains(['/', '\0']) {
            return Err(format!("user_id `{user}`: must be a plain name"));
        }
        let own = Path::new(USERS).join(user);
        if let Some(session) =
            session.filter(|session| Path::new(session).starts_with(USERS) && !Path::new(session).starts_with(&own))
        {
            return Err(format!("session_dir `{session}`: would open the directories of other users"));
        }
        let mut named = vec![own];
        named.extend(session.map(PathBuf::from));
        let mut areas = Vec::new();
        for directory in &named {
            let name = directory.to_string_lossy();
            let area = confine::confine(root, &name).map_err(|fault| format!("directory `{name}`: {fault}"))?.canonical;
            if area == *root || directory.is_absolute() {
                return Err(format!("directory `{name}`: must be one under the root, relative to it"));
            }
            areas.push(area);
        }
        Ok(Roots { home: areas[0].clone(), base, areas, named })
    }

    /// Where a path leads, every link resolved.
    ///
    /// # Errors
    /// `path_denied` outside, `args_invalid` for what no file system takes.
    pub(super) fn target(&self, given: &str) -> Result<PathBuf, Refusal> {
        self.within(given, confine::canonical(self.start(given), given))
    }

    /// Where a path leads, except that its last component is not followed: the node itself.
    ///
    /// # Errors
    /// As [`Roots::target`].
    pub(super) fn entry(&self, given: &str) -> Result<PathBuf, Refusal> {
        let path = Path::new(given);
        let (Some(name), false) = (path.file_name(), given.contains('\0')) else {
            return self.target(given);
        };
        let parent = path.parent().and_then(Path::to_str).filter(|parent| !parent.is_empty()).unwrap_or(".");
        let entry = confine::canonical(self.start(given), parent).map(|parent| parent.join(name));
        let unusable = entry.as_ref().is_ok_and(|entry| {
            fs::symlink_metadata(entry).is_err_and(|error| error.kind() == io::ErrorKind::InvalidFilename)
        });
        self.within(given, if unusable { Err(PathFault::Unusable) } else { entry })
    }

    /// The path is one of the roots, or holds one: never to be deleted, moved, copied or replaced (CQ26).
    pub(super) fn holds_root(&self, canonical: &Path) -> bool {
        self.areas.iter().any(|area| area.starts_with(canonical))
    }

    fn start(&self, given: &str) -> &Path {
        let path: PathBuf = Path::new(given).components().filter(|each| *each != Component::CurDir).collect();
        // Another user's directory is named from the base too, where it is denied.
        let named = !self.named.is_empty() && path.starts_with(USERS);
        if named || self.named.iter().any(|named| path.starts_with(named)) { &self.base } else { &self.home }
    }

    fn within(&self, given: &str, resolved: Result<PathBuf, PathFault>) -> Result<PathBuf, Refusal> {
        let path = shown(given);
        match resolved {
            Ok(canonical) if self.areas.iter().any(|area| canonical.starts_with(area)) => Ok(canonical),
            Ok(_) | Err(PathFault::Outside) => {
                Err(denied(&path, &format!("is outside the directories of this session{ADVICE}")))
            }
            Err(PathFault::LinkLoop) => Err(denied(&path, "has symbolic links that lead nowhere; nothing changed")),
            Err(PathFault::Unusable) => Err(Refusal::new(
                Kind::ArgsInvalid,
                format!("`{path}` is not a path that a file can have; nothing changed"),
            )
            .with_note(Note::ArgumentValue)),
            Err(PathFault::Io(error)) => Err(io_fault(&path, &error)),
        }
    }
}

const ADVICE: &str = "; nothing changed. Do not work around this by copying files: ask the user for them.";

/// The path can only be that of a directory.
pub(super) fn names_directory(given: &str) -> bool {
    given.ends_with('/') || given.ends_with("/.")
}

/// The refusal of a path that names a directory where a file is, or is to be.
pub(super) fn no_directory(path: &str) -> Refusal {
    Refusal::new(Kind::ArgsInvalid, format!("`{path}` names a directory, and must name a file; nothing changed"))
        .with_note(Note::ArgumentValue)
}

/// C15: the text begins with these words.
fn denied(path: &str, why: &str) -> Refusal {
    Refusal { kind: Kind::PathDenied, text: format!("Access denied: {path} {why}"), notes: Vec::new() }
}

/// The refusal of an action on a root itself.
pub(super) fn root_itself(path: &str, action: &str) -> Refusal {
    denied(&shown(path), &format!("is a root of this session, and cannot be the subject of {action}; nothing changed"))
}

/// What stands at a resolved place; `None` where nothing does. A file above it that should be a directory is `no_parent`.
pub(super) fn found(path: &str, place: &Path) -> Result<Option<Metadata>, Refusal> {
    match fs::symlink_metadata(place) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_fault(path, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn one_user_sees_their_own_and_the_sessions_directory() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().canonicalize().unwrap();
        for directory in ["user_data/ann", "user_data/bob", "sessions/s1"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        symlink("../bob", root.join("user_data/ann/spy")).unwrap();
        let roots = Roots::new(&root, Some("ann"), Some("sessions/s1")).unwrap();
        let at = |given: &str| roots.target(given).map_err(|refusal| (refusal.kind, refusal.text));
        assert_eq!(at("f"), Ok(root.join("user_data/ann/f")));
        assert_eq!(at("./user_data/ann/f"), Ok(root.join("user_data/ann/f")));
        assert_eq!(at("sessions/s1/f"), Ok(root.join("sessions/s1/f")));
        assert_eq!(at("sessions/s2/f"), Ok(root.join("user_data/ann/sessions/s2/f")));
        assert_eq!(at("user_data/bob/f").unwrap_err().0, Kind::PathDenied);
        assert_eq!(at(root.join("sessions/s1/f").to_str().unwrap()), Ok(root.join("sessions/s1/f")));
        for outside in ["../bob/f", "spy/f", "/etc/passwd", "../../x", root.join("x").to_str().unwrap()] {
            let (kind, text) = at(outside).unwrap_err();
            assert_eq!(kind, Kind::PathDenied, "{outside}");
            assert!(text.starts_with("Access denied"), "{text}");
        }
        assert_eq!(roots.entry("spy").unwrap(), root.join("user_data/ann/spy"));
        assert!(roots.holds_root(&root.join("sessions")) && roots.holds_root(&root.join("user_data/ann")));
        assert!(!roots.holds_root(&root.join("user_data/ann/f")));
    }

    #[test]
    fn settings_that_cannot_be_are_refused() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().canonicalize().unwrap();
        for user in ["", "..", "a/b", "."] {
            assert!(Roots::new(&root, Some(user), None).is_err(), "{user}");
        }
        for session in ["", "..", "/tmp", "."] {
            assert!(Roots::new(&root, Some("ann"), Some(session)).is_err(), "{session}");
        }
        assert!(Roots::new(&root, None, Some("s")).is_err());
        assert!(Roots::new(&root, Some("ann"), Some("user_data/bob")).is_err());
        assert!(Roots::new(&root, Some("ann"), Some("user_data/ann/s")).is_ok());
    }
}
