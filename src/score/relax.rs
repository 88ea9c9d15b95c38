//! What a failed attempt would be under each relaxation: diagnosis only, never a pass.

use serde::{Deserialize, Serialize};

use crate::case::{Node, Tree};
use crate::text::{Ending, LineModel, lines, without_bom};

/// A way of not looking closely, as other benchmarks do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relaxation {
    /// Which line ending does not matter.
    Eol,
    /// A missing or additional line break at the end of a file does not matter.
    FinalNewline,
    /// Blanks at the ends of lines do not matter.
    TrailingWhitespace,
    /// No blank, line ending, blank line or byte-order mark matters.
    Whitespace,
}

impl Relaxation {
    pub const ALL: [Relaxation; 4] =
        [Relaxation::Eol, Relaxation::FinalNewline, Relaxation::TrailingWhitespace, Relaxation::Whitespace];

    pub fn name(self) -> &'static str {
        match self {
            Relaxation::Eol => "eol",
            Relaxation::FinalNewline => "final_newline",
            Relaxation::TrailingWhitespace => "trailing_whitespace",
            Relaxation::Whitespace => "whitespace",
        }
    }
}

/// The relaxations under which the tree equals an accepted one.
pub(super) fn would_pass(accepted: &[Tree], actual: &Tree) -> Vec<Relaxation> {
    let alike = |relaxation: Relaxation| accepted.iter().any(|tree| equal(tree, actual, relaxation));
    Relaxation::ALL.into_iter().filter(|relaxation| alike(*relaxation)).collect()
}

fn equal(expected: &Tree, actual: &Tree, relaxation: Relaxation) -> bool {
    expected.changed_paths(actual).iter().all(|path| match (expected.get(path), actual.get(path)) {
        (Some(Node::File { bytes: want, mode: wanted }), Some(Node::File { bytes: have, mode: had })) => {
            wanted == had && relaxed(want, relaxation) == relaxed(have, relaxation)
        }
        _ => false,
    })
}

fn relaxed(bytes: &[u8], relaxation: Relaxation) -> Vec<u8> {
    match relaxation {
        Relaxation::FinalNewline => {
            let end = bytes.len() - bytes.iter().rev().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
            bytes[..end].to_vec()
        }
        Relaxation::Whitespace => {
            without_bom(bytes).0.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
        }
        Relaxation::Eol | Relaxation::TrailingWhitespace => {
            let mut out = Vec::with_capacity(bytes.len());
            for line in lines(bytes, LineModel::Lm3) {
                let text = line.text;
                if relaxation == Relaxation::TrailingWhitespace {
                    let end = text.len() - text.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
                    out.extend_from_slice(&text[..end]);
                    out.extend_from_slice(line.ending.bytes());
                } else {
                    out.extend_from_slice(text);
                    if line.ending != Ending::None {
                        out.push(b'\n');
                    }
                }
            }
            out
        }
    }
}
