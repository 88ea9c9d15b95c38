//! The words for a change: from a file before and after to a task that determines it, the shape of the change, and the
//! target for a directed prompt. Says what changes and nothing of why.

use std::ops::Range;

use serde_json::json;

use super::Target;
use crate::text::diff::{Hunk, hunks, keys};
use crate::text::visible::hides;
use crate::text::{Ending, Line, LineModel, is_text, lines, marks, without_bom};

/// What one place of a change does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shape {
    /// One line becomes another.
    LineReplaced,
    /// Several lines become others, or one becomes several, or other than a text line.
    LinesReplaced,
    LinesDeleted,
    LinesInserted,
}

impl Shape {
    pub const ALL: [Shape; 4] = [Shape::LineReplaced, Shape::LinesReplaced, Shape::LinesDeleted, Shape::LinesInserted];

    /// The name as a tag and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Shape::LineReplaced => "line-replaced",
            Shape::LinesReplaced => "lines-replaced",
            Shape::LinesDeleted => "lines-deleted",
            Shape::LinesInserted => "lines-inserted",
        }
    }

    pub fn named(name: &str) -> Option<Shape> {
        Shape::ALL.into_iter().find(|shape| shape.name() == name)
    }

    pub fn of(hunk: &Hunk) -> Shape {
        match (hunk.old.len(), hunk.new.len()) {
            (0, _) => Shape::LinesInserted,
            (_, 0) => Shape::LinesDeleted,
            (1, 1) => Shape::LineReplaced,
            _ => Shape::LinesReplaced,
        }
    }
}

/// How a target names its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Line,
    Find,
    LineAndFind,
}

/// A change of one file in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// One sentence (with blocks of lines) a place.
    pub task: String,
    pub shapes: Vec<Shape>,
    /// `None` where one replacement does not say it.
    pub target: Option<Target>,
}

/// Describes the change of the file at `path`.
///
/// # Errors
/// Why words of this kind cannot determine it: not text, nothing changed, lines that come into a file of mixed endings or
/// after a last line that nothing ends.
pub fn describe(path: &str, before: &[u8], after: &[u8], way: Way) -> Result<Described, String> {
    if !is_text(before) || !is_text(after) {
        return Err(format!("{path} is not a text file in UTF-8, so its change is for a person to describe"));
    }
    let (old_body, old_mark) = without_bom(before);
    let (new_body, new_mark) = without_bom(after);
    if old_mark != new_mark {
        return Err(format!("{path}: the byte-order mark changes, and no words here say so"));
    }
    let old: Vec<Line<'_>> = lines(old_body, LineModel::Lm3).collect();
    let new: Vec<Line<'_>> = lines(new_body, LineModel::Lm3).collect();
    let places = hunks(&keys(&old), &keys(&new));
    if places.is_empty() {
        return Err(format!("{path} does not change"));
    }
    let places = joined(places);
    for place in &places {
        determined(path, &old, &new, place)?;
        let shown = old[place.old.clone()].iter().chain(&new[place.new.clone()]).map(text_of);
        if shown.flat_map(str::chars).any(|character| character != '\t' && hides(character)) {
            return Err(format!("{path}: characters that nobody sees change, and no words here show them"));
        }
    }
    let sides = Sides { path, old: &old, new: &new };
    let mut task = String::new();
    for (index, place) in places.iter().enumerate() {
        task.push_str(&sides.sentence(place, index == 0));
    }
    let target = match places.as_slice() {
        [one] => sides.target(one, way).filter(|target| target.gives(before, before).as_deref() == Ok(after)),
        _ => None,
    };
    Ok(Described { task: task.trim().to_owned(), shapes: places.iter().map(Shape::of).collect(), target })
}

/// Places with hardly a line between them are one, so that no sentence speaks of lines that another one moves.
fn joined(places: Vec<Hunk>) -> Vec<Hunk> {
    let mut out: Vec<Hunk> = Vec::with_capacity(places.len());
    for place in places {
        match out.last_mut() {
            Some(last) if place.old.start - last.old.end <= 1 => {
                last.old.end = place.old.end;
                last.new.end = place.new.end;
            }
            _ => out.push(place),
        }
    }
    out
}

/// Lines that come in get the ending that all lines of the file have.
fn determined(path: &str, old: &[Line<'_>], new: &[Line<'_>], place: &Hunk) -> Result<(), String> {
    if place.old.len() == place.new.len() {
        let kept = place.old.clone().zip(place.new.clone()).all(|(a, b)| old[a].ending == new[b].ending);
        return if kept { Ok(()) } else { Err(format!("{path}: a line ending changes, and no words here say so")) };
    }
    let mut endings: Vec<Ending> = old.iter().chain(new).map(|line| line.ending).collect();
    endings.sort();
    endings.dedup();
    match endings.as_slice() {
        [_] => Ok(()),
        [Ending::None, _] if place.old.end < old.len() && place.new.end < new.len() => Ok(()),
        [Ending::None, _] => Err(format!("{path}: what ends the last line would not be determined")),
        _ => Err(format!("{path}: the line endings are mixed, and those of new lines would not be determined")),
    }
}

struct Sides<'a> {
    path: &'a str,
    old: &'a [Line<'a>],
    new: &'a [Line<'a>],
}

impl Sides<'_> {
    fn sentence(&self, place: &Hunk, first: bool) -> String {
        let opening = if first { format!("In {}, ", self.path) } else { String::new() };
        let words = match Shape::of(place) {
            Shape::LineReplaced => self.replaced_line(place),
            Shape::LinesReplaced => self.replaced_lines(place),
            Shape::LinesDeleted => match text_of(&self.old[place.old.start]) {
                line if place.old.len() == 1 && spannable(line.trim()) => {
                    format!("delete the whole line {} together with its line break. ", quoted(line.trim()))
                }
                _ => format!(
                    "delete {} together with {}:\n\n{}\n\n",
                    these(place.old.len()),
                    if place.old.len() == 1 { "its line break" } else { "their line breaks" },
                    block(self.old, place.old.clone())
                ),
            },
            Shape::LinesInserted => self.inserted(place),
        };
        if first { opening + &words } else { capital(&words) }
    }

    fn replaced_line(&self, place: &Hunk) -> String {
        let (old, new) = (text_of(&self.old[place.old.start]), text_of(&self.new[place.new.start]));
        let indent = |text: &str| text.len() - text.trim_start().len();
        let (old_words, new_words) = (old.trim(), new.trim());
        let ends = |text: &str| text == text.trim_end();
        let same_blanks = old[..indent(old)] == new[..indent(new)] && ends(old) && ends(new);
        if new.is_empty() && spannable(old_words) {
            return format!(
                "empty the line {}: its text goes, with any blanks around it, and an empty line stays in its place. ",
                quoted(old_words)
            );
        }
        if !same_blanks || old_words == new_words || !spannable(old_words) || !spannable(new_words) {
            return self.replaced_lines(place);
        }
        let stays = if indent(old) > 0 { " Its indentation stays. " } else { " " };
        format!("change the line {} to {}.{stays}", quoted(old_words), quoted(new_words))
    }

    fn replaced_lines(&self, place: &Hunk) -> String {
        format!(
            "replace {}:\n\n{}\n\nby {}, exactly as shown, blanks included:\n\n{}\n\n",
            these(place.old.len()),
            block(self.old, place.old.clone()),
            these(place.new.len()),
            block(self.new, place.new.clone())
        )
    }

    fn inserted(&self, place: &Hunk) -> String {
        let at = place.old.start;
        let lines = format!(
            "{}, exactly as shown, indentation included:\n\n{}\n\n",
            these(place.new.len()),
            block(self.new, place.new.clone())
        );
        let named = |index: usize| {
            let text = self.old.get(index).map(text_of)?;
            spannable(text.trim()).then(|| quoted(text.trim()))
        };
        match (at.checked_sub(1).map(named), named(at)) {
            (None, Some(next)) => format!("insert at the very beginning, before the line {next}, {lines}"),
            (Some(Some(previous)), _) => format!("insert directly after the line {previous} {lines}"),
            (Some(None), Some(next)) => format!("insert directly before the line {next} {lines}"),
            _ => format!("insert {lines}"),
        }
    }

    fn target(&self, place: &Hunk, way: Way) -> Option<Target> {
        // Spelled with the file's own line break, which every tool takes as it is.
        let newline = if self.old.iter().any(|line| line.ending == Ending::CrLf) { "\r\n" } else { "\n" };
        let joined = |lines: &[Line<'_>], range: Range<usize>| {
            lines[range].iter().map(text_of).collect::<Vec<_>>().join(newline)
        };
        let (old, new) = (joined(self.old, place.old.clone()), joined(self.new, place.new.clone()));
        let target = |line: Option<usize>, find: Option<String>, content: String| {
            Some(Target { path: self.path.to_owned(), line, find, content })
        };
        let number = Some(place.old.start + 1);
        match (Shape::of(place), way) {
            (Shape::LineReplaced, Way::Line) => target(number, None, new),
            (Shape::LineReplaced, Way::LineAndFind) if !old.trim().is_empty() => {
                target(number, Some(old.trim().to_owned()), new)
            }
            (Shape::LineReplaced | Shape::LinesReplaced, _) => target(None, Some(old), new),
            (Shape::LinesDeleted, _) => target(None, Some(format!("{old}{newline}")), String::new()),
            (Shape::LinesInserted, _) => match place.old.start.checked_sub(1) {
                Some(above) => {
                    let anchor = text_of(&self.old[above]).to_owned();
                    let content = format!("{anchor}{newline}{new}");
                    target(None, Some(anchor), content)
                }
                None => {
                    let anchor = self.old.first().map(text_of)?.to_owned();
                    let content = format!("{new}{newline}{anchor}");
                    target(None, Some(anchor), content)
                }
            },
        }
    }
}

/// The text of a line of a file that is UTF-8.
fn text_of<'a>(line: &Line<'a>) -> &'a str {
    std::str::from_utf8(line.text).unwrap_or_default()
}

/// A text that a code span shows as it is.
fn spannable(text: &str) -> bool {
    !text.is_empty() && !text.contains(['\t', '\n', '\r']) && !text.chars().any(hides)
}

/// A text as a code span, or as a JSON string where a span would not show it.
fn quoted(text: &str) -> String {
    if !spannable(text) || text != text.trim() {
        return format!("the JSON string {}", json!(text));
    }
    marks::span(text)
}

fn block(lines: &[Line<'_>], range: Range<usize>) -> String {
    marks::block("", &lines[range].iter().map(text_of).collect::<Vec<_>>().join("\n"))
}

fn these(count: usize) -> String {
    if count == 1 { "this line".to_owned() } else { format!("these {count} lines") }
}

fn capital(words: &str) -> String {
    let mut chars = words.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(before: &str, after: &str) -> String {
        describe("a.txt", before.as_bytes(), after.as_bytes(), Way::Find).unwrap().task
    }

    #[test]
    fn each_shape_has_its_words() {
        assert_eq!(task("a\n  b\n", "a\n  c\n"), "In a.txt, change the line `b` to `c`. Its indentation stays.");
        assert_eq!(
            task("a\n\tx `y`\nz\n", "a\n\nz\n"),
            "In a.txt, empty the line `` x `y` ``: its text goes, with any blanks around it, and an empty line stays in its place."
        );
        assert_eq!(task("a\nb\nc\n", "a\nc\n"), "In a.txt, delete the whole line `b` together with its line break.");
        assert_eq!(
            task("a\r\nb\r\n", "a\r\n  n\r\nb\r\n"),
            "In a.txt, insert directly after the line `a` this line, exactly as shown, indentation included:\n\n```\n  n\n```"
        );
        assert!(task("a\nb\n", "n\na\nb\n").contains("at the very beginning, before the line `a`, this line"));
        assert!(task("a\n b\n", "a\n  b\n").contains("replace this line:\n\n```\n b\n```\n\nby this line"));
        let two = task("a\nb\nc\nd\ne\n", "A\nb\nc\nd\n");
        assert_eq!(
            two,
            "In a.txt, change the line `a` to `A`. Delete the whole line `e` together with its line break."
        );
    }

    #[test]
    fn targets_give_what_is_expected_or_are_not_there() {
        let target = |before: &str, after: &str, way| {
            describe("a.txt", before.as_bytes(), after.as_bytes(), way).unwrap().target
        };
        let line = target("a\n  b\n", "a\n  c\n", Way::Line).unwrap();
        assert_eq!((line.line, line.find.as_deref(), line.content.as_str()), (Some(2), None, "  c"));
        let both = target("a\n  b\n", "a\n  c\n", Way::LineAndFind).unwrap();
        assert_eq!((both.line, both.find.as_deref()), (Some(2), Some("b")));
        assert!(target("a\r\nb\r\nc\r\n", "a\r\nX\r\nY\r\nc\r\n", Way::Line).is_some());
        assert!(target("a\na\n", "a\nb\na\n", Way::Find).is_none());
    }

    #[test]
    fn what_words_cannot_determine_is_refused() {
        let why = |before: &[u8], after: &[u8]| describe("f", before, after, Way::Find).unwrap_err();
        assert!(why(b"\xFF\n", b"a\n").contains("not a text file"));
        assert!(why(b"a\n", b"a\n").contains("does not change"));
        assert!(why(b"a\r\nb\n", b"a\r\nn\nb\n").contains("mixed"));
        assert!(why(b"a\nb", b"a\nb\nc").contains("last line"));
        assert!(why(b"a\n", b"a").contains("line ending changes"));
        assert!(why(b"\xEF\xBB\xBFa\n", b"b\n").contains("byte-order mark"));
    }
}
