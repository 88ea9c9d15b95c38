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
    error
        .chain()
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe))
}

pub(super) use crate::report::terminal::table;
