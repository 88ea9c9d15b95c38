//! Does a task name its target unambiguously? What it quotes must be there, as often as it says.

use memchr::memmem;

use super::Case;
use crate::text::diff::common_ends;
use crate::text::{Line, LineModel, lines, without_bom};

/// What is wrong with the words of a task, in the order of the task.
///
/// A quoted text is a code span, a fenced block, or a JSON string announced by those words. It must be the path of a
/// file, or stand in a file before or after the edit. One that stands at the place of the edit and elsewhere in its file
/// too needs a word that says so: how many there are, or that every one, another or a similar one is meant. At least one
/// must stand at the place of the edit. Cases whose files must stay as they are may ask what cannot be done.
pub fn faults(case: &Case) -> Vec<String> {
    let base = case.final_base();
    let accepted = case.accepted_from(&base);
    let Some(expected) = accepted.first().filter(|tree| **tree != base) else {
        return Vec::new();
    };
    let mut faults = Vec::new();
    let changed = base.changed_paths(expected);
    if !changed.iter().any(|path| case.task.contains(path.as_str())) {
        faults.push(format!("the task names none of the files that change ({})", changed.join(", ")));
    }
    let all: Vec<Vec<u8>> = [&base, &case.files]
        .into_iter()
        .chain(&accepted)
        .flat_map(|tree| tree.paths().filter_map(|path| tree.bytes(path)).collect::<Vec<_>>())
        .chain(case.seen.values().map(AsRef::as_ref))
        .map(unix)
        .collect();
    let names_file = |text: &str| {
        let named = |path: &str| path == text || path.rsplit('/').next() == Some(text);
        base.paths().chain(accepted.iter().flat_map(|tree| tree.paths())).any(named)
    };
    let places: Vec<Place> = changed
        .iter()
        .filter_map(|path| Some(Place::of(base.bytes(path)?, expected.bytes(path).unwrap_or_default(), path)))
        .collect();
    let mut named = places.is_empty();
    for quote in quotes(&case.task) {
        let text = quote.text.as_bytes();
        let mut touched = false;
        for place in places.iter().filter(|place| memmem::find(&place.lines, text).is_some()) {
            touched = true;
            named = true;
            let count = place.count(text, of_lines(&case.task[..quote.at]));
            if count > 1 && !says(&case.task, count) {
                faults.push(format!(
                    "the task quotes `{}`, which stands {count} times in {}, and does not say so",
                    crate::text::visible::excerpt(&quote.text, 80),
                    place.path
                ));
            }
        }
        if !touched && !names_file(&quote.text) && !all.iter().any(|bytes| memmem::find(bytes, text).is_some()) {
            faults.push(format!(
                "the task quotes `{}`, which stands in no file, neither before nor after",
                crate::text::visible::excerpt(&quote.text, 80)
            ));
        }
    }
    if !named {
        faults.push("the task quotes no text of the place that changes".to_owned());
    }
    faults
}

/// The lines of a file that an edit changes, and the whole of it, with `\n` for every line break.
struct Place {
    path: String,
    whole: Vec<u8>,
    lines: Vec<u8>,
}

impl Place {
    fn of(before: &[u8], after: &[u8], path: &str) -> Place {
        let (whole, after) = (unix(before), unix(after));
        let (old, new): (Vec<Line<'_>>, Vec<Line<'_>>) =
            (lines(&whole, LineModel::Lm1).collect(), lines(&after, LineModel::Lm1).collect());
        let (head, tail) = common_ends(&old, &new);
        let (mut from, mut to) = (head, old.len() - tail);
        // An insertion, or an empty line that is filled, is named by its neighbours.
        if old[from..to].iter().all(|line| line.text.trim_ascii().is_empty()) {
            (from, to) = (from.saturating_sub(1), (to + 1).min(old.len()));
        }
        let part = match (old.get(from), to.checked_sub(1).and_then(|last| old.get(last))) {
            (Some(first), Some(last)) if from < to => whole[first.start..last.end()].to_vec(),
            _ => Vec::new(),
        };
        Place { path: path.to_owned(), lines: part, whole }
    }

    /// How often a text stands in the file: as whole lines, apart from blanks around them, where lines are spoken of.
    fn count(&self, text: &[u8], of_lines: bool) -> usize {
        let whole_lines =
            lines(&self.whole, LineModel::Lm1).filter(|line| line.text.trim_ascii() == text.trim_ascii()).count();
        if of_lines && whole_lines > 0 { whole_lines } else { memmem::find_iter(&self.whole, text).count() }
    }
}

fn unix(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for line in lines(without_bom(bytes).0, LineModel::Lm3) {
        out.extend_from_slice(line.text);
        if !line.ending.bytes().is_empty() {
            out.push(b'\n');
        }
    }
    out
}

/// Whether the words before a quote speak of a line.
fn of_lines(words: &str) -> bool {
    ["line", "lines", "row", "rows", "entry", "entries"].iter().any(|word| has_word(words, word))
}

const NUMBERS: [&str; 21] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
];

/// Whether a task says that a text stands `count` times.
fn says(task: &str, count: usize) -> bool {
    let pair: &[&str] = if count == 2 { &["twice", "both"] } else { &[] };
    let number = count.to_string();
    let words = NUMBERS.get(count).into_iter().chain(pair);
    let any = ["every", "all", "each", "same", "other", "similar"];
    words.chain(&any).any(|word| has_word(task, word)) || has_number(task, &number)
}

/// A number of its own, no part of a larger one, a version or a fraction.
fn has_number(text: &str, number: &str) -> bool {
    text.match_indices(number).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let mut after = text[at + number.len()..].chars();
        let (next, over) = (after.next(), after.next());
        let ends = next.is_none_or(|c| !c.is_alphanumeric() && c != '_')
            && !(matches!(next, Some('.' | ',')) && over.is_some_and(|c| c.is_ascii_digit()));
        ends && before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '_' | '.' | '-'))
    })
}

fn has_word(text: &str, word: &str) -> bool {
    let bounded = |at: usize| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        [before, after].iter().all(|c| c.is_none_or(|c| !c.is_alphanumeric() && c != '_'))
    };
    text.match_indices(word).any(|(at, _)| bounded(at))
}

/// A text that a task quotes, and where the quote begins.
#[derive(Debug, PartialEq, Eq)]
pub struct Quote {
    pub at: usize,
    pub text: String,
}

/// The quoted texts of a task: fenced blocks (without their last line break), code spans as CommonMark has them, and JSON
/// strings after the words "the JSON string".
pub fn quotes(task: &str) -> Vec<Quote> {
    let mut quotes = Vec::new();
    let mut at = 0;
    while at < task.len() {
        let rest = &task[at..];
        if let Some((text, length)) = fence(task, at) {
            quotes.push(Quote { at, text });
            at += length;
        } else if let Some((text, length)) = span(rest) {
            quotes.push(Quote { at, text });
            at += length;
        } else if let Some((text, length)) = json_string(rest) {
            quotes.push(Quote { at, text });
            at += length;
        } else {
            // Marks that nothing closes are text, all of them.
            let marks = rest.len() - rest.trim_start_matches('`').len();
            at += if marks > 0 { marks } else { rest.chars().next().map_or(1, char::len_utf8) };
        }
    }
    quotes
}

/// A fenced block that begins at a line's start, and its length.
fn fence(task: &str, at: usize) -> Option<(String, usize)> {
    let rest = &task[at..];
    if !(at == 0 || task[..at].ends_with('\n')) {
        return None;
    }
    let marks = rest.len() - rest.trim_start_matches('`').len();
    if marks < 3 {
        return None;
    }
    let body = rest.find('\n')? + 1;
    let close = format!("\n{}", &rest[..marks]);
    // An empty block closes on the line after its opening.
    let end = rest[body - 1..].find(&close)? + body - 1;
    let text = rest.get(body..end).unwrap_or_default();
    Some((text.to_owned(), end + close.len()))
}

fn span(rest: &str) -> Option<(String, usize)> {
    let marks = rest.len() - rest.trim_start_matches('`').len();
    if marks == 0 {
        return None;
    }
    let mut from = marks;
    while let Some(found) = rest[from..].find('`') {
        let start = from + found;
        let run = rest[start..].len() - rest[start..].trim_start_matches('`').len();
        if run == marks {
            let text = &rest[marks..start];
            let inner = text.strip_prefix(' ').and_then(|text| text.strip_suffix(' '));
            let text = inner.filter(|inner| !inner.trim().is_empty()).unwrap_or(text);
            return Some((text.to_owned(), start + run));
        }
        from = start + run;
    }
    None
}

fn json_string(rest: &str) -> Option<(String, usize)> {
    let words = "the JSON string ";
    let after = rest.strip_prefix(words)?;
    let mut stream = serde_json::Deserializer::from_str(after).into_iter::<String>();
    let text = stream.next()?.ok()?;
    Some((text, words.len() + stream.byte_offset()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(task: &str) -> Vec<String> {
        quotes(task).into_iter().map(|quote| quote.text).collect()
    }

    #[test]
    fn quotes_of_every_kind() {
        assert_eq!(texts("`a` to `` b`c ``, ` d`"), ["a", "b`c", " d"]);
        assert_eq!(texts("Put\n```rust\nfn a() {}\n\n  `x`\n```\nthere, not `y`"), ["fn a() {}\n\n  `x`", "y"]);
        assert_eq!(texts("the JSON string \"a\\tb\" and ``` open"), ["a\tb"]);
        assert_eq!(texts("```\n```"), [""]);
    }

    #[test]
    fn counts_are_words() {
        assert!(says("is there twice", 2) && says("all 12 of them", 12) && says("the same line", 3));
        assert!(!says("the second", 2) && !says("12.5 callers", 5) && !says("tall", 3));
    }
}
