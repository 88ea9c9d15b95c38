//! Random calls of every tool, and what must hold after each: a refusal and a read change nothing, an edit changes what
//! it names and nothing else, no answer names the real directory or grows without bounds, and nothing panics.
//!
//! `EDITGATE_RANDOM_CALLS=1000000 cargo test --release --test random_calls -- --nocapture` runs as long as asked;
//! `EDITGATE_RANDOM_SEED` repeats a run.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use editgate::case::{Node, Tree};
use editgate::tool::{self, Session};
use editgate::workspace::{confine, snapshot};
use serde_json::{Map, Value, json};

/// Calls a tool, where nothing else is asked for.
const CALLS: u64 = 4_000;
/// A fresh directory after so many calls.
const ROUND: u64 = 250;
/// No answer is longer, in bytes: a page of filesystem_read and its numbers.
const MAX_TEXT: usize = 160 << 10;

/// SplitMix64: small, seeded, the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("small")
    }

    fn one_in(&mut self, chance: usize) -> bool {
        self.below(chance) == 0
    }

    fn pick<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

const PATHS: [&str; 24] = [
    "a.txt",
    "a.txt",
    "a.txt",
    "b.txt",
    "b.txt",
    "d/c.txt",
    "d/c.txt",
    "crlf.txt",
    "crlf.txt",
    "latin.txt",
    "d",
    "e",
    "e/new.txt",
    "new.txt",
    "link.txt",
    "dlink/c.txt",
    "out.txt",
    "up/x",
    "../outside/o.txt",
    "/etc/hostname",
    "",
    ".",
    "a.txt/x",
    "./d/../b.txt",
];

const PIECES: [&str; 16] =
    ["one", "two", "x", " ", "\t", "\n", "\r\n", "\r", "é", "\u{FEFF}", "\u{2028}", "\0", "1: ", "  y", "", "one\n"];

fn text(random: &mut Random) -> String {
    let count = random.below(5);
    (0..count).map(|_| random.pick(&PIECES)).collect()
}

fn number(random: &mut Random) -> i64 {
    match random.below(12) {
        0 => i64::MAX,
        1 => i64::MIN,
        2 => -1,
        _ => i64::try_from(random.below(7)).expect("small"),
    }
}

fn noise(random: &mut Random) -> Value {
    match random.below(9) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(2.0),
        3 => json!(1.5e300),
        4 => json!("3"),
        5 => json!([]),
        6 => json!([1, {}, null]),
        7 => json!({ "op": "replace" }),
        _ => json!("x".repeat(5000)),
    }
}

fn operation(random: &mut Random) -> Value {
    let op = random.pick(&["replace", "replace", "delete", "insert", "move"]);
    let mut all = json!({ "op": op, "start": number(random), "end": number(random), "after": number(random), "content": text(random) });
    if random.one_in(6) {
        all.as_object_mut().expect("an object").remove("end");
    }
    all
}

/// A call of one of the tool's functions: often sensible, sometimes not.
fn call(random: &mut Random, functions: &[String], root: &Path) -> (String, Map<String, Value>) {
    let function = functions[random.below(functions.len())].clone();
    let path = |random: &mut Random| match random.below(40) {
        0 => json!(root.join("a.txt")),
        1 => json!("n".repeat(300)),
        2 => json!("d/".repeat(2500)),
        3 => json!("nul\0"),
        _ => json!(random.pick(&PATHS)),
    };
    let actions = [
        "write",
        "append",
        "edit",
        "edit",
        "edit",
        "edit_lines",
        "edit_lines",
        "insert",
        "mkdir",
        "move",
        "copy",
        "delete",
    ];
    let mut arguments = json!({
        "path": path(random),
        "mode": random.pick(&["replace", "replace", "replace", "write", "append", " Replace ", "edit"]),
        "action": random.pick(&actions),
        "content": text(random),
        "line": number(random),
        "find": text(random),
        "old": text(random),
        "new": text(random),
        "replace_all": random.one_in(3),
        "operations": (0..random.below(4)).map(|_| operation(random)).collect::<Vec<_>>(),
        "after": number(random),
        "destination": path(random),
        "overwrite": random.one_in(2),
        "force": random.one_in(2),
        "recursive": random.one_in(2),
        "offset": number(random),
        "limit": number(random),
        "start": number(random),
        "end": number(random),
        "start_line": number(random),
        "end_line": number(random),
    });
    let map = arguments.as_object_mut().expect("an object");
    for name in map.keys().cloned().collect::<Vec<_>>() {
        let optional = !["path", "mode", "action", "content", "old", "new"].contains(&name.as_str());
        if random.one_in(60) {
            map.insert(name, noise(random));
        } else if random.one_in(if optional { 2 } else { 60 }) {
            map.shift_remove(&name);
        }
    }
    (function, map.clone())
}

struct World {
    base: tempfile::TempDir,
    root: PathBuf,
}

impl World {
    fn new() -> Self {
        let base = tempfile::tempdir().expect("a directory");
        let canonical = base.path().canonicalize().expect("canonical");
        let root = canonical.join("ws");
        for directory in ["ws/d", "outside"] {
            fs::create_dir_all(canonical.join(directory)).expect("made");
        }
        let files: [(&str, &[u8]); 6] = [
            ("ws/a.txt", b"one\ntwo\n  y\nx one\n"),
            ("ws/b.txt", b"two\n\tx\none"),
            ("ws/d/c.txt", b"x\ry\rone\n"),
            ("ws/crlf.txt", b"\xEF\xBB\xBFone\r\ntwo\nx\r\n"),
            ("ws/latin.txt", b"caf\xE9\none\n"),
            ("outside/o.txt", b"one\n"),
        ];
        for (path, bytes) in files {
            fs::write(canonical.join(path), bytes).expect("written");
        }
        for (link, target) in
            [("link.txt", "a.txt"), ("dlink", "d"), ("up", "../outside"), ("out.txt", "../outside/o.txt")]
        {
            symlink(target, root.join(link)).expect("linked");
        }
        World { base, root }
    }

    fn tree(&self) -> Tree {
        snapshot::take(self.base.path()).expect("readable")
    }
}

/// The nodes, relative to the base, that a call may speak of: its paths, by their letters and with links followed.
fn named(world: &World, arguments: &Map<String, Value>) -> Vec<String> {
    let base = world.base.path().canonicalize().expect("canonical");
    let mut names = Vec::new();
    for path in ["path", "destination"].iter().filter_map(|name| arguments.get(*name)?.as_str()) {
        let mut plain = world.root.clone();
        for component in Path::new(path.trim_start_matches('/')).components() {
            match component {
                Component::Normal(name) => plain.push(name),
                Component::ParentDir => drop(plain.pop()),
                _ => {}
            }
        }
        let parent = plain.parent().and_then(|parent| parent.canonicalize().ok());
        let entry = parent.and_then(|parent| Some(parent.join(plain.file_name()?)));
        let absolute = path.starts_with('/').then(|| PathBuf::from(path));
        // Through a link that leads to nothing a write makes what it leads to.
        let dangling = confine::canonical(&world.root, path).ok();
        for place in [plain.canonicalize().ok(), Some(plain), entry, dangling, absolute].into_iter().flatten() {
            if let Ok(name) = place.strip_prefix(&base) {
                names.push(name.to_string_lossy().into_owned());
            }
        }
    }
    names
}

fn check(
    world: &World,
    function: &str,
    arguments: &Map<String, Value>,
    edits: bool,
    session: &mut dyn Session,
) -> bool {
    let before = world.tree();
    let names = named(world, arguments);
    let outcome = session.call(function, arguments).expect("an answer");
    let after = world.tree();
    let changed = before.changed_paths(&after);
    let what = || format!("{function} {} -> {outcome:?}", Value::Object(arguments.clone()));
    assert_eq!(outcome.ok, outcome.kind.is_none(), "{}", what());
    assert!(outcome.text.len() <= MAX_TEXT, "{} bytes: {}", outcome.text.len(), what());
    let absolute = |name: &str| arguments.get(name).and_then(Value::as_str).is_some_and(|path| path.starts_with('/'));
    let given = absolute("path") || absolute("destination");
    assert!(given || !outcome.text.contains(&*world.root.to_string_lossy()), "{}", what());
    if !outcome.ok || !edits {
        assert!(changed.is_empty() && outcome.writes.is_empty(), "{changed:?}: {}", what());
    }
    for path in &changed {
        let inside = path.starts_with("ws/");
        let spoken = names
            .iter()
            .any(|name| path == name || path.starts_with(&format!("{name}/")) || name.starts_with(&format!("{path}/")));
        assert!(inside && spoken, "{path} changed: {}", what());
        if let (Some(Node::File { mode: old, .. }), Some(Node::File { mode: new, .. })) =
            (before.get(path), after.get(path))
        {
            assert!(old == new || ["move", "copy"].iter().any(|action| arguments["action"] == **action), "{}", what());
        }
    }
    outcome.ok
}

/// What a tool's own read shows, as number and text.
fn shown(session: &mut dyn Session, function: &str, path: &str) -> Vec<(usize, String)> {
    let arguments = json!({ "path": path }).as_object().expect("an object").clone();
    let text = session.call(function, &arguments).expect("an answer").text;
    text.split('\n')
        .filter_map(|line| {
            let line = line.trim_start();
            let digits = line.bytes().take_while(u8::is_ascii_digit).count();
            let text = line[digits..].strip_prefix('\t').or_else(|| line[digits..].strip_prefix(": "))?;
            Some((line[..digits].parse().ok()?, text.to_owned()))
        })
        .collect()
}

/// The line that a read shows under a number is the one that an edit of that number changes.
fn numbers_agree(random: &mut Random, world: &World, tool: &str, session: &mut dyn Session) {
    let (function, path) = (
        if tool == "edit_file" { "read_file" } else { "filesystem_read" },
        random.pick(&["a.txt", "b.txt", "crlf.txt"]),
    );
    let lines = shown(session, function, path);
    let Some((number, text)) = lines.get(random.below(lines.len().max(1))).cloned() else { return };
    let place = world.root.join(path);
    // A line that a read cannot show as it is: a lone CR, bytes that are no UTF-8. And a file of more than one page.
    if text.contains(['\r', '\u{FFFD}']) || !fs::metadata(&place).is_ok_and(|data| data.is_file() && data.len() < 2000)
    {
        return;
    }
    // Begins with a blank, so that it is written as it is whatever indentation was there.
    let content = format!(" <{}>", random.below(1000));
    let arguments = match tool {
        "edit_file" => json!({ "path": path, "mode": "replace", "line": number, "content": content }),
        _ => {
            json!({ "action": "edit_lines", "path": path, "operations": [{ "op": "replace", "start": number, "content": content }] })
        }
    };
    let before = fs::read(&place).expect("bytes");
    let outcome = session.call(tool, arguments.as_object().expect("an object")).expect("an answer");
    if !outcome.ok {
        // A guard may refuse what would join two endings; nothing else stands in the way.
        assert_eq!(outcome.kind.map(tool::Kind::name), Some("guard"), "{outcome:?}");
        return;
    }
    let mut want = lines;
    want[number - 1].1.clone_from(&content);
    assert_eq!(shown(session, function, path), want, "{before:?}");
    let after = fs::read(&place).expect("bytes");
    assert_eq!(after.len() + text.len(), before.len() + content.len(), "{before:?} -> {after:?}");
}

/// An exact replacement and its inverse give the original bytes.
fn inverse_restores(random: &mut Random, world: &World, tool: &str, session: &mut dyn Session) {
    let path = random.pick(&["a.txt", "b.txt", "crlf.txt", "latin.txt"]);
    let Ok(before) = fs::read(world.root.join(path)) else { return };
    let (old, new) = (random.pick(&["one", "two", "  y", "one\n", "x"]), format!("<{}>", random.below(1000)));
    let arguments = |old: &str, new: &str| match tool {
        "edit_file" => json!({ "path": path, "mode": "replace", "find": old, "content": new }),
        "EditFile" => json!({ "path": path, "old": old, "new": new }),
        _ => json!({ "action": "edit", "path": path, "old": old, "new": new }),
    };
    if tool == "EditFile" && !carried_out(session, "ReadFile", &json!({ "path": path })) {
        return;
    }
    if carried_out(session, tool, &arguments(old, &new)) {
        let there = fs::read(world.root.join(path)).expect("bytes");
        // A break that was bridged comes back as the file's dominant one, which may be another.
        if carried_out(session, tool, &arguments(&new, old)) && !old.contains('\n') {
            assert_eq!(fs::read(world.root.join(path)).expect("bytes"), before, "{there:?}");
        }
    }
}

fn carried_out(session: &mut dyn Session, function: &str, arguments: &Value) -> bool {
    session.call(function, arguments.as_object().expect("an object")).expect("an answer").ok
}

fn run(name: &str) {
    let from_env = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let calls = from_env("EDITGATE_RANDOM_CALLS").unwrap_or(CALLS);
    let seed = from_env("EDITGATE_RANDOM_SEED").unwrap_or(20_261_201);
    let tool = tool::named(name).expect("known");
    let functions: Vec<(String, bool)> =
        tool.functions().into_iter().map(|offered| (offered.function.name, offered.edits)).collect();
    // Mostly edits.
    let mut names: Vec<String> = vec![functions[0].0.clone(); 3];
    names.extend(functions.iter().map(|(name, _)| name.clone()));
    let mut random =
        Random(seed ^ name.bytes().fold(0_u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte))));
    let (mut done, mut succeeded) = (0, 0_u64);
    while done < calls {
        let world = World::new();
        let strictness = random.pick(&["strict", "strict", "coerce"]);
        let mut session = tool.open(&world.root, &json!({ "arguments": strictness })).expect("opened");
        for _ in 0..ROUND.min(calls - done) {
            let (function, arguments) = call(&mut random, &names, &world.root);
            let edits = functions.iter().any(|(name, edits)| *name == function && *edits);
            succeeded += u64::from(check(&world, &function, &arguments, edits, session.as_mut()));
            done += 1;
            if done % 10 == 0 {
                if name != "EditFile" {
                    numbers_agree(&mut random, &world, name, session.as_mut());
                }
                inverse_restores(&mut random, &world, name, session.as_mut());
            }
        }
    }
    println!("{name}: {done} random calls, {succeeded} of them carried out, seed {seed}");
    // A test that is refused all the time proves nothing.
    assert!(succeeded * 10 > done, "{succeeded} of {done}");
}

#[test]
fn edit_file_holds() {
    run("edit_file");
}

#[test]
fn edit_file_of_looprig_holds() {
    run("EditFile");
}

#[test]
fn filesystem_write_holds() {
    run("filesystem_write");
}
