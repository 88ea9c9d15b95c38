//! Making bytes visible: for people only, one way.

use bstr::ByteSlice;

use super::lines::{Ending, Line};

/// A line with everything unseen made visible: tabs `→`, blanks at its ends `·`, its ending `␊` or `␍␊`, other
/// controls as control pictures, bytes that are not UTF-8 as `\xNN`, invisible characters as `\u{…}`.
pub fn line(line: &Line<'_>) -> String {
    let mut out = text(line.text);
    match line.ending {
        Ending::None => {}
        Ending::Lf => out.push('␊'),
        Ending::CrLf => out.push_str("␍␊"),
        Ending::Cr => out.push('␍'),
        Ending::Other(bytes) => out.push_str(&text(bytes)),
    }
    out
}

/// Text without line ending, made visible as in [`line`].
pub fn text(bytes: &[u8]) -> String {
    let leading = bytes.iter().take_while(|byte| is_blank(**byte)).count();
    let trailing = bytes.len() - bytes.iter().rev().take_while(|byte| is_blank(**byte)).count();
    let mut out = String::with_capacity(bytes.len() + 8);
    for (start, end, character) in bytes.char_indices() {
        let raw = &bytes[start..end];
        if character == '\u{FFFD}' && raw != "\u{FFFD}".as_bytes() {
            for byte in raw {
                out.push_str(&format!("\\x{byte:02X}"));
            }
            continue;
        }
        match character {
            '\t' => out.push('→'),
            ' ' if start < leading || start >= trailing => out.push('·'),
            other => push_inert(&mut out, other),
        }
    }
    out
}

/// At most `most` bytes of a text, ending on a character boundary.
pub fn prefix(text: &[u8], most: usize) -> &[u8] {
    if text.len() <= most {
        return text;
    }
    let end = text.char_indices().map(|(_, end, _)| end).take_while(|end| *end <= most).last().unwrap_or(0);
    &text[..end]
}

/// At most `most` bytes of a text, ending between characters.
pub fn str_prefix(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Any text on its way to a screen or report: controls, escapes and invisible characters lose their power, line feeds and tabs stay.
pub fn inert(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => out.push(character),
            other => push_inert(&mut out, other),
        }
    }
    out
}

/// One line of at most `limit` characters: the first line of [`inert`] with an ellipsis where something is left out.
pub fn excerpt(text: &str, limit: usize) -> String {
    let first = text.lines().next().unwrap_or_default();
    let mut out: String = inert(first).chars().take(limit).collect();
    if first.chars().count() > limit || text.trim_end_matches(['\r', '\n']) != first {
        out.push('…');
    }
    out
}

fn push_inert(out: &mut String, character: char) {
    match character {
        '\u{0}'..='\u{1F}' => out.push(char::from_u32(0x2400 + character as u32).unwrap_or('�')),
        '\u{7F}' => out.push('␡'),
        other if is_invisible(other) => out.push_str(&format!("\\u{{{:04X}}}", other as u32)),
        other => out.push(other),
    }
}

/// Characters that show nothing, or that change how their neighbours are shown.
fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{80}'..='\u{A0}'
            | '\u{AD}'
            | '\u{34F}'
            | '\u{61C}'
            | '\u{180E}'
            | '\u{2000}'..='\u{200F}'
            | '\u{2028}'..='\u{202F}'
            | '\u{205F}'..='\u{206F}'
            | '\u{3000}'
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}'
            | '\u{FFF9}'..='\u{FFFB}'
            | '\u{E0000}'..='\u{E0FFF}'
    )
}

/// Shows nothing by itself: invisible, a control, or shown only together with the character before it.
pub fn hides(character: char) -> bool {
    is_invisible(character) || character.is_control() || matches!(character, '\u{300}'..='\u{36F}')
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{LineModel, lines};

    fn shown(bytes: &[u8]) -> String {
        lines(bytes, LineModel::Lm3).map(|each| line(&each)).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn what_is_unseen_is_seen() {
        assert_eq!(shown(b"  a b \r\n\tc\rd\n"), "··a b·␍␊|→c␍|d␊");
        assert_eq!(shown(b"  \n"), "··␊");
        assert_eq!(shown(b"caf\xE9\x00\n"), "caf\\xE9␀␊");
        assert_eq!(shown("\u{FEFF}a\u{A0}b\u{202E}\n".as_bytes()), "\\u{FEFF}a\\u{00A0}b\\u{202E}␊");
        assert_eq!(shown("x\u{FFFD}".as_bytes()), "x\u{FFFD}");
    }

    #[test]
    fn escapes_lose_their_power() {
        assert_eq!(inert("a\u{1B}[31m\tb\nc\r"), "a␛[31m\tb\nc␍");
    }

    #[test]
    fn an_excerpt_is_one_short_line() {
        assert_eq!(excerpt("abc", 3), "abc");
        assert_eq!(excerpt("abcd", 3), "abc…");
        assert_eq!(excerpt("ab\ncd", 9), "ab…");
        assert_eq!(excerpt("ab\n", 9), "ab");
    }
}
