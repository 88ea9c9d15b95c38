//! The lines of a file that come closest to a text that was not found (C2, CQ13).

use bstr::ByteSlice;
use rapidfuzz::distance::levenshtein::{Args, BatchComparator};

use super::show;
use crate::text::{Line, LineModel, lines};

/// Lines shown at most.
const MOST: usize = 3;
/// Normalised Levenshtein similarity that a line must have: 1 − distance / length of the longer one, in characters.
const SIMILAR: f64 = 0.5;
/// Longer lines are not compared.
const MAX_LENGTH: usize = 10_000;

/// At most three lines, the closest first, as `N: text`.
pub(super) fn lines_like(body: &[u8], old: &str) -> Vec<String> {
    let wanted = lines(old.as_bytes(), LineModel::Lm2).map(|line| stripped(line.text)).find(|text| !text.is_empty());
    let Some(wanted) = wanted.filter(|wanted| wanted.len() <= MAX_LENGTH) else {
        return Vec::new();
    };
    let comparator = BatchComparator::new(wanted);
    let mut found: Vec<(f64, usize, Line<'_>)> = Vec::new();
    for (index, line) in lines(body, LineModel::Lm2).enumerate() {
        let text = stripped(line.text);
        if text.is_empty() || text.len() > MAX_LENGTH {
            continue;
        }
        if let Some(score) = comparator.normalized_similarity_with_args(text, &Args::default().score_cutoff(SIMILAR)) {
            found.push((score, index, line));
        }
    }
    // Stable: of equals the one nearer to the top comes first.
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.iter().take(MOST).map(|(_, index, line)| show::numbered(*index, line)).collect()
}

/// The characters of a line without blanks at its ends.
fn stripped(text: &[u8]) -> Vec<char> {
    text.trim_with(|character| character == ' ' || character == '\t').chars().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_first_and_the_top_one_of_equals() {
        let body = b"import os\n\treturn None  \n\nx = 12\nreturn None\nreturn Nome!\n";
        assert_eq!(
            lines_like(body, "\n  return Nome\nmore"),
            ["6: return Nome!", "2: \treturn None  ", "5: return None"]
        );
        assert_eq!(lines_like(body, "import"), ["1: import os"]);
        assert_eq!(lines_like(body, "  \n\t"), Vec::<String>::new());
        assert_eq!(lines_like(body, "completely different"), Vec::<String>::new());
        // Exactly half is enough.
        assert_eq!(lines_like(b"ab\n", "ax"), ["1: ab"]);
    }

    #[test]
    fn characters_count_not_bytes() {
        assert_eq!(lines_like("ÄÖÜ\n".as_bytes(), "ÄÖx"), ["1: ÄÖÜ"]);
        assert_eq!(lines_like("ÄÖÜ\n".as_bytes(), "Äxy"), Vec::<String>::new());
    }
}
