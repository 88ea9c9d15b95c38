//! Whole nodes of a workspace: directories made, files and trees copied, moved and removed. What is replaced is put
//! aside first and comes back where the replacement fails.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use walkdir::WalkDir;

/// Directories that were made, outermost first.
#[derive(Debug, Default)]
pub struct Made(Vec<PathBuf>);

impl Made {
    /// Takes them away again, as far as they are still empty.
    pub fn undo(&self) {
        for directory in self.0.iter().rev() {
            let _ = fs::remove_dir(directory);
        }
    }
}

/// Makes a directory and those above it that are missing.
///
/// # Errors
/// Any error of the file system, also when a file is in the way; then nothing has changed.
pub fn make_directories(path: &Path) -> io::Result<Made> {
    let missing: Vec<&Path> = path.ancestors().take_while(|each| fs::symlink_metadata(each).is_err()).collect();
    let mut made = Made::default();
    for directory in missing.into_iter().rev() {
        if let Err(error) = fs::create_dir(directory) {
            made.undo();
            return Err(error);
        }
        made.0.push(directory.to_owned());
    }
    if path.is_dir() { Ok(made) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

/// What a node and all below it come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    pub nodes: usize,
    pub bytes: u64,
    /// Bytes of the longest path below, relative to the node.
    pub longest: usize,
    /// A node that is neither file, directory nor link.
    pub special: bool,
}

/// Looks at a node and all below it; links are not followed.
///
/// # Errors
/// Any error of the file system.
pub fn extent(path: &Path) -> io::Result<Extent> {
    let mut extent = Extent::default();
    for entry in walk(path) {
        let entry = entry?;
        let kind = entry.file_type();
        extent.nodes += 1;
        if kind.is_file() {
            extent.bytes += entry.metadata()?.len();
        }
        extent.special |= !(kind.is_file() || kind.is_dir() || kind.is_symlink());
        extent.longest = extent.longest.max(entry.path().as_os_str().len() - path.as_os_str().len());
    }
    Ok(extent)
}

/// Copies a file with its mode, a link as a link, or a directory with all below it, in place of what is at
/// `destination`. Directories above it must exist.
///
/// # Errors
/// Any error of the file system; then what was at `destination` is there again.
pub fn copy(source: &Path, destination: &Path) -> io::Result<()> {
    let temporary = beside(destination)?;
    copy_tree(source, &temporary).and_then(|()| replace(&temporary, destination)).inspect_err(|_| {
        let _ = remove(&temporary);
    })
}

/// Moves a node in place of what is at `destination`; a link is moved itself. Directories above it must exist.
///
/// # Errors
/// Any error of the file system; then both are as they were.
pub fn relocate(source: &Path, destination: &Path) -> io::Result<()> {
    let identity = |metadata: Metadata| (metadata.dev(), metadata.ino());
    let same = match (fs::symlink_metadata(source), fs::symlink_metadata(destination)) {
        (Ok(source), Ok(destination)) => identity(source) == identity(destination),
        _ => false,
    };
    // Two names of one file: renaming would do nothing and leave both.
    if same { fs::remove_file(source) } else { replace(source, destination) }
}

/// Removes a node and all below it; a link itself, never its target. Holds few files open, however deep the tree is.
///
/// # Errors
/// Any error of the file system. A part of a directory may be gone then.
pub fn remove(path: &Path) -> io::Result<()> {
    for entry in walk(path).contents_first(true) {
        let entry = entry?;
        if entry.file_type().is_dir() {
            fs::remove_dir(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// A node and all below it; links are not followed, the node itself included.
fn walk(path: &Path) -> WalkDir {
    WalkDir::new(path).follow_root_links(false)
}

fn copy_tree(source: &Path, destination: &Path) -> io::Result<()> {
    for entry in walk(source) {
        let entry = entry?;
        let below = entry.path().strip_prefix(source).map_err(io::Error::other)?;
        let target = if below.as_os_str().is_empty() { destination.to_owned() } else { destination.join(below) };
        let kind = entry.file_type();
        if kind.is_dir() {
            fs::create_dir(&target)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(entry.path())?, &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

/// Puts `source` at `destination`; what was there is set aside until it is done.
fn replace(source: &Path, destination: &Path) -> io::Result<()> {
    let directory = |path: &Path| fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    // One file replaces another in a single step; nothing else does.
    if fs::symlink_metadata(destination).is_err() || !(directory(source) || directory(destination)) {
        return fs::rename(source, destination);
    }
    let aside = beside(destination)?;
    fs::rename(destination, &aside)?;
    match fs::rename(source, destination) {
        Ok(()) => remove(&aside),
        Err(error) => {
            fs::rename(&aside, destination)?;
            Err(error)
        }
    }
}

/// A free hidden name in the same directory.
fn beside(path: &Path) -> io::Result<PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let parent = path.parent().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    Ok(parent.join(format!(".editgate-{}-{number}.aside", std::process::id())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::snapshot;

    #[test]
    fn directories_that_were_made_can_be_undone() {
        let base = tempfile::tempdir().unwrap();
        fs::write(base.path().join("f"), "").unwrap();
        let made = make_directories(&base.path().join("a/b/c")).unwrap();
        assert!(base.path().join("a/b/c").is_dir());
        made.undo();
        assert!(!base.path().join("a").exists());
        assert!(make_directories(&base.path().join("f/x")).is_err());
        assert!(make_directories(&base.path().join("f")).is_err());
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_is_itself_wherever_it_leads() {
        let base = tempfile::tempdir().unwrap();
        let at = |name: &str| base.path().join(name);
        fs::write(at("f"), "f").unwrap();
        for (name, target) in [("dangling", "nowhere"), ("loop", "loop"), ("out", "/usr"), ("file", "f")] {
            symlink(target, at(name)).unwrap();
            assert_eq!(extent(&at(name)).unwrap(), Extent { nodes: 1, ..Extent::default() }, "{name}");
            relocate(&at(name), &at("moved")).unwrap();
            copy(&at("moved"), &at("copied")).unwrap();
            assert_eq!(fs::read_link(at("copied")).unwrap(), Path::new(target));
            remove(&at("moved")).unwrap();
            remove(&at("copied")).unwrap();
        }
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_deep_tree_is_removed_whole() {
        let base = tempfile::tempdir().unwrap();
        let deep = base.path().join("a/".repeat(1500));
        make_directories(&deep).unwrap();
        fs::write(base.path().join("a/a/f"), "f").unwrap();
        remove(&base.path().join("a")).unwrap();
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
    }

    #[test]
    fn trees_are_copied_and_moved_whole() {
        let base = tempfile::tempdir().unwrap();
        let at = |name: &str| base.path().join(name);
        fs::create_dir_all(at("d/sub")).unwrap();
        fs::write(at("d/sub/x"), "x").unwrap();
        symlink("sub/x", at("d/link")).unwrap();
        fs::create_dir(at("e")).unwrap();
        fs::write(at("e/old"), "old").unwrap();
        copy(&at("d"), &at("e")).unwrap();
        assert_eq!(snapshot::take(&at("d")).unwrap(), snapshot::take(&at("e")).unwrap());
        assert_eq!(extent(&at("d")).unwrap(), Extent { nodes: 4, bytes: 1, longest: 6, special: false });
        fs::write(at("f"), "f").unwrap();
        relocate(&at("f"), &at("e")).unwrap();
        assert_eq!(fs::read(at("e")).unwrap(), b"f");
        relocate(&at("d"), &at("e")).unwrap();
        assert!(at("e/sub/x").is_file() && !at("d").exists());
        fs::hard_link(at("e/sub/x"), at("twin")).unwrap();
        relocate(&at("twin"), &at("e/sub/x")).unwrap();
        assert!(!at("twin").exists() && at("e/sub/x").exists());
        remove(&at("e")).unwrap();
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
    }
}
