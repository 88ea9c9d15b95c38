//! The history of a git repository, as `git` tells it: changed files and their contents. Reads objects only; no hook,
//! filter or program of the repository is run.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use thiserror::Error;

use super::mine::Change;

/// Larger contents are no cases.
const MAX_BYTES: usize = 1024 * 1024;

#[derive(Debug, Error)]
pub enum HistoryError {
    #[error("cannot run git: {0}; mining needs git on the path")]
    NoGit(io::Error),
    #[error("{}: git {what}: {message}", repository.display())]
    Git { repository: PathBuf, what: &'static str, message: String },
    #[error("{}: git ended in the middle of an answer: {source}", repository.display())]
    Broken { repository: PathBuf, source: io::Error },
}

/// A repository to read.
#[derive(Debug)]
pub struct Repository {
    path: PathBuf,
}

impl Repository {
    /// # Errors
    /// When `path` is in no git repository, or git cannot be run.
    pub fn open(path: &Path) -> Result<Self, HistoryError> {
        let repository = Repository { path: path.to_owned() };
        repository.run("rev-parse", &["--git-dir"])?;
        repository.run("rev-parse", &["--verify", "--quiet", "HEAD^{commit}"]).map_err(|_| HistoryError::Git {
            repository: path.to_owned(),
            what: "rev-parse",
            message: "there is no commit yet, so there is nothing to mine".to_owned(),
        })?;
        Ok(repository)
    }

    /// The last part of its path: what it is called.
    pub fn name(&self) -> String {
        let real = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let name = real.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.trim_end_matches(".git").to_owned()
    }

    /// Licence files of the newest commit: their paths, and the texts of those at the top.
    ///
    /// # Errors
    /// When git fails.
    pub fn licenses(&self) -> Result<Vec<(String, Option<String>)>, HistoryError> {
        let listed = self.run("ls-tree", &["-r", "-z", "--name-only", "--full-tree", "HEAD"])?;
        let mut found = Vec::new();
        for path in listed.split(|byte| *byte == 0) {
            let path = String::from_utf8_lossy(path).into_owned();
            let name = path.rsplit('/').next().unwrap_or(&path).to_uppercase();
            if !["LICENSE", "LICENCE", "COPYING", "UNLICENSE"].iter().any(|start| name.starts_with(start)) {
                continue;
            }
            let text = match path.contains('/') {
                true => None,
                false => {
                    let text = self.run("cat-file", &["blob", &format!("HEAD:{path}")]).unwrap_or_default();
                    Some(String::from_utf8_lossy(&text).into_owned())
                }
            };
            found.push((path, text));
        }
        Ok(found)
    }

    /// Files that the newest `commits` commits changed (merges left out), newest first: only regular files that were
    /// there before and after under the same name and mode.
    ///
    /// # Errors
    /// When git fails.
    pub fn changes(&self, commits: usize) -> Result<Vec<Change>, HistoryError> {
        let count = format!("--max-count={commits}");
        let out = self.run(
            "log",
            &[
                "--no-merges",
                "--raw",
                "--no-abbrev",
                "--no-renames",
                "--no-ext-diff",
                "--no-show-signature",
                "--diff-filter=M",
                "-z",
                "--format=%x01%H",
                &count,
                "HEAD",
            ],
        )?;
        Ok(changes_of(&out))
    }

    /// Opens a reader of contents by object id.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn contents(&self) -> Result<Contents, HistoryError> {
        let mut child = self
            .command(&["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(HistoryError::NoGit)?;
        let (Some(ask), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            let source = io::Error::other("no pipes");
            return Err(HistoryError::Broken { repository: self.path.clone(), source });
        };
        Ok(Contents { repository: self.path.clone(), child, ask, answers: BufReader::new(answers) })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        // What the caller's shell says of another repository, or of prompts and pagers, does not matter here.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_")) {
            command.env_remove(name);
        }
        command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
        // A repository may be anybody's: objects that it lacks are not fetched, by whatever transport it names.
        command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "none");
        command.arg("-C").arg(&self.path).arg("--no-pager").args(["-c", "core.fsmonitor=false"]).args(arguments);
        command
    }

    fn run(&self, what: &'static str, arguments: &[&str]) -> Result<Vec<u8>, HistoryError> {
        let mut all = vec![what];
        all.extend(arguments);
        let output = self.command(&all).stdin(Stdio::null()).output().map_err(HistoryError::NoGit)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let message = String::from_utf8_lossy(&output.stderr);
        let message = message.lines().find(|line| !line.trim().is_empty()).unwrap_or("failed without a word");
        Err(HistoryError::Git { repository: self.path.clone(), what, message: message.trim().to_owned() })
    }
}

/// Reads contents one after another through one process.
#[derive(Debug)]
pub struct Contents {
    repository: PathBuf,
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Contents {
    /// The bytes of an object; `None` where it is missing, no file, or larger than a case may be.
    ///
    /// # Errors
    /// When git ends.
    pub fn read(&mut self, id: &str) -> Result<Option<Vec<u8>>, HistoryError> {
        self.answer(id).map_err(|source| HistoryError::Broken { repository: self.repository.clone(), source })
    }

    fn answer(&mut self, id: &str) -> io::Result<Option<Vec<u8>>> {
        writeln!(self.ask, "{id}")?;
        self.ask.flush()?;
        let mut head = String::new();
        if self.answers.read_line(&mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let parts: Vec<&str> = head.split_whitespace().collect();
        let [_, kind, size] = parts.as_slice() else {
            return Ok(None);
        };
        let size: u64 = size.parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        // Contents and the line break after them, whether they are wanted or not.
        let mut body = self.answers.by_ref().take(size + 1);
        if *kind != "blob" || size > MAX_BYTES as u64 {
            io::copy(&mut body, &mut io::sink())?;
            return Ok(None);
        }
        let mut bytes = Vec::new();
        body.read_to_end(&mut bytes)?;
        if bytes.len() as u64 != size + 1 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.pop();
        Ok(Some(bytes))
    }
}

impl Drop for Contents {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads `git log --raw -z`: `\x01COMMIT`, then `:MODE MODE ID ID M` and a path for each file, all ended by NUL.
fn changes_of(out: &[u8]) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut commit = String::new();
    let mut parts = out.split(|byte| *byte == 0);
    while let Some(part) = parts.next() {
        let part = String::from_utf8_lossy(part);
        let part = part.trim_start_matches('\n');
        if let Some(id) = part.strip_prefix('\u{1}') {
            commit = id.trim().to_owned();
            continue;
        }
        let Some(raw) = part.strip_prefix(':') else {
            continue;
        };
        let fields: Vec<&str> = raw.split(' ').collect();
        let path = parts.next().unwrap_or_default();
        if let [old_mode, new_mode, before, after, _] = fields.as_slice()
            && old_mode == new_mode
            && old_mode.starts_with("100")
            && let Ok(path) = std::str::from_utf8(path)
        {
            changes.push(Change {
                commit: commit.clone(),
                path: path.to_owned(),
                before: (*before).to_owned(),
                after: (*after).to_owned(),
            });
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_logs_are_read_as_git_writes_them() {
        let out = b"\x01c1\0\n:100644 100644 a1 b1 M\0src/a b.rs\0:100644 100755 a2 b2 M\0run.sh\0\x01c2\0\n:120000 120000 a3 b3 M\0link\0";
        let found = changes_of(out);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].commit.as_str(), found[0].path.as_str()), ("c1", "src/a b.rs"));
        assert_eq!((found[0].before.as_str(), found[0].after.as_str()), ("a1", "b1"));
    }
}
