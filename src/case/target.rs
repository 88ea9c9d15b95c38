//! The edit of a case spelled for the directed prompt: where, and what comes there.

use memchr::memmem;

use crate::text::lines::dominant;
use crate::text::{Ending, Line, LineModel, lines, without_bom};

/// Where and what to change, for the directed prompt.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    pub path: String,
    /// 1-based number in the file as the model reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub find: Option<String>,
    pub content: String,
}

impl Target {
    /// The way this target names its place, as a tag: `by-line`, `by-find` or `by-line-and-find`.
    pub fn way(&self) -> &'static str {
        match (self.line.is_some(), self.find.is_some()) {
            (true, true) => "by-line-and-find",
            (true, false) => "by-line",
            _ => "by-find",
        }
    }

    /// What the file becomes by this target: with a line the whole of that line becomes the content and keeps its ending,
    /// else the text becomes the content. `as_read` is the file as the model read it, `current` as it is. A line that has
    /// moved since is the one that has the same text (or holds `find`).
    ///
    /// # Errors
    /// Why the target names no one place.
    pub fn gives(&self, as_read: &[u8], current: &[u8]) -> Result<Vec<u8>, String> {
        let (body, mark) = without_bom(current);
        let changed = match self.line {
            Some(number) => self.by_line(number, without_bom(as_read).0, body)?,
            None => self.by_text(body)?,
        };
        Ok([&current[..mark], &changed].concat())
    }

    fn by_line(&self, number: usize, read: &[u8], body: &[u8]) -> Result<Vec<u8>, String> {
        let index = number.saturating_sub(1);
        let line = lines(read, LineModel::Lm3).nth(index).ok_or_else(|| format!("there is no line {number}"))?;
        let find = self.find.as_deref().map(str::as_bytes);
        let holds = |line: &Line<'_>| find.is_none_or(|find| memmem::find(line.text, find).is_some());
        if !holds(&line) {
            return Err(format!("line {number} does not hold `find`"));
        }
        let all: Vec<Line<'_>> = lines(body, LineModel::Lm3).collect();
        let same = |each: &Line<'_>| if find.is_some() { holds(each) } else { each.text == line.text };
        let place = if read == body {
            all.get(index)
        } else {
            let mut places = all.iter().filter(|each| same(each));
            let first = places.next();
            if places.next().is_some() {
                return Err(
                    "the file has changed since it was read, and the line stands in it more than once".to_owned()
                );
            }
            first
        };
        let place = place.ok_or("the file has changed since it was read, and the line is not in it")?;
        Ok([&body[..place.start], self.content.as_bytes(), &body[place.text_end()..]].concat())
    }

    /// A line break of the text stands for whichever the file has.
    fn by_text(&self, body: &[u8]) -> Result<Vec<u8>, String> {
        let find = self.find.as_deref().unwrap_or_default();
        let bridged = find.replace('\n', "\r\n");
        let places = |text: &str| memmem::find_iter(body, text).collect::<Vec<usize>>();
        match (places(find).as_slice(), places(&bridged).as_slice()) {
            ([at], _) => Ok([&body[..*at], self.content.as_bytes(), &body[at + find.len()..]].concat()),
            ([], [at]) => {
                let ending = if dominant(body, LineModel::Lm3) == Ending::CrLf { "\r\n" } else { "\n" };
                let content = self.content.replace('\n', ending);
                Ok([&body[..*at], content.as_bytes(), &body[at + bridged.len()..]].concat())
            }
            (exact, bridged) => {
                let count = exact.len().max(bridged.len());
                Err(format!("`find` stands {count} times in the file, not once"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gives(line: Option<usize>, find: Option<&str>, read: &str, current: &str) -> Result<String, String> {
        let target = Target { path: "f".into(), line, find: find.map(str::to_owned), content: "N\nM".into() };
        target.gives(read.as_bytes(), current.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn each_way_gives_its_bytes_or_says_why_not() {
        let same = |line, find, text| gives(line, find, text, text);
        assert_eq!(same(Some(2), None, "\u{FEFF}a\r\nb\r\nc").unwrap(), "\u{FEFF}a\r\nN\nM\r\nc");
        assert_eq!(same(None, Some("a\nb"), "a\r\nb\r\n").unwrap(), "N\r\nM\r\n");
        assert_eq!(gives(Some(1), Some("b"), "b1\n", "x\nb1\n").unwrap(), "x\nN\nM\n");
        assert_eq!(same(None, Some("a"), "a a").unwrap_err(), "`find` stands 2 times in the file, not once");
        assert_eq!(same(Some(1), Some("z"), "a").unwrap_err(), "line 1 does not hold `find`");
        assert!(gives(Some(1), None, "b\n", "b\nb\n").unwrap_err().contains("more than once"));
        assert!(gives(Some(1), None, "b\n", "c\n").unwrap_err().contains("is not in it"));
    }
}
