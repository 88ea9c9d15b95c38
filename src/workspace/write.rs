//! The one writer of edit tools: a temporary file beside the target, its mode copied, renamed over it.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::nodes;
use crate::case::tree::DEFAULT_MODE;

/// Writes `bytes` to `path` so that a reader never sees a part of them and a failure leaves the original. An existing
/// file keeps its mode bits; a new one gets 0644 whatever the umask, so that a result is the same on every machine.
/// Not synced to disk: a workspace does not outlive its attempt.
///
/// # Errors
/// Any error of the file system; then nothing has changed.
pub fn atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let parent = path.parent().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mode = match fs::metadata(path) {
        Ok(metadata) => metadata.permissions().mode() & 0o7777,
        Err(error) if error.kind() == io::ErrorKind::NotFound => DEFAULT_MODE,
        Err(error) => return Err(error),
    };
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let temporary = parent.join(format!(".editgate-{}-{number}.tmp", std::process::id()));
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(bytes)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Writes like [`atomic`], with the directories above that are missing.
///
/// # Errors
/// Any error of the file system; then nothing has changed, the directories included.
pub fn with_parents(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let made = match path.parent() {
        Some(parent) => nodes::make_directories(parent)?,
        None => nodes::Made::default(),
    };
    atomic(path, bytes).inspect_err(|_| made.undo())
}

/// Writes one of our own outputs: whole or not at all, synced, readable by all.
///
/// # Errors
/// Any error of the file system; then what was there is still there.
pub fn output(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(parent)?;
    file.write_all(bytes)?;
    file.as_file().set_permissions(Permissions::from_mode(DEFAULT_MODE))?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_mode_and_leaves_no_trace_of_a_failure() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("f");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o751)).unwrap();
        atomic(&file, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o751);
        let made = directory.path().join("made");
        atomic(&made, b"x").unwrap();
        assert_eq!(fs::metadata(&made).unwrap().permissions().mode() & 0o7777, 0o644);
        let blocked = directory.path().join("blocked");
        fs::create_dir(&blocked).unwrap();
        atomic(&blocked, b"x").unwrap_err();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3);
    }
}
