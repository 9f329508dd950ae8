//! Names in the paths of requests.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::error::ScmError;

/// Everything that may mean something in a path is escaped, the slash included.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'@');

/// A name as one segment of a path.
///
/// # Errors
/// An empty name and the names of this and the parent directory would ask for something else.
pub(crate) fn segment(what: &str, name: &str) -> Result<String, ScmError> {
    if matches!(name, "" | "." | "..") {
        return Err(ScmError::invalid(format!("{name:?} cannot be {what}")));
    }
    Ok(utf8_percent_encode(name, SEGMENT).to_string())
}

/// The path of a file or directory, with its slashes; empty for the root.
///
/// # Errors
/// Paths that leave the repository are refused.
pub(crate) fn path(path: &str) -> Result<String, ScmError> {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.contains(&"..") {
        return Err(ScmError::invalid(format!("path {path:?} leaves the repository")));
    }
    let parts: Vec<String> =
        parts.into_iter().map(|part| utf8_percent_encode(part, SEGMENT).to_string()).collect();
    Ok(parts.join("/"))
}
