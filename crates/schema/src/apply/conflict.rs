//! Why an apply was refused.

use std::fmt;

use serde_json::{Value, json};

use super::managers::{Identity, Operation};
use super::set::Set;

/// One field another manager owns with another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Who owns it.
    pub manager: String,
    /// Through which subresource; empty for the main resource.
    pub subresource: String,
    /// In which version.
    pub api_version: String,
    /// By apply or by another kind of write.
    pub operation: Operation,
    /// When it last changed its fields, in RFC 3339.
    pub time: Option<String>,
    /// For example `.spec.replicas`.
    pub field: String,
}

impl Conflict {
    /// The message of the `Status` cause whose reason is `FieldManagerConflict` and whose field is
    /// [`Conflict::field`].
    pub fn message(&self) -> String {
        format!("conflict with {}", self.owner())
    }

    /// The conflict as a cause of a `Status`.
    pub fn to_cause(&self) -> Value {
        json!({ "reason": "FieldManagerConflict", "message": self.message(), "field": self.field })
    }

    fn owner(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if self.operation == Operation::Update {
            text.push_str(&format!(" using {}", self.api_version));
        }
        text
    }
}

/// Why an apply was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApplyError {
    /// Other managers own fields with other values (409 Conflict). Grouped by manager, in path order.
    Conflicts(Vec<Conflict>),
    /// The configuration is not one for this object (400 BadRequest).
    BadRequest(String),
    /// The configuration does not fit the schema, for example two list elements with one key. Upstream answers 500
    /// without a reason.
    Invalid(String),
}

impl ApplyError {
    /// The HTTP status code.
    pub fn status(&self) -> u16 {
        match self {
            ApplyError::Conflicts(_) => 409,
            ApplyError::BadRequest(_) => 400,
            ApplyError::Invalid(_) => 500,
        }
    }

    /// The machine-readable reason of the `Status`; empty where upstream sends none.
    pub fn reason(&self) -> &'static str {
        match self {
            ApplyError::Conflicts(_) => "Conflict",
            ApplyError::BadRequest(_) => "BadRequest",
            ApplyError::Invalid(_) => "",
        }
    }
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conflicts = match self {
            ApplyError::BadRequest(text) | ApplyError::Invalid(text) => return f.write_str(text),
            ApplyError::Conflicts(conflicts) => conflicts,
        };
        if let [only] = conflicts.as_slice() {
            return write!(f, "Apply failed with 1 conflict: {}: {}", only.message(), only.field);
        }
        write!(f, "Apply failed with {} conflicts: ", conflicts.len())?;
        let mut previous: Option<String> = None;
        for conflict in conflicts {
            let owner = conflict.owner();
            if previous.as_ref() != Some(&owner) {
                let newline = if previous.is_some() { "\n" } else { "" };
                write!(f, "{newline}conflicts with {owner}:")?;
                previous = Some(owner);
            }
            write!(f, "\n- {}", conflict.field)?;
        }
        Ok(())
    }
}

impl std::error::Error for ApplyError {}

/// One conflict per path.
pub(crate) fn list(
    identity: &Identity,
    api_version: &str,
    time: Option<&str>,
    fields: &Set,
) -> Vec<Conflict> {
    let paths = fields.paths().into_iter();
    let shown = paths.map(|path| path.iter().map(ToString::to_string).collect::<String>());
    shown
        .map(|field| Conflict {
            manager: identity.manager.clone(),
            subresource: identity.subresource.clone(),
            api_version: api_version.to_owned(),
            operation: identity.operation,
            time: time.map(str::to_owned),
            field,
        })
        .collect()
}
