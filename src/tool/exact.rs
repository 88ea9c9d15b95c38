//! Exact text in bytes: where it occurs, and the file with something else in its place. The engine of the text edits of
//! `EditFile` and `filesystem_write`.

use std::ops::Range;

use memchr::memmem;

use super::{Kind, Refusal};

/// The largest file that a text edit may make, in bytes. An edit of every occurrence can multiply a file, and a model's
/// call must not be able to fill the memory.
pub(super) const MAX_RESULT: usize = 4 << 20;

/// Where `old` occurs, from left to right without overlap (AQ4). An empty text occurs nowhere.
pub(super) fn occurrences(body: &[u8], old: &[u8]) -> Vec<Range<usize>> {
    if old.is_empty() {
        return Vec::new();
    }
    memmem::find_iter(body, old).map(|start| start..start + old.len()).collect()
}

/// `body` with `new` in each of the places, which are in order and do not overlap.
///
/// # Errors
/// `too_large` for a result beyond [`MAX_RESULT`].
pub(super) fn spliced(path: &str, body: &[u8], places: &[Range<usize>], new: &[u8]) -> Result<Vec<u8>, Refusal> {
    let removed: usize = places.iter().map(Range::len).sum();
    let size = places.len().checked_mul(new.len()).and_then(|added| added.checked_add(body.len() - removed));
    let Some(size) = size.filter(|size| *size <= MAX_RESULT) else {
        let message = format!("the edit would make {path} larger than {MAX_RESULT} bytes; nothing changed");
        return Err(Refusal::new(Kind::TooLarge, message));
    };
    let mut bytes = Vec::with_capacity(size);
    let mut at = 0;
    for place in places {
        bytes.extend_from_slice(&body[at..place.start]);
        bytes.extend_from_slice(new);
        at = place.end;
    }
    bytes.extend_from_slice(&body[at..]);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(body: &[u8], old: &[u8]) -> Vec<(usize, usize)> {
        occurrences(body, old).into_iter().map(|place| (place.start, place.end)).collect()
    }

    #[test]
    fn occurrences_do_not_overlap() {
        assert_eq!(pairs(b"aaaa", b"aa"), [(0, 2), (2, 4)]);
        assert_eq!(pairs(b"aaa", b"aa"), [(0, 2)]);
        assert!(occurrences(b"aaa", b"").is_empty());
        assert_eq!(spliced("f", b"aaaa", &[0..2, 2..4], b"a").unwrap(), b"aa");
        assert_eq!(spliced("f", b"xabyz", &[1..3, 4..5], b"").unwrap(), b"xy");
    }

    #[test]
    fn a_result_that_would_fill_the_memory_is_refused() {
        let body = vec![b'a'; 1 << 20];
        let all = occurrences(&body, b"a");
        assert_eq!(spliced("f", &body, &all, &vec![b'b'; 1 << 20]).unwrap_err().kind, Kind::TooLarge);
        assert!(spliced("f", &body, &all, b"bb").is_ok());
    }
}
