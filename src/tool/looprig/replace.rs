//! The edit itself: from bytes and intent to new bytes or a refusal. Pure; no disk, no model.

use super::{Kind, Refusal, shown};
use crate::tool::{Note, column, exact};

/// Replaces `old` by `new`, once or wherever it occurs (B1 to B4, B15): exact bytes, nothing known of lines.
///
/// # Errors
/// A refusal: `old` is not there, is there more than once, or the result would be too large.
pub fn replace(path: &str, before: &[u8], old: &str, new: &str, all: bool) -> Result<Vec<u8>, Refusal> {
    let places = exact::occurrences(before, old.as_bytes());
    match places.len() {
        0 => {
            let message = format!(
                "old was not found in {path}: {}; copy the exact text, without the column of line numbers; nothing changed",
                shown(old)
            );
            let refusal = Refusal::new(Kind::AnchorMissing, message);
            Err(if column::has(old.as_bytes()) { refusal.with_note(Note::NumberColumn) } else { refusal })
        }
        count if count > 1 && !all => Err(Refusal::new(
            Kind::AnchorAmbiguous,
            format!(
                "old occurs {count} times in {path}: {}; include more of the surrounding text, or set replace_all to \
                 replace every occurrence; nothing changed",
                shown(old)
            ),
        )),
        _ => exact::spliced(path, before, &places, new.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(before: &[u8], old: &str, new: &str, all: bool) -> Result<Vec<u8>, Kind> {
        replace("f", before, old, new, all).map_err(|refusal| refusal.kind)
    }

    #[test]
    fn bytes_and_nothing_else() {
        assert_eq!(run(b"aaaa", "aa", "a", true), Ok(b"aa".to_vec()));
        assert_eq!(run(b"aaaa", "aa", "a", false), Err(Kind::AnchorAmbiguous));
        assert_eq!(run(b"a\r\nb", "a\nb", "x", false), Err(Kind::AnchorMissing));
        assert_eq!(run(b"a\r\nb\r\n", "\nb", "\nB\n", false), Ok(b"a\r\nB\n\r\n".to_vec()));
        assert_eq!(run(b"\xEF\xBB\xBFa\x00\xFF", "a", "", false), Ok(b"\xEF\xBB\xBF\x00\xFF".to_vec()));
        assert_eq!(run(b"a", "b", "c", true), Err(Kind::AnchorMissing));
        assert_eq!(run(b"", "a", "b", true), Err(Kind::AnchorMissing));
    }

    proptest! {
        #[test]
        fn all_is_the_same_as_joining_the_pieces(
            before in proptest::collection::vec(proptest::sample::select(b"ab\r\n\xE9".to_vec()), 0..40),
            old in "[ab\r\n]{1,3}",
            new in "[abc\r\n]{0,3}",
        ) {
            let pieces: Vec<&[u8]> = bstr::ByteSlice::split_str(&before[..], &old).collect();
            let want = (pieces.len() > 1).then(|| pieces.join(new.as_bytes()));
            prop_assert_eq!(run(&before, &old, &new, true).ok(), want.clone());
            prop_assert_eq!(run(&before, &old, &new, false).ok(), want.filter(|_| pieces.len() == 2));
        }

        #[test]
        fn an_edit_and_its_inverse_give_the_original(
            before in proptest::collection::vec(proptest::sample::select(b"ab\r\n \xE9".to_vec()), 0..40),
            old in "[ab\r\n]{1,3}",
            new in "[xyz]{1,4}",
        ) {
            let Ok(there) = run(&before, &old, &new, false) else { return Ok(()) };
            prop_assert_eq!(run(&there, &new, &old, false), Ok(before));
        }
    }
}
