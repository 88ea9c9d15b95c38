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

/// From now on the steps of a run are told on stderr; those who tell them leave out what is secret.
pub(super) fn trace() {
    use tracing_subscriber::filter::Targets;
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::util::SubscriberInitExt;
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(false).with_target(false);
    let ours = Targets::new().with_target(env!("CARGO_PKG_NAME"), tracing::Level::DEBUG);
    // A second call finds the first one's work done.
    let _ = tracing_subscriber::registry().with(ours).with(lines).try_init();
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
