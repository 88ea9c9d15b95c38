//! Stand-ins that need no server: one that knows the answer, one that does nothing, one that is hostile. They prove the
//! scorer: all right, none right, and nothing broken.

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Brief, Conversation, Fault, FaultKind, Model, Request, Turn};
use crate::chat::{Answer, Arguments, Arrival, Call, Function};

/// Which stand-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    /// Makes each case's edit in the tool's own terms.
    Oracle,
    /// Answers in words and calls nothing.
    Noop,
    /// Sends hostile and malformed calls, the same ones for the same case.
    Garbage,
}

impl Builtin {
    pub const ALL: [Builtin; 3] = [Builtin::Oracle, Builtin::Noop, Builtin::Garbage];

    pub fn id(self) -> &'static str {
        match self {
            Builtin::Oracle => "oracle",
            Builtin::Noop => "noop",
            Builtin::Garbage => "garbage",
        }
    }
}

impl Model for Builtin {
    fn name(&self) -> &str {
        match self {
            Builtin::Oracle => "builtin/oracle",
            Builtin::Noop => "builtin/noop",
            Builtin::Garbage => "builtin/garbage",
        }
    }

    fn facts(&self) -> LocalBoxFuture<'_, Result<Value, Fault>> {
        std::future::ready(Ok(Value::Null)).boxed_local()
    }

    fn converse<'a>(&'a self, brief: Brief<'a>) -> Box<dyn Conversation + 'a> {
        Box::new(Standing { which: *self, brief, turn: 0 })
    }
}

struct Standing<'a> {
    which: Builtin,
    brief: Brief<'a>,
    turn: usize,
}

impl Conversation for Standing<'_> {
    fn answer<'a>(&'a mut self, request: Request<'a>) -> LocalBoxFuture<'a, Turn> {
        self.turn += 1;
        let outcome = match self.which {
            Builtin::Noop => Ok(says("There is nothing to do.")),
            Builtin::Oracle => self.oracle(),
            Builtin::Garbage => Ok(garbage(&self.brief.key.case, self.turn, request.functions)),
        };
        std::future::ready(Turn::plain(outcome)).boxed_local()
    }
}

impl Standing<'_> {
    fn oracle(&self) -> Result<Answer, Fault> {
        match self.turn {
            1 if !self.brief.reads.is_empty() => Ok(calls(self.brief.reads.to_vec())),
            1 | 2 => match (self.brief.solve)() {
                Ok(solution) if solution.is_empty() => Ok(says("Done.")),
                Ok(solution) => Ok(calls(solution)),
                Err(reason) => Err(Fault::new(FaultKind::Unsupported, reason)),
            },
            _ => Ok(says("Done.")),
        }
    }
}

fn says(text: &str) -> Answer {
    Answer { text: text.to_owned(), ..Answer::default() }
}

fn calls(calls: Vec<Call>) -> Answer {
    Answer { calls, ..says("") }
}

/// Calls that a hostile or broken model might send, chosen by the case and the turn.
fn garbage(case: &str, turn: usize, functions: &[Function]) -> Answer {
    let digest = Sha256::digest(format!("{case} {turn}").as_bytes());
    let count = 1 + usize::from(digest[0] % 3);
    let sent = digest[1..]
        .iter()
        .take(count)
        .enumerate()
        .map(|(index, choice)| {
            let function = functions.get(usize::from(*choice >> 6) % functions.len().max(1));
            let name = function.map_or("edit_file", |function| function.name.as_str());
            let (name, arguments) = hostile(usize::from(choice & 0x3F), name);
            Call {
                id: format!("garbage{index}"),
                name,
                arguments: Arguments::parse(&arguments),
                arrival: Arrival::Native,
            }
        })
        .collect();
    Answer { text: "\u{1B}]0;owned\u{7}<script>alert(1)</script>\u{202E}".to_owned(), ..calls(sent) }
}

fn hostile(choice: usize, name: &str) -> (String, String) {
    let edit = |path: &str| {
        json!({ "path": path, "mode": "write", "content": "owned\n", "old": "a", "new": "b", "action": "write" })
            .to_string()
    };
    let paths = [
        "../escaped",
        "../../escaped",
        "/tmp/editgate-garbage-escaped",
        "/etc/editgate-garbage-escaped",
        "a/../../escaped",
        "./..//escaped",
        "",
        ".",
        "..",
        "/",
        "nul\0byte",
        "new\nline",
        "~/.ssh/id_rsa",
        "C:\\windows\\escaped",
        "con",
        "-rf",
    ];
    let arguments = match choice {
        0..=15 => edit(paths[choice]),
        16 => edit(&"x".repeat(5000)),
        17 => edit(&"d/".repeat(500)),
        18 => "{\"path\": \"a".to_owned(),
        19 => "not json".to_owned(),
        20 => "[]".to_owned(),
        21 => "{}".to_owned(),
        22 => "null".to_owned(),
        23 => "{\"path\": 7, \"mode\": [], \"content\": {}}".to_owned(),
        24 => format!("{{\"path\": \"garbage.txt\", \"mode\": \"write\", \"content\": \"{}\"}}", "G".repeat(100_000)),
        25 => "{\"path\": \"garbage\\u0000.txt\", \"mode\": \"append\", \"content\": \"\\u0000\"}".to_owned(),
        26 => "{\"path\": \"\\ud800\", \"mode\": \"write\", \"content\": \"\"}".to_owned(),
        27 => {
            json!({ "path": "garbage.txt", "mode": "replace", "content": "x", "line": -9_223_372_036_854_775_808_i64 })
                .to_string()
        }
        28 => json!({ "path": "garbage.txt", "mode": "replace", "content": "x", "line": 1e308 }).to_string(),
        29 => json!({ "path": "garbage.txt", "mode": "\u{1B}[2J", "content": "x" }).to_string(),
        30 => return ("run_command".to_owned(), json!({ "command": "rm -rf /" }).to_string()),
        31 => return (String::new(), String::new()),
        32 => json!({ "action": "delete", "path": ".", "recursive": true }).to_string(),
        33 => json!({ "action": "delete", "path": "..", "recursive": true }).to_string(),
        34 => json!({ "action": "move", "path": ".", "destination": "../escaped", "overwrite": true }).to_string(),
        35 => json!({ "action": "copy", "path": "/etc", "destination": "etc" }).to_string(),
        36 => json!({ "action": "copy", "path": ".", "destination": "deeper/and/deeper" }).to_string(),
        37 => json!({ "action": "mkdir", "path": "m/".repeat(1500) }).to_string(),
        38 => {
            json!({ "action": "edit_lines", "path": "garbage.txt", "operations": vec![json!({ "op": "insert" }); 500] })
                .to_string()
        }
        _ => json!({ "path": "garbage.txt", "mode": "append", "content": "\u{202E}garbage\r\n\u{FEFF}" }).to_string(),
    };
    (name.to_owned(), arguments)
}
