//! What the tools share when they say a change in their own terms: calls for the oracle, words for a directed prompt.

use serde_json::{Map, Value, json};

use super::Planned;
use crate::case::Target;
use crate::text::diff::common_ends;
use crate::text::{Line, LineModel, lines, without_bom};

/// A call with these arguments, which are an object.
pub(super) fn planned(function: &str, arguments: Value) -> Planned {
    let arguments = match arguments {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    Planned { function: function.to_owned(), arguments }
}

/// A text in back quotes; one that back quotes cannot show exactly as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    let plain = !text.is_empty() && !text.contains(['`', '\n', '\r', '\t']);
    if plain { format!("`{text}`") } else { format!("the JSON string {}", json!(text)) }
}

/// Pairs of old and new text that turn `before` into `after` where the old text stands: the lines that differ, with
/// ever more lines around them, up to the whole text; then only the bytes that differ, with ever more bytes around them
/// on either side, for lines that hold what no text can.
pub(super) fn substitutions<'a>(
    before: &'a [u8],
    after: &'a [u8],
    model: LineModel,
) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> + 'a {
    by_line(before, after, model).chain(by_byte(before, after))
}

fn by_byte<'a>(before: &'a [u8], after: &'a [u8]) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> + 'a {
    let head = before.iter().zip(after).take_while(|(old, new)| old == new).count();
    let (old, new) = (&before[head..], &after[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let steps = [0, 1, 2, 3, 4, 8, 16, 32, 64];
    let widths = steps.into_iter().flat_map(move |left| steps.into_iter().map(move |right| (left, right)));
    widths.map(move |(left, right)| {
        let (from, back) = (head.saturating_sub(left), tail.saturating_sub(right));
        (before[from..before.len() - back].to_vec(), after[from..after.len() - back].to_vec())
    })
}

fn by_line<'a>(before: &'a [u8], after: &'a [u8], model: LineModel) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> + 'a {
    let (old, new): (Vec<Line<'_>>, Vec<Line<'_>>) = (lines(before, model).collect(), lines(after, model).collect());
    let (head, tail) = common_ends(&old, &new);
    let steps = [0, 1, 2, 3, 4, 8, 16, 64, usize::MAX];
    steps.into_iter().map(move |context| {
        let (from, back) = (head.saturating_sub(context), tail.saturating_sub(context));
        (joined(&old[from..old.len() - back]), joined(&new[from..new.len() - back]))
    })
}

fn joined(lines: &[Line<'_>]) -> Vec<u8> {
    lines.iter().flat_map(|line| [line.text, line.ending.bytes()]).flatten().copied().collect()
}

/// The old and the new text of a target for a tool that anchors by exact text: the text to find and its replacement, or
/// the whole named line (with lines around it until it stands once in the file as it was read) and what it becomes.
pub(super) fn texts(target: &Target, as_read: &[u8]) -> (String, String) {
    let (body, _) = without_bom(as_read);
    let all: Vec<Line<'_>> = lines(body, LineModel::Lm3).collect();
    let holds = |line: &Line<'_>, find: &str| memchr::memmem::find(line.text, find.as_bytes()).is_some();
    let index = match (target.line, target.find.as_deref()) {
        (None, find) => return (find.unwrap_or_default().to_owned(), target.content.clone()),
        // A number that may be stale: the line that holds the text counts.
        (Some(number), Some(find)) if !all.get(number.wrapping_sub(1)).is_some_and(|line| holds(line, find)) => {
            all.iter().position(|line| holds(line, find))
        }
        (Some(number), _) => number.checked_sub(1),
    };
    let Some((index, line)) = index.and_then(|index| Some((index, all.get(index)?))) else {
        return (target.find.clone().unwrap_or_default(), target.content.clone());
    };
    // The line alone if it stands once; else with the lines before it, then with those after it as well.
    let before = (0..=index).rev().map(|from| (from, index));
    let after = (index + 1..all.len()).map(|to| (0, to));
    let unique = |from: usize, to: usize| {
        let text = &body[all[from].start..all[to].text_end()];
        !text.is_empty() && super::exact::occurrences(body, text).len() == 1
    };
    let (from, to) = before.chain(after).find(|(from, to)| unique(*from, *to)).unwrap_or((index, index));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let old = text(&body[all[from].start..all[to].text_end()]);
    let new =
        text(&body[all[from].start..line.start]) + &target.content + &text(&body[line.text_end()..all[to].text_end()]);
    (old, new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(line: Option<usize>, find: Option<&str>, content: &str) -> Target {
        Target { path: "f".into(), line, find: find.map(str::to_owned), content: content.into() }
    }

    #[test]
    fn a_line_becomes_an_old_text_that_stands_once() {
        let file = b"x\r\na\r\ny\r\na\r\nlast";
        let texts = |line, find, content: &str| super::texts(&target(line, find, content), file);
        assert_eq!(texts(Some(1), None, "X"), ("x".into(), "X".into()));
        assert_eq!(texts(Some(4), None, "b"), ("y\r\na".into(), "y\r\nb".into()));
        assert_eq!(texts(Some(1), Some("last"), "L"), ("last".into(), "L".into()));
        assert_eq!(texts(None, Some("st"), "ST"), ("st".into(), "ST".into()));
        assert_eq!(super::texts(&target(Some(1), None, "b"), b"a\na\n"), ("a\na".into(), "b\na".into()));
    }

    #[test]
    fn substitutions_grow_to_the_whole_text() {
        let all: Vec<_> = substitutions(b"a\nb\nc\n", b"a\nB\nc\n", LineModel::Lm2).collect();
        assert_eq!(all[0], (b"b\n".to_vec(), b"B\n".to_vec()));
        assert!(all.contains(&(b"a\nb\nc\n".to_vec(), b"a\nB\nc\n".to_vec())));
        let by_line = by_line(b"a\nb\nc\n", b"a\nB\nc\n", LineModel::Lm2);
        assert_eq!(by_line.last().unwrap(), (b"a\nb\nc\n".to_vec(), b"a\nB\nc\n".to_vec()));
    }

    #[test]
    fn substitutions_shrink_below_a_line_where_it_holds_no_text() {
        let text = |(old, new): (Vec<u8>, Vec<u8>)| Some((String::from_utf8(old).ok()?, String::from_utf8(new).ok()?));
        let all: Vec<_> =
            substitutions(b"caf\xE9 12 \xE9", b"caf\xE9 34 \xE9", LineModel::Lm3).filter_map(text).collect();
        assert_eq!(all.first().unwrap(), &("12".to_owned(), "34".to_owned()));
        assert!(all.contains(&(" 12 ".to_owned(), " 34 ".to_owned())));
    }
}
