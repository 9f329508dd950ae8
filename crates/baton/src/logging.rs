//! What is logged, and in which form.

use tracing_subscriber::EnvFilter;

use crate::failure::Failure;
use crate::terminal;

/// Which form the log has where no flag and no variable of Argo CD's says it, as in the Deployments of an installation.
const FORM: &str = "BATON_LOG_FORMAT";

/// What somebody asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) filter: Option<String>,
    /// Whether each line is an object.
    pub(crate) json: Option<bool>,
}

/// A level by a name that Argo CD takes, as it is called here.
pub(crate) fn level(name: &str) -> Result<String, String> {
    let level = match name.to_ascii_lowercase().as_str() {
        "trace" => "trace",
        "debug" => "debug",
        "info" => "info",
        "warn" | "warning" => "warn",
        // What is worse ends the process.
        "error" | "fatal" | "panic" => "error",
        _ => return Err("must be trace, debug, info, warn or error".to_owned()),
    };
    Ok(level.to_owned())
}

/// The form of the log by its name.
pub(crate) fn form(name: &str) -> Result<String, String> {
    let form = name.to_ascii_lowercase();
    match form.as_str() {
        "text" | "json" => Ok(form),
        _ => Err("must be text or json".to_owned()),
    }
}

/// Whether the environment wants an object on each line.
pub(crate) fn is_json() -> Result<bool, Failure> {
    let Some(name) = std::env::var(FORM).ok().filter(|name| !name.is_empty()) else { return Ok(false) };
    let form = form(&name).map_err(|how| Failure::usage(format!("{FORM}={name:?}: {how}")))?;
    Ok(form == "json")
}

/// Logs to standard error from now on; in colours only for a person.
pub(crate) fn begin(filter: &str, json: bool) {
    use std::io::IsTerminal as _;
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let log = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_ansi(colours)
        .with_writer(std::io::stderr);
    if json {
        terminal::speak_json();
        log.json().init();
    } else {
        log.init();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_argo_cd_are_taken_however_they_are_written() {
        for (name, read) in [
            ("INFO", Some("info")),
            ("warning", Some("warn")),
            ("Trace", Some("trace")),
            ("panic", Some("error")),
            ("bogus", None),
            ("", None),
        ] {
            assert_eq!(level(name).ok().as_deref(), read, "{name}");
        }
        assert_eq!(form("JSON").as_deref(), Ok("json"));
        assert!(form("xml").is_err());
    }
}
