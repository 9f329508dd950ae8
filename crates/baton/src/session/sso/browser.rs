//! A browser on this machine, where there is one.

use std::process::{Command, Stdio};

/// Opens a page. Whoever has no browser here opens it elsewhere, so nothing is said where it fails.
pub(super) fn open(page: &str) {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let Some(program) = program(&set, cfg!(target_os = "macos")) else { return };
    let started = Command::new(program)
        .arg(page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match started {
        // It ends by itself; whoever waits for it ends with this command at the latest.
        Ok(mut child) => drop(std::thread::spawn(move || child.wait())),
        Err(error) => tracing::info!(%error, "no browser was opened"),
    }
}

/// What opens pages here; none where there is no display.
fn program(set: &impl Fn(&str) -> Option<String>, mac: bool) -> Option<String> {
    match set("BROWSER") {
        // Of several the first; a text with a place for the page is more than a program.
        Some(named) => named.split(':').next().filter(|first| !first.contains('%')).map(str::to_owned),
        None if mac => Some("open".to_owned()),
        None => (set("DISPLAY").is_some() || set("WAYLAND_DISPLAY").is_some()).then(|| "xdg-open".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_opened_where_there_is_a_display() {
        let with = |pairs: &'static [(&str, &str)]| {
            let set = move |name: &str| {
                pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            program(&set, false)
        };
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("DISPLAY", ":0")]).as_deref(), Some("xdg-open"));
        assert_eq!(with(&[("BROWSER", "firefox:chromium")]).as_deref(), Some("firefox"));
        assert_eq!(with(&[("BROWSER", "x %s"), ("DISPLAY", ":0")]), None);
        assert_eq!(program(&|_| None, true).as_deref(), Some("open"));
    }
}
