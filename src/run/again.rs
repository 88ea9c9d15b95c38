//! Recorded answers against today's tools: what came of each attempt then and now.

use crate::model::recording::CameTo;
use crate::record::Row;
use crate::score::Verdict;

/// How an attempt compares with its recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// It passed, and the recorded answers no longer lead to a pass.
    Broken,
    /// It did not pass, and now the recorded answers do.
    Fixed,
    /// The same verdict, but the model would have been told something else on the way: what it would have done is unknown.
    Diverged,
    Unchanged,
    /// It could not be carried out.
    Failed,
}

impl Change {
    pub const ALL: [Change; 5] = [Change::Broken, Change::Fixed, Change::Diverged, Change::Unchanged, Change::Failed];

    pub fn name(self) -> &'static str {
        match self {
            Change::Broken => "broken",
            Change::Fixed => "fixed",
            Change::Diverged => "diverged",
            Change::Unchanged => "unchanged",
            Change::Failed => "not carried out",
        }
    }
}

/// What became of an attempt, and whether it went another way than recorded.
pub fn change(then: &CameTo, now: &Row, diverged: bool) -> Change {
    let passed = then.class.starts_with("pass.");
    match now.verdict {
        Verdict::Error if !then.class.starts_with("error.") => Change::Failed,
        Verdict::Pass if !passed => Change::Fixed,
        Verdict::Pass => divergence(diverged),
        _ if passed => Change::Broken,
        _ => divergence(diverged),
    }
}

fn divergence(diverged: bool) -> Change {
    if diverged { Change::Diverged } else { Change::Unchanged }
}
