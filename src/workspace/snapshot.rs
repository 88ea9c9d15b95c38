//! Between a tree as a value and a directory on disk.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Component, Path};

use super::nodes;
use crate::case::{Node, Tree};

/// Makes the nodes of `tree` under `root`, modes included.
///
/// # Errors
/// Any error of the file system.
pub fn materialise(tree: &Tree, root: &Path) -> io::Result<()> {
    for (path, node) in tree.iter() {
        put(root, path, node)?;
    }
    Ok(())
}

/// Empties the directory `root`.
///
/// # Errors
/// Any error of the file system.
pub fn clear(root: &Path) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        nodes::remove(&entry.path())?;
    }
    Ok(())
}

/// Puts one node, replacing what is there; directories above it are made.
///
/// # Errors
/// Any error of the file system.
pub fn put(root: &Path, path: &str, node: &Node) -> io::Result<()> {
    // Whoever made the tree: nothing is written outside of the root.
    if !Path::new(path).components().all(|part| matches!(part, Component::Normal(_))) {
        let message = format!("`{path}` leads out of the directory");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let place = root.join(path);
    if matches!(node, Node::Directory) {
        return fs::create_dir_all(&place);
    }
    if let Some(parent) = place.parent() {
        fs::create_dir_all(parent)?;
    }
    if fs::symlink_metadata(&place).is_ok() {
        nodes::remove(&place)?;
    }
    match node {
        Node::File { bytes, mode } => {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(*mode).open(&place)?;
            file.write_all(bytes)?;
            // Again, since the umask took its part.
            file.set_permissions(Permissions::from_mode(*mode))
        }
        Node::Symlink { target } => symlink(target, &place),
        Node::Directory | Node::Other => Ok(()),
    }
}

/// Reads everything under `root`.
///
/// # Errors
/// Any error of the file system: an unreadable workspace is a fault of the harness, never a verdict.
pub fn take(root: &Path) -> io::Result<Tree> {
    take_without(root, "")
}

/// Reads everything under `root` but what has this name there.
///
/// # Errors
/// As [`take`].
pub fn take_without(root: &Path, name: &str) -> io::Result<Tree> {
    let mut tree = Tree::default();
    read_directory(root, "", name, &mut tree)?;
    Ok(tree)
}

fn read_directory(directory: &Path, prefix: &str, without: &str, tree: &mut Tree) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name() == without {
            continue;
        }
        let kind = entry.file_type()?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let node = if kind.is_symlink() {
            Node::Symlink { target: fs::read_link(entry.path())?.to_string_lossy().into_owned() }
        } else if kind.is_dir() {
            read_directory(&entry.path(), &format!("{path}/"), "", tree)?;
            Node::Directory
        } else if kind.is_file() {
            let mode = entry.metadata()?.permissions().mode() & 0o7777;
            Node::File { bytes: fs::read(entry.path())?.into(), mode }
        } else {
            Node::Other
        };
        tree.insert(path, node);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tree::DEFAULT_MODE;

    #[test]
    fn what_is_put_down_is_found_again() {
        let file = |text: &str, mode| Node::File { bytes: text.as_bytes().into(), mode };
        let tree: Tree = [
            ("a/b.txt".to_owned(), file("x\r\n", DEFAULT_MODE)),
            ("run.sh".to_owned(), file("", 0o755)),
            ("shared".to_owned(), file("", 0o666)),
            ("link".to_owned(), Node::Symlink { target: "../out".into() }),
            ("empty".to_owned(), Node::Directory),
        ]
        .into_iter()
        .collect();
        let directory = tempfile::tempdir().unwrap();
        materialise(&tree, directory.path()).unwrap();
        assert_eq!(take(directory.path()).unwrap(), tree);
        for path in ["../x", "/tmp/x", "a/../../x"] {
            assert!(put(directory.path(), path, &file("x", DEFAULT_MODE)).is_err(), "{path}");
        }
        put(directory.path(), "link", &file("now a file", DEFAULT_MODE)).unwrap();
        assert_eq!(take(directory.path()).unwrap().bytes("link"), Some(&b"now a file"[..]));
    }
}
