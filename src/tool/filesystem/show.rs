//! The changed lines with a little around them (C4, CQ15), and lines for people generally.

use std::ops::Range;

use bstr::ByteSlice;

use crate::text::{Line, LineModel, lines};

/// Lines around a change.
const CONTEXT: usize = 2;
/// Lines shown of a place at most.
const MAX_LINES: usize = 20;
/// Places shown at most.
const MAX_PLACES: usize = 10;
/// Characters shown of a line.
const WIDTH: usize = 500;

/// Lines that changed, as they now stand: the 0-based first, and how many there are; none where lines are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) first: usize,
    pub(super) count: usize,
}

/// The changed lines of a text (without its byte-order mark), each place with the lines around it.
pub(super) fn changed(body: &[u8], all: &[Changed]) -> String {
    let count = lines(body, LineModel::Lm2).count();
    if count == 0 {
        return "(the file is empty now)".to_owned();
    }
    let mut places: Vec<Range<usize>> = Vec::new();
    for change in all {
        let from = change.first.saturating_sub(CONTEXT);
        let to = (change.first + change.count + CONTEXT).min(count);
        match places.last_mut() {
            Some(last) if from <= last.end => last.end = to.max(last.end),
            _ => places.push(from..to),
        }
    }
    let mut rows = Vec::new();
    let mut rest = lines(body, LineModel::Lm2).enumerate();
    let mut at = 0;
    for (index, place) in places.iter().take(MAX_PLACES).enumerate() {
        if index > 0 {
            rows.push("…".to_owned());
        }
        let shown = place.len().min(MAX_LINES);
        rows.extend(rest.by_ref().skip(place.start - at).take(shown).map(|(at, line)| numbered(at, &line)));
        at = place.start + shown;
        if place.len() > shown {
            rows.push(format!("(and {} more lines)", place.len() - shown));
        }
    }
    if places.len() > MAX_PLACES {
        rows.push(format!("(and {} more places)", places.len() - MAX_PLACES));
    }
    rows.join("\n")
}

/// So many lines, in words.
pub(super) fn lines_in_words(count: usize) -> String {
    format!("{count} {}", if count == 1 { "line" } else { "lines" })
}

/// `N: text`, for display only.
pub(super) fn numbered(index: usize, line: &Line<'_>) -> String {
    let mut characters = line.text.chars();
    let text: String = characters.by_ref().take(WIDTH).collect();
    let more = if characters.next().is_some() { "…" } else { "" };
    format!("{}: {text}{more}", index + 1)
}

/// The 0-based line that holds the byte at `offset`; the last one for what lies behind it.
pub(super) fn line_at(starts: &[usize], offset: usize) -> usize {
    starts.partition_point(|start| *start <= offset).saturating_sub(1)
}

/// Where each line starts.
pub(super) fn starts(body: &[u8]) -> Vec<usize> {
    lines(body, LineModel::Lm2).map(|line| line.start).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_two_lines_around_and_are_joined_where_they_touch() {
        let body: String = (1..=30).map(|number| format!("l{number}\n")).collect();
        let at = |first, count| Changed { first, count };
        assert_eq!(changed(body.as_bytes(), &[at(0, 1)]), "1: l1\n2: l2\n3: l3");
        assert_eq!(changed(body.as_bytes(), &[at(29, 0)]), "28: l28\n29: l29\n30: l30");
        let two = changed(body.as_bytes(), &[at(4, 1), at(8, 1), at(20, 1)]);
        assert!(two.starts_with("3: l3\n") && two.contains("11: l11\n…\n19: l19"), "{two}");
        let long = changed(body.as_bytes(), &[at(0, 25)]);
        assert!(long.ends_with("20: l20\n(and 7 more lines)"), "{long}");
        assert_eq!(changed(b"", &[at(0, 0)]), "(the file is empty now)");
        assert_eq!(line_at(&starts(b"a\nb\n"), 3), 1);
        assert_eq!(line_at(&starts(b"a\nb\n"), 4), 1);
    }
}
