//! Finding text whose line breaks may be of another kind than the file's.

use std::ops::Range;

use memchr::memmem;

use super::exact;
use crate::text::lines::{count_breaks, with_breaks};
use crate::text::{Ending, LineModel, lines};

/// Where `find` occurs in `body`, from left to right without overlap. A line break of the model in `find` matches any one
/// break of the model, and a match neither starts nor ends between a `\r` and its `\n` (A13, AQ4, AQ16, CQ2). Takes time
/// linear in both texts, whatever they hold.
pub(super) fn occurrences(body: &[u8], find: &[u8], model: LineModel) -> Vec<Range<usize>> {
    if memchr::memchr2(b'\n', b'\r', find).is_none() {
        return exact::occurrences(body, find);
    }
    // Both with one kind of break, and for each byte of the body its place in the original.
    let plain_find = with_breaks(find, Ending::Lf, model);
    let mut plain = Vec::with_capacity(body.len());
    let mut origin = Vec::with_capacity(body.len() + 1);
    for line in lines(body, model) {
        plain.extend_from_slice(line.text);
        origin.extend(line.start..line.text_end());
        if line.ending != Ending::None {
            plain.push(b'\n');
            origin.push(line.text_end());
        }
    }
    origin.push(body.len());
    memmem::find_iter(&plain, &plain_find).map(|start| origin[start]..origin[start + plain_find.len()]).collect()
}

/// There is a line break of the model in the text.
pub(super) fn holds_break(text: &[u8], model: LineModel) -> bool {
    count_breaks(text, model) > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(body: &[u8], find: &[u8], model: LineModel) -> Vec<(usize, usize)> {
        occurrences(body, find, model).into_iter().map(|place| (place.start, place.end)).collect()
    }

    #[test]
    fn breaks_match_any_ending_and_never_half_of_one() {
        let found = |body: &[u8], find: &[u8]| pairs(body, find, LineModel::Lm3);
        assert_eq!(found(b"a\r\nb\nc\rd", b"a\nb\rc\r\nd"), [(0, 8)]);
        assert_eq!(found(b"a\r\nb", b"\nb"), [(1, 4)]);
        assert_eq!(found(b"a\r\nb", b"a\r"), [(0, 3)]);
        assert_eq!(found(b"\r\n\r\n", b"\n"), [(0, 2), (2, 4)]);
        assert_eq!(found(b"\r\n\r\n", b"\n\n"), [(0, 4)]);
        assert!(found(b"a\r\nb", b"a\n\nb").is_empty());
    }

    #[test]
    fn a_lone_cr_is_text_where_the_model_says_so() {
        let found = |body: &[u8], find: &[u8]| pairs(body, find, LineModel::Lm2);
        assert!(found(b"a\r\nb", b"a\r").is_empty());
        assert_eq!(found(b"a\r\nb", b"a\n"), [(0, 3)]);
        assert!(found(b"a\rb", b"a\nb").is_empty());
        assert_eq!(found(b"a\rb\r\n", b"a\rb\n"), [(0, 5)]);
    }

    #[test]
    fn counted_without_overlap() {
        assert_eq!(pairs(b"aaaa", b"aa", LineModel::Lm3), [(0, 2), (2, 4)]);
        assert_eq!(pairs(b"\n\n\n", b"\n\n", LineModel::Lm3), [(0, 2)]);
        assert!(occurrences(b"x", b"", LineModel::Lm3).is_empty());
        assert!(occurrences(b"", b"x\n", LineModel::Lm3).is_empty());
    }
}
