//! The house: a room uses only rooms below it, and no file outgrows its meaning.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};

/// From the top down.
const ROOMS: [&str; 13] = [
    "cli",
    "config",
    "run",
    "report",
    "verdict",
    "record",
    "score",
    "model",
    "tool",
    "workspace",
    "case",
    "chat",
    "text",
];

fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    walkdir::WalkDir::new(root)
        .into_iter()
        .map(|entry| entry.expect("readable").into_path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("text");
            (path, text)
        })
        .collect()
}

fn room_of(path: &Path) -> Option<usize> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let first = path.strip_prefix(root).expect("inside").components().next().expect("a name");
    let name = first.as_os_str().to_str().expect("text").trim_end_matches(".rs").to_owned();
    ROOMS.iter().position(|room| *room == name)
}

#[test]
fn dependencies_point_down() {
    let mut faults = Vec::new();
    let mut seen = 0;
    for (path, text) in sources() {
        let Some(room) = room_of(&path) else {
            continue;
        };
        for part in text.split("crate::").skip(1) {
            let name: String = part.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
            let Some(used) = ROOMS.iter().position(|other| *other == name) else {
                continue;
            };
            seen += 1;
            let strangers = (ROOMS[room] == "model" && name == "tool") || (ROOMS[room] == "tool" && name == "model");
            if used < room || strangers {
                faults.push(format!("{}: {} uses {name}", path.display(), ROOMS[room]));
            }
        }
    }
    assert!(seen > 50, "{seen} uses were seen");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn files_stay_small() {
    let large: Vec<String> = sources()
        .into_iter()
        .map(|(path, text)| (text.lines().count(), path))
        .filter(|(count, _)| *count > 560)
        .map(|(count, path)| format!("{}: {count} lines", path.display()))
        .collect();
    assert!(large.is_empty(), "{}", large.join("\n"));
}
