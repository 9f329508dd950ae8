//! What is wrong or doubtful in a policy.

use std::fmt;

/// Something wrong or doubtful.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The field, or the key and its line.
    pub path: String,
    /// What is wrong, and what to do.
    pub message: String,
}

// === impl Finding ===

impl Finding {
    pub(crate) fn new(path: impl fmt::Display, message: impl Into<String>) -> Finding {
        Finding { path: path.to_string(), message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Text of others as messages show it: quoted, and no longer than a line.
pub(crate) fn shown(text: &str) -> String {
    const MOST_SHOWN: usize = 100;
    match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
