//! A schema prepared once for checking many objects.

use std::sync::Arc;

use serde_json::Value;

use crate::cel::Rules;
use crate::error::{FieldError, Problem};
use crate::model::Schema;
use crate::validate::{Prepared, validate_with};

/// A schema with its patterns and rules compiled.
#[derive(Debug)]
pub struct Validator {
    schema: Arc<Schema>,
    prepared: Prepared,
    rules: Rules,
}

impl Validator {
    /// Compiles the patterns and rules of a schema.
    ///
    /// # Errors
    /// One error for each rule that does not compile, with its path in the schema.
    pub fn new(schema: Arc<Schema>) -> Result<Validator, Vec<FieldError>> {
        let rules = Rules::compile(&schema)?;
        let prepared = Prepared::of(&schema);
        Ok(Validator { schema, prepared, rules })
    }

    /// The schema this checks against.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Everything wrong with `object`, the schema first, then its rules.
    ///
    /// With `old` given, transition rules run and what was already wrong and has not changed is tolerated.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = validate_with(&self.schema, &self.prepared, object, old);
        if self.rules.is_empty() {
            return errors;
        }
        // Rules rely on the types and sizes the schema promises.
        if errors.iter().any(keeps_rules_from_running) {
            errors.push(FieldError::invalid(
                "",
                Value::Null,
                "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
            ));
        } else {
            errors.extend(self.rules.evaluate(object, old));
        }
        errors
    }
}

fn keeps_rules_from_running(error: &FieldError) -> bool {
    matches!(
        error.problem,
        Problem::NotSupported(_)
            | Problem::Required
            | Problem::TooLong
            | Problem::TooMany { .. }
            | Problem::TypeInvalid(_)
    )
}
