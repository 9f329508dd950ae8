//! What is wrong with a field, in the words Kubernetes uses.

use std::fmt;

use serde_json::Value;

/// One thing wrong with one field.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// Dotted path, for example `spec.template.spec.containers[0].name`; empty for the whole object.
    pub path: String,
    /// The class of the mistake.
    pub problem: Problem,
    /// What follows the class in the message; may be empty.
    pub detail: String,
}

/// The class of a field error, with the offending value where the message shows it.
#[derive(Debug, Clone, PartialEq)]
pub enum Problem {
    /// `Invalid value: <value>: <detail>`
    Invalid(Value),
    /// `Invalid value: <detail>`: the value is too large to show
    InvalidUnshown,
    /// `Required value: <detail>`
    Required,
    /// `Duplicate value: <value>`
    Duplicate(Value),
    /// `Duplicate value`: the value is too large to show
    DuplicateUnshown,
    /// `Forbidden: <detail>`
    Forbidden,
    /// `Unsupported value: <value>: supported values: <detail>`
    NotSupported(Value),
    /// `Too long: <detail>`
    TooLong,
    /// `Too many: <actual>: must have at most <limit> items`
    TooMany {
        /// How many there are.
        actual: usize,
        /// How many there may be.
        limit: usize,
    },
    /// `Invalid value: "<type>": <detail>`
    TypeInvalid(Value),
    /// `Not found: <value>`
    NotFound(Value),
    /// `Internal error: <detail>`
    Internal,
}

impl FieldError {
    /// A value that may not stand there.
    pub fn invalid(path: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        FieldError { path: path.into(), problem: Problem::Invalid(value.into()), detail: detail.into() }
    }

    /// A field that must be there and is not.
    pub fn required(path: impl Into<String>, detail: impl Into<String>) -> Self {
        FieldError { path: path.into(), problem: Problem::Required, detail: detail.into() }
    }

    /// A field that must not be there, or must not change.
    pub fn forbidden(path: impl Into<String>, detail: impl Into<String>) -> Self {
        FieldError { path: path.into(), problem: Problem::Forbidden, detail: detail.into() }
    }

    /// A value outside an enumeration.
    pub fn not_supported(path: impl Into<String>, value: impl Into<Value>, supported: &[&str]) -> Self {
        let list: Vec<String> = supported.iter().map(|name| format!("\"{name}\"")).collect();
        FieldError {
            path: path.into(),
            problem: Problem::NotSupported(value.into()),
            detail: format!("supported values: {}", list.join(", ")),
        }
    }

    /// The machine-readable reason of a `Status` cause.
    pub fn reason(&self) -> &'static str {
        match self.problem {
            Problem::Invalid(_) | Problem::InvalidUnshown => "FieldValueInvalid",
            Problem::Required => "FieldValueRequired",
            Problem::Duplicate(_) | Problem::DuplicateUnshown => "FieldValueDuplicate",
            Problem::Forbidden => "FieldValueForbidden",
            Problem::NotSupported(_) => "FieldValueNotSupported",
            Problem::TooLong => "FieldValueTooLong",
            Problem::TooMany { .. } => "FieldValueTooMany",
            Problem::TypeInvalid(_) => "FieldValueTypeInvalid",
            Problem::NotFound(_) => "FieldValueNotFound",
            Problem::Internal => "InternalError",
        }
    }

    /// The message without the path, as a `Status` cause carries it.
    pub fn message(&self) -> String {
        let head = match &self.problem {
            Problem::Invalid(value) | Problem::TypeInvalid(value) => {
                format!("Invalid value: {}", shown(value))
            }
            Problem::InvalidUnshown => "Invalid value".to_owned(),
            Problem::Required => "Required value".to_owned(),
            Problem::Duplicate(value) => format!("Duplicate value: {}", shown(value)),
            Problem::DuplicateUnshown => "Duplicate value".to_owned(),
            Problem::Forbidden => "Forbidden".to_owned(),
            Problem::NotSupported(value) => format!("Unsupported value: {}", shown(value)),
            Problem::TooLong => "Too long".to_owned(),
            Problem::TooMany { actual, limit } => {
                let items = if *limit == 1 { "item" } else { "items" };
                return format!("Too many: {actual}: must have at most {limit} {items}");
            }
            Problem::NotFound(value) => format!("Not found: {}", shown(value)),
            Problem::Internal => "Internal error".to_owned(),
        };
        if self.detail.is_empty() { head } else { format!("{head}: {}", self.detail) }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "<nil>" } else { &self.path };
        write!(f, "{path}: {}", self.message())
    }
}

/// Values are shown as JSON, cut where a whole object would drown the message.
fn shown(value: &Value) -> String {
    const LONGEST: usize = 1024;
    let mut text = value.to_string();
    if text.len() > LONGEST {
        let cut = (0..=LONGEST).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(cut);
        text.push_str("...");
    }
    text
}
