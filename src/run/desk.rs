//! The workspace of an attempt as the harness keeps it: files that change under the model, and the calls of one who knows.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::rc::Rc;

use serde_json::Value;

use crate::case::{Case, Moment, Tree};
use crate::chat::{Arguments, Arrival, Call};
use crate::tool::{EditTool, Planned as PlannedCall, Session};
use crate::workspace::snapshot;

/// The workspace of the attempt and what the harness did to it.
pub(super) struct Desk<'a> {
    pub(super) case: &'a Case,
    pub(super) root: &'a Path,
    pub(super) session: Box<dyn Session>,
    /// The files as the harness left them.
    pub(super) base: Rc<RefCell<Tree>>,
    reads: usize,
    calls: usize,
    /// Rewrites that have happened, by their place in the case.
    done: BTreeSet<usize>,
}

impl<'a> Desk<'a> {
    pub(super) fn new(case: &'a Case, root: &'a Path, session: Box<dyn Session>) -> Self {
        Desk {
            case,
            root,
            session,
            base: Rc::new(RefCell::new(case.files.clone())),
            reads: 0,
            calls: 0,
            done: BTreeSet::new(),
        }
    }

    /// Before a call: the first read's moment comes with a blind edit at the latest, so that a model that edits without
    /// reading meets the same files as one that reads.
    pub(super) fn before(&mut self, edit: bool) -> io::Result<()> {
        if edit && self.reads == 0 { self.rewrite(Moment::Read, 1) } else { Ok(()) }
    }

    /// After a call: counts it, and rewrites files where the case says so.
    pub(super) fn after(&mut self, edit: bool, ok: bool) -> io::Result<()> {
        match (edit, ok) {
            (true, _) => {
                self.calls += 1;
                self.rewrite(Moment::Call, self.calls)
            }
            (false, true) => {
                self.reads += 1;
                self.rewrite(Moment::Read, self.reads)
            }
            (false, false) => Ok(()),
        }
    }

    /// Each rewrite happens once.
    fn rewrite(&mut self, moment: Moment, nth: usize) -> io::Result<()> {
        for (index, rewrite) in self.case.then.iter().enumerate() {
            if rewrite.after != moment || rewrite.nth != nth || !self.done.insert(index) {
                continue;
            }
            for (path, node) in &rewrite.files {
                snapshot::put(self.root, path, node)?;
            }
            self.base.borrow_mut().apply(rewrite.files.iter().map(|(path, node)| (path, Some(node))));
        }
        Ok(())
    }
}

pub(super) fn as_call(planned: &PlannedCall, id: String) -> Call {
    Call {
        id,
        name: planned.function.clone(),
        arguments: Arguments::Object { text: Value::Object(planned.arguments.clone()).to_string() },
        arrival: Arrival::Native,
    }
}

/// Reads of the files that are to change, for the oracle; none where the conversation opens with them.
pub(super) fn reads(case: &Case, tool: &dyn EditTool) -> Vec<Call> {
    let base = case.final_base();
    let Some(expected) = case.accepted_from(&base).into_iter().next() else {
        return Vec::new();
    };
    base.changed_paths(&expected)
        .iter()
        .filter(|path| case.files.bytes(path).is_some() && !case.seen.contains_key(*path))
        .enumerate()
        .map(|(number, path)| as_call(&tool.read_call(path), format!("read{:05}", number + 1)))
        .collect()
}

/// The calls that are still to be made, in the tool's own terms.
pub(super) fn solve(case: &Case, tool: &dyn EditTool, root: &Path, base: &Tree) -> Result<Vec<Call>, String> {
    let current = snapshot::take(root).map_err(|error| format!("cannot read the workspace: {error}"))?;
    let expected = case.accepted_from(base).into_iter().next().unwrap_or_default();
    let calls = tool.express(&current, &expected)?;
    Ok(calls.iter().enumerate().map(|(number, call)| as_call(call, format!("edit{:05}", number + 1))).collect())
}
