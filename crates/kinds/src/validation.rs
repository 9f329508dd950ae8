//! What is wrong with an object, in Kubernetes' words.

use baton_schema::FieldError;
use serde_json::Value;

use crate::Kind;
use crate::lookup::text;

impl Kind {
    /// What is wrong with an object that is created (`old` is `None`) or updated.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let name = text(object, "metadata.name");
        let _ = old;
        self.name_rule()(name)
            .into_iter()
            .map(|wrong| FieldError::invalid("metadata.name", name, wrong))
            .collect()
    }
}
