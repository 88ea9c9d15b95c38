//! Texts between back quotes, as CommonMark has them: marks longer than any run inside.

/// A code span of one line.
pub fn span(text: &str) -> String {
    let marks = "`".repeat(longest_run(text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{marks}{pad}{text}{pad}{marks}")
}

/// A fenced block, without a line break after it.
pub fn block(language: &str, text: &str) -> String {
    let fence = "`".repeat((longest_run(text) + 1).max(3));
    format!("{fence}{language}\n{text}\n{fence}")
}

/// How many back quotes a text begins with.
pub fn leading(text: &str) -> usize {
    text.len() - text.trim_start_matches('`').len()
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}
