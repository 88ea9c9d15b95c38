//! What edit_file says: results and refusals. Texts that the seed states are the seed's.

use std::fmt::Write as _;

use bstr::ByteSlice;

use super::replace::Edited;
use crate::text::{LineModel, lines, without_bom};
use crate::tool::{Kind, Note, Refusal, column};

/// Characters of a shown line (Unicode scalar values, AQ10).
const SHOWN: usize = 200;
/// Characters of an excerpt of `find` in a refusal.
const EXCERPT: usize = 60;
/// Lines that a result shows at most.
const SHOWN_LINES: usize = 3;

/// The result of a replacement: one line, with the edited lines as they now read.
pub(super) fn replaced(path: &str, edited: &Edited, find: Option<&str>) -> String {
    let size = edited.bytes.len();
    let mut text = match edited.moved_from {
        Some(asked) => format!(
            "line {asked} did not contain \"{}\"; replaced line {} of {path}, the one line that does",
            excerpt(find.unwrap_or_default().as_bytes()),
            edited.line
        ),
        None => format!("replaced at line {} of {path}", edited.line),
    };
    if let Some(indentation) = &edited.kept_indentation {
        // Writing to a String cannot fail.
        let _ = write!(text, ", keeping the line's indentation ({})", indentation_in_words(indentation));
    }
    let (body, _) = without_bom(&edited.bytes);
    let shown: Vec<String> = lines(body, LineModel::Lm3)
        .skip(edited.line - 1)
        .take(edited.covers.min(SHOWN_LINES))
        .map(|line| quote(line.text))
        .collect();
    let _ = write!(text, "; now {size} bytes; ");
    let last = edited.line + edited.covers - 1;
    let _ = match (shown.is_empty(), edited.covers) {
        (true, _) => write!(text, "line {} is gone", edited.line),
        (_, 1) => write!(text, "line {} now: {}", edited.line, shown.join(", ")),
        _ => write!(text, "lines {}-{last} now: {}", edited.line, shown.join(", ")),
    };
    if edited.covers > SHOWN_LINES {
        let _ = write!(text, " (and {} more)", edited.covers - SHOWN_LINES);
    }
    text
}

/// Spaces and tabs in words, tabs first.
fn indentation_in_words(indentation: &[u8]) -> String {
    let tabs = indentation.iter().filter(|byte| **byte == b'\t').count();
    let spaces = indentation.len() - tabs;
    let count = |number: usize, name: &str| format!("{number} {name}{}", if number == 1 { "" } else { "s" });
    match (tabs, spaces) {
        (0, spaces) => count(spaces, "space"),
        (tabs, 0) => count(tabs, "tab"),
        (tabs, spaces) => format!("{} and {}", count(tabs, "tab"), count(spaces, "space")),
    }
}

/// A line in double quotes, with the characters that would break it escaped, cut at 200 characters.
fn quote(text: &[u8]) -> String {
    let mut out = String::from("\"");
    let mut characters = text.chars();
    for character in characters.by_ref().take(SHOWN) {
        match character {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            other => out.push(other),
        }
    }
    if characters.next().is_some() {
        out.push('…');
    }
    out.push('"');
    out
}

/// The first line of a text, cut at 60 characters.
pub(super) fn excerpt(text: &[u8]) -> String {
    let first = lines(text, LineModel::Lm3).next().map_or(&b""[..], |line| line.text);
    let mut out: String = first.chars().take(EXCERPT).collect();
    if first.chars().count() > EXCERPT {
        out.push('…');
    }
    out
}

pub(super) fn multi_line(content: &[u8]) -> Refusal {
    let count = lines(content, LineModel::Lm3).count();
    let marker = content.find("[end of file]").is_some() || content.find("[more: call again").is_some();
    let hint = if marker { "; leave out the marker that read_file ends with" } else { "" };
    let refusal = Refusal::new(
        Kind::MultiLine,
        format!("content has {count} lines, and a line edit writes one; send one line per call{hint}; nothing changed"),
    );
    if marker { refusal.with_note(Note::ReadMarker) } else { refusal }
}

pub(super) fn line_range(path: &str, number: i64, count: usize) -> Refusal {
    let lines = if count == 1 { "line" } else { "lines" };
    Refusal::new(Kind::LineRange, format!("there is no line {number}: {path} has {count} {lines}; nothing changed"))
}

pub(super) fn line_mismatch(number: usize, find: &[u8], actual: &[u8], holders: usize) -> Refusal {
    let others = match holders {
        0 => "no line does".to_owned(),
        several => format!("{several} lines do"),
    };
    let refusal = Refusal::new(
        Kind::LineMismatch,
        format!(
            "line {number} does not contain \"{}\" (it reads \"{}\"), and {others}; read the file again; nothing changed",
            excerpt(find),
            excerpt(actual)
        ),
    );
    if column::has(find) { refusal.with_note(Note::NumberColumn) } else { refusal }
}

pub(super) fn anchor_missing(find: &[u8]) -> Refusal {
    let refusal =
        |hint: &str| Refusal::new(Kind::AnchorMissing, format!("text to replace not found: {}{hint}", excerpt(find)));
    if column::has(find) {
        refusal(" (leave out the line numbers that read_file shows before each line)").with_note(Note::NumberColumn)
    } else {
        refusal("")
    }
}

pub(super) fn anchor_ambiguous(find: &[u8], count: usize) -> Refusal {
    Refusal::new(
        Kind::AnchorAmbiguous,
        format!("text to replace occurs {count} times, include more surrounding text: {}", excerpt(find)),
    )
}

pub(super) fn guard_breaks(line: usize, have: usize, want: usize) -> Refusal {
    Refusal::new(
        Kind::Guard,
        format!(
            "edit at line {line} refused: the file would have {have} line breaks, not {want}, more than the edit names; nothing changed"
        ),
    )
}

pub(super) fn guard_line(line: usize, other: usize) -> Refusal {
    Refusal::new(
        Kind::Guard,
        format!(
            "edit at line {line} refused: line {other} would change as well, more than the edit names; nothing changed"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_cut_and_escaped() {
        assert_eq!(quote(b"a\t\"b\\"), "\"a\\t\\\"b\\\\\"");
        assert_eq!(quote("é".repeat(200).as_bytes()), format!("\"{}\"", "é".repeat(200)));
        assert_eq!(quote("é".repeat(201).as_bytes()), format!("\"{}…\"", "é".repeat(200)));
        assert_eq!(excerpt(b"one\ntwo"), "one");
        assert_eq!(excerpt("x".repeat(61).as_bytes()), format!("{}…", "x".repeat(60)));
    }

    #[test]
    fn indentation_is_told_in_words() {
        assert_eq!(indentation_in_words(b"    "), "4 spaces");
        assert_eq!(indentation_in_words(b"\t"), "1 tab");
        assert_eq!(indentation_in_words(b"\t\t  "), "2 tabs and 2 spaces");
    }
}
