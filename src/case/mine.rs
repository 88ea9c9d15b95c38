//! Cases from real changes: which of them are fit, and what they become. Pure: from bytes before and after to a case.

use std::collections::{BTreeMap, HashMap, HashSet};

use sha2::{Digest, Sha256};

use super::describe::{Shape, Way, describe};
use super::secrets::Secrets;
use super::tree::DEFAULT_MODE;
use super::{Case, Node, Source, check_path, task};
use crate::text::diff::{Hunk, hunks, keys};
use crate::text::{Ending, Line, LineModel, is_text, lines, without_bom};

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Wish {
    pub shapes: Vec<Shape>,
    /// Lines of the file before the change.
    pub lines: std::ops::RangeInclusive<usize>,
    /// Changed lines on either side at most.
    pub changed: usize,
    /// Cases from one file of the repository at most.
    pub per_file: usize,
    /// Extensions without a dot; empty = all.
    pub extensions: Vec<String>,
}

/// No line of a case is longer: small models read them.
const MAX_LINE: usize = 400;

/// A file that a commit changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub commit: String,
    pub path: String,
    /// Object ids of the contents before and after.
    pub before: String,
    pub after: String,
}

/// Takes changes one after another and keeps the cases that are fit.
#[derive(Debug)]
pub struct Miner {
    wish: Wish,
    seed: u64,
    repository: String,
    license: String,
    secrets: Secrets,
    /// Directories with licence files of their own, each ending in `/`.
    licensed: Vec<String>,
    cases: Vec<Case>,
    per_path: HashMap<String, usize>,
    /// What was changed into what: the same change is taken once.
    known: HashSet<Vec<u8>>,
    ids: HashSet<String>,
    /// Why changes were left out, with how many.
    pub left_out: BTreeMap<&'static str, usize>,
}

impl Miner {
    /// What lies in a directory of `licensed` is left alone.
    pub fn new(
        wish: Wish,
        seed: u64,
        repository: String,
        license: String,
        secrets: Secrets,
        licensed: Vec<String>,
    ) -> Self {
        Miner {
            licensed,
            wish,
            seed,
            repository,
            license,
            secrets,
            cases: Vec::new(),
            per_path: HashMap::new(),
            known: HashSet::new(),
            ids: HashSet::new(),
            left_out: BTreeMap::new(),
        }
    }

    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    pub fn into_cases(self) -> Vec<Case> {
        self.cases
    }

    /// Where a change comes in the seeded order.
    pub fn rank(&self, change: &Change) -> [u8; 32] {
        self.hash(&[&change.commit, &change.path])
    }

    /// Whether a path is of a kind that is wanted, before its contents are read.
    pub fn wants(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let extension = name.rsplit_once('.').map_or(name, |(_, extension)| extension).to_lowercase();
        let wanted = self.wish.extensions.is_empty() || self.wish.extensions.contains(&extension);
        let full = self.per_path.get(path).is_some_and(|count| *count >= self.wish.per_file);
        let plain = check_path(path).is_ok() && !is_credential(name);
        wanted
            && plain
            && !full
            && !is_generated(path)
            && !self.elsewhere(path)
            && path.chars().all(|c| c.is_ascii_graphic() && c != '`')
    }

    /// Whether a path lies below a directory that has a licence file of its own.
    fn elsewhere(&self, path: &str) -> bool {
        self.licensed.iter().any(|directory| path.starts_with(directory.as_str()))
    }

    /// Takes one case, at most, from a change of a file.
    pub fn take(&mut self, change: &Change, before: &[u8], after: &[u8]) {
        match self.case_of(change, before, after) {
            Ok(case) => {
                *self.per_path.entry(change.path.clone()).or_default() += 1;
                self.ids.insert(case.id.clone());
                self.cases.push(case);
            }
            Err(why) => *self.left_out.entry(why).or_default() += 1,
        }
    }

    fn case_of(&mut self, change: &Change, before: &[u8], after: &[u8]) -> Result<Case, &'static str> {
        if !is_text(before) || !is_text(after) {
            return Err("not text");
        }
        let (body, mark) = without_bom(before);
        let (new_body, _) = without_bom(after);
        let old: Vec<Line<'_>> = lines(body, LineModel::Lm3).collect();
        let new: Vec<Line<'_>> = lines(new_body, LineModel::Lm3).collect();
        if !self.wish.lines.contains(&old.len()) {
            return Err("another size");
        }
        if old.iter().chain(&new).any(|line| line.text.len() > MAX_LINE) {
            return Err("long lines");
        }
        let mut places: Vec<Hunk> = hunks(&keys(&old), &keys(&new))
            .into_iter()
            .filter(|place| place.old.len().max(place.new.len()) <= self.wish.changed)
            .filter(|place| self.wish.shapes.contains(&Shape::of(place)))
            .collect();
        if places.is_empty() {
            return Err("another shape");
        }
        // One place of the change, alone: the rest of the file stays as it was before.
        places.sort_by_key(|place| {
            self.hash(&[&change.commit, &change.path, &format!("{} {}", place.old.start, place.new.start)])
        });
        if self.secrets.found(before) || self.secrets.found(after) {
            return Err("perhaps a secret, an address, or another licence");
        }
        let mut why = "not determined";
        for place in &places {
            let expected = [&before[..mark], &spliced(&old, &new, place)].concat();
            match self.built(change, before, &expected, &old, &new, place) {
                Ok(case) => return Ok(case),
                Err(reason) => why = reason,
            }
        }
        Err(why)
    }

    fn built(
        &mut self,
        change: &Change,
        before: &[u8],
        expected: &[u8],
        old: &[Line<'_>],
        new: &[Line<'_>],
        place: &Hunk,
    ) -> Result<Case, &'static str> {
        let blank = |lines: &[Line<'_>]| lines.iter().all(|line| line.text.trim_ascii().is_empty());
        if blank(&old[place.old.clone()]) && blank(&new[place.new.clone()]) {
            return Err("only blank lines");
        }
        let mut key = Vec::new();
        for line in old[place.old.clone()].iter().chain([&SEPARATOR]).chain(&new[place.new.clone()]) {
            key.extend_from_slice(line.text.trim_ascii());
            key.push(b'\n');
        }
        if self.known.contains(&key) {
            return Err("the same change again");
        }
        let ways = [Way::Line, Way::Find, Way::LineAndFind];
        let way = ways[usize::from(self.hash(&["way", &change.commit, &change.path])[0]) % ways.len()];
        let described = describe(&change.path, before, expected, way).map_err(|_| "not determined")?;
        let shape = Shape::of(place);
        if described.shapes != [shape] {
            return Err("not determined");
        }
        let mut tags = vec![shape.name().to_owned()];
        if old.iter().any(|line| line.ending == Ending::CrLf) {
            tags.push("crlf".to_owned());
        }
        let node = |bytes: &[u8]| Node::File { bytes: bytes.into(), mode: DEFAULT_MODE };
        let case = Case {
            id: self.id(change, place),
            tags,
            task: described.task,
            files: [(change.path.clone(), node(before))].into_iter().collect(),
            accepted: vec![BTreeMap::from([(change.path.clone(), Some(node(expected)))])],
            target: described.target,
            source: Some(Source {
                repository: self.repository.clone(),
                commit: change.commit.clone(),
                path: change.path.clone(),
                license: self.license.clone(),
            }),
            ..Case::default()
        };
        if case.target.is_none() || !task::faults_of_plain_words(&case).is_empty() {
            return Err("not determined");
        }
        self.known.insert(key);
        Ok(case)
    }

    /// From the file's name, the commit and the place.
    fn id(&self, change: &Change, place: &Hunk) -> String {
        let name = change.path.rsplit('/').next().unwrap_or(&change.path);
        let slug: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
        let slug = slug.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
        let short: String = change.commit.chars().take(8).collect();
        let id = format!("{slug}-{short}-{}", place.old.start + 1);
        if self.ids.contains(&id) {
            let more: String = crate::chat::hex(&Sha256::digest(change.path.as_bytes())).chars().take(6).collect();
            return format!("{id}-{more}");
        }
        id
    }

    fn hash(&self, parts: &[&str]) -> [u8; 32] {
        let mut hasher = Sha256::new();
        hasher.update(self.seed.to_le_bytes());
        for part in parts {
            crate::chat::feed_part(&mut hasher, part.as_bytes());
        }
        hasher.finalize().into()
    }
}

const SEPARATOR: Line<'static> = Line { start: 0, text: b"\0", ending: Ending::None };

/// The lines before with one place as it is after.
fn spliced(old: &[Line<'_>], new: &[Line<'_>], place: &Hunk) -> Vec<u8> {
    let parts = old[..place.old.start].iter().chain(&new[place.new.clone()]).chain(&old[place.old.end..]);
    parts.flat_map(|line| [line.text, line.ending.bytes()]).flatten().copied().collect()
}

/// Files that are there to hold secrets.
fn is_credential(name: &str) -> bool {
    let name = name.to_lowercase();
    let starts = [
        ".env",
        "id_rsa",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".htpasswd",
        "credentials",
    ];
    starts.iter().any(|start| name.starts_with(start))
}

/// Files that nobody edits by hand.
fn is_generated(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    let directories =
        ["vendor", "node_modules", "third_party", "dist", "build", "target", "__snapshots__", "generated"];
    let names = ["package-lock.json", "yarn.lock", "pnpm-lock.yaml", "go.sum", "authors", "contributors"];
    path.split('/').any(|part| directories.contains(&part))
        || names.contains(&name.as_str())
        || [".lock", ".min.js", ".min.css", ".map", ".snap", ".svg", ".pem", ".key"]
            .iter()
            .any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn miner() -> Miner {
        let wish = Wish { shapes: Shape::ALL.to_vec(), lines: 2..=50, changed: 3, per_file: 2, extensions: vec![] };
        Miner::new(
            wish,
            7,
            "r".into(),
            "MIT".into(),
            Secrets::new(&["MIT".to_owned()]).unwrap(),
            vec!["lib/".to_owned()],
        )
    }

    fn change(path: &str) -> Change {
        Change { commit: "0123456789abcdef".into(), path: path.into(), before: "b".into(), after: "a".into() }
    }

    #[test]
    fn one_place_of_a_change_becomes_a_case_that_is_right_in_itself() {
        let mut miner = miner();
        let before = "alpha\nbeta\ngamma\ndelta\nepsilon\nzeta\n";
        miner.take(
            &change("a/x.txt"),
            before.as_bytes(),
            before.replace("beta", "BETA").replace("zeta\n", "").as_bytes(),
        );
        let [case] = miner.cases() else { panic!("{:?}", miner.left_out) };
        assert!(case.id.starts_with("x-txt-01234567-"), "{}", case.id);
        assert_eq!(task::faults(case), Vec::<String>::new());
        let expected = &case.accepted_from(&case.files)[0];
        let target = case.target.as_ref().unwrap();
        assert_eq!(target.gives(before.as_bytes(), before.as_bytes()).unwrap(), expected.bytes("a/x.txt").unwrap());
    }

    #[test]
    fn what_is_not_fit_is_left_out_and_told() {
        let mut miner = miner();
        let mut take =
            |path: &str, before: &str, after: &str| miner.take(&change(path), before.as_bytes(), after.as_bytes());
        take("a", "x\nx\n", "x\ny\n");
        take("b", "one\ntwo\n", "one\nthree\n");
        take("c", "one\ntwo\nfour\n", "one\nthree\nfour\n");
        take("d", "x\0\n1\n", "y\n");
        take("e", "1\n", "2\n");
        take("f", "pass\nword = AKIAIOSFODNN7EXAMPLE\n", "pass\nword\n");
        take("g", "a\nb\nc\n", "w\nx\ny\nz\n");
        let told: Vec<(&str, usize)> = miner.left_out.iter().map(|(why, count)| (*why, *count)).collect();
        assert_eq!(
            told,
            [
                ("another shape", 1),
                ("another size", 1),
                ("not determined", 1),
                ("not text", 1),
                ("perhaps a secret, an address, or another licence", 1),
                ("the same change again", 1)
            ]
        );
        assert_eq!(miner.cases().len(), 1);
        assert!(
            !miner.wants("../x.c") && !miner.wants("/x.c") && !miner.wants("lib/x.c") && !miner.wants("a/.env.test")
        );
        assert!(!miner.wants("vendor/x.c") && !miner.wants("a/Cargo.lock") && miner.wants("src/a.rs"));
    }
}
