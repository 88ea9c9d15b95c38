//! looprig's `EditFile`, `ReadFile` and `WriteFile`: an exact substring, guarded by what the session has read.
//!
//! Rules B1 to B15 and decisions BQ1 to BQ8 of the tool catalogue, after the seed document. A call is prepared (its
//! target resolved, its permissions named) and then run, as in the seed: [`prepare`] and [`run`]. The edit itself is
//! pure, in [`replace`].

mod express;
pub mod prepare;
mod preview;
pub mod replace;
pub mod run;

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

pub use self::prepare::{Permission, Prepared, Requirement};
use self::run::LooprigSession;
use super::args::{Args, Strictness};
use super::express::planned;
use super::{EditTool, Kind, Offered, Outcome, Planned, Refusal, Session, ToolError, function_from};
use crate::case::{Target, Tree};

const EDIT: &str = "EditFile";
const READ: &str = "ReadFile";
const WRITE: &str = "WriteFile";
/// B11: the largest file that `EditFile` edits, in bytes.
pub const MAX_EDIT: u64 = 1 << 20;
/// BQ2: bytes of a file that `ReadFile` shows where the session sets nothing else.
pub const READ_CAP: u64 = 256 << 10;
/// Characters of a path or text in an error.
const EXCERPT: usize = 200;

/// The tool, as the registry holds it.
#[derive(Debug)]
pub struct Looprig;

/// Settings of a session.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    #[serde(default)]
    arguments: Strictness,
    read_cap: Option<u64>,
    #[serde(default)]
    host_writes: bool,
    #[serde(default)]
    deny: Vec<Permission>,
}

impl EditTool for Looprig {
    fn name(&self) -> &'static str {
        EDIT
    }

    fn functions(&self) -> Vec<Offered> {
        vec![
            Offered { function: function_from(include_str!("edit_file.json")), edits: true },
            Offered { function: function_from(include_str!("read_file.json")), edits: false },
            Offered { function: function_from(include_str!("write_file.json")), edits: true },
        ]
    }

    fn rules(&self) -> &'static str {
        include_str!("rules.md")
    }

    fn open(&self, root: &Path, options: &Value) -> Result<Box<dyn Session>, ToolError> {
        let options: Options = super::options(EDIT, options)?;
        Ok(Box::new(LooprigSession::new(root, options)))
    }

    fn read_call(&self, path: &str) -> Planned {
        planned(READ, json!({ "path": path }))
    }

    fn direct(&self, target: &Target, as_read: &[u8]) -> String {
        express::direct(target, as_read)
    }

    fn express(&self, current: &Tree, expected: &Tree) -> Result<Vec<Planned>, String> {
        express::express(current, expected)
    }
}

impl Session for LooprigSession {
    fn call(&mut self, function: &str, arguments: &Map<String, Value>) -> Result<Outcome, ToolError> {
        let mut args = Args::new(arguments, self.strictness());
        let known: &[&str] = match function {
            EDIT => &["path", "old", "new", "replace_all"],
            READ => &["path", "start_line", "end_line"],
            WRITE => &["path", "content"],
            other => return Err(ToolError::NoFunction { tool: EDIT, function: other.to_owned() }),
        };
        args.note_unknown(known);
        let done = self.prepare(function, &mut args).and_then(|prepared| self.run(&prepared));
        Ok(super::finished(done, args.notes))
    }
}

/// A path or text as an error shows it: its first line, cut.
fn shown(text: &str) -> String {
    crate::text::visible::excerpt(text, EXCERPT)
}
