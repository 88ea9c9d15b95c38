//! Confinement: which file a path given by a model really is, and whether it lies under the root.
//!
//! The check is made on the canonical path: every symbolic link resolved, also for a last component that does not
//! exist yet, so that neither `..`, nor a link, nor a sibling directory with the same prefix leads outside.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use thiserror::Error;

/// As many links as Linux follows in one path (`path_resolution(7)`).
const MAX_LINKS: usize = 40;

/// A path that was resolved and lies under the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confined {
    /// Absolute, no link in it; its last component may not exist.
    pub canonical: PathBuf,
}

#[derive(Debug, Error)]
pub enum PathFault {
    /// No file system takes such a path.
    #[error("not a usable path")]
    Unusable,
    #[error("outside the root")]
    Outside,
    #[error("too many symbolic links")]
    LinkLoop,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Resolves `given` (relative to `root`, or absolute) to its canonical path and checks that it lies under `root`, which
/// must be canonical itself. Touches nothing but directory entries.
///
/// # Errors
/// See [`PathFault`].
pub fn confine(root: &Path, given: &str) -> Result<Confined, PathFault> {
    let canonical = canonical(root, given)?;
    if given.ends_with('/') && !canonical.is_dir() && canonical.starts_with(root) {
        // Only a directory is named so.
        return Err(PathFault::Unusable);
    }
    if canonical.starts_with(root) { Ok(Confined { canonical }) } else { Err(PathFault::Outside) }
}

/// Resolves `given` against `root` without asking where it leads, except where the way there cannot be followed.
///
/// # Errors
/// See [`PathFault`]. What fails outside the root is [`PathFault::Outside`], whoever runs this and whatever they may see.
pub fn canonical(root: &Path, given: &str) -> Result<PathBuf, PathFault> {
    if given.is_empty() || given.contains('\0') {
        return Err(PathFault::Unusable);
    }
    let mut resolved = PathBuf::new();
    let mut ahead: VecDeque<OsString> = VecDeque::new();
    queue(&mut ahead, &root.join(given));
    let mut links = 0;
    while let Some(name) = ahead.pop_front() {
        if name == "/" {
            resolved = PathBuf::from("/");
            continue;
        }
        if name == ".." {
            resolved.pop();
            continue;
        }
        resolved.push(&name);
        let target = match fs::symlink_metadata(&resolved) {
            Ok(metadata) if metadata.file_type().is_symlink() => fs::read_link(&resolved)?,
            Ok(_) => continue,
            Err(error) => match error.kind() {
                // What does not exist has no links in it.
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => continue,
                _ if !resolved.starts_with(root) => return Err(PathFault::Outside),
                io::ErrorKind::InvalidFilename => return Err(PathFault::Unusable),
                _ => return Err(error.into()),
            },
        };
        links += 1;
        if links > MAX_LINKS {
            return Err(PathFault::LinkLoop);
        }
        resolved.pop();
        let rest = std::mem::take(&mut ahead);
        queue(&mut ahead, &target);
        ahead.extend(rest);
    }
    Ok(resolved)
}

fn queue(ahead: &mut VecDeque<OsString>, path: &Path) {
    for component in path.components() {
        match component {
            Component::RootDir => ahead.push_back("/".into()),
            Component::ParentDir => ahead.push_back("..".into()),
            Component::Normal(name) => ahead.push_back(name.to_owned()),
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_what_lies_under_the_root_is_taken() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let root = base.join("ws");
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::create_dir(base.join("ws-evil")).unwrap();
        symlink(&base, root.join("up")).unwrap();
        symlink("sub", root.join("in")).unwrap();
        symlink(base.join("new"), root.join("dangling-out")).unwrap();
        symlink("sub/new", root.join("dangling-in")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let at = |given: &str| confine(&root, given).map(|confined| confined.canonical);
        assert_eq!(at("f").unwrap(), root.join("f"));
        assert_eq!(at("in/../f").unwrap(), root.join("f"));
        assert_eq!(at("in/x").unwrap(), root.join("sub/x"));
        assert_eq!(at("dangling-in").unwrap(), root.join("sub/new"));
        assert_eq!(at("./sub/./x").unwrap(), root.join("sub/x"));
        assert_eq!(at(root.join("sub/x").to_str().unwrap()).unwrap(), root.join("sub/x"));
        for outside in ["../x", "../ws-evil/x", "up/x", "dangling-out", "sub/../../x", "/etc/passwd", "/"] {
            assert!(matches!(at(outside), Err(PathFault::Outside)), "{outside}");
        }
        assert!(matches!(at("loop/x"), Err(PathFault::LinkLoop)));
        assert!(matches!(at("a\0b"), Err(PathFault::Unusable)));
        assert!(matches!(at(""), Err(PathFault::Unusable)));
        assert!(matches!(at(&"n".repeat(300)), Err(PathFault::Unusable)));
    }
}
