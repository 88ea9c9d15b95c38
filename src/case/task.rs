//! Does a task name its target unambiguously? What it quotes must be there, as often as it says.

use memchr::memmem;

use super::Case;
use crate::text::diff::{Hunk, hunks, keys};
use crate::text::lines::with_breaks;
use crate::text::{Ending, Line, LineModel, lines, marks, visible, without_bom};

/// What is wrong with the words of a task, in the order of the task.
///
/// A quoted text is a code span, a fenced block, or a JSON string announced by those words. It must be the path of a
/// file, or stand in a file before or after the edit. One that stands at the place of the edit and elsewhere in its file
/// too needs a word that says so: how many there are, or that every one, another or a similar one is meant. At least one
/// must stand at the place of the edit. Cases whose files must stay as they are may ask what cannot be done.
pub fn faults(case: &Case) -> Vec<String> {
    review(case, false)
}

/// The same of words that were made from a template and cannot say how often a text stands: it must stand once.
pub fn faults_of_plain_words(case: &Case) -> Vec<String> {
    review(case, true)
}

fn review(case: &Case, once: bool) -> Vec<String> {
    let base = case.final_base();
    let accepted = case.accepted_from(&base);
    let Some(expected) = accepted.iter().find(|tree| **tree != base) else {
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
    let paths: Vec<&str> = base.paths().chain(accepted.iter().flat_map(|tree| tree.paths())).collect();
    let names_file = |text: &str| paths.iter().any(|path| *path == text || path.rsplit('/').next() == Some(text));
    let files: Vec<Changed> = changed
        .iter()
        .filter_map(|path| Some(Changed::of(base.bytes(path)?, expected.bytes(path).unwrap_or_default(), path)))
        .collect();
    let quotes = quotes(&case.task);
    let words = words_of(&case.task, &quotes, &paths);
    let mut named = files.is_empty();
    for quote in quotes.iter().filter(|quote| !quote.text.is_empty()) {
        let text = quote.text.as_bytes();
        let shown = visible::excerpt(&quote.text, 80);
        let mut touched = false;
        for file in files.iter().filter(|file| file.touches(text)) {
            touched = true;
            named = true;
            let count = file.count(text, of_lines(&case.task[..quote.at]));
            if count > 1 && (once || !says(&words, count)) {
                let path = &file.path;
                faults.push(format!(
                    "the task quotes `{shown}`, which stands {count} times in {path}, and does not say so"
                ));
            }
        }
        if !touched && !names_file(&quote.text) && !all.iter().any(|bytes| memmem::find(bytes, text).is_some()) {
            faults.push(format!("the task quotes `{shown}`, which stands in no file, neither before nor after"));
        }
    }
    for (times, said) in times_said(&words) {
        let so = |quote: &Quote| {
            let text = quote.text.as_bytes();
            let counts = |file: &Changed| [file.count(text, true), file.count(text, false), file.words(&quote.text)];
            files.iter().any(|file| counts(file).contains(&times))
        };
        if !files.is_empty() && !quotes.iter().any(so) {
            faults.push(format!("the task says \"{said}\", and nothing that it quotes stands so often"));
        }
    }
    if !named {
        faults.push("the task quotes no text of the place that changes".to_owned());
    }
    faults
}

/// A file that an edit changes, and the lines of each place that it changes, with `\n` for every line break.
struct Changed {
    path: String,
    whole: Vec<u8>,
    places: Vec<Vec<u8>>,
}

impl Changed {
    fn of(before: &[u8], after: &[u8], path: &str) -> Changed {
        let (whole, after) = (unix(before), unix(after));
        let (old, new): (Vec<Line<'_>>, Vec<Line<'_>>) =
            (lines(&whole, LineModel::Lm1).collect(), lines(&after, LineModel::Lm1).collect());
        let part = |place: &Hunk| {
            let (mut from, mut to) = (place.old.start, place.old.end);
            // An insertion, or an empty line that is filled, is named by its neighbours.
            if old[from..to].iter().all(|line| line.text.trim_ascii().is_empty()) {
                (from, to) = (from.saturating_sub(1), (to + 1).min(old.len()));
            }
            match (old.get(from), to.checked_sub(1).and_then(|last| old.get(last))) {
                (Some(first), Some(last)) if from < to => whole[first.start..last.end()].to_vec(),
                _ => Vec::new(),
            }
        };
        let found = hunks(&keys(&old), &keys(&new));
        // Neighbouring places are often quoted in one.
        let span = match (found.first(), found.last()) {
            (Some(first), Some(last)) if found.len() > 1 => {
                Some(part(&Hunk { old: first.old.start..last.old.end, new: first.new.start..last.new.end }))
            }
            _ => None,
        };
        let places = found.iter().map(part).chain(span).collect();
        Changed { path: path.to_owned(), places, whole }
    }

    fn touches(&self, text: &[u8]) -> bool {
        self.places.iter().any(|place| memmem::find(place, text).is_some())
    }

    /// How often a text stands in the file as a word of its own.
    fn words(&self, text: &str) -> usize {
        let whole = String::from_utf8_lossy(&self.whole);
        if text.is_empty() {
            0
        } else {
            whole.match_indices(text).filter(|(at, _)| bounded(&whole, *at, text.len())).count()
        }
    }

    /// How often a text stands in the file: as whole lines, apart from blanks around them, where lines are spoken of.
    fn count(&self, text: &[u8], of_lines: bool) -> usize {
        if text.is_empty() {
            return 0;
        }
        let whole_lines =
            lines(&self.whole, LineModel::Lm1).filter(|line| line.text.trim_ascii() == text.trim_ascii()).count();
        if of_lines && whole_lines > 0 { whole_lines } else { memmem::find_iter(&self.whole, text).count() }
    }
}

/// The words of a task without what it quotes and the paths it names, in small letters.
fn words_of(task: &str, quotes: &[Quote], paths: &[&str]) -> String {
    let mut words = String::with_capacity(task.len());
    let mut at = 0;
    for quote in quotes {
        words.push_str(&task[at..quote.at]);
        words.push_str(" … ");
        at = quote.end;
    }
    words.push_str(&task[at..]);
    let mut paths: Vec<&&str> = paths.iter().filter(|path| !path.is_empty()).collect();
    paths.sort_by_key(|path| std::cmp::Reverse(path.len()));
    for path in paths {
        words = words.replace(*path, "…");
    }
    words.to_lowercase()
}

/// Counts that a task states of a text as such: `is there twice`, `occurs 5 times`.
fn times_said(words: &str) -> Vec<(usize, String)> {
    let mut said = Vec::new();
    for verb in ["there", "occurs", "stands", "appears"] {
        let numbers = NUMBERS.iter().enumerate().skip(2);
        let times = numbers.flat_map(|(number, word)| {
            [(number, format!("{verb} {word} times")), (number, format!("{verb} {number} times"))]
        });
        said.extend(
            std::iter::once((2, format!("{verb} twice"))).chain(times).filter(|(_, phrase)| has_word(words, phrase)),
        );
    }
    said
}

fn unix(bytes: &[u8]) -> Vec<u8> {
    with_breaks(without_bom(bytes).0, Ending::Lf, LineModel::Lm3)
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
    text.match_indices(word).any(|(at, _)| bounded(text, at, word.len()))
}

/// Nothing that belongs to a word stands before or after.
fn bounded(text: &str, at: usize, length: usize) -> bool {
    let before = text[..at].chars().next_back();
    let after = text[at + length..].chars().next();
    [before, after].iter().all(|c| c.is_none_or(|c| !c.is_alphanumeric() && c != '_'))
}

/// A text that a task quotes, and where the quote begins.
#[derive(Debug, PartialEq, Eq)]
pub struct Quote {
    pub at: usize,
    /// Where the quote with its marks ends.
    pub end: usize,
    pub text: String,
}

/// The quoted texts of a task: fenced blocks (without their last line break), code spans as CommonMark has them, and JSON
/// strings after the words "the JSON string".
pub fn quotes(task: &str) -> Vec<Quote> {
    let mut quotes = Vec::new();
    let mut at = 0;
    while at < task.len() {
        let rest = &task[at..];
        match fence(task, at).or_else(|| span(rest)).or_else(|| json_string(rest)) {
            Some((text, length)) => {
                quotes.push(Quote { at, end: at + length, text });
                at += length;
            }
            // Marks that nothing closes are text, all of them.
            None if rest.starts_with('`') => at += marks::leading(rest),
            None => at += rest.chars().next().map_or(1, char::len_utf8),
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
    let marks = marks::leading(rest);
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
    let marks = marks::leading(rest);
    if marks == 0 {
        return None;
    }
    let mut from = marks;
    while let Some(found) = rest[from..].find('`') {
        let start = from + found;
        let run = marks::leading(&rest[start..]);
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
        assert_eq!(
            words_of("In a/all.py, `2` is there Twice.", &quotes("In a/all.py, `2` is there Twice."), &["a/all.py"]),
            "in …,  …  is there twice."
        );
        assert_eq!(
            times_said("is there twice, used six times, occurs 3 times"),
            [(2, "there twice".to_owned()), (3, "occurs 3 times".to_owned())]
        );
        assert!(!says("the second", 2) && !says("12.5 callers", 5) && !says("tall", 3));
    }
}
