//! The compact diff preview (BQ7): the one region that changed, with a little around it.

use bstr::ByteSlice;

use crate::text::diff::common_ends;
use crate::text::{Ending, Line, LineModel, lines};

/// Lines shown around the region.
const CONTEXT: usize = 2;
/// Bytes of a whole preview.
const CAP: usize = 8 << 10;
const CUT: &str = "\n[preview cut at 8 KiB]";

/// What a successful edit tells.
pub(super) fn edited(path: &str, before: &[u8], after: &[u8]) -> String {
    if before == after {
        return format!("edited {path} (no changes)");
    }
    let mut text = format!("edited {path}\n--- a/{path}\n+++ b/{path}");
    let (old, new): (Vec<Line<'_>>, Vec<Line<'_>>) =
        (lines(before, LineModel::Lm1).collect(), lines(after, LineModel::Lm1).collect());
    let (head, tail) = common_ends(&old, &new);
    let region =
        |prefix: &'static str, lines: &[Line<'_>]| lines.iter().map(|line| row(prefix, line)).collect::<Vec<_>>();
    let rows = region("  ", &old[head.saturating_sub(CONTEXT)..head])
        .into_iter()
        .chain(region("- ", &old[head..old.len() - tail]))
        .chain(region("+ ", &new[head..new.len() - tail]))
        .chain(region("  ", &new[new.len() - tail..new.len() - tail.saturating_sub(CONTEXT)]));
    for row in rows {
        text.push_str(&row);
        if text.len() > CAP {
            break;
        }
    }
    if text.len() > CAP {
        let end = (0..=CAP - CUT.len()).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str(CUT);
    }
    text
}

/// One line, its text for display only.
fn row(prefix: &str, line: &Line<'_>) -> String {
    // More than the whole preview holds is never shown.
    let text = line.text[..line.text.len().min(CAP)].to_str_lossy();
    let note = if line.ending == Ending::None { "\n\\ No newline at end of file" } else { "" };
    format!("\n{prefix}{text}{note}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_region_with_two_lines_around() {
        let before = b"1\n2\n3\n4\n5\n6\n7\n";
        let after = b"1\n2\n3\nfour\nfive\n6\n7\n";
        assert_eq!(
            edited("f", before, after),
            "edited f\n--- a/f\n+++ b/f\n  2\n  3\n- 4\n- 5\n+ four\n+ five\n  6\n  7"
        );
        assert_eq!(edited("f", b"a", b"a\n"), "edited f\n--- a/f\n+++ b/f\n- a\n\\ No newline at end of file\n+ a");
        assert_eq!(edited("f", b"a", b"a"), "edited f (no changes)");
    }

    #[test]
    fn a_preview_is_bounded() {
        let text = edited("f", "é".repeat(9000).as_bytes(), "\u{FFFD}x\n".repeat(9000).as_bytes());
        assert!(text.len() <= CAP && text.ends_with(CUT), "{}", text.len());
    }
}
