//! Byte variants of a case: the same edit of the same text in other bytes, its expected bytes derived the same way, so
//! that what those bytes cost is measured within a case.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::check::contradiction;
use super::task::quotes;
use super::{Case, Node, Rewrite, Tree};
use crate::text::diff::{hunks, keys, matched};
use crate::text::{BOM, Ending, Line, LineModel, is_text, lines};

/// Of which case of its set a case is a variant, and in which bytes.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Id of the original.
    pub of: String,
    pub bytes: Bytes,
}

/// The bytes that a variant is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bytes {
    /// Every line ends in `\n`.
    Lf,
    /// Every line ends in `\r\n`.
    Crlf,
    /// Every line ends in a lone `\r`.
    Cr,
    /// About a third of the lines end in `\r\n`, the others in `\n`.
    Mixed,
    /// A UTF-8 byte-order mark stands before the text.
    Bom,
    /// Nothing ends the last line.
    NoFinalNewline,
    /// Lines are indented with a tab for each step of spaces.
    Tabs,
}

impl Bytes {
    pub const ALL: [Bytes; 7] =
        [Bytes::Lf, Bytes::Crlf, Bytes::Cr, Bytes::Mixed, Bytes::Bom, Bytes::NoFinalNewline, Bytes::Tabs];

    /// The name in files, as serde writes it.
    pub fn name(self) -> &'static str {
        match self {
            Bytes::Lf => "lf",
            Bytes::Crlf => "crlf",
            Bytes::Cr => "cr",
            Bytes::Mixed => "mixed",
            Bytes::Bom => "bom",
            Bytes::NoFinalNewline => "no-final-newline",
            Bytes::Tabs => "tabs",
        }
    }

    pub fn named(name: &str) -> Option<Bytes> {
        Bytes::ALL.into_iter().find(|bytes| bytes.name() == name)
    }

    /// What it is, for a reader.
    pub fn meaning(self) -> &'static str {
        match self {
            Bytes::Lf => "every line ends in LF",
            Bytes::Crlf => "every line ends in CRLF",
            Bytes::Cr => "every line ends in a lone CR",
            Bytes::Mixed => "a third of the lines end in CRLF, the others in LF",
            Bytes::Bom => "a UTF-8 byte-order mark before the text",
            Bytes::NoFinalNewline => "nothing ends the last line",
            Bytes::Tabs => "indented with tabs instead of spaces",
        }
    }
}

/// The variant of a case, called `ID.BYTES`.
///
/// # Errors
/// Why the case has no such variant: its bytes would be the same, its task speaks of what would change, or the result
/// would not be determined.
pub fn vary(case: &Case, bytes: Bytes) -> Result<Case, String> {
    if let Some(variant) = &case.variant {
        return Err(format!("it is itself a variant of `{}`", variant.of));
    }
    speaks_of(case, bytes)?;
    let step = match bytes {
        Bytes::Tabs => indentation(case)?,
        _ => 0,
    };
    let rewriting = Rewriting { bytes, step };
    let base = case.final_base();
    let mut varied = case.clone();
    varied.id = format!("{}.{}", case.id, bytes.name());
    varied.variant = Some(Variant { of: case.id.clone(), bytes });
    varied.files = rewriting.tree(&case.files);
    for (path, content) in &case.seen {
        if is_text(content) {
            varied.seen.insert(path.clone(), rewriting.alone(content).into());
        }
    }
    varied.then =
        case.then.iter().map(|rewrite| Rewrite { files: rewriting.nodes(&rewrite.files), ..rewrite.clone() }).collect();
    for changes in &mut varied.accepted {
        for (path, node) in changes {
            let Some(Node::File { bytes: after, .. }) = node else {
                continue;
            };
            let before = base.bytes(path);
            if !is_text(after) || before.is_some_and(|before| !is_text(before)) {
                return Err(format!("{path} is not a text file"));
            }
            *after = match before {
                Some(before) => rewriting.changed(path, before, after)?.into(),
                // Its endings are those that the task asks for, and nothing says which others it would have.
                None if bytes != Bytes::Bom => return Err(format!("{path} is new")),
                None => Arc::clone(after),
            };
        }
    }
    if let Some(target) = &mut varied.target {
        let several = target.content.contains('\n') || target.find.as_deref().is_some_and(|find| find.contains('\n'));
        if several && matches!(bytes, Bytes::Cr | Bytes::Mixed) {
            return Err("its target spans lines".to_owned());
        }
        if bytes == Bytes::Tabs {
            target.content = retabbed_text(&target.content, step);
            target.find = target.find.as_deref().map(|find| retabbed_text(find, step));
        }
    }
    if contradiction(&varied).is_some() {
        // The breaks in its texts are those of the original: spelled with the variant's own they may fit.
        let newline = if bytes == Bytes::Crlf { "\r\n" } else { "\n" };
        let spelled = |text: &str| text.replace("\r\n", "\n").replace('\n', newline);
        if let Some(target) = &mut varied.target {
            target.content = spelled(&target.content);
            target.find = target.find.as_deref().map(spelled);
        }
        if let Some(why) = contradiction(&varied) {
            return Err(format!("then its {why}"));
        }
    }
    if varied.may_stay() && !case.may_stay() {
        return Err("its edit would be lost".to_owned());
    }
    if varied.files == case.files && varied.seen == case.seen && varied.then == case.then {
        return Err("its bytes are so already".to_owned());
    }
    Ok(varied)
}

/// A task that speaks of the bytes that would change is no longer true.
fn speaks_of(case: &Case, bytes: Bytes) -> Result<(), String> {
    let task = case.task.to_lowercase();
    let words: &[&str] = match bytes {
        Bytes::Lf | Bytes::Crlf | Bytes::Cr | Bytes::Mixed => &[
            "crlf",
            "carriage",
            "windows",
            "unix",
            " lf",
            "cr lf",
            "line feed",
            "ending",
            "end differently",
            "ends differently",
            "mixed",
        ],
        Bytes::NoFinalNewline => &["line break", "newline", "last line", "end of the file", "ends "],
        Bytes::Tabs => &["space", "tab", "indent", "blank"],
        Bytes::Bom => &["byte-order", "byte order", "bom", "first line"],
    };
    if bytes == Bytes::Tabs && quotes(&case.task).iter().any(|quote| quote.text.contains("  ")) {
        return Err("its task quotes spaces".to_owned());
    }
    match words.iter().find(|word| task.contains(**word)) {
        Some(word) => Err(format!("its task speaks of \"{}\"", word.trim())),
        None => Ok(()),
    }
}

struct Rewriting {
    bytes: Bytes,
    /// Spaces of one step of indentation.
    step: usize,
}

impl Rewriting {
    fn tree(&self, tree: &Tree) -> Tree {
        tree.iter().map(|(path, node)| (path.to_owned(), self.node(node))).collect()
    }

    fn nodes(&self, nodes: &BTreeMap<String, Node>) -> BTreeMap<String, Node> {
        nodes.iter().map(|(path, node)| (path.clone(), self.node(node))).collect()
    }

    fn node(&self, node: &Node) -> Node {
        match node {
            Node::File { bytes, mode } if is_text(bytes) => Node::File { bytes: self.alone(bytes).into(), mode: *mode },
            other => other.clone(),
        }
    }

    /// A file as it stands before the edit.
    fn alone(&self, bytes: &[u8]) -> Vec<u8> {
        let all: Vec<Line<'_>> = lines(bytes, LineModel::Lm3).collect();
        let endings: Vec<Ending> = all.iter().map(|line| self.ending(line)).collect();
        self.written(bytes, &all, &endings)
    }

    /// A file after the edit: lines keep the endings that they have before it.
    fn changed(&self, path: &str, before: &[u8], after: &[u8]) -> Result<Vec<u8>, String> {
        let old: Vec<Line<'_>> = lines(before, LineModel::Lm3).collect();
        let new: Vec<Line<'_>> = lines(after, LineModel::Lm3).collect();
        let mut as_before: Vec<Option<&Line<'_>>> = vec![None; new.len()];
        let places = hunks(&keys(&old), &keys(&new));
        for (from, to) in matched(old.len(), &places) {
            if let (Some(slot), line) = (as_before.get_mut(to), old.get(from)) {
                *slot = line;
            }
        }
        for place in &places {
            let (gone, come) = (place.old.len(), place.new.len());
            let undetermined = match self.bytes {
                // A line in place of a line keeps its ending, a line that goes takes it along.
                Bytes::Mixed => come > 0 && gone != come,
                // What ends the file when its last line goes, or another comes after it, is not said.
                Bytes::NoFinalNewline => gone != come && place.old.end == old.len(),
                _ => false,
            };
            if undetermined {
                return Err(format!("the endings of {path} after the edit would not be determined"));
            }
            if gone == come {
                for (from, to) in place.old.clone().zip(place.new.clone()) {
                    as_before[to] = old.get(from);
                }
            }
        }
        let ended = |line: Option<&Line<'_>>| line.is_none_or(|line| !line.text.is_empty());
        if self.bytes == Bytes::NoFinalNewline && !(ended(old.last()) && ended(new.last())) {
            return Err(format!("{path} ends in an empty line, and would still end in a line break"));
        }
        let both = |ending| old.iter().any(|line| self.ending(line) == ending);
        if self.bytes == Bytes::Mixed && !(both(Ending::Lf) && both(Ending::CrLf)) {
            return Err("the file is too short to be mixed".to_owned());
        }
        let ending = |(line, before): (&Line<'_>, &Option<&Line<'_>>)| match before {
            Some(before) if self.bytes == Bytes::Mixed && line.ending != Ending::None => self.ending(before),
            _ => self.ending(line),
        };
        let endings: Vec<Ending> = new.iter().zip(&as_before).map(ending).collect();
        Ok(self.written(after, &new, &endings))
    }

    fn ending(&self, line: &Line<'_>) -> Ending {
        match (self.bytes, line.ending) {
            (_, Ending::None) => Ending::None,
            (Bytes::Lf, _) => Ending::Lf,
            (Bytes::Crlf, _) => Ending::CrLf,
            (Bytes::Cr, _) => Ending::Cr,
            // By the text, so that a line has the same ending wherever it stands.
            (Bytes::Mixed, _) if Sha256::digest(line.text)[0] % 3 == 0 => Ending::CrLf,
            (Bytes::Mixed, _) => Ending::Lf,
            (_, ending) => ending,
        }
    }

    fn written(&self, whole: &[u8], all: &[Line<'_>], endings: &[Ending]) -> Vec<u8> {
        let mut out = Vec::with_capacity(whole.len() + all.len() + BOM.len());
        if self.bytes == Bytes::Bom && !whole.starts_with(BOM) {
            out.extend_from_slice(BOM);
        }
        for (index, (line, ending)) in all.iter().zip(endings).enumerate() {
            match self.bytes {
                Bytes::Tabs => out.extend(retabbed(line.text, self.step)),
                _ => out.extend_from_slice(line.text),
            }
            if !(self.bytes == Bytes::NoFinalNewline && index + 1 == all.len()) {
                out.extend_from_slice(ending.bytes());
            }
        }
        out
    }
}

/// The spaces of one step of indentation in the text files of a case.
fn indentation(case: &Case) -> Result<usize, String> {
    let mut widths = Vec::new();
    let changes = case.accepted.iter().flatten().filter_map(|(path, node)| Some((path.as_str(), node.as_ref()?)));
    for (path, node) in case.files.iter().chain(changes) {
        let Node::File { bytes, .. } = node else {
            continue;
        };
        if path.ends_with(".yaml") || path.ends_with(".yml") {
            return Err("YAML is not indented with tabs".to_owned());
        }
        for line in lines(bytes, LineModel::Lm3) {
            let blanks = line.text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            if line.text[..blanks].contains(&b'\t') {
                return Err("it has tabs already".to_owned());
            }
            if blanks > 0 && blanks < line.text.len() {
                widths.push(blanks);
            }
        }
    }
    let least = widths.iter().min().copied().ok_or("nothing in it is indented")?;
    if least < 2 || widths.iter().any(|width| width % least != 0) {
        return Err("its indentation has no even step".to_owned());
    }
    Ok(least)
}

fn retabbed(line: &[u8], step: usize) -> Vec<u8> {
    let spaces = line.iter().take_while(|byte| **byte == b' ').count();
    let mut out = vec![b'\t'; spaces / step.max(1)];
    out.extend_from_slice(&line[spaces - spaces % step.max(1)..]);
    out
}

fn retabbed_text(text: &str, step: usize) -> String {
    let lines: Vec<String> =
        text.split('\n').map(|line| String::from_utf8_lossy(&retabbed(line.as_bytes(), step)).into_owned()).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Target;
    use crate::case::tree::DEFAULT_MODE;

    fn node(text: &str) -> Node {
        Node::File { bytes: text.as_bytes().into(), mode: DEFAULT_MODE }
    }

    fn case(before: &str, after: &str) -> Case {
        Case {
            id: "c".into(),
            task: "In f.py, change `1` to `2`.".into(),
            files: [("f.py".to_owned(), node(before))].into_iter().collect(),
            accepted: vec![BTreeMap::from([("f.py".to_owned(), Some(node(after)))])],
            ..Case::default()
        }
    }

    fn both(before: &str, after: &str, bytes: Bytes) -> Result<(String, String), String> {
        let varied = vary(&case(before, after), bytes)?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let Some(Node::File { bytes: after, .. }) = &varied.accepted[0]["f.py"] else { panic!("a file") };
        Ok((text(varied.files.bytes("f.py").unwrap()), text(after)))
    }

    #[test]
    fn both_sides_are_written_the_same_way() {
        let of = |bytes| both("a:\n    x = 1\n\nb\n", "a:\n    x = 2\n\nb\n", bytes);
        assert_eq!(
            of(Bytes::Crlf).unwrap(),
            ("a:\r\n    x = 1\r\n\r\nb\r\n".into(), "a:\r\n    x = 2\r\n\r\nb\r\n".into())
        );
        assert_eq!(of(Bytes::Cr).unwrap().1, "a:\r    x = 2\r\rb\r");
        assert_eq!(of(Bytes::Bom).unwrap().1, "\u{FEFF}a:\n    x = 2\n\nb\n");
        assert_eq!(of(Bytes::NoFinalNewline).unwrap(), ("a:\n    x = 1\n\nb".into(), "a:\n    x = 2\n\nb".into()));
        assert_eq!(of(Bytes::Tabs).unwrap(), ("a:\n\tx = 1\n\nb\n".into(), "a:\n\tx = 2\n\nb\n".into()));
        assert_eq!(of(Bytes::Lf).unwrap_err(), "its bytes are so already");
    }

    #[test]
    fn a_mixed_line_keeps_its_ending_through_the_edit() {
        let before: String = (0..12).map(|n| format!("line {n}\n")).collect();
        let mixed = |text: &str| both(&before, text, Bytes::Mixed);
        let (old, new) = mixed(&before.replace("line 5\n", "LINE five\n")).unwrap();
        assert!(old.contains("\r\n") && old.replace("\r\n", "").contains('\n'));
        assert_eq!(new, old.replace("line 5", "LINE five"));
        let (old, new) = mixed(&before.replace("line 5\n", "")).unwrap();
        let gone = if old.contains("line 5\r\n") { "line 5\r\n" } else { "line 5\n" };
        assert_eq!(new, old.replace(gone, ""));
        assert!(mixed(&before.replace("line 5\n", "line 5\nmore\n")).unwrap_err().contains("not be determined"));
    }

    #[test]
    fn what_is_not_determined_is_not_derived() {
        let why = |before: &str, after: &str, bytes| both(before, after, bytes).unwrap_err();
        assert!(why("a\n1\n", "a\n", Bytes::NoFinalNewline).contains("not be determined"));
        assert!(why("a\n", "b\n", Bytes::Tabs).contains("nothing in it is indented"));
        assert!(why("a\n", "b\n", Bytes::Mixed).contains("too short"));
        let mut spoken = case("x = 1\n", "x = 2\n");
        spoken.task = "Indent `1`, the CRLF stays.".into();
        assert_eq!(vary(&spoken, Bytes::Tabs).unwrap_err(), "its task speaks of \"indent\"");
        assert_eq!(vary(&spoken, Bytes::Lf).unwrap_err(), "its task speaks of \"crlf\"");
        let variant = vary(&spoken, Bytes::Bom).unwrap();
        assert!(vary(&variant, Bytes::Crlf).unwrap_err().contains("itself a variant"));
        let mut spanning = case("x = 1\ny\n", "x = 2\ny\n");
        let target = Target { path: "f.py".into(), line: None, find: Some("1\ny".into()), content: "2\ny".into() };
        spanning.target = Some(target);
        assert!(vary(&spanning, Bytes::Cr).unwrap_err().contains("spans lines"));
        assert!(vary(&spanning, Bytes::Crlf).is_ok());
    }
}
