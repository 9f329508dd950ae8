//! Words for the person at the terminal. Whoever no longer reads them must not end a server.

use std::io::Write;

/// Says what the command is there to say, on standard output.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// Says how it goes, on standard error.
pub(crate) fn remark(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
