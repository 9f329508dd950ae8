//! One key of the ConfigMap, read as YAML, with the places of its values.

use baton_grammar::yaml::{self, Places};
use serde_json::{Map, Value as Json};

use super::{Finding, Severity};

/// Longest value of a key that is read, in bytes.
const LONGEST: usize = 256 << 10;

/// One key of the ConfigMap.
pub(super) struct Document<'k> {
    pub(super) key: &'k str,
    pub(super) value: Json,
    places: Places,
}

// === impl Document ===

impl<'k> Document<'k> {
    pub(super) fn read(key: &'k str, text: &str) -> Result<Document<'k>, Finding> {
        let at = |line, column, message| Finding {
            key: key.to_owned(),
            line,
            column,
            severity: Severity::Error,
            message,
        };
        if text.len() > LONGEST {
            return Err(at(1, 1, format!("it is longer than {LONGEST} bytes")));
        }
        let mut documents =
            yaml::located(text).map_err(|error| at(error.line, error.column, error.message.clone()))?;
        let (value, places) =
            if documents.is_empty() { (Json::Null, Places::default()) } else { documents.swap_remove(0) };
        Ok(Document { key, value, places })
    }

    /// Something wrong at a path.
    pub(super) fn error(&self, path: &str, message: impl Into<String>) -> Finding {
        self.finding(Severity::Error, path, message)
    }

    /// Something doubtful at a path.
    pub(super) fn warning(&self, path: &str, message: impl Into<String>) -> Finding {
        self.finding(Severity::Warning, path, message)
    }

    fn finding(&self, severity: Severity, path: &str, message: impl Into<String>) -> Finding {
        let place = self.places.nearest(path);
        let message = message.into();
        Finding { key: self.key.to_owned(), line: place.line, column: place.column, severity, message }
    }

    /// The whole as a map.
    pub(super) fn map(&self) -> Result<&Map<String, Json>, Finding> {
        self.value.as_object().ok_or_else(|| self.error("", "a map is wanted"))
    }

    /// The whole as a list of texts.
    pub(super) fn texts(&self) -> Result<Vec<String>, Finding> {
        texts(&self.value).ok_or_else(|| self.error("", "a list of texts is wanted"))
    }

    /// A text of a map at a path; empty if it is not there.
    pub(super) fn text(&self, map: &Map<String, Json>, path: &str, name: &str) -> Result<String, Finding> {
        match map.get(name) {
            None | Some(Json::Null) => Ok(String::new()),
            Some(Json::String(text)) => Ok(text.clone()),
            Some(Json::Number(number)) => Ok(number.to_string()),
            Some(Json::Bool(value)) => Ok(value.to_string()),
            Some(_) => Err(self.error(&joined(path, name), format!("{name} must be a text"))),
        }
    }

    /// A yes or no of a map at a path; no if it is not there.
    pub(super) fn flag(&self, map: &Map<String, Json>, path: &str, name: &str) -> Result<bool, Finding> {
        match map.get(name) {
            None | Some(Json::Null) => Ok(false),
            Some(Json::Bool(value)) => Ok(*value),
            Some(_) => Err(self.error(&joined(path, name), format!("{name} must be true or false"))),
        }
    }

    /// A list of texts of a map at a path; empty if it is not there.
    pub(super) fn list(
        &self,
        map: &Map<String, Json>,
        path: &str,
        name: &str,
    ) -> Result<Vec<String>, Finding> {
        match map.get(name) {
            None => Ok(Vec::new()),
            Some(value) => texts(value)
                .ok_or_else(|| self.error(&joined(path, name), format!("{name} must be a list of texts"))),
        }
    }
}

/// A path one step further.
pub(super) fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn texts(value: &Json) -> Option<Vec<String>> {
    match value {
        Json::Null => Some(Vec::new()),
        Json::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}
