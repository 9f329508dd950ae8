//! Whether a document is an ApplicationSet at all: fields, types, required values.

use std::sync::{Arc, LazyLock};

use baton_api::ApplicationSet;
use baton_schema::{Reader, Schema, apply_defaults, unknown_fields, validate};
use serde_json::Value;

use crate::Report;

/// The schema of the CRD, as an API server would use it.
static SCHEMA: LazyLock<Option<Arc<Schema>>> = LazyLock::new(|| {
    let crds = baton_api::crds();
    let crd = crds.iter().find(|crd| crd["spec"]["names"]["kind"] == "ApplicationSet")?;
    let document = crd.pointer("/spec/versions/0/schema/openAPIV3Schema")?;
    Reader::standalone().read(document).ok()
});

/// The set, unless the document is too far from one.
pub(crate) fn decode(document: &Value, report: &mut Report<'_>) -> Option<ApplicationSet> {
    if document["apiVersion"] != baton_api::names::API_VERSION {
        let message = format!(
            "apiVersion is {}; ApplicationSets are {}",
            document["apiVersion"],
            baton_api::names::API_VERSION
        );
        report.error("api-version", "apiVersion", message);
    }
    if document["metadata"]["name"].as_str().unwrap_or_default().is_empty() {
        report.error("name", "metadata.name", "an ApplicationSet needs a name");
    }
    if let Some(schema) = SCHEMA.as_deref() {
        for path in unknown_fields(schema, document) {
            let message =
                format!("no field {path}: an API server would drop it; check spelling and indentation");
            report.error("unknown-field", path, message);
        }
        // A server judges what it would store: with defaults, and without nulls that say nothing.
        let mut stored = document.clone();
        apply_defaults(schema, &mut stored);
        let errors = validate(schema, &stored, None);
        for error in &errors {
            report.error("schema", &*error.path, error.message());
        }
        if !errors.is_empty() {
            return serde_json::from_value(document.clone()).ok();
        }
    }
    serde_json::from_value(document.clone())
        .map_err(|error| report.error("schema", "spec", format!("not an ApplicationSet: {error}")))
        .ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_schema_of_the_crd_is_read() {
        assert!(super::SCHEMA.is_some());
    }
}
