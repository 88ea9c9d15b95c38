//! Reads case sets from a file or a directory, and proves that each says what it must.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::build::build;
use super::fixtures::{Fixtures, read_regular};
use super::place::{Step, offset_in, offset_of, position_of};
use super::schema::{CaseEntry, SCHEMA, SetFile};
use super::{CaseError, CaseSet};
use crate::text::without_bom;

/// All case sets under `path` (a directory, walked in name order, or one file). Fixtures are looked for in the
/// `fixtures` directory inside it or beside it.
///
/// # Errors
/// The first thing wrong with any of them, with file, line and column. Then nothing may run.
pub fn load(path: &Path) -> Result<Vec<CaseSet>, CaseError> {
    let survey = survey(path)?;
    match survey.faults.into_iter().next() {
        Some(fault) => Err(fault),
        None => Ok(survey.sets),
    }
}

/// What lies under a path: the cases that are right in themselves, and everything that is wrong.
#[derive(Debug)]
pub struct Survey {
    pub sets: Vec<CaseSet>,
    pub faults: Vec<CaseError>,
    pub fixtures: Fixtures,
}

/// Reads all case sets under `path` as [`load`] does, and goes on after a fault.
///
/// # Errors
/// When there is nothing to read.
pub fn survey(path: &Path) -> Result<Survey, CaseError> {
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
    let fixtures = Fixtures::new(fixtures_of(&directory));
    let (mut sets, mut faults): (Vec<CaseSet>, Vec<CaseError>) = (Vec::new(), Vec::new());
    for file in files {
        let at = |message: String| CaseError { file: file.clone(), position: None, message };
        let bytes = match read_regular(&file) {
            Ok(bytes) => bytes,
            Err(error) => {
                faults.push(at(format!("cannot read: {error}")));
                continue;
            }
        };
        let (set, wrong) = parse(&file, &bytes, &fixtures);
        faults.extend(wrong);
        let Some(set) = set else {
            continue;
        };
        if let Some(other) = sets.iter().find(|other| other.name == set.name) {
            faults.push(at(format!("set `{}` is also in {}; a set is one file", set.name, other.file.display())));
            continue;
        }
        sets.push(set);
    }
    Ok(Survey { sets, faults, fixtures })
}

/// Where the fixtures of the sets in a directory are: inside it, else beside it; beside what it links to, if it is a link.
pub fn fixtures_of(directory: &Path) -> PathBuf {
    let beside = directory.file_name().map(|_| directory.with_file_name("fixtures"));
    let inside = directory.join("fixtures");
    match beside {
        _ if inside.is_dir() => inside,
        Some(beside) if beside.is_dir() => beside,
        _ => directory.join("..").join("fixtures"),
    }
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

/// Parses one case-set file as far as it can be understood, and tells everything that is wrong with it. A byte-order mark
/// before it is skipped. Of a file that is no case set at all nothing is left.
pub fn parse(file: &Path, bytes: &[u8], fixtures: &Fixtures) -> (Option<CaseSet>, Vec<CaseError>) {
    let (bytes, _) = without_bom(bytes);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]).into_owned();
            let fault = CaseError {
                file: file.to_owned(),
                position: Some(position_of(&valid, valid.len())),
                message: "not UTF-8; write other bytes as {\"base64\": \"…\"} or as a fixture".to_owned(),
            };
            return (None, vec![fault]);
        }
    };
    let source = Source { file, text };
    let set: SetFile<'_> = match source.read(text, 0, "") {
        Ok(set) => set,
        Err(error) => return (None, vec![error]),
    };
    let head = |key: &str, message: String| source.error(offset_of(text, &[Step::Key(key)]).unwrap_or(0), message);
    let mut faults = Vec::new();
    if set.schema != SCHEMA {
        let message = format!("schema {} is not known here; this version reads schema {SCHEMA}", set.schema);
        return (None, vec![head("schema", message)]);
    }
    if !is_name(&set.set) {
        faults.push(head("set", format!("set `{}`: {NAME_RULE}", set.set)));
    }
    if set.cases.is_empty() {
        faults.push(head("cases", "no case in this set".to_owned()));
    }
    let mut cases = Vec::with_capacity(set.cases.len());
    let mut ids = BTreeSet::new();
    let mut broken = false;
    for (index, raw) in set.cases.iter().enumerate() {
        let raw = raw.get();
        let offset = offset_in(text, raw);
        let entry: CaseEntry = match source.read(raw, offset, &format!("cases[{index}].")) {
            Ok(entry) => entry,
            Err(error) => {
                broken = true;
                faults.push(error);
                continue;
            }
        };
        let id = entry.id.clone();
        if !ids.insert(id.clone()) {
            let message = format!("duplicate id `{id}`; ids name cases in results, so each is used once");
            faults.push(source.error(offset, message));
            continue;
        }
        match build(entry, fixtures) {
            Ok(case) => cases.push(case),
            Err(wrong) => {
                let within = offset_of(raw, &wrong.steps()).unwrap_or(0);
                faults.push(source.error(offset + within, format!("case `{id}`: {}", wrong.message)));
            }
        }
    }
    for (name, members) in &set.subsets.0 {
        if !is_name(name) {
            faults.push(head("subsets", format!("subset `{name}`: {NAME_RULE}")));
        }
        let at = |place: Option<usize>| {
            let steps = [Step::Key("subsets"), Step::Key(name), Step::Index(place.unwrap_or(0))];
            offset_of(text, &steps[..2 + usize::from(place.is_some())]).unwrap_or(0)
        };
        let mut listed = BTreeSet::new();
        for (index, member) in members.iter().enumerate() {
            // The id of a case that could not be read is not known.
            if !ids.contains(member) && !broken {
                let message = format!("subset `{name}` names `{member}`, and the set has no such case");
                faults.push(source.error(at(Some(index)), message));
            }
            if !listed.insert(member) {
                faults.push(source.error(at(Some(index)), format!("subset `{name}` names `{member}` twice")));
            }
        }
        if members.is_empty() {
            faults.push(source.error(at(None), format!("subset `{name}` is empty")));
        }
    }
    let set = CaseSet { name: set.set, about: set.about, file: file.to_owned(), subsets: set.subsets.0, cases };
    (Some(set), faults)
}

/// What names of sets and ids of cases are made of; they become names of files.
pub const NAME_RULE: &str = "a name is made of letters, digits, `-`, `_` and `.`, and does not begin with a dot";

/// Whether a set or case may be called so.
pub fn is_name(name: &str) -> bool {
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
            let place = if path == "." || path == "?" {
                prefix.trim_end_matches('.').to_owned()
            } else {
                format!("{prefix}{path}")
            };
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

#[cfg(test)]
mod tests {
    use super::*;

    fn load_text(text: &str) -> Result<CaseSet, String> {
        match parse(Path::new("set.json"), text.as_bytes(), &Fixtures::new("nowhere")) {
            (Some(set), faults) if faults.is_empty() => Ok(set),
            (_, faults) => Err(faults[0].to_string()),
        }
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
            "set.json:2:26: subset `release` names `b`, and the set has no such case"
        );
        let (_, latin) = parse(Path::new("set.json"), b"{\n \"set\": \"\xE9\"}", &Fixtures::new("."));
        let latin = &latin[0];
        assert_eq!(latin.position, Some((2, 10)));
        assert!(latin.message.starts_with("not UTF-8"));
    }
}
