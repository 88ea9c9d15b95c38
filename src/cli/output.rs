//! Printing: data to stdout, messages to stderr.

use std::io::{self, Write};

use super::Failure;
use crate::text::visible;

/// Writes data to stdout. A reader that has seen enough, such as `head`, is no error, and changes no exit code.
pub(super) fn data(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done.map_err(Failure::unwritable),
    }
}

/// A message on stderr. That it cannot be told is no reason to fail.
pub(super) fn message(text: &str) {
    let _ = writeln!(io::stderr(), "{}", visible::inert(text));
}

/// An error on stderr.
pub(super) fn error(text: &str) {
    message(&format!("error: {text}"));
}

pub(super) use crate::report::terminal::table;
