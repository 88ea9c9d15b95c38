//! Call → bytes or refusal: tool-side vectors of every tool, the catalogue's and our own, run against the built binary.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};

use base64::Engine as _;
use serde_json::{Value, json};

/// Each tool with its read tool.
const TOOLS: [(&str, &str); 3] =
    [("edit_file", "read_file"), ("EditFile", "ReadFile"), ("filesystem_write", "filesystem_read")];

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
            "touch" => {
                let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(step["time"].as_u64().expect("time"));
                fs::File::options().append(true).open(path).expect("there").set_modified(time).expect("touched");
            }
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

/// One `tools call` process.
struct Session {
    process: Child,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Session {
    fn open(world: &World, tool: &str, options: &Value) -> Self {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_editgate"));
        command.args(["tools", "call", tool, "--root"]).arg(world.base.join("ws")).env_remove("EDITGATE_TOOL_OPTIONS");
        if !options.is_null() {
            command.args(["--options", &options.to_string()]);
        }
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("started");
        let answers = BufReader::new(process.stdout.take().expect("piped")).lines();
        Session { process, answers }
    }

    fn call(&mut self, function: &str, arguments: &Value) -> Value {
        let line = json!({ "tool": function, "arguments": arguments });
        let input = self.process.stdin.as_mut().expect("piped");
        writeln!(input, "{line}").expect("taken");
        serde_json::from_str(&self.answers.next().expect("an answer").expect("text")).expect("JSON")
    }

    fn close(mut self) {
        drop(self.process.stdin.take());
        assert!(self.process.wait().expect("ended").success());
    }
}

/// The arguments of a step or call, with the places of paths filled in.
fn arguments(world: &World, call: &Value) -> Value {
    let mut arguments = call.clone();
    for name in ["path", "destination"] {
        if let Some(path) = call[name].as_str() {
            arguments[name] = json!(world.expand(path));
        }
    }
    if let Some(object) = arguments.as_object_mut() {
        object.remove("op");
    }
    arguments
}

/// What is wrong with a vector for a tool; none when it holds.
fn faults(vector: &Value, (tool, read): (&str, &str)) -> Vec<String> {
    let world = World::new();
    let files = vector["files"].as_array().cloned().unwrap_or_default();
    for file in &files {
        world.put(file);
    }
    let mut session = Session::open(&world, tool, &vector["options"][tool]);
    let steps = vector["setup"].as_array().cloned().unwrap_or_default();
    let reads = |step: &Value| matches!(step["op"].as_str(), Some("read" | "no_read"));
    if tool == "EditFile" && !steps.iter().any(reads) {
        for file in &files {
            session.call(read, &json!({ "path": file["path"] }));
        }
    }
    for step in &steps {
        match step["op"].as_str() {
            Some("no_read") => {}
            Some("read") => drop(session.call(read, &arguments(&world, step))),
            _ => world.step(step),
        }
    }
    let mut want = world.tree();
    let mut answers = Vec::new();
    for call in vector["request"]["calls"][tool].as_array().expect("calls") {
        match call.get("op").and_then(Value::as_str) {
            None => answers.push(session.call(tool, &arguments(&world, call))),
            Some("read") => drop(session.call(read, &arguments(&world, call))),
            Some(_) => {
                world.step(call);
                let path = call["path"].as_str().expect("path");
                want.insert(path.to_owned(), world.tree().remove(path).expect("there"));
            }
        }
    }
    session.close();
    let mut faults = outcome_faults(vector, tool, &answers);
    apply(vector, &mut want);
    let have = world.tree();
    for path in have.keys().chain(want.keys()).filter(|path| have.get(*path) != want.get(*path)) {
        faults.push(format!("{path:?}: have {:?}, want {:?}", have.get(path), want.get(path)));
    }
    let rules = vector["checks"]["text"][tool].as_array();
    for (answer, rule) in answers.iter().zip(rules.into_iter().flatten()) {
        faults.extend(text_faults(answer["text"].as_str().expect("text"), rule));
    }
    faults
}

fn outcome_faults(vector: &Value, tool: &str, answers: &[Value]) -> Vec<String> {
    let outcomes = match vector["outcomes"].get(tool) {
        Some(outcomes) => outcomes.as_array().expect("list").clone(),
        None => {
            let mut outcomes = vec![Value::Null; answers.len() - 1];
            outcomes.push(vector["expected_error"].clone());
            outcomes
        }
    };
    assert_eq!(outcomes.len(), answers.len(), "{}", vector["id"]);
    let mut faults = Vec::new();
    for (answer, outcome) in answers.iter().zip(&outcomes) {
        let got = if answer["ok"] == true { Value::Null } else { answer["kind"].clone() };
        if !outcome.as_array().map_or(got == *outcome, |any| any.contains(&got)) {
            faults.push(format!("got {got}, want {outcome}: {}", answer["text"]));
        }
        if answer["ok"] == false && answer["writes"] != json!([]) {
            faults.push(format!("a refusal that wrote: {answer}"));
        }
    }
    faults
}

/// The tree that must be there in the end.
fn apply(vector: &Value, want: &mut Tree) {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for path in list(&vector["checks"]["absent"]) {
        let path = path.as_str().expect("path");
        want.retain(|each, _| each != path && !each.starts_with(&format!("{path}/")));
    }
    let mut insert = |path: &str, entry: Option<Entry>| {
        for (at, _) in path.match_indices('/') {
            if !path[..at].starts_with('@') {
                want.entry(path[..at].to_owned()).or_insert(Entry::Directory);
            }
        }
        match entry {
            Some(Entry::File(bytes, mode)) => {
                let mode = match want.get(path) {
                    Some(Entry::File(_, old)) if mode == 0 => *old,
                    _ if mode == 0 => 0o644,
                    _ => mode,
                };
                want.insert(path.to_owned(), Entry::File(bytes, mode));
            }
            _ => {
                want.entry(path.to_owned()).or_insert(Entry::Directory);
            }
        }
    };
    for entry in list(&vector["expected"]) {
        let mode = entry["mode"].as_str().map_or(0, |mode| u32::from_str_radix(mode, 8).expect("octal"));
        insert(entry["path"].as_str().expect("path"), Some(Entry::File(data(&entry), mode)));
    }
    for path in list(&vector["checks"]["dirs"]) {
        insert(path.as_str().expect("path"), None);
    }
}

fn text_faults(text: &str, rule: &Value) -> Vec<String> {
    let list = |key: &str| rule[key].as_array().cloned().unwrap_or_default();
    let mut faults = Vec::new();
    for has in list("has") {
        if !text.contains(has.as_str().expect("text")) {
            faults.push(format!("{text:?} lacks {has}"));
        }
    }
    for lacks in list("lacks") {
        if text.contains(lacks.as_str().expect("text")) {
            faults.push(format!("{text:?} has {lacks}"));
        }
    }
    let numbers: Vec<&str> = text.split(|c: char| !c.is_ascii_digit()).collect();
    for number in list("numbers") {
        if !numbers.contains(&number.to_string().as_str()) {
            faults.push(format!("{text:?} lacks the number {number}"));
        }
    }
    if rule["max_bytes"].as_u64().is_some_and(|most| text.len() as u64 > most) {
        faults.push(format!("a text of {} bytes", text.len()));
    }
    faults
}

fn vectors(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file);
    let all: Vec<Value> = serde_json::from_slice(&fs::read(path).expect("vectors")).expect("JSON");
    all.into_iter().filter(|vector| vector["side"] == "tool").collect()
}

/// Runs every vector of a file with every tool that it names.
fn check(file: &str, at_least: usize) {
    let (mut count, mut bad) = (0, Vec::new());
    for vector in vectors(file) {
        for tool in TOOLS.iter().filter(|(tool, _)| vector["request"]["calls"][*tool].is_array()) {
            count += 1;
            let faults = faults(&vector, *tool);
            if !faults.is_empty() {
                bad.push(format!("{} {}: {}", vector["id"], tool.0, faults.join("; ")));
            }
        }
    }
    assert!(count >= at_least, "{count} runs");
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn the_catalogues_vectors_hold() {
    check("vectors.json", 286);
}

#[test]
fn our_own_vectors_hold() {
    check("vectors-own.json", 66);
}

/// Each numbered rule and decision of the three tools stands in two vectors at least.
#[test]
fn every_rule_has_two_vectors() {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for vector in vectors("vectors.json").iter().chain(&vectors("vectors-own.json")) {
        for rule in vector["rules"].as_array().expect("rules") {
            let rule = rule.as_str().expect("text");
            let tool = match rule.chars().next() {
                Some('A') => "edit_file",
                Some('B') => "EditFile",
                Some('C') => "filesystem_write",
                _ => continue,
            };
            // A rule counts where its own tool is run.
            let runs = vector["request"]["calls"][tool].is_array();
            *counts.entry(rule.to_owned()).or_default() += usize::from(runs);
        }
    }
    let series = [("A", 21), ("AQ", 18), ("B", 15), ("BQ", 8), ("C", 16), ("CQ", 26)];
    let rules = series.iter().flat_map(|(series, last)| (1..=*last).map(move |number| format!("{series}{number}")));
    let few: Vec<String> = rules.filter(|rule| counts.get(rule).copied().unwrap_or(0) < 2).collect();
    assert!(few.is_empty(), "{few:?}");
}

/// Results and refusals as the seed words them.
#[test]
fn texts_are_the_seeds() {
    let world = World::new();
    world.put(&json!({ "path": "b.py", "content": "def f():\n    return 1\n" }));
    world.put(&json!({ "path": "notes.md", "content": "a\nb\nc\n" }));
    let edit = |arguments: Value| json!({ "tool": "edit_file", "arguments": arguments });
    let calls = [
        edit(json!({ "path": "b.py", "mode": "replace", "content": "return 10", "line": 2 })),
        edit(json!({ "path": "b.py", "mode": "replace", "content": "return 11", "line": 1, "find": "return 10" })),
        edit(json!({ "path": "notes.md", "mode": "replace", "content": "b", "find": "z" })),
        edit(json!({ "path": "notes.md", "mode": "replace", "content": "1\n2\n3\n4\n5", "find": "b" })),
        edit(json!({ "path": "notes.md", "mode": "append", "content": "end\n" })),
        edit(json!({ "path": "new.md", "mode": "write", "content": "x" })),
        edit(json!({ "path": "new.md", "mode": "write", "content": "xy" })),
        edit(json!({ "path": "../x", "mode": "write", "content": "x" })),
        json!({ "tool": "read_file", "arguments": { "path": "b.py" } }),
        json!({ "tool": "no_such", "arguments": {} }),
        json!({ "tool": "edit_file", "arguments": "{broken" }),
    ];
    let mut session = Session::open(&world, "edit_file", &Value::Null);
    let texts: Vec<String> = calls
        .iter()
        .map(|call| session.call(call["tool"].as_str().expect("name"), &call["arguments"]))
        .map(|answer| answer["text"].as_str().expect("text").to_owned())
        .collect();
    session.close();
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
