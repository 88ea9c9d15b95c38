//! The catalogue's `classify` vectors, and more of their kind.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use editgate::case::tree::DEFAULT_MODE;
use editgate::case::{Node, Tree};
use editgate::score::{CallSeen, End, ErrorClass, Evidence, Limit, classify};
use serde_json::Value;

fn file(entry: &Value) -> (String, Node) {
    let bytes = entry["content"].as_str().expect("text").as_bytes().into();
    (entry["path"].as_str().expect("path").to_owned(), Node::File { bytes, mode: DEFAULT_MODE })
}

fn changed(base: &Tree, entries: &Value) -> Tree {
    let mut tree = base.clone();
    for entry in entries.as_array().expect("list") {
        let (path, node) = file(entry);
        tree.insert(path, node);
    }
    tree
}

fn end(value: &Value) -> Option<End> {
    let (kind, name) = value.as_str()?.split_once('.').expect("two parts");
    let name = Value::from(name);
    Some(match kind {
        "limit" => End::Limit(serde_json::from_value::<Limit>(name).expect("a limit")),
        _ => End::Error(serde_json::from_value::<ErrorClass>(name).expect("an error class")),
    })
}

#[test]
fn classify_vectors_hold() {
    let vectors: Value = serde_json::from_slice(include_bytes!("data/vectors.json")).expect("JSON");
    let mut ran = 0;
    let mut faults = Vec::new();
    for vector in vectors.as_array().expect("list") {
        let request = &vector["request"];
        if request["check"] != "classify" {
            continue;
        }
        ran += 1;
        let before = changed(&Tree::default(), &vector["files"]);
        let accepted: Vec<Tree> =
            request["accepted"].as_array().expect("list").iter().map(|each| changed(&before, each)).collect();
        let actual = changed(&before, &request["after"]);
        let calls: Vec<CallSeen> = request["calls"]
            .as_array()
            .expect("list")
            .iter()
            .map(|call| CallSeen {
                edit: call["edit"] == true,
                ok: call["ok"] == true,
                kind: serde_json::from_value(call["kind"].clone()).expect("a kind"),
                notes: serde_json::from_value(call["notes"].clone()).expect("notes"),
            })
            .collect();
        let score = classify(&Evidence {
            before: &before,
            accepted: &accepted,
            actual: &actual,
            calls: &calls,
            end: end(&request["end"]),
            text_call: request["text_call"] == true,
            declined: request["declined"] == true,
        });
        let got = serde_json::json!({
            "verdict": score.verdict(),
            "class": score.class.name(),
            "harm": score.harm,
            "diagnosis": score.diagnosis,
        });
        if got != vector["outcome"] {
            faults.push(format!("{}: got {got}, want {}", vector["id"], vector["outcome"]));
        }
    }
    assert!(ran >= 17, "{ran} vectors");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Class and flags of `before` → `actual` where `expected` was wanted, with one successful edit call.
fn judged(before: &[u8], expected: &[u8], actual: &[u8]) -> (String, Vec<String>) {
    let tree =
        |bytes: &[u8]| Tree::from_iter([("f".to_owned(), Node::File { bytes: bytes.into(), mode: DEFAULT_MODE })]);
    let score = classify(&Evidence {
        before: &tree(before),
        accepted: &[tree(expected)],
        actual: &tree(actual),
        calls: &[CallSeen { edit: true, ok: true, kind: None, notes: vec![] }],
        end: None,
        text_call: false,
        declined: false,
    });
    let flags =
        score.diagnosis.iter().map(|flag| serde_json::to_value(flag).expect("name").as_str().expect("text").to_owned());
    (score.class.name(), flags.collect())
}

/// Before, expected, actual, class, flags.
type Judged<'a> = (&'a [u8], &'a [u8], &'a [u8], &'a str, &'a [&'a str]);

#[test]
fn every_wrong_class_is_reached() {
    let table: [Judged<'_>; 17] = [
        (b"a\nb\nc\n", b"a\nc\n", b"a\nX\nc\n", "fail.wrong.content", &["content"]),
        (b"a\nb", b"a\nB", b"a\nB\nc", "fail.wrong.collateral", &["collateral"]),
        (b"a {\nb\nc\n", b"a {\nB\nc\n", b"a {\nB\n}\nc\n", "fail.wrong.collateral", &["collateral"]),
        (b"a\nb\nc\n", b"a\nB\nc\n", b"a\nB \nc\n", "fail.wrong.trailing_whitespace", &["trailing_whitespace"]),
        (b"a\nb\nc\n", b"a\nB\nc\n", b"a\nB\nc", "fail.wrong.final_newline", &["collateral", "final_newline"]),
        (b"a\nb", b"a\nB", b"a\nB\n", "fail.wrong.final_newline", &["final_newline"]),
        ("\u{FEFF}a\nb\n".as_bytes(), "\u{FEFF}a\nB\n".as_bytes(), b"a\nB\n", "fail.wrong.bom", &["bom", "collateral"]),
        (b"x\xE9\nb\n", b"x\xE9\nB\n", "x\u{FFFD}\nB\n".as_bytes(), "fail.wrong.encoding", &["collateral", "encoding"]),
        (b"a\nb = 1\n", b"a\nb = 2\n", b"a\nb=2\n", "fail.wrong.whitespace", &["inner_whitespace"]),
        (b"a\nb\nc\n", b"a\nB\nc\n", b"a\nB\n\nc\n", "fail.wrong.whitespace", &["blank_lines"]),
        (b"a\nb\nc\n", b"A\nb\nC\n", b"A\nb\nc\n", "fail.wrong.partial", &["partial"]),
        (b"a\nb\nc\n", b"A\nB\nc\n", b"A\nb\nc\n", "fail.wrong.partial", &["partial"]),
        (b"a\nb\nc\n", b"a\nB\nc\n", b"a\nb\nB\nc\n", "fail.wrong.content", &["content"]),
        (b"a\nb\nc\nd\ne\n", b"a\nB\nc\nd\ne\n", b"a\nb\nc\nd\nB\n", "fail.wrong.target", &["wrong_target"]),
        (b"a\nb\nc\n", b"a\nc\n", b"b\nc\n", "fail.wrong.target", &["off_by_one", "wrong_target"]),
        (b"a\nb\nc\nd\n", b"a\nB\nc\nd\n", b"a\nB\nc\nD\n", "fail.wrong.collateral", &["collateral"]),
        (b"a\r\nb\r\n", b"a\r\nB\r\n", b"a\r\nX\n", "fail.wrong.content", &["content", "eol"]),
    ];
    for (before, expected, actual, class, flags) in table {
        assert_eq!(
            judged(before, expected, actual),
            (class.to_owned(), flags.iter().map(|flag| (*flag).to_owned()).collect()),
            "{class}"
        );
    }
}

#[test]
fn a_mode_alone_is_meta_and_a_relaxation_is_only_told() {
    let file = |bytes: &[u8], mode| Tree::from_iter([("f".to_owned(), Node::File { bytes: bytes.into(), mode })]);
    let (before, expected) = (file(b"a\r\nz", 0o755), file(b"b\r\nz", 0o755));
    let judge = |actual: &Tree| {
        classify(&Evidence {
            before: &before,
            accepted: std::slice::from_ref(&expected),
            actual,
            calls: &[],
            end: None,
            text_call: false,
            declined: false,
        })
    };
    let mode = judge(&file(b"b\r\nz", 0o644));
    assert_eq!((mode.class.name().as_str(), mode.harm), ("fail.wrong.meta", true));
    assert_eq!(mode.would_pass, []);
    let eol = judge(&file(b"b\nz", 0o755));
    assert_eq!(eol.class.name(), "fail.wrong.eol");
    let names: Vec<_> = eol.would_pass.iter().map(|each| each.name()).collect();
    assert_eq!(names, ["eol", "whitespace"]);
}
