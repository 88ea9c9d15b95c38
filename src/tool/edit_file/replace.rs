//! The edit itself: from bytes and intent to new bytes or a refusal. Pure; no disk, no model.

use super::words;
use crate::text::lines::{count_breaks, dominant, strip_one_break, with_breaks};
use crate::text::{Ending, Line, LineModel, lines, without_bom};
use crate::tool::{Kind, Note, Refusal, bridge};

/// What is to be replaced. At least one of `line` and a non-empty `find` must be there.
#[derive(Clone, Copy, Debug)]
pub struct Intent<'a> {
    pub content: &'a str,
    pub line: Option<i64>,
    pub find: Option<&'a str>,
}

/// An edit that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    pub bytes: Vec<u8>,
    /// 1-based number of the first line of the edit.
    pub line: usize,
    /// How many lines it covers, at least one.
    pub covers: usize,
    /// The number that was asked for, where another line was edited.
    pub moved_from: Option<i64>,
    /// The indentation that was kept, where it was.
    pub kept_indentation: Option<Vec<u8>>,
    pub notes: Vec<Note>,
}

/// Replaces one line or one text (rules A4 to A16 and decisions AQ1 to AQ18 of the tool catalogue).
///
/// # Errors
/// A refusal: nothing is to be written.
pub fn replace(path: &str, before: &[u8], intent: Intent<'_>) -> Result<Edited, Refusal> {
    // The mark is kept outside line 1: not shown, not matched, always written back (AQ5).
    let (body, mark) = without_bom(before);
    let mut edited = match intent.line {
        Some(line) => replace_line(path, body, line, intent.find, intent.content)?,
        None => replace_text(body, intent.find.unwrap_or_default(), intent.content)?,
    };
    if mark > 0 {
        edited.bytes.splice(0..0, before[..mark].iter().copied());
    }
    Ok(edited)
}

fn replace_line(path: &str, body: &[u8], number: i64, find: Option<&str>, content: &str) -> Result<Edited, Refusal> {
    let content = strip_one_break(content.as_bytes());
    if count_breaks(content, LineModel::Lm3) > 0 {
        return Err(words::multi_line(content));
    }
    let all: Vec<Line<'_>> = lines(body, LineModel::Lm3).collect();
    let asked = usize::try_from(number)
        .ok()
        .filter(|asked| (1..=all.len()).contains(asked))
        .ok_or_else(|| words::line_range(path, number, all.len()))?;
    let index = match find.map(str::as_bytes).map(strip_one_break) {
        Some(find) if !find.is_empty() => line_with(&all, asked - 1, find)?,
        _ => asked - 1,
    };
    let line = all[index];
    let indentation = kept_indentation(line.text, content);
    let mut bytes = Vec::with_capacity(body.len() + content.len());
    bytes.extend_from_slice(&body[..line.start]);
    bytes.extend_from_slice(indentation);
    bytes.extend_from_slice(content);
    bytes.extend_from_slice(&body[line.text_end()..]);
    guard_line(&all, index, &bytes)?;
    let mut notes = Vec::new();
    if index + 1 != asked {
        notes.push(Note::LineMoved);
    }
    if !indentation.is_empty() {
        notes.push(Note::IndentKept);
    }
    Ok(Edited {
        bytes,
        line: index + 1,
        covers: 1,
        moved_from: (index + 1 != asked).then_some(number),
        kept_indentation: (!indentation.is_empty()).then(|| indentation.to_vec()),
        notes,
    })
}

/// The numbered line if it contains `find`, else the one line that does (A10).
fn line_with(all: &[Line<'_>], numbered: usize, find: &[u8]) -> Result<usize, Refusal> {
    let finder = memchr::memmem::Finder::new(find);
    if finder.find(all[numbered].text).is_some() {
        return Ok(numbered);
    }
    let mut holders =
        all.iter().enumerate().filter(|(_, line)| finder.find(line.text).is_some()).map(|(index, _)| index);
    match (holders.next(), holders.next()) {
        (Some(only), None) => Ok(only),
        (first, second) => {
            let count = usize::from(first.is_some()) + usize::from(second.is_some()) + holders.count();
            Err(words::line_mismatch(numbered + 1, find, all[numbered].text, count))
        }
    }
}

/// The indentation that is put before `content` (A8): the old line's, when content has none of its own, is not empty,
/// and the two differ by more than blanks at their ends.
fn kept_indentation<'a>(old: &'a [u8], content: &[u8]) -> &'a [u8] {
    let indentation = &old[..old.iter().take_while(|byte| is_blank(**byte)).count()];
    let bare = content.first().is_some_and(|byte| !is_blank(*byte));
    if bare && trim(old) != trim(content) { indentation } else { b"" }
}

fn replace_text(body: &[u8], find: &str, content: &str) -> Result<Edited, Refusal> {
    let find = find.as_bytes();
    let found = bridge::occurrences(body, find, LineModel::Lm3);
    let (start, end) = match found.as_slice() {
        [only] => (only.start, only.end),
        [] => return Err(words::anchor_missing(find)),
        several => return Err(words::anchor_ambiguous(find, several.len())),
    };
    let replacement = with_breaks(content.as_bytes(), dominant(body, LineModel::Lm3), LineModel::Lm3);
    let mut bytes = Vec::with_capacity(body.len() + replacement.len());
    bytes.extend_from_slice(&body[..start]);
    bytes.extend_from_slice(&replacement);
    bytes.extend_from_slice(&body[end..]);
    let line = count_breaks(&body[..start], LineModel::Lm3) + 1;
    guard_text(body, (start, end), &replacement, &bytes, line)?;
    let breaks = count_breaks(&replacement, LineModel::Lm3);
    let ends_with_break = lines(&replacement, LineModel::Lm3).last().is_some_and(|last| last.ending != Ending::None);
    let bridged = &body[start..end] != find || replacement != content.as_bytes();
    Ok(Edited {
        bytes,
        line,
        covers: (1 + breaks - usize::from(ends_with_break)).max(1),
        moved_from: None,
        kept_indentation: None,
        notes: if bridged { vec![Note::EolBridged] } else { Vec::new() },
    })
}

/// A16 for a line edit: every other line as before, and the edited one still with its own ending.
fn guard_line(before: &[Line<'_>], index: usize, after: &[u8]) -> Result<(), Refusal> {
    let breaks = |count: usize, last: Ending| count - usize::from(last == Ending::None);
    let want = breaks(before.len(), before.last().map_or(Ending::Lf, |line| line.ending));
    let after: Vec<Line<'_>> = lines(after, LineModel::Lm3).collect();
    let have = breaks(after.len(), after.last().map_or(Ending::Lf, |line| line.ending));
    if have != want {
        return Err(words::guard_breaks(index + 1, have, want));
    }
    // An emptied last line without an ending is no line any more.
    let pairs = before.iter().zip(after.iter().map(Some).chain(std::iter::repeat(None)));
    for (at, (old, new)) in pairs.enumerate() {
        let same = match new {
            Some(new) if at == index => old.ending == new.ending,
            Some(new) => old.text == new.text && old.ending == new.ending,
            None => at == index && at + 1 == before.len() && old.ending == Ending::None,
        };
        if !same {
            return Err(words::guard_line(index + 1, at + 1));
        }
    }
    Ok(())
}

/// A16 for a text edit: the breaks are those of before less those removed and plus those added, and the lines wholly
/// before and wholly after the match are as they were.
fn guard_text(
    body: &[u8],
    (start, end): (usize, usize),
    replacement: &[u8],
    after: &[u8],
    line: usize,
) -> Result<(), Refusal> {
    let count = |bytes: &[u8]| count_breaks(bytes, LineModel::Lm3);
    let want = count(body) - count(&body[start..end]) + count(replacement);
    let have = count(after);
    if have != want {
        return Err(words::guard_breaks(line, have, want));
    }
    let old: Vec<Line<'_>> = lines(body, LineModel::Lm3).collect();
    let new: Vec<Line<'_>> = lines(after, LineModel::Lm3).collect();
    let same = |a: &Line<'_>, b: &Line<'_>| a.text == b.text && a.ending == b.ending;
    let leading = old.iter().take_while(|each| each.end() <= start).count();
    let trailing = old.iter().rev().take_while(|each| each.start > end).count();
    let differs_before = (0..leading).find(|at| new.get(*at).is_none_or(|each| !same(&old[*at], each)));
    let differs_after = (1..=trailing).find(|back| {
        let (at, other) = (old.len() - back, new.len().checked_sub(*back));
        other.is_none_or(|other| !same(&old[at], &new[other]))
    });
    match differs_before.or(differs_after.map(|back| old.len() - back)) {
        Some(at) => Err(words::guard_line(line, at + 1)),
        None => Ok(()),
    }
}

/// Refuses a file that is not text, as far as a NUL byte tells.
pub(super) fn check_text(path: &str, bytes: &[u8]) -> Result<(), Refusal> {
    if memchr::memchr(0, bytes).is_some() {
        return Err(Refusal::new(
            Kind::Binary,
            format!("{path} is a binary file (it holds a NUL byte), and replace edits text; nothing changed"),
        ));
    }
    Ok(())
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

fn trim(text: &[u8]) -> &[u8] {
    let start = text.iter().take_while(|byte| is_blank(**byte)).count();
    let end = text.len() - text[start..].iter().rev().take_while(|byte| is_blank(**byte)).count();
    &text[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(before: &[u8], line: Option<i64>, find: Option<&str>, content: &str) -> Result<Vec<u8>, Kind> {
        replace("f", before, Intent { content, line, find }).map(|edited| edited.bytes).map_err(|refusal| refusal.kind)
    }

    #[test]
    fn the_last_line_may_be_emptied() {
        assert_eq!(run(b"a\nb", Some(2), None, ""), Ok(b"a\n".to_vec()));
        assert_eq!(run(b"a\nb\n", Some(2), None, ""), Ok(b"a\n\n".to_vec()));
        assert_eq!(run(b"a", Some(1), None, ""), Ok(b"".to_vec()));
    }

    #[test]
    fn the_guard_refuses_what_would_join_a_cr_and_an_lf() {
        assert_eq!(run(b"x\rY\nz\n", Some(2), None, ""), Err(Kind::Guard));
        assert_eq!(run(b"x\rY\nz\n", None, Some("Y"), ""), Err(Kind::Guard));
        assert_eq!(run(b"x\rY\nz\n", None, Some("Y"), "\nY"), Err(Kind::Guard));
        assert_eq!(run(b"a\rb\rc\nd", None, Some("c"), "c\n"), Err(Kind::Guard));
    }

    #[test]
    fn the_blind_spot_is_said() {
        let edited =
            replace("f", b"    return 1\n", Intent { content: "print(1)", line: Some(1), find: None }).unwrap();
        assert_eq!(edited.bytes, b"    print(1)\n");
        assert_eq!(edited.kept_indentation.as_deref(), Some(&b"    "[..]));
        assert_eq!(edited.notes, [Note::IndentKept]);
    }

    #[test]
    fn a_mark_is_neither_matched_nor_lost() {
        let file = "\u{FEFF}title\nx\n".as_bytes();
        assert_eq!(run(file, Some(1), None, "T"), Ok("\u{FEFF}T\nx\n".as_bytes().to_vec()));
        assert_eq!(run(file, None, Some("\u{FEFF}title"), "T"), Err(Kind::AnchorMissing));
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let pieces: Vec<&[u8]> =
            vec![b"\n", b"\r\n", b"\r", b"a", b"b", b" ", b"\t", b"\xE9", b"ab", "\u{FEFF}".as_bytes()];
        let piece = proptest::sample::select(pieces);
        proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn a_line_edit_changes_its_line_alone(before in bytes(), line in -1_i64..12, find in "[ab]{0,2}", content in "[ab \t]{0,4}[\n\r]?") {
            let intent = Intent { content: &content, line: Some(line), find: Some(&find) };
            let Ok(edited) = replace("f", &before, intent) else { return Ok(()) };
            let (body, mark) = without_bom(&before);
            prop_assert_eq!(&edited.bytes[..mark], &before[..mark]);
            let old: Vec<_> = lines(body, LineModel::Lm3).collect();
            let index = edited.line - 1;
            let head = mark + old[index].start;
            let tail = before.len() - mark - old[index].text_end();
            prop_assert_eq!(&edited.bytes[..head], &before[..head]);
            prop_assert_eq!(&edited.bytes[edited.bytes.len() - tail..], &before[before.len() - tail..]);
        }

        #[test]
        fn a_text_edit_and_its_inverse_give_the_original(before in bytes(), find in "[ab]{1,2}", content in "[xyz]{1,4}") {
            let Ok(there) = run(&before, None, Some(&find), &content) else { return Ok(()) };
            prop_assert_eq!(run(&there, None, Some(&content), &find), Ok(before));
        }

        #[test]
        fn a_text_edit_keeps_what_lies_around_it(before in bytes(), find in "[ab\n]{1,3}", content in "[ab\n\r]{0,4}") {
            let (body, mark) = without_bom(&before);
            let Ok(after) = run(&before, None, Some(&find), &content) else { return Ok(()) };
            let [place] = &bridge::occurrences(body, find.as_bytes(), LineModel::Lm3)[..] else { panic!("one place") };
            let after = &after[mark..];
            prop_assert!(after.starts_with(&body[..place.start]));
            prop_assert!(after.ends_with(&body[place.end..]));
        }
    }
}
