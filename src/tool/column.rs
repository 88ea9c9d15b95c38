//! The column of line numbers that read tools show, where it was copied into a text.

use crate::text::{LineModel, lines};

/// What stands between a number and the line: `12: `, `12<TAB>`, `12→`, `12 | ` (CQ14).
const MARKS: [&[u8]; 5] = [b": ", b":\t", b"\t", "→".as_bytes(), b" | "];

/// The text without its column of numbers, where every line that is not blank has one; `None` where one has not.
/// `further` are marks that count besides [`MARKS`].
fn without(text: &[u8], model: LineModel, further: &[&[u8]]) -> Option<Vec<u8>> {
    let mut bare = Vec::with_capacity(text.len());
    let mut any = false;
    for line in lines(text, model) {
        let number = line.text.trim_ascii_start();
        if !number.is_empty() {
            let rest = &number[number.iter().take_while(|byte| byte.is_ascii_digit()).count()..];
            if rest.len() == number.len() {
                return None;
            }
            // Of an empty line the blank after the mark may have been lost.
            let mark = match rest {
                b":" | b"|" => rest.len(),
                _ => MARKS.iter().chain(further).find(|mark| rest.starts_with(mark))?.len(),
            };
            bare.extend_from_slice(&rest[mark..]);
            any = true;
        }
        bare.extend_from_slice(line.ending.bytes());
    }
    any.then_some(bare)
}

/// The text without its column of numbers, if it has one in every line that is not blank. A mere blank after the number
/// counts too: whoever asks looks whether the text occurs without it.
pub(super) fn stripped(text: &[u8], model: LineModel) -> Option<Vec<u8>> {
    without(text, model, &[b" "])
}

/// Every line that is not blank begins with a number and what read tools, or models, put after it.
pub(super) fn has(text: &[u8]) -> bool {
    without(text, LineModel::Lm3, &[b":", b"|"]).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_columns_are_seen() {
        for text in ["2\tx", "    12: y = 3", "3 | x\n4 | y", "7→x", "4:x", "2\tx\n\n4\ty"] {
            assert!(has(text.as_bytes()), "{text}");
        }
        for text in ["x = 1", "", "12 monkeys", "2\tx\ny", ": x"] {
            assert!(!has(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn and_taken_away() {
        assert_eq!(stripped(b"4: x = 12", LineModel::Lm2).unwrap(), b"x = 12");
        assert_eq!(stripped("  4→\tx\r\n5→y\n\n".as_bytes(), LineModel::Lm2).unwrap(), b"\tx\r\ny\n\n");
        assert_eq!(stripped(b"12 | x", LineModel::Lm2).unwrap(), b"x");
        assert_eq!(stripped(b"12 x", LineModel::Lm2).unwrap(), b"x");
        assert_eq!(stripped(b"2: \tb\n3:\n4: c", LineModel::Lm2).unwrap(), b"\tb\n\nc");
        assert_eq!(stripped(b"1: a\rb", LineModel::Lm2).unwrap(), b"a\rb");
        assert_eq!(stripped(b"4:x", LineModel::Lm2), None);
    }
}
