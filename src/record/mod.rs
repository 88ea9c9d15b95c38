//! What a run leaves on disk: the run file, a row and a transcript an attempt, leftovers of failed ones.

pub mod history;
pub mod journal;
pub mod kept;
pub mod load;
pub mod recorded;
pub mod row;
pub mod run_file;
pub mod transcript;

pub use journal::Journal;
pub use load::{LoadError, RunRecord, load};
pub use row::{CallRow, Detail, Digests, Row};
pub use run_file::{CellPlan, RunFile, Source, Status, Totals};
pub use transcript::{Transcript, TurnRecord};
