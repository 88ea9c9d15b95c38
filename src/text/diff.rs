//! A line diff for people: byte-visible, a few lines of context. Scoring never uses it; scoring compares bytes.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::lines::{Line, LineModel, lines};
use super::visible;

/// Which lines of two texts belong together. Ranges are line indexes, 0-based.
pub fn operations(old: &[Line<'_>], new: &[Line<'_>]) -> Vec<DiffOp> {
    let key = |line: &Line<'_>| (line.text.to_vec(), line.ending);
    let old: Vec<_> = old.iter().map(key).collect();
    let new: Vec<_> = new.iter().map(key).collect();
    capture_diff_slices(Algorithm::Myers, &old, &new)
}

/// A unified diff from `old` to `new` with every byte visible, `context` unchanged lines around a change, at most
/// `max_lines` lines of at most `max_width` characters; what is left out is said. Empty when the two are equal.
pub fn unified(old: &[u8], new: &[u8], context: usize, max_lines: usize, max_width: usize) -> String {
    let old: Vec<Line<'_>> = lines(old, LineModel::Lm3).collect();
    let new: Vec<Line<'_>> = lines(new, LineModel::Lm3).collect();
    let mut out = Vec::new();
    for group in similar::group_diff_ops(operations(&old, &new), context) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        if group.iter().all(|op| matches!(op, DiffOp::Equal { .. })) {
            continue;
        }
        out.push(format!(
            "@@ -{},{} +{},{} @@",
            first.old_range().start + 1,
            last.old_range().end - first.old_range().start,
            first.new_range().start + 1,
            last.new_range().end - first.new_range().start,
        ));
        for op in group {
            let equal = matches!(op, DiffOp::Equal { .. });
            if equal {
                let kept = &old[op.old_range()];
                out.extend(kept.iter().map(|line| shown(' ', line, max_width)));
                continue;
            }
            out.extend(old[op.old_range()].iter().map(|line| shown('-', line, max_width)));
            out.extend(new[op.new_range()].iter().map(|line| shown('+', line, max_width)));
        }
    }
    if out.len() > max_lines {
        let left = out.len() - max_lines;
        out.truncate(max_lines);
        out.push(format!("… {left} more lines"));
    }
    out.join("\n")
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
        assert_eq!(
            diff,
            "@@ -1,3 +1,3 @@\n a␍␊\n-b␍␊\n+b␊\n c (no line ending)"
        );
        assert_eq!(unified(b"a\n", b"a\n", 3, 50, 80), "");
    }

    #[test]
    fn is_bounded_in_both_directions() {
        let long = "x".repeat(500);
        let old = format!("{long}\n").repeat(3);
        let diff = unified(old.as_bytes(), b"", 3, 2, 10);
        assert_eq!(diff, "@@ -1,3 +1,0 @@\n-xxxxxxxxxx…\n… 2 more lines");
    }
}
