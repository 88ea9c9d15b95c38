//! Putting any text into Markdown so that it shows and does nothing.

use crate::text::{marks, visible};

/// Plain text in a paragraph or table cell: no markup, no HTML, no mention, no line break.
pub(super) fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in visible::inert(text).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '@' => out.push_str("&#64;"),
            '\n' | '\t' => out.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '!' | '$' => {
                out.push('\\');
                out.push(character);
            }
            other => out.push(other),
        }
    }
    out
}

/// A code span in a table cell, where a bar would end the cell.
pub(super) fn cell_code(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// A code span of one line.
pub(super) fn code(text: &str) -> String {
    let text = visible::inert(text).replace(['\n', '\t'], " ");
    if text.trim().is_empty() {
        return "(empty)".to_owned();
    }
    marks::span(&text)
}

/// A fenced block.
pub(super) fn block(language: &str, text: &str) -> String {
    let text = visible::inert(text);
    format!("{}\n", marks::block(language, text.trim_end_matches('\n')))
}

/// A table; cells are markup already.
pub(super) fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let mut out = format!("| {} |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
    for row in rows {
        out.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out_of_its_place() {
        assert_eq!(text("<b>|*x* @me\n"), "&lt;b&gt;\\|\\*x\\* &#64;me ");
        assert_eq!(code("a`b|c"), "``a`b|c``");
        assert_eq!(cell_code("a|c"), "`a\\|c`");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(code(""), "(empty)");
        assert_eq!(block("diff", "```\nx\u{1B}[0m"), "````diff\n```\nx␛[0m\n````\n");
    }
}
