//! Lines compared by what can be seen of them, and what of the unseen differs.

use bstr::ByteSlice;

use super::class::Flag;
use crate::text::diff::{hunks, matched};
use crate::text::{Ending, Line, LineModel, lines, without_bom};

/// How two texts differ to the eye.
pub(super) struct Sight {
    /// Something visible differs.
    pub(super) visible: bool,
    /// Flags about bytes that nobody sees.
    pub(super) unseen: Vec<Flag>,
}

/// Compares the expected with the actual bytes of a file.
pub(super) fn compare(expected: &[u8], actual: &[u8]) -> Sight {
    let mut unseen = Vec::new();
    let (expected, expected_mark) = without_bom(expected);
    let (actual, actual_mark) = without_bom(actual);
    if expected_mark != actual_mark {
        unseen.push(Flag::Bom);
    }
    let want: Vec<Line<'_>> = lines(expected, LineModel::Lm3).collect();
    let have: Vec<Line<'_>> = lines(actual, LineModel::Lm3).collect();
    let want_seen: Vec<String> = want.iter().map(|line| seen(line.text)).collect();
    let have_seen: Vec<String> = have.iter().map(|line| seen(line.text)).collect();
    let differing = hunks(&want_seen, &have_seen);
    let mut visible = false;
    for hunk in &differing {
        let blank = |lines: &[String]| lines.iter().all(String::is_empty);
        if blank(&want_seen[hunk.old.clone()]) && blank(&have_seen[hunk.new.clone()]) {
            unseen.push(Flag::BlankLines);
        } else if hunk.old.len() == hunk.new.len() {
            for (old, new) in hunk.old.clone().zip(hunk.new.clone()) {
                if same_in_other_bytes(want[old].text, have[new].text) {
                    unseen.push(Flag::Encoding);
                } else {
                    visible = true;
                }
                // Another text in the same place may still have lost its ending.
                compare_endings((&want, old), (&have, new), &mut unseen);
            }
        } else {
            visible = true;
        }
    }
    for (old, new) in matched(want.len(), &differing) {
        compare_line(&want[old], &have[new], &mut unseen);
        compare_endings((&want, old), (&have, new), &mut unseen);
    }
    unseen.sort();
    unseen.dedup();
    Sight { visible, unseen }
}

fn compare_line(want: &Line<'_>, have: &Line<'_>, flags: &mut Vec<Flag>) {
    if want.text == have.text {
        return;
    }
    let (want_indent, want_core, want_trail) = parts(want.text);
    let (have_indent, have_core, have_trail) = parts(have.text);
    if want_core.is_empty() && have_core.is_empty() {
        // A line of blanks only: what it has too much or too little is at its end.
        flags.push(Flag::TrailingWhitespace);
        return;
    }
    if want_indent != have_indent {
        flags.push(Flag::Indent);
    }
    if want_trail != have_trail {
        flags.push(Flag::TrailingWhitespace);
    }
    if want_core != have_core {
        flags.push(if same_in_other_bytes(want_core, have_core) { Flag::Encoding } else { Flag::InnerWhitespace });
    }
}

fn compare_endings((want, old): (&[Line<'_>], usize), (have, new): (&[Line<'_>], usize), flags: &mut Vec<Flag>) {
    let (wanted, had) = (want[old].ending, have[new].ending);
    if wanted == had {
        return;
    }
    let open = wanted == Ending::None || had == Ending::None;
    let last = old + 1 == want.len() && new + 1 == have.len();
    // A line that is the last of its file on one side only needs its break there, which is no fault of its own.
    match (open, last) {
        (true, true) => flags.push(Flag::FinalNewline),
        (true, false) => {}
        (false, _) => flags.push(Flag::Eol),
    }
}

/// Indentation, core and trailing blanks of a line.
fn parts(text: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let blank = |byte: &u8| *byte == b' ' || *byte == b'\t';
    let start = text.iter().take_while(|byte| blank(byte)).count();
    let end = text.len() - text[start..].iter().rev().take_while(|byte| blank(byte)).count();
    (&text[..start], &text[start..end], &text[end..])
}

/// What the eye sees of a line: its characters without blanks.
fn seen(text: &[u8]) -> String {
    decoded(text)
        .chars()
        .filter(|character| !(character.is_whitespace() || matches!(character, '\u{200B}' | '\u{FEFF}')))
        .collect()
}

/// UTF-8, or Latin-1 where it is not.
fn decoded(text: &[u8]) -> String {
    std::str::from_utf8(text).map_or_else(|_| as_latin1(text), str::to_owned)
}

fn as_latin1(text: &[u8]) -> String {
    text.iter().map(|byte| char::from(*byte)).collect()
}

/// The same characters in other bytes, or lossy ones: re-encoded, encoded twice, or replaced by `?` or U+FFFD.
fn same_in_other_bytes(expected: &[u8], actual: &[u8]) -> bool {
    if expected == actual {
        return false;
    }
    let (want, have) = (decoded(expected), decoded(actual));
    if want == have || as_latin1(expected) == have || expected.to_str_lossy() == actual.to_str_lossy() {
        return true;
    }
    let replaced = |(want, have): (char, char)| want == have || (!want.is_ascii() && matches!(have, '?' | '\u{FFFD}'));
    want.chars().count() == have.chars().count() && want.chars().zip(have.chars()).all(replaced)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(expected: &[u8], actual: &[u8]) -> Option<Vec<Flag>> {
        let sight = compare(expected, actual);
        (!sight.visible).then_some(sight.unseen)
    }

    #[test]
    fn each_unseen_side_has_its_flag() {
        assert_eq!(flags(b"a\n", "\u{FEFF}a\n".as_bytes()), Some(vec![Flag::Bom]));
        assert_eq!(flags(b"a\r\nb\n", b"a\nb\n"), Some(vec![Flag::Eol]));
        assert_eq!(flags(b"a\nb", b"a\nb\n"), Some(vec![Flag::FinalNewline]));
        assert_eq!(flags(b"\ta\n", b"    a\n"), Some(vec![Flag::Indent]));
        assert_eq!(flags(b"a\n", b"a \n"), Some(vec![Flag::TrailingWhitespace]));
        assert_eq!(flags(b"\n", b"  \n"), Some(vec![Flag::TrailingWhitespace]));
        assert_eq!(flags(b"a = 1\n", b"a=1\n"), Some(vec![Flag::InnerWhitespace]));
        assert_eq!(flags(b"a b\n", "a\u{A0}b\n".as_bytes()), Some(vec![Flag::InnerWhitespace]));
        assert_eq!(flags(b"a\nb\n", b"a\n\nb\n"), Some(vec![Flag::BlankLines]));
        assert_eq!(flags(b"a\r\n  b", b"a\nb\n"), Some(vec![Flag::Eol, Flag::FinalNewline, Flag::Indent]));
        assert_eq!(flags(b"a\n", b"b\n"), None);
    }

    #[test]
    fn lost_encodings_are_no_other_text() {
        for actual in ["caf\u{e9}\n".as_bytes(), "caf\u{FFFD}\n".as_bytes(), b"caf?\n"] {
            assert_eq!(flags(b"caf\xE9\n", actual), Some(vec![Flag::Encoding]), "{actual:?}");
        }
        assert_eq!(flags("caf\u{e9}\n".as_bytes(), "caf\u{c3}\u{a9}\n".as_bytes()), Some(vec![Flag::Encoding]));
        assert_eq!(flags("caf\u{e9}\n".as_bytes(), b"cafe\n"), None);
    }
}
