//! The companion `read_file`: pages of numbered lines, by the same splitter that edits use.

use std::fs;
use std::io;
use std::path::Path;

use bstr::ByteSlice;

use super::{confined, io_fault};
use crate::text::{LineModel, lines, visible, without_bom};
use crate::tool::args::Args;
use crate::tool::{Kind, Outcome, Refusal};

const DEFAULT_LIMIT: usize = 100;
/// Bytes of line content in a page.
const PAGE_BYTES: usize = 4096;
/// A NUL byte among the first bytes makes a file binary.
const FIRST_CHUNK: usize = 8192;

pub(super) fn read(root: &Path, args: &mut Args<'_>) -> Result<Outcome, Refusal> {
    let path = args.required_text("path")?;
    let offset = args.positive("offset")?.unwrap_or(1);
    let limit = args.positive("limit")?.unwrap_or(DEFAULT_LIMIT);
    let place = confined(root, path, "read")?;
    let bytes = match fs::metadata(&place) {
        Ok(metadata) if metadata.is_dir() => {
            return Err(Refusal::new(Kind::IsDirectory, format!("cannot read {path}: it is a directory")));
        }
        Ok(metadata) if metadata.is_file() => fs::read(&place).map_err(|error| io_fault("read", path, &error))?,
        Ok(_) => return Err(Refusal::new(Kind::NotRegular, format!("cannot read {path}: it is not a regular file"))),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            let message = if path.contains(['*', '?', '[']) {
                format!("cannot read {path}: read_file takes one path, not a pattern")
            } else {
                format!("cannot read {path}: there is no such file")
            };
            return Err(Refusal::new(Kind::Missing, message));
        }
        Err(error) => return Err(io_fault("read", path, &error)),
    };
    if bytes.iter().take(FIRST_CHUNK).any(|byte| *byte == 0) {
        return Err(Refusal::new(Kind::Binary, format!("cannot read {path}: it is a binary file")));
    }
    Ok(Outcome::done(page(&bytes, offset, limit), Vec::new(), Vec::new()))
}

/// The page that starts at line `offset`: at most `limit` lines or 4 KiB of their content, but at least one line.
fn page(bytes: &[u8], offset: usize, limit: usize) -> String {
    let (body, _) = without_bom(bytes);
    let mut out = String::new();
    let mut left = PAGE_BYTES;
    let mut number = offset;
    let mut all = lines(body, LineModel::Lm3).skip(offset - 1).peekable();
    while let Some(line) = all.peek() {
        let shown = number - offset;
        if shown >= limit || (shown > 0 && line.text.len() > left) {
            out.push_str(&format!("[more: call again with offset {number}]"));
            return out;
        }
        out.push_str(&format!("{number}\t{}\n", visible::prefix(line.text, left).to_str_lossy()));
        left = left.saturating_sub(line.text.len());
        number += 1;
        all.next();
    }
    if number == offset {
        out.push_str("(no lines in range)\n");
    }
    out.push_str("[end of file]");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_end_at_the_limit_or_the_budget() {
        assert_eq!(page(b"a\r\nb\rc\n", 1, 100), "1\ta\n2\tb\n3\tc\n[end of file]");
        assert_eq!(page(b"a\nb\nc\n", 2, 1), "2\tb\n[more: call again with offset 3]");
        assert_eq!(page(b"", 1, 100), "(no lines in range)\n[end of file]");
        assert_eq!(page(b"a\n", 5, 100), "(no lines in range)\n[end of file]");
        let long = format!("{}\nshort\n", "é".repeat(3000));
        assert_eq!(page(long.as_bytes(), 1, 100), format!("1\t{}\n[more: call again with offset 2]", "é".repeat(2048)));
        let two = format!("{}\n{}\nz\n", "a".repeat(4000), "b".repeat(97));
        assert!(page(two.as_bytes(), 1, 100).ends_with("a\n[more: call again with offset 2]"));
        assert_eq!(page("\u{FEFF}a\n".as_bytes(), 1, 100), "1\ta\n[end of file]");
        assert_eq!(page(b"caf\xE9\n", 1, 100), "1\tcaf\u{FFFD}\n[end of file]");
    }
}
