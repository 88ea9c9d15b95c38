//! Call → bytes or refusal: the catalogue's tool-side vectors for edit_file, run against the built binary.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use serde_json::{Value, json};

const TOOL: &str = "edit_file";
const READ: &str = "read_file";

/// A root with two neighbours, in a directory of its own.
struct World {
    base: PathBuf,
    _directory: tempfile::TempDir,
}

type Tree = BTreeMap<String, Entry>;

#[derive(Clone, Debug, PartialEq)]
enum Entry {
    File(Vec<u8>, u32),
    Link(PathBuf),
    Directory,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let base = directory.path().canonicalize().expect("canonical");
        for area in ["ws", "outside", "ws-evil"] {
            fs::create_dir(base.join(area)).expect("made");
        }
        World { base, _directory: directory }
    }

    /// `@root`, `@outside` and `@sibling` at the start of a path mean the three areas.
    fn expand(&self, text: &str) -> String {
        for (mark, area) in [("@root", "ws"), ("@outside", "outside"), ("@sibling", "ws-evil")] {
            if text == mark || text.starts_with(&format!("{mark}/")) {
                return format!("{}{}", self.base.join(area).display(), &text[mark.len()..]);
            }
        }
        text.to_owned()
    }

    fn path(&self, text: &str) -> PathBuf {
        self.base.join("ws").join(self.expand(text))
    }

    fn put(&self, entry: &Value) {
        let path = self.path(entry["path"].as_str().expect("path"));
        fs::create_dir_all(path.parent().expect("parent")).expect("made");
        fs::write(&path, data(entry)).expect("written");
        let mode = entry["mode"].as_str().map_or(0o644, |mode| u32::from_str_radix(mode, 8).expect("octal"));
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("mode");
    }

    fn step(&self, step: &Value) {
        let path = self.path(step["path"].as_str().expect("path"));
        match step["op"].as_str().expect("op") {
            "symlink" => symlink(self.expand(step["target"].as_str().expect("target")), path).expect("linked"),
            "hardlink" => fs::hard_link(self.path(step["target"].as_str().expect("target")), path).expect("linked"),
            "mkdir" => fs::create_dir_all(path).expect("made"),
            "external_write" => self.put(step),
            other => panic!("unknown step {other}"),
        }
    }

    fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        for (prefix, area) in [("", "ws"), ("@outside/", "outside"), ("@sibling/", "ws-evil")] {
            let top = self.base.join(area);
            for entry in walkdir::WalkDir::new(&top).min_depth(1) {
                let entry = entry.expect("readable");
                let name = format!("{prefix}{}", entry.path().strip_prefix(&top).expect("inside").display());
                let node = if entry.path_is_symlink() {
                    Entry::Link(fs::read_link(entry.path()).expect("link"))
                } else if entry.file_type().is_dir() {
                    Entry::Directory
                } else {
                    let mode = entry.metadata().expect("metadata").permissions().mode() & 0o7777;
                    Entry::File(fs::read(entry.path()).expect("bytes"), mode)
                };
                tree.insert(name, node);
            }
        }
        tree
    }
}

fn data(entry: &Value) -> Vec<u8> {
    if let Some(text) = entry["base64"].as_str() {
        return base64::engine::general_purpose::STANDARD.decode(text).expect("base64");
    }
    if let Some(repeat) = entry["repeat"].as_array() {
        let unit = repeat[0]
            .as_str()
            .expect("text")
            .repeat(usize::try_from(repeat[1].as_u64().expect("count")).expect("small"));
        return format!("{unit}{}", entry["tail"].as_str().unwrap_or_default()).into_bytes();
    }
    entry["content"].as_str().expect("content").as_bytes().to_vec()
}

fn session(world: &World, options: &Value, calls: &[Value]) -> Vec<Value> {
    let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
    let place = support::Place::new();
    let mut command = place.editgate();
    command.args(["tools", "call", TOOL, "--root"]).arg(world.base.join("ws"));
    if !options.is_null() {
        command.args(["--options", &options.to_string()]);
    }
    let output = command.write_stdin(lines).output().expect("ran");
    assert!(output.status.success(), "{}", support::stderr(&output));
    support::stdout(&output).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// What is wrong with a vector; `None` when it holds.
fn faults(vector: &Value) -> Vec<String> {
    let world = World::new();
    for file in vector["files"].as_array().into_iter().flatten() {
        world.put(file);
    }
    let mut calls = Vec::new();
    for step in vector["setup"].as_array().into_iter().flatten() {
        match step["op"].as_str() {
            Some("read" | "no_read") => {}
            _ => world.step(step),
        }
    }
    for call in vector["request"]["calls"][TOOL].as_array().expect("calls") {
        assert!(call.get("op").is_none(), "steps between calls come with another tool");
        let mut arguments = call.clone();
        if let Some(path) = call["path"].as_str() {
            arguments["path"] = json!(world.expand(path));
        }
        calls.push(json!({ "tool": TOOL, "arguments": arguments }));
    }
    let mut want = world.tree();
    let answers = session(&world, &vector["options"][TOOL], &calls);
    let outcomes = match vector["outcomes"].get(TOOL) {
        Some(outcomes) => outcomes.as_array().expect("list").clone(),
        None => {
            let mut outcomes = vec![Value::Null; answers.len() - 1];
            outcomes.push(vector["expected_error"].clone());
            outcomes
        }
    };
    let mut faults = Vec::new();
    for (answer, outcome) in answers.iter().zip(&outcomes) {
        let got = if answer["ok"] == true { Value::Null } else { answer["kind"].clone() };
        let fits = outcome.as_array().map_or(got == *outcome, |any| any.contains(&got));
        if !fits || answers.len() != outcomes.len() {
            faults.push(format!("got {got}, want {outcome}: {}", answer["text"]));
        }
    }
    for path in vector["checks"]["absent"].as_array().into_iter().flatten() {
        want.remove(path.as_str().expect("path"));
    }
    for entry in vector["expected"].as_array().into_iter().flatten() {
        let path = entry["path"].as_str().expect("path");
        let mode = match (entry["mode"].as_str(), want.get(path)) {
            (Some(mode), _) => u32::from_str_radix(mode, 8).expect("octal"),
            (None, Some(Entry::File(_, mode))) => *mode,
            _ => 0o644,
        };
        want.insert(path.to_owned(), Entry::File(data(entry), mode));
    }
    let have = world.tree();
    for path in have.keys().chain(want.keys()).filter(|path| have.get(*path) != want.get(*path)) {
        faults.push(format!("{path:?}: have {:?}, want {:?}", have.get(path), want.get(path)));
    }
    let rules = vector["checks"]["text"][TOOL].as_array();
    for (answer, rule) in answers.iter().zip(rules.into_iter().flatten()) {
        let text = answer["text"].as_str().expect("text");
        let words = |key: &str| rule[key].as_array().cloned().unwrap_or_default();
        faults.extend(
            words("has")
                .iter()
                .filter(|has| !text.contains(has.as_str().expect("text")))
                .map(|has| format!("{text:?} lacks {has}")),
        );
        faults.extend(
            words("lacks")
                .iter()
                .filter(|has| text.contains(has.as_str().expect("text")))
                .map(|has| format!("{text:?} has {has}")),
        );
        let numbers: Vec<&str> = text.split(|c: char| !c.is_ascii_digit()).collect();
        faults.extend(
            words("numbers")
                .iter()
                .filter(|n| !numbers.contains(&n.to_string().as_str()))
                .map(|n| format!("{text:?} lacks the number {n}")),
        );
    }
    faults
}

#[test]
fn tool_vectors_hold() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/vectors.json");
    let vectors: Vec<Value> = serde_json::from_slice(&fs::read(file).expect("vectors")).expect("JSON");
    let mine: Vec<&Value> = vectors
        .iter()
        .filter(|vector| vector["side"] == "tool" && vector["request"]["calls"][TOOL].is_array())
        .collect();
    assert!(mine.len() >= 116, "{} vectors", mine.len());
    let bad: Vec<String> = mine
        .iter()
        .filter_map(|vector| {
            let faults = faults(vector);
            (!faults.is_empty()).then(|| format!("{}: {}", vector["id"], faults.join("; ")))
        })
        .collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// Results and refusals as the seed words them.
#[test]
fn texts_are_the_seeds() {
    let world = World::new();
    world.put(&json!({ "path": "b.py", "content": "def f():\n    return 1\n" }));
    world.put(&json!({ "path": "notes.md", "content": "a\nb\nc\n" }));
    let edit = |arguments: Value| json!({ "tool": TOOL, "arguments": arguments });
    let calls = [
        edit(json!({ "path": "b.py", "mode": "replace", "content": "return 10", "line": 2 })),
        edit(json!({ "path": "b.py", "mode": "replace", "content": "return 11", "line": 1, "find": "return 10" })),
        edit(json!({ "path": "notes.md", "mode": "replace", "content": "b", "find": "z" })),
        edit(json!({ "path": "notes.md", "mode": "replace", "content": "1\n2\n3\n4\n5", "find": "b" })),
        edit(json!({ "path": "notes.md", "mode": "append", "content": "end\n" })),
        edit(json!({ "path": "new.md", "mode": "write", "content": "x" })),
        edit(json!({ "path": "new.md", "mode": "write", "content": "xy" })),
        edit(json!({ "path": "../x", "mode": "write", "content": "x" })),
        json!({ "tool": READ, "arguments": { "path": "b.py" } }),
        json!({ "tool": "no_such", "arguments": {} }),
        json!({ "tool": TOOL, "arguments": "{broken" }),
    ];
    let texts: Vec<String> = session(&world, &Value::Null, &calls)
        .iter()
        .map(|answer| answer["text"].as_str().expect("text").to_owned())
        .collect();
    assert_eq!(
        texts,
        [
            "replaced at line 2 of b.py, keeping the line's indentation (4 spaces); now 23 bytes; line 2 now: \"    return 10\"",
            "line 1 did not contain \"return 10\"; replaced line 2 of b.py, the one line that does, keeping the line's indentation (4 spaces); now 23 bytes; line 2 now: \"    return 11\"",
            "error: text to replace not found: z",
            "replaced at line 2 of notes.md; now 14 bytes; lines 2-6 now: \"1\", \"2\", \"3\" (and 2 more)",
            "appended to notes.md; now 18 bytes",
            "created new.md; now 1 bytes",
            "wrote new.md; now 2 bytes",
            "error: cannot write ../x: outside the writable directories (the workspace)",
            "1\tdef f():\n2\t    return 11\n[end of file]",
            "error: there is no tool no_such; there are: edit_file, read_file",
            "error: the arguments are not a JSON object; nothing was run",
        ]
    );
}
