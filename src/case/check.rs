//! Is a set fit to be measured with? What can be seen of its cases without running anything.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use serde_json::value::RawValue;
use walkdir::WalkDir;

use super::fixtures::Fixtures;
use super::load::{NAME_RULE, Survey, is_name};
use super::place::{Step, offset_in, offset_of, position_at, position_of};
use super::vary::vary;
use super::{Case, CaseError, CaseSet, task};

/// The subset that stands for its set, and so must have a case of each of its tags.
const STANDS_FOR_ALL: &str = "release";

/// Points at places in the files of sets; each file is read once.
#[derive(Debug, Default)]
pub struct Pointer {
    files: HashMap<PathBuf, Placed>,
}

/// A set's file, and where the entry of each case stands in it.
#[derive(Debug)]
struct Placed {
    text: String,
    cases: HashMap<String, Range<usize>>,
}

impl Pointer {
    /// A fault of a case, at the value of one of its keys.
    pub fn case_fault(&mut self, set: &CaseSet, case: &Case, key: &str, message: impl std::fmt::Display) -> CaseError {
        let Placed { text, cases } = self.file(set);
        let position = cases.get(&case.id).and_then(|range| {
            let within = offset_of(text.get(range.clone())?, &[Step::Key(key)])?;
            Some(position_of(text, range.start + within))
        });
        CaseError { file: set.file.clone(), position, message: format!("case `{}`: {message}", case.id) }
    }

    /// A fault of a set, at a value of its file.
    pub fn set_fault(&mut self, set: &CaseSet, steps: &[Step<'_>], message: String) -> CaseError {
        let position = position_at(&self.file(set).text, steps);
        CaseError { file: set.file.clone(), position, message }
    }

    fn file(&mut self, set: &CaseSet) -> &Placed {
        self.files.entry(set.file.clone()).or_insert_with(|| {
            let text = fs::read_to_string(&set.file).unwrap_or_default().trim_start_matches('\u{FEFF}').to_owned();
            let cases = places_of(&text);
            Placed { text, cases }
        })
    }
}

/// Where the entries of cases stand. Other entries may be broken, so only the ids are looked at.
fn places_of(text: &str) -> HashMap<String, Range<usize>> {
    #[derive(serde::Deserialize)]
    struct Entries<'a> {
        #[serde(borrow)]
        cases: Vec<&'a RawValue>,
    }
    #[derive(serde::Deserialize)]
    struct Id {
        id: String,
    }
    let entries = serde_json::from_str::<Entries<'_>>(text).map_or(Vec::new(), |entries| entries.cases);
    let place = |raw: &&RawValue| {
        let entry = raw.get();
        let start = offset_in(text, entry);
        Some((serde_json::from_str::<Id>(entry).ok()?.id, start..start + entry.len()))
    };
    // Of an id that is there twice the first one was read.
    entries.iter().rev().filter_map(place).collect()
}

/// All faults beyond those of loading: tags, tag cover of `release`, words of tasks, targets, variants, cases that are
/// there twice, fixtures that no case reads.
pub fn faults(survey: &Survey, pointer: &mut Pointer) -> Vec<CaseError> {
    let mut faults = Vec::new();
    let whole = |set: &&CaseSet| !survey.faults.iter().any(|fault| fault.file == set.file);
    for set in &survey.sets {
        // A case that could not be read may be the one that covers a tag.
        if whole(&set) {
            cover(set, pointer, &mut faults);
        }
        for case in &set.cases {
            of_case(set, case, pointer, &mut faults);
        }
    }
    twins(&survey.sets, pointer, &mut faults);
    // Of a set with a case that could not be read, it is not known which fixtures are read.
    faults.extend(orphans(survey.sets.iter().filter(whole), &survey.fixtures));
    faults
}

fn cover(set: &CaseSet, pointer: &mut Pointer, faults: &mut Vec<CaseError>) {
    let Some(members) = set.subsets.get(STANDS_FOR_ALL) else {
        return;
    };
    let mut missing: BTreeMap<&str, usize> = BTreeMap::new();
    for tag in set.cases.iter().flat_map(|case| &case.tags) {
        *missing.entry(tag).or_default() += 1;
    }
    for case in set.cases.iter().filter(|case| members.contains(&case.id)) {
        case.tags.iter().for_each(|tag| {
            missing.remove(tag.as_str());
        });
    }
    for (tag, count) in missing {
        let steps = [Step::Key("subsets"), Step::Key(STANDS_FOR_ALL)];
        let message = format!("subset `{STANDS_FOR_ALL}` has no case of tag `{tag}`; the set has {count}");
        faults.push(pointer.set_fault(set, &steps, message));
    }
}

fn of_case(set: &CaseSet, case: &Case, pointer: &mut Pointer, faults: &mut Vec<CaseError>) {
    let variant = broken_variant(set, case).map(|why| ("variant", why));
    for (key, message) in faults_alone(case).into_iter().chain(variant) {
        faults.push(pointer.case_fault(set, case, key, message));
    }
}

/// What is wrong with a case by itself, each with the key that it stands under.
pub fn faults_alone(case: &Case) -> Vec<(&'static str, String)> {
    let mut faults = Vec::new();
    if case.tags.is_empty() {
        faults.push(("tags", "no tag says what shape it is".to_owned()));
    }
    for (index, tag) in case.tags.iter().enumerate() {
        if !is_name(tag) {
            faults.push(("tags", format!("tag `{tag}`: {NAME_RULE}")));
        }
        if case.tags[..index].contains(tag) {
            faults.push(("tags", format!("tag `{tag}` is there twice")));
        }
    }
    if let Some(rewrite) = case.then.iter().find(|rewrite| rewrite.files.is_empty()) {
        faults.push(("then", format!("then: nothing is written after {} {}", rewrite.after.name(), rewrite.nth)));
    }
    faults.extend(task::faults(case).into_iter().map(|fault| ("task", fault)));
    // With no rewrite under way, doing nothing leaves the files as they are first.
    if !case.may_stay() && case.accepted_from(&case.files).contains(&case.files) {
        faults.push(("expect", "doing nothing would pass, and it does not say that it may".to_owned()));
    }
    faults.extend(contradiction(case).map(|why| ("target", why)));
    faults
}

/// Why a target does not say the edit that is expected.
pub fn contradiction(case: &Case) -> Option<String> {
    let target = case.target.as_ref()?;
    let base = case.final_base();
    let accepted = case.accepted_from(&base);
    let current = base.bytes(&target.path)?;
    let mut edits = accepted.iter().filter(|tree| **tree != base);
    if let Some(expected) = edits.clone().next() {
        let others = base.changed_paths(expected).into_iter().find(|path| *path != target.path);
        if let Some(other) = others {
            return Some(format!("target: it says nothing of {other}, which changes too; leave the target out"));
        }
    }
    match target.gives(case.as_read(&target.path).unwrap_or(current), current) {
        Err(why) => Some(format!("target: {why}")),
        Ok(bytes) if edits.any(|tree| tree.bytes(&target.path) == Some(bytes.as_slice())) => None,
        Ok(_) => Some(format!("target: it does not give the bytes of {} that are expected", target.path)),
    }
}

/// Why a variant is not what its original gives.
fn broken_variant(set: &CaseSet, case: &Case) -> Option<String> {
    let variant = case.variant.as_ref()?;
    let Some(original) = set.cases.iter().find(|other| other.id == variant.of) else {
        return Some(format!("variant: the set has no case `{}`", variant.of));
    };
    match vary(original, variant.bytes) {
        Err(why) => Some(format!("variant: `{}` has none in {}: {why}", variant.of, variant.bytes.name())),
        Ok(derived) => {
            let same = derived.files == case.files
                && derived.accepted == case.accepted
                && derived.seen == case.seen
                && derived.then == case.then
                && derived.task == case.task
                && derived.outside == case.outside
                && derived.target == case.target;
            (!same).then(|| format!("variant: it is not what `{}` gives; derive it again (cases vary)", variant.of))
        }
    }
}

/// Cases that ask the same of the same files count twice.
fn twins(sets: &[CaseSet], pointer: &mut Pointer, faults: &mut Vec<CaseError>) {
    let mut known: HashMap<String, (&CaseSet, &Case)> = HashMap::new();
    for set in sets {
        // A set of variants repeats their originals on purpose.
        let originals: HashSet<&str> =
            set.cases.iter().filter_map(|case| Some(case.variant.as_ref()?.of.as_str())).collect();
        for case in set.cases.iter().filter(|case| !originals.contains(case.id.as_str())) {
            let contents = super::digest::of_contents(case);
            if let Some((other_set, other)) = known.insert(contents, (set, case)) {
                let message = format!("the same files, task and outcome as `{}` of set `{}`", other.id, other_set.name);
                faults.push(pointer.case_fault(set, case, "id", message));
            }
        }
    }
}

/// Files under `fixtures/SET/`, of the sets that are there, that no case reads.
fn orphans<'a>(sets: impl Iterator<Item = &'a CaseSet>, fixtures: &Fixtures) -> Vec<CaseError> {
    let mut faults = Vec::new();
    for set in sets {
        let directory = fixtures.root().join(&set.name);
        for entry in WalkDir::new(&directory).sort_by_file_name().into_iter().filter_map(Result::ok) {
            let Ok(path) = entry.path().strip_prefix(fixtures.root()) else {
                continue;
            };
            if !entry.file_type().is_dir() && !fixtures.was_read(&path.to_string_lossy()) {
                faults.push(CaseError {
                    file: entry.path().to_owned(),
                    position: None,
                    message: "no case reads this fixture; delete it, or name it in a case".to_owned(),
                });
            }
        }
    }
    faults
}
