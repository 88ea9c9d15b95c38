//! Splitting bytes into lines, each with its own ending.

use memchr::{memchr, memchr2};

/// The UTF-8 byte-order mark.
pub const BOM: &[u8] = b"\xEF\xBB\xBF";

/// How a dialect splits bytes into lines (the line models of the tool catalogue, section 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineModel {
    /// `\n`, `\r\n` and a lone `\r` end a line.
    Lm3,
    /// `\n` and `\r\n` end a line; a lone `\r` is text.
    Lm2,
    /// Only `\n` ends a line; a `\r` before it stays in the text.
    Lm1,
    /// All that Python's `str.splitlines` splits at, UTF-8 encoded: also VT, FF, FS, GS, RS, NEL, U+2028 and U+2029.
    LmPy,
}

/// What a line ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ending {
    /// The last line of a file without a final line break.
    None,
    Lf,
    CrLf,
    Cr,
    /// One of the further separators of [`LineModel::LmPy`], as its UTF-8 bytes.
    Other(&'static [u8]),
}

impl Ending {
    /// The bytes of the ending, empty for [`Ending::None`].
    pub fn bytes(self) -> &'static [u8] {
        match self {
            Ending::None => b"",
            Ending::Lf => b"\n",
            Ending::CrLf => b"\r\n",
            Ending::Cr => b"\r",
            Ending::Other(bytes) => bytes,
        }
    }

    /// A name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Ending::None => "none",
            Ending::Lf => "LF",
            Ending::CrLf => "CRLF",
            Ending::Cr => "CR",
            Ending::Other(_) => "other",
        }
    }
}

/// One line: where it starts, its text without the ending, and the ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Offset of the first byte in the whole text.
    pub start: usize,
    pub text: &'a [u8],
    pub ending: Ending,
}

impl Line<'_> {
    /// Offset just after the text, where the ending begins.
    pub fn text_end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Offset just after the ending.
    pub fn end(&self) -> usize {
        self.text_end() + self.ending.bytes().len()
    }
}

/// The lines of `bytes`, lazily. A final line ending does not start another line: `a\nb\n` has two lines, an empty text has none.
pub fn lines(bytes: &[u8], model: LineModel) -> Lines<'_> {
    Lines { bytes, at: 0, model }
}

/// Iterator of [`lines`].
#[derive(Clone, Debug)]
pub struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
    model: LineModel,
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        let (length, ending) = first_break(rest, self.model).unwrap_or((rest.len(), Ending::None));
        let line = Line { start: self.at, text: &rest[..length], ending };
        self.at = line.end();
        Some(line)
    }
}

/// Where the first line break of `rest` begins, and which it is.
fn first_break(rest: &[u8], model: LineModel) -> Option<(usize, Ending)> {
    match model {
        LineModel::Lm1 => memchr(b'\n', rest).map(|at| (at, Ending::Lf)),
        LineModel::Lm2 => memchr(b'\n', rest)
            .map(|at| if at > 0 && rest[at - 1] == b'\r' { (at - 1, Ending::CrLf) } else { (at, Ending::Lf) }),
        LineModel::Lm3 => memchr2(b'\n', b'\r', rest).map(|at| (at, break_at(rest, at))),
        LineModel::LmPy => (0..rest.len()).find_map(|at| match rest[at] {
            b'\n' | b'\r' => Some((at, break_at(rest, at))),
            _ => PYTHON_SEPARATORS
                .iter()
                .find(|separator| rest[at..].starts_with(separator))
                .map(|separator| (at, Ending::Other(separator))),
        }),
    }
}

fn break_at(rest: &[u8], at: usize) -> Ending {
    match (rest[at], rest.get(at + 1)) {
        (b'\n', _) => Ending::Lf,
        (_, Some(b'\n')) => Ending::CrLf,
        _ => Ending::Cr,
    }
}

const PYTHON_SEPARATORS: [&[u8]; 8] =
    [b"\x0B", b"\x0C", b"\x1C", b"\x1D", b"\x1E", "\u{85}".as_bytes(), "\u{2028}".as_bytes(), "\u{2029}".as_bytes()];

/// The text without a leading byte-order mark, and the length of the mark (0 or 3).
pub fn without_bom(bytes: &[u8]) -> (&[u8], usize) {
    match bytes.strip_prefix(BOM) {
        Some(rest) => (rest, BOM.len()),
        None => (bytes, 0),
    }
}

/// The ending most lines have; ties go to `\n`, then `\r\n`, then `\r`; `\n` where there is no line break at all.
pub fn dominant(bytes: &[u8], model: LineModel) -> Ending {
    let (mut lf, mut crlf, mut cr) = (0_usize, 0_usize, 0_usize);
    for line in lines(bytes, model) {
        match line.ending {
            Ending::Lf => lf += 1,
            Ending::CrLf => crlf += 1,
            Ending::Cr => cr += 1,
            Ending::None | Ending::Other(_) => {}
        }
    }
    if lf >= crlf && lf >= cr {
        Ending::Lf
    } else if crlf >= cr {
        Ending::CrLf
    } else {
        Ending::Cr
    }
}

/// How many line breaks there are.
pub fn count_breaks(bytes: &[u8], model: LineModel) -> usize {
    lines(bytes, model).filter(|line| line.ending != Ending::None).count()
}

/// `text` without one trailing line ending of any kind (`\r\n` counts as one).
pub fn strip_one_break(text: &[u8]) -> &[u8] {
    text.strip_suffix(b"\r\n").or_else(|| text.strip_suffix(b"\n")).or_else(|| text.strip_suffix(b"\r")).unwrap_or(text)
}

/// `text` with every line break of the model written as `ending`.
pub fn with_breaks(text: &[u8], ending: Ending, model: LineModel) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for line in lines(text, model) {
        out.extend_from_slice(line.text);
        if line.ending != Ending::None {
            out.extend_from_slice(ending.bytes());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(bytes: &[u8], model: LineModel) -> Vec<(&[u8], Ending)> {
        lines(bytes, model).map(|line| (line.text, line.ending)).collect()
    }

    #[test]
    fn each_model_ends_lines_where_it_says() {
        let text = b"a\r\nb\rc\nd";
        assert_eq!(
            split(text, LineModel::Lm3),
            [(&b"a"[..], Ending::CrLf), (b"b", Ending::Cr), (b"c", Ending::Lf), (b"d", Ending::None)]
        );
        assert_eq!(
            split(text, LineModel::Lm2),
            [(&b"a"[..], Ending::CrLf), (b"b\rc", Ending::Lf), (b"d", Ending::None)]
        );
        assert_eq!(
            split(text, LineModel::Lm1),
            [(&b"a\r"[..], Ending::Lf), (b"b\rc", Ending::Lf), (b"d", Ending::None)]
        );
        assert_eq!(
            split("a\u{2028}b\x0Cc\r\n".as_bytes(), LineModel::LmPy),
            [(&b"a"[..], Ending::Other("\u{2028}".as_bytes())), (b"b", Ending::Other(b"\x0C")), (b"c", Ending::CrLf)]
        );
    }

    #[test]
    fn a_final_break_starts_no_line_and_an_empty_text_has_none() {
        assert_eq!(split(b"", LineModel::Lm3), []);
        assert_eq!(split(b"\n", LineModel::Lm3), [(&b""[..], Ending::Lf)]);
        assert_eq!(split(b"a\nb\n", LineModel::Lm3).len(), 2);
    }

    #[test]
    fn dominant_breaks_ties_towards_lf_then_crlf() {
        let of = |text: &[u8]| dominant(text, LineModel::Lm3);
        assert_eq!(of(b""), Ending::Lf);
        assert_eq!(of(b"a"), Ending::Lf);
        assert_eq!(of(b"a\r\nb\nc"), Ending::Lf);
        assert_eq!(of(b"a\r\nb\rc"), Ending::CrLf);
        assert_eq!(of(b"a\rb\rc\r\n"), Ending::Cr);
        assert_eq!(of(b"a\r\nb\r\nc\n"), Ending::CrLf);
    }

    #[test]
    fn one_break_is_stripped_and_only_one() {
        assert_eq!(strip_one_break(b"a\r\n"), b"a");
        assert_eq!(strip_one_break(b"a\n\n"), b"a\n");
        assert_eq!(strip_one_break(b"a\n\r"), b"a\n");
        assert_eq!(strip_one_break(b"a"), b"a");
    }

    #[test]
    fn breaks_are_rewritten_whatever_they_were() {
        assert_eq!(with_breaks(b"a\nb\r\nc\rd", Ending::CrLf, LineModel::Lm3), b"a\r\nb\r\nc\r\nd");
        assert_eq!(with_breaks(b"\n", Ending::Cr, LineModel::Lm3), b"\r");
    }

    proptest! {
        #[test]
        fn joining_the_lines_gives_the_text(bytes in proptest::collection::vec(
            prop_oneof![Just(b'\n'), Just(b'\r'), Just(0x0C_u8), Just(0xC2_u8), Just(0x85_u8), any::<u8>()], 0..80)) {
            for model in [LineModel::Lm1, LineModel::Lm2, LineModel::Lm3, LineModel::LmPy] {
                let mut joined = Vec::new();
                let mut last = None;
                for line in lines(&bytes, model) {
                    prop_assert_eq!(line.start, joined.len());
                    prop_assert!(last != Some(Ending::None));
                    joined.extend_from_slice(line.text);
                    joined.extend_from_slice(line.ending.bytes());
                    last = Some(line.ending);
                }
                prop_assert_eq!(&joined, &bytes);
            }
        }
    }
}
