//! Defaults must be valid values of their own schema, without unknown fields.

use std::sync::Arc;

use crate::error::FieldError;
use crate::model::Schema;
use crate::prune::prune_below;
use crate::validator::Validator;

pub(super) fn check(schema: &Arc<Schema>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    node(schema, path, &mut errors);
    errors
}

fn node(schema: &Arc<Schema>, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(default) = schema.default.as_ref().filter(|default| !default.is_null()) {
        let at = format!("{path}.default");
        let mut pruned = default.clone();
        if !prune_below(schema, &mut pruned).is_empty() {
            errors.push(FieldError::invalid(at.clone(), default.clone(), "must not have unknown fields"));
        }
        // Rules that do not compile are reported on their own.
        if let Ok(validator) = Validator::new(schema.clone()) {
            let found = validator.validate(default, None);
            errors.extend(found.into_iter().map(|error| below(&at, error)));
        }
    }
    // Map values have no default: there is no key to be absent.
    for (name, property) in &schema.properties {
        node(property, &format!("{path}.properties[{name}]"), errors);
    }
    if let Some(items) = &schema.items {
        node(items, &format!("{path}.items"), errors);
    }
}

fn below(prefix: &str, mut error: FieldError) -> FieldError {
    error.path = match error.path.as_str() {
        "" => prefix.to_owned(),
        path => format!("{prefix}.{path}"),
    };
    error
}
