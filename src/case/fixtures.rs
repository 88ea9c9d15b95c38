//! The files that cases keep under `fixtures/`: read once, and only from there.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directory of fixtures; each is read once, however many cases start from it.
#[derive(Debug)]
pub struct Fixtures {
    root: PathBuf,
    read: RefCell<HashMap<String, Arc<[u8]>>>,
}

impl Fixtures {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Fixtures { root: root.into(), read: RefCell::default() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether a case has read the fixture of this path.
    pub fn was_read(&self, path: &str) -> bool {
        self.read.borrow().contains_key(path)
    }

    pub(super) fn read(&self, path: &str) -> Result<Arc<[u8]>, String> {
        if let Some(bytes) = self.read.borrow().get(path) {
            return Ok(Arc::clone(bytes));
        }
        let file = self.root.join(path);
        let wrong = |reason: String| format!("fixture {}: {reason}", file.display());
        // A link may lead to another fixture, never out of their directory.
        let real = file.canonicalize().map_err(|error| wrong(error.to_string()))?;
        let root = self.root.canonicalize().map_err(|error| wrong(error.to_string()))?;
        if !real.starts_with(root) {
            return Err(wrong("it leads out of the directory of fixtures".to_owned()));
        }
        let bytes: Arc<[u8]> = read_regular(&real).map_err(|error| wrong(error.to_string()))?.into();
        self.read.borrow_mut().insert(path.to_owned(), Arc::clone(&bytes));
        Ok(bytes)
    }
}

/// Reads a regular file; a pipe or device would keep us waiting.
pub(super) fn read_regular(file: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(file)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    fs::read(file)
}
