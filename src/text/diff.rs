//! A line diff for people: byte-visible, a few lines of context. Scoring never uses it; scoring compares bytes.

use std::hash::Hash;
use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::lines::{Line, LineModel, lines};
use super::visible;

/// Beyond so many lines on both sides, what differs is one hunk: a diff in detail would cost time and help nobody.
const MAX_DETAIL: usize = 4000;

/// A place where two texts differ: line indexes, 0-based. One of the ranges may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    pub old: Range<usize>,
    pub new: Range<usize>,
}

/// The places where two lists of lines differ, in order; what lies between them is equal.
pub fn hunks<K: Hash + Eq + Ord>(old: &[K], new: &[K]) -> Vec<Hunk> {
    let shortest = old.len().min(new.len());
    let head = (0..shortest).take_while(|at| old[*at] == new[*at]).count();
    let tail = (1..=shortest - head).take_while(|back| old[old.len() - back] == new[new.len() - back]).count();
    let (old, new) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    if old.is_empty() && new.is_empty() {
        return Vec::new();
    }
    if old.is_empty() || new.is_empty() || (old.len() > MAX_DETAIL && new.len() > MAX_DETAIL) {
        return vec![Hunk { old: head..head + old.len(), new: head..head + new.len() }];
    }
    let shifted = |range: Range<usize>| range.start + head..range.end + head;
    capture_diff_slices(Algorithm::Myers, old, new)
        .into_iter()
        .filter(|op| !matches!(op, DiffOp::Equal { .. }))
        .map(|op| Hunk { old: shifted(op.old_range()), new: shifted(op.new_range()) })
        .collect()
}

/// Pairs of line indexes that belong together because they are equal.
pub fn matched(old_len: usize, hunks: &[Hunk]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let (mut old, mut new) = (0, 0);
    let end = Hunk { old: old_len..old_len, new: 0..0 };
    for hunk in hunks.iter().chain([&end]) {
        while old < hunk.old.start {
            pairs.push((old, new));
            old += 1;
            new += 1;
        }
        (old, new) = (hunk.old.end, hunk.new.end);
    }
    pairs
}

/// How many lines two texts have in common at their beginning, and how many more at their end.
pub fn common_ends(old: &[Line<'_>], new: &[Line<'_>]) -> (usize, usize) {
    let same = |a: &Line<'_>, b: &Line<'_>| a.text == b.text && a.ending == b.ending;
    let shortest = old.len().min(new.len());
    let head = (0..shortest).take_while(|at| same(&old[*at], &new[*at])).count();
    let tail = (1..=shortest - head).take_while(|back| same(&old[old.len() - back], &new[new.len() - back])).count();
    (head, tail)
}

/// A unified diff from `old` to `new` with every byte visible, `context` unchanged lines around a change, at most
/// `max_lines` lines of at most `max_width` characters; what is left out is said. Empty when the two are equal.
pub fn unified(old: &[u8], new: &[u8], context: usize, max_lines: usize, max_width: usize) -> String {
    let old: Vec<Line<'_>> = lines(old, LineModel::Lm3).collect();
    let new: Vec<Line<'_>> = lines(new, LineModel::Lm3).collect();
    let hunks = hunks(&keys(&old), &keys(&new));
    let mut out = Vec::new();
    for group in hunks.chunk_by(|a, b| b.old.start - a.old.end <= 2 * context) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let before = first.old.start.min(context);
        let after = (old.len() - last.old.end).min(context);
        let from = first.old.start - before;
        out.push(format!(
            "@@ -{},{} +{},{} @@",
            from + 1,
            last.old.end + after - from,
            first.new.start - before + 1,
            last.new.end + after - (first.new.start - before),
        ));
        let mut at = from;
        for hunk in group {
            out.extend(old[at..hunk.old.start].iter().map(|line| shown(' ', line, max_width)));
            out.extend(old[hunk.old.clone()].iter().map(|line| shown('-', line, max_width)));
            out.extend(new[hunk.new.clone()].iter().map(|line| shown('+', line, max_width)));
            at = hunk.old.end;
        }
        out.extend(old[at..at + after].iter().map(|line| shown(' ', line, max_width)));
    }
    if out.len() > max_lines {
        let left = out.len() - max_lines;
        out.truncate(max_lines);
        out.push(format!("… {left} more lines"));
    }
    out.join("\n")
}

/// What two lines are compared by: their bytes, ending included.
pub fn keys<'a>(lines: &[Line<'a>]) -> Vec<(&'a [u8], super::Ending)> {
    lines.iter().map(|line| (line.text, line.ending)).collect()
}

fn shown(mark: char, line: &Line<'_>, max_width: usize) -> String {
    let text = visible::line(line);
    let mut out = String::with_capacity(text.len() + 1);
    out.push(mark);
    if text.chars().count() > max_width {
        out.extend(text.chars().take(max_width));
        out.push('…');
    } else {
        out.push_str(&text);
    }
    if line.ending == super::Ending::None {
        out.push_str(" (no line ending)");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_bytes_that_differ() {
        let diff = unified(b"a\r\nb\r\nc", b"a\r\nb\nc", 1, 50, 80);
        assert_eq!(diff, "@@ -1,3 +1,3 @@\n a␍␊\n-b␍␊\n+b␊\n c (no line ending)");
        assert_eq!(unified(b"a\n", b"a\n", 3, 50, 80), "");
    }

    #[test]
    fn hunks_and_matches_cover_both_sides() {
        let (old, new) = (["a", "b", "c", "d"], ["a", "x", "c", "d", "e"]);
        let found = hunks(&old, &new);
        assert_eq!(found, [Hunk { old: 1..2, new: 1..2 }, Hunk { old: 4..4, new: 4..5 }]);
        assert_eq!(matched(old.len(), &found), [(0, 0), (2, 2), (3, 3)]);
        assert_eq!(hunks(&old, &old), []);
    }

    #[test]
    fn distant_changes_are_shown_apart() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = "1\nX\n3\n4\n5\n6\n7\nY\n9\n";
        assert_eq!(
            unified(old.as_bytes(), new.as_bytes(), 1, 50, 80),
            "@@ -1,3 +1,3 @@\n 1␊\n-2␊\n+X␊\n 3␊\n@@ -7,3 +7,3 @@\n 7␊\n-8␊\n+Y␊\n 9␊"
        );
    }

    #[test]
    fn is_bounded_in_both_directions() {
        let long = "x".repeat(500);
        let old = format!("{long}\n").repeat(3);
        let diff = unified(old.as_bytes(), b"", 3, 2, 10);
        assert_eq!(diff, "@@ -1,3 +1,0 @@\n-xxxxxxxxxx…\n… 2 more lines");
    }
}
