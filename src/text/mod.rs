//! Lines and endings on bytes, visible whitespace, and a line diff for people: the ground floor.
//!
//! Nothing here decodes a file. A `String` made in this room is for display and never becomes file bytes again.

pub mod diff;
pub mod lines;
pub mod marks;
pub mod visible;

pub use lines::{BOM, Ending, Line, LineModel, lines, without_bom};

/// UTF-8 without NUL: what can be shown and written as text.
pub fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok()
}
