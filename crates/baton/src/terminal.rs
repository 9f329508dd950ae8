//! Words for the person at the terminal. Whoever no longer reads them must not end a server.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

/// Whether standard error is read by machines, who want an object on each line.
static FOR_MACHINES: AtomicBool = AtomicBool::new(false);

/// From now on everything on standard error is JSON, what a panic says too.
pub(crate) fn speak_json() {
    FOR_MACHINES.store(true, Ordering::Relaxed);
    std::panic::set_hook(Box::new(|panic| said("ERROR", &panic.to_string())));
}

/// Says what the command is there to say, on standard output.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// Says on standard output that a server is there, which is a line of the log to whoever collects both.
pub(crate) fn announce(text: &str) {
    match FOR_MACHINES.load(Ordering::Relaxed) {
        true => tell(&line("INFO", text)),
        false => tell(text),
    }
}

/// Says how it goes, on standard error.
pub(crate) fn remark(text: &str) {
    if FOR_MACHINES.load(Ordering::Relaxed) {
        return said("INFO", text);
    }
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Says why it goes no further, on standard error.
pub(crate) fn complain(text: &str) {
    if FOR_MACHINES.load(Ordering::Relaxed) {
        return said("ERROR", text);
    }
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// A line as the log has it.
fn said(level: &str, text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", line(level, text));
}

fn line(level: &str, text: &str) -> String {
    let now = jiff::Timestamp::now().to_string();
    json!({"timestamp": now, "level": level, "fields": {"message": text}, "target": "baton"}).to_string()
}
