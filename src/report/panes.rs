//! Three panes of a file, before, expected and actual: every byte visible, the differing ones marked.

use std::ops::Range;

use serde_json::{Value, json};

use crate::record::kept::{Kept, KeptFile};
use crate::text::diff::{Hunk, hunks, keys};
use crate::text::{Line, LineModel, lines, visible};

/// Equal lines around a difference that are shown.
const CONTEXT: usize = 3;
/// Lines of a pane, and bytes of a line, that are shown at most.
const MAX_LINES: usize = 400;
const MAX_LINE: usize = 2_000;

const SAME: u8 = 0;
const DIFFERS: u8 = 1;
const ELIDED: u8 = 2;

/// A file as the page wants it.
pub(super) fn file(file: &KeptFile) -> Value {
    // What was to change is marked in what was there; what came out wrong, in what came out.
    json!({
        "path": visible::inert(&file.path),
        "before": pane(file.before.as_ref(), file.expected.as_ref()),
        "expected": pane(file.expected.as_ref(), file.actual.as_ref()),
        "actual": pane(file.actual.as_ref(), file.expected.as_ref()),
    })
}

fn pane(side: Option<&Kept>, other: Option<&Kept>) -> Value {
    let Some(side) = side else {
        return Value::Null;
    };
    let note = note(side, other);
    let (shown, cut) = match side.bytes() {
        Some(bytes) => marked(&bytes, &other.and_then(Kept::bytes).unwrap_or_default()),
        None => (Vec::new(), matches!(side, Kept::Large { .. })),
    };
    json!({ "note": note, "cut": cut, "lines": shown })
}

fn note(side: &Kept, other: Option<&Kept>) -> Option<String> {
    let mode = |kept: &Kept| match kept {
        Kept::Text { mode, .. } | Kept::Base64 { mode, .. } | Kept::Large { mode, .. } => Some(*mode),
        _ => None,
    };
    let differs = |mode_here: u32| other.and_then(mode).is_some_and(|there| there != mode_here) || mode_here != 0o644;
    match side {
        Kept::Symlink { target } => Some(format!("symlink to {}", visible::excerpt(target, 200))),
        Kept::Directory => Some("a directory".to_owned()),
        Kept::Other => Some("neither file, link nor directory".to_owned()),
        Kept::Large { bytes, .. } => Some(format!("{bytes} bytes: too large to be kept")),
        file => mode(file).filter(|mode| differs(*mode)).map(|mode| format!("mode {mode:04o}")),
    }
}

type Segments = Vec<(u8, String)>;

/// The lines of `side` with what differs from `other` marked, and whether something is left out.
fn marked(side: &[u8], other: &[u8]) -> (Vec<Segments>, bool) {
    let here: Vec<Line<'_>> = lines(side, LineModel::Lm3).collect();
    let there: Vec<Line<'_>> = lines(other, LineModel::Lm3).collect();
    let found = hunks(&keys(&here), &keys(&there));
    let mut out: Vec<Segments> = Vec::new();
    let mut cut = false;
    let mut at = 0;
    let equal = |range: Range<usize>, out: &mut Vec<Segments>, cut: &mut bool| {
        out.extend(here[range].iter().map(|line| vec![(SAME, shown(line, cut))]));
    };
    for hunk in &found {
        between(at, hunk.old.start, at == 0, false, &mut out, &mut cut, &equal);
        differing(hunk, &here, &there, &mut out, &mut cut);
        at = hunk.old.end;
    }
    between(at, here.len(), found.is_empty() || at == 0, true, &mut out, &mut cut, &equal);
    if out.len() > MAX_LINES {
        out.truncate(MAX_LINES);
        cut = true;
    }
    (out, cut)
}

/// Puts equal lines into a pane, and notes where one was cut.
type Equal<'a> = dyn Fn(Range<usize>, &mut Vec<Segments>, &mut bool) + 'a;

/// Equal lines between two differences, the middle of many left out.
fn between(
    from: usize,
    to: usize,
    first: bool,
    last: bool,
    out: &mut Vec<Segments>,
    cut: &mut bool,
    equal: &Equal<'_>,
) {
    let (head, tail) = (if first { 0 } else { CONTEXT }, if last { 0 } else { CONTEXT });
    if to - from <= head + tail + 1 {
        equal(from..to, out, cut);
        return;
    }
    equal(from..from + head, out, cut);
    out.push(vec![(ELIDED, format!("… {} equal lines", to - from - head - tail))]);
    equal(to - tail..to, out, cut);
}

/// The lines of a difference; where both sides have as many, what their pairs have in common stays unmarked.
fn differing(hunk: &Hunk, here: &[Line<'_>], there: &[Line<'_>], out: &mut Vec<Segments>, cut: &mut bool) {
    let paired = hunk.old.len() == hunk.new.len();
    for (offset, line) in here[hunk.old.clone()].iter().enumerate() {
        let mine = shown(line, cut);
        let segments = match paired {
            true => common(&mine, &shown(&there[hunk.new.start + offset], cut)),
            false => vec![(DIFFERS, mine)],
        };
        out.push(segments);
    }
}

/// The middle in which a line differs from another, between what both begin and end with.
fn common(mine: &str, other: &str) -> Segments {
    let prefix: usize = mine.chars().zip(other.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    let (rest, other) = (&mine[prefix..], &other[prefix..]);
    let suffix: usize =
        rest.chars().rev().zip(other.chars().rev()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    let (middle, end) = rest.split_at(rest.len() - suffix);
    [(SAME, &mine[..prefix]), (DIFFERS, middle), (SAME, end)]
        .into_iter()
        .filter(|(kind, text)| *kind == DIFFERS || !text.is_empty())
        .map(|(kind, text)| (kind, text.to_owned()))
        .collect()
}

fn shown(line: &Line<'_>, cut: &mut bool) -> String {
    if line.text.len() <= MAX_LINE {
        return visible::line(line);
    }
    *cut = true;
    format!("{}…", visible::text(visible::prefix(line.text, MAX_LINE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str) -> Kept {
        Kept::Text { text: text.to_owned(), mode: 0o644 }
    }

    #[test]
    fn what_differs_is_marked_and_nothing_else() {
        let actual = pane(Some(&kept("a\nx = 2\nc\n")), Some(&kept("a\nx = 1;\nc\n")));
        assert_eq!(actual["lines"], json!([[[0, "a␊"]], [[0, "x = "], [1, "2"], [0, "␊"]], [[0, "c␊"]]]));
        let ending = pane(Some(&kept("a\r\n")), Some(&kept("a\n")));
        assert_eq!(ending["lines"], json!([[[0, "a"], [1, "␍"], [0, "␊"]]]));
        let longer: String = (0..50).map(|n| format!("{n}\n")).collect();
        let lines = pane(Some(&kept(&longer)), Some(&kept(&longer.replace("25\n", "26\n"))));
        assert_eq!(lines["lines"][0], json!([[2, "… 22 equal lines"]]));
        assert_eq!(lines["lines"].as_array().unwrap().len(), 9);
        assert_eq!(pane(None, Some(&kept(""))), Value::Null);
        assert_eq!(pane(Some(&Kept::Directory), None)["note"], "a directory");
    }

    #[test]
    fn long_lines_are_cut_and_bytes_shown() {
        let line = pane(Some(&kept(&"x".repeat(1_000_000))), None);
        assert!(line["cut"] == true && line.to_string().len() < 3_000);
        let bytes = Kept::Base64 { bytes: "/wA=".into(), mode: 0o755 };
        assert_eq!(pane(Some(&bytes), None), json!({ "note": "mode 0755", "cut": false, "lines": [[[1, "\\xFF␀"]]] }));
    }
}
