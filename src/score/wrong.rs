//! How a changed tree is wrong: where it changed against where it was to change, and what is left when the unseen is
//! taken away.

use std::ops::Range;

use super::class::{Flag, Wrong};
use super::lines;
use crate::case::{Node, Tree};
use crate::text::diff::{Hunk, hunks, keys};
use crate::text::{Ending, Line, LineModel, lines as split};

/// The class of a tree that is neither accepted nor as before, and all its flags.
pub(super) fn diagnose(before: &Tree, expected: &Tree, actual: &Tree) -> (Wrong, Vec<Flag>) {
    let wanted = before.changed_paths(expected);
    let touched = before.changed_paths(actual);
    let right = |path: &String| expected.get(path) == actual.get(path);
    let stray = touched.iter().any(|path| !wanted.contains(path));
    if wanted.iter().all(right) {
        return (Wrong::ExtraFile, vec![Flag::ExtraFile]);
    }
    if !wanted.iter().any(|path| touched.contains(path)) {
        return (Wrong::File, vec![Flag::WrongFile]);
    }
    let off: Vec<&String> = wanted.iter().filter(|path| !right(path)).collect();
    let mut flags = if stray { vec![Flag::ExtraFile] } else { Vec::new() };
    if !stray && off.iter().all(|path| same_contents(expected, actual, path)) {
        return (Wrong::Meta, vec![Flag::Mode]);
    }
    let files: Vec<FileChange<'_>> =
        wanted.iter().map(|path| FileChange::new(before, expected, actual, path)).collect();
    let hits = files.iter().any(FileChange::hits);
    for path in &off {
        if let (Some(Node::File { mode: want, .. }), Some(Node::File { mode: have, .. })) =
            (expected.get(path), actual.get(path))
            && want != have
        {
            flags.push(Flag::Mode);
        }
    }
    let (mut visible, mut unseen) = (false, Vec::new());
    for file in files.iter().filter(|file| !file.right) {
        let sight = lines::compare(file.expected, file.actual);
        visible |= sight.visible || file.missing_or_made;
        unseen.extend(sight.unseen);
    }
    flags.extend(&unseen);
    if !hits {
        flags.push(Flag::WrongTarget);
        if files.iter().any(FileChange::off_by_one) {
            flags.push(Flag::OffByOne);
        }
        return (Wrong::Target, flags);
    }
    if !stray && files.iter().all(FileChange::only_wanted) {
        flags.retain(|flag| *flag == Flag::Mode);
        flags.push(Flag::Partial);
        return (Wrong::Partial, flags);
    }
    if stray || files.iter().any(FileChange::strays) {
        flags.push(Flag::Collateral);
    }
    let class = if stray && !visible {
        // The file that was to change is right but for the unseen, and another one is not as it was.
        Wrong::Collateral
    } else if visible {
        if files.iter().all(FileChange::complete) {
            flags.push(Flag::Collateral);
            Wrong::Collateral
        } else {
            flags.push(Flag::Content);
            Wrong::Content
        }
    } else {
        first_unseen(&unseen)
    };
    (class, flags)
}

fn first_unseen(flags: &[Flag]) -> Wrong {
    let order = [
        (Flag::Bom, Wrong::Bom),
        (Flag::Encoding, Wrong::Encoding),
        (Flag::Eol, Wrong::Eol),
        (Flag::FinalNewline, Wrong::FinalNewline),
        (Flag::Indent, Wrong::Indent),
        (Flag::TrailingWhitespace, Wrong::TrailingWhitespace),
        (Flag::InnerWhitespace, Wrong::Whitespace),
        (Flag::BlankLines, Wrong::Whitespace),
    ];
    order.into_iter().find(|(flag, _)| flags.contains(flag)).map_or(Wrong::Content, |(_, wrong)| wrong)
}

/// The same contents behind another mode, or behind a link instead of a file.
fn same_contents(expected: &Tree, actual: &Tree, path: &str) -> bool {
    match (through_link(expected, path), through_link(actual, path)) {
        (Some(want), Some(have)) => want == have,
        _ => false,
    }
}

fn through_link<'a>(tree: &'a Tree, path: &str) -> Option<&'a [u8]> {
    match tree.get(path)? {
        Node::File { bytes, .. } => Some(bytes),
        Node::Symlink { target } => {
            let directory = path.rsplit_once('/').map_or(String::new(), |(directory, _)| format!("{directory}/"));
            tree.bytes(&format!("{directory}{target}"))
        }
        Node::Directory | Node::Other => None,
    }
}

/// One file that was to change: what was to change in it, and what did.
struct FileChange<'a> {
    expected: &'a [u8],
    actual: &'a [u8],
    right: bool,
    /// It is there on one side only.
    missing_or_made: bool,
    before_lines: Vec<Line<'a>>,
    expected_lines: Vec<Line<'a>>,
    actual_lines: Vec<Line<'a>>,
    wanted: Vec<Hunk>,
    done: Vec<Hunk>,
}

impl<'a> FileChange<'a> {
    fn new(before: &'a Tree, expected: &'a Tree, actual: &'a Tree, path: &str) -> Self {
        let of = |tree: &'a Tree| tree.bytes(path).unwrap_or_default();
        let lines = |tree: &'a Tree| split(of(tree), LineModel::Lm3).collect::<Vec<_>>();
        let (before_lines, expected_lines, actual_lines) = (lines(before), lines(expected), lines(actual));
        FileChange {
            expected: of(expected),
            actual: of(actual),
            right: expected.get(path) == actual.get(path),
            missing_or_made: expected.bytes(path).is_some() != actual.bytes(path).is_some(),
            wanted: units(hunks(&keys(&before_lines), &keys(&expected_lines))),
            done: units(hunks(&keys(&before_lines), &keys(&actual_lines))),
            before_lines,
            expected_lines,
            actual_lines,
        }
    }

    /// Some changed line lies where one was to change.
    fn hits(&self) -> bool {
        self.done.iter().any(|done| self.wanted.iter().any(|wanted| touch(&done.old, &wanted.old)))
    }

    /// Some changed line is the neighbour of one that was to change.
    fn off_by_one(&self) -> bool {
        let near = |a: &Range<usize>, b: &Range<usize>| {
            let gap = a.start.max(b.start).saturating_sub(a.end.min(b.end));
            gap == 0 || (gap == 1 && (a.is_empty() || b.is_empty()))
        };
        self.done.iter().any(|done| self.wanted.iter().any(|wanted| near(&done.old, &wanted.old)))
    }

    /// Everything that changed was wanted so.
    fn only_wanted(&self) -> bool {
        self.done.iter().all(|done| {
            self.wanted.iter().any(|wanted| {
                done.old == wanted.old
                    && keys(&self.actual_lines[done.new.clone()]) == keys(&self.expected_lines[wanted.new.clone()])
            })
        })
    }

    /// Some line changed that no wanted change touches.
    fn strays(&self) -> bool {
        self.done.iter().any(|done| {
            !self.wanted.iter().any(|wanted| touch(&done.old, &wanted.old))
                || done.old.clone().any(|line| !self.wanted.iter().any(|wanted| touch(&(line..line + 1), &wanted.old)))
        })
    }

    /// Every wanted line is there: the lines to be changed are changed, and the lines to be made are made.
    fn complete(&self) -> bool {
        let gone = |line: usize| self.done.iter().any(|done| done.old.contains(&line));
        let removed = self.wanted.iter().flat_map(|wanted| wanted.old.clone()).all(gone);
        let mut made: Vec<_> = self.done.iter().flat_map(|done| keys(&self.actual_lines[done.new.clone()])).collect();
        let mut added = self.wanted.iter().flat_map(|wanted| keys(&self.expected_lines[wanted.new.clone()]));
        // Another text in the place of lines that were to go is no wanted line.
        let replaced = self.wanted.iter().filter(|wanted| wanted.new.is_empty()).any(|wanted| {
            self.done.iter().any(|done| done.old == wanted.old && !done.new.is_empty())
                || wanted
                    .old
                    .clone()
                    .all(|line| self.done.iter().any(|done| done.old == (line..line + 1) && !done.new.is_empty()))
        });
        removed
            && !replaced
            && !self.before_lines.is_empty()
            && added.all(|line| {
                made.iter().position(|each| same_line(*each, line)).map(|at| made.swap_remove(at)).is_some()
            })
    }
}

/// The same text with the same ending; the last line of a file has none of its own to compare.
fn same_line(a: (&[u8], Ending), b: (&[u8], Ending)) -> bool {
    a.0 == b.0 && (a.1 == b.1 || a.1 == Ending::None || b.1 == Ending::None)
}

/// Changes one by one: where as many lines are new as old, each line is a change of its own.
fn units(hunks: Vec<Hunk>) -> Vec<Hunk> {
    let mut units = Vec::new();
    for hunk in hunks {
        if hunk.old.len() == hunk.new.len() {
            units.extend(hunk.old.zip(hunk.new).map(|(old, new)| Hunk { old: old..old + 1, new: new..new + 1 }));
        } else {
            units.push(hunk);
        }
    }
    units
}

/// Two ranges share a line; an empty one (an insertion) touches the lines on both of its sides.
fn touch(a: &Range<usize>, b: &Range<usize>) -> bool {
    if a.is_empty() || b.is_empty() { a.start <= b.end && b.start <= a.end } else { a.start < b.end && b.start < a.end }
}
