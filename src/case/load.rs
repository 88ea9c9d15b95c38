//! Reads case sets from a file or a directory, and proves that each says what it must.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use walkdir::WalkDir;

use super::schema::{CaseEntry, Content, SCHEMA, SetFile, Split};
use super::tree::DEFAULT_MODE;
use super::{Case, CaseError, CaseSet, Node, Rewrite, Tree};
use crate::text::without_bom;

/// All case sets under `path` (a directory, walked in name order, or one file). Fixtures are looked for in the
/// `fixtures` directory inside it or beside it.
///
/// # Errors
/// The first thing wrong with any of them, with file, line and column. Then nothing may run.
pub fn load(path: &Path) -> Result<Vec<CaseSet>, CaseError> {
    let missing = |message: String| CaseError { file: path.to_owned(), position: None, message };
    let kind = fs::metadata(path)
        .map_err(|error| missing(format!("cannot read the case sets: {error}; name their directory with --cases")))?;
    let (directory, files) = if kind.is_dir() {
        (path.to_owned(), set_files(path)?)
    } else {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        (parent.unwrap_or(Path::new(".")).to_owned(), vec![path.to_owned()])
    };
    if files.is_empty() {
        return Err(missing("no case set here: there is no .json file under this directory".to_owned()));
    }
    let inside = directory.join("fixtures");
    let fixtures = Fixtures::new(if inside.is_dir() { inside } else { directory.join("..").join("fixtures") });
    let mut sets: Vec<CaseSet> = Vec::new();
    for file in files {
        let bytes = read_regular(&file).map_err(|error| CaseError {
            file: file.clone(),
            position: None,
            message: format!("cannot read: {error}"),
        })?;
        let set = parse(&file, &bytes, &fixtures)?;
        if let Some(other) = sets.iter().find(|other| other.name == set.name) {
            return Err(CaseError {
                file,
                position: None,
                message: format!("set `{}` is also in {}; a set is one file", set.name, other.file.display()),
            });
        }
        sets.push(set);
    }
    Ok(sets)
}

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

    fn read(&self, path: &str) -> Result<Arc<[u8]>, String> {
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
fn read_regular(file: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(file)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    fs::read(file)
}

fn set_files(directory: &Path) -> Result<Vec<PathBuf>, CaseError> {
    let walk = WalkDir::new(directory)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|entry| !(entry.file_type().is_dir() && entry.file_name() == "fixtures"));
    let mut files = Vec::new();
    for entry in walk {
        let entry = entry.map_err(|error| CaseError {
            file: directory.to_owned(),
            position: None,
            message: format!("cannot walk the directory: {error}"),
        })?;
        if !entry.file_type().is_dir() && entry.path().extension().is_some_and(|extension| extension == "json") {
            files.push(entry.into_path());
        }
    }
    Ok(files)
}

/// Parses one case-set file. A byte-order mark before it is skipped.
///
/// # Errors
/// See [`load`].
pub fn parse(file: &Path, bytes: &[u8], fixtures: &Fixtures) -> Result<CaseSet, CaseError> {
    let (bytes, _) = without_bom(bytes);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]).into_owned();
            return Err(CaseError {
                file: file.to_owned(),
                position: Some(position_of(&valid, valid.len())),
                message: "not UTF-8; write other bytes as {\"base64\": \"…\"} or as a fixture".to_owned(),
            });
        }
    };
    let source = Source { file, text };
    let set: SetFile<'_> = source.read(text, 0, "")?;
    if set.schema != SCHEMA {
        return Err(
            source.error(0, format!("schema {} is not known here; this version reads schema {SCHEMA}", set.schema))
        );
    }
    if !is_name(&set.set) {
        return Err(source.error(0, format!("set `{}`: {NAME_RULE}", set.set)));
    }
    if set.cases.is_empty() {
        return Err(source.error(0, "no case in this set".to_owned()));
    }
    let mut cases = Vec::with_capacity(set.cases.len());
    let mut ids = BTreeSet::new();
    for (index, raw) in set.cases.iter().enumerate() {
        let raw = raw.get();
        // The raw value borrows from the text, so its address tells where it stands.
        let offset = (raw.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        let entry: CaseEntry = source.read(raw, offset, &format!("cases[{index}]."))?;
        if !ids.insert(entry.id.clone()) {
            return Err(source.error(
                offset,
                format!("duplicate id `{}`; ids name cases in results, so each is used once", entry.id),
            ));
        }
        let id = entry.id.clone();
        cases.push(build(entry, fixtures).map_err(|message| source.error(offset, format!("case `{id}`: {message}")))?);
    }
    for (name, members) in &set.subsets.0 {
        let at = text.find(&format!("\"{name}\"")).unwrap_or(0);
        let mut listed = BTreeSet::new();
        for member in members {
            if !ids.contains(member) {
                return Err(source.error(at, format!("subset `{name}` names `{member}`, and the set has no such case")));
            }
            if !listed.insert(member) {
                return Err(source.error(at, format!("subset `{name}` names `{member}` twice")));
            }
        }
        if members.is_empty() {
            return Err(source.error(at, format!("subset `{name}` is empty")));
        }
    }
    Ok(CaseSet { name: set.set, about: set.about, file: file.to_owned(), subsets: set.subsets.0, cases })
}

/// What names of sets and ids of cases are made of; they become names of files.
const NAME_RULE: &str = "a name is made of letters, digits, `-`, `_` and `.`, and does not begin with a dot";

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && name.chars().all(plain) && !name.starts_with('.')
}

struct Source<'a> {
    file: &'a Path,
    text: &'a str,
}

impl Source<'_> {
    fn error(&self, offset: usize, message: String) -> CaseError {
        CaseError { file: self.file.to_owned(), position: Some(position_of(self.text, offset)), message }
    }

    /// Parses a part of the text that begins at `offset`; errors count lines from the start of the file.
    fn read<'p, T: serde::Deserialize<'p>>(&self, part: &'p str, offset: usize, prefix: &str) -> Result<T, CaseError> {
        if !part.trim_start().starts_with('{') {
            let place = prefix.trim_end_matches('.');
            let place = if place.is_empty() { "a case set".to_owned() } else { place.to_owned() };
            return Err(self.error(offset, format!("{place}: not a JSON object")));
        }
        let mut deserializer = serde_json::Deserializer::from_str(part);
        let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
            let path = error.path().to_string();
            let inner = error.into_inner();
            let (line, column) = position_of(self.text, offset);
            let position = match inner.line() {
                0 => (line, column),
                1 => (line, column + inner.column().saturating_sub(1)),
                more => (line + more - 1, inner.column()),
            };
            let text = inner.to_string();
            let text = text.split(" at line ").next().unwrap_or(&text);
            let place = if path == "." { prefix.trim_end_matches('.').to_owned() } else { format!("{prefix}{path}") };
            let message = if place.is_empty() { text.to_owned() } else { format!("{place}: {text}") };
            CaseError { file: self.file.to_owned(), position: Some(position), message }
        })?;
        deserializer.end().map_err(|error| CaseError {
            file: self.file.to_owned(),
            position: Some((error.line(), error.column())),
            message: "there is more after the end of the case set".to_owned(),
        })?;
        Ok(value)
    }
}

/// 1-based line and column (in characters) of a byte offset.
fn position_of(text: &str, offset: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line = memchr::memchr_iter(b'\n', before).count() + 1;
    let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    (line, String::from_utf8_lossy(&before[start..]).chars().count() + 1)
}

fn build(entry: CaseEntry, fixtures: &Fixtures) -> Result<Case, String> {
    if !is_name(&entry.id) {
        return Err(NAME_RULE.to_owned());
    }
    if entry.task.trim().is_empty() {
        return Err("the task is empty".to_owned());
    }
    if entry.files.0.is_empty() {
        return Err("there are no files".to_owned());
    }
    let nothing = Tree::default();
    let files: Tree = nodes(entry.files.0, "files", fixtures, &nothing)?.into_iter().collect();
    let one = entry.expect.is_some();
    let accepted = match (entry.expect, entry.expect_any) {
        (Some(expect), None) => vec![changes(expect.0, fixtures, &files)?],
        (None, Some(any)) if !any.is_empty() => {
            any.into_iter().map(|expect| changes(expect.0, fixtures, &files)).collect::<Result<_, _>>()?
        }
        (None, Some(_)) => return Err("`expect_any` is empty".to_owned()),
        (Some(_), Some(_)) => return Err("`expect` and `expect_any` exclude each other".to_owned()),
        (None, None) => return Err("`expect` is missing (or `expect_any`)".to_owned()),
    };
    let mut seen = BTreeMap::new();
    for (path, node) in nodes(entry.seen.0, "seen", fixtures, &nothing)? {
        match node {
            Node::File { bytes, .. } => seen.insert(path, bytes),
            _ => return Err(format!("seen.{path}: only a file can have been read")),
        };
    }
    let mut then = Vec::new();
    for rewrite in entry.then {
        if rewrite.nth == 0 {
            return Err("then: `nth` counts from 1".to_owned());
        }
        then.push(Rewrite {
            after: rewrite.after,
            nth: rewrite.nth,
            files: nodes(rewrite.files.0, "then", fixtures, &files)?,
        });
    }
    let case = Case {
        id: entry.id,
        tags: entry.tags,
        task: entry.task,
        files,
        seen,
        then,
        accepted,
        target: entry.target,
        held_out: entry.split == Split::HeldOut,
    };
    prove(&case, one)?;
    Ok(case)
}

/// What must hold between the parts of a case.
fn prove(case: &Case, one: bool) -> Result<(), String> {
    let base = case.final_base();
    // Where leaving everything as it is may be right, `expect_any` says so.
    if one && case.accepted_from(&base).first() == Some(&base) {
        return Err("`expect` equals the files before, so doing nothing would pass".to_owned());
    }
    for changes in &case.accepted {
        for (path, node) in changes {
            if node.is_none() && base.get(path).is_none() {
                return Err(format!("expect.{path}: deleted, and there is no such file"));
            }
        }
    }
    if let Some(target) = &case.target {
        if target.line.is_none() && target.find.as_deref().is_none_or(str::is_empty) {
            return Err("target: `line` or `find` must say where".to_owned());
        }
        let Some(bytes) = case.as_read(&target.path) else {
            return Err(format!("target: there is no file `{}`", target.path));
        };
        let count = crate::text::lines(bytes, crate::text::LineModel::Lm3).count();
        if target.line.is_some_and(|line| line == 0 || line > count) {
            return Err(format!("target: `{}` has {count} lines", target.path));
        }
    }
    Ok(())
}

/// Contents by path. What lies below a file or link of `base` or of the entries themselves has no place, and a mode that
/// is not named is the one that the file has in `base`.
fn nodes(
    entries: BTreeMap<String, Content>,
    what: &str,
    fixtures: &Fixtures,
    base: &Tree,
) -> Result<BTreeMap<String, Node>, String> {
    let some = entries.into_iter().map(|(path, content)| (path, Some(content))).collect();
    let nodes = all_nodes(some, what, fixtures, base)?;
    Ok(nodes.into_iter().filter_map(|(path, node)| Some((path, node?))).collect())
}

fn changes(
    entries: BTreeMap<String, Option<Content>>,
    fixtures: &Fixtures,
    base: &Tree,
) -> Result<BTreeMap<String, Option<Node>>, String> {
    all_nodes(entries, "expect", fixtures, base)
}

fn all_nodes(
    entries: BTreeMap<String, Option<Content>>,
    what: &str,
    fixtures: &Fixtures,
    base: &Tree,
) -> Result<BTreeMap<String, Option<Node>>, String> {
    for path in entries.keys() {
        let held = |above: &&str| match entries.get(*above) {
            Some(entry) => entry.is_some(),
            None => base.get(above).is_some_and(|node| *node != Node::Directory),
        };
        if let Some(file) = path.match_indices('/').map(|(at, _)| &path[..at]).find(held) {
            return Err(format!("{what}.{path}: `{file}` is a file or link, and cannot hold another"));
        }
    }
    let mut nodes = BTreeMap::new();
    for (path, content) in entries {
        let usual = match base.get(&path) {
            Some(Node::File { mode, .. }) => *mode,
            _ => DEFAULT_MODE,
        };
        let node = check_path(&path).and_then(|()| content.map(|content| node(content, fixtures, usual)).transpose());
        nodes.insert(path.clone(), node.map_err(|message| format!("{what}.{path}: {message}"))?);
    }
    Ok(nodes)
}

/// A path of a case is relative, plain, and stays inside.
fn check_path(path: &str) -> Result<(), String> {
    let plain = !path.is_empty()
        && !path.contains(['\0', '\\'])
        && path.split('/').all(|name| !name.is_empty() && name.len() <= 255 && name != "." && name != "..");
    if plain { Ok(()) } else { Err("a path is relative, with `/` between names, and without `.` or `..`".to_owned()) }
}

fn node(content: Content, fixtures: &Fixtures, usual_mode: u32) -> Result<Node, String> {
    let mode = match &content.mode {
        None => None,
        Some(text) => Some(
            u32::from_str_radix(text, 8)
                .ok()
                .filter(|mode| *mode <= 0o777)
                .ok_or_else(|| format!("mode `{text}` is not octal permission bits such as \"0755\""))?,
        ),
    };
    let bytes: Arc<[u8]> = match (content.text, content.fixture, content.base64, content.symlink) {
        (Some(text), None, None, None) => text.into_bytes().into(),
        (None, Some(path), None, None) => {
            check_path(&path).map_err(|message| format!("fixture `{path}`: {message}"))?;
            fixtures.read(&path)?
        }
        (None, None, Some(text), None) => {
            base64::engine::general_purpose::STANDARD.decode(&text).map_err(|error| format!("base64: {error}"))?.into()
        }
        (None, None, None, Some(target)) if target.is_empty() || target.contains('\0') => {
            return Err("a symlink needs a target, without NUL".to_owned());
        }
        (None, None, None, Some(target)) if mode.is_none() => return Ok(Node::Symlink { target }),
        (None, None, None, Some(_)) => return Err("a symlink has no mode".to_owned()),
        _ => return Err("exactly one of `text`, `fixture`, `base64` and `symlink` says what is in it".to_owned()),
    };
    Ok(Node::File { bytes, mode: mode.unwrap_or(usual_mode) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load_text(text: &str) -> Result<CaseSet, String> {
        parse(Path::new("set.json"), text.as_bytes(), &Fixtures::new("nowhere")).map_err(|error| error.to_string())
    }

    fn with_case(case: &str) -> String {
        format!(
            "{{\"schema\": 1, \"set\": \"s\", \"about\": \"x\",\n \"subsets\": {{}},\n \"cases\": [\n  {case}\n ]}}"
        )
    }

    const GOOD: &str = r#"{"id": "a", "tags": [], "files": {"f.txt": {"text": "one\n"}}, "task": "Do.", "expect": {"f.txt": {"text": "two\n"}}}"#;

    #[test]
    fn a_good_case_loads_and_its_digest_ignores_layout() {
        let one = load_text(&with_case(GOOD)).unwrap();
        let two = load_text(&with_case(&GOOD.replace(", ", " ,\n   "))).unwrap();
        let digest = |set: &CaseSet| super::super::digest::of_cases(&set.name, &set.cases);
        assert_eq!(digest(&one), digest(&two));
        let other = load_text(&with_case(&GOOD.replace("two\\n", "two"))).unwrap();
        assert_ne!(digest(&one), digest(&other));
    }

    #[test]
    fn each_fault_is_named_with_its_place() {
        let bad = |case: &str, want: &str| {
            let error = load_text(&with_case(case)).unwrap_err();
            assert!(error.contains(want), "{error} lacks {want}");
            assert!(error.starts_with("set.json:4:"), "{error}");
        };
        bad(&GOOD.replace("\"tags\"", "\"tag\""), "cases[0].tag: unknown field `tag`");
        bad(&GOOD.replace("\"two\\n\"", "\"one\\n\""), "`expect` equals the files before");
        bad(&GOOD.replace("\"text\": \"one\\n\"", "\"fixture\": \"no/such\""), "fixture nowhere/no/such");
        bad(&GOOD.replace("\"f.txt\": {\"text\": \"one\\n\"}", "\"../f\": {\"text\": \"one\"}"), "a path is relative");
        bad(&GOOD.replace("{\"text\": \"one\\n\"}", "{\"text\": \"one\", \"base64\": \"\"}"), "exactly one of");
        bad(&GOOD.replace("{\"text\": \"one\\n\"}", "{\"text\": \"one\", \"mode\": \"9\"}"), "not octal");
        bad(&GOOD.replace("\"files\": {", "\"files\": {\"f.txt\": {\"text\": \"\"}, "), "duplicate key `f.txt`");
        bad(&GOOD.replace("\"expect\"", "\"expect_any\": [], \"expect\""), "exclude each other");
        bad(&GOOD.replace("\"task\": \"Do.\", ", ""), "missing field `task`");
        bad(
            &GOOD.replace("\"expect\": {\"f.txt\": {\"text\": \"two\\n\"}}", "\"expect\": {}"),
            "doing nothing would pass",
        );
        bad(
            &GOOD.replace(
                "\"expect\"",
                "\"target\": {\"path\": \"f.txt\", \"line\": 2, \"content\": \"x\"}, \"expect\"",
            ),
            "`f.txt` has 1 lines",
        );
    }

    #[test]
    fn whole_file_faults() {
        let twice = format!("{GOOD},\n  {GOOD}");
        assert_eq!(
            load_text(&with_case(&twice)).unwrap_err(),
            "set.json:5:3: duplicate id `a`; ids name cases in results, so each is used once"
        );
        assert!(
            load_text("{\"schema\": 1, \"set\": \"s\", \"about\": \"\", \"cases\": []}")
                .unwrap_err()
                .contains("no case")
        );
        assert!(
            load_text("{\"schema\": 2, \"set\": \"s\", \"about\": \"\", \"cases\": []}")
                .unwrap_err()
                .contains("schema 2")
        );
        assert!(load_text("{\"schema\": 1,\n \"set\": }").unwrap_err().starts_with("set.json:2:9: "));
        let subset = with_case(GOOD).replace("\"subsets\": {}", "\"subsets\": {\"release\": [\"b\"]}");
        assert_eq!(
            load_text(&subset).unwrap_err(),
            "set.json:2:14: subset `release` names `b`, and the set has no such case"
        );
        let latin = parse(Path::new("set.json"), b"{\n \"set\": \"\xE9\"}", &Fixtures::new(".")).unwrap_err();
        assert_eq!(latin.position, Some((2, 10)));
        assert!(latin.message.starts_with("not UTF-8"));
    }
}
