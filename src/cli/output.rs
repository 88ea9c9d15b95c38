//! Printing: data to stdout, messages to stderr.

use std::io::{self, Write};

use super::Failure;
use crate::text::visible;

/// Writes data to stdout.
pub(super) fn data(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::unwritable)
}

/// A message on stderr. That it cannot be told is no reason to fail.
pub(super) fn message(text: &str) {
    let _ = writeln!(io::stderr(), "{}", visible::inert(text));
}

/// An error on stderr.
pub(super) fn error(text: &str) {
    message(&format!("error: {text}"));
}

/// A reader that has seen enough, such as `head`, is no error.
pub(super) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe))
}

/// A borderless table: first row the heads, columns two spaces apart.
pub(super) fn table(rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut builder = tabled::builder::Builder::default();
    for row in rows {
        builder.push_record(row);
    }
    let mut table = builder.build();
    table.with(tabled::settings::Style::blank()).with(tabled::settings::Padding::new(0, 1, 0, 0));
    let text = table.to_string();
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}
