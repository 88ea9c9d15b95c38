//! The exit codes, as documented: what a script may rely on.

use std::fmt;
use std::process::ExitCode;

/// Why the program ended. 4 goes before 100 and 101: no pass rate is judged over a thin sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Gate passed, or nothing to gate.
    Passed = 0,
    /// A fault of editgate itself.
    Internal = 1,
    /// Usage, config or case-set error; a floor that cannot be compared.
    Usage = 2,
    /// No case matched.
    NothingMatched = 3,
    /// Errors over the allowance, attempts without a result, a server that cannot be reached.
    Incomplete = 4,
    /// Output could not be written.
    Unwritable = 5,
    /// Below a floor.
    BelowFloor = 100,
    /// `replay`: attempts that passed as they were recorded no longer do. `compare`, `--against`: significantly worse.
    Regressed = 101,
    /// Neither better nor worse can be told, and `--strict` asked for an answer.
    Inconclusive = 102,
    /// Stopped by the user.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// An error with the exit code it ends the program with.
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    pub error: anyhow::Error,
}

impl Failure {
    pub fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Failure { exit, error: error.into() }
    }

    pub fn usage(error: impl Into<anyhow::Error>) -> Self {
        Failure::new(Exit::Usage, error)
    }

    pub fn unwritable(error: impl Into<anyhow::Error>) -> Self {
        Failure::new(Exit::Unwritable, error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:#}", self.error)
    }
}
