//! Fresh private directories, one an attempt, and their end.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use tempfile::TempDir;

use super::{nodes, snapshot};
use crate::case::{Tree, WORKSPACE};

const PREFIX: &str = "editgate-";
const LOCK: &str = ".lock";

/// How many directories may wait for deletion: bounds the memory that finished workspaces hold on a memory file system.
const PENDING_DELETIONS: usize = 64;

/// All workspaces of a run. Dropping it, also while a panic unwinds, removes what is left of them.
#[derive(Debug)]
pub struct Workspaces {
    /// Held as long as the workspaces are in use, however the process ends.
    _lock: File,
    /// Removed when it is dropped.
    _base: TempDir,
    root: PathBuf,
    next: AtomicU64,
    janitor: Option<(SyncSender<PathBuf>, JoinHandle<()>)>,
}

impl Workspaces {
    /// Makes a private directory in `place`, or in memory where the system has a memory file system for all
    /// (`/dev/shm`), else in the directory for temporary files.
    ///
    /// # Errors
    /// When none can be made.
    pub fn create(place: Option<&Path>) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        let memory = Path::new("/dev/shm");
        let base = match place {
            Some(place) => builder.tempdir_in(place)?,
            // Creating and removing files on a disk can cost milliseconds each, in memory it costs microseconds.
            None if memory.is_dir() => builder.tempdir_in(memory).or_else(|_| builder.tempdir())?,
            None => builder.tempdir()?,
        };
        let root = base.path().canonicalize()?;
        let lock = hold(&root)?;
        if let Some(place) = root.parent() {
            sweep(place);
        }
        let (sender, receiver) = sync_channel::<PathBuf>(PENDING_DELETIONS);
        // Deletion is off the way of the conversations; what cannot be deleted here goes with the base.
        let thread = std::thread::Builder::new().name("workspaces".to_owned()).spawn(move || {
            for directory in receiver {
                let _ = nodes::remove(&directory);
            }
        })?;
        Ok(Workspaces { _lock: lock, _base: base, root, next: AtomicU64::new(0), janitor: Some((sender, thread)) })
    }

    /// A fresh, empty, private workspace.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(&self) -> io::Result<Sandbox<'_>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let place = self.root.join(number.to_string());
        let root = place.join(WORKSPACE);
        let mut private = DirBuilder::new();
        private.mode(0o700).create(&place)?;
        private.create(&root)?;
        Ok(Sandbox { workspaces: self, place, root })
    }
}

/// Takes the lock that tells others that this directory is in use. It appears only once it is held.
fn hold(root: &Path) -> io::Result<File> {
    let (fresh, place) = (root.join(".lock-to-be"), root.join(LOCK));
    let file = File::create(&fresh)?;
    file.lock()?;
    fs::rename(fresh, place)?;
    Ok(file)
}

/// Removes what runs left behind that were killed: directories whose lock nobody holds.
fn sweep(place: &Path) {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        let lock = OpenOptions::new().write(true).open(entry.path().join(LOCK));
        // What cannot be opened, locked or removed is somebody else's.
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _ = nodes::remove(&entry.path());
        }
    }
}

impl Drop for Workspaces {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.janitor.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}

/// One workspace; dropping it removes it.
#[derive(Debug)]
pub struct Sandbox<'a> {
    workspaces: &'a Workspaces,
    /// The private directory that holds the workspace, and what a case wants beside it.
    place: PathBuf,
    root: PathBuf,
}

impl Sandbox<'_> {
    /// The canonical path of the workspace.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Puts files beside the workspace, where a link out of it or a `..` may lead.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn put_beside(&self, outside: &Tree) -> io::Result<()> {
        snapshot::materialise(outside, &self.place)
    }

    /// Everything beside the workspace as it is now.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn beside(&self) -> io::Result<Tree> {
        snapshot::take_without(&self.place, WORKSPACE)
    }
}

impl Drop for Sandbox<'_> {
    fn drop(&mut self) {
        let place = std::mem::take(&mut self.place);
        if let Some((sender, _)) = &self.workspaces.janitor {
            // A janitor that is gone leaves the directory to the end of the run.
            let _ = sender.send(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn workspaces_are_fresh_private_and_gone_afterwards() {
        let place = tempfile::tempdir().unwrap();
        let workspaces = Workspaces::create(Some(place.path())).unwrap();
        let one = workspaces.open().unwrap();
        let two = workspaces.open().unwrap();
        assert_ne!(one.root(), two.root());
        assert_eq!(fs::metadata(one.root()).unwrap().permissions().mode() & 0o777, 0o700);
        fs::write(one.root().join("f"), "x").unwrap();
        assert_eq!(one.beside().unwrap(), Tree::default());
        fs::write(one.root().join("../escaped"), "x").unwrap();
        assert_eq!(one.beside().unwrap().bytes("escaped"), Some(&b"x"[..]));
        assert_eq!(two.beside().unwrap(), Tree::default());
        drop(one);
        drop(two);
        drop(workspaces);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_killed_run_left_is_swept_and_what_is_in_use_is_not() {
        let place = tempfile::tempdir().unwrap();
        let used = Workspaces::create(Some(place.path())).unwrap();
        let left = place.path().join("editgate-left");
        fs::create_dir_all(left.join("0/workspace")).unwrap();
        fs::write(left.join(LOCK), "").unwrap();
        let foreign = place.path().join("editgate-foreign");
        fs::create_dir(&foreign).unwrap();
        let _other = Workspaces::create(Some(place.path())).unwrap();
        assert!(!left.exists() && foreign.exists() && used.open().is_ok());
    }

    #[test]
    fn a_panic_cleans_up_too() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().to_owned();
        let thread = std::thread::spawn(move || {
            let workspaces = Workspaces::create(Some(&path)).unwrap();
            let sandbox = workspaces.open().unwrap();
            fs::write(sandbox.root().join("f"), "x").unwrap();
            panic!("on purpose");
        });
        assert!(thread.join().is_err());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
