//! `edit`: exact text, once or everywhere (C1 to C3, CQ2, CQ12 to CQ14, CQ24). Pure; no disk, no model.

use bstr::ByteSlice;

use super::show::{self, Changed};
use super::{Kind, Refusal, closest, shown};
use crate::text::lines::{count_breaks, dominant, with_breaks};
use crate::text::{LineModel, without_bom};
use crate::tool::{Note, bridge, column, exact};

/// Line numbers that an ambiguous anchor lists at most.
const MAX_NUMBERS: usize = 500;
const MODEL: LineModel = LineModel::Lm2;

/// An edit that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    pub bytes: Vec<u8>,
    /// How many places were replaced.
    pub count: usize,
    pub(super) changed: Vec<Changed>,
    pub notes: Vec<Note>,
}

/// Refuses a text edit that says nothing, before any file is looked at (CQ12).
///
/// # Errors
/// `args_invalid` for an empty `old`, `no_change` where `new` is the same.
pub fn check(old: &str, new: &str) -> Result<(), Refusal> {
    if old.is_empty() {
        let message = "argument `old` is empty: it must be the exact text to replace; nothing changed";
        return Err(Refusal::new(Kind::ArgsInvalid, message)
            .with_note(Note::ArgumentValue)
            .with_note(Note::EmptyAnchor));
    }
    if old == new {
        return Err(Refusal::new(Kind::NoChange, "old and new are the same; nothing changed"));
    }
    Ok(())
}

/// Replaces `old` by `new`.
///
/// # Errors
/// A refusal: nothing is to be written.
pub fn replace(path: &str, before: &[u8], old: &str, new: &str, all: bool) -> Result<Edited, Refusal> {
    check(old, new)?;
    // The mark is invisible to matching and numbering, and always written back (CQ24).
    let (body, mark) = without_bom(before);
    let (old_bytes, new_bytes) = (old.as_bytes(), new.as_bytes());
    let crlf = body.contains_str("\r\n");
    let exact = exact::occurrences(body, old_bytes);
    let bridged = exact.is_empty() && crlf;
    let places = if bridged { bridge::occurrences(body, old_bytes, MODEL) } else { exact };
    match places.len() {
        0 => return Err(missing(path, body, old)),
        1 => {}
        _ if all => {}
        _ => return Err(ambiguous(path, body, old, places.iter().map(|place| place.start))),
    }
    let as_given = !crlf || (!bridged && bridge::holds_break(old_bytes, MODEL));
    let written = if as_given { new_bytes.to_vec() } else { with_breaks(new_bytes, dominant(body, MODEL), MODEL) };
    let mut bytes = exact::spliced(path, body, &places, &written)?;
    let starts = show::starts(&bytes);
    let mut shift = 0_isize;
    let changed = places
        .iter()
        .map(|place| {
            let start = place.start.saturating_add_signed(shift);
            shift += written.len() as isize - place.len() as isize;
            lines_of(&starts, start, &written)
        })
        .collect();
    if bytes == body {
        return Err(Refusal::new(Kind::NoChange, format!("{path} holds the new text already; nothing changed")));
    }
    bytes.splice(0..0, before[..mark].iter().copied());
    let notes = if bridged || written != new_bytes { vec![Note::EolBridged] } else { Vec::new() };
    Ok(Edited { bytes, count: places.len(), changed, notes })
}

fn lines_of(starts: &[usize], start: usize, written: &[u8]) -> Changed {
    let first = show::line_at(starts, start);
    if written.is_empty() {
        // What is left of the line, if the line is still there.
        return Changed { first, count: usize::from(starts.get(first).is_some_and(|begin| *begin < start)) };
    }
    let last = show::line_at(starts, start + written.len() - 1);
    Changed { first, count: last + 1 - first }
}

fn missing(path: &str, body: &[u8], old: &str) -> Refusal {
    let mut text = format!("old was not found in {path}: {}; nothing changed.", shown(old));
    let close = closest::lines_like(body, old);
    if !close.is_empty() {
        text.push_str(&format!(" The closest lines are:\n{}\n", close.join("\n")));
    } else {
        text.push_str(" No line comes close. ");
    }
    let found = |bare: &[u8]| !bare.is_empty() && !bridge::occurrences(body, bare, MODEL).is_empty();
    if column::stripped(old.as_bytes(), MODEL).is_some_and(|bare| found(&bare)) {
        text.push_str(
            "The line-number column of a read is not part of the file: leave it out of old, and copy the exact text.",
        );
        return Refusal::new(Kind::AnchorMissing, text).with_note(Note::NumberColumn);
    }
    text.push_str("Copy the exact text, including its indentation.");
    Refusal::new(Kind::AnchorMissing, text)
}

fn ambiguous(path: &str, body: &[u8], old: &str, offsets: impl Iterator<Item = usize>) -> Refusal {
    let starts = show::starts(body);
    let mut count = 0;
    let mut numbers: Vec<usize> =
        offsets.inspect(|_| count += 1).map(|offset| show::line_at(&starts, offset) + 1).collect();
    numbers.dedup();
    let shown_numbers: Vec<String> = numbers.iter().take(MAX_NUMBERS).map(usize::to_string).collect();
    let more = match numbers.len().saturating_sub(MAX_NUMBERS) {
        0 => String::new(),
        left => format!(" and {left} more lines"),
    };
    let word = if numbers.len() == 1 { "line" } else { "lines" };
    Refusal::new(
        Kind::AnchorAmbiguous,
        format!(
            "old occurs {count} times in {path}, at {word} {}{more}: {}; nothing changed. Include more of the surrounding \
             text, or use edit_lines with the line number, or set replace_all to replace every occurrence.",
            shown_numbers.join(", "),
            shown(old)
        ),
    )
}

/// How many lines a text has.
pub(super) fn count_lines(bytes: &[u8]) -> usize {
    let (body, _) = without_bom(bytes);
    count_breaks(body, MODEL) + usize::from(!body.is_empty() && !body.ends_with(b"\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(before: &[u8], old: &str, new: &str, all: bool) -> Result<Vec<u8>, Kind> {
        replace("f", before, old, new, all).map(|edited| edited.bytes).map_err(|refusal| refusal.kind)
    }

    #[test]
    fn breaks_follow_the_file_where_only_the_unseen_byte_differs() {
        assert_eq!(run(b"one\r\ntwo\r\n", "one\ntwo", "1\n2", false), Ok(b"1\r\n2\r\n".to_vec()));
        assert_eq!(run(b"one\r\ntwo\n", "one", "1\n2", false), Ok(b"1\n2\r\ntwo\n".to_vec()));
        assert_eq!(run(b"a\r\nb\r\nc\n", "b", "1\n2", false), Ok(b"a\r\n1\r\n2\r\nc\n".to_vec()));
        // It matched byte for byte and holds a break: as given.
        assert_eq!(run(b"a\r\nb\nc\r\n", "b\nc", "B\nC", false), Ok(b"a\r\nB\nC\r\n".to_vec()));
        assert_eq!(run(b"a\nb\n", "a\r\nb", "x", false), Err(Kind::AnchorMissing));
        assert_eq!(run(b"a\nb\n", "a", "x\r\ny", false), Ok(b"x\r\ny\nb\n".to_vec()));
        assert_eq!(run(b"a\r\nb\r\n", "a\nb", "a\r\nb", false), Err(Kind::NoChange));
    }

    #[test]
    fn anchors_are_exact() {
        assert_eq!(run(b"aa", "a", "b", false), Err(Kind::AnchorAmbiguous));
        assert_eq!(run(b"aa", "a", "b", true), Ok(b"bb".to_vec()));
        assert_eq!(run(b"aa", "", "b", true), Err(Kind::ArgsInvalid));
        assert_eq!(run(b"aa", "a", "a", true), Err(Kind::NoChange));
        assert_eq!(run("\u{FEFF}a".as_bytes(), "\u{FEFF}a", "b", true), Err(Kind::AnchorMissing));
        assert_eq!(run("\u{FEFF}a".as_bytes(), "a", "b", true), Ok("\u{FEFF}b".as_bytes().to_vec()));
    }

    #[test]
    fn refusals_say_where_and_what_to_do() {
        let text = |before: &[u8], old: &str| replace("f", before, old, "new", false).unwrap_err().text;
        assert!(text(b"a\nb a\na a\n", "a").contains("occurs 4 times in f, at lines 1, 2, 3: a;"));
        assert!(text(b"x x\n", "x").contains("at line 1:"));
        let column = replace("f", b"a\r\nb\r\n", "1: a\n2: b", "x", false).unwrap_err();
        assert!(column.text.contains("column") && column.notes.contains(&Note::NumberColumn), "{}", column.text);
        assert!(!text(b"zzz\n", "1: a").contains("column"));
    }

    #[test]
    fn the_changed_lines_are_those_of_the_result() {
        let changed = |before: &[u8], old: &str, new: &str| replace("f", before, old, new, true).unwrap().changed;
        let at = |first, count| Changed { first, count };
        assert_eq!(changed(b"a\nb\na\n", "a", "x\ny"), [at(0, 2), at(3, 2)]);
        assert_eq!(changed(b"a\nb\nc\n", "b\n", ""), [at(1, 0)]);
        assert_eq!(changed(b"a\nbz\nc\n", "b", ""), [at(1, 0)]);
        assert_eq!(changed(b"a\nzb\nc\n", "b", ""), [at(1, 1)]);
        assert_eq!(changed(b"b", "b", ""), [at(0, 0)]);
    }

    proptest! {
        #[test]
        fn what_lies_around_stays(
            before in proptest::collection::vec(proptest::sample::select(b"ab\r\n\xE9".to_vec()), 0..40),
            old in "[ab\r\n]{1,3}",
            new in "[ab\r\n]{0,3}",
        ) {
            let Ok(after) = run(&before, &old, &new, false) else { return Ok(()) };
            let normal = |bytes: &[u8]| with_breaks(bytes, crate::text::Ending::Lf, MODEL);
            // Up to the kind of their breaks, the one place and the lengths around it decide the result.
            let head = (0..=before.len()).find(|at| {
                (0..=before.len() - at).any(|tail| {
                    let middle = &before[*at..before.len() - tail];
                    (middle == old.as_bytes() || normal(middle) == normal(old.as_bytes()))
                        && after.starts_with(&before[..*at])
                        && after.ends_with(&before[before.len() - tail..])
                        && after.len() >= at + tail
                        && normal(&after[*at..after.len() - tail]) == normal(new.as_bytes())
                })
            });
            prop_assert!(head.is_some(), "{:?} -> {:?}", before, after);
        }

        #[test]
        fn an_edit_and_its_inverse_give_the_original(
            before in proptest::collection::vec(proptest::sample::select(b"ab\r\n \xE9".to_vec()), 0..40),
            old in "[ab]{1,3}",
            new in "[xyz]{1,4}",
        ) {
            let Ok(there) = run(&before, &old, &new, false) else { return Ok(()) };
            prop_assert_eq!(run(&there, &new, &old, false), Ok(before));
        }
    }
}
