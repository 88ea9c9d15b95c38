//! Where things stand in a JSON text, for errors that point at them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// A step from a JSON value to one inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

/// The byte offset of the value that `steps` lead to; of the last one that is there, where the text ends earlier.
/// `None` when the text is not JSON.
pub fn offset_of(text: &str, steps: &[Step<'_>]) -> Option<usize> {
    let mut value: &RawValue = serde_json::from_str(text).ok()?;
    for step in steps {
        let next = match step {
            Step::Key(key) => serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(value.get())
                .ok()
                .and_then(|map| map.get(*key).copied()),
            Step::Index(index) => {
                serde_json::from_str::<Vec<&RawValue>>(value.get()).ok().and_then(|all| all.get(*index).copied())
            }
        };
        match next {
            Some(next) => value = next,
            None => break,
        }
    }
    Some(offset_in(text, value.get()))
}

/// The byte offset of a part of a text that was borrowed from it: its address tells where it stands.
pub fn offset_in(text: &str, part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize)
}

/// 1-based line and column of the value that `steps` lead to. `None` when the text is not JSON.
pub fn position_at(text: &str, steps: &[Step<'_>]) -> Option<(usize, usize)> {
    offset_of(text, steps).map(|offset| position_of(text, offset))
}

/// 1-based line and column (in characters) of a byte offset.
pub fn position_of(text: &str, offset: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line = memchr::memchr_iter(b'\n', before).count() + 1;
    let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    (line, String::from_utf8_lossy(&before[start..]).chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_the_way_to_them() {
        let text = "{\n  \"a\": [1, {\"\\u00e9\": 2}]\n}";
        let at = |steps: &[Step<'_>]| position_of(text, offset_of(text, steps).unwrap());
        assert_eq!(at(&[]), (1, 1));
        assert_eq!(at(&[Step::Key("a"), Step::Index(1), Step::Key("é")]), (2, 23));
        assert_eq!(at(&[Step::Key("a"), Step::Index(7)]), (2, 8));
        assert_eq!(offset_of("{", &[]), None);
    }
}
