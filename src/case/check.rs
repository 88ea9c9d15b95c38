//! Is a set fit to be measured with? What can be seen of its cases without running anything.

use std::collections::{BTreeMap, HashMap};
use std::fs;

use walkdir::WalkDir;

use super::fixtures::Fixtures;
use super::load::Survey;
use super::place::{Step, offset_of, position_of};
use super::vary::vary;
use super::{Case, CaseError, CaseSet, task};

/// The subset that stands for its set, and so must have a case of each of its tags.
const STANDS_FOR_ALL: &str = "release";

/// Points at places in the files of sets.
#[derive(Debug, Default)]
pub struct Pointer {
    texts: HashMap<std::path::PathBuf, String>,
}

impl Pointer {
    /// A fault of a case, at the value of one of its keys.
    pub fn case_fault(&mut self, set: &CaseSet, case: &Case, key: &str, message: impl std::fmt::Display) -> CaseError {
        let text = self.text(set);
        let index = index_of(text, &case.id);
        let steps = [Step::Key("cases"), Step::Index(index), Step::Key(key)];
        let position = offset_of(text, &steps).map(|offset| position_of(text, offset));
        CaseError { file: set.file.clone(), position, message: format!("case `{}`: {message}", case.id) }
    }

    /// A fault of a set, at a value of its file.
    pub fn set_fault(&mut self, set: &CaseSet, steps: &[Step<'_>], message: String) -> CaseError {
        let text = self.text(set);
        let position = offset_of(text, steps).map(|offset| position_of(text, offset));
        CaseError { file: set.file.clone(), position, message }
    }

    fn text(&mut self, set: &CaseSet) -> &str {
        self.texts.entry(set.file.clone()).or_insert_with(|| fs::read_to_string(&set.file).unwrap_or_default())
    }
}

/// The place of a case in its file's list: other entries may be broken, so only the id is looked at.
fn index_of(text: &str, id: &str) -> usize {
    #[derive(serde::Deserialize)]
    struct Ids<'a> {
        #[serde(borrow)]
        cases: Vec<&'a serde_json::value::RawValue>,
    }
    #[derive(serde::Deserialize)]
    struct Id {
        id: String,
    }
    let cases =
        serde_json::from_str::<Ids<'_>>(text.trim_start_matches('\u{FEFF}')).map_or(Vec::new(), |ids| ids.cases);
    let same =
        |raw: &&serde_json::value::RawValue| serde_json::from_str::<Id>(raw.get()).is_ok_and(|entry| entry.id == id);
    cases.iter().position(same).unwrap_or(0)
}

/// All faults beyond those of loading: tags, tag cover of `release`, words of tasks, targets, variants, cases that are
/// there twice, fixtures that no case reads.
pub fn faults(survey: &Survey, pointer: &mut Pointer) -> Vec<CaseError> {
    let mut faults = Vec::new();
    for set in &survey.sets {
        cover(set, pointer, &mut faults);
        for case in &set.cases {
            of_case(set, case, pointer, &mut faults);
        }
    }
    twins(&survey.sets, pointer, &mut faults);
    // Of a set with a case that could not be read, it is not known which fixtures are read.
    let whole = survey.sets.iter().filter(|set| !survey.faults.iter().any(|fault| fault.file == set.file));
    faults.extend(orphans(whole, &survey.fixtures));
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
    if case.tags.is_empty() {
        faults.push(pointer.case_fault(set, case, "tags", "no tag says what shape it is"));
    }
    for fault in task::faults(case) {
        faults.push(pointer.case_fault(set, case, "task", fault));
    }
    // With no rewrite under way, doing nothing leaves the files as they are first.
    if !case.may_stay() && case.accepted_from(&case.files).contains(&case.files) {
        faults.push(pointer.case_fault(
            set,
            case,
            "expect",
            "doing nothing would pass, and it does not say that it may",
        ));
    }
    if let Some(why) = contradiction(case) {
        faults.push(pointer.case_fault(set, case, "target", why));
    }
    if let Some(why) = broken_variant(set, case) {
        faults.push(pointer.case_fault(set, case, "variant", why));
    }
}

/// Why a target does not say the edit that is expected.
pub fn contradiction(case: &Case) -> Option<String> {
    let target = case.target.as_ref()?;
    let base = case.final_base();
    let accepted = case.accepted_from(&base);
    let current = base.bytes(&target.path)?;
    match target.gives(case.as_read(&target.path).unwrap_or(current), current) {
        Err(why) => Some(format!("target: {why}")),
        Ok(bytes) if accepted.iter().any(|tree| tree.bytes(&target.path) == Some(bytes.as_slice())) => None,
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
                && derived.target == case.target;
            (!same).then(|| format!("variant: it is not what `{}` gives; derive it again (cases vary)", variant.of))
        }
    }
}

/// Cases that ask the same of the same files count twice.
fn twins(sets: &[CaseSet], pointer: &mut Pointer, faults: &mut Vec<CaseError>) {
    let mut known: HashMap<String, (&CaseSet, &Case)> = HashMap::new();
    for set in sets {
        // A set of variants repeats its originals on purpose.
        let varied = set.cases.iter().any(|case| case.variant.is_some());
        for case in set.cases.iter().filter(|_| !varied) {
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
