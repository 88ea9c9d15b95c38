//! The companion `filesystem_read`: pages of numbered lines, by the same splitter that edits use.

use std::fs;

use bstr::ByteSlice;

use super::roots::{Roots, found, names_directory, no_directory};
use super::show::lines_in_words;
use super::{Kind, Outcome, Refusal, io_fault, shown};
use crate::text::{LineModel, lines, visible, without_bom};
use crate::tool::args::Args;

/// Lines of a page.
const PAGE_LINES: usize = 2000;
/// Bytes of the lines of a page, as they are shown.
const PAGE_BYTES: usize = 48 << 10;

pub(super) fn read(roots: &Roots, args: &mut Args<'_>) -> Result<Outcome, Refusal> {
    let given = args.required_text("path")?;
    if given.is_empty() {
        return Err(args.wrong_value("path", "is empty"));
    }
    let start = args.positive("start")?.unwrap_or(1);
    let end = args.positive("end")?;
    if end.is_some_and(|end| end < start) {
        return Err(args.wrong_value("end", format!("is before start, {start}")));
    }
    let place = roots.target(given)?;
    let path = shown(given);
    match found(&path, &place)? {
        Some(metadata) if metadata.is_dir() => {
            return Err(Refusal::new(Kind::IsDirectory, format!("{path} is a directory")));
        }
        Some(_) if names_directory(given) => return Err(no_directory(&path)),
        Some(metadata) if metadata.is_file() => {}
        Some(_) => return Err(Refusal::new(Kind::NotRegular, format!("{path} is not a regular file"))),
        None => return Err(Refusal::new(Kind::Missing, format!("{path}: there is no such file"))),
    }
    let bytes = fs::read(&place).map_err(|error| io_fault(&path, &error))?;
    if memchr::memchr(0, &bytes).is_some() {
        return Err(Refusal::new(Kind::Binary, format!("{path} is a binary file (it holds a NUL byte)")));
    }
    let text = page(&bytes, start, end.unwrap_or(usize::MAX)).map_err(|count| {
        Refusal::new(Kind::LineRange, format!("there is no line {start}: {path} has {}", lines_in_words(count)))
    })?;
    Ok(Outcome::done(text, Vec::new(), Vec::new()))
}

/// The lines from `start` to `end`, as far as a page takes them; the number of lines where there is no line `start`.
fn page(bytes: &[u8], start: usize, end: usize) -> Result<String, usize> {
    let (body, _) = without_bom(bytes);
    let count = lines(body, LineModel::Lm2).count();
    if start > count.max(1) {
        return Err(count);
    }
    let mut out = String::new();
    let mut last = start - 1;
    for line in lines(body, LineModel::Lm2).take(end).skip(start - 1).take(PAGE_LINES) {
        let row = format!("{}: {}\n", last + 1, line.text.to_str_lossy());
        if out.len() + row.len() > PAGE_BYTES {
            if last < start {
                // One line at least, as far as it goes.
                out.push_str(&visible::prefix(row.as_bytes(), PAGE_BYTES).to_str_lossy());
                out.push_str("… (line cut)\n");
                last += 1;
            }
            break;
        }
        out.push_str(&row);
        last += 1;
    }
    if last >= count {
        out.push_str(&format!("(end of file, {count} lines)"));
    } else {
        out.push_str(&format!("(lines {start}-{last} of {count}; read on from {})", last + 1));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_say_where_they_end() {
        let all = usize::MAX;
        assert_eq!(page(b"a\r\nb\rc\n", 1, all).unwrap(), "1: a\n2: b\rc\n(end of file, 2 lines)");
        assert_eq!(page(b"a\nb\nc\n", 2, 2).unwrap(), "2: b\n(lines 2-2 of 3; read on from 3)");
        assert_eq!(page(b"a\nb\nc", 2, 9).unwrap(), "2: b\n3: c\n(end of file, 3 lines)");
        assert_eq!(page(b"", 1, all).unwrap(), "(end of file, 0 lines)");
        assert_eq!(page(b"a\n", 2, all), Err(1));
        assert_eq!(page("\u{FEFF}a\n".as_bytes(), 1, all).unwrap(), "1: a\n(end of file, 1 lines)");
        let many = "x\n".repeat(2001);
        assert!(page(many.as_bytes(), 1, all).unwrap().ends_with("(lines 1-2000 of 2001; read on from 2001)"));
        let long = format!("{}\nb\n", "é".repeat(40_000));
        let text = page(long.as_bytes(), 1, all).unwrap();
        assert!(
            text.len() < 50_000 && text.ends_with("é… (line cut)\n(lines 1-1 of 2; read on from 2)"),
            "{}",
            text.len()
        );
        let bad = page(&[b'\xFF'; 49_000], 1, all).unwrap();
        assert!(bad.len() < 50_000 && bad.ends_with("(line cut)\n(end of file, 1 lines)"), "{}", bad.len());
    }
}
