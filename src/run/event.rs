//! What the runner tells: one enum, and everything that listens to it.

use crate::case::Node;
use crate::record::journal::JournalError;
use crate::record::{Row, Transcript};

/// Something that happened in a run.
#[derive(Debug)]
pub enum Event<'a> {
    Started { set: &'a str, case: &'a str },
    Finished(&'a Finished),
}

/// An attempt that ended, or was skipped.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Place in the order of the plan.
    pub index: usize,
    pub row: Row,
    pub transcript: Transcript,
    /// Files that a failed attempt left changed.
    pub leftovers: Vec<(String, Node)>,
}

/// Listens to a run.
pub trait Consumer {
    /// # Errors
    /// Ends the run: what cannot be recorded must not go on.
    fn take(&mut self, event: &Event<'_>) -> Result<(), JournalError>;
}
