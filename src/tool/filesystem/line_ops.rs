//! `edit_lines` and `insert`: operations on numbered lines (C5 to C8, CQ1, CQ3 to CQ11, CQ24). Pure; no disk, no model.

use std::collections::BTreeMap;

use super::show::{self, Changed};
use super::{Kind, Refusal};
use crate::text::lines::dominant;
use crate::text::{Ending, Line, LineModel, lines, without_bom};

const MODEL: LineModel = LineModel::Lm2;

/// One operation; numbers are 1-based and inclusive, and refer to the file before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    Replace {
        start: i64,
        end: i64,
        content: &'a str,
    },
    Delete {
        start: i64,
        end: i64,
    },
    /// `after` 0 is before line 1.
    Insert {
        after: i64,
        content: &'a str,
    },
}

/// An edit that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    pub bytes: Vec<u8>,
    pub(super) changed: Vec<Changed>,
}

/// A line of the result.
struct Made<'a> {
    text: &'a [u8],
    ending: Ending,
}

/// The lines that one range becomes; `None` for a deletion.
#[derive(Clone, Copy)]
struct Range<'a> {
    end: usize,
    content: Option<&'a str>,
}

/// Carries out all operations, or none.
///
/// # Errors
/// `line_range` for a number that no line has, `overlap` for operations that would have to be merged.
pub fn apply(path: &str, before: &[u8], operations: &[Operation<'_>]) -> Result<Edited, Refusal> {
    let (body, mark) = without_bom(before);
    let old: Vec<Line<'_>> = lines(body, MODEL).collect();
    let (ranges, inserts) = placed(path, operations, old.len())?;
    // An empty file counts as terminated.
    let open_ended = old.last().is_some_and(|line| line.ending == Ending::None);
    let dominant = dominant(body, MODEL);
    let mut new: Vec<Made<'_>> = Vec::with_capacity(old.len());
    let mut changed = Vec::new();
    let mut at = 0;
    loop {
        for content in inserts.get(&at).into_iter().flatten() {
            let first = new.len();
            new.extend(split(content).map(|text| Made { text, ending: dominant }));
            changed.push(Changed { first, count: new.len() - first });
            if open_ended && at == old.len() && !content.ends_with('\n') {
                unterminate(&mut new);
            }
        }
        if at == old.len() {
            break;
        }
        let Some(range) = ranges.get(&at) else {
            new.push(Made { text: old[at].text, ending: old[at].ending });
            at += 1;
            continue;
        };
        let first = new.len();
        if let Some(content) = range.content {
            let endings = old[at..range.end].iter().map(|line| line.ending).chain(std::iter::repeat(dominant));
            new.extend(split(content).zip(endings).map(|(text, ending)| Made { text, ending }));
            if open_ended && range.end == old.len() {
                unterminate(&mut new);
            }
        }
        changed.push(Changed { first, count: new.len() - first });
        at = range.end;
    }
    let mut bytes = before[..mark].to_vec();
    for (index, line) in new.iter().enumerate() {
        bytes.extend_from_slice(line.text);
        // Only the last line of a file can be without an ending.
        let open = line.ending == Ending::None && index + 1 < new.len();
        bytes.extend_from_slice(if open { dominant.bytes() } else { line.ending.bytes() });
    }
    Ok(Edited { bytes, changed })
}

fn unterminate(lines: &mut [Made<'_>]) {
    if let Some(last) = lines.last_mut() {
        last.ending = Ending::None;
    }
}

/// The lines of a content: one trailing break is no further line, and nothing at all is one empty line.
fn split(content: &str) -> impl Iterator<Item = &[u8]> {
    let empty = content.is_empty().then_some(&b""[..]);
    empty.into_iter().chain(lines(content.as_bytes(), MODEL).map(|line| line.text))
}

/// Ranges by their 0-based first line, and inserts by the line they come after, in the order given.
type Placed<'a> = (BTreeMap<usize, Range<'a>>, BTreeMap<usize, Vec<&'a str>>);

fn placed<'a>(path: &str, operations: &[Operation<'a>], count: usize) -> Result<Placed<'a>, Refusal> {
    let within =
        |number: i64, least: usize| usize::try_from(number).ok().filter(|number| (least..=count).contains(number));
    let mut spans = Vec::new();
    let mut inserts: BTreeMap<usize, Vec<&'a str>> = BTreeMap::new();
    for operation in operations {
        match *operation {
            Operation::Insert { after, content } => {
                let after = within(after, 0).ok_or_else(|| no_line(path, &format!("after {after}"), count))?;
                inserts.entry(after).or_default().push(content);
            }
            Operation::Replace { start, end, .. } | Operation::Delete { start, end } => {
                let asked = || no_line(path, &format!("start {start}, end {end}"), count);
                let (first, last) =
                    within(start, 1).zip(within(end, 1)).filter(|(first, last)| first <= last).ok_or_else(asked)?;
                let content = match *operation {
                    Operation::Replace { content, .. } => Some(content),
                    _ => None,
                };
                spans.push((first - 1, Range { end: last, content }));
            }
        }
    }
    spans.sort_by_key(|(first, _)| *first);
    if let Some(pair) = spans.windows(2).find(|pair| pair[1].0 < pair[0].1.end) {
        return Err(overlap(&format!("two operations share line {}", pair[1].0 + 1)));
    }
    let ranges: BTreeMap<usize, Range<'a>> = spans.into_iter().collect();
    for after in inserts.keys() {
        // The range that begins before the place, if the place lies inside it.
        let inside = ranges.range(..*after).next_back().filter(|(_, range)| *after < range.end);
        if let Some((first, range)) = inside {
            return Err(overlap(&format!(
                "an insert after line {after} lies inside the operation on lines {}-{}",
                first + 1,
                range.end
            )));
        }
    }
    Ok((ranges, inserts))
}

fn no_line(path: &str, asked: &str, count: usize) -> Refusal {
    let lines = show::lines_in_words(count);
    Refusal::new(Kind::LineRange, format!("{asked} is out of range: {path} has {lines}; nothing changed"))
}

fn overlap(why: &str) -> Refusal {
    Refusal::new(Kind::Overlap, format!("{why}: merge them into one operation; nothing changed"))
}

#[cfg(test)]
mod tests {
    use super::Operation::{Delete, Insert, Replace};
    use super::*;
    use proptest::prelude::*;

    fn run(before: &str, operations: &[Operation<'_>]) -> Result<String, Kind> {
        apply("f", before.as_bytes(), operations)
            .map(|edited| String::from_utf8(edited.bytes).unwrap())
            .map_err(|refusal| refusal.kind)
    }

    fn replace(start: i64, end: i64, content: &str) -> Operation<'_> {
        Replace { start, end, content }
    }

    fn insert(after: i64, content: &str) -> Operation<'_> {
        Insert { after, content }
    }

    #[test]
    fn lines_keep_their_endings_and_new_ones_get_the_dominant() {
        assert_eq!(run("a\r\nb\nc\r\n", &[replace(1, 2, "1\n2\n3")]), Ok("1\r\n2\n3\r\nc\r\n".into()));
        assert_eq!(run("a\r\nb\nc\r\n", &[replace(1, 3, "1")]), Ok("1\r\n".into()));
        assert_eq!(run("a\r\nb\n", &[insert(1, "x\r\ny")]), Ok("a\r\nx\ny\nb\n".into()));
        assert_eq!(run("a\n", &[replace(1, 1, "")]), Ok("\n".into()));
        assert_eq!(run("a\n", &[insert(0, "")]), Ok("\na\n".into()));
        assert_eq!(run("a\n", &[replace(1, 1, "x\n\n")]), Ok("x\n\n".into()));
        assert_eq!(run("a\n", &[replace(1, 1, "x\r")]), Ok("x\r\n".into()));
    }

    #[test]
    fn a_file_without_a_final_break_stays_so() {
        assert_eq!(run("a\nb", &[replace(2, 2, "B\n")]), Ok("a\nB".into()));
        assert_eq!(run("a\nb", &[replace(2, 2, "x\ny")]), Ok("a\nx\ny".into()));
        assert_eq!(run("a\nb", &[replace(1, 2, "X")]), Ok("X".into()));
        assert_eq!(run("a\nb", &[insert(2, "c")]), Ok("a\nb\nc".into()));
        assert_eq!(run("a\r\nb", &[insert(2, "c\n")]), Ok("a\r\nb\r\nc\r\n".into()));
        assert_eq!(run("a\nb", &[insert(2, "c"), insert(2, "d")]), Ok("a\nb\nc\nd".into()));
        assert_eq!(run("a\nb", &[Delete { start: 2, end: 2 }]), Ok("a\n".into()));
        assert_eq!(run("a\nb", &[Delete { start: 2, end: 2 }, insert(2, "c")]), Ok("a\nc".into()));
        assert_eq!(run("a\nb", &[replace(2, 2, "B"), insert(2, "c")]), Ok("a\nB\nc".into()));
        assert_eq!(run("a\nb", &[Delete { start: 1, end: 2 }]), Ok("".into()));
        assert_eq!(run("a\nb", &[replace(2, 2, "")]), Ok("a\n".into()));
        assert_eq!(run("", &[insert(0, "x")]), Ok("x\n".into()));
        assert_eq!(run("\u{FEFF}", &[insert(0, "x")]), Ok("\u{FEFF}x\n".into()));
    }

    #[test]
    fn numbers_are_those_of_before_and_must_be_there() {
        let both = [replace(3, 3, "C"), Delete { start: 1, end: 1 }, insert(3, "d"), insert(3, "e")];
        assert_eq!(run("a\nb\nc\n", &both), Ok("b\nC\nd\ne\n".into()));
        for bad in [
            replace(0, 1, ""),
            replace(2, 1, ""),
            replace(1, 4, ""),
            insert(-1, ""),
            insert(4, ""),
            insert(i64::MAX, ""),
        ] {
            assert_eq!(run("a\nb\nc\n", &[insert(0, "x"), bad]), Err(Kind::LineRange), "{bad:?}");
        }
        assert_eq!(run("", &[replace(1, 1, "x")]), Err(Kind::LineRange));
        assert_eq!(run("a\rb\nc\n", &[replace(1, 1, "x")]), Ok("x\nc\n".into()));
    }

    #[test]
    fn overlaps_are_to_be_merged() {
        let delete = |start, end| Delete { start, end };
        assert_eq!(run("1\n2\n3\n", &[delete(1, 2), delete(2, 3)]), Err(Kind::Overlap));
        assert_eq!(run("1\n2\n3\n", &[delete(2, 2), delete(2, 2)]), Err(Kind::Overlap));
        assert_eq!(run("1\n2\n3\n", &[delete(1, 3), insert(1, "x")]), Err(Kind::Overlap));
        assert_eq!(run("1\n2\n3\n", &[delete(1, 3), insert(3, "x"), insert(0, "w")]), Ok("w\nx\n".into()));
        assert_eq!(run("1\n2\n3\n", &[delete(1, 1), delete(2, 2)]), Ok("3\n".into()));
    }

    /// The same by hand: bottom to top on a list of lines, for files whose every line ends with `\n`.
    fn by_hand(before: &[&str], operations: &[(usize, usize, Option<Vec<&str>>)]) -> String {
        let mut lines: Vec<String> = before.iter().map(|line| (*line).to_owned()).collect();
        let mut sorted: Vec<_> = operations.to_vec();
        sorted.sort_by_key(|(start, ..)| std::cmp::Reverse(*start));
        for (start, end, content) in sorted {
            let new = content.unwrap_or_default().into_iter().map(str::to_owned).collect::<Vec<_>>();
            lines.splice(start - 1..end, new);
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    proptest! {
        #[test]
        fn operations_do_what_a_list_would(
            before in proptest::collection::vec("[a-c]{0,2}", 1..10),
            picks in proptest::collection::vec((0_usize..10, 0_usize..3, proptest::option::of(proptest::collection::vec("[x-z]{1,2}", 1..4))), 1..4),
        ) {
            let text: String = before.iter().map(|line| format!("{line}\n")).collect();
            let mut taken = vec![false; before.len()];
            let mut wanted = Vec::new();
            for (start, more, content) in &picks {
                let (start, end) = (start % before.len(), (start % before.len() + more + 1).min(before.len()));
                if taken[start..end].iter().any(|taken| *taken) { continue }
                taken[start..end].fill(true);
                wanted.push((start + 1, end, content.clone()));
            }
            let contents: Vec<String> = wanted.iter().map(|(.., content)| content.as_ref().map(|lines| lines.join("\n")).unwrap_or_default()).collect();
            let operations: Vec<Operation<'_>> = wanted.iter().zip(&contents).map(|((start, end, content), joined)| {
                let (start, end) = (i64::try_from(*start).unwrap(), i64::try_from(*end).unwrap());
                if content.is_some() { replace(start, end, joined) } else { Delete { start, end } }
            }).collect();
            let hand: Vec<_> = wanted.iter().map(|(start, end, content)| (*start, *end, content.as_ref().map(|lines| lines.iter().map(String::as_str).collect()))).collect();
            let lines: Vec<&str> = before.iter().map(String::as_str).collect();
            prop_assert_eq!(run(&text, &operations), Ok(by_hand(&lines, &hand)));
        }

        #[test]
        fn lines_that_no_operation_names_stay(
            before in proptest::collection::vec(proptest::sample::select(b"ab\r\n\xE9".to_vec()), 0..30),
            start in 1_i64..6, more in 0_i64..3, content in "[ab\r\n]{0,4}",
        ) {
            let operation = replace(start, start + more, &content);
            let Ok(edited) = apply("f", &before, &[operation]) else { return Ok(()) };
            let (body, mark) = without_bom(&before);
            let old: Vec<_> = lines(body, MODEL).collect();
            let (first, last) = (usize::try_from(start).unwrap() - 1, usize::try_from(start + more).unwrap());
            prop_assert!(edited.bytes.starts_with(&before[..mark + old[first].start]));
            let tail = &body[old[last - 1].end()..];
            prop_assert!(edited.bytes.ends_with(tail));
        }
    }
}
