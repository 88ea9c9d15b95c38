//! From what was collected in a conversation to its row, transcript and leftovers.

use super::attempt::{Ended, Talk, Trees};
use super::event::Finished;
use crate::case::{Node, Target, Tree};
use crate::chat::{Finish, Usage};
use crate::model::text_calls;
use crate::record::journal::leftovers;
use crate::record::kept::kept;
use crate::record::{Detail, Digests, Row, Transcript};
use crate::score::conduct::{self, Conducted};
use crate::score::{CallSeen, Class, End, ErrorClass, Evidence, Score, Verdict, classify};
use crate::text::{diff, visible};
use crate::tool::{Kind, Note};

/// Lines and characters of the texts that a report shows of a failed attempt.
const DIFF_LINES: usize = 40;
const DIFF_WIDTH: usize = 200;
const TEXT: usize = 500;

impl Talk<'_> {
    pub(super) fn finish(self, ended: Ended) -> Finished {
        let key = self.planned.key();
        let case = self.planned.case;
        let (score, error, trees) = match ended {
            Ended::Judged { trees, end } => {
                let score = self.score(&trees, end.as_ref().map(|(end, _)| *end));
                (score, end.map(|(_, why)| why), Some(trees))
            }
            Ended::Harness(why) => (plain(Class::Error(ErrorClass::Harness)), Some(why), None),
            Ended::Skipped(skip, why) => (plain(Class::Skipped(skip)), Some(why), None),
        };
        let io = self.calls.iter().any(|(_, call)| call.kind == Some(Kind::Io));
        let error = error.or_else(|| if io { self.last_error.clone() } else { None });
        let failed = score.verdict() == Verdict::Fail;
        let detail = match &trees {
            Some(trees) if failed => Some(self.detail(trees)),
            _ => None,
        };
        let left = match &trees {
            Some(trees) if failed => leftovers(&trees.before, &trees.actual),
            _ => Vec::new(),
        };
        let files = match &trees {
            Some(trees) if failed => {
                kept(&trees.before, trees.accepted.first().unwrap_or(&trees.before), &trees.actual)
            }
            _ => Vec::new(),
        };
        let row = Row {
            case: case.id.clone(),
            set: key.set.clone(),
            subset: self.planned.cell.subset.clone(),
            tags: self.tags(),
            split: Some(case.split()),
            variant: case.variant.clone(),
            model: self.planned.cell.model.clone(),
            tool: key.tool.clone(),
            prompt: key.prompt.clone(),
            repeat: key.repeat,
            verdict: score.verdict(),
            class: score.class.name(),
            harm: score.harm,
            diagnosis: score.diagnosis,
            would_pass: score.would_pass,
            conduct: self.conduct(),
            turns: self.answers,
            usage: if self.answers == 0 { Usage::default() } else { self.usage },
            cost_usd: self.planned.price.filter(|_| self.answers > 0).and_then(|price| price.of(self.usage)),
            elapsed_ms: None,
            model_ms: (!self.turns.is_empty()).then_some(self.model_ms),
            first_byte_ms: self.first_byte_ms.filter(|_| !self.turns.is_empty()),
            retries: self.turns.iter().map(|turn| turn.retries.len()).sum(),
            dropped_params: self.dropped_params,
            digests: trees.map_or_else(Digests::default, |trees| Digests {
                before: Some(trees.before.digest()),
                expected: trees.accepted.first().map(Tree::digest),
                actual: Some(trees.actual.digest()),
            }),
            calls: self.calls.into_iter().map(|(_, call)| call).collect(),
            error,
            detail,
        };
        let transcript = Transcript {
            model: row.model.clone(),
            key,
            messages: self.messages,
            turns: self.turns,
            malformed: self.malformed,
            files,
        };
        Finished { index: self.planned.index, row, transcript, leftovers: left }
    }

    /// The case's tags, and with a directed prompt the way its target names the place.
    fn tags(&self) -> Vec<String> {
        let mut tags = self.planned.case.tags.clone();
        if self.settings.prompt == super::Prompt::Directed {
            tags.push(self.planned.case.target.as_ref().map_or("by-task", Target::way).to_owned());
        }
        tags
    }

    fn score(&self, trees: &Trees, end: Option<End>) -> Score {
        let calls: Vec<CallSeen> = self
            .calls
            .iter()
            .map(|(_, call)| CallSeen { edit: call.edit, ok: call.ok, kind: call.kind, notes: call.notes.clone() })
            .collect();
        classify(&Evidence {
            before: &trees.before,
            accepted: &trees.accepted,
            actual: &trees.actual,
            calls: &calls,
            end,
            text_call: self.last_answer.as_ref().is_some_and(|answer| text_calls::holds(&answer.text, self.offered())),
            declined: self.last_answer.as_ref().is_some_and(|answer| answer.finish == Finish::Refused),
        })
    }

    fn conduct(&self) -> Vec<Note> {
        let calls: Vec<Conducted<'_>> = self
            .calls
            .iter()
            .map(|(turn, call)| Conducted { turn: *turn, edit: call.edit, ok: call.ok, notes: &call.notes })
            .collect();
        let last = self.last_answer.as_ref();
        let asked = last.is_some_and(|answer| answer.calls.is_empty() && answer.text.trim_end().ends_with('?'));
        let in_thought = last.is_some_and(|answer| text_calls::holds(&answer.thought, self.offered()));
        conduct::flags(&calls, self.seen, asked, in_thought)
    }

    fn detail(&self, trees: &Trees) -> Detail {
        let bounded = |text: &str| text.chars().take(TEXT).collect::<String>();
        Detail {
            task: bounded(&self.planned.case.task),
            tool_error: self.last_error.as_deref().map(bounded),
            last_edit: self.last_edit.as_deref().map(bounded),
            answer: self.last_answer.as_ref().map(|answer| bounded(&answer.text)).unwrap_or_default(),
            diff: difference(trees),
        }
    }
}

fn plain(class: Class) -> Score {
    Score { class, harm: false, diagnosis: Vec::new(), would_pass: Vec::new() }
}

/// From the first accepted tree to the actual one, every byte visible.
fn difference(trees: &Trees) -> String {
    let Some(expected) = trees.accepted.first() else {
        return String::new();
    };
    let mut parts = Vec::new();
    for path in expected.changed_paths(&trees.actual) {
        let shown = visible::excerpt(&path, 120);
        let part = match (expected.get(&path), trees.actual.get(&path)) {
            (Some(Node::File { bytes: want, mode: wanted }), Some(Node::File { bytes: have, mode: had })) => {
                let mode =
                    if wanted == had { String::new() } else { format!(" (mode {had:04o} instead of {wanted:04o})") };
                format!("{shown}{mode}\n{}", diff::unified(want, have, 2, DIFF_LINES, DIFF_WIDTH))
            }
            (None, Some(Node::File { bytes, .. })) => {
                format!("{shown} should not be there\n{}", diff::unified(b"", bytes, 0, 6, DIFF_WIDTH))
            }
            (Some(_), None) => format!("{shown} is missing"),
            (None, Some(_)) => format!("{shown} should not be there"),
            _ => format!("{shown} is of another kind"),
        };
        parts.push(part);
        if parts.len() == 4 {
            break;
        }
    }
    parts.join("\n")
}
