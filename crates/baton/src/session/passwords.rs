//! Passwords, from whoever sits at the terminal or from standard input: never from where others can see them.

use std::io::{IsTerminal as _, Read as _};

use crate::failure::Failure;

/// Longest text that is read from a pipe.
const MOST_BYTES: u64 = 4096;

/// What standard input holds, without the end of its last line.
pub(super) fn from_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().take(MOST_BYTES).read_to_string(&mut text);
    read.map_err(|error| Failure::usage(format!("cannot read the password: {error}")))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Asks whoever sits at the terminal; `instead` names what to say where nobody does.
pub(super) fn asked(prompt: &str, instead: &str) -> Result<String, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage(format!("no password was given: {instead}")));
    }
    rpassword::prompt_password(prompt)
        .map_err(|error| Failure::usage(format!("cannot read the password: {error}")))
}
