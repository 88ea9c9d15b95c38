//! Which verdict and class: the rules of `classes.md`, the first that applies.

use super::class::{Class, ErrorClass, Flag, Limit, Verdict};
use super::{relax, wrong};
use crate::case::Tree;
use crate::tool::{Kind, Note};

/// What is known when an attempt has ended.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The files as the harness left them.
    pub before: &'a Tree,
    pub accepted: &'a [Tree],
    pub actual: &'a Tree,
    pub calls: &'a [CallSeen],
    /// Why it was cut, if it did not come to its own end.
    pub end: Option<End>,
    /// The answer outside thought holds a call of an offered tool as text.
    pub text_call: bool,
    /// The provider marked the answer as a refusal or filtered it.
    pub declined: bool,
}

/// A call, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSeen {
    /// Of a tool that can write, or of one that was not offered.
    pub edit: bool,
    pub ok: bool,
    pub kind: Option<Kind>,
    pub notes: Vec<Note>,
}

/// How a conversation was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Limit(Limit),
    Error(ErrorClass),
}

/// The judgement on one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Score {
    pub class: Class,
    /// A failed attempt left the tree changed.
    pub harm: bool,
    /// Sorted; empty unless it failed.
    pub diagnosis: Vec<Flag>,
    /// Relaxations under which a failed attempt would be right; never a pass.
    pub would_pass: Vec<relax::Relaxation>,
}

impl Score {
    pub fn verdict(&self) -> Verdict {
        self.class.verdict()
    }

    fn plain(class: Class) -> Self {
        Score { class, harm: false, diagnosis: Vec::new(), would_pass: Vec::new() }
    }
}

/// Judges an attempt.
pub fn classify(evidence: &Evidence<'_>) -> Score {
    if let Some(End::Error(class)) = evidence.end {
        return Score::plain(Class::Error(class));
    }
    if evidence.calls.iter().any(|call| call.kind == Some(Kind::Io)) {
        return Score::plain(Class::Error(ErrorClass::Harness));
    }
    if evidence.accepted.contains(evidence.actual) {
        return Score::plain(pass(evidence));
    }
    let Some(expected) = evidence.accepted.first() else {
        return Score::plain(Class::Error(ErrorClass::Harness));
    };
    let (wrong, mut diagnosis) = if evidence.actual == evidence.before {
        (None, vec![Flag::Unchanged])
    } else {
        let (wrong, flags) = wrong::diagnose(evidence.before, expected, evidence.actual);
        (Some(wrong), flags)
    };
    diagnosis.sort();
    diagnosis.dedup();
    let class = match (evidence.end, wrong) {
        (Some(End::Limit(limit)), _) => Class::Limit(limit),
        (_, Some(wrong)) => Class::Wrong(wrong),
        (_, None) => untouched(evidence),
    };
    Score { class, harm: wrong.is_some(), diagnosis, would_pass: relax::would_pass(evidence.accepted, evidence.actual) }
}

fn pass(evidence: &Evidence<'_>) -> Class {
    if evidence.actual == evidence.before {
        return Class::PassUntouched;
    }
    let assisted =
        evidence.calls.iter().any(|call| call.edit && call.ok && call.notes.iter().any(|note| note.is_leniency()));
    if assisted {
        return Class::PassAssisted;
    }
    if evidence.calls.iter().any(|call| !call.ok) { Class::PassRecovered } else { Class::PassFirst }
}

/// The tree is as before: the last edit call decides, or that there was none.
fn untouched(evidence: &Evidence<'_>) -> Class {
    match evidence.calls.iter().rev().find(|call| call.edit) {
        Some(CallSeen { ok: false, kind: Some(kind), .. }) => Class::of_refusal(*kind),
        Some(_) => Class::NoEffect,
        None if evidence.declined => Class::Declined,
        None if evidence.text_call => Class::TextCall,
        None => Class::NoCall,
    }
}
