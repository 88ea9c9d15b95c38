//! Which cases take part: by set, subset, id glob, tag, and limit.

use globset::{Glob, GlobMatcher};
use thiserror::Error;

use super::{Case, CaseSet, Split, digest};

/// What the user asked for. Empty lists ask for all.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    pub sets: Vec<String>,
    pub subset: Option<String>,
    pub cases: Vec<String>,
    pub tags: Vec<String>,
    pub exclude: Vec<String>,
    pub split: Option<Split>,
    pub limit: Option<usize>,
}

/// The chosen cases of one set, in the set's order.
#[derive(Clone, Debug)]
pub struct Selected<'a> {
    pub set: &'a CaseSet,
    pub subset: Option<String>,
    pub cases: Vec<&'a Case>,
    /// A filter left some of the set or subset out, so that no floor speaks of this selection.
    pub narrowed: bool,
}

impl Selected<'_> {
    /// Identity of the chosen cases.
    pub fn digest(&self) -> String {
        digest::of_cases(&self.set.name, self.cases.iter().copied())
    }
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum SelectError {
    #[error("unknown set `{name}`; there are: {}", known.join(", "))]
    UnknownSet { name: String, known: Vec<String> },
    #[error("unknown subset `{name}`; there are: {}", if known.is_empty() { "none".to_owned() } else { known.join(", ") })]
    UnknownSubset { name: String, known: Vec<String> },
    #[error("bad glob `{glob}`: {reason}")]
    BadGlob { glob: String, reason: String },
    #[error("no case matched {what}")]
    NothingMatched { what: String },
}

/// Selects from loaded sets.
///
/// # Errors
/// A name or glob that matches nothing is an error, never an empty run.
pub fn select<'a>(sets: &'a [CaseSet], selection: &Selection) -> Result<Vec<Selected<'a>>, SelectError> {
    for name in &selection.sets {
        if !sets.iter().any(|set| set.name == *name) {
            return Err(SelectError::UnknownSet {
                name: name.clone(),
                known: sets.iter().map(|set| set.name.clone()).collect(),
            });
        }
    }
    let sets: Vec<&CaseSet> =
        sets.iter().filter(|set| selection.sets.is_empty() || selection.sets.contains(&set.name)).collect();
    if let Some(subset) = &selection.subset {
        let lacking = |set: &&&CaseSet| !set.subsets.contains_key(subset);
        // Of sets named one by one each must have the subset; otherwise sets without it stay out.
        let bad = if selection.sets.is_empty() {
            sets.iter().all(|set| lacking(&set))
        } else {
            sets.iter().any(|set| lacking(&set))
        };
        if bad {
            let mut known: Vec<String> = sets.iter().flat_map(|set| set.subsets.keys().cloned()).collect();
            known.sort();
            known.dedup();
            return Err(SelectError::UnknownSubset { name: subset.clone(), known });
        }
    }
    let wanted = globs(&selection.cases)?;
    let unwanted = globs(&selection.exclude)?;
    let mut hits = vec![false; wanted.len()];
    let mut left = selection.limit.unwrap_or(usize::MAX);
    let mut out = Vec::new();
    for set in sets {
        let members = match &selection.subset {
            Some(subset) => match set.subsets.get(subset) {
                Some(members) => Some(members),
                None => continue,
            },
            None => None,
        };
        let mut narrowed = false;
        let mut cases = Vec::new();
        for case in &set.cases {
            if members.is_some_and(|members| !members.contains(&case.id)) {
                continue;
            }
            let mut named = wanted.is_empty();
            for (hit, glob) in hits.iter_mut().zip(&wanted) {
                if glob.is_match(&case.id) {
                    *hit = true;
                    named = true;
                }
            }
            let tagged = selection.tags.is_empty() || case.tags.iter().any(|tag| selection.tags.contains(tag));
            let of_split = selection.split.is_none_or(|split| case.split() == split);
            if !named || !tagged || !of_split || unwanted.iter().any(|glob| glob.is_match(&case.id)) || left == 0 {
                narrowed = true;
                continue;
            }
            left -= 1;
            cases.push(case);
        }
        if !cases.is_empty() {
            out.push(Selected { set, subset: selection.subset.clone(), cases, narrowed });
        }
    }
    let tags = |tag: &&String| !sets_of(&out).any(|case| case.tags.contains(tag));
    if let Some(tag) = selection.tags.iter().find(tags) {
        return Err(SelectError::NothingMatched { what: format!("--tag {tag}") });
    }
    if let Some((glob, _)) = selection.cases.iter().zip(&hits).find(|(_, hit)| !**hit) {
        return Err(SelectError::NothingMatched { what: format!("--case {glob}") });
    }
    if out.is_empty() {
        let what = "the selection".to_owned();
        return Err(SelectError::NothingMatched { what });
    }
    Ok(out)
}

fn sets_of<'a>(selected: &[Selected<'a>]) -> impl Iterator<Item = &'a Case> {
    selected.iter().flat_map(|chosen| chosen.cases.iter().copied()).collect::<Vec<_>>().into_iter()
}

fn globs(patterns: &[String]) -> Result<Vec<GlobMatcher>, SelectError> {
    patterns
        .iter()
        .map(|pattern| match Glob::new(pattern) {
            Ok(glob) => Ok(glob.compile_matcher()),
            Err(error) => Err(SelectError::BadGlob { glob: pattern.clone(), reason: error.kind().to_string() }),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn set(name: &str, ids: &[&str], release: &[&str]) -> CaseSet {
        let case = |id: &&str| Case { id: (*id).to_owned(), tags: vec![format!("tag-{id}")], ..Case::default() };
        let release: Vec<String> = release.iter().map(|id| (*id).to_owned()).collect();
        CaseSet {
            name: name.to_owned(),
            about: String::new(),
            file: "x.json".into(),
            subsets: if release.is_empty() {
                BTreeMap::new()
            } else {
                BTreeMap::from([("release".to_owned(), release)])
            },
            cases: ids.iter().map(case).collect(),
        }
    }

    fn chosen(sets: &[CaseSet], selection: Selection) -> Result<Vec<String>, SelectError> {
        Ok(select(sets, &selection)?
            .into_iter()
            .flat_map(|selected| selected.cases.into_iter().map(|case| case.id.clone()).collect::<Vec<_>>())
            .collect())
    }

    #[test]
    fn filters_combine_and_say_when_nothing_matches() {
        let sets = [set("one", &["a1", "a2", "b1"], &["a1", "b1"]), set("two", &["a3"], &[])];
        let all = Selection::default();
        assert_eq!(chosen(&sets, all.clone()).unwrap(), ["a1", "a2", "b1", "a3"]);
        let release = Selection { subset: Some("release".into()), ..all.clone() };
        assert_eq!(chosen(&sets, release.clone()).unwrap(), ["a1", "b1"]);
        assert!(!select(&sets, &release).unwrap()[0].narrowed);
        let globbed = Selection { cases: vec!["a*".into()], exclude: vec!["a2".into()], ..all.clone() };
        assert_eq!(chosen(&sets, globbed.clone()).unwrap(), ["a1", "a3"]);
        assert!(select(&sets, &globbed).unwrap()[0].narrowed);
        let limited = Selection { limit: Some(2), ..all.clone() };
        assert_eq!(chosen(&sets, limited).unwrap(), ["a1", "a2"]);
        let tagged = Selection { tags: vec!["tag-b1".into()], ..all.clone() };
        assert_eq!(chosen(&sets, tagged).unwrap(), ["b1"]);
        let nothing = Selection { cases: vec!["a*".into(), "z*".into()], ..all.clone() };
        assert_eq!(chosen(&sets, nothing).unwrap_err().to_string(), "no case matched --case z*");
        let unknown = Selection { sets: vec!["three".into()], ..all.clone() };
        assert_eq!(chosen(&sets, unknown).unwrap_err().to_string(), "unknown set `three`; there are: one, two");
        let lacking = Selection { sets: vec!["two".into()], subset: Some("release".into()), ..all };
        assert!(matches!(chosen(&sets, lacking), Err(SelectError::UnknownSubset { .. })));
    }
}
