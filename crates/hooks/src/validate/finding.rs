//! What validation finds.

use std::fmt;

/// Something wrong or doubtful in a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The path of the field.
    pub path: String,
    /// What is wrong, and what to do. It never holds the value of a header, a body or a variable.
    pub message: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It works, but somebody should look.
    Warning,
    /// Nothing runs.
    Error,
}

/// Findings in the order of being found.
#[derive(Debug, Default)]
pub(crate) struct Findings(Vec<Finding>);

// === impl Finding ===

impl Finding {
    /// Whether nothing runs because of it.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

// === impl Findings ===

impl Findings {
    pub(crate) fn error(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.0.push(Finding { severity: Severity::Error, path: path.into(), message: message.into() });
    }

    pub(crate) fn warning(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.0.push(Finding { severity: Severity::Warning, path: path.into(), message: message.into() });
    }

    pub(crate) fn into_vec(self) -> Vec<Finding> {
        self.0
    }

    /// The first that stops everything.
    pub(crate) fn first_error(self) -> Option<Finding> {
        self.0.into_iter().find(Finding::is_error)
    }
}
