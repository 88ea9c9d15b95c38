//! Finding text in a file: on bytes, with line breaks of any kind.

use memchr::memmem;

use crate::text::{Ending, LineModel, lines};

/// Where `find` occurs in `body`, from left to right without overlap, as byte ranges. A line break in `find` matches any
/// one ending, and a match neither starts nor ends between a `\r` and its `\n` (A13, AQ4, AQ16).
pub(super) fn occurrences(body: &[u8], find: &[u8]) -> Vec<(usize, usize)> {
    let pieces: Vec<&[u8]> = pieces(find);
    let mut found = Vec::new();
    let (Some(first), true) = (pieces.first(), !find.is_empty()) else {
        return found;
    };
    let mut at = 0;
    while let Some(start) = next_candidate(body, first, at) {
        match matched_end(body, &pieces, start) {
            Some(end) => {
                found.push((start, end));
                at = end;
            }
            None => at = start + 1,
        }
    }
    found
}

/// The literal pieces of a text between its line breaks; a text with n breaks has n + 1 pieces.
fn pieces(text: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    let mut open = true;
    for line in lines(text, LineModel::Lm3) {
        pieces.push(line.text);
        open = line.ending != Ending::None;
    }
    if open {
        pieces.push(b"");
    }
    pieces
}

fn next_candidate(body: &[u8], first: &[u8], at: usize) -> Option<usize> {
    let rest = body.get(at..)?;
    if !first.is_empty() {
        return memmem::find(rest, first).map(|offset| at + offset);
    }
    // The text starts with a break: candidates are breaks, but never the second half of one.
    memchr::memchr2_iter(b'\n', b'\r', rest)
        .map(|offset| at + offset)
        .find(|start| !(body[*start] == b'\n' && *start > 0 && body[*start - 1] == b'\r'))
}

fn matched_end(body: &[u8], pieces: &[&[u8]], start: usize) -> Option<usize> {
    let mut at = start;
    for (index, piece) in pieces.iter().enumerate() {
        if index > 0 {
            at += match (body.get(at)?, body.get(at + 1)) {
                (b'\r', Some(b'\n')) => 2,
                (b'\r' | b'\n', _) => 1,
                _ => return None,
            };
        }
        if !body.get(at..)?.starts_with(piece) {
            return None;
        }
        at += piece.len();
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breaks_match_any_ending_and_never_half_of_one() {
        assert_eq!(occurrences(b"a\r\nb\nc\rd", b"a\nb\rc\r\nd"), [(0, 8)]);
        assert_eq!(occurrences(b"a\r\nb", b"\nb"), [(1, 4)]);
        assert_eq!(occurrences(b"a\r\nb", b"a\r"), [(0, 3)]);
        assert_eq!(occurrences(b"\r\n\r\n", b"\n"), [(0, 2), (2, 4)]);
        assert_eq!(occurrences(b"\r\n\r\n", b"\n\n"), [(0, 4)]);
        assert_eq!(occurrences(b"a\r\nb", b"a\n\nb"), []);
    }

    #[test]
    fn counted_without_overlap() {
        assert_eq!(occurrences(b"aaa", b"aa"), [(0, 2)]);
        assert_eq!(occurrences(b"aaaa", b"aa"), [(0, 2), (2, 4)]);
        assert_eq!(occurrences(b"x", b""), []);
        assert_eq!(occurrences(b"", b"x"), []);
    }
}
